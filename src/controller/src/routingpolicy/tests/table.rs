use jiff::Timestamp;

use super::super::Kept;
use super::super::documents::Document;
use super::*;
use crate::failure::Failure;
use crate::reconciler::Requeue;

fn document(name: &str, owner: &str, created: &str, version: u64) -> Document {
    Document {
        name: name.to_owned(),
        uid: format!("uid of {name}"),
        owner: Some(owner.to_owned()),
        created: created.parse().unwrap(),
        version,
    }
}

fn seen(wanted: Presence) -> Observation {
    Observation {
        wanted,
        documents: Vec::new(),
    }
}

/// A policy whose first spec is in force.
fn settled(spec: &Value) -> RoutingPolicyStatus {
    let policy = policy(spec, 1, None);
    let plan = planned(&policy, ServerState::Unnamed, seen(Presence::Stored));
    plan.status.get().clone()
}

#[test]
fn each_state_has_its_conditions_actions_and_time() {
    let store = |spec: &Value| {
        vec![Action::StoreRevision {
            revision: revision(spec),
        }]
    };
    let name = format!("rp-team-{}", revision(&good(1)));
    let unusable = Presence::Unusable {
        name: name.clone(),
        uid: "u9".to_owned(),
    };
    let delete = Action::DeleteRevision {
        name: name.clone(),
        uid: "u9".to_owned(),
        because: Kept::Unusable,
    };
    let new = policy(&good(1), 1, None);
    let edited = policy(&good(1), 2, Some(settled(&good(0))));
    let progressing = "Reconciling=True/Progressing";
    for (row, object, wanted, actions, conditions, requeue) in [
        ("Storing, first", &new, Presence::Absent, store(&good(1)), vec!["Ready=False/Waiting", progressing], Requeue::Waiting),
        ("Storing, an edit", &edited, Presence::Absent, store(&good(1)), vec!["Accepted=True/Accepted", "Ready=True/Reconciled", progressing], Requeue::Waiting),
        ("Settled", &edited, Presence::Stored, vec![], vec!["Accepted=True/Accepted", "Ready=True/Reconciled"], Requeue::Steady),
        ("Storing, of another owner", &new, unusable, vec![delete], vec!["Ready=False/Waiting", progressing], Requeue::Waiting),
        ("Storing, the old one still goes", &new, Presence::Leaving { name: name.clone() }, vec![], vec!["Ready=False/Waiting", progressing], Requeue::Waiting),
        ("NameTaken", &new, Presence::Stranger { name }, vec![], vec!["Ready=False/NameTaken", "Stalled=True/NameTaken"], Requeue::Stalled),
    ] {
        let plan = planned(object, ServerState::Unnamed, seen(wanted));
        assert_eq!(plan.actions, actions, "{row}");
        assert_eq!(told(plan.status.get()), conditions, "{row}");
        assert_eq!(plan.requeue, requeue, "{row}");
    }
}

#[test]
fn accepted_revision_is_named_only_when_its_document_was_seen() {
    let new = policy(&good(1), 1, None);
    let storing = planned(&new, ServerState::Unnamed, seen(Presence::Absent));
    assert_eq!(storing.status.get().accepted_revision, None);
    let edited = policy(&good(1), 2, Some(settled(&good(0))));
    let storing = planned(&edited, ServerState::Unnamed, seen(Presence::Absent));
    let status = storing.status.get();
    assert_eq!(status.accepted_revision, Some(revision(&good(0))), "the old one is in force");
    assert_eq!((status.accepted_generation, status.observed_generation), (Some(1), Some(1)));
    let stored = planned(&edited, ServerState::Unnamed, seen(Presence::Stored));
    let status = stored.status.get();
    assert_eq!(status.accepted_revision, Some(revision(&good(1))));
    assert_eq!((status.accepted_generation, status.observed_generation), (Some(2), Some(2)));
}

