//! Another table takes the place of the one in force: whole, between two requests, and with its new servers looked at
//! first, so that no task falls to the rules only because nobody had looked yet.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::connect::TlsError;
use super::probe;
use super::server::{Identity, Server};
use super::standing::Standing;
use super::table::{Entry, Role, Table, Target, Traffic};
use super::{Current, Servers};

/// A table cannot be put in force.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// Two servers have one name.
    #[error("two servers are called `{name}`; give one another name")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// No server would ever be asked.
    #[error("no server has a weight above 0")]
    NoWeight,
    /// A server with TLS cannot be called.
    #[error("server `{name}`")]
    Tls {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: TlsError,
    },
}

impl Servers {
    /// Puts another table in force, whole. Requests that are under way keep theirs. A server that is in both with the
    /// same name, place and expectations keeps what is known about it, whatever its weight. Nothing is followed then.
    ///
    /// # Errors
    /// When two servers have one name, none of several has a weight, or TLS cannot be set up; then nothing changes.
    pub fn replace(&self, targets: Vec<Target>) -> Result<(), TableError> {
        let entries = self.entries(targets)?;
        self.put(Table::new(entries, Traffic::default()));
        Ok(())
    }

    /// The same for the table of what is followed, once its new servers were looked at, or `wait` has passed. One who
    /// calls this twice at once does not know which table is the last.
    ///
    /// # Errors
    /// Those of [`Self::replace`]; then nothing changes.
    pub async fn switch(
        &self,
        targets: Vec<Target>,
        traffic: Traffic,
        wait: Duration,
    ) -> Result<(), TableError> {
        let entries = self.entries(targets)?;
        let until = Instant::now() + wait;
        let mut looks = JoinSet::new();
        let unknown = |entry: &&Entry| matches!(entry.server.standing(), Standing::Unknown);
        for entry in entries.iter().filter(unknown) {
            looks.spawn(probe::once(entry.server.clone(), self.0.ours.clone()));
        }
        let looked = async { while looks.join_next().await.is_some() {} };
        // Whoever is slower than that is found by the looks that go on beside the requests.
        let _ = tokio::time::timeout_at(until.into(), looked).await;
        self.put(Table::new(entries, traffic));
        Ok(())
    }

    fn put(&self, table: Table) {
        let mut current = self.current_mut();
        for entry in &table.entries {
            // It may have changed while the new ones were looked at.
            entry.server.set_rule(current.rule);
        }
        let still = |name: &str| {
            let mut entries = table.entries.iter();
            entries.any(|entry| entry.server.name() == name)
        };
        for gone in current
            .table
            .entries
            .iter()
            .map(|entry| entry.server.name())
        {
            if !still(gone) {
                self.0.metrics.forget(gone);
            }
        }
        self.revisions().tidy(|name| {
            let mut entries = table.entries.iter();
            entries.any(|entry| entry.server.identity().revision.as_deref() == Some(name))
        });
        self.0.metrics.traffic(table.traffic.generation);
        current.table = Arc::new(table);
        drop(current);
        self.0.changes.send_replace(());
    }

    fn entries(&self, targets: Vec<Target>) -> Result<Vec<Entry>, TableError> {
        let mut names = BTreeSet::new();
        if let Some(twice) = targets.iter().find(|target| !names.insert(&target.name)) {
            return Err(TableError::NameTwice {
                name: twice.name.clone(),
            });
        }
        let idle = |target: &Target| target.weight == 0 || target.role == Role::Shadow;
        if !targets.is_empty() && targets.iter().all(idle) {
            return Err(TableError::NoWeight);
        }
        let current = self.current_mut();
        let had = |name: &str| {
            let mut entries = current.table.entries.iter();
            entries.any(|entry| entry.server.identity().revision.as_deref() == Some(name))
        };
        for name in targets.iter().filter_map(|it| it.revision.as_deref()) {
            if !had(name) {
                // Before its first server here asks for its counters; the others find those.
                self.revisions().begin_anew(name);
            }
        }
        let entries = targets.into_iter();
        entries.map(|target| self.entry(target, &current)).collect()
    }

    fn entry(&self, target: Target, current: &Current) -> Result<Entry, TableError> {
        let Target {
            name,
            version,
            upstream,
            revision,
            weight,
            role,
            wording,
            expected,
        } = target;
        let identity = Identity {
            name,
            version,
            upstream,
            revision,
            wording,
            expected,
        };
        let mut known = current.table.entries.iter();
        let known = known.find(|entry| *entry.server.identity() == identity);
        let server = match known {
            Some(entry) => entry.server.clone(),
            None => {
                let name = identity.name.clone();
                let revision = identity.revision.as_deref();
                let counted = revision.map(|revision| self.revisions().of(revision));
                let server = Server::new(identity, current.rule, &self.0.metrics, counted)
                    .map_err(|source| TableError::Tls { name, source })?;
                Arc::new(server)
            }
        };
        Ok(Entry {
            server,
            weight,
            role,
        })
    }

    fn current_mut(&self) -> std::sync::RwLockWriteGuard<'_, Current> {
        let current = self.0.current.write();
        current.unwrap_or_else(PoisonError::into_inner)
    }
}
