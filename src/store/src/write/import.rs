//! Evidence from files of earlier versions (routing.md 19), each key once.

use std::sync::Arc;

use routing::outcome::EvidenceEvent;

use super::event::append_evidence;
use crate::error::SqlError;
use crate::sql::{Transaction, Write, values};

/// Most items of one transaction.
pub(crate) const AT_ONCE: usize = 500;

/// Adds evidence whose key was not seen before; how many were new. What says nothing is left out.
pub(crate) struct Import {
    pub(crate) tenant: Arc<str>,
    pub(crate) items: Vec<(String, EvidenceEvent)>,
}

impl Write for Import {
    type Answer = usize;
    const WHAT: &'static str = "import evidence";

    fn bytes(&self) -> usize {
        self.items.iter().map(|(key, _)| 256 + key.len()).sum()
    }

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<usize, SqlError> {
        const PUT: &str = "INSERT INTO relay_imports (tenant, key, seen) VALUES ($1, $2, $3) \
            ON CONFLICT (tenant, key) DO NOTHING";
        let mut new = 0;
        for (key, event) in &self.items {
            let seen = event.observation.map(|seen| seen.at);
            let Some(at) = seen.or(event.used.map(|used| used.at)) else {
                continue;
            };
            let values = values![&*self.tenant, &**key, at];
            if transaction.execute(PUT, values).await? > 0 {
                append_evidence(transaction, &self.tenant, event, at).await?;
                new += 1;
            }
        }
        Ok(new)
    }
}
