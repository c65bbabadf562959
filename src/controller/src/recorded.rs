//! Answers that a checkpoint gave when it was made (control-plane 12) as a stored document: the manifest that holds them
//! lies in a volume, which the controller does not read, so a task tells them and a document named after the checkpoint
//! keeps them for whoever asks its servers. Several models may be of one checkpoint, so it belongs to none of them.

use std::sync::Arc;

use decision::contract::Digest;
use k8s_openapi::api::apps::v1::ControllerRevision;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::probe::RecordedProbe;
use crate::stored;

/// Most probes of a checkpoint.
const MAX_PROBES: usize = 8;
/// Where in a document the checkpoint digest is.
const CHECKPOINT: &str = "checkpoint";
/// Where in a document the probes are.
const PROBES: &str = "probes";

/// What a checkpoint must answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Checkpoint digest.
    pub checkpoint: String,
    /// At least one, at most eight.
    pub probes: Arc<[RecordedProbe]>,
}

/// What a document with the name of one holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The same.
    Same,
    /// What was recorded for this checkpoint before: the same files may come with another manifest.
    Before,
    /// It is of somebody else.
    SomethingElse,
}

impl Recorded {
    /// Reads probes as a manifest has them. `None` where there are none, they cannot be read, or they prove nothing; one
    /// that records no answer does not count.
    #[must_use]
    pub fn read(checkpoint: &str, probes: &Value) -> Option<Self> {
        document_name(checkpoint)?;
        let probes = Vec::<RecordedProbe>::deserialize(probes).ok()?;
        let probes: Vec<_> = probes
            .into_iter()
            .filter(|probe| !probe.answers.is_empty())
            .take(MAX_PROBES)
            .collect();
        (!probes.is_empty()).then(|| Self {
            checkpoint: checkpoint.to_owned(),
            probes: probes.into(),
        })
    }

    /// Those that a document holds.
    #[must_use]
    pub fn of_document(data: &Value) -> Option<Self> {
        Self::read(data.get(CHECKPOINT)?.as_str()?, data.get(PROBES)?)
    }

    /// Name of its document.
    #[must_use]
    pub fn document_name(&self) -> String {
        document_name(&self.checkpoint).unwrap_or_default()
    }

    /// Its document for a namespace.
    #[must_use]
    pub fn document(&self, namespace: &str) -> ControllerRevision {
        let held = json!({CHECKPOINT: self.checkpoint, PROBES: &*self.probes});
        stored::of_models(namespace, self.document_name(), held)
    }

    /// What a document of its name holds.
    #[must_use]
    pub fn compare(&self, document: &ControllerRevision) -> Holds {
        let held = document.data.as_ref();
        match held.and_then(|held| Self::of_document(&held.0)) {
            Some(held) if held == *self => Holds::Same,
            Some(held) if held.checkpoint == self.checkpoint && stored::is_of_models(document) => {
                Holds::Before
            }
            _ => Holds::SomethingElse,
        }
    }
}

/// Whether a document is ours and holds what this checkpoint must answer.
#[must_use]
pub fn is_of(checkpoint: &str, document: &ControllerRevision) -> bool {
    let held = document.data.as_ref();
    let recorded = held.and_then(|held| Recorded::of_document(&held.0));
    stored::is_of_models(document) && recorded.is_some_and(|it| it.checkpoint == checkpoint)
}

/// Name of the document with the recorded probes of a checkpoint; `None` when it is no digest.
#[must_use]
pub fn document_name(checkpoint: &str) -> Option<String> {
    let digest: Digest = checkpoint.parse().ok()?;
    Some(format!("probes-{}", digest.short()))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::runtime::RawExtension;

    use super::*;

    fn digest(digit: &str) -> String {
        format!("sha256:{}", digit.repeat(64))
    }

    fn probe(state: &str, probability: f64) -> Value {
        json!({"state": state, "answers": {"risk": {"label": "true", "probability": probability}}})
    }

    #[test]
    fn only_what_proves_something_is_read() {
        let silent = json!({"state": "x", "answers": {}});
        let nine = Value::from(vec![probe("x", 0.5); 9]);
        for (name, checkpoint, probes, count) in [
            ("one", digest("1"), json!([probe("x", 0.5)]), Some(1)),
            (
                "one of two",
                digest("1"),
                json!([silent, probe("x", 0.5)]),
                Some(1),
            ),
            ("too many", digest("1"), nine, Some(MAX_PROBES)),
            (
                "none that says anything",
                digest("1"),
                json!([silent]),
                None,
            ),
            ("none", digest("1"), json!([]), None),
            ("not told", digest("1"), Value::Null, None),
            ("another form", digest("1"), json!([{"state": "x"}]), None),
            ("no digest", "v1".to_owned(), json!([probe("x", 0.5)]), None),
        ] {
            let read = Recorded::read(&checkpoint, &probes);
            assert_eq!(read.map(|read| read.probes.len()), count, "{name}");
        }
    }

    #[test]
    fn a_document_is_found_by_the_checkpoint_and_told_from_others() {
        let recorded = Recorded::read(&digest("1"), &json!([probe("x", 0.5)])).unwrap();
        let document = recorded.document("space");
        let name = format!("probes-{}", "1".repeat(12));
        assert_eq!(document.metadata.name.as_deref(), Some(name.as_str()));
        assert_eq!(recorded.compare(&document), Holds::Same);
        assert!(is_of(&digest("1"), &document) && !is_of(&digest("2"), &document));

        let before = Recorded::read(&digest("1"), &json!([probe("x", 0.6)])).unwrap();
        assert_eq!(recorded.compare(&before.document("space")), Holds::Before);
        let mut of_somebody = before.document("space");
        of_somebody.metadata.labels = None;
        assert_eq!(recorded.compare(&of_somebody), Holds::SomethingElse);
        assert!(!is_of(&digest("1"), &of_somebody));
        let other = Recorded::read(&digest("2"), &json!([probe("x", 0.5)])).unwrap();
        assert_eq!(
            recorded.compare(&other.document("space")),
            Holds::SomethingElse
        );
        let empty = ControllerRevision {
            data: Some(RawExtension(json!({"a": 1}))),
            ..document
        };
        assert_eq!(recorded.compare(&empty), Holds::SomethingElse);
    }
}
