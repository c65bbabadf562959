//! Faults of engineering.md 14 between the controller and its object source.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::kinds::ConditionStatus;
use controller::client::Deadlines;
use controller::faults::FaultPoints;
use controller::metrics::{PassResult, WatchRestart, WriteResult};
use http::{Method, Request};
use serde_json::json;

use crate::on_both;
use crate::proxy::{Play, Proxy, Watch, watches};
use crate::world::{World, condition, good, message, revision, until};

on_both! {
    fault_01_while_the_api_is_away_nothing_changes_and_then_it_converges;
    fault_02_busy_answers_hold_up_only_what_they_are_about;
    fault_03_a_conflict_is_read_again_and_counted;
    fault_04_a_missing_right_is_told_and_heals;
    fault_05_an_expired_watch_lists_again_and_sees_what_went;
    fault_06_a_silent_watch_is_replaced;
    fault_39_an_api_that_is_away_from_the_start_is_one_series_of_errors_of_each_watch;
    fault_08_events_twice_and_out_of_order_have_the_same_end;
    fault_36_an_object_that_is_not_understood_is_told_so_and_skipped;
    fault_36_a_field_that_the_server_drops_is_told_at_the_object;
}

/// Waits short enough for a test.
const SHORT: Deadlines = Deadlines {
    call: Duration::from_secs(2),
    watch_idle: Duration::from_millis(300),
    watch_age: Duration::from_secs(20),
};

async fn fault_01_while_the_api_is_away_nothing_changes_and_then_it_converges(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    let running = world.start_with(client, FaultPoints::none(), Deadlines::default());
    world.create("team", &good(1)).await;
    let before = world.until_in_force("team").await;
    // Gone in the middle of a pass: the watch still brings the edit, every other call fails.
    proxy.play(|_, uri| {
        if uri.contains("watch=true") {
            Play::Pass
        } else {
            Play::Refuse
        }
    });
    world.edit("team", &good(2)).await;
    let metrics = running.metrics.clone();
    until("passes fail", || async {
        let failed = metrics.passes("RoutingPolicy", PassResult::Error);
        if failed >= 2 { Ok(()) } else { Err(failed) }
    })
    .await;
    assert_eq!(
        world.policy("team").await.status,
        before.status,
        "conditions are unchanged"
    );
    proxy.heal();
    world.until_in_force("team").await;
    running.end().await;
}

async fn fault_02_busy_answers_hold_up_only_what_they_are_about(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    proxy.play(|_, uri| {
        if uri.contains("rp-busy-") {
            Play::Answer(503, Some(1))
        } else {
            Play::Pass
        }
    });
    let running = world.start_with(client, FaultPoints::none(), Deadlines::default());
    world.create("busy", &good(1)).await;
    for name in ["one", "two", "three", "four", "five"] {
        world.create(name, &good(1)).await;
    }
    for name in ["one", "two", "three", "four", "five"] {
        world.until_in_force(name).await;
    }
    assert_eq!(revision(&world.policy("busy").await), None);
    proxy.heal();
    world.until_in_force("busy").await;
    running.end().await;
}

async fn fault_03_a_conflict_is_read_again_and_counted(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    world.create("team", &good(1)).await;
    // Somebody writes between what the pass read and what it writes.
    let url = format!(
        "/apis/relay.dev/v1alpha1/namespaces/{}/routingpolicies/team",
        world.namespace
    );
    let patch = json!({"metadata": {"annotations": {"example.com/touched": "yes"}}, "spec": {"memory": false}});
    let between = Request::patch(url)
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes())
        .unwrap();
    let between = Arc::new(Mutex::new(Some(between)));
    proxy.play(move |method, uri| {
        if *method == Method::PATCH && uri.contains("/status") {
            Play::Before(between.clone())
        } else {
            Play::Pass
        }
    });
    let running = world.start_with(client, FaultPoints::none(), Deadlines::default());
    let policy = world
        .until("team", "the edit in between is in force", |policy| {
            !policy.spec.memory && crate::world::in_force(policy)
        })
        .await;
    assert_eq!(
        policy.metadata.annotations.unwrap()["example.com/touched"],
        "yes",
        "no update is lost"
    );
    assert_eq!(
        running
            .metrics
            .status_writes("RoutingPolicy", WriteResult::Conflict),
        1
    );
    running.end().await;
}

