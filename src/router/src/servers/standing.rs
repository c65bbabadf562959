//! What a server says of itself, and whether that makes it one we may ask (routing.md 1.3, 3): its `/health` and
//! `/ready` against our questions and what the configuration expects. Pure; `probe` does the looking.
//!
//! A server whose contract has our shape is asked in its own wording: ours, or that of the `decisions.json` its
//! configuration names. One that names our shape and a wording nobody told us is not asked, since its answers to another
//! wording would not be its own. One that names no contract at all (a Laya before ours, or a checkpoint without one) is
//! asked in our wording: it has none that would be more its own, and every answer is checked against our shape anyway.

use std::collections::BTreeMap;
use std::sync::Arc;

use decision::json::{Value, write};
use decision::{Contract, relay_contract};
use serde::Deserialize;

/// Questions as they are put to a server.
#[derive(Debug, PartialEq, Eq)]
pub struct Wording {
    contract: Contract,
    /// The `questions` of a request, written once.
    questions: String,
}

impl Wording {
    /// The questions of a contract.
    #[must_use]
    pub fn new(contract: Contract) -> Self {
        let questions = write(&Value::Object(contract.request_questions()));
        Self {
            contract,
            questions,
        }
    }

    /// Our own.
    #[must_use]
    pub fn ours() -> Self {
        Self::new(relay_contract().clone())
    }

    /// The contract.
    #[must_use]
    pub const fn contract(&self) -> &Contract {
        &self.contract
    }

    pub(super) fn questions(&self) -> &str {
        &self.questions
    }
}

/// What it means when a server does not say what is expected of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Silence {
    /// That it is another one.
    #[default]
    Refused,
    /// Nothing: somebody else has made sure. A Laya before ours names neither contract nor checkpoint.
    Accepted,
}

/// What a server must be, as far as its configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// Contract digest it must name.
    pub contract: Option<String>,
    /// Checkpoint digest it must show.
    pub checkpoint: Option<String>,
    /// Whether it must name them.
    pub silence: Silence,
}

impl Expected {
    fn allows(&self, expected: Option<&String>, got: Option<&String>) -> bool {
        let silent = got.is_none() && self.silence == Silence::Accepted;
        silent || expected.is_none_or(|expected| got == Some(expected))
    }
}

/// What a server that may be asked serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Serves {
    /// The questions to put to it.
    pub(super) wording: Arc<Wording>,
    /// The contract it names.
    pub(super) contract: Option<String>,
    /// The contract it has: the one it names, else the one that others have made sure of.
    pub(super) known_contract: Option<String>,
    /// Digest of its checkpoint.
    pub(super) checkpoint: Option<String>,
    /// What it runs on.
    pub(super) device: Option<String>,
}

/// Why a server is the wrong one. Ends when it is another server, or its configuration changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Wrong {
    #[error(
        "its questions have shape {got}, ours have {ours}; serve a version trained for Relay's questions"
    )]
    Shape { got: String, ours: String },
    #[error(
        "it is tuned to the wording {got}, which nobody gave us; name its decisions.json as `decisions` of the server"
    )]
    Wording { got: String },
    #[error("it serves contract {got}, expected {expected}")]
    Contract { got: String, expected: String },
    #[error("it serves checkpoint {got}, expected {expected}")]
    Checkpoint { got: String, expected: String },
    #[error("it runs on another device than it was told to: {message}")]
    Device { message: String },
    #[error(
        "it says that it serves contract {contract} and refuses its questions; serve that checkpoint alone"
    )]
    Refuses { contract: String },
    #[error("it demands a key; name a file with the right one as `api_key_file` of the server")]
    Key,
    #[error("it does not answer like a Laya server: {problem}")]
    NoLaya { problem: String },
}

/// What is known about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody looked yet.
    Unknown,
    /// It did not answer the last looks.
    Unreachable { problem: String },
    /// It says that it may not be asked now.
    NotReady { message: String },
    /// It may never be asked.
    Wrong(Wrong),
    /// It may be asked.
    Serves(Arc<Serves>),
}

/// What `/ready` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ready {
    /// It is, or is a Laya that does not know the question.
    Yes,
    /// It is not.
    No {
        /// Which of Laya's reasons.
        reason: String,
        /// What to do.
        message: String,
    },
}

impl Ready {
    /// Reads status and body of `/ready`.
    pub(super) fn read(status: u16, body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Body {
            #[serde(default)]
            reason: String,
            #[serde(default)]
            message: String,
        }
        // A Laya before ours has no such path and answers 404: what listens there is ready.
        if status != 503 {
            return Self::Yes;
        }
        match serde_json::from_slice::<Body>(body) {
            Ok(Body { reason, message }) => Self::No { reason, message },
            Err(_) => Self::No {
                reason: String::new(),
                message: String::new(),
            },
        }
    }
}

