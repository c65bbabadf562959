//! How `relayd local` is told to end: by a signal, or by the daemon's call `shutdown`, which also says what becomes of the
//! servers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use service::runtime::{Signal, Signals};
use tokio::sync::{mpsc, watch};

/// Signals that may wait: a first and a second of each.
const WAITING: usize = 4;

/// Ends the process. Clones are the same switch.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    signals: mpsc::Sender<Signal>,
    last: watch::Sender<Option<Signal>>,
    stop_servers: Arc<AtomicBool>,
    told: Arc<AtomicBool>,
}

impl Ending {
    /// The switch, and the signals of this process with those of the switch among them.
    pub(crate) fn of_process() -> io::Result<(Self, Signals)> {
        let mut own = Signals::of_process()?;
        let (sender, receiver) = mpsc::channel(WAITING);
        let last = watch::Sender::new(None);
        let (forward, heard) = (sender.clone(), last.clone());
        tokio::spawn(async move {
            loop {
                let signal = own.next().await;
                heard.send_replace(Some(signal));
                // What drains has ended: those who still end hear of it by `next`.
                let _ = forward.try_send(signal);
            }
        });
        let ending = Self {
            signals: sender,
            last,
            stop_servers: Arc::default(),
            told: Arc::default(),
        };
        Ok((ending, Signals::from_channel(receiver)))
    }

    /// Drains and ends, as SIGTERM does. A second time it changes nothing but what becomes of the servers.
    pub(crate) fn end(&self, servers: Servers) {
        let stop = servers == Servers::Stop;
        self.stop_servers.store(stop, Ordering::Relaxed);
        // A second signal would drop what is being drained.
        if !self.told.swap(true, Ordering::Relaxed) {
            // Full: it ends already.
            let _ = self.signals.try_send(Signal::Terminate);
        }
    }

    /// The next signal of the process from now on. Cancel safe.
    pub(crate) async fn next(&self) -> Signal {
        let mut heard = self.last.subscribe();
        heard.mark_unchanged();
        loop {
            // Its sender is this.
            if heard.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            if let Some(signal) = *heard.borrow_and_update() {
                return signal;
            }
        }
    }

    /// What is to become of the servers.
    pub(crate) fn servers(&self) -> Servers {
        if self.stop_servers.load(Ordering::Relaxed) {
            Servers::Stop
        } else {
            Servers::Keep
        }
    }
}

/// What becomes of the servers of an engine when the process ends. Those inside it end with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Servers {
    /// They are drained and stopped.
    Stop,
    /// They go on.
    Keep,
}