async fn fault_04_a_missing_right_is_told_and_heals(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    proxy.play(|method, uri| {
        if *method == Method::POST && uri.contains("/controllerrevisions") {
            Play::Answer(403, None)
        } else {
            Play::Pass
        }
    });
    let running = world.start_with(client, FaultPoints::none(), Deadlines::default());
    world.create("team", &good(1)).await;
    let stalled = world
        .until("team", "it is told", |policy| {
            condition(policy, "Stalled") == Some((ConditionStatus::True, "Forbidden".to_owned()))
        })
        .await;
    let told = message(&stalled, "Stalled");
    assert!(
        told.contains("not allowed to create ControllerRevision rp-team-"),
        "{told}"
    );
    assert_eq!(condition(&stalled, "Reconciling"), None);
    let tried = running
        .metrics
        .requests("create", "ControllerRevision", "403");
    assert!(tried <= 2, "no hot loop: {tried}");
    proxy.heal();
    // A change of any kind looks again at once; otherwise ten minutes do.
    world.edit("team", &good(2)).await;
    let policy = world.until_in_force("team").await;
    assert_eq!(condition(&policy, "Stalled"), None);
    running.end().await;
}

async fn fault_05_an_expired_watch_lists_again_and_sees_what_went(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    let running = world.start_with(client, FaultPoints::none(), SHORT);
    world.create("team", &good(1)).await;
    let policy = world.until_in_force("team").await;
    let document = format!("rp-team-{}", revision(&policy).unwrap());
    // The watch of documents says nothing while one is deleted, and then that it is too old.
    proxy.play(|_, uri| {
        if watches(uri, "controllerrevisions") {
            Play::Watch(Watch::Expired)
        } else {
            Play::Pass
        }
    });
    let metrics = running.metrics.clone();
    until("the watch has expired", || async {
        let expired = metrics.watch_restarts("ControllerRevision", WatchRestart::Expired);
        if expired >= 1 { Ok(()) } else { Err(expired) }
    })
    .await;
    world
        .revisions()
        .delete(&document, &kube::api::DeleteParams::default())
        .await
        .unwrap();
    proxy.heal();
    until("the gap is noticed", || async {
        let stored = world.stored("team").await;
        if stored == [document.clone()] {
            Ok(())
        } else {
            Err(stored)
        }
    })
    .await;
    running.end().await;
}

async fn fault_06_a_silent_watch_is_replaced(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    proxy.play(|_, uri| {
        if watches(uri, "routingpolicies") {
            Play::Watch(Watch::Silent)
        } else {
            Play::Pass
        }
    });
    let running = world.start_with(client, FaultPoints::none(), SHORT);
    let metrics = running.metrics.clone();
    until("the watch is replaced", || async {
        let idle = metrics.watch_restarts("RoutingPolicy", WatchRestart::Idle);
        if idle >= 2 { Ok(()) } else { Err(idle) }
    })
    .await;
    world.create("team", &good(1)).await;
    proxy.heal();
    world.until_in_force("team").await;
    running.end().await;
}

