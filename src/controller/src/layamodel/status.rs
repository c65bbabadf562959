//! What a model's status says where it stands (control-plane 1.3, 2). Pure.

use api::condition::ConditionType;
use api::kinds::laya_model::ModelPhase;
use api::kinds::{ConditionStatus, LayaModel, LayaModelStatus};
use api::reason::Reason;
use backend::{BackendError, Observed};

use super::inputs::Checked;
use super::source::named;
use crate::clock::Now;
use crate::conditions::Conditions;
use crate::failure::Failure;

/// Most entries of `usedBy`.
const MAX_USES: usize = 16;

/// A condition: whether it holds, why, and for people.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) status: ConditionStatus,
    pub(super) reason: Reason,
    pub(super) message: String,
}

impl Word {
    pub(super) fn yes(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status: ConditionStatus::True,
            reason,
            message: message.into(),
        }
    }

    pub(super) fn no(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status: ConditionStatus::False,
            reason,
            message: message.into(),
        }
    }
}

/// Where a model stands. What is `None` is not stated.
#[derive(Debug, Clone)]
pub(super) struct Stand {
    pub(super) phase: ModelPhase,
    pub(super) ready: Word,
    pub(super) fetched: Option<Word>,
    pub(super) verified: Option<Word>,
    /// Only a change by somebody helps.
    pub(super) stalled: Option<(Reason, String)>,
    /// Work goes on and needs nobody.
    pub(super) working: Option<String>,
}

impl Stand {
    /// It is not ready, and nothing else is said.
    pub(super) fn not_ready(phase: ModelPhase, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            phase,
            ready: Word::no(reason, message),
            fetched: None,
            verified: None,
            stalled: None,
            working: None,
        }
    }

    /// The same word on `Fetched`, where it may stand there.
    pub(super) fn fetched_too(mut self) -> Self {
        if self.ready.reason.may_stand_on(ConditionType::Fetched) {
            self.fetched = Some(self.ready.clone());
        }
        self
    }

    /// The same word on `Verified`, where it may stand there.
    pub(super) fn verified_too(mut self) -> Self {
        if self.ready.reason.may_stand_on(ConditionType::Verified) {
            self.verified = Some(self.ready.clone());
        }
        self
    }

    /// Work goes on.
    pub(super) fn working(mut self) -> Self {
        self.working = Some(self.ready.message.clone());
        self
    }

    /// Only somebody's change helps.
    pub(super) fn stalled(mut self, reason: Reason) -> Self {
        self.stalled = Some((reason, self.ready.message.clone()));
        self
    }
}

/// A status that has these facts and says where the model stands.
pub(super) fn settle(
    model: &LayaModel,
    checked: &Checked,
    facts: LayaModelStatus,
    stand: Stand,
    now: &Now,
) -> LayaModelStatus {
    let mut conditions = before(model, now);
    let mut set = |kind, word: Option<Word>| match word {
        Some(word) => conditions.set(kind, word.status, word.reason, word.message),
        None => conditions.remove(kind),
    };
    set(ConditionType::Ready, Some(stand.ready));
    set(ConditionType::Fetched, stand.fetched);
    set(ConditionType::Verified, stand.verified);
    let stalled = stand
        .stalled
        .map(|(reason, message)| Word::yes(reason, message));
    let working = stand.working.filter(|_| stalled.is_none());
    set(ConditionType::Stalled, stalled);
    set(
        ConditionType::Reconciling,
        working.map(|message| Word::yes(Reason::Progressing, message)),
    );
    let answered = format!("the {} engine answered", checked.engine.name);
    set(
        ConditionType::BackendReachable,
        Some(Word::yes(Reason::Observed, answered)),
    );
    set(ConditionType::FieldsSupported, Some(supported(checked)));
    set(ConditionType::InUse, Some(in_use(checked)));
    LayaModelStatus {
        observed_generation: model.metadata.generation,
        phase: Some(stand.phase),
        conditions: conditions.into_list(),
        used_by: checked.uses.iter().take(MAX_USES).cloned().collect(),
        ..facts
    }
}

