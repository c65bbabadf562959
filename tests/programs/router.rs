//! A router that runs, with what it logged.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value;

use super::{Answer, Home, Http, Running, until};

/// A router of the workspace.
pub(crate) struct Router {
    child: Running,
    address: SocketAddr,
    log: PathBuf,
}

impl Router {
    /// Starts `relayd router` and waits until it listens.
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::run(&mut home.relayd(arguments), &home.path().join("relayd.log"))
    }

    /// Starts `relayd local` and waits until it listens.
    pub(crate) fn local(home: &Home, arguments: &[&str]) -> Self {
        Self::run(&mut home.local(arguments), &home.path().join("relayd.log"))
    }

    /// Starts a command that is a router, its log behind what is in the file, and waits until it listens.
    pub(crate) fn run(command: &mut Command, log: &Path) -> Self {
        let mut options = std::fs::OpenOptions::new();
        let file = options.create(true).append(true).open(log).unwrap();
        let begin = usize::try_from(file.metadata().unwrap().len()).unwrap();
        let mut child = Running::spawn(command.stdout(Stdio::null()).stderr(file));
        let address = until("a router listens", || {
            let text = std::fs::read_to_string(log).unwrap();
            let text = &text[begin..];
            if let Some(status) = child.0.try_wait().unwrap() {
                panic!("relayd did not start, {status}: {text}");
            }
            let events = text.lines().map(serde_json::from_str::<Value>);
            let mut events = events.filter_map(Result::ok);
            let listening = events.find(|event| event["message"] == "router is listening");
            let event = listening.ok_or_else(|| text.to_owned())?;
            Ok(event["address"].as_str().unwrap().parse().unwrap())
        });
        Self {
            child,
            address,
            log: log.to_owned(),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks it to end, as a service manager would.
    pub(crate) fn terminate(&self) {
        self.child.terminate();
    }

    /// Kills it, as the kernel would.
    pub(crate) fn kill(&mut self) {
        self.child.kill();
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.child.ended()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Everything that was logged into its file.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Asks a path, which must answer.
    pub(crate) fn get(&self, path: &str) -> Answer {
        let http = Http::new(super::PATIENCE);
        http.get(&format!("{}{path}", self.url())).unwrap()
    }

    /// Sends JSON to a path, which must answer.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let http = Http::new(super::PATIENCE);
        http.post(&format!("{}{path}", self.url()), body).unwrap()
    }

    /// Waits until `/ready` says so.
    pub(crate) fn until_ready(&self) {
        until("the router is ready", || match self.get("/ready") {
            Answer { status: 200, .. } => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }

    /// A metric without labels or with exactly these, as `/metrics` writes it; 0 where it is not there.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let answer = self.get("/metrics");
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = answer.text();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            let last = &lines[lines.len().saturating_sub(15)..];
            let mut err = std::io::stderr();
            let _ = writeln!(err, "log of {}:\n{}", self.address, last.join("\n"));
        }
    }
}
