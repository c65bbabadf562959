//! Removing what is older than it need be (routing.md 19), in small steps between other writes.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::Store;
use crate::error::StoreError;
use crate::read;
use crate::records::{Pruned, Retention};
use crate::sql::Write;
use crate::write::prune::{Aged, Decisions, Older, STEP};

/// Nothing younger is removed, whatever the retention says.
const YOUNGEST: SignedDuration = SignedDuration::from_hours(24);
/// Snapshots are kept this long after they were last read.
const SNAPSHOTS: SignedDuration = SignedDuration::from_hours(24 * 30);
/// A provider of which nothing was heard for so long has nothing left that matters: penalties fade in minutes, sums are of
/// one day.
const IDLE_QUOTA: SignedDuration = SignedDuration::from_hours(24 * 90);
/// History looks back no further (routing.md 11).
const EVIDENCE: SignedDuration = SignedDuration::from_hours(24 * 90);

impl Store {
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
        let Some(lead) = self.lead().await? else {
            return Ok(None);
        };
        let pruned = self.remove(retention, now).await;
        lead.end().await;
        pruned.map(Some)
    }

    async fn remove(&self, retention: Retention, now: Timestamp) -> Result<Pruned, StoreError> {
        let ago = |time: SignedDuration| now.checked_sub(time).unwrap_or(Timestamp::MIN);
        let days = SignedDuration::from_hours(24 * i64::from(retention.days));
        let mut pruned = Pruned::default();
        for tenant in self.read(read::prune::Tenants).await? {
            let most = retention.most_decisions;
            let nth = read::prune::Nth {
                tenant: tenant.clone(),
                most,
            };
            let too_many = if most == 0 {
                Some(now)
            } else {
                self.read(nth).await?
            };
            let before = ago(days).max(too_many.unwrap_or(Timestamp::MIN));
            let before = before.min(ago(YOUNGEST));
            let tenant: Arc<str> = tenant.into();
            let step = || Decisions {
                tenant: tenant.clone(),
                before,
            };
            pruned.decisions += self.repeat(step).await?;
        }
        let oldest = ago(days).min(ago(YOUNGEST));
        let aged = |table, before| move || Older { table, before };
        pruned.snapshots = self.repeat(aged(Aged::Snapshots, ago(SNAPSHOTS))).await?;
        pruned.events = self.repeat(aged(Aged::Events, ago(EVIDENCE))).await?
            + self.repeat(aged(Aged::Imports, ago(EVIDENCE))).await?;
        pruned.leftovers = self.repeat(aged(Aged::Escalations, oldest)).await?
            + self.repeat(aged(Aged::Faults, ago(YOUNGEST))).await?
            + self.repeat(aged(Aged::Quota, ago(IDLE_QUOTA))).await?;
        Ok(pruned)
    }

    /// Takes one step after another until one has nothing more to do.
    async fn repeat<W: Write<Answer = u64>>(
        &self,
        step: impl Fn() -> W,
    ) -> Result<u64, StoreError> {
        let mut sum = 0;
        loop {
            let removed = self.write(step()).await?;
            sum += removed;
            if removed < STEP {
                return Ok(sum);
            }
        }
    }
}
