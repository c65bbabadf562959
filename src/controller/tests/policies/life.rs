//! What becomes of a policy that nobody disturbs.

use api::kinds::ConditionStatus;
use controller::metrics::{PassResult, WriteResult};
use controller::routingpolicy::{document_spec, revision_of};
use kube::ResourceExt;
use serde_json::json;

use crate::on_both;
use crate::world::{World, bad, condition, good, in_force, message, revision, until};

on_both! {
    a_policy_is_stored_and_then_in_force;
    a_bad_edit_is_refused_and_changes_nothing_in_service;
    the_newest_ten_revisions_are_kept;
    an_edit_back_uses_the_stored_revision;
    a_server_that_is_not_there_is_a_warning_until_it_is;
    a_start_over_settled_policies_writes_nothing;
    fault_12_a_policy_that_is_being_deleted_is_left_alone;
    fault_13_the_same_name_with_another_uid_does_not_adopt;
    fault_14_a_stored_revision_that_somebody_deletes_is_stored_again;
}

async fn a_policy_is_stored_and_then_in_force(world: World) {
    let running = world.start();
    world.create("team", &good(1)).await;
    let policy = world.until_in_force("team").await;
    let revision = revision(&policy).unwrap();
    assert_eq!(revision, revision_of(&policy.spec));
    assert_eq!(condition(&policy, "Accepted"), Some((ConditionStatus::True, "Accepted".to_owned())));
    assert_eq!(condition(&policy, "Stalled"), None);
    assert_eq!(condition(&policy, "Reconciling"), None);
    let document = world.revisions().get(&format!("rp-team-{revision}")).await.unwrap();
    assert_eq!(document_spec(&document).as_ref(), Some(&policy.spec));
    let owner = &document.owner_references()[0];
    assert_eq!(Some(&owner.uid), policy.metadata.uid.as_ref());
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(false)));
    let events = until("the event is there", || async {
        let events = world.events("team").await;
        if events.is_empty() { Err(events) } else { Ok(events) }
    })
    .await;
    assert_eq!(events, [("PolicyAccepted".to_owned(), format!("revision {revision} is in force"))]);
    running.end().await;
}

async fn a_bad_edit_is_refused_and_changes_nothing_in_service(world: World) {
    let running = world.start();
    world.create("team", &good(1)).await;
    let before = world.until_in_force("team").await;
    let generation = world.edit("team", &bad()).await;
    let refused = world
        .until("team", "the edit is refused", |policy| {
            condition(policy, "Accepted") == Some((ConditionStatus::False, "UnknownModel".to_owned()))
        })
        .await;
    assert_eq!(revision(&refused), revision(&before));
    assert_eq!(condition(&refused, "Stalled"), Some((ConditionStatus::True, "UnknownModel".to_owned())));
    assert_eq!(condition(&refused, "Ready"), Some((ConditionStatus::False, "UnknownModel".to_owned())));
    let status = refused.status.clone().unwrap();
    assert_eq!((status.observed_generation, status.accepted_generation), (Some(generation), Some(1)));
    assert_eq!(status.problems[0].path, "spec.tiers[fast].models");
    let told = message(&refused, "Accepted");
    let in_force = format!("revision {} stays in force. Correct the spec", revision(&before).unwrap());
    assert!(told.ends_with(&in_force), "{told}");
    assert_eq!(world.stored("team").await.len(), 1);
    until("the refusal is told", || async {
        let events = world.events("team").await;
        let refused = events.iter().any(|(reason, note)| reason == "PolicyRefused" && note.contains("acme/other"));
        if refused { Ok(()) } else { Err(events) }
    })
    .await;
    world.edit("team", &json!({"models": null, "tiers": null})).await;
    let healed = world.until_in_force("team").await;
    assert_eq!(revision(&healed), revision(&before), "the same spec is the same revision");
    assert_eq!(condition(&healed, "Stalled"), None);
    running.end().await;
}

async fn the_newest_ten_revisions_are_kept(world: World) {
    let running = world.start();
    world.create("team", &good(0)).await;
    let mut revisions = vec![revision(&world.until_in_force("team").await).unwrap()];
    for number in 1..=12 {
        world.edit("team", &good(number)).await;
        revisions.push(revision(&world.until_in_force("team").await).unwrap());
    }
    let mut kept: Vec<_> = revisions[3..].iter().map(|revision| format!("rp-team-{revision}")).collect();
    kept.sort();
    until("ten are left", || async {
        let stored = world.stored("team").await;
        if stored == kept { Ok(()) } else { Err(stored) }
    })
    .await;
    running.end().await;
}

async fn an_edit_back_uses_the_stored_revision(world: World) {
    let running = world.start();
    world.create("team", &good(1)).await;
    let first = world.until_in_force("team").await;
    world.edit("team", &good(2)).await;
    world.until_in_force("team").await;
    world.edit("team", &good(1)).await;
    let back = world.until_in_force("team").await;
    assert_eq!(revision(&back), revision(&first));
    assert_eq!(world.stored("team").await.len(), 2);
    running.end().await;
}

