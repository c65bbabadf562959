//! `relayd local` with its objects, as kubectl reaches it.

use std::path::PathBuf;

use crate::programs::{Home, Router, until};
use crate::talk::Side;

/// A user's daemon that runs.
pub(crate) struct Laptop {
    pub(crate) home: Home,
    daemon: Router,
    pub(crate) side: Side,
}

impl Laptop {
    /// Starts it on free ports and waits until it answers kubectl.
    pub(crate) fn start() -> Self {
        Self::with(&["--daemon-port", "0"])
    }

    /// The same without a controller, so that nothing but the test writes: as a real server that nothing acts on.
    pub(crate) fn without_a_controller() -> Self {
        Self::with(&["--daemon-port", "0", "--no-controller"])
    }

    fn with(arguments: &[&str]) -> Self {
        let home = Home::new();
        let daemon = Router::local(&home, arguments);
        let kubeconfig = home.path().join("daemon/kubeconfig");
        let side = Side::new(kubeconfig);
        until("the object API answers", || {
            let ended = side.run(&["get", "--raw", "/version"]);
            if ended.code == 0 {
                Ok(())
            } else {
                Err(format!("{ended:?}"))
            }
        });
        Self { home, daemon, side }
    }

    /// Its router.
    pub(crate) fn router(&self) -> &Router {
        &self.daemon
    }

    /// Where its kubeconfig is.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.home.path().join("daemon/kubeconfig")
    }

    /// Kills it and starts it again, on the same home.
    pub(crate) fn restart(&mut self) {
        self.daemon.kill();
        self.daemon = Router::local(&self.home, &["--daemon-port", "0"]);
        let side = &self.side;
        until("the object API answers again", || {
            let ended = side.run(&["get", "--raw", "/version"]);
            if ended.code == 0 {
                Ok(())
            } else {
                Err(format!("{ended:?}"))
            }
        });
    }
}
