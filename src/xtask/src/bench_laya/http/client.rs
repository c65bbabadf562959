//! A client that blocks: one kept connection, one request at a time, as little work beside the wire as possible.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for bytes.
const DEADLINE: Duration = Duration::from_secs(10);
/// Longest head of an answer, bytes.
const MAX_HEAD: usize = 64 << 10;

/// The bytes of a GET.
pub(super) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").into_bytes()
}

/// The bytes of a POST.
pub(super) fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// One connection.
pub(super) struct Client {
    stream: TcpStream,
    /// What came of the current answer.
    got: Vec<u8>,
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Result<Self, String> {
        Self::try_connect(address).map_err(|error| format!("cannot reach {address}: {error}"))
    }

    pub(super) fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, DEADLINE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Self {
            stream,
            got: Vec::new(),
        })
    }

    /// Sends a request and reads its answer to the end; the status.
    pub(super) fn ask(&mut self, request: &[u8]) -> io::Result<u16> {
        self.stream.write_all(request)?;
        self.got.clear();
        let head = loop {
            if let Some(end) = self.got.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if self.got.len() > MAX_HEAD {
                return Err(io::Error::other("the head of the answer does not end"));
            }
            self.more()?;
        };
        let (status, length) = parse(&self.got[..head])?;
        while self.got.len() < head + length {
            self.more()?;
        }
        Ok(status)
    }

    fn more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        match self.stream.read(&mut chunk)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.got.extend_from_slice(&chunk[..count]);
                Ok(())
            }
        }
    }
}

/// Status and length of the body. The server always tells the length (wire.md 2.2).
fn parse(head: &[u8]) -> io::Result<(u16, usize)> {
    let bad = || io::Error::other("this is no answer with a length");
    let text = std::str::from_utf8(head).map_err(|_| bad())?;
    let status = text.split(' ').nth(1).and_then(|s| s.parse().ok());
    let length = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok());
    status.zip(length).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_and_a_length() {
        let rows: [(&str, Option<(u16, usize)>); 4] = [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
                Some((200, 5)),
            ),
            (
                "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nContent-Length: 0\r\n\r\n",
                Some((503, 0)),
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", None),
            ("nonsense\r\n\r\n", None),
        ];
        for (head, wanted) in rows {
            assert_eq!(parse(head.as_bytes()).ok(), wanted, "{head:?}");
        }
    }
}
