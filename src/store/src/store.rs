//! The store as its users see it: what it can be asked, whichever engine is behind it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use routing::bounded::Ratio;
use routing::outcome::{EvidenceEvent, OutcomeReport};
use routing::quota::QuotaState;
use routing::record::Decision;
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::{OpenError, StoreError};
use crate::options::{Location, Notice, StoreOptions};
use crate::queue::Queue;
use crate::read;
use crate::records::{
    Changes, Dataset, DatasetEdit, DecisionPage, DecisionQuery, Escalation, Kept,
    ProviderFaultReport, Pruned, Recorded, ReportRow, Retention, Snapshot, StoredDecision,
};
use crate::sql::{Read, Write};
use crate::sqlite::{self, Readers};
use crate::write;
use crate::write::decision::whole;

/// A store that was opened, and what a person should know about that.
#[derive(Debug)]
pub struct Opened {
    /// Ready for use; of PostgreSQL it may be away at first.
    pub store: Store,
    /// To be said at start.
    pub notices: Vec<Notice>,
}

/// A handle; clones share one queue and one writer.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    queue: Queue,
    engine: Engine,
    up: watch::Receiver<bool>,
    deadline: Duration,
}

enum Engine {
    Sqlite(Readers),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("up", &self.is_up())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a store. A file is made if it is not there and kept aside if it is damaged or newer than this program; a
    /// server that does not answer is tried again in the background for ever.
    ///
    /// # Errors
    /// When the file cannot be made, read or written, or the address of the database is malformed.
    pub async fn open(location: Location, options: StoreOptions) -> Result<Opened, OpenError> {
        match location {
            Location::Sqlite(path) => {
                // Opening reads and syncs a file; the runtime must not wait for that.
                tokio::task::spawn_blocking(move || Self::open_file(path, &options))
                    .await
                    .map_err(|error| OpenError::Thread(std::io::Error::other(error)))?
            }
            Location::Postgres(_) => Err(OpenError::Address {
                reason: "PostgreSQL is not built in yet".to_owned(),
            }),
        }
    }

    fn open_file(path: PathBuf, options: &StoreOptions) -> Result<Opened, OpenError> {
        let (file, notices) = sqlite::open(&path, options, Timestamp::now())?;
        let readers = Readers::start(&path, options)?;
        let (queue, commands) = Queue::new(options);
        let (set_up, up) = watch::channel(true);
        sqlite::start(file, path, commands, set_up, options).map_err(OpenError::Thread)?;
        let inner = Inner {
            queue,
            engine: Engine::Sqlite(readers),
            up,
            deadline: options.deadline,
        };
        let store = Self(Arc::new(inner));
        Ok(Opened { store, notices })
    }

    /// Whether the last connection or commit worked.
    #[must_use]
    pub fn is_up(&self) -> bool {
        *self.0.up.borrow()
    }

    /// Tells when [`Store::is_up`] changes.
    #[must_use]
    pub fn reconnected(&self) -> watch::Receiver<bool> {
        self.0.up.clone()
    }

    /// Writes what waits and ends the writer; writes after it are refused.
    ///
    /// # Errors
    /// When that did not happen within the deadline, or the engine does not take what waits.
    pub async fn close(&self, deadline: Duration) -> Result<(), StoreError> {
        const WHAT: &str = "close the store";
        let waiting = || StoreError::Away {
            what: WHAT,
            reason: format!("{} writes still wait", self.0.queue.len()),
        };
        let closed = async {
            match self.0.queue.close().await {
                // Closed before.
                None => Ok(()),
                Some(answer) => answer.await.unwrap_or_else(|_| Err(waiting())),
            }
        };
        timeout(deadline, closed)
            .await
            .unwrap_or_else(|_| Err(waiting()))
    }

