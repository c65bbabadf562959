//! Decision-model servers behind the router (routing.md 1.3, 3, 18): a table of them that is swapped whole, who of them
//! is asked, breakers, looks at their health, the pass-through of `/v1/systemone`, and the model inside this process.
//! What a decision does with an answer, or without one, is the router's.

mod address;
mod ask;
mod breaker;
mod configured;
mod connect;
mod deadline;
mod embedded;
mod facts;
mod key;
mod metrics;
mod pass;
mod probe;
mod server;
mod share;
mod standing;
mod table;
mod upstream;

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderName;
use routing::reason::Fallback;
use service::runtime::Shutdown;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

pub use address::{ServerUrl, ServerUrlError};
pub use ask::Answered;
pub use breaker::BreakerRule;
pub use configured::{ConfiguredServer, ConfiguredServerError};
pub use connect::TlsError;
pub use deadline::Deadline;
pub use embedded::{Embedded, EmbeddedError, EmbeddedOptions};
pub use facts::Facts;
pub use key::{KeyError, KeyFile};
pub use metrics::ServerMetrics;
pub use pass::routes;
pub use server::CALLS_IN_FLIGHT;
pub use standing::{Expected, Wording};
pub use table::{Role, Target};
pub use upstream::Upstream;

use server::{Identity, Server};
use table::{Entry, Table};

const SYSTEM_ONE: &str = "/v1/systemone";
const SYSTEM_ONE_BATCH: &str = "/v1/systemone/batch";

const DEADLINE_MS: HeaderName = HeaderName::from_static("x-laya-deadline-ms");
const CONTRACT: HeaderName = HeaderName::from_static("x-laya-contract");
const CHECKPOINT: HeaderName = HeaderName::from_static("x-laya-checkpoint");
const TRUNCATED: HeaderName = HeaderName::from_static("x-laya-truncated");

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

/// The servers behind a router. Cheap to clone; all clones share one table.
#[derive(Debug, Clone)]
pub struct Servers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    ours: Arc<Wording>,
    metrics: ServerMetrics,
    current: RwLock<Current>,
    changes: watch::Sender<()>,
}

#[derive(Debug)]
struct Current {
    rule: BreakerRule,
    table: Arc<Table>,
}

impl Servers {
    /// No server yet: nothing is asked, and `/v1/systemone` answers that nothing serves.
    #[must_use]
    pub fn new(rule: BreakerRule, metrics: ServerMetrics) -> Self {
        Self(Arc::new(Shared {
            ours: Arc::new(Wording::ours()),
            metrics,
            current: RwLock::new(Current {
                rule,
                table: Arc::default(),
            }),
            changes: watch::Sender::new(()),
        }))
    }

    /// Puts another table in force, whole. Requests that are under way keep theirs. A server that is in both with the
    /// same name, place and expectations keeps what is known about it, whatever its weight.
    ///
    /// # Errors
    /// When two servers have one name, none of several has a weight, or TLS cannot be set up; then nothing changes.
    pub fn replace(&self, targets: Vec<Target>) -> Result<(), TableError> {
        let mut names = BTreeSet::new();
        if let Some(twice) = targets.iter().find(|target| !names.insert(&target.name)) {
            return Err(TableError::NameTwice {
                name: twice.name.clone(),
            });
        }
        if !targets.is_empty() && targets.iter().all(|target| target.weight == 0) {
            return Err(TableError::NoWeight);
        }
        let mut current = self
            .0
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let entries = targets
            .into_iter()
            .map(|target| self.entry(target, &current))
            .collect::<Result<Vec<_>, _>>()?;
        let still = |name: &str| entries.iter().any(|entry| entry.server.name() == name);
        for gone in current.table.0.iter().map(|entry| entry.server.name()) {
            if !still(gone) {
                self.0.metrics.forget(gone);
            }
        }
        current.table = Arc::new(Table(entries));
        drop(current);
        self.0.changes.send_replace(());
        Ok(())
    }

    fn entry(&self, target: Target, current: &Current) -> Result<Entry, TableError> {
        let Target {
            name,
            version,
            upstream,
            weight,
            role,
            wording,
            expected,
        } = target;
        let identity = Identity {
            name,
            version,
            upstream,
            wording,
            expected,
        };
        let known = current
            .table
            .0
            .iter()
            .find(|entry| *entry.server.identity() == identity);
        let server = match known {
            Some(entry) => entry.server.clone(),
            None => {
                let name = identity.name.clone();
                let server = Server::new(identity, current.rule, &self.0.metrics)
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

    /// Another rule for breakers, when the policy changes.
    pub fn set_breaker_rule(&self, rule: BreakerRule) {
        let mut current = self
            .0
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        current.rule = rule;
        for entry in &current.table.0 {
            entry.server.set_rule(rule);
        }
    }

    /// Asks the decision model about a request. `task` says which server it belongs to, for as long as weights stay.
    /// Cancel safe: dropping it ends the call and says nothing about the server.
    ///
    /// # Errors
    /// Why the rules have to judge this request.
    pub async fn ask(
        &self,
        text: &str,
        task: &str,
        deadline: Deadline,
    ) -> Result<Answered, Fallback> {
        ask::ask(&self.table(), text, task, deadline).await
    }

    /// Whether there is any server to ask, in whatever state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table().0.is_empty()
    }

    /// Looks at every server of the table in force, until the process drains. Without it no server is ever asked.
    pub async fn follow(&self, shutdown: &Shutdown) {
        let mut changes = self.0.changes.subscribe();
        let mut looks = JoinSet::new();
        let mut looking: Vec<(Arc<Server>, AbortHandle)> = Vec::new();
        loop {
            changes.mark_unchanged();
            let table = self.table();
            looking.retain(|(server, look)| {
                let stays = table
                    .0
                    .iter()
                    .any(|entry| Arc::ptr_eq(&entry.server, server));
                if !stays {
                    look.abort();
                }
                stays && !look.is_finished()
            });
            for Entry { server, .. } in &table.0 {
                if !looking.iter().any(|(known, _)| Arc::ptr_eq(known, server)) {
                    let look = looks.spawn(probe::follow(server.clone(), self.0.ours.clone()));
                    looking.push((server.clone(), look));
                }
            }
            drop(table);
            tokio::select! {
                () = shutdown.draining() => return,
                // The sender is ours.
                _ = changes.changed() => {}
                Some(ended) = looks.join_next() => {
                    if ended.is_err_and(|error| error.is_panic()) {
                        tracing::error!("looking at a decision model panicked; it begins again");
                    }
                }
            }
        }
    }

    fn table(&self) -> Arc<Table> {
        let current = self
            .0
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        current.table.clone()
    }
}
