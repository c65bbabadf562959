//! `laya serve` as a child: started on a free port, ready, and stopped with this value.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::{Client, get};
use crate::bench_laya::child::status_kib;

/// Longest wait for a server to be ready.
const DEADLINE: Duration = Duration::from_secs(120);
/// Between two looks at `/ready`.
const PAUSE: Duration = Duration::from_micros(500);

/// A server that is ready.
pub(super) struct Server {
    child: Child,
    address: SocketAddr,
    ready_ms: f64,
}

impl Server {
    pub(super) fn start(dir: &Path, threads: usize, log: &Path) -> Result<Self, String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("cannot find this program: {error}"))?
            .with_file_name("laya");
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|free| free.local_addr())
            .map_err(|error| format!("no port is free: {error}"))?
            .port();
        let file = File::create(log)
            .map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let mut command = Command::new(&program);
        command.arg("serve").arg("--model").arg(dir);
        command.args(["--port", &port.to_string()]);
        command.args(["--threads", &threads.to_string()]);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LAYA_") {
                command.env_remove(name);
            }
        }
        let begun = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut server = Self {
            child,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            ready_ms: 0.0,
        };
        server.wait(begun, log)?;
        server.ready_ms = begun.elapsed().as_secs_f64() * 1e3;
        Ok(server)
    }

    fn wait(&mut self, begun: Instant, log: &Path) -> Result<(), String> {
        let look = get("/ready");
        loop {
            let status = Client::try_connect(self.address).and_then(|mut c| c.ask(&look));
            if matches!(status, Ok(200)) {
                return Ok(());
            }
            let ended = self.child.try_wait().ok().flatten();
            if let Some(ended) = ended {
                return Err(format!(
                    "laya serve ended with {ended}, see {}",
                    log.display()
                ));
            }
            if begun.elapsed() > DEADLINE {
                return Err(format!(
                    "laya serve was not ready within {DEADLINE:?}, see {}",
                    log.display()
                ));
            }
            std::thread::sleep(PAUSE);
        }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From starting the program to the first 200 of `/ready`, milliseconds.
    pub(super) const fn ready_ms(&self) -> f64 {
        self.ready_ms
    }

    /// Memory now and the most it ever was, KiB.
    pub(super) fn memory_kib(&self) -> (u64, u64) {
        let process = self.child.id().to_string();
        (
            status_kib(&process, "VmRSS:"),
            status_kib(&process, "VmHWM:"),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
