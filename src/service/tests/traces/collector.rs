//! A trace collector on a free port: takes OTLP over HTTP, keeps every byte, and hangs when told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// What it does with a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Takes,
    /// Reads and never answers.
    Hangs,
    Refuses,
}

pub(crate) struct Collector {
    address: std::net::SocketAddr,
    posts: Arc<Mutex<Vec<Post>>>,
}

/// One post: its head as text, its body.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Collector {
    pub(crate) fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let posts = Arc::new(Mutex::new(Vec::new()));
        let kept = posts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = kept.clone();
                std::thread::spawn(move || converse(stream, manner, &kept));
            }
        });
        Self { address, posts }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn posts(&self) -> Vec<Post> {
        self.posts.lock().unwrap().clone()
    }

    /// Everything that came, decoded.
    pub(crate) fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        let decode = |post: Post| ExportTraceServiceRequest::decode(&post.body[..]).unwrap();
        self.posts().into_iter().map(decode).collect()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.requests()
            .into_iter()
            .flat_map(|request| request.resource_spans)
            .flat_map(|resource| resource.scope_spans)
            .flat_map(|scope| scope.spans)
            .collect()
    }
}

fn converse(stream: TcpStream, manner: Manner, posts: &Mutex<Vec<Post>>) {
    let mut answers = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(post) = read(&mut reader) {
        posts.lock().unwrap().push(post);
        let answer = match manner {
            Manner::Takes => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            Manner::Refuses => "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
            Manner::Hangs => loop {
                std::thread::sleep(Duration::from_secs(60));
            },
        };
        answers.write_all(answer.as_bytes()).unwrap();
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Post> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line.to_ascii_lowercase());
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Post { head, body })
}
