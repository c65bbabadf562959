//! Reading the durable facts of a status (control-plane 3, marked ◆): the only thing a pass remembers of earlier ones.

use api::kinds::LayaServerStatus;
use api::kinds::laya_server::{Rejection, RolloutState, Version};
use api::reason::Reason;

/// Revision of a target that is not ours (`spec.external`).
pub(super) const EXTERNAL: &str = "external";

/// The revision of a version, if there is one.
pub(super) fn revision(version: Option<&Version>) -> Option<&str> {
    version.and_then(|version| version.revision.as_deref())
}

/// Whether a version is this revision.
pub(super) fn is_revision(version: Option<&Version>, wanted: &str) -> bool {
    revision(version) == Some(wanted)
}

/// Digest of the contract that a checkpoint answers: one that names none answers ours.
pub(super) fn wording(named: Option<&str>) -> String {
    named.map_or_else(
        || decision::relay_contract().digest().to_string(),
        str::to_owned,
    )
}

/// What a status says of its rollout.
pub(super) trait Facts {
    /// State of the rollout that runs; `None` when none does.
    fn state(&self) -> Option<RolloutState>;
    /// The same, and where it stands still the state it does so in.
    fn works_at(&self) -> Option<RolloutState>;
    /// Whether rules answer so that the old one can make room for the new one.
    fn is_gap(&self) -> bool;
    /// The rejection of a revision.
    fn rejection(&self, revision: &str) -> Option<&Rejection>;
    /// The revision that a running rollout is about: the candidate's, and once that is promoted the champion's.
    fn rolled(&self) -> Option<&str>;
    /// Whether the rollout stands still because it failed and may not go back by itself.
    fn failed_in_place(&self) -> bool;
}

impl Facts for LayaServerStatus {
    fn state(&self) -> Option<RolloutState> {
        let state = self.rollout.as_ref()?.state?;
        (!matches!(state, RolloutState::Done | RolloutState::Unknown)).then_some(state)
    }

    fn works_at(&self) -> Option<RolloutState> {
        match self.state()? {
            RolloutState::Paused => self.rollout.as_ref()?.paused_from,
            state => Some(state),
        }
    }

    fn is_gap(&self) -> bool {
        self.traffic.as_ref().is_some_and(|traffic| {
            traffic.targets.is_empty() && traffic.reason.as_deref() == Some(Reason::Gap.as_str())
        })
    }

    fn rejection(&self, revision: &str) -> Option<&Rejection> {
        self.rejected
            .iter()
            .find(|rejection| rejection.revision.as_deref() == Some(revision))
    }

    fn rolled(&self) -> Option<&str> {
        self.state()?;
        revision(self.candidate.as_ref()).or_else(|| revision(self.champion.as_ref()))
    }

    fn failed_in_place(&self) -> bool {
        self.state() == Some(RolloutState::Paused)
            && self
                .rolled()
                .is_some_and(|revision| self.rejection(revision).is_some())
    }
}
