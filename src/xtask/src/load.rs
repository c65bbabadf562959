//! A load generator for `POST /v1/route`: requests leave at a constant rate whether or not answers come back (open
//! loop), and a request's latency counts from the moment it should have left, so that a server which stalls cannot hide
//! the requests it kept waiting (no coordinated omission).

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Uri, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

/// What people ask, short and long, taken in turn.
const REQUESTS: &[&str] = &[
    "Fix the login token expiry",
    "what does the function parse_header do?",
    "Rename `maxRetries` to `max_attempts` in src/client/retry.ts",
    "Design how we split the billing service into payments and invoicing, with the migration of the existing data",
    "escreva testes para o carrinho de compras, incluindo descontos e frete",
    "The nightly import hangs about once a week and nobody knows why; find the cause, fix it and add a test that would \
     have caught it. Logs are in ops/import, the last change to the scheduler was two weeks ago.",
];

/// Longest wait for one answer or one connection.
const DEADLINE: Duration = Duration::from_secs(5);

/// What a run showed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    /// Requests that should have left.
    pub(crate) requests: usize,
    /// Requests without a 200: refused, failed, late beyond 5 s.
    pub(crate) errors: usize,
    /// How many answers had each status; 0 is no answer.
    pub(crate) statuses: BTreeMap<u16, usize>,
    /// Latency of the middle request.
    pub(crate) p50: Duration,
    /// Latency that 99 of 100 stay within.
    pub(crate) p99: Duration,
    /// Latency that 999 of 1000 stay within.
    pub(crate) p999: Duration,
    /// The worst.
    pub(crate) max: Duration,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.requests as f64 / self.elapsed.as_secs_f64();
        writeln!(
            f,
            "requests  {} in {:.1} s ({rate:.0}/s)",
            self.requests,
            self.elapsed.as_secs_f64()
        )?;
        writeln!(f, "errors    {} {:?}", self.errors, self.statuses)?;
        let Self {
            p50,
            p99,
            p999,
            max,
            ..
        } = self;
        write!(
            f,
            "latency   p50 {p50:.1?}  p99 {p99:.1?}  p99.9 {p999:.1?}  max {max:.1?}"
        )
    }
}

/// The load could not be put on the server at all.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The address is no `http://host:port/path`.
    Address(String),
    /// The runtime could not be started, or nothing listens.
    Io(io::Error),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(text) => write!(
                f,
                "`{text}` is no address like http://127.0.0.1:8737/v1/route"
            ),
            Self::Io(error) => write!(f, "cannot reach the server: {error}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Runs and prints the report.
///
/// # Errors
/// When the load cannot be put on the server, or a request was not answered with 200.
pub(crate) fn print(
    url: &str,
    body: Option<&Path>,
    rate: u32,
    seconds: u32,
    connections: usize,
) -> Result<(), String> {
    let mut target = Target::parse(url).map_err(|error| error.to_string())?;
    if let Some(file) = body {
        let read = std::fs::read(file);
        let read = read.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        target.body = Some(Bytes::from(read));
    }
    let report = run(&target, rate, seconds, connections).map_err(|error| error.to_string())?;
    println!("{report}");
    match report.errors {
        0 => Ok(()),
        errors => Err(format!("{errors} of {} requests failed", report.requests)),
    }
}

/// One request: when it should have left, and its number.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: Instant,
    number: usize,
}

#[derive(Debug, Clone, Copy)]
struct Answer {
    /// 0 is no answer.
    status: u16,
    latency: Duration,
}

impl Answer {
    /// Whether its client went without (control-plane 19): there is one address here, so nothing is tried again.
    fn is_lost(self) -> bool {
        self.status != 200 || self.latency > DEADLINE
    }
}

#[derive(Debug, Clone)]
struct Target {
    uri: Uri,
    authority: String,
    /// What is sent each time; without, a decision about one of [`REQUESTS`] is asked for.
    body: Option<Bytes>,
}

impl Target {
    fn parse(url: &str) -> Result<Self, LoadError> {
        let bad = || LoadError::Address(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let authority = uri.authority().map(ToString::to_string).ok_or_else(bad)?;
        let usable = uri.scheme_str() == Some("http") && uri.port_u16().is_some();
        if usable {
            Ok(Self {
                uri,
                authority,
                body: None,
            })
        } else {
            Err(bad())
        }
    }

    fn request(&self, number: usize) -> Request<Full<Bytes>> {
        let body = self.body.clone().unwrap_or_else(|| {
            let text = REQUESTS[number % REQUESTS.len()];
            Bytes::from(serde_json::json!({ "request": text }).to_string())
        });
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = hyper::Method::POST;
        *request.uri_mut() = self
            .uri
            .path_and_query()
            .map_or_else(Uri::default, |path| Uri::from(path.clone()));
        let headers = request.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static("application/json"),
        );
        if let Ok(host) = header::HeaderValue::from_str(&self.authority) {
            headers.insert(header::HOST, host);
        }
        request
    }
}

