//! What every command that asks a router begins and ends with: the user's folders, settings, address and key, each
//! oddity said once; and at the end the outcomes that wait for a router.

use std::time::Duration;

use crate::client::Client;
use crate::error::CliError;
use crate::home::{Home, Settings};
use crate::spool::Spool;
use crate::terminal::{escape, tell};

/// A router, and the user who asks it.
pub(crate) struct Contact {
    pub(crate) settings: Settings,
    pub(crate) client: Client,
    spool: Spool,
}

impl Contact {
    /// Finds everything; asks nobody yet.
    pub(crate) fn open() -> Result<Self, CliError> {
        let environment = |name: &str| std::env::var_os(name);
        let home = Home::find(&environment)?;
        let settings = home.settings()?;
        note(&settings.notes);
        let router = home.router(&settings.laya, &environment)?;
        note(&router.notes);
        let timeout = Duration::from_millis(u64::from(settings.laya.timeout_millis));
        Ok(Self {
            client: Client::new(router, timeout),
            spool: Spool::new(home.waiting_outcomes()),
            settings,
        })
    }

    /// The router answered: whatever waits for it goes out, if that takes no time to speak of.
    pub(crate) fn finish(&self) {
        deliver(&self.spool, &self.client, self.settings.laya.telemetry);
    }

    /// Its parts, for who goes on without a router.
    pub(crate) fn into_parts(self) -> (Settings, Client, Spool) {
        (self.settings, self.client, self.spool)
    }
}

/// Delivers what waits, unless the user wants no outcomes sent.
pub(crate) fn deliver(spool: &Spool, client: &Client, telemetry: Option<bool>) {
    if telemetry != Some(false) {
        note(&spool.deliver(client));
    }
}

/// Says each on standard error.
pub(crate) fn note(notes: &[String]) {
    for note in notes {
        tell(&format!("note: {}\n", escape(note)));
    }
}
