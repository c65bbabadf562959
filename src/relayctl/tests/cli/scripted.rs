//! An object API on the daemon's socket that answers what a test says: what no real one does on demand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::Home;

/// One question as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: String,
}

/// What is answered.
pub(crate) enum Answer {
    /// A status and a tree.
    Json(u16, Value),
    /// A status and any text.
    Text(u16, &'static str),
    /// Nothing, while the connection stays open.
    Silence,
    /// The connection ends in the middle of the answer.
    Cut,
}

/// Everything that was asked.
pub(crate) type Log = Arc<Mutex<Vec<Asked>>>;

/// Listens as `relayd local` would, until the test ends.
pub(crate) fn serve(home: &Home, answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Log {
    std::fs::create_dir_all(home.path("relay/daemon")).unwrap();
    let listener = UnixListener::bind(home.path("relay/daemon/sock")).unwrap();
    let log = Log::default();
    let kept = log.clone();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (answer, kept) = (answer.clone(), kept.clone());
            std::thread::spawn(move || {
                let stream = stream.unwrap();
                let _ = exchange(stream.try_clone().unwrap(), stream, &*answer, &kept);
            });
        }
    });
    log
}

/// Listens as the API of a cluster would, until the test ends.
pub(crate) fn serve_cluster(
    answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (SocketAddr, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let log = Log::default();
    let kept = log.clone();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (answer, kept) = (answer.clone(), kept.clone());
            std::thread::spawn(move || {
                let stream = stream.unwrap();
                let _ = exchange(stream.try_clone().unwrap(), stream, &*answer, &kept);
            });
        }
    });
    (address, log)
}

fn exchange(
    reader: impl Read,
    stream: impl Write,
    answer: &dyn Fn(&Asked) -> Answer,
    log: &Log,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let asked = Asked {
        method,
        path,
        body: String::from_utf8(body).unwrap(),
    };
    let answer = answer(&asked);
    log.lock().unwrap().push(asked);
    let mut stream = stream;
    match answer {
        Answer::Json(status, tree) => whole(&mut stream, status, &tree.to_string()),
        Answer::Text(status, text) => whole(&mut stream, status, text),
        Answer::Cut => write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{{"),
        Answer::Silence => {
            // Until the other side has had enough.
            let _ = reader.read(&mut [0; 1]);
            Ok(())
        }
    }
}

fn whole(stream: &mut impl Write, status: u16, text: &str) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}
