//! What a router adds to `/v1/systemone`: the same request to a server directly and through a router, in turn, each over
//! one kept connection, so that whatever else the machine does meets both sides alike.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest wait for anything.
const DEADLINE: Duration = Duration::from_secs(10);
/// Not counted, on each side.
const WARM_UP: usize = 100;

const BODY: &str = r#"{"state":{"request":"Fix the login token expiry"},"questions":{"urgent":{"type":"noul","instructions":"Is it urgent?"}}}"#;

/// Measures and prints.
///
/// # Errors
/// When a side cannot be reached, or answers anything but 200.
pub(crate) fn print(server: SocketAddr, router: SocketAddr, requests: usize) -> Result<(), String> {
    let mut sides = [server, router].map(|address| (address, Vec::with_capacity(requests)));
    let mut clients = Vec::new();
    for (address, _) in &sides {
        let client = Client::connect(*address);
        clients.push(client.map_err(|error| format!("cannot reach {address}: {error}"))?);
    }
    for number in 0..WARM_UP + requests {
        for (client, (address, times)) in clients.iter_mut().zip(&mut sides) {
            let began = Instant::now();
            let status = client
                .ask()
                .map_err(|error| format!("{address}: {error}"))?;
            let took = began.elapsed();
            if status != 200 {
                return Err(format!("{address} answers {status}"));
            }
            if number >= WARM_UP {
                times.push(took);
            }
        }
    }
    let [direct, through] = sides.map(|(_, mut times)| {
        times.sort_unstable();
        [50, 90, 99].map(|percent| times[(times.len() - 1) * percent / 100])
    });
    println!("{requests} requests on each side   p50        p90        p99");
    println!(
        "directly                        {:<10.1?} {:<10.1?} {:.1?}",
        direct[0], direct[1], direct[2]
    );
    println!(
        "through the router              {:<10.1?} {:<10.1?} {:.1?}",
        through[0], through[1], through[2]
    );
    let added = through[0].saturating_sub(direct[0]);
    println!("added at p50                    {added:.1?}");
    Ok(())
}

struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    got: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, DEADLINE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        let request = format!(
            "POST /v1/systemone HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
            BODY.len()
        );
        Ok(Self {
            stream,
            request: request.into_bytes(),
            got: Vec::new(),
        })
    }

    /// One request to the end of its answer; the status.
    fn ask(&mut self) -> io::Result<u16> {
        self.stream.write_all(&self.request)?;
        self.got.clear();
        let mut chunk = [0; 16 << 10];
        loop {
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.got.extend_from_slice(&chunk[..count]),
            }
            if let Some((status, whole)) = answer(&self.got)
                && self.got.len() >= whole
            {
                return Ok(status);
            }
        }
    }
}

/// Status and length of a whole answer, once its head is there. An answer without a length has none.
fn answer(got: &[u8]) -> Option<(u16, usize)> {
    let head = got.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&got[..head]).ok()?;
    let status = text.split(' ').nth(1)?.parse().ok()?;
    let length = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Some(0), |(_, value)| value.trim().parse().ok())?;
    Some((status, head + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_length_is_there() {
        for (got, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-len", None),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
                Some((200, 43)),
            ),
            ("HTTP/1.1 503 x\r\n\r\n", Some((503, 18))),
            ("nonsense\r\n\r\n", None),
        ] {
            assert_eq!(answer(got.as_bytes()), expected, "{got:?}");
        }
    }
}
