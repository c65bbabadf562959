//! What is remembered of rollouts: how each ended, and what was taken back.

use api::kinds::laya_server::{Rejection, RolloutRecord, RolloutState};
use api::reason::Reason;

use super::facts::{Facts, revision};
use super::view::{Draft, View};
use crate::conditions::bounded;

/// Most entries of `history` and of `rejected`.
pub(super) const KEPT: usize = 10;
/// Longest word of a record, in characters.
const MAX_WORD: usize = 256;
/// Longest message of a rejection and of a rollout, in characters.
pub(super) const MAX_TEXT: usize = 1024;

/// How a rollout ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It serves, and was watched as long as asked.
    Promoted,
    /// Traffic went back from it.
    RolledBack,
    /// It was taken back before it had traffic.
    Rejected,
    /// A newer wish took its place.
    Superseded,
    /// The wish is the champion again.
    Withdrawn,
    /// Traffic went back, and what it went back to does not answer.
    RollbackFailed,
}

impl Outcome {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Promoted => "Promoted",
            Self::RolledBack => "RolledBack",
            Self::Rejected => "Rejected",
            Self::Superseded => "Superseded",
            Self::Withdrawn => "Withdrawn",
            Self::RollbackFailed => "RollbackFailed",
        }
    }
}

/// Remembers that a revision was taken back.
pub(super) fn reject(
    view: &View<'_>,
    draft: &mut Draft,
    (taken_back, digest): (Option<String>, Option<String>),
    reason: Reason,
    message: &str,
) {
    let rejected = &mut draft.status.rejected;
    rejected.retain(|old| old.revision != taken_back);
    let rejection = Rejection {
        revision: taken_back,
        digest,
        reason: Some(reason.as_str().to_owned()),
        message: Some(bounded(message.to_owned(), MAX_TEXT)),
        at: Some(view.now()),
    };
    rejected.insert(0, rejection);
    rejected.truncate(KEPT);
}

/// The rollout is over. Its record says from where to where, taken from what champion, candidate and previous are now.
pub(super) fn end(
    view: &View<'_>,
    draft: &mut Draft,
    (from, to): (Option<String>, Option<String>),
    outcome: Outcome,
    reason: Option<String>,
) {
    let now = view.now();
    let rollout = draft.rollout();
    let record = RolloutRecord {
        id: rollout.id.clone(),
        from,
        to,
        outcome: Some(outcome.as_str().to_owned()),
        reason: reason.map(|reason| bounded(reason, MAX_WORD)),
        started_at: rollout.started_at,
        finished_at: Some(now),
    };
    rollout.state = Some(RolloutState::Done);
    rollout.step_started_at = None;
    rollout.paused_seconds = None;
    rollout.paused_from = None;
    rollout.message = None;
    let history = &mut draft.status.history;
    history.insert(0, record);
    history.truncate(KEPT);
}

/// Revisions before and after of the rollout that runs.
pub(super) fn from_to(draft: &Draft) -> (Option<String>, Option<String>) {
    let status = &draft.status;
    let owned = |revision: Option<&str>| revision.map(str::to_owned);
    match revision(status.candidate.as_ref()) {
        Some(candidate) => (
            owned(revision(status.champion.as_ref())),
            Some(candidate.to_owned()),
        ),
        None => (
            owned(revision(status.previous.as_ref())),
            owned(revision(status.champion.as_ref())),
        ),
    }
}

/// Whether a revision has served here and was not taken back: what one may go back to without a gate.
pub(super) fn has_served(draft: &Draft, wanted: &str) -> bool {
    let status = &draft.status;
    if status.rejection(wanted).is_some() {
        return false;
    }
    if revision(status.previous.as_ref()) == Some(wanted) {
        return true;
    }
    let newest = status.history.iter().find(|record| {
        record.to.as_deref() == Some(wanted)
            && [Outcome::Promoted, Outcome::RolledBack]
                .iter()
                .any(|outcome| record.outcome.as_deref() == Some(outcome.as_str()))
    });
    newest.is_some_and(|record| record.outcome.as_deref() == Some(Outcome::Promoted.as_str()))
}

/// Whether the last way back failed.
pub(super) fn way_back_failed(draft: &Draft) -> bool {
    let newest = draft.status.history.first();
    newest.is_some_and(|record| record.outcome.as_deref() == Some(Outcome::RollbackFailed.as_str()))
}
