//! The frame of a long-running program: it owns the admin port, the signals, the drain and the supervised tasks, and
//! knows when and with which exit code the process ends. First SIGTERM or SIGINT: not ready, drain with a deadline;
//! second: stop now. A task that ends early ends the process with its name.

pub mod admin;
mod file_limit;
mod readiness;
mod shutdown;
mod signals;
mod tasks;

use std::future::Future;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::Instant;

pub use file_limit::raise_file_limit;
pub use readiness::{NotReady, Readiness, ReadinessReport, ReadyHandle};
pub use shutdown::{Phase, Shutdown, ShutdownTrigger};
pub use signals::{Signal, Signals};
pub use tasks::TaskEnd;

use crate::http::accept::{ConnectionLimits, serve};
use crate::telemetry::{ProcessMetrics, RepeatedError};
use tasks::TaskSet;

/// How long open work may take after the first signal. Below the 30 s that Kubernetes waits before it kills.
pub const DRAIN_DEADLINE: Duration = Duration::from_secs(25);

/// What a process is made of before it runs.
#[derive(Debug)]
pub struct RuntimeBuilder {
    metrics: ProcessMetrics,
    signals: Signals,
    admin: Option<TcpListener>,
    drain_deadline: Duration,
    linger: Duration,
}

impl RuntimeBuilder {
    /// A process with these metrics that ends on these signals; without an admin port.
    #[must_use]
    pub const fn new(metrics: ProcessMetrics, signals: Signals) -> Self {
        Self {
            metrics,
            signals,
            admin: None,
            drain_deadline: DRAIN_DEADLINE,
            linger: Duration::ZERO,
        }
    }

    /// Serves `/metrics`, `/livez` and `/readyz` on this listener.
    #[must_use]
    pub fn admin(mut self, listener: TcpListener) -> Self {
        self.admin = Some(listener);
        self
    }

    /// How long open work may take after the first signal ([`DRAIN_DEADLINE`]).
    #[must_use]
    pub const fn drain_deadline(mut self, deadline: Duration) -> Self {
        self.drain_deadline = deadline;
        self
    }

    /// How long to go on accepting, while not ready, before the drain begins (0): time for a load balancer to notice.
    #[must_use]
    pub const fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Starts the admin port. Must be called inside a tokio runtime.
    #[must_use]
    pub fn start(self) -> Runtime {
        let readiness = Readiness::default();
        let (trigger, shutdown) = ShutdownTrigger::new();
        let (admin_trigger, admin_shutdown) = ShutdownTrigger::new();
        let mut admin = TaskSet::new(self.metrics.task_panics.clone());
        if let Some(listener) = self.admin {
            let routes = admin::admin_routes(self.metrics.registry.clone(), readiness.clone());
            let errors = RepeatedError::new(self.metrics.log_suppressed.clone());
            admin.spawn(
                "admin port",
                serve(
                    listener,
                    routes,
                    ConnectionLimits::admin(),
                    errors,
                    admin_shutdown,
                ),
            );
        }
        // What a program must have first has checks of its own; this one only ever turns off, at the drain.
        let running = readiness.check("process");
        running.ready();
        Runtime {
            tasks: TaskSet::new(self.metrics.task_panics.clone()),
            running,
            readiness,
            trigger,
            shutdown,
            admin,
            _admin_trigger: admin_trigger,
            signals: self.signals,
            drain_deadline: self.drain_deadline,
            linger: self.linger,
        }
    }
}

/// A process that runs.
#[derive(Debug)]
pub struct Runtime {
    tasks: TaskSet,
    running: ReadyHandle,
    readiness: Readiness,
    trigger: ShutdownTrigger,
    shutdown: Shutdown,
    admin: TaskSet,
    /// Kept so that the admin port serves until the runtime is dropped.
    _admin_trigger: ShutdownTrigger,
    signals: Signals,
    drain_deadline: Duration,
    linger: Duration,
}

/// Why a process ended other than drained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// A task it cannot live without ended.
    #[error("task `{task}` {}", match end { TaskEnd::Returned => "ended early", TaskEnd::Panicked => "panicked" })]
    TaskEnded {
        /// Its name.
        task: String,
        /// How.
        end: TaskEnd,
    },
    /// Open work did not end in time.
    #[error("drain did not end within {seconds} s, still open: {}", tasks.join(", "))]
    DrainTimedOut {
        /// What was still open.
        tasks: Vec<String>,
        /// The deadline in seconds.
        seconds: u64,
    },
    /// A second signal came during the drain.
    #[error("stopped at once by a second {}", signal.name())]
    Interrupted {
        /// Which.
        signal: Signal,
    },
}

impl RuntimeError {
    /// The exit code of the process: 128 + n for a signal, else 1.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Interrupted { signal } => 128 + signal.number(),
            Self::TaskEnded { .. } | Self::DrainTimedOut { .. } => 1,
        }
    }
}

impl Runtime {
    /// The token every task should hold.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// The checks behind `/readyz`.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Runs a task that the process cannot live without. It must end once [`Shutdown::draining`] returns.
    pub fn spawn<F>(&mut self, name: &str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(name, task);
    }

    /// Runs until a signal has drained every task. Not cancel safe: dropping it aborts the tasks.
    ///
    /// # Errors
    /// When a task ends early, the drain takes too long, or a second signal comes.
    pub async fn run(mut self) -> Result<(), RuntimeError> {
        self.until_signal().await?;
        self.running.not_ready("draining");
        self.linger().await?;
        self.trigger.advance(Phase::Draining);
        let ended = self.drain().await;
        self.trigger.advance(Phase::Stopping);
        ended
    }

    async fn until_signal(&mut self) -> Result<(), RuntimeError> {
        tokio::select! {
            signal = self.signals.next() => {
                tracing::info!(signal = signal.name(), deadline_seconds = self.drain_deadline.as_secs(), "draining");
                Ok(())
            }
            ended = Self::early_end(&mut self.tasks) => Err(ended),
            ended = Self::early_end(&mut self.admin) => Err(ended),
        }
    }

    async fn linger(&mut self) -> Result<(), RuntimeError> {
        tokio::select! {
            () = tokio::time::sleep(self.linger) => Ok(()),
            signal = self.signals.next() => Err(RuntimeError::Interrupted { signal }),
            ended = Self::early_end(&mut self.tasks) => Err(ended),
        }
    }

    async fn drain(&mut self) -> Result<(), RuntimeError> {
        let deadline = Instant::now() + self.drain_deadline;
        let mut panicked = None;
        loop {
            tokio::select! {
                biased;
                ended = self.tasks.next_end() => match ended {
                    None => break,
                    Some((task, TaskEnd::Panicked)) => panicked = Some(task),
                    Some((_, TaskEnd::Returned)) => {}
                },
                signal = self.signals.next() => return Err(RuntimeError::Interrupted { signal }),
                () = tokio::time::sleep_until(deadline) => {
                    let seconds = self.drain_deadline.as_secs();
                    return Err(RuntimeError::DrainTimedOut { tasks: self.tasks.names(), seconds });
                }
            }
        }
        tracing::info!("drained");
        match panicked {
            Some(task) => Err(RuntimeError::TaskEnded {
                task,
                end: TaskEnd::Panicked,
            }),
            None => Ok(()),
        }
    }

    /// The first end of a task of the set; waits for ever on an empty set.
    async fn early_end(tasks: &mut TaskSet) -> RuntimeError {
        if tasks.is_empty() {
            return std::future::pending().await;
        }
        match tasks.next_end().await {
            Some((task, end)) => RuntimeError::TaskEnded { task, end },
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
