//! What is said when a pass could not go on because of something that only somebody can change, or that has a word of its
//! own. Facts stay as they are.

use api::condition::ConditionType;
use api::kinds::{ConditionStatus, LayaServer, LayaServerStatus};
use api::reason::Reason;

use super::plan;
use crate::clock::Now;
use crate::conditions::Conditions;
use crate::failure::{Failure, Remedy};
use crate::reconciler::EventDraft;

pub(super) fn failed(server: &LayaServer, failure: &Failure, now: &Now) -> LayaServerStatus {
    let before = server.status.clone().unwrap_or_default();
    let reason = failure.reason().unwrap_or(Reason::Waiting);
    let message = failure.to_string();
    let generation = server.metadata.generation;
    let mut conditions = Conditions::of(&before.conditions, generation, now.wall);
    // What waiting helps against is no stall, and the version that serves goes on.
    if failure.remedy() == Remedy::Change {
        conditions.stall(reason, &message);
    } else {
        conditions.set(
            ConditionType::Reconciling,
            ConditionStatus::True,
            Reason::Progressing,
            format!("{message}. It is tried again"),
        );
    }
    let about = match reason {
        // Words of a start that does not happen.
        Reason::NameTaken
        | Reason::PortInUse
        | Reason::NoSpace
        | Reason::GpuUnavailable
        | Reason::SecretMissing
        | Reason::ImageNotFound
        | Reason::ImagePullUnauthorized
        | Reason::ImagePullBusy
        | Reason::ImagePullInterrupted
        | Reason::ImagePlatformMismatch
            if before.champion.is_some() =>
        {
            ConditionType::RolledOut
        }
        _ => ConditionType::Ready,
    };
    conditions.set(about, ConditionStatus::False, reason, message);
    LayaServerStatus {
        observed_generation: generation,
        conditions: conditions.into_list(),
        ..before
    }
}

/// The event of a failure that nothing said before: the next plan finds its reason on a condition and does not tell it again.
pub(super) fn event(server: &LayaServer, failure: &Failure) -> Option<EventDraft> {
    let said = failure.reason()?;
    let reason = plan::event_of(said)?;
    let status = server.status.as_ref();
    let mut before = status.iter().flat_map(|status| &status.conditions);
    let is_new = !before.any(|condition| condition.reason == said.as_str());
    is_new.then(|| EventDraft {
        reason,
        note: failure.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use backend::BackendError;
    use serde_json::json;

    use super::*;
    use crate::clock::{Clock, SystemClock};
    use crate::conditions::find;

    fn server(champion: bool) -> LayaServer {
        let status = if champion {
            json!({"champion": {"revision": "r1"}, "traffic": {"generation": 4}})
        } else {
            json!({})
        };
        let object = json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
            "metadata": {"name": "main", "namespace": "space", "generation": 2},
            "spec": {"modelRef": {"name": "v1"}}, "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    fn refused(reason: Reason) -> Failure {
        Failure::Engine(BackendError::Refused {
            what: "create relay-1-main".to_owned(),
            reason,
            message: "`other` has it".to_owned(),
        })
    }

    #[test]
    fn fault_19_a_stranger_in_the_way_is_named_and_what_serves_goes_on() {
        let now = SystemClock.now();
        for (champion, about) in [
            (true, ConditionType::RolledOut),
            (false, ConditionType::Ready),
        ] {
            let before = server(champion);
            let status = failed(&before, &refused(Reason::NameTaken), &now);
            let said = find(&status.conditions, about).unwrap();
            assert_eq!(
                (said.status, said.reason.as_str()),
                (ConditionStatus::False, "NameTaken")
            );
            assert!(said.message.contains("`other` has it"));
            assert!(find(&status.conditions, ConditionType::Stalled).is_none());
            let facts = before.status.unwrap();
            assert_eq!(
                (status.champion, status.traffic),
                (facts.champion, facts.traffic)
            );
            assert_eq!(status.observed_generation, Some(2));
        }
    }

    #[test]
    fn what_an_action_finds_first_is_told_once() {
        use api::event::EventReason;

        let now = SystemClock.now();
        for (reason, expected) in [
            (Reason::NameTaken, Some(EventReason::NameTaken)),
            (Reason::PortInUse, Some(EventReason::PortInUse)),
            (Reason::NoSpace, None),
        ] {
            let mut server = server(true);
            let failure = refused(reason);
            let told = event(&server, &failure);
            let note = told.as_ref().map(|event| event.note.clone());
            assert_eq!(told.map(|event| event.reason), expected, "{reason:?}");
            assert!(note.is_none_or(|note| note.contains("`other` has it")));
            server.status = Some(failed(&server, &failure, &now));
            assert_eq!(event(&server, &failure), None, "{reason:?}");
        }
    }

    #[test]
    fn fault_04_a_right_that_is_missing_stalls() {
        let forbidden = Failure::Forbidden {
            verb: "create",
            resource: "ControllerRevision ls-main-1".to_owned(),
            message: "no".to_owned(),
        };
        let status = failed(&server(true), &forbidden, &SystemClock.now());
        let stalled = find(&status.conditions, ConditionType::Stalled).unwrap();
        assert_eq!(stalled.reason, "Forbidden");
        let ready = find(&status.conditions, ConditionType::Ready).unwrap();
        assert_eq!(ready.status, ConditionStatus::False);
    }
}
