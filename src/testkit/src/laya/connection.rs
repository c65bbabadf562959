//! One connection of the fake: reads requests by hand and writes answers by hand, so that it can break HTTP anywhere.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::answers::answer;
use super::{Fault, Says, Seen, Shared};

/// Largest request that is read.
const MAX_BYTES: usize = 16 << 20;

/// Something that is counted for as long as it lives.
struct Counted<'a>(&'a std::sync::atomic::AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a std::sync::atomic::AtomicUsize) -> (Self, usize) {
        let now = count.fetch_add(1, Ordering::SeqCst) + 1;
        (Self(count), now)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let (_open, _) = Counted::new(&shared.connections);
    // What goes wrong with a client is the client's to notice.
    let _ = requests(stream, &shared).await;
}

async fn requests(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    if shared.behaviour().fault == Fault::AcceptThenClose {
        shared.calls.fetch_add(1, Ordering::SeqCst);
        return Ok(());
    }
    stream.set_nodelay(true)?;
    let mut read = Vec::new();
    while let Some(seen) = request(&mut stream, &mut read).await? {
        let target = seen.line.split(' ').nth(1).unwrap_or_default().to_owned();
        let (says, fault) = {
            let behaviour = shared.behaviour();
            (behaviour.says.clone(), behaviour.fault.clone())
        };
        match target.as_str() {
            "/health" => reply(&mut stream, says.health.0, &[], says.health.1.as_bytes()).await?,
            "/ready" if shared.draining.load(Ordering::SeqCst) => {
                let body =
                    br#"{"ready":false,"reason":"Draining","message":"it was told to drain"}"#;
                reply(&mut stream, 503, &[], body).await?;
            }
            "/ready" => reply(&mut stream, says.ready.0, &[], says.ready.1.as_bytes()).await?,
            // A server that knows no `/ready` knows none of these either.
            "/drain" if says.ready.0 != 404 => drain(&mut stream, &seen, shared).await?,
            "/metrics" if says.ready.0 != 404 => metrics(&mut stream, shared).await?,
            "/v1/systemone" | "/v1/systemone/batch" if shared.draining.load(Ordering::SeqCst) => {
                let headers = [("retry-after", "1".to_owned())];
                let body = br#"{"detail":"server is draining"}"#;
                reply(&mut stream, 503, &headers, body).await?;
            }
            "/v1/systemone" | "/v1/systemone/batch" => {
                shared.calls.fetch_add(1, Ordering::SeqCst);
                let (_waiting, now) = Counted::new(&shared.in_flight);
                shared.peak.fetch_max(now, Ordering::SeqCst);
                shared.behaviour().last = Some(seen.clone());
                if fault == Fault::AcceptThenClose
                    || !decide(&mut stream, &seen, &says, &fault).await?
                {
                    return Ok(());
                }
            }
            _ => reply(&mut stream, 404, &[], br#"{"detail":"Not Found"}"#).await?,
        }
    }
    Ok(())
}

async fn drain(stream: &mut TcpStream, seen: &Seen, shared: &Shared) -> io::Result<()> {
    let starts = seen.line.starts_with("POST ");
    if !starts && !seen.line.starts_with("DELETE ") {
        return reply(stream, 405, &[], br#"{"detail":"Method Not Allowed"}"#).await;
    }
    shared.draining.store(starts, Ordering::SeqCst);
    shared
        .drains
        .fetch_add(usize::from(starts), Ordering::SeqCst);
    let in_flight = shared.in_flight.load(Ordering::SeqCst);
    let body = format!(r#"{{"draining":{starts},"in_flight":{in_flight}}}"#);
    reply(stream, if starts { 202 } else { 200 }, &[], body.as_bytes()).await
}

async fn metrics(stream: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    let text = format!(
        "# TYPE laya_requests_total counter\nlaya_requests_total{{route=\"/v1/systemone\",status=\"200\"}} {}\n\
         # TYPE laya_in_flight gauge\nlaya_in_flight {}\n",
        shared.calls.load(Ordering::SeqCst),
        shared.in_flight.load(Ordering::SeqCst),
    );
    reply(stream, 200, &[], text.as_bytes()).await
}

/// Answers a decision request. Whether the connection goes on.
async fn decide(
    stream: &mut TcpStream,
    seen: &Seen,
    says: &Says,
    fault: &Fault,
) -> io::Result<bool> {
    if let Some(key) = &says.key
        && seen.header("authorization") != Some(&format!("Bearer {key}"))
    {
        reply(
            stream,
            401,
            &[],
            br#"{"detail":"invalid or missing bearer token"}"#,
        )
        .await?;
        return Ok(true);
    }
    if let Some(asked) = seen.header("x-laya-contract")
        && says.contract.as_deref() != Some(asked)
    {
        reply(stream, 409, &[], br#"{"detail":"contract mismatch"}"#).await?;
        return Ok(true);
    }
    let body = answer(&seen.body, &says.answers, fault);
    let mut headers = vec![
        ("server-timing", "inference;dur=1.25".to_owned()),
        ("x-inference-time-ms", "1.25".to_owned()),
        ("x-laya-truncated", "0".to_owned()),
    ];
    if let Some(checkpoint) = &says.checkpoint {
        headers.push(("x-laya-checkpoint", checkpoint.clone()));
        let contract = says.contract.clone();
        headers.push((
            "x-laya-contract",
            contract.unwrap_or_else(|| "none".to_owned()),
        ));
    }
    match fault {
        Fault::Latency(time) => {
            if gone_within(stream, *time).await {
                return Ok(false);
            }
            reply(stream, 200, &headers, body.as_bytes()).await?;
        }
        Fault::HangBeforeHead => {
            gone(stream).await;
            return Ok(false);
        }
        Fault::HangInBody => {
            write_head(stream, 200, &headers, body.len()).await?;
            stream.write_all(&body.as_bytes()[..body.len() / 2]).await?;
            gone(stream).await;
            return Ok(false);
        }
        Fault::Trickle(pause) => {
            write_head(stream, 200, &headers, body.len()).await?;
            for byte in body.as_bytes() {
                stream.write_all(&[*byte]).await?;
                if gone_within(stream, *pause).await {
                    return Ok(false);
                }
            }
        }
        Fault::HugeBody(length) => {
            write_head(stream, 200, &headers, *length).await?;
            flood(stream, *length, |chunk| chunk.to_vec()).await?;
        }
        Fault::HugeChunkedBody(length) => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).await?;
            let framed = |chunk: &[u8]| {
                let mut framed = format!("{:x}\r\n", chunk.len()).into_bytes();
                framed.extend_from_slice(chunk);
                framed.extend_from_slice(b"\r\n");
                framed
            };
            flood(stream, *length, framed).await?;
            stream.write_all(b"0\r\n\r\n").await?;
        }
        Fault::Status(status, retry_after) => {
            let mut headers = Vec::new();
            if let Some(seconds) = retry_after {
                headers.push(("retry-after", seconds.to_string()));
            }
            reply(
                stream,
                *status,
                &headers,
                br#"{"detail":"told so by a test"}"#,
            )
            .await?;
        }
        Fault::Draining | Fault::DrainingAfter(_) => {
            if let Fault::DrainingAfter(after) = fault {
                tokio::time::sleep(*after).await;
            }
            let wait = [("retry-after", "1".to_owned())];
            reply(stream, 503, &wait, br#"{"detail":"server is draining"}"#).await?;
        }
        Fault::Reset => {
            // With a linger of zero, closing sends a reset.
            stream.set_zero_linger()?;
            return Ok(false);
        }
        Fault::EndlessHead => {
            stream
                .write_all(b"HTTP/1.1 503 Service Unavailable\r\n")
                .await?;
            let line = format!("x-filler: {}\r\n", "0".repeat(4096));
            loop {
                stream.write_all(line.as_bytes()).await?;
                if gone_within(stream, Duration::from_millis(1)).await {
                    return Ok(false);
                }
            }
        }
        Fault::None
        | Fault::MalformedJson
        | Fault::NotANumber
        | Fault::MissingId(_)
        | Fault::UnknownChoice
        | Fault::LastOption
        | Fault::WrongKind
        | Fault::DeadHead
        | Fault::AcceptThenClose => reply(stream, 200, &headers, body.as_bytes()).await?,
    }
    Ok(true)
}

async fn flood(
    stream: &mut TcpStream,
    length: usize,
    framed: impl Fn(&[u8]) -> Vec<u8>,
) -> io::Result<()> {
    let filler = vec![b' '; 64 << 10];
    let mut left = length;
    while left > 0 {
        let now = left.min(filler.len());
        stream.write_all(&framed(&filler[..now])).await?;
        left -= now;
    }
    Ok(())
}

/// Waits until the client goes away.
async fn gone(stream: &mut TcpStream) {
    let mut ignored = [0; 1024];
    while matches!(stream.read(&mut ignored).await, Ok(1..)) {}
}

/// Whether the client goes away within a time.
async fn gone_within(stream: &mut TcpStream, time: Duration) -> bool {
    tokio::time::timeout(time, gone(stream)).await.is_ok()
}

async fn reply(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &[u8],
) -> io::Result<()> {
    let mut whole = head(status, headers, body.len()).into_bytes();
    whole.extend_from_slice(body);
    stream.write_all(&whole).await
}

async fn write_head(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    length: usize,
) -> io::Result<()> {
    stream
        .write_all(head(status, headers, length).as_bytes())
        .await
}

fn head(status: u16, headers: &[(&str, String)], length: usize) -> String {
    let mut head = format!(
        "HTTP/1.1 {status} Fake\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head
}

/// The next request, or none when the client is done. `read` keeps what came behind it.
async fn request(stream: &mut TcpStream, read: &mut Vec<u8>) -> io::Result<Option<Seen>> {
    let end = loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if read.len() > MAX_BYTES || !more(stream, read).await? {
            return Ok(None);
        }
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
    let length: usize = seen
        .header("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    while read.len() < end + length {
        if read.len() > MAX_BYTES || !more(stream, read).await? {
            return Ok(None);
        }
    }
    seen.body = read[end..end + length].to_vec();
    read.drain(..end + length);
    Ok(Some(seen))
}

async fn more(stream: &mut TcpStream, read: &mut Vec<u8>) -> io::Result<bool> {
    Ok(stream.read_buf(read).await? > 0)
}