async fn fault_08_events_twice_and_out_of_order_have_the_same_end(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    proxy.play(|_, uri| {
        if uri.contains("watch=true") {
            Play::Watch(Watch::Disordered)
        } else {
            Play::Pass
        }
    });
    let running = world.start_with(client, FaultPoints::none(), Deadlines::default());
    world.create("team", &good(0)).await;
    for number in 1..=5 {
        world.edit("team", &good(number)).await;
    }
    let policy = world.until_in_force("team").await;
    let created = running
        .metrics
        .requests("create", "ControllerRevision", "409");
    assert_eq!(created, 0, "no second create");
    let version = policy.metadata.resource_version.clone();
    running.end().await;
    let again = world.start();
    let metrics = again.metrics.clone();
    until("it passed again", || async {
        let passed = metrics.passes("RoutingPolicy", PassResult::Unchanged);
        if passed >= 1 { Ok(()) } else { Err(passed) }
    })
    .await;
    assert_eq!(
        world.policy("team").await.metadata.resource_version,
        version
    );
    again.end().await;
}

async fn fault_36_an_object_that_is_not_understood_is_told_so_and_skipped(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    world.create("odd", &json!({"profile": "quality"})).await;
    world.create("even", &good(1)).await;
    // As if a newer CRD had given the field another type.
    proxy.play(|method, uri| {
        if *method == Method::GET && uri.contains("/routingpolicies") {
            Play::Replace(
                r#""profile":"quality""#.to_owned(),
                r#""profile":7"#.to_owned(),
            )
        } else {
            Play::Pass
        }
    });
    let running = world.start_with(client, FaultPoints::none(), Deadlines::default());
    world.until_in_force("even").await;
    let odd = world
        .until("odd", "it is told", |policy| {
            condition(policy, "Stalled").is_some()
        })
        .await;
    assert_eq!(
        condition(&odd, "Ready"),
        Some((ConditionStatus::False, "InvalidSpec".to_owned()))
    );
    let told = message(&odd, "Ready");
    assert!(told.contains("spec.profile"), "{told}");
    assert_eq!(
        odd.status.unwrap().observed_generation,
        odd.metadata.generation
    );
    world.edit("even", &good(2)).await;
    world.until_in_force("even").await;
    running.end().await;
    let running = world.start();
    world.until_in_force("odd").await;
    running.end().await;
}

async fn fault_36_a_field_that_the_server_drops_is_told_at_the_object(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    proxy.play(|_, uri| {
        if uri.contains("/openapi/v3") {
            Play::Replace(
                r#""escalateAfterFailures""#.to_owned(),
                r#""escalateAfterDays""#.to_owned(),
            )
        } else {
            Play::Pass
        }
    });
    let running = world.start_with(client, FaultPoints::none(), Deadlines::default());
    world
        .create("team", &json!({"escalateAfterFailures": 5}))
        .await;
    let told = world
        .until("team", "it is told", |policy| {
            condition(policy, "Stalled")
                == Some((ConditionStatus::True, "SchemaMismatch".to_owned()))
        })
        .await;
    let told = message(&told, "Stalled");
    assert!(
        told.contains("spec.escalateAfterFailures") && told.contains("Install the CRDs of relay"),
        "{told}"
    );
    running.end().await;
    let running = world.start();
    world.until_in_force("team").await;
    running.end().await;
}

async fn fault_39_an_api_that_is_away_from_the_start_is_one_series_of_errors_of_each_watch(
    world: World,
) {
    let (client, proxy) = Proxy::before(&world.client);
    proxy.play(|_, _| Play::Refuse);
    let running = world.start_with(client, FaultPoints::none(), Deadlines::default());
    let metrics = running.metrics.clone();
    let failed = |kind| metrics.watch_restarts(kind, WatchRestart::Error);
    until("each watch fails three times", || async {
        let failed = ["RoutingPolicy", "LayaServer", "ControllerRevision"].map(failed);
        if failed.iter().all(|count| *count >= 3) {
            Ok(())
        } else {
            Err(failed)
        }
    })
    .await;
    // The first of each is logged.
    assert!(metrics.process.log_suppressed.get() >= 3 * 2);
    assert!(!running.readiness.report().ready);
    proxy.heal();
    world.create("team", &good(1)).await;
    world.until_in_force("team").await;
    assert!(running.readiness.report().ready);
    running.end().await;
}