async fn a_server_that_is_not_there_is_a_warning_until_it_is(world: World) {
    let running = world.start();
    world.create("team", &json!({"serverRef": {"name": "main"}})).await;
    let policy = world.until_in_force("team").await;
    assert_eq!(condition(&policy, "Accepted"), Some((ConditionStatus::True, "ReferenceNotFound".to_owned())));
    assert_eq!(policy.status.unwrap().problems[0].path, "spec.serverRef");
    let server = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
        "metadata": {"name": "main"}, "spec": {"modelRef": {"name": "first"}},
    });
    let url = format!("/apis/relay.dev/v1alpha1/namespaces/{}/layaservers", world.namespace);
    let create = http::Request::post(url)
        .header("content-type", "application/json")
        .body(server.to_string().into_bytes())
        .unwrap();
    let _: serde_json::Value = world.client.request(create).await.unwrap();
    world
        .until("team", "the server is found", |policy| {
            condition(policy, "Accepted") == Some((ConditionStatus::True, "Accepted".to_owned()))
        })
        .await;
    running.end().await;
}

async fn a_start_over_settled_policies_writes_nothing(world: World) {
    let running = world.start();
    for name in ["one", "two", "three"] {
        world.create(name, &good(1)).await;
    }
    world.edit("three", &bad()).await;
    for name in ["one", "two"] {
        world.until_in_force(name).await;
    }
    world.until("three", "it is refused", |policy| condition(policy, "Stalled").is_some()).await;
    running.end().await;
    let version = |policy: &api::kinds::RoutingPolicy| policy.metadata.resource_version.clone();
    let before = [version(&world.policy("one").await), version(&world.policy("three").await)];
    let running = world.start();
    let metrics = running.metrics.clone();
    until("all passed", || async {
        let passed = |result| metrics.passes("RoutingPolicy", result);
        let seen = (passed(PassResult::Unchanged), passed(PassResult::Stalled), passed(PassResult::Changed));
        if seen.0 >= 2 && seen.1 >= 1 { Ok(()) } else { Err(seen) }
    })
    .await;
    for result in [WriteResult::Written, WriteResult::Conflict, WriteResult::Refused, WriteResult::Error] {
        assert_eq!(metrics.status_writes("RoutingPolicy", result), 0, "{result:?}");
    }
    assert_eq!(metrics.passes("RoutingPolicy", PassResult::Changed), 0);
    assert_eq!([version(&world.policy("one").await), version(&world.policy("three").await)], before);
    assert!(running.readiness.report().ready);
    running.end().await;
}

async fn fault_12_a_policy_that_is_being_deleted_is_left_alone(world: World) {
    let running = world.start();
    world.create("team", &good(1)).await;
    world.until_in_force("team").await;
    let hold = kube::api::Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    let params = kube::api::PatchParams::default();
    world.policies().patch("team", &params, &hold).await.unwrap();
    world.policies().delete("team", &kube::api::DeleteParams::default()).await.unwrap();
    let leaving = world
        .until("team", "it is deleting", |policy| {
            condition(policy, "Ready") == Some((ConditionStatus::False, "Deleting".to_owned()))
        })
        .await;
    for document in world.stored("team").await {
        world.revisions().delete(&document, &kube::api::DeleteParams::default()).await.unwrap();
    }
    assert!(!in_force(&leaving));
    let free = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.policies().patch("team", &params, &free).await.unwrap();
    until("it is gone", || async {
        let left = world.policies().get_opt("team").await.unwrap();
        if left.is_none() { Ok(()) } else { Err(left) }
    })
    .await;
    running.end().await;
    assert_eq!(world.stored("team").await, [""; 0], "nothing is created again");
}

async fn fault_13_the_same_name_with_another_uid_does_not_adopt(world: World) {
    let running = world.start();
    world.create("team", &good(1)).await;
    world.until_in_force("team").await;
    world.edit("team", &good(2)).await;
    world.until_in_force("team").await;
    world.delete("team").await;
    let again = world.create("team", &good(1)).await;
    let policy = world.until_in_force("team").await;
    assert_eq!(policy.metadata.uid, again.metadata.uid);
    let name = format!("rp-team-{}", revision(&policy).unwrap());
    until("only its own document is left", || async {
        let stored = world.stored("team").await;
        if stored == [name.clone()] { Ok(()) } else { Err(stored) }
    })
    .await;
    let document = world.revisions().get(&name).await.unwrap();
    assert_eq!(Some(&document.owner_references()[0].uid), policy.metadata.uid.as_ref());
    running.end().await;
}

async fn fault_14_a_stored_revision_that_somebody_deletes_is_stored_again(world: World) {
    let running = world.start();
    world.create("team", &good(1)).await;
    world.until_in_force("team").await;
    let stored = world.stored("team").await;
    let before = world.revisions().get(&stored[0]).await.unwrap();
    world.revisions().delete(&stored[0], &kube::api::DeleteParams::default()).await.unwrap();
    until("it is there again", || async {
        let found = world.revisions().get_opt(&stored[0]).await.unwrap();
        let other = found.as_ref().is_some_and(|found| found.metadata.uid != before.metadata.uid);
        if other { Ok(()) } else { Err(found.is_some()) }
    })
    .await;
    world.until_in_force("team").await;
    running.end().await;
}
