//! What tests of the program share: a server process and a client that sees every byte.

#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// Everything a test waits for comes within this time, or the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The registry under which the exchanges were recorded.
pub(crate) const TINY_MODELS: &str = r#"{"english":"tiny-laya","multilingual":["tiny-laya","multilingual"],"typed-decisions":"tiny-laya"}"#;

/// The folder that holds `tiny-laya`.
pub(crate) fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

/// `laya` with an environment of its own.
pub(crate) fn laya(environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laya"));
    command
        .env_clear()
        .env("LAYA_DEVICE", "cpu")
        .envs(environment.iter().copied())
        .current_dir(golden())
        .stdin(Stdio::null());
    command
}

/// A `laya serve` that is stopped with the test.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) lines: Mutex<mpsc::Receiver<String>>,
}

impl Server {
    /// Starts on any free port and waits until it is ready.
    pub(crate) fn start(environment: &[(&str, &str)], flags: &[&str]) -> Self {
        let server = Self::start_unready(environment, flags);
        server.until_ready();
        server
    }

    /// The tiny registry of the recorded exchanges.
    pub(crate) fn tiny(environment: &[(&str, &str)]) -> Self {
        let mut all = vec![("LAYA_EXTRA_MODELS", TINY_MODELS)];
        all.extend_from_slice(environment);
        Self::start(&all, &[])
    }

    /// Starts on any free port and waits until it listens.
    pub(crate) fn start_unready(environment: &[(&str, &str)], flags: &[&str]) -> Self {
        let mut child = laya(environment)
            .arg("serve")
            .args(["--port", "0"])
            .args(flags)
            .stderr(Stdio::piped())
            .spawn()
            .expect("laya starts");
        let lines = follow(child.stderr.take().expect("piped"));
        let mut seen = Vec::new();
        let begun = Instant::now();
        let address = loop {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let line = lines
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("it does not listen: {seen:?}"));
            if let Some(address) = line.split("listening on http://").nth(1) {
                break address.trim().parse().expect("an address");
            }
            seen.push(line);
        };
        let lines = Mutex::new(lines);
        Self {
            child,
            address,
            lines,
        }
    }

    /// Waits until `/ready` says so.
    pub(crate) fn until_ready(&self) {
        self.until("/ready is true", || self.get("/ready").status == 200);
    }

    /// Waits for a condition.
    pub(crate) fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let begun = Instant::now();
        while !condition() {
            assert!(
                begun.elapsed() < PATIENCE,
                "not within {PATIENCE:?}: {what}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], b"")
    }

    pub(crate) fn ask(&self, body: &str) -> Reply {
        self.send("POST", "/v1/systemone", &[], body.as_bytes())
    }

    /// One request on a connection of its own.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let mut client = Client::connect(self.address);
        client.request(method, path, headers, body);
        client.reply(method)
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for the end and gives the exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                return status.code();
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Value of a metric without labels, or with exactly these.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let line = text.lines().find(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(' '))
        });
        let value = line.and_then(|line| line.rsplit(' ').next());
        value.and_then(|value| value.parse().ok()).unwrap_or(0.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn follow(stderr: ChildStderr) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if std::env::var_os("LAYA_TEST_LOG").is_some() {
                eprintln!("server: {line}");
            }
            let _ = sender.send(line);
        }
    });
    lines
}

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connects");
        stream.set_nodelay(true).expect("sets");
        stream.set_read_timeout(Some(PATIENCE)).expect("sets");
        Self { stream }
    }

    /// Writes a request. A `content-length` among the headers replaces the true one.
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        let has = |name: &str| {
            headers
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        if !has("host") {
            head.push_str(&format!(
                "host: {}\r\n",
                self.stream.peer_addr().expect("connected")
            ));
        }
        if !has("content-length")
            && !has("transfer-encoding")
            && (method == "POST" || !body.is_empty())
        {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.write(head.as_bytes());
        self.write(body);
    }

    /// Writes bytes. A server that has answered already may have closed its side.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Reads one reply.
    pub(crate) fn reply(&mut self, method: &str) -> Reply {
        self.try_reply(method).expect("a reply")
    }

    /// Reads one reply, or none if the server closes or stays silent.
    pub(crate) fn try_reply(&mut self, method: &str) -> Option<Reply> {
        let mut bytes = Vec::new();
        let mut byte = [0];
        while !bytes.ends_with(b"\r\n\r\n") {
            if self.stream.read(&mut byte).ok()? == 0 {
                return None;
            }
            bytes.push(byte[0]);
        }
        let head = String::from_utf8(bytes).expect("a head in UTF-8");
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut reply = Reply {
            status,
            headers,
            body: Vec::new(),
        };
        if status == 100 {
            return self.try_reply(method);
        }
        let length: usize = reply.header("content-length")?.parse().ok()?;
        if method != "HEAD" {
            reply.body = vec![0; length];
            self.stream.read_exact(&mut reply.body).ok()?;
        }
        Some(reply)
    }
}

/// A reply.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// A header, by its name in lower case as it must be written.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("a body in UTF-8")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }
}
