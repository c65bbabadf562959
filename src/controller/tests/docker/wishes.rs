//! Fault 15: the wish changes while a rollout is under way, and on the way back.

use api::kinds::laya_server::RolloutRecord;
use serde_json::json;

use crate::instance::fault_image;
use crate::parts::status::{champion, is_reason, targets, told};
use crate::world::{World, ask_often};

fn outcomes(history: &[RolloutRecord]) -> Vec<&str> {
    history
        .iter()
        .filter_map(|record| record.outcome.as_deref())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_15_the_newest_wish_wins_and_the_one_before_is_removed_and_not_rejected() {
    let mut world = World::new().await;
    let stuck = world.faulty("never-ready");
    let running = world.start();
    let before = world.serving("main", "v1").await;
    let old = champion(&before);
    world.create_model("v2").await;
    world.create_model("v3").await;
    let seen = world.watch("main");
    world
        .edit("main", &json!({"modelRef": {"name": "v2"}, "image": stuck}))
        .await;
    let loading = world.until("main", "v2 loads", is_reason("Loading")).await;
    let superseded = loading.candidate.clone().unwrap().revision.unwrap();
    assert_eq!(targets(&loading), [(old.clone(), 100)]);
    let wish = json!({"modelRef": {"name": "v3"}, "image": fault_image()});
    world.edit("main", &wish).await;
    let after = world.until_serves("main", "v3").await;
    assert!(after.rejected.is_empty(), "{:#}", told(&after));
    let outcomes = outcomes(&after.history);
    assert!(outcomes.contains(&"Superseded"), "{outcomes:?}");
    let previous = after.previous.clone().unwrap();
    assert_eq!(previous.revision.as_deref(), Some(old.as_str()));
    world
        .until_containers("main", "only v3 and v1 are left", |containers| {
            containers.len() == 2 && containers.iter().all(|it| it.revision != superseded)
        })
        .await;
    seen.assert_whole();
    let all = seen.statuses();
    assert!(all.iter().all(|status| targets(status).len() == 1));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_15_another_wish_on_the_way_back_waits_until_it_is_finished() {
    let mut world = World::new().await;
    let weak = world.weak();
    // Long enough that the way back is seen.
    let slow = world.faulty("slow-load=3000");
    let running = world.start();
    let before = world
        .serving_with("main", "v1", &json!({"image": slow}))
        .await;
    let old = champion(&before);
    world.create_model("v2").await;
    world.create_model("v3").await;
    let rollout = json!({"strategy": "Replace", "rollbackWindowSeconds": 600});
    let wish = json!({"modelRef": {"name": "v2"}, "image": weak, "rollout": rollout});
    world.edit("main", &wish).await;
    let baking = world
        .until("main", "v2 is watched", is_reason("Baking"))
        .await;
    let weak = champion(&baking);
    let seen = world.watch("main");
    ask_often(&world.url("main", &weak).unwrap()).await;
    world
        .until("main", "v1 is on its way back", is_reason("RollingBack"))
        .await;
    let rollout = json!({"strategy": "BlueGreen", "rollbackWindowSeconds": 1});
    let wish = json!({"modelRef": {"name": "v3"}, "image": fault_image(), "rollout": rollout});
    world.edit("main", &wish).await;
    let after = world.until_serves("main", "v3").await;
    assert_eq!(after.rejected.len(), 1, "{:#}", told(&after));
    assert_eq!(after.rejected[0].revision.as_deref(), Some(weak.as_str()));
    let previous = after.previous.clone().unwrap();
    assert_eq!(previous.revision.as_deref(), Some(old.as_str()));
    let was_back = seen
        .statuses()
        .iter()
        .any(|status| targets(status) == [(old.clone(), 100)]);
    assert!(was_back, "the way back was finished first");
    world
        .until_containers("main", "only v3 and v1 are left", |containers| {
            containers.len() == 2 && containers.iter().all(|it| it.revision != weak)
        })
        .await;
    seen.assert_whole();
    running.end().await;
}