/// Sends `rate` requests a second for `seconds` seconds over `connections` kept connections. One warm-up request goes
/// over each connection first and is not counted.
///
/// # Errors
/// When the server cannot be reached for the warm-up.
fn run(target: &Target, rate: u32, seconds: u32, connections: usize) -> Result<Report, LoadError> {
    let total = rate as usize * seconds as usize;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (due, queue) = mpsc::unbounded_channel();
    let queue = Arc::new(Mutex::new(queue));
    let answers = runtime.block_on(async {
        let mut workers = Vec::new();
        for _ in 0..connections.max(1) {
            let mut connection = Connection::warm(target).await?;
            let queue = queue.clone();
            workers.push(tokio::spawn(async move { connection.work(&queue).await }));
        }
        let start = Instant::now() + Duration::from_millis(50);
        let pacer = std::thread::spawn(move || pace(&due, start, rate, total));
        let mut answers = Vec::with_capacity(total);
        for worker in workers {
            answers.extend(worker.await.map_err(io::Error::other)?);
        }
        // The workers end when the pacer has, so this does not wait.
        drop(pacer.join());
        Ok::<_, LoadError>((answers, start.elapsed()))
    })?;
    Ok(report(&answers.0, answers.1))
}

/// Says when each request is due. A thread of its own, since the asynchronous timer only knows whole milliseconds.
fn pace(due: &mpsc::UnboundedSender<Due>, start: Instant, rate: u32, total: usize) {
    for number in 0..total {
        let at = start + Duration::from_secs_f64(number as f64 / f64::from(rate));
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        if due.send(Due { at, number }).is_err() {
            return;
        }
    }
}

struct Connection {
    target: Target,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    async fn warm(target: &Target) -> Result<Self, LoadError> {
        let mut connection = Self {
            target: target.clone(),
            sender: None,
        };
        let status = connection.ask(0).await?;
        if status == 200 {
            Ok(connection)
        } else {
            Err(LoadError::Io(io::Error::other(format!(
                "it answers {status}"
            ))))
        }
    }

    /// Takes what is due until nothing is any more.
    async fn work(&mut self, queue: &Mutex<mpsc::UnboundedReceiver<Due>>) -> Vec<Answer> {
        let mut answers = Vec::new();
        loop {
            let next = queue.lock().await.recv().await;
            let Some(Due { at, number }) = next else {
                return answers;
            };
            let status = match timeout(DEADLINE, self.ask(number)).await {
                Ok(Ok(status)) => status,
                Ok(Err(_)) | Err(_) => {
                    self.sender = None;
                    0
                }
            };
            answers.push(Answer {
                status,
                latency: at.elapsed(),
            });
        }
    }

    /// One request to the end of its answer.
    async fn ask(&mut self, number: usize) -> io::Result<u16> {
        let request = self.target.request(number);
        let sender = self.connected().await?;
        let response = sender
            .send_request(request)
            .await
            .map_err(io::Error::other)?;
        let status = response.status().as_u16();
        response
            .into_body()
            .collect()
            .await
            .map_err(io::Error::other)?;
        Ok(status)
    }

    async fn connected(&mut self) -> io::Result<&mut SendRequest<Full<Bytes>>> {
        let open = match self.sender.take().filter(|sender| !sender.is_closed()) {
            Some(open) => open,
            None => {
                let stream =
                    timeout(DEADLINE, TcpStream::connect(&self.target.authority)).await??;
                stream.set_nodelay(true)?;
                let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
                    .await
                    .map_err(io::Error::other)?;
                tokio::spawn(connection);
                sender.ready().await.map_err(io::Error::other)?;
                sender
            }
        };
        Ok(self.sender.insert(open))
    }
}

fn report(answers: &[Answer], elapsed: Duration) -> Report {
    let mut statuses = BTreeMap::new();
    for answer in answers {
        *statuses.entry(answer.status).or_insert(0) += 1;
    }
    let mut latencies: Vec<_> = answers.iter().map(|answer| answer.latency).collect();
    latencies.sort_unstable();
    let at = |share: f64| percentile(&latencies, share);
    Report {
        requests: answers.len(),
        errors: answers.iter().filter(|answer| answer.is_lost()).count(),
        statuses,
        p50: at(0.50),
        p99: at(0.99),
        p999: at(0.999),
        max: at(1.0),
        elapsed,
    }
}

/// Nearest rank: the smallest value that at least `share` of all do not exceed; zero of none.
fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let sorted: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        for (share, millis) in [(0.5, 50), (0.99, 99), (0.999, 100), (1.0, 100)] {
            assert_eq!(
                percentile(&sorted, share),
                Duration::from_millis(millis),
                "{share}"
            );
        }
        assert_eq!(percentile(&[], 0.99), Duration::ZERO);
    }

    #[test]
    fn refuses_what_is_no_address() {
        for url in [
            "",
            "127.0.0.1:8737",
            "https://127.0.0.1:1/",
            "http://host/v1/route",
            "http://",
        ] {
            assert!(Target::parse(url).is_err(), "{url}");
        }
    }

    /// Answers every request; the 20th is kept waiting.
    fn stalling_server(stall: Duration) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/route", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut stream = stream;
            for number in 0.. {
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap() == 0 {
                        return;
                    }
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if line == "\r\n" {
                        break;
                    }
                }
                reader.read_exact(&mut vec![0; length]).unwrap();
                if number == 20 {
                    std::thread::sleep(stall);
                }
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                    .unwrap();
            }
        });
        url
    }

    #[test]
    fn a_stall_is_seen_by_every_request_it_kept_waiting() {
        let stall = Duration::from_millis(500);
        let target = Target::parse(&stalling_server(stall)).unwrap();
        let report = run(&target, 100, 1, 1).unwrap();
        assert_eq!((report.requests, report.errors), (100, 0), "{report}");
        // 100/s and half a second: about 50 requests waited. A closed loop would have seen one, beyond its p99.
        assert!(report.max >= stall && report.p99 >= stall / 2, "{report}");
    }
}
