//! A user's next message that says the one before went wrong (routing.md 13).

use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use super::decision::find_recording;
use super::outcome::{correct, last_attempt};
use crate::error::SqlError;
use crate::sql::{Transaction, Write, values};

/// Marks the last attempt of a decision, or the decision where there is none yet. Where outcomes are not wanted, this is
/// none either.
pub(crate) struct Correct {
    pub(crate) tenant: Arc<str>,
    pub(crate) decision: Uuid,
    pub(crate) now: Timestamp,
}

impl Write for Correct {
    type Answer = ();
    const WHAT: &'static str = "mark a decision as corrected";

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<(), SqlError> {
        const MARK: &str = "UPDATE relay_decisions SET corrected = 1 WHERE tenant = $1 AND id = $2";
        let Some(decision) = find_recording(transaction, &self.tenant, self.decision).await? else {
            return Ok(());
        };
        match last_attempt(transaction, &self.tenant, self.decision).await? {
            Some(known) if known.corrected => Ok(()),
            Some(known) => {
                correct(transaction, &self.tenant, &decision, &known, true, self.now).await
            }
            None => {
                let values = values![&*self.tenant, self.decision];
                transaction.execute(MARK, values).await?;
                Ok(())
            }
        }
    }
}
