//! Fault 32: a new champion dies when the old one has stopped already.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::parts::status::{champion, condition, is_at_rest, is_reason, serves, targets, told};
use crate::world::{World, ask_often};

/// From its death to the first answer of the old one, which loads at once (engineering 14).
const BAR: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_32_one_that_dies_when_the_old_one_has_stopped_is_taken_back() {
    let mut world = World::new().await;
    let weak = world.weak();
    let running = world.start();
    let before = world.serving("main", "v1").await;
    let old = champion(&before);
    world.create_model("v2").await;
    let rollout = json!({"strategy": "Replace", "rollbackWindowSeconds": 600});
    let seen = world.watch("main");
    let wish = json!({"modelRef": {"name": "v2"}, "image": weak, "rollout": rollout});
    world.edit("main", &wish).await;
    let baking = world
        .until("main", "the new one is watched", is_reason("Baking"))
        .await;
    let new = champion(&baking);
    assert!(!world.container("main", &old).runs(), "there was a gap");
    ask_often(&world.url("main", &new).unwrap()).await;
    let died = Instant::now();
    world
        .until("main", "the old one has all traffic", |status| {
            targets(status) == [(old.clone(), 100)]
        })
        .await;
    let took = died.elapsed();
    println!("{} ms from its death to traffic", took.as_millis());
    assert!(took < BAR, "{took:?}");
    let url = world.url("main", &old).unwrap();
    let traffic = world.status("main").await.traffic.unwrap();
    assert_eq!(traffic.targets[0].urls, [url]);
    let after = world
        .until("main", "it is over", |status| {
            serves(status, "v1")
                && is_at_rest(status)
                && condition(status, "Stalled").is_some_and(|(_, reason)| reason == "Rejected")
        })
        .await;
    assert_eq!(after.rejected.len(), 1, "{:#}", told(&after));
    let rejected = &after.rejected[0];
    assert_eq!(rejected.revision.as_deref(), Some(new.as_str()));
    assert_eq!(rejected.reason.as_deref(), Some("CrashLoop"));
    assert!(after.previous.is_none(), "{:#}", told(&after));
    world
        .until_containers("main", "what died is removed", |containers| {
            containers.iter().all(|it| it.revision == old)
        })
        .await;
    let note = world.until_told("main", "RolledBack").await;
    assert!(note.contains(&new), "{note}");
    // The same wish is not tried again.
    world.forward("main", 120).await;
    let later = world.until_serves("main", "v1").await;
    assert_eq!(later.rejected, after.rejected);
    seen.assert_whole();
    running.end().await;
}