    /// Keeps a decision; one that explores is told in the change feed.
    pub fn keep_decision(&self, tenant: &Arc<str>, decision: Arc<Decision>) -> Kept {
        self.put(write::decision::KeepDecision {
            tenant: tenant.clone(),
            decision,
        })
    }

    /// Marks the last outcome of a decision as corrected by the user, or the decision where there is none yet, so that
    /// a later one counts as corrected.
    pub fn correct(&self, tenant: &Arc<str>, decision: Uuid, now: Timestamp) -> Kept {
        self.put(write::correct::Correct {
            tenant: tenant.clone(),
            decision,
            now: whole(now),
        })
    }

    /// Keeps what was answered to a report, for the same report sent again.
    pub fn keep_answer(
        &self,
        tenant: &Arc<str>,
        decision: Uuid,
        attempt: u32,
        answer: String,
    ) -> Kept {
        self.put(write::answer::KeepAnswer {
            tenant: tenant.clone(),
            decision,
            attempt,
            answer,
        })
    }

    /// Records what happened to a decision (routing.md 18), once per attempt.
    ///
    /// # Errors
    /// When it is not on disk, or nobody knows whether it is; sent again, it is recorded once.
    pub async fn record_outcome(
        &self,
        tenant: &Arc<str>,
        report: OutcomeReport,
        now: Timestamp,
    ) -> Result<Recorded, StoreError> {
        self.write(write::outcome::RecordOutcome {
            tenant: tenant.clone(),
            report,
            now: whole(now),
        })
        .await
    }

    /// A decision of a tenant with its outcomes; nothing if it has none of this id.
    ///
    /// # Errors
    /// When the store does not answer, or the record is not readable.
    pub async fn decision(
        &self,
        tenant: &str,
        id: Uuid,
    ) -> Result<Option<StoredDecision>, StoreError> {
        let tenant = tenant.to_owned();
        self.read(read::decision::ById { tenant, id }).await
    }

    /// The newest decision of a conversation that is part of a task: direct requests are not.
    ///
    /// # Errors
    /// When the store does not answer, or the record is not readable.
    pub async fn last_of_conversation(
        &self,
        tenant: &str,
        conversation: &str,
    ) -> Result<Option<Decision>, StoreError> {
        self.read(read::decision::LastOfConversation {
            tenant: tenant.to_owned(),
            conversation: conversation.to_owned(),
        })
        .await
    }

    /// What changed after a number, in order of commit; at most some 50,000 events. Ask again until there is none.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn changes(&self, after: u64) -> Result<Changes, StoreError> {
        self.read(read::changes::After(after)).await
    }

    fn put<W: Write>(&self, write: W) -> Kept {
        if self.0.queue.put(write) {
            Kept::Queued
        } else {
            Kept::Full
        }
    }

    async fn write<W: Write>(&self, write: W) -> Result<W::Answer, StoreError> {
        let away = |reason: &str| StoreError::Away {
            what: W::WHAT,
            reason: reason.to_owned(),
        };
        let answer = self.0.queue.ask(write)?;
        match timeout(self.0.deadline, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(away("it was closed")),
            Err(_) => Err(away("it did not answer in time")),
        }
    }

    async fn read<R: Read>(&self, read: R) -> Result<R::Answer, StoreError> {
        match &self.0.engine {
            Engine::Sqlite(readers) => timeout(self.0.deadline, readers.read(read))
                .await
                .unwrap_or_else(|_| {
                    Err(StoreError::Away {
                        what: R::WHAT,
                        reason: "it did not answer in time".to_owned(),
                    })
                }),
        }
    }
}

// NOT BUILT YET: these answer `Failed` until the next milestone.
#[allow(clippy::unused_async, clippy::needless_pass_by_value, unused_variables)]
impl Store {
    fn later<T>(what: &'static str) -> Result<T, StoreError> {
        Err(StoreError::Failed {
            what,
            reason: "not built yet".to_owned(),
        })
    }

