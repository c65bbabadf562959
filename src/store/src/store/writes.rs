//! What is written.

use std::sync::Arc;

use jiff::Timestamp;
use routing::bounded::Ratio;
use routing::outcome::{EvidenceEvent, OutcomeReport};
use routing::quota::QuotaState;
use routing::record::Decision;
use uuid::Uuid;

use super::Store;
use crate::error::StoreError;
use crate::records::{DatasetEdit, Escalation, Kept, ProviderFaultReport, Recorded, Snapshot};
use crate::write;
use crate::write::decision::{Beside, whole};

impl Store {
    /// Keeps a decision; one that explores is told in the change feed.
    pub fn keep_decision(&self, tenant: &Arc<str>, decision: Arc<Decision>) -> Kept {
        self.keep_decision_for(tenant, decision, None, true)
    }

    /// The same with what its client said of itself, for the time in which the task goes on, and whether outcomes are
    /// stored.
    pub fn keep_decision_for(
        &self,
        tenant: &Arc<str>,
        decision: Arc<Decision>,
        client: Option<String>,
        records: bool,
    ) -> Kept {
        self.put(write::decision::KeepDecision {
            tenant: tenant.clone(),
            decision,
            beside: Beside {
                born_score: 0.0,
                client,
                records,
            },
        })
    }

    /// Marks the last outcome of a decision as corrected by the user, or the decision where there is none yet, so that
    /// a later one counts as corrected. Does nothing where outcomes of the decision are not stored.
    pub fn correct(&self, tenant: &Arc<str>, decision: Uuid, now: Timestamp) -> Kept {
        self.put(write::correct::Correct {
            tenant: tenant.clone(),
            decision,
            now: whole(now),
        })
    }

    /// Keeps what was answered to a report, for the same report sent again; an answer that is kept already stands.
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

    /// Records what happened to a decision (routing.md 18), once per attempt. Of an error of its provider the class is
    /// kept, not the message.
    ///
    /// # Errors
    /// When it is not on disk, or nobody knows whether it is; sent again, it is recorded once.
    pub async fn record_outcome(
        &self,
        tenant: &Arc<str>,
        report: OutcomeReport,
        now: Timestamp,
    ) -> Result<Recorded, StoreError> {
        let recording = write::outcome::RecordOutcome::new(tenant.clone(), report, whole(now));
        self.write(recording).await
    }

    /// Notes an error of a provider; what is left of it, and how many errors of this class in a row the decision had
    /// within 10 minutes, this one included.
    ///
    /// # Errors
    /// When it is not on disk, or nobody knows whether it is.
    pub async fn provider_fault(
        &self,
        tenant: &Arc<str>,
        report: ProviderFaultReport,
        now: Timestamp,
    ) -> Result<(QuotaState, u32), StoreError> {
        self.write(write::quota::Fault {
            tenant: tenant.clone(),
            report,
            now: whole(now),
        })
        .await
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
        self.write(write::quota::Measure {
            tenant: tenant.clone(),
            provider: provider.to_owned(),
            left,
            resets: whole(resets),
        })
        .await
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
        self.write(write::escalation::KeepEscalation {
            tenant: tenant.clone(),
            kept,
            now: whole(now),
        })
        .await
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
        let mut new = 0;
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            new += self
                .write(write::import::Import {
                    tenant: tenant.clone(),
                    items: items.by_ref().take(write::import::AT_ONCE).collect(),
                })
                .await?;
        }
        Ok(new)
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
        self.write(write::dataset::Edit {
            tenant: tenant.clone(),
            edit,
        })
        .await
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
        self.write(write::snapshot::KeepSnapshot {
            tenant: tenant.clone(),
            snapshot,
            now: whole(now),
        })
        .await
    }
}
