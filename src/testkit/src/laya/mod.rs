//! A Laya server on a loopback port that answers every question with its first option (by name), or as a model would, and
//! fails as it is told.

mod answers;
mod connection;
mod plausible;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use decision::relay_contract;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// What goes wrong with decisions.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Each answer takes this long.
    Latency(Duration),
    /// The request is read, and nothing ever comes.
    HangBeforeHead,
    /// The head and half of the body come, and no more.
    HangInBody,
    /// The body comes byte by byte, with this pause.
    Trickle(Duration),
    /// A body of this many bytes, with a head that says so.
    HugeBody(usize),
    /// The same in chunks, so that nobody knows its length before.
    HugeChunkedBody(usize),
    /// Half of the JSON, with a head that fits.
    MalformedJson,
    /// One probability is `NaN`.
    NotANumber,
    /// The answer to this question is not there.
    MissingId(String),
    /// A choice that is none of the options; of [`Answers::Plausible`] the least likely option.
    UnknownChoice,
    /// A choice is answered like a score.
    WrongKind,
    /// This status, with `Retry-After` in seconds where there is one.
    Status(u16, Option<u32>),
    /// It drains: 503 as Laya says it, for what is new.
    Draining,
    /// The same, said so long after it was asked.
    DrainingAfter(Duration),
    /// Choices are answered with their last option instead of their first: valid, and other labels.
    LastOption,
    /// The connection is reset once the request was read.
    Reset,
    /// A connection is closed as soon as it is accepted, one that is open at its next request.
    AcceptThenClose,
    /// `503` with a head that never ends.
    EndlessHead,
    /// Every state gets the same answers, as from a head that does not look.
    DeadHead,
}

/// How questions are answered where nothing goes wrong.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Answers {
    /// Every one with its first option, always with the same probability: a dead head.
    #[default]
    First,
    /// With whole distributions that depend on state and question, the same each time. States of these probes
    /// (`relay-manifest.json`: `state`, `answers` by id with `label` and `probability`) are answered as recorded.
    Plausible(Vec<serde_json::Value>),
}

impl Answers {
    /// As a model's, with nothing recorded.
    #[must_use]
    pub const fn lively() -> Self {
        Self::Plausible(Vec::new())
    }
}

/// What the server says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Says {
    /// Status and body of `/health`.
    pub health: (u16, String),
    /// Status and body of `/ready`.
    pub ready: (u16, String),
    /// The contract that `x-laya-contract` is compared with, and that answers name.
    pub contract: Option<String>,
    /// The checkpoint that answers name.
    pub checkpoint: Option<String>,
    /// The token it demands on decision routes.
    pub key: Option<String>,
    /// How it answers.
    pub answers: Answers,
}

impl Says {
    /// A server of ours with a checkpoint for Relay's questions.
    #[must_use]
    pub fn relay() -> Self {
        let contract = relay_contract();
        Self::contract(
            &contract.digest().to_string(),
            &contract.shape_digest().to_string(),
        )
    }

