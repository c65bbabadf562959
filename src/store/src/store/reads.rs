//! What is read.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use routing::record::Decision;
use uuid::Uuid;

use super::Store;
use crate::error::StoreError;
use crate::read;
use crate::records::{
    Changes, Dataset, DecisionPage, DecisionQuery, Kept, ReportRow, StoredDecision,
};
use crate::write;
use crate::write::decision::whole;

/// That a snapshot was read is noted once in this time.
const NOTED_EACH: SignedDuration = SignedDuration::from_hours(1);

impl Store {
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

    /// A page of decisions, newest first.
    ///
    /// # Errors
    /// When the store does not answer, or the cursor is not one of ours.
    pub async fn decisions(
        &self,
        tenant: &str,
        query: &DecisionQuery,
    ) -> Result<DecisionPage, StoreError> {
        self.read(read::page::Page::new(tenant, query)?).await
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
        self.read(read::escalation::Answer {
            tenant: tenant.to_owned(),
            decision,
            key: key.to_owned(),
        })
        .await
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
        let tenant = tenant.to_owned();
        self.read(read::report::Since { tenant, since }).await
    }

    /// A tenant's rows.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn dataset(&self, tenant: &str) -> Result<Dataset, StoreError> {
        let tenant = tenant.to_owned();
        self.read(read::dataset::All { tenant }).await
    }

    /// What was at a row before, newest first; at most 5.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn row_versions(&self, tenant: &str, id: &str) -> Result<Vec<String>, StoreError> {
        let (tenant, id) = (tenant.to_owned(), id.to_owned());
        self.read(read::dataset::Versions { tenant, id }).await
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
        let found = self
            .read(read::snapshot::ByDigest {
                tenant: tenant.to_owned(),
                digest: digest.to_owned(),
            })
            .await?;
        let Some((body, read)) = found else {
            return Ok(None);
        };
        if now.duration_since(read) >= NOTED_EACH {
            let noted = self.put(write::snapshot::Touch {
                tenant: Arc::from(tenant),
                digest: digest.to_owned(),
                now: whole(now),
            });
            if noted == Kept::Full {
                tracing::debug!("that a snapshot was read is not noted: too many writes wait");
            }
        }
        Ok(Some(body))
    }
}
