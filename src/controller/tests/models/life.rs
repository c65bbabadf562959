//! The life of a model: applied, fetched, used, deleted; with restarts in the middle.

use std::collections::BTreeSet;

use api::kinds::{ConditionStatus, LayaModel};
use api::label::Task;
use backend::TaskKey;
use controller::metrics::{PassResult, WriteResult};
use kube::ResourceExt;
use serde_json::json;
use testkit::backend::{Script, fetched, refused};

use crate::world::{World, digest, says, source, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applied_it_becomes_ready_and_deleted_it_goes_with_its_files() {
    let world = World::new().await;
    let running = world.start();
    world.create("v1", &source(1)).await;
    let model = world.until_ready("v1").await;
    assert_eq!(model.finalizers(), ["relay.dev/model-in-use"]);
    assert_eq!(world.engine.published(), BTreeSet::from([digest(&model)]));
    until("events are told", || async {
        let told = world.events().await;
        let wanted = ["Fetched", "Published"].map(str::to_owned);
        if wanted.iter().all(|reason| told.contains(reason)) {
            Ok(())
        } else {
            Err(told)
        }
    })
    .await;
    // At rest it costs no write.
    let writes = running
        .metrics
        .status_writes("LayaModel", WriteResult::Written);
    let passes = running.metrics.passes("LayaModel", PassResult::Unchanged);
    world.engine.hint(backend::Hint::Everything);
    until("it was looked at again", || async {
        let now = running.metrics.passes("LayaModel", PassResult::Unchanged);
        if now > passes { Ok(()) } else { Err(now) }
    })
    .await;
    assert_eq!(
        running
            .metrics
            .status_writes("LayaModel", WriteResult::Written),
        writes
    );
    assert!(
        running
            .exposition()
            .contains(r#"relay_backend_up{backend="docker"} 1"#)
    );
    world.delete("v1").await;
    world.until_gone("v1").await;
    assert!(world.engine.published().is_empty());
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_in_the_middle_of_a_fetch_goes_on_with_it() {
    let world = World::new().await;
    world.engine.script(|_, _| Script::Runs);
    let first = world.start();
    let model = world.create("v1", &source(1)).await;
    world
        .until("v1", "the fetch runs", |model| {
            says(model, "Fetched") == Some((ConditionStatus::False, "Fetching".to_owned()))
        })
        .await;
    first.kill().await;
    // It ends while nobody looks.
    let key = TaskKey {
        task: Task::Fetch,
        attempt: 1,
    };
    let uid = model.uid().unwrap();
    world
        .engine
        .end_task(&uid, &key, 0, Some(fetched(&digest(&model))));
    let second = world.start();
    world.until_ready("v1").await;
    until("the task is removed", || async {
        let (_, tasks) = world.engine.children(&uid);
        if tasks.is_empty() { Ok(()) } else { Err(tasks) }
    })
    .await;
    second.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_is_being_pruned_by_hand_is_fetched_afterwards() {
    let world = World::new().await;
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel", "metadata": {"name": "v1"}, "spec": source(1),
    });
    let object: LayaModel = serde_json::from_value(object).unwrap();
    let pruned = world.doomed.during(&[digest(&object)]);
    let running = world.start();
    let model = world.create("v1", &source(1)).await;
    world
        .until("v1", "it waits for the prune", |model| {
            let conditions = model.status.as_ref().map(|status| &status.conditions);
            conditions.into_iter().flatten().any(|condition| {
                condition.type_ == "Ready" && condition.message.contains("model prune")
            })
        })
        .await;
    assert!(world.engine.children(&model.uid().unwrap()).1.is_empty());
    drop(pruned);
    world.engine.hint(backend::Hint::Everything);
    world.until_ready("v1").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_12_a_model_in_use_waits_and_names_the_server() {
    let world = World::new().await;
    let running = world.start();
    world.create("v1", &source(1)).await;
    let model = world.until_ready("v1").await;
    world.serve("main", &model).await;
    world
        .until("v1", "the use is seen", |model| {
            says(model, "InUse") == Some((ConditionStatus::True, "ServedBy".to_owned()))
        })
        .await;
    world.delete("v1").await;
    let model = world
        .until("v1", "it waits", |model| {
            says(model, "Stalled") == Some((ConditionStatus::True, "StillInUse".to_owned()))
        })
        .await;
    assert_eq!(world.engine.published(), BTreeSet::from([digest(&model)]));
    world.remove_server("main").await;
    world.until_gone("v1").await;
    assert!(world.engine.published().is_empty());
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_13_the_same_name_again_is_another_model() {
    let world = World::new().await;
    let running = world.start();
    world.create("v1", &source(1)).await;
    let old = world.until_ready("v1").await;
    world.delete("v1").await;
    world.until_gone("v1").await;
    world.create("v1", &source(2)).await;
    let new = world.until_ready("v1").await;
    assert_ne!(old.uid(), new.uid());
    assert_eq!(
        new.status.unwrap().digest,
        Some(digest(&world.models().get("v1").await.unwrap()))
    );
    assert!(!world.engine.published().contains(&digest(&old)));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_14_a_lost_volume_is_filled_again() {
    let world = World::new().await;
    let running = world.start();
    world.create("v1", &source(1)).await;
    let model = world.until_ready("v1").await;
    let before = model.status.clone().unwrap().location.unwrap().volume_uid;
    world.engine.lose_volumes();
    world
        .until("v1", "it lies in another volume", |model| {
            let location = model
                .status
                .clone()
                .unwrap_or_default()
                .location
                .unwrap_or_default();
            location.volume_uid.is_some() && location.volume_uid != before
        })
        .await;
    world.until_ready("v1").await;
    assert_eq!(world.engine.published(), BTreeSet::from([digest(&model)]));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_fetch_is_counted_by_its_reason() {
    let world = World::new().await;
    world
        .engine
        .script(|_, _| refused("BadCheckpoint", "config.json does not parse", 3));
    let running = world.start();
    world.create("v1", &source(1)).await;
    world
        .until("v1", "it is stalled", |model| {
            says(model, "Stalled") == Some((ConditionStatus::True, "BadCheckpoint".to_owned()))
        })
        .await;
    let line = r#"relay_model_fetch_failures_total{reason="BadCheckpoint"} 1"#;
    assert!(
        running.exposition().contains(line),
        "{}",
        running.exposition()
    );
    running.end().await;
}
