//! Ways a rollout can go: another wish on the way, a gap, engines that can less.

use api::kinds::ConditionStatus;
use api::kinds::laya_server::RolloutRecord;
use backend::Room;
use serde_json::json;
use testkit::backend::FakeBackend;
use testkit::{Fault, Says};

use crate::world::{
    World, champion, condition, digest, is_at_rest, is_reason, message, serves, targets, until,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_15_the_newest_wish_wins_and_the_one_before_is_not_rejected() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    let stuck = Says::relay().serving(&digest("v2")).not_ready("Starting");
    world.play("v2", stuck, Fault::None);
    world.create_model("v2").await;
    world.create_model("v3").await;
    world
        .edit("main", &json!({"modelRef": {"name": "v2"}}))
        .await;
    let loading = world.until("main", "v2 loads", is_reason("Loading")).await;
    assert_eq!(targets(&loading), targets(&before));
    world
        .edit("main", &json!({"modelRef": {"name": "v3"}}))
        .await;
    let after = world.until_serves("main", "v3").await;
    assert!(after.rejected.is_empty());
    let outcomes: Vec<_> = after
        .history
        .iter()
        .filter_map(|record| record.outcome.as_deref())
        .collect();
    assert!(outcomes.contains(&"Superseded"), "{outcomes:?}");
    assert_eq!(after.previous.unwrap().digest, Some(digest("v1")));
    // It may be wished for again.
    world.play("v2", Says::relay().serving(&digest("v2")), Fault::None);
    world
        .edit("main", &json!({"modelRef": {"name": "v2"}}))
        .await;
    world.until_serves("main", "v2").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wish_that_is_taken_back_leaves_the_champion_as_it_was() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    let stuck = Says::relay().serving(&digest("v2")).not_ready("Starting");
    world.play("v2", stuck, Fault::None);
    world.create_model("v2").await;
    world
        .edit("main", &json!({"modelRef": {"name": "v2"}}))
        .await;
    world.until("main", "v2 loads", is_reason("Loading")).await;
    world
        .edit("main", &json!({"modelRef": {"name": "v1"}}))
        .await;
    let after = world.until_serves("main", "v1").await;
    assert_eq!(after.traffic, before.traffic);
    let withdrawn = |it: &RolloutRecord| it.outcome.as_deref() == Some("Withdrawn");
    assert!(after.history.iter().any(withdrawn), "{:?}", after.history);
    until("what was started is gone", || async {
        let uid = world.server("main").await.metadata.uid.unwrap();
        let (servers, _) = world.engine.children(&uid);
        if servers.len() == 1 {
            Ok(())
        } else {
            Err(servers)
        }
    })
    .await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_it_has_no_traffic_for_a_while_and_says_gap() {
    let world = World::new().await;
    let running = world.start();
    world.serving("main", "v1").await;
    let stuck = Says::relay().serving(&digest("v2")).not_ready("Starting");
    world.play("v2", stuck, Fault::None);
    world.create_model("v2").await;
    world
        .edit(
            "main",
            &json!({"modelRef": {"name": "v2"}, "rollout": {"strategy": "Replace"}}),
        )
        .await;
    world
        .until("main", "the gap", |status| {
            let traffic = status.traffic.clone().unwrap_or_default();
            traffic.targets.is_empty()
                && traffic.reason.as_deref() == Some("Gap")
                && condition(status, "Available")
                    == Some((ConditionStatus::False, "Gap".to_owned()))
        })
        .await;
    let candidate = until("v2 runs", || async {
        let status = world.status("main").await;
        let revision = status.candidate.and_then(|candidate| candidate.revision);
        let uid = world.server("main").await.metadata.uid.unwrap();
        let (servers, _) = world.engine.children(&uid);
        match revision {
            Some(revision) if servers.iter().any(|it| it.revision == revision) => Ok(revision),
            other => Err(other),
        }
    })
    .await;
    world.replica(&candidate, |fake| {
        fake.say(Says::relay().serving(&digest("v2")))
    });
    world.until_serves("main", "v2").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_room_for_two_a_short_gap_is_used_on_docker() {
    let world = World::new().await;
    let running = world.start();
    world.serving("main", "v1").await;
    world.engine.room(
        Some(Room {
            engine_bytes: 2 << 30,
            ours_bytes: 1 << 30,
            available_bytes: None,
        }),
        None,
    );
    world.create_model("v2").await;
    world
        .edit("main", &json!({"modelRef": {"name": "v2"}}))
        .await;
    world.until_serves("main", "v2").await;
    world.until_told("main", "GapStarted").await;
    world.until_told("main", "GapEnded").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_can_less_serves_and_says_what_is_ignored() {
    let world = World::with(FakeBackend::embedded()).await;
    let running = world.start();
    world.create_model("v1").await;
    world
        .create(
            "main",
            "v1",
            &json!({
                "replicas": 3,
                "rollout": {"strategy": "Canary", "canary": {"steps": [{"weight": 5, "holdSeconds": 600}]}},
            }),
        )
        .await;
    let status = world.until_serves("main", "v1").await;
    assert_eq!(status.ready_replicas, Some(1));
    let (_, reason) = condition(&status, "FieldsSupported").unwrap();
    assert_eq!(reason, "FieldsIgnored");
    let ignored = message(&status, "FieldsSupported");
    assert!(
        ignored.contains("replicas") && ignored.contains("strategy"),
        "{ignored}"
    );
    world.create_model("v2").await;
    world
        .edit("main", &json!({"modelRef": {"name": "v2"}}))
        .await;
    world.until_serves("main", "v2").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_is_not_there_is_waited_for() {
    let world = World::new().await;
    let running = world.start();
    world.create("main", "later", &json!({})).await;
    world
        .until("main", "it says what is missing", |status| {
            condition(status, "ModelReady").is_some_and(|(_, reason)| reason == "ReferenceNotFound")
        })
        .await;
    world.create_model("later").await;
    world.until_serves("main", "later").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_memory_is_another_revision_of_the_same_model() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    world
        .edit("main", &json!({"resources": {"limits": {"memory": "2Gi"}}}))
        .await;
    let after = world
        .until("main", "another revision serves", |status| {
            serves(status, "v1") && is_at_rest(status) && champion(status) != champion(&before)
        })
        .await;
    assert_eq!(after.champion.unwrap().digest, Some(digest("v1")));
    running.end().await;
}