fn before(model: &LayaModel, now: &Now) -> Conditions {
    let list = model
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice());
    Conditions::of(
        list.unwrap_or_default(),
        model.metadata.generation,
        now.wall,
    )
}

fn supported(checked: &Checked) -> Word {
    let ignored = match &checked.wanted {
        Ok(wanted) if !wanted.ignored.is_empty() => wanted.ignored.join(", "),
        _ => return Word::yes(Reason::AllApplied, "every field of the spec counts"),
    };
    let message = format!(
        "the {} engine ignores {ignored}. Remove them, or leave them for another engine",
        checked.engine.name
    );
    Word::no(Reason::FieldsIgnored, message)
}

fn in_use(checked: &Checked) -> Word {
    let mut servers: Vec<_> = checked
        .uses
        .iter()
        .filter_map(|used| used.server.as_deref())
        .collect();
    servers.dedup();
    if servers.is_empty() {
        return Word::no(Reason::Unused, "no LayaServer has it");
    }
    Word::yes(
        Reason::ServedBy,
        format!("LayaServer {}", servers.join(", ")),
    )
}

/// Nothing is known of the engine: what is recorded stays, and `Ready` is unknown.
pub(super) fn unreachable(
    model: &LayaModel,
    checked: &Checked,
    engine: &Result<Observed, BackendError>,
    now: &Now,
) -> LayaModelStatus {
    let (reason, why) = match engine {
        Err(error) => (
            error
                .reason()
                .filter(|reason| reason.may_stand_on(ConditionType::BackendReachable)),
            error.to_string(),
        ),
        Ok(_) => (None, "the look at the engine was not complete".to_owned()),
    };
    let reason = reason.unwrap_or(Reason::ObservationTimedOut);
    let message = format!("{why}. Look after the {} engine", checked.engine.name);
    let mut conditions = before(model, now);
    conditions.set(
        ConditionType::BackendReachable,
        ConditionStatus::False,
        reason,
        message.clone(),
    );
    conditions.set(
        ConditionType::Ready,
        ConditionStatus::Unknown,
        reason,
        message,
    );
    LayaModelStatus {
        conditions: conditions.into_list(),
        ..facts(model)
    }
}

/// What the status has now.
pub(super) fn facts(model: &LayaModel) -> LayaModelStatus {
    model.status.clone().unwrap_or_default()
}

/// Only somebody's change helps against a failure.
pub(super) fn failed(model: &LayaModel, failure: &Failure, now: &Now) -> LayaModelStatus {
    let reason = failure.reason().unwrap_or(Reason::Waiting);
    let message = failure.to_string();
    let mut conditions = before(model, now);
    if reason.may_stand_on(ConditionType::Stalled) {
        conditions.stall(reason, &message);
    } else {
        conditions.remove(ConditionType::Reconciling);
        conditions.remove(ConditionType::Stalled);
    }
    if reason.may_stand_on(ConditionType::Fetched) {
        conditions.set(
            ConditionType::Fetched,
            ConditionStatus::False,
            reason,
            message.clone(),
        );
    }
    conditions.set(
        ConditionType::Ready,
        ConditionStatus::False,
        reason,
        message,
    );
    LayaModelStatus {
        observed_generation: model.metadata.generation,
        conditions: conditions.into_list(),
        ..facts(model)
    }
}

/// The first twelve digits of a digest.
pub(super) fn short(digest: &str) -> String {
    digest
        .trim_start_matches("sha256:")
        .chars()
        .take(12)
        .collect()
}

/// `LayaModel <name>` for notes of events.
pub(super) fn subject(model: &LayaModel) -> String {
    named(model.metadata.name.as_deref().unwrap_or_default())
}
