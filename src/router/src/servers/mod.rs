//! Decision-model servers behind the router (routing.md 1.3, 3, 18; control-plane 10): a table of them that is swapped
//! whole, who of them is asked, breakers, looks at their health, the pass-through of `/v1/systemone`, copies for a version
//! that wants to serve, what is counted of each revision, and the model inside this process. What a decision does with an
//! answer, or without one, is the router's.

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
mod revision;
mod server;
mod shadow;
mod share;
mod standing;
mod switch;
mod table;
mod upstream;

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use api::revisions::RevisionReports;
use http::HeaderName;
use routing::reason::Fallback;
use service::runtime::Shutdown;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use uuid::Uuid;

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
pub use shadow::COPIES_QUEUED;
pub use standing::{Expected, Silence, Wording};
pub use switch::TableError;
pub use table::{Role, Target, Traffic};
pub use upstream::Upstream;

use revision::Revisions;
use server::Server;
use shadow::{Copies, Waiting};
use table::{Entry, Table};

const SYSTEM_ONE: &str = "/v1/systemone";
const SYSTEM_ONE_BATCH: &str = "/v1/systemone/batch";

const DEADLINE_MS: HeaderName = HeaderName::from_static("x-laya-deadline-ms");
const CONTRACT: HeaderName = HeaderName::from_static("x-laya-contract");
const CHECKPOINT: HeaderName = HeaderName::from_static("x-laya-checkpoint");
const TRUNCATED: HeaderName = HeaderName::from_static("x-laya-truncated");

/// The servers behind a router. Cheap to clone; all clones share one table.
#[derive(Debug, Clone)]
pub struct Servers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    ours: Arc<Wording>,
    metrics: ServerMetrics,
    current: RwLock<Current>,
    changes: watch::Sender<()>,
    /// Random at each start.
    instance: String,
    revisions: Mutex<Revisions>,
    copies: Copies,
    waiting: Waiting,
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
        let (copies, waiting) = Copies::new(metrics.clone());
        Self(Arc::new(Shared {
            ours: Arc::new(Wording::ours()),
            metrics,
            instance: Uuid::from_bytes(random()).simple().to_string(),
            revisions: Mutex::default(),
            copies,
            waiting: Arc::new(tokio::sync::Mutex::new(waiting)),
            current: RwLock::new(Current {
                rule,
                table: Arc::default(),
            }),
            changes: watch::Sender::new(()),
        }))
    }

    /// Another rule for breakers, when the policy changes.
    pub fn set_breaker_rule(&self, rule: BreakerRule) {
        let mut current = self
            .0
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        current.rule = rule;
        for entry in &current.table.entries {
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
        let table = self.table();
        let asked = ask::ask(&table, text, task, deadline).await?;
        if asked.role == Role::Champion {
            self.0.copies.offer(&table, text, task, asked.answers);
        }
        Ok(asked.answered)
    }

    /// Asks the shadows of copied requests until the process drains. Without it copies wait in their queue and are
    /// dropped.
    pub async fn compare_shadows(&self, shutdown: &Shutdown) {
        let mut waiting = self.0.waiting.lock().await;
        shadow::work(&mut waiting, &self.0.metrics, shutdown).await;
    }

    /// What was seen of each revision of the LayaServer that is followed.
    #[must_use]
    pub fn report(&self) -> RevisionReports {
        let Traffic {
            server, generation, ..
        } = self.table().traffic.clone();
        RevisionReports {
            instance: self.0.instance.clone(),
            server,
            traffic_generation: generation,
            revisions: self.revisions().report(),
        }
    }

    fn revisions(&self) -> std::sync::MutexGuard<'_, Revisions> {
        let revisions = self.0.revisions.lock();
        revisions.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is any server to ask, in whatever state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table().is_empty()
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
                    .entries
                    .iter()
                    .any(|entry| Arc::ptr_eq(&entry.server, server));
                if !stays {
                    look.abort();
                }
                stays && !look.is_finished()
            });
            for Entry { server, .. } in &table.entries {
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

fn random() -> [u8; 16] {
    let mut random = [0; 16];
    if getrandom::fill(&mut random).is_err() {
        // Counters of two starts are told apart by the time then.
        random = Uuid::now_v7().into_bytes();
    }
    random
}
