//! Answers to escalations: the same failures get the same answer (routing.md 18).

use std::sync::Arc;

use jiff::Timestamp;

use super::decision::{self, Beside};
use crate::error::SqlError;
use crate::records::Escalation;
use crate::sql::{Transaction, Write, values};

/// Keeps an answer and its decision, or finds the answer that stands.
pub(crate) struct KeepEscalation {
    pub(crate) tenant: Arc<str>,
    pub(crate) kept: Escalation,
    pub(crate) now: Timestamp,
}

impl Write for KeepEscalation {
    type Answer = String;
    const WHAT: &'static str = "keep an escalation";

    fn bytes(&self) -> usize {
        let kept = &self.kept;
        let made = kept.new_decision.as_deref().map_or(0, decision::bytes);
        let client = kept.client.as_ref().map_or(0, String::len);
        512 + kept.key.len() + kept.answer.len() + client + made
    }

    async fn apply(&self, transaction: &mut Transaction<'_>) -> Result<String, SqlError> {
        const PUT: &str = "INSERT INTO relay_escalations (tenant, decision, key, score, recorded, answer) \
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant, decision, key) DO NOTHING";
        const GET: &str =
            "SELECT answer FROM relay_escalations WHERE tenant = $1 AND decision = $2 AND key = $3";
        let kept = &self.kept;
        let values = values![
            &*self.tenant,
            kept.decision,
            &*kept.key,
            kept.score,
            self.now,
            &*kept.answer,
        ];
        if transaction.execute(PUT, values).await? == 0 {
            let values = values![&*self.tenant, kept.decision, &*kept.key];
            let gone = || SqlError::Refused("the answer that stands is gone".to_owned());
            let row = transaction.first(GET, values).await?;
            return row.ok_or_else(gone)?.text(0);
        }
        if let Some(made) = &kept.new_decision {
            let beside = Beside {
                born_score: kept.score,
                client: kept.client.clone(),
                records: kept.records,
            };
            decision::insert(transaction, &self.tenant, made, &beside).await?;
        }
        Ok(kept.answer.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_texts_count_while_it_waits() {
        let write = |key: usize, answer: usize, client: Option<usize>| KeepEscalation {
            tenant: "t".into(),
            kept: Escalation {
                decision: uuid::Uuid::nil(),
                key: "k".repeat(key),
                score: 0.0,
                answer: "a".repeat(answer),
                new_decision: None,
                client: client.map(|length| "c".repeat(length)),
                records: true,
            },
            now: Timestamp::UNIX_EPOCH,
        };
        let least = write(0, 0, None).bytes();
        for (name, write, more) in [
            ("key", write(1000, 0, None), 1000),
            ("answer", write(0, 2000, None), 2000),
            ("client", write(0, 0, Some(4000)), 4000),
            ("all", write(1000, 2000, Some(4000)), 7000),
        ] {
            assert_eq!(write.bytes(), least + more, "{name}");
        }
    }
}
