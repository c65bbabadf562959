//! Which replicas are asked, and what they should be.

use std::sync::Arc;
use std::time::Duration;

use api::kinds::laya_server::ServerApi;

use super::questions::{QuestionSet, RecordedProbe};

/// A replica that is asked.
#[derive(Debug, Clone)]
pub struct Replica {
    /// Its revision; empty for an external server.
    pub revision: String,
    /// Its number.
    pub ordinal: u32,
    /// Where it answers: `http://host:port`.
    pub url: String,
    /// What its image is said to speak.
    pub server_api: ServerApi,
    /// Digest of the checkpoint it should serve; chooses which one of `/health` is meant.
    pub digest: Option<String>,
    /// Digest of the contract it should serve, which it is asked for by name.
    pub contract: Option<String>,
    /// The questions of that contract; `None` while their wording is not known here.
    pub questions: Option<Arc<QuestionSet>>,
    /// Answers that its checkpoint gave when it was made; empty where none were recorded.
    pub recorded: Arc<[RecordedProbe]>,
    /// For one answer.
    pub timeout: Duration,
    /// From one probe question to the next of its revision.
    pub interval: Duration,
    /// How much hurry there is.
    pub pace: Pace,
}

impl Replica {
    /// Whether what was learned of the other one holds for this one too.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let identity = |replica: &Self| {
            (
                replica.revision.clone(),
                replica.ordinal,
                replica.url.clone(),
                replica.server_api == ServerApi::Laya,
                replica.digest.clone(),
                replica.contract.clone(),
            )
        };
        identity(self) == identity(other)
    }

    /// Whether it is asked what the other one is: the same questions about the same states.
    pub(super) fn asks_the_same(&self, other: &Self) -> bool {
        let questions = |replica: &Self| {
            let set = replica.questions.as_ref();
            set.map(|set| set.digest().to_owned())
        };
        questions(self) == questions(other) && self.recorded == other.recorded
    }
}

/// How much hurry there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A rollout waits for it.
    Rollout,
    /// It serves, or is kept.
    Steady,
}