/// What `/health` says, as far as it matters here. Whatever else is there is ignored.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Health {
    status: Option<String>,
    loaded: Option<Vec<String>>,
    device: Option<String>,
    contract: Option<String>,
    shape: Option<String>,
    checkpoints: BTreeMap<String, Checkpoint>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Checkpoint {
    digest: Option<String>,
    contract: Option<String>,
    device: Device,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Device {
    kind: Option<String>,
    name: Option<String>,
}

impl Health {
    /// Reads status and body of `/health`.
    ///
    /// # Errors
    /// What makes it no answer of a Laya server.
    pub(super) fn read(status: u16, body: &[u8]) -> Result<Self, Wrong> {
        let no_laya = |problem: String| Wrong::NoLaya { problem };
        if status != 200 {
            return Err(no_laya(format!("/health answers {status}")));
        }
        let health: Self = serde_json::from_slice(body)
            .map_err(|error| no_laya(format!("/health is no JSON of its form: {error}")))?;
        match health.status.as_deref() {
            Some("ok") => Ok(health),
            _ => Err(no_laya("/health has no status `ok`".to_owned())),
        }
    }

    /// The checkpoint that has the contract it names, else the first.
    fn checkpoint(&self) -> Option<&Checkpoint> {
        let named = |checkpoint: &&Checkpoint| checkpoint.contract == self.contract;
        self.checkpoints
            .values()
            .find(named)
            .or_else(|| self.checkpoints.values().next())
    }
}

/// What is known once both answers are there. `own` is the wording that the configuration gives the server.
pub(super) fn judge(
    health: &Health,
    ready: &Ready,
    expected: &Expected,
    ours: &Arc<Wording>,
    own: Option<&Arc<Wording>>,
) -> Standing {
    if health.loaded.is_none() && health.contract.is_none() {
        return Standing::Wrong(Wrong::Key);
    }
    if let Ready::No { reason, message } = ready {
        let message = if message.is_empty() {
            "it does not say why".to_owned()
        } else {
            message.clone()
        };
        return match reason.as_str() {
            "WrongDevice" => Standing::Wrong(Wrong::Device { message }),
            _ => Standing::NotReady { message },
        };
    }
    match wording(health, expected, ours, own) {
        Err(wrong) => Standing::Wrong(wrong),
        Ok(wording) => {
            let checkpoint = health.checkpoint();
            let device = checkpoint.map(|checkpoint| &checkpoint.device);
            Standing::Serves(Arc::new(Serves {
                wording,
                contract: health.contract.clone(),
                known_contract: health
                    .contract
                    .clone()
                    .or_else(|| expected.contract.clone()),
                checkpoint: checkpoint.and_then(|checkpoint| checkpoint.digest.clone()),
                device: device
                    .and_then(|device| device.name.clone().or_else(|| device.kind.clone()))
                    .or_else(|| health.device.clone()),
            }))
        }
    }
}

fn wording(
    health: &Health,
    expected: &Expected,
    ours: &Arc<Wording>,
    own: Option<&Arc<Wording>>,
) -> Result<Arc<Wording>, Wrong> {
    let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    if !expected.allows(expected.contract.as_ref(), health.contract.as_ref()) {
        return Err(Wrong::Contract {
            got: shown(&health.contract),
            expected: shown(&expected.contract),
        });
    }
    let checkpoint = health.checkpoint().and_then(|found| found.digest.clone());
    if !expected.allows(expected.checkpoint.as_ref(), checkpoint.as_ref()) {
        return Err(Wrong::Checkpoint {
            got: shown(&checkpoint),
            expected: shown(&expected.checkpoint),
        });
    }
    let Some(contract) = &health.contract else {
        return Ok(own.unwrap_or(ours).clone());
    };
    let shape = ours.contract().shape_digest().to_string();
    if health.shape.as_ref() != Some(&shape) {
        return Err(Wrong::Shape {
            got: shown(&health.shape),
            ours: shape,
        });
    }
    [Some(ours), own]
        .into_iter()
        .flatten()
        .find(|wording| wording.contract().digest().to_string() == *contract)
        .cloned()
        .ok_or_else(|| Wrong::Wording {
            got: contract.clone(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn reworded() -> Arc<Wording> {
        let text = decision::RELAY_DECISIONS_JSON.replacen(
            "\"instructions\": \"",
            "\"instructions\": \"Now: ",
            1,
        );
        Arc::new(Wording::new(Contract::import(text.as_bytes()).unwrap()))
    }

    /// A short name for what follows from the answers.
    fn standing(health: &str, ready: (u16, &str), expected: &Expected, own: bool) -> String {
        let ours = Arc::new(Wording::ours());
        let reworded = reworded();
        let ready = Ready::read(ready.0, ready.1.as_bytes());
        let health = match Health::read(200, health.as_bytes()) {
            Ok(health) => health,
            Err(wrong) => return format!("{wrong:?}").split(' ').next().unwrap().to_owned(),
        };
        match judge(&health, &ready, expected, &ours, own.then_some(&reworded)) {
            Standing::Serves(serves) if serves.wording == ours => {
                let or_none = |text: &Option<String>| text.clone().unwrap_or("-".to_owned());
                format!(
                    "ours {} {}",
                    or_none(&serves.checkpoint),
                    or_none(&serves.device)
                )
            }
            Standing::Serves(_) => "reworded".to_owned(),
            Standing::Wrong(wrong) => format!("{wrong:?}").split(' ').next().unwrap().to_owned(),
            Standing::NotReady { message } => message,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn only_a_server_of_our_shape_in_a_known_wording_is_asked() {
        let ours = relay_contract();
        let (digest, shape) = (ours.digest().to_string(), ours.shape_digest().to_string());
        let other_wording = reworded().contract().digest().to_string();
        let health = |contract: &str, shape: &str| {
            format!(
                r#"{{"status":"ok","loaded":["model"],"device":"cpu","ok":true,"contract":"{contract}","shape":"{shape}","checkpoints":{{"a":{{"digest":"sha256:aa","contract":null,"device":{{"kind":"cpu","name":null}}}},"model":{{"digest":"sha256:bb","contract":"{contract}","device":{{"kind":"cuda","name":"L4"}}}}}}}}"#
            )
        };
        let original = r#"{"status":"ok","loaded":["english"],"revisions":{},"device":"cpu"}"#;
        let yes = (200, r#"{"ready":true}"#);
        let nothing = Expected::default();
        let expects = |contract: Option<&str>, checkpoint: Option<&str>| Expected {
            contract: contract.map(str::to_owned),
            checkpoint: checkpoint.map(str::to_owned),
            silence: Silence::Refused,
        };
        let vouched = |contract: &str| Expected {
            silence: Silence::Accepted,
            ..expects(Some(contract), Some("sha256:bb"))
        };
        let good = health(&digest, &shape);
        for (name, health, ready, expected, own, told) in [
            ("ours", &*good, yes, &nothing, false, "ours sha256:bb L4"),
            (
                "the original",
                original,
                (404, ""),
                &nothing,
                false,
                "ours - cpu",
            ),
            (
                "the original in a wording",
                original,
                (404, ""),
                &nothing,
                true,
                "reworded",
            ),
            (
                "other wording, unknown",
                &health(&other_wording, &shape),
                yes,
                &nothing,
                false,
                "Wording",
            ),
            (
                "other wording, known",
                &health(&other_wording, &shape),
                yes,
                &nothing,
                true,
                "reworded",
            ),
            (
                "a third wording",
                &health(OTHER, &shape),
                yes,
                &nothing,
                true,
                "Wording",
            ),
            (
                "other shape",
                &health(&digest, OTHER),
                yes,
                &nothing,
                true,
                "Shape",
            ),
            (
                "as expected",
                &good,
                yes,
                &expects(Some(&digest), Some("sha256:bb")),
                false,
                "ours sha256:bb L4",
            ),
            (
                "another contract",
                &good,
                yes,
                &expects(Some(OTHER), None),
                false,
                "Contract",
            ),
            (
                "another checkpoint",
                &good,
                yes,
                &expects(None, Some("sha256:aa")),
                false,
                "Checkpoint",
            ),
            (
                "no contract where one is expected",
                original,
                (404, ""),
                &expects(Some(&digest), None),
                false,
                "Contract",
            ),
            (
                "no contract where others have made sure",
                original,
                (404, ""),
                &vouched(&digest),
                false,
                "ours - cpu",
            ),
            (
                "another contract than others say",
                &good,
                yes,
                &vouched(OTHER),
                false,
                "Contract",
            ),
            (
                "key demanded",
                r#"{"status":"ok"}"#,
                yes,
                &nothing,
                false,
                "Key",
            ),
            (
                "starting",
                original,
                (
                    503,
                    r#"{"ready":false,"reason":"Starting","message":"wait"}"#,
                ),
                &nothing,
                false,
                "wait",
            ),
            (
                "no reason",
                original,
                (503, "x"),
                &nothing,
                false,
                "it does not say why",
            ),
            (
                "wrong device",
                &good,
                (503, r#"{"reason":"WrongDevice","message":"no cuda"}"#),
                &nothing,
                false,
                "Device",
            ),
            ("no JSON", "<html>", yes, &nothing, false, "NoLaya"),
            ("a list", "[]", yes, &nothing, false, "NoLaya"),
            (
                "not well",
                r#"{"status":"down","loaded":[]}"#,
                yes,
                &nothing,
                false,
                "NoLaya",
            ),
        ] {
            assert_eq!(standing(health, ready, expected, own), told, "{name}");
        }
        assert!(
            Health::read(500, good.as_bytes()).is_err(),
            "a status of failure"
        );
    }
}