#[test]
fn every_reason_of_a_refusal_is_told_with_the_path() {
    let empty_tier = {
        let mut policy = policy(&json!({"tiers": [{"name": "fast", "models": ["acme/a"]}]}), 3, Some(settled(&good(0))));
        policy.spec.tiers[0].models.clear();
        policy
    };
    let refused = |spec: &Value| policy(spec, 3, Some(settled(&good(0))));
    for (reason, object, path) in [
        ("UnknownModel", refused(&json!({"models": [{"ref": "acme/a"}], "tiers": [{"name": "fast", "models": ["acme/b"]}]})), "spec.tiers[fast].models"),
        ("BadPattern", refused(&json!({"rules": [{"id": "r", "patterns": ["a*b"]}]})), "spec.rules[0].patterns[0]"),
        ("EmptyTier", empty_tier, "spec.tiers"),
        ("InvalidSpec", refused(&json!({"disabledRules": ["pay"]})), "spec.disabledRules[0]"),
    ] {
        let plan = planned(&object, ServerState::Unnamed, seen(Presence::Absent));
        let status = plan.status.get();
        let expected = [
            format!("Accepted=False/{reason}"),
            format!("Ready=False/{reason}"),
            format!("Stalled=True/{reason}"),
        ];
        assert_eq!(told(status), expected);
        assert_eq!(status.problems[0].path, path);
        assert_eq!(status.accepted_revision, Some(revision(&good(0))), "{reason}: it stays in force");
        assert_eq!((status.observed_generation, status.accepted_generation), (Some(3), Some(1)));
        assert_eq!((plan.actions, plan.requeue), (vec![], Requeue::Stalled));
        assert_eq!(plan.events.len(), 1, "{reason}");
        let again = policy(&json!({}), 3, Some(status.clone()));
        let again = RoutingPolicy { spec: object.spec.clone(), ..again };
        let plan = planned(&again, ServerState::Unnamed, seen(Presence::Absent));
        assert_eq!((plan.events, plan.status.get()), (vec![], status), "{reason}: told once");
    }
}

#[test]
fn every_warning_is_the_reason_of_an_accepted_policy() {
    let priced = |as_of: &str| {
        json!({
            "tiers": [{"name": "fast", "models": ["acme/a"]}],
            "models": [{"ref": "acme/a", "prices": {"input": "1", "output": "5", "asOf": as_of, "source": "list"}}],
        })
    };
    let unpriced = json!({"tiers": [{"name": "fast", "models": ["acme/a"]}], "models": [{"ref": "acme/a"}]});
    let not_found = || ServerState::NotFound { name: "main".to_owned() };
    let other = ServerState::OtherContract { name: "main".to_owned() };
    for (reason, spec, server, problems) in [
        ("Accepted", priced("2026-11-01"), ServerState::Fine, 0),
        ("MissingPrice", unpriced.clone(), ServerState::Fine, 1),
        ("StalePrice", priced("2026-08-01"), ServerState::Fine, 1),
        ("UnusedModel", json!({"models": [{"ref": "acme/lost"}]}), ServerState::Fine, 1),
        ("ReferenceNotFound", good(1), not_found(), 1),
        ("ContractMismatch", good(1), other, 1),
        ("ReferenceNotFound", unpriced, not_found(), 2),
    ] {
        let policy = policy(&spec, 1, None);
        let plan = planned(&policy, server, seen(Presence::Stored));
        let status = plan.status.get();
        assert_eq!(told(status), [format!("Accepted=True/{reason}"), "Ready=True/Reconciled".to_owned()]);
        assert_eq!(status.problems.len(), problems, "{reason}");
    }
}

#[test]
fn a_deleted_policy_is_left_alone() {
    let mut policy = policy(&good(1), 2, Some(settled(&good(0))));
    policy.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-30T10:00:00Z")).unwrap();
    let plan = planned(&policy, ServerState::Unnamed, seen(Presence::Absent));
    assert_eq!((plan.actions, plan.requeue), (vec![], Requeue::Never));
    assert_eq!(told(plan.status.get()), ["Accepted=True/Accepted", "Ready=False/Deleting"]);
}

#[test]
fn fault_04_a_failure_that_only_somebody_can_mend_is_told_and_keeps_what_is_in_force() {
    let policy = policy(&good(1), 2, Some(settled(&good(0))));
    let failure = Failure::Forbidden {
        verb: "create",
        resource: "ControllerRevision rp-team-1".to_owned(),
        message: "no".to_owned(),
    };
    let status = RoutingPolicies::failed(&policy, &Seen::of(failure), &now());
    assert_eq!(told(status.get()), ["Accepted=True/Accepted", "Ready=False/Forbidden", "Stalled=True/Forbidden"]);
    assert_eq!(status.get().accepted_revision, Some(revision(&good(0))));
    assert!(status.get().conditions.iter().any(|condition| condition.message.contains("create ControllerRevision")));
}

