//! Conditions as they are written (control-plane 1.3): `lastTransitionTime` moves with `status` only, abnormal ones are
//! removed when they do not hold, messages are bounded.

use api::condition::ConditionType;
use api::kinds::{Condition, ConditionStatus, MAX_MESSAGE};
use api::reason::Reason;
use jiff::Timestamp;

use crate::clock::whole_seconds;

/// The conditions an object has, being changed to those it should have.
#[derive(Debug, Clone)]
pub struct Conditions {
    list: Vec<Condition>,
    generation: Option<i64>,
    at: Timestamp,
}

impl Conditions {
    /// Starts from what is there.
    #[must_use]
    pub fn of(list: &[Condition], generation: Option<i64>, wall: Timestamp) -> Self {
        Self {
            list: list.to_vec(),
            generation,
            at: whole_seconds(wall),
        }
    }

    /// States a condition about the generation at hand.
    pub fn set(
        &mut self,
        kind: ConditionType,
        status: ConditionStatus,
        reason: Reason,
        message: impl Into<String>,
    ) {
        let mut condition = Condition {
            type_: kind.as_str().to_owned(),
            status,
            observed_generation: self.generation,
            last_transition_time: self.at,
            reason: reason.as_str().to_owned(),
            message: bounded(message.into(), MAX_MESSAGE),
        };
        match self
            .list
            .iter_mut()
            .find(|old| old.type_ == condition.type_)
        {
            Some(old) => {
                if old.status == condition.status {
                    condition.last_transition_time = old.last_transition_time;
                }
                *old = condition;
            }
            None => self.list.push(condition),
        }
    }

    /// The condition is not stated any more.
    pub fn remove(&mut self, kind: ConditionType) {
        self.list
            .retain(|condition| condition.type_ != kind.as_str());
    }

    /// Nothing goes on any more until somebody changes something.
    pub fn stall(&mut self, reason: Reason, message: &str) {
        self.remove(ConditionType::Reconciling);
        self.set(
            ConditionType::Stalled,
            ConditionStatus::True,
            reason,
            message,
        );
    }

    /// The same, and the object does not do its work.
    pub fn fail(&mut self, reason: Reason, message: &str) {
        self.stall(reason, message);
        self.set(
            ConditionType::Ready,
            ConditionStatus::False,
            reason,
            message,
        );
    }

    /// As the object should have them: in the order of [`ConditionType::ALL`], so that the same state is the same status
    /// however it was reached. Types of a newer program come last.
    #[must_use]
    pub fn into_list(mut self) -> Vec<Condition> {
        let known = |condition: &Condition| {
            let all = ConditionType::ALL.iter();
            let at = all
                .clone()
                .position(|kind| kind.as_str() == condition.type_);
            at.unwrap_or(all.len())
        };
        self.list.sort_by_key(known);
        self.list
    }
}

/// A condition of a list.
#[must_use]
pub fn find(list: &[Condition], kind: ConditionType) -> Option<&Condition> {
    list.iter()
        .find(|condition| condition.type_ == kind.as_str())
}

/// At most `limit` characters; says so where it cuts.
#[must_use]
pub fn bounded(text: String, limit: usize) -> String {
    const CUT: &str = " … (cut)";
    if text.len() <= limit || text.chars().count() <= limit {
        return text;
    }
    let kept = limit.saturating_sub(CUT.chars().count());
    let mut cut: String = text.chars().take(kept).collect();
    cut.push_str(CUT);
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    #[test]
    fn the_time_of_a_condition_moves_with_its_status_only() {
        let mut first = Conditions::of(&[], Some(1), at("2026-11-30T10:00:00.7Z"));
        first.set(
            ConditionType::Ready,
            ConditionStatus::False,
            Reason::Waiting,
            "waits",
        );
        let first = first.into_list();
        let mut second = Conditions::of(&first, Some(2), at("2026-11-30T10:05:00Z"));
        second.set(
            ConditionType::Ready,
            ConditionStatus::False,
            Reason::InvalidSpec,
            "is wrong",
        );
        let second = second.into_list();
        assert_eq!(second[0].last_transition_time, at("2026-11-30T10:00:00Z"));
        assert_eq!(
            (second[0].observed_generation, second[0].reason.as_str()),
            (Some(2), "InvalidSpec")
        );
        let mut third = Conditions::of(&second, Some(2), at("2026-11-30T10:10:00Z"));
        third.set(
            ConditionType::Ready,
            ConditionStatus::True,
            Reason::Reconciled,
            "works",
        );
        assert_eq!(
            third.clone().into_list()[0].last_transition_time,
            at("2026-11-30T10:10:00Z")
        );
        third.remove(ConditionType::Ready);
        assert!(third.into_list().is_empty());
    }

    #[test]
    fn what_fails_is_not_ready_and_nothing_goes_on() {
        let mut conditions = Conditions::of(&[], Some(1), at("2026-11-30T10:00:00Z"));
        conditions.set(
            ConditionType::Reconciling,
            ConditionStatus::True,
            Reason::Progressing,
            "goes on",
        );
        conditions.fail(Reason::Forbidden, "may not");
        let list = conditions.into_list();
        assert!(find(&list, ConditionType::Reconciling).is_none());
        for (kind, status) in [
            (ConditionType::Ready, ConditionStatus::False),
            (ConditionType::Stalled, ConditionStatus::True),
        ] {
            let said = find(&list, kind).unwrap();
            assert_eq!(
                (said.status, said.reason.as_str(), said.message.as_str()),
                (status, "Forbidden", "may not")
            );
        }
    }

    #[test]
    fn the_order_does_not_tell_how_a_state_was_reached() {
        use ConditionType::{Accepted, Ready, Stalled};
        let order = |kinds: [ConditionType; 3]| {
            let mut conditions = Conditions::of(&[], Some(1), at("2026-11-30T10:00:00Z"));
            for kind in kinds {
                conditions.set(kind, ConditionStatus::True, Reason::Observed, "");
            }
            conditions.into_list()
        };
        assert_eq!(
            order([Accepted, Ready, Stalled]),
            order([Stalled, Accepted, Ready])
        );
    }

    #[test]
    fn a_long_message_is_cut_and_says_so() {
        let long = bounded("ü".repeat(2_000), MAX_MESSAGE);
        assert_eq!(long.chars().count(), MAX_MESSAGE);
        assert!(long.ends_with("… (cut)"));
        assert_eq!(
            bounded("ü".repeat(1_024), MAX_MESSAGE).chars().count(),
            MAX_MESSAGE
        );
    }
}
