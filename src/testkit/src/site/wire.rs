//! HTTP/1.1 on threads: one accepts, one serves each connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::{Content, Handler, Refusal, SiteFault, Then};
use crate::Seen;

/// Largest head of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Largest body of a request.
const MAX_BODY_BYTES: usize = 64 << 20;
/// Written at a time.
const PIECE: usize = 64 << 10;

pub(super) struct Server {
    address: SocketAddr,
    ending: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(handler: Arc<Handler>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .unwrap_or_else(|error| panic!("cannot listen on 127.0.0.1: {error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("cannot read the port: {error}"));
        let ending = Arc::new(AtomicBool::new(false));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (end, streams) = (Arc::clone(&ending), Arc::clone(&open));
        let accepting = std::thread::spawn(move || accept(&listener, &handler, &end, &streams));
        Self {
            address,
            ending,
            open,
            accepting: Some(accepting),
        }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        // Wakes the one that accepts.
        let _ = TcpStream::connect(self.address);
        for stream in self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn accept(
    listener: &TcpListener,
    handler: &Arc<Handler>,
    ending: &Arc<AtomicBool>,
    open: &Mutex<Vec<TcpStream>>,
) {
    let mut serving: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        if ending.load(Ordering::SeqCst) {
            break;
        }
        serving.retain(|thread| !thread.is_finished());
        let Ok(stream) = stream else { continue };
        if let Ok(other) = stream.try_clone() {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|stream| stream.peer_addr().is_ok());
            open.push(other);
        }
        let handler = Arc::clone(handler);
        serving.push(std::thread::spawn(move || {
            // What goes wrong with a client is the client's to notice.
            let _ = connection(stream, handler.as_ref());
        }));
    }
    for stream in open
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .drain(..)
    {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for thread in serving {
        let _ = thread.join();
    }
}

fn connection(mut stream: TcpStream, handler: &Handler) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read = Vec::new();
    while let Some(seen) = request(&mut stream, &mut read)? {
        match handler(&seen, &mut stream) {
            Ok(Then::GoOn) => {}
            Ok(Then::Close) | Err(_) => break,
        }
    }
    stream.shutdown(Shutdown::Both)
}

fn request(stream: &mut TcpStream, read: &mut Vec<u8>) -> io::Result<Option<Seen>> {
    let mut piece = [0; 8192];
    let end = loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let count = stream.read(&mut piece)?;
        if count == 0 || read.len() > MAX_HEAD_BYTES {
            return Ok(None);
        }
        read.extend_from_slice(&piece[..count]);
    };
    let text = String::from_utf8_lossy(&read[..end]).into_owned();
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut seen = Seen {
        line,
        headers,
        body: Vec::new(),
    };
    let length = seen
        .header("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0)
        .min(MAX_BODY_BYTES);
    while read.len() < end + length {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Ok(None);
        }
        read.extend_from_slice(&piece[..count]);
    }
    seen.body = read[end..end + length].to_vec();
    read.drain(..end + length);
    Ok(Some(seen))
}

/// Writes an answer, broken as the fault says.
pub(super) fn respond(
    stream: &mut TcpStream,
    seen: &Seen,
    answer: Result<Content, Refusal>,
    fault: Option<&SiteFault>,
) -> io::Result<Then> {
    match fault {
        Some(SiteFault::NoHead) => return wait_for_the_end(stream),
        Some(SiteFault::Reset) => {
            // Unread bytes of the client make the system reset instead of close.
            stream.shutdown(Shutdown::Both)?;
            return Ok(Then::Close);
        }
        Some(SiteFault::Status(status, retry_after)) => {
            let headers: Vec<_> = retry_after
                .iter()
                .map(|after| ("retry-after", after.clone()))
                .collect();
            return empty(stream, *status, &headers);
        }
        Some(SiteFault::Redirect(status, to)) => {
            return empty(stream, *status, &[("location", to.clone())]);
        }
        Some(SiteFault::NotSatisfiable(size)) => {
            let headers: Vec<_> = size
                .iter()
                .map(|size| ("content-range", format!("bytes */{size}")))
                .collect();
            return empty(stream, 416, &headers);
        }
        _ => {}
    }
    match answer {
        Ok(content) => serve(stream, seen, &content, fault),
        Err(refusal) => {
            let mut head = head(refusal.status, &refusal.headers);
            head.push_str(&format!(
                "content-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
                refusal.body.len(),
                refusal.body
            ));
            stream.write_all(head.as_bytes())?;
            Ok(Then::GoOn)
        }
    }
}

fn serve(
    stream: &mut TcpStream,
    seen: &Seen,
    content: &Content,
    fault: Option<&SiteFault>,
) -> io::Result<Then> {
    let mut bytes = Arc::clone(&content.bytes);
    if let Some(SiteFault::WrongByte(at)) = fault {
        let mut wrong = bytes.as_ref().clone();
        if let Some(byte) = usize::try_from(*at).ok().and_then(|at| wrong.get_mut(at)) {
            *byte ^= 0x55;
        }
        bytes = Arc::new(wrong);
    }
    let size = bytes.len();
    let from = match (seen.header("range"), fault) {
        (_, Some(SiteFault::IgnoreRange)) | (None, _) => None,
        (Some(range), _) => first_byte(range),
    };
    let mut headers = content.headers.clone();
    headers.push(("content-type", content.media_type.clone()));
    headers.push(("accept-ranges", "bytes".to_owned()));
    let (status, body) = match from {
        None => (200, &bytes[..]),
        Some(from) if from < size => {
            headers.push(("content-range", format!("bytes {from}-{}/{size}", size - 1)));
            (206, &bytes[from..])
        }
        Some(_) => {
            return empty(stream, 416, &[("content-range", format!("bytes */{size}"))]);
        }
    };
    if let Some(SiteFault::Longer(more)) = fault {
        // The end of the connection is the end of the body.
        headers.push(("connection", "close".to_owned()));
        stream.write_all((head(status, &headers) + "\r\n").as_bytes())?;
        stream.write_all(body)?;
        stream.write_all(&vec![b'x'; usize::try_from(*more).unwrap_or_default()])?;
        return Ok(Then::Close);
    }
    headers.push(("content-length", body.len().to_string()));
    stream.write_all((head(status, &headers) + "\r\n").as_bytes())?;
    if seen.line.starts_with("HEAD ") {
        return Ok(Then::GoOn);
    }
    write_body(stream, body, fault)
}

fn write_body(stream: &mut TcpStream, body: &[u8], fault: Option<&SiteFault>) -> io::Result<Then> {
    let limit = |bytes: u64| body.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
    match fault {
        Some(SiteFault::CutAfter(bytes)) => {
            stream.write_all(&body[..limit(*bytes)])?;
            Ok(Then::Close)
        }
        Some(SiteFault::SilentAfter(bytes)) => {
            stream.write_all(&body[..limit(*bytes)])?;
            wait_for_the_end(stream)
        }
        Some(SiteFault::Slow(piece, pause)) => {
            for piece in body.chunks((*piece).max(1)) {
                std::thread::sleep(*pause);
                stream.write_all(piece)?;
            }
            Ok(Then::GoOn)
        }
        _ => {
            for piece in body.chunks(PIECE) {
                stream.write_all(piece)?;
            }
            Ok(Then::GoOn)
        }
    }
}

/// `bytes=5-`.
fn first_byte(range: &str) -> Option<usize> {
    let (from, _) = range.strip_prefix("bytes=")?.split_once('-')?;
    from.parse().ok()
}

fn empty(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&'static str, String)],
) -> io::Result<Then> {
    let head = head(status, headers) + "content-length: 0\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    Ok(Then::GoOn)
}

fn head(status: u16, headers: &[(&'static str, String)]) -> String {
    headers.iter().fold(
        format!("HTTP/1.1 {status} Fake\r\n"),
        |head, (name, value)| head + &format!("{name}: {value}\r\n"),
    )
}

/// Ends when the client or the server does.
fn wait_for_the_end(stream: &mut TcpStream) -> io::Result<Then> {
    let mut ignored = [0; 1024];
    while stream.read(&mut ignored)? > 0 {}
    Ok(Then::Close)
}