#[test]
fn documents_beyond_ten_go_one_at_a_time_and_never_the_one_in_force() {
    let in_force = format!("rp-team-{}", revision(&good(0)));
    let mut documents: Vec<_> = (1..=11)
        .map(|at| document(&format!("rp-team-{at:02}"), UID, &format!("2026-11-30T09:10:{at:02}Z"), 100 + at))
        .collect();
    // In force and the oldest of all: an edit back to what was there first.
    documents.push(document(&in_force, UID, "2026-11-30T09:00:01Z", 90));
    let prune = |documents: &[Document]| {
        let policy = policy(&good(0), 1, Some(settled(&good(0))));
        let observation = Observation {
            wanted: Presence::Stored,
            documents: documents.to_vec(),
        };
        planned(&policy, ServerState::Unnamed, observation).actions
    };
    let removed = |actions: &[Action]| match actions {
        [Action::DeleteRevision { name, because, .. }] => Some((name.clone(), *because)),
        [] => None,
        more => panic!("{more:?}"),
    };
    assert_eq!(removed(&prune(&documents)), Some(("rp-team-01".to_owned(), Kept::TooOld)));
    documents.retain(|document| document.name != "rp-team-01");
    assert_eq!(removed(&prune(&documents)), None, "ten and the one in force");
    documents.push(document("rp-team-old", "another uid", "2026-11-30T08:00:00Z", 30));
    documents.push(document("rp-team-next", "a successor's uid", "2026-11-30T09:30:00Z", 200));
    assert_eq!(removed(&prune(&documents)), Some(("rp-team-old".to_owned(), Kept::OtherOwner)));
    documents.retain(|document| document.name != "rp-team-old");
    assert_eq!(removed(&prune(&documents)), None, "what came after this policy is not ours to judge");
}

#[test]
fn nothing_is_removed_in_the_pass_that_changes_what_is_in_force() {
    let documents: Vec<_> = (1..=15)
        .map(|at| document(&format!("rp-team-{at:02}"), UID, "2026-11-30T09:10:00Z", at))
        .collect();
    let policy = policy(&good(1), 2, Some(settled(&good(0))));
    let observation = Observation {
        wanted: Presence::Stored,
        documents,
    };
    let plan = planned(&policy, ServerState::Unnamed, observation);
    assert_eq!(plan.status.get().accepted_revision, Some(revision(&good(1))));
    assert_eq!(plan.actions, []);
}

#[test]
fn many_problems_are_counted_where_they_do_not_fit() {
    let rules: Vec<_> = (0..128).map(|at| json!({"id": format!("r{at}"), "patterns": ["a*b"]})).collect();
    let policy = policy(&json!({"rules": rules}), 1, None);
    let plan = planned(&policy, ServerState::Unnamed, seen(Presence::Absent));
    let status = plan.status.get();
    assert_eq!(status.problems.len(), 32);
    assert_eq!(status.problems[31].message, "97 more; correct these first");
    assert!(status.conditions.iter().all(|condition| condition.message.chars().count() <= 1_024));
    assert!(status.conditions[0].message.ends_with("no revision is in force. Correct the spec"));
}

#[test]
fn times_are_whole_seconds_and_move_with_the_status_of_a_condition_only() {
    let status = settled(&good(0));
    let second: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
    assert!(status.conditions.iter().all(|condition| condition.last_transition_time == second));
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!(ready.status, ConditionStatus::True);
}

#[test]
fn a_compiled_policy_says_what_is_in_it() {
    let policy = policy(
        &json!({"tiers": [{"name": "fast", "models": ["acme/a", "acme/b"]}], "rules": [{"id": "r", "patterns": ["gdpr"]}]}),
        1,
        None,
    );
    let Verdict::Accepts { summary, .. } = checked(&policy, ServerState::Unnamed).compiled.verdict.clone() else {
        panic!("it compiles");
    };
    assert_eq!((summary.tiers, summary.rules), (4, 1));
    assert!(summary.models > 2, "those of the other tiers are the built-in ones");
}