    /// A server of ours with a checkpoint for this contract.
    #[must_use]
    pub fn contract(digest: &str, shape: &str) -> Self {
        const CHECKPOINT: &str =
            "sha256:1111111111111111111111111111111111111111111111111111111111111111";
        let health = json!({
            "status": "ok", "loaded": ["model"], "revisions": {"model": null}, "device": "cpu",
            "device_is_preference": false, "checkpoint_devices": {"model": "cpu"}, "cpu_fallbacks": {},
            "ok": true, "decisions": [], "contract": digest, "shape": shape,
            "checkpoints": {"model": {
                "digest": CHECKPOINT, "contract": digest, "verified": true,
                "device": {"kind": "cpu", "name": null, "index": null}, "precision": "f32", "parity": "none",
            }},
        });
        Self {
            health: (200, health.to_string()),
            ready: (200, r#"{"ready":true}"#.to_owned()),
            contract: Some(digest.to_owned()),
            checkpoint: Some(CHECKPOINT.to_owned()),
            key: None,
            answers: Answers::First,
        }
    }

    /// laya 0.4.15, which knows no contracts and no `/ready`.
    #[must_use]
    pub fn original() -> Self {
        let health = json!({
            "status": "ok", "loaded": ["english"], "revisions": {"english": null}, "device": "cpu",
            "device_is_preference": false, "checkpoint_devices": {"english": "cpu"}, "cpu_fallbacks": {},
        });
        Self {
            health: (200, health.to_string()),
            ready: (404, r#"{"detail":"Not Found"}"#.to_owned()),
            contract: None,
            checkpoint: None,
            key: None,
            answers: Answers::First,
        }
    }

    /// The same with another checkpoint, whose answers are as a model's.
    #[must_use]
    pub fn serving(mut self, checkpoint: &str) -> Self {
        if let Some(before) = self.checkpoint.replace(checkpoint.to_owned()) {
            self.health.1 = self.health.1.replace(&before, checkpoint);
        }
        self.answers = Answers::lively();
        self
    }

    /// The same on another device.
    #[must_use]
    pub fn on(mut self, device: &str) -> Self {
        self.health.1 = self.health.1.replace(r#""cpu""#, &format!(r#""{device}""#));
        self
    }

    /// The same, but not ready for this reason.
    #[must_use]
    pub fn not_ready(mut self, reason: &str) -> Self {
        let body = json!({"ready": false, "reason": reason, "message": "told so by a test"});
        self.ready = (503, body.to_string());
        self
    }

    /// The same, but not ready since its own probe found this.
    #[must_use]
    pub fn probe_failed(mut self, finding: &str) -> Self {
        let body = json!({
            "ready": false, "reason": "ProbeFailed", "message": "told so by a test", "finding": finding,
        });
        self.ready = (503, body.to_string());
        self
    }
}

/// A request that came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Method and target.
    pub line: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Seen {
    /// What was asked for: path and query.
    #[must_use]
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// A header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[derive(Debug)]
struct Behaviour {
    says: Says,
    fault: Fault,
    last: Option<Seen>,
}

#[derive(Debug)]
struct Shared {
    behaviour: Mutex<Behaviour>,
    calls: AtomicUsize,
    in_flight: AtomicUsize,
    peak: AtomicUsize,
    connections: AtomicUsize,
    draining: AtomicBool,
    drains: AtomicUsize,
}

impl Shared {
    fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.behaviour
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A Laya server that fails as it is told. Stops when it is dropped.
#[derive(Debug)]
pub struct FakeLaya {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl FakeLaya {
    /// Starts on a free port. Needs a tokio runtime.
    ///
    /// # Panics
    /// When the system gives no port.
    pub async fn start(says: Says) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), says).await
    }

    /// Starts on this port, for example that of one which was stopped.
    ///
    /// # Panics
    /// When the port is taken.
    pub async fn start_at(address: SocketAddr, says: Says) -> Self {
        let listener = TcpListener::bind(address)
            .await
            .unwrap_or_else(|error| panic!("cannot listen on {address}: {error}"));
        Self::on(listener, says)
    }

    /// Starts on a free port without waiting: where an engine in memory makes a replica. Needs a tokio runtime.
    ///
    /// # Panics
    /// When the system gives no port.
    #[must_use]
    pub fn start_now(says: Says) -> Self {
        let bound = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        });
        let listener = bound.unwrap_or_else(|error| panic!("cannot listen: {error}"));
        Self::on(listener, says)
    }

    fn on(listener: TcpListener, says: Says) -> Self {
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("cannot read the port: {error}"));
        let shared = Arc::new(Shared {
            behaviour: Mutex::new(Behaviour {
                says,
                fault: Fault::None,
                last: None,
            }),
            calls: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            drains: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Self {
            address,
            shared,
            accepting,
        }
    }

    /// Stops it; its port is free then, and its connections are closed.
    pub async fn stop(mut self) {
        self.accepting.abort();
        // It ends by being aborted.
        let _ = (&mut self.accepting).await;
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its base address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on decisions fail like this.
    pub fn fail(&self, fault: Fault) {
        self.shared.behaviour().fault = fault;
    }

    /// From now on it says this of itself.
    pub fn say(&self, says: Says) {
        self.shared.behaviour().says = says;
    }

    /// Decision requests that came whole, or were turned away by [`Fault::AcceptThenClose`].
    #[must_use]
    pub fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// Decision requests whose callers wait.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight.load(Ordering::SeqCst)
    }

    /// The most of them at once so far.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.shared.peak.load(Ordering::SeqCst)
    }

    /// Connections that are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Whether it was told to drain, by `POST /drain` or [`Self::drain`], and not back.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::SeqCst)
    }

    /// How often it was told to drain by `POST /drain`.
    #[must_use]
    pub fn drains(&self) -> usize {
        self.shared.drains.load(Ordering::SeqCst)
    }

    /// From now on it takes no more decisions and is not ready.
    pub fn drain(&self) {
        self.shared.draining.store(true, Ordering::SeqCst);
    }

    /// The last decision request.
    #[must_use]
    pub fn last(&self) -> Option<Seen> {
        self.shared.behaviour().last.clone()
    }
}

impl Drop for FakeLaya {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Ends with all its connections when it is aborted.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection::serve(stream, shared.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