    /// Notes an error of a provider; what is left of it, and how many errors of this class in a row the decision had
    /// within 10 minutes, this one included.
    ///
    /// # Errors
    /// When it is not on disk, or nobody knows whether it is.
    pub async fn provider_fault(
        &self,
        tenant: &Arc<str>,
        fault: ProviderFaultReport,
        now: Timestamp,
    ) -> Result<(QuotaState, u32), StoreError> {
        Self::later("note a provider error")
    }

    /// Notes what a provider says is left.
    ///
    /// # Errors
    /// When it is not on disk, or nobody knows whether it is.
    pub async fn measure_quota(
        &self,
        tenant: &Arc<str>,
        provider: &str,
        left: Ratio,
        resets: Timestamp,
    ) -> Result<QuotaState, StoreError> {
        Self::later("note a quota")
    }

    /// Keeps the answer to an escalation and the decision it made, or finds the answer that stands.
    ///
    /// # Errors
    /// When it is not on disk, or nobody knows whether it is.
    pub async fn keep_escalation(
        &self,
        tenant: &Arc<str>,
        kept: Escalation,
        now: Timestamp,
    ) -> Result<String, StoreError> {
        Self::later("keep an escalation")
    }

    /// Adds evidence from outside, each key once; how many were new.
    ///
    /// # Errors
    /// When it is not on disk, or nobody knows whether it is.
    pub async fn import_evidence(
        &self,
        tenant: &Arc<str>,
        items: Vec<(String, EvidenceEvent)>,
    ) -> Result<usize, StoreError> {
        Self::later("import evidence")
    }

    /// Changes a tenant's rows. Changing nothing leaves the revision as it is.
    ///
    /// # Errors
    /// When it is not on disk, or nobody knows whether it is.
    pub async fn edit_dataset<T: Send + 'static>(
        &self,
        tenant: &Arc<str>,
        edit: DatasetEdit<T>,
    ) -> Result<T, StoreError> {
        Self::later("change learned tasks")
    }

    /// Keeps a frozen dataset; one of the same digest is the same.
    ///
    /// # Errors
    /// When it is not on disk, or nobody knows whether it is.
    pub async fn keep_snapshot(
        &self,
        tenant: &Arc<str>,
        snapshot: Snapshot,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        Self::later("keep a snapshot")
    }

    /// Removes what is older than it need be, in small steps between other writes. Nothing is answered where another
    /// process on the same database does it.
    ///
    /// # Errors
    /// When the store does not take the removals.
    pub async fn prune(
        &self,
        retention: Retention,
        now: Timestamp,
    ) -> Result<Option<Pruned>, StoreError> {
        Self::later("prune")
    }

    /// A page of decisions, newest first.
    ///
    /// # Errors
    /// When the store does not answer, or the cursor is not one of ours.
    pub async fn decisions(
        &self,
        tenant: &str,
        query: &DecisionQuery,
    ) -> Result<DecisionPage, StoreError> {
        Self::later("list decisions")
    }

    /// The answer that stands for an escalation.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn escalation(
        &self,
        tenant: &str,
        decision: Uuid,
        key: &str,
    ) -> Result<Option<String>, StoreError> {
        Self::later("read an escalation")
    }

    /// What happened since a moment, by tier, source and profile.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn report_rows(
        &self,
        tenant: &str,
        since: Timestamp,
    ) -> Result<Vec<ReportRow>, StoreError> {
        Self::later("report")
    }

    /// A tenant's rows.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn dataset(&self, tenant: &str) -> Result<Dataset, StoreError> {
        Self::later("read learned tasks")
    }

    /// What was at a row before, newest first; at most 5.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn row_versions(&self, tenant: &str, id: &str) -> Result<Vec<String>, StoreError> {
        Self::later("read earlier versions of a row")
    }

    /// A frozen dataset, which is kept for another 30 days.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn snapshot(
        &self,
        tenant: &str,
        digest: &str,
        now: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        Self::later("read a snapshot")
    }
}
