//! The answer that a reported outcome got, for the same report sent again.

use std::sync::Arc;

use uuid::Uuid;

use crate::error::SqlError;
use crate::sql::{Transaction, Write, values};

/// Keeps an answer beside its attempt.
pub(crate) struct KeepAnswer {
    pub(crate) tenant: Arc<str>,
    pub(crate) decision: Uuid,
    pub(crate) attempt: u32,
    pub(crate) answer: String,
}

impl Write for KeepAnswer {
    type Answer = ();
    const WHAT: &'static str = "keep an answer";

    fn bytes(&self) -> usize {
        256 + self.answer.len()
    }

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<(), SqlError> {
        // The first answer is the one to give again.
        const PUT: &str = "UPDATE relay_outcomes SET answer = $4 \
            WHERE tenant = $1 AND decision = $2 AND attempt = $3 AND answer IS NULL";
        let values = values![&*self.tenant, self.decision, self.attempt, &*self.answer];
        transaction.execute(PUT, values).await?;
        Ok(())
    }
}
