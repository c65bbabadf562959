//! Starts `relayd router` on free ports and speaks HTTP to it byte by byte.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest wait for anything a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A command with nothing of this machine's environment that could matter.
pub(crate) fn relayd(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relayd"));
    let ours = |name: &str| name.starts_with("RELAY") || name.starts_with("OTEL_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command
        .env("RELAY_HOME", home())
        .args(arguments)
        .stdin(Stdio::null());
    command
}

/// A home of its own for one command. They stay below the build folder, where nobody minds them.
fn home() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("home-{}-{number}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Runs a command to its end: exit code, standard output, standard error.
pub(crate) fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A running router; killed when dropped.
pub(crate) struct Router {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
}

impl Router {
    /// On loopback, with free ports.
    pub(crate) fn start(more: &[&str]) -> Self {
        let mut arguments = vec![
            "router",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ];
        arguments.extend(more);
        arguments.extend(["--log-format", "json"]);
        Self::spawn(&mut relayd(&arguments))
    }

    /// Waits until it listens. Its log must be JSON.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (said, lines) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let kept = log.clone();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                kept.lock().unwrap().push(line.clone());
                let _ = said.send(line);
            }
        });
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = lines.recv_timeout(left) else {
                let _ = child.kill();
                let _ = child.wait();
                panic!("relayd did not start: {:?}", log.lock().unwrap());
            };
            let Ok(event) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if event["message"] == "router is listening" {
                let address = |name: &str| event[name].as_str().unwrap().parse().unwrap();
                let (address, admin) = (address("address"), address("admin_address"));
                return Self {
                    child,
                    address,
                    admin,
                    log,
                };
            }
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        ask(
            self.address,
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes(),
        )
    }

    pub(crate) fn admin(&self, path: &str) -> Answer {
        ask(
            self.admin,
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes(),
        )
    }

    pub(crate) fn route(&self, body: impl AsRef<[u8]>) -> Answer {
        ask(
            self.address,
            &post("/v1/route", "application/json", body.as_ref()),
        )
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait_for("the process to end", || self.child.try_wait().unwrap())
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again until there is an answer.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that it is a problem as documented, and gives its slug.
    pub(crate) fn slug(&self) -> String {
        assert_eq!(
            self.headers["content-type"], "application/problem+json",
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{self:?}");
        assert_eq!(
            problem["request_id"], self.headers["x-request-id"],
            "{self:?}"
        );
        for field in ["title", "detail"] {
            assert!(
                problem[field].as_str().is_some_and(|text| !text.is_empty()),
                "{field}: {self:?}"
            );
        }
        let kind = problem["type"].as_str().unwrap();
        kind.strip_prefix("https://relay.dev/problems/")
            .unwrap_or(kind)
            .to_owned()
    }

    /// Path of the first refused field.
    pub(crate) fn path(&self) -> String {
        self.json()["errors"][0]["path"]
            .as_str()
            .unwrap_or("(none)")
            .to_owned()
    }
}

/// A POST with a body of known length.
pub(crate) fn post(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let mut request = head(path, kind, &format!("content-length: {}", body.len())).into_bytes();
    request.extend_from_slice(body);
    request
}

/// The head of a POST with one more header.
pub(crate) fn head(path: &str, kind: &str, header: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n{header}\r\n\r\n")
}

/// Sends bytes over a new connection and reads one answer.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = connect(address);
    stream.write_all(request).unwrap();
    answer(&mut stream)
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads one answer with a content length.
pub(crate) fn answer(stream: &mut TcpStream) -> Answer {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line
        .split(' ')
        .nth(1)
        .unwrap_or_else(|| panic!("no answer: {line:?}"))
        .parse()
        .unwrap();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Answer {
        status,
        headers,
        body: String::from_utf8(body).unwrap(),
    }
}
