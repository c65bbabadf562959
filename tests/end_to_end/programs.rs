//! The programs under test, built once, each run with a home of its own and ended by its handle, on panic too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longest wait for anything a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An address where nothing listens: refused at once, and no program of ours ever takes it.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:9";

/// Path of a program of the workspace. The first call builds both; what is built already costs a second.
fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let run = |arguments: &[&str]| {
                let output = Command::new(&cargo)
                    .args(arguments)
                    .current_dir(workspace())
                    .output()
                    .unwrap();
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "cargo {arguments:?}: {told}");
                output.stdout
            };
            run(&["build", "-p", "relay", "-p", "relayd", "--locked"]);
            let metadata = run(&["metadata", "--no-deps", "--format-version", "1", "--locked"]);
            let metadata: Value = serde_json::from_slice(&metadata).unwrap();
            let target = metadata["target_directory"].as_str().unwrap();
            Path::new(target).join("debug")
        })
        .join(name)
}

/// Top folder of the repository.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A user's home: everything a program reads or writes of its own is below it, and it is gone with the test.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file below the home and gives its path.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes `laya.*` of the user's settings.
    pub(crate) fn settings(&self, laya: &Value) {
        let settings = json!({ "laya": laya }).to_string();
        self.file("agent/settings.json", settings);
    }

    /// `relay` with a router's base URL and nothing of this machine's environment.
    pub(crate) fn relay(&self, router: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("relay"));
        command
            .env_clear()
            .env("RELAY_HOME", self.path())
            .env("LAYA_BASE_URL", router)
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// `relayd router` on free ports of loopback.
    pub(crate) fn relayd(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("relayd"));
        command
            .env_clear()
            .env("RELAY_HOME", self.path())
            .args(["router", "--listen", "127.0.0.1:0"])
            .args(["--admin-listen", "127.0.0.1:0", "--log-format", "json"])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }
}

/// A child that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| {
            panic!("cannot start {}: {error}", command.get_program().display())
        }))
    }

    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits for the end of the process.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "runs after {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

impl Ended {
    /// One JSON document per line.
    pub(crate) fn records(&self) -> Vec<Value> {
        let line = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{self:?}"))
        };
        self.out.lines().map(line).collect()
    }

    /// The only JSON document.
    pub(crate) fn record(&self) -> Value {
        let mut records = self.records();
        assert_eq!(records.len(), 1, "{self:?}");
        records.remove(0)
    }
}

/// Runs a command to its end and reads both its streams meanwhile.
pub(crate) fn run(command: &mut Command) -> Ended {
    let start = Instant::now();
    let mut child = Running::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let out = read(child.0.stdout.take().unwrap());
    let err = read(child.0.stderr.take().unwrap());
    let status = child.ended();
    Ended {
        // A signal has no code; no test expects one.
        code: status.code().unwrap_or(-1),
        took: start.elapsed(),
        out: out.join().unwrap(),
        err: err.join().unwrap(),
    }
}

/// Reads a stream to its end beside the test.
pub(crate) fn read(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    })
}

/// A router of the workspace.
pub(crate) struct Router {
    child: Running,
    address: SocketAddr,
}

impl Router {
    /// Starts it and waits until it listens.
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.relayd(arguments);
        let mut child = Running::spawn(command.stdout(Stdio::null()).stderr(Stdio::piped()));
        let stderr = BufReader::new(child.0.stderr.take().unwrap());
        let (said, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // Nobody listens after the start; the pipe must be read all the same.
                let _ = said.send(line);
            }
        });
        let deadline = Instant::now() + PATIENCE;
        let mut log = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = lines
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("relayd did not start: {log:#?}"));
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            if event["message"] == "router is listening" {
                let address = event["address"].as_str().unwrap().parse().unwrap();
                return Self { child, address };
            }
            log.push(line);
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks it to end, as a service manager would.
    pub(crate) fn terminate(&self) {
        self.child.terminate();
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.child.ended()
    }

    /// A metric without labels or with exactly these, as `/metrics` writes it; 0 where it is not there.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let mut stream = std::net::TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }
}
