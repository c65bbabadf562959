//! Events of the change feed as text. Evidence is an array without field names: a router reads all of 90 days when it
//! starts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use routing::bounded::Ratio;
use routing::estimate::{Tokens, Used};
use routing::history::{Counts, HistoryKey, Observation};
use routing::outcome::EvidenceEvent;
use routing::registry::ModelRef;
use serde::{Deserialize, Serialize};

use crate::error::SqlError;
use crate::records::Event;
use crate::sql::{Transaction, values};

/// Words of column `kind`.
pub(crate) const EVIDENCE: &str = "evidence";
pub(crate) const EXPLORED: &str = "explored";
pub(crate) const QUOTA: &str = "quota";
pub(crate) const DATASET: &str = "dataset";

/// Milliseconds, success, weight.
#[derive(Serialize, Deserialize)]
struct ObservationText(i64, bool, Ratio);

/// Milliseconds, then tokens: input, cached, cache writes, output.
#[derive(Serialize, Deserialize)]
struct UsedText(i64, u64, u64, u64, u64);

#[derive(Serialize, Deserialize)]
struct EvidenceText<'a>(
    #[serde(borrow)] Cow<'a, str>,
    #[serde(borrow)] Cow<'a, str>,
    Option<ObservationText>,
    Option<ObservationText>,
    Option<UsedText>,
);

#[derive(Serialize, Deserialize)]
struct ExploredText(HistoryKey, i64);

fn time(millis: i64) -> Result<Timestamp, SqlError> {
    Timestamp::from_millisecond(millis)
        .map_err(|_| SqlError::Refused("stored time is out of range".to_owned()))
}

fn observation_text(seen: &Observation) -> ObservationText {
    ObservationText(
        seen.at.as_millisecond(),
        seen.counts == Counts::Success,
        seen.weight,
    )
}

fn observation(text: &ObservationText) -> Result<Observation, SqlError> {
    Ok(Observation {
        at: time(text.0)?,
        counts: if text.1 {
            Counts::Success
        } else {
            Counts::Failure
        },
        weight: text.2,
    })
}

fn evidence_text(event: &EvidenceEvent) -> EvidenceText<'_> {
    let used = event.used.map(|used| {
        let tokens = used.tokens;
        UsedText(
            used.at.as_millisecond(),
            tokens.input,
            tokens.cached_input,
            tokens.cache_write,
            tokens.output,
        )
    });
    EvidenceText(
        event.class.to_string().into(),
        event.model.as_str().into(),
        event.observation.as_ref().map(observation_text),
        event.replaces.as_ref().map(observation_text),
        used,
    )
}

/// JSON of one of our own types.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, SqlError> {
    serde_json::to_string(value)
        .map_err(|error| SqlError::Refused(format!("not storable: {:?}", error.classify())))
}

/// Appends evidence to the feed.
pub(crate) async fn append_evidence(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    event: &EvidenceEvent,
    now: Timestamp,
) -> Result<(), SqlError> {
    append(
        transaction,
        tenant,
        EVIDENCE,
        json(&evidence_text(event))?,
        now,
    )
    .await
}

/// Appends an exploration to the feed.
pub(crate) async fn append_explored(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    class: HistoryKey,
    at: Timestamp,
) -> Result<(), SqlError> {
    let text = json(&ExploredText(class, at.as_millisecond()))?;
    append(transaction, tenant, EXPLORED, text, at).await
}

async fn append(
    transaction: &mut Transaction<'_>,
    tenant: &Arc<str>,
    kind: &'static str,
    body: String,
    now: Timestamp,
) -> Result<(), SqlError> {
    const PUT: &str = "INSERT INTO relay_changes (change, recorded, tenant, kind, body) \
        VALUES ($1, $2, $3, $4, $5)";
    let change = transaction.change();
    transaction
        .execute(PUT, values![change, now, &**tenant, kind, body])
        .await?;
    Ok(())
}

/// Reads events back. Remembers the names it has seen: there are few, and a router reads them a hundred thousand times
/// when it starts.
#[derive(Default)]
pub(crate) struct Reader {
    classes: HashMap<String, HistoryKey>,
    models: HashMap<String, ModelRef>,
}

impl Reader {
    /// Reads an event; nothing for kinds that a later version added.
    pub(crate) fn read(
        &mut self,
        kind: &str,
        subject: String,
        body: &str,
    ) -> Result<Option<Event>, SqlError> {
        let bad = |error: serde_json::Error| SqlError::unreadable(kind, &error);
        Ok(Some(match kind {
            EVIDENCE => Event::Evidence(self.evidence(serde_json::from_str(body).map_err(bad)?)?),
            EXPLORED => {
                let ExploredText(class, at) = serde_json::from_str(body).map_err(bad)?;
                let at = time(at)?;
                Event::Explored { class, at }
            }
            QUOTA => Event::Quota {
                provider: subject,
                state: serde_json::from_str(body).map_err(bad)?,
            },
            DATASET => Event::Dataset {
                revision: serde_json::from_str(body).map_err(bad)?,
            },
            _ => return Ok(None),
        }))
    }

    fn evidence(&mut self, text: EvidenceText<'_>) -> Result<EvidenceEvent, SqlError> {
        let EvidenceText(class, model, seen, replaces, used) = text;
        let used = used.map(|UsedText(at, input, cached_input, cache_write, output)| {
            let tokens = Tokens {
                input,
                cached_input,
                cache_write,
                output,
            };
            time(at).map(|at| Used { at, tokens })
        });
        Ok(EvidenceEvent {
            class: known(&mut self.classes, &class)?,
            model: known(&mut self.models, &model)?,
            observation: seen.as_ref().map(observation).transpose()?,
            replaces: replaces.as_ref().map(observation).transpose()?,
            used: used.transpose()?,
        })
    }
}

/// A name as what it stands for.
fn known<T: Clone + FromStr>(names: &mut HashMap<String, T>, name: &str) -> Result<T, SqlError> {
    if let Some(known) = names.get(name) {
        return Ok(known.clone());
    }
    let bad = |_| SqlError::Refused("stored evidence names what is not known".to_owned());
    let value: T = name.parse().map_err(bad)?;
    names.insert(name.to_owned(), value.clone());
    Ok(value)
}
