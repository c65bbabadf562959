//! A LayaModel.

use jiff::Timestamp;
use serde_json::Value;

use super::{name, text, time};
use crate::conditions;
use crate::manifest::{checkpoint_digest, shipped_digest};

/// A LayaModel as its object says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model<'a>(pub(crate) &'a Value);

/// How far a fetch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub(crate) attempt: u64,
    pub(crate) done: u64,
    pub(crate) total: u64,
    pub(crate) next_attempt: Option<Timestamp>,
    /// Reason and message of the last failure.
    pub(crate) error: Option<(String, String)>,
}

impl Fetch {
    /// In percent, where the whole is known.
    pub(crate) fn percent(&self) -> Option<u64> {
        (self.total > 0).then(|| self.done.min(self.total) * 100 / self.total)
    }
}

impl<'a> Model<'a> {
    pub(crate) fn name(self) -> &'a str {
        name(self.0)
    }

    fn status(self) -> &'a Value {
        &self.0["status"]
    }

    /// Checkpoint digest: the found one, else the expected one, else that of the files it names.
    pub(crate) fn digest(self) -> Option<String> {
        let said = text(&self.status()["digest"]).or(text(&self.0["spec"]["manifestDigest"]));
        said.map(str::to_owned).or_else(|| self.expected_digest())
    }

    fn expected_digest(self) -> Option<String> {
        let files = self.files()?;
        let entries: Option<Vec<_>> = files
            .iter()
            .map(|file| {
                Some((
                    file["path"].as_str()?,
                    file["size"].as_u64()?,
                    file["sha256"].as_str()?,
                ))
            })
            .collect();
        entries.map(checkpoint_digest)
    }

    fn files(self) -> Option<&'a Vec<Value>> {
        self.0["spec"]["source"]["http"]["files"].as_array()
    }

    /// Whether it is the version that Relay ships, whatever its name.
    pub(crate) fn is_shipped(self) -> bool {
        self.digest()
            .is_some_and(|digest| digest == shipped_digest())
    }

    /// Bytes: the found ones, else those its spec names.
    pub(crate) fn size(self) -> Option<u64> {
        let named = || {
            let sizes = self.files()?.iter().map(|file| file["size"].as_u64());
            sizes.sum::<Option<u64>>()
        };
        self.status()["sizeBytes"].as_u64().or_else(named)
    }

    pub(crate) fn phase(self) -> &'a str {
        text(&self.status()["phase"]).unwrap_or("Pending")
    }

    pub(crate) fn is_suspended(self) -> bool {
        self.0["spec"]["suspend"] == true
    }

    pub(crate) fn is_ready(self) -> bool {
        conditions::is_current(self.0)
            && conditions::find(self.0, "Ready").is_some_and(|ready| ready.is_true())
    }

    /// What keeps it from being ready until somebody changes something: nothing is tried again by itself.
    pub(crate) fn given_up(self) -> Option<conditions::Condition> {
        if !conditions::is_current(self.0) || self.is_ready() {
            return None;
        }
        let comes_again = self
            .fetch()
            .is_some_and(|fetch| fetch.next_attempt.is_some());
        let failed = || {
            let ready = conditions::find(self.0, "Ready")?;
            let ended = self.phase() == "Failed" && !comes_again && ready.status == "False";
            ended.then_some(ready)
        };
        conditions::find(self.0, "Stalled")
            .filter(conditions::Condition::is_true)
            .or_else(failed)
    }

    /// The fetch that runs, or ran last.
    pub(crate) fn fetch(self) -> Option<Fetch> {
        let fetch = &self.status()["fetch"];
        let error = &fetch["lastError"];
        fetch.is_object().then(|| Fetch {
            attempt: fetch["attempt"].as_u64().unwrap_or(0),
            done: fetch["bytesDone"].as_u64().unwrap_or(0),
            total: fetch["bytesTotal"].as_u64().or(self.size()).unwrap_or(0),
            next_attempt: time(&fetch["nextAttemptAt"]),
            error: text(&error["reason"]).map(|reason| {
                let message = text(&error["message"]).unwrap_or_default();
                (reason.to_owned(), message.to_owned())
            }),
        })
    }

    /// Host that its files come from.
    pub(crate) fn host(self) -> Option<String> {
        let url = text(&self.0["spec"]["source"]["http"]["baseUrl"])?;
        let uri: http::Uri = url.parse().ok()?;
        uri.host().map(str::to_owned)
    }

    /// What a gate said last.
    pub(crate) fn score(self) -> Option<&'a Value> {
        self.status()["scores"].as_array()?.last()
    }

    /// Condition and message that say why it is not what it should be.
    pub(crate) fn trouble(self) -> Option<conditions::Condition> {
        let stalled = conditions::find(self.0, "Stalled").filter(|stalled| stalled.is_true());
        let not_ready =
            || conditions::find(self.0, "Ready").filter(|ready| ready.status == "False");
        stalled.or_else(not_ready)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::Manifest;

    #[test]
    fn the_shipped_version_is_known_by_its_files_and_by_its_digest() {
        let by_files = json!({"spec": {"source": {"http": Manifest::shipped().to_source()}}});
        assert!(Model(&by_files).is_shipped());
        assert_eq!(Model(&by_files).size(), Some(678_202_866));
        assert_eq!(Model(&by_files).host().as_deref(), Some("huggingface.co"));
        let by_digest = json!({"status": {"digest": shipped_digest(), "sizeBytes": 3}});
        assert!(Model(&by_digest).is_shipped());
        assert_eq!(Model(&by_digest).size(), Some(3));
        let other = json!({"spec": {"source": {"http": {"files": [{"path": "a", "size": 1, "sha256": "0"}]}}}});
        assert!(!Model(&other).is_shipped());
        assert!(!Model(&json!({})).is_shipped());
    }

    #[test]
    fn what_only_a_person_ends_is_given_up() {
        let object =
            |status: &Value| json!({"metadata": {"name": "m", "generation": 1}, "status": status});
        let ready = |status: &str| json!({"type": "Ready", "status": status, "reason": "ModelDamaged", "message": ""});
        let stalled =
            json!({"type": "Stalled", "status": "True", "reason": "InvalidSpec", "message": ""});
        for (name, status, expected) in [
            (
                "damaged where it was imported",
                json!({"observedGeneration": 1, "phase": "Failed", "conditions": [ready("False")]}),
                Some("ModelDamaged"),
            ),
            (
                "is repaired",
                json!({"observedGeneration": 1, "phase": "Repairing", "conditions": [ready("False")]}),
                None,
            ),
            (
                "is tried again",
                json!({"observedGeneration": 1, "phase": "Failed", "conditions": [ready("False")],
                    "fetch": {"nextAttemptAt": "2026-11-30T10:01:00Z"}}),
                None,
            ),
            (
                "stalled",
                json!({"observedGeneration": 1, "phase": "Pending", "conditions": [ready("False"), stalled]}),
                Some("InvalidSpec"),
            ),
            (
                "of an older spec",
                json!({"observedGeneration": 0, "phase": "Failed", "conditions": [ready("False")]}),
                None,
            ),
            (
                "ready",
                json!({"observedGeneration": 1, "phase": "Published", "conditions": [ready("True")]}),
                None,
            ),
        ] {
            let object = object(&status);
            let got = Model(&object).given_up().map(|why| why.reason);
            assert_eq!(got.as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_fetch_says_how_far_it_is() {
        let object = json!({"status": {"fetch": {"attempt": 2, "bytesDone": 50, "bytesTotal": 200,
            "lastError": {"reason": "SourceBusy", "message": "503"}}}});
        let fetch = Model(&object).fetch().unwrap();
        assert_eq!((fetch.attempt, fetch.percent()), (2, Some(25)));
        assert_eq!(fetch.error, Some(("SourceBusy".into(), "503".into())));
        assert_eq!(
            Model(&json!({"status": {"fetch": {}}}))
                .fetch()
                .unwrap()
                .percent(),
            None
        );
        assert_eq!(Model(&json!({})).fetch(), None);
    }
}
