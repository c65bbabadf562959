//! The signals that end a process, as a stream that a test can feed by hand.

use std::io;

use tokio::signal::unix::{self, SignalKind};
use tokio::sync::mpsc;

/// A request to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGINT, Ctrl-C.
    Interrupt,
}

impl Signal {
    /// Its number; the exit code of a process it stopped is 128 + this.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// Where signals come from.
#[derive(Debug)]
pub struct Signals {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Process {
        terminate: unix::Signal,
        interrupt: unix::Signal,
    },
    Channel(mpsc::Receiver<Signal>),
}

impl Signals {
    /// Those of this process. From here on they no longer end it by themselves.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn of_process() -> io::Result<Self> {
        let terminate = unix::signal(SignalKind::terminate())?;
        let interrupt = unix::signal(SignalKind::interrupt())?;
        Ok(Self {
            source: Source::Process {
                terminate,
                interrupt,
            },
        })
    }

    /// Those sent into the channel: for tests and for a process that hosts several programs.
    #[must_use]
    pub fn from_channel(signals: mpsc::Receiver<Signal>) -> Self {
        Self {
            source: Source::Channel(signals),
        }
    }

    /// The next signal. Cancel safe. A closed channel never yields one.
    pub async fn next(&mut self) -> Signal {
        match &mut self.source {
            Source::Process {
                terminate,
                interrupt,
            } => tokio::select! {
                _ = terminate.recv() => Signal::Terminate,
                _ = interrupt.recv() => Signal::Interrupt,
            },
            Source::Channel(signals) => match signals.recv().await {
                Some(signal) => signal,
                None => std::future::pending().await,
            },
        }
    }
}
