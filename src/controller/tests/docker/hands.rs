//! Fault 14: a person stops, removes or changes a container of ours.

use std::time::Duration;

use crate::parts::objects::until_within;
use crate::parts::status::{champion, serves, told};
use crate::world::World;

/// For what was done by hand to be put right.
const SOON: Duration = Duration::from_secs(30);

/// One thing done by hand, and what is said of it.
struct Hand {
    does: &'static [&'static str],
    says: &'static str,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_14_what_a_person_does_to_a_container_is_put_right_and_told() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    let revision = champion(&before);
    let hands = [
        Hand {
            does: &["stop"],
            says: "it had ended with code 0",
        },
        Hand {
            does: &["rm", "--force"],
            says: "it was gone",
        },
        Hand {
            does: &["update", "--memory", "96m", "--memory-swap", "96m"],
            says: "memory",
        },
    ];
    for hand in hands {
        let container = world.container("main", &revision);
        let told_before = repairs(&world).await.len();
        let mut words = hand.does.to_vec();
        words.push(&container.id);
        world.on().told(&words);
        let note = until_within(SOON, "it is told what differed", || async {
            let notes = repairs(&world).await;
            notes.get(told_before).cloned().ok_or(notes)
        })
        .await;
        println!("{:?} -> {note}", hand.does);
        assert!(note.contains(hand.says), "{:?}: {note}", hand.does);
        until_within(SOON, "it serves where it runs", || async {
            let status = world.status("main").await;
            let url = world.url("main", &revision);
            let traffic = status.traffic.clone().unwrap_or_default();
            let urls = traffic.targets.first().map(|target| target.urls.clone());
            if url.is_some() && urls == url.map(|url| vec![url]) && serves(&status, "v1") {
                Ok(())
            } else {
                Err(told(&status))
            }
        })
        .await;
        // One was put beside what was changed first.
        world
            .until_containers("main", "there is one again", |containers| {
                containers.len() == 1
            })
            .await;
        let limit = world.on().told(&[
            "inspect",
            "--format",
            "{{.HostConfig.Memory}}",
            &world.container("main", &revision).id,
        ]);
        assert_eq!(limit, (64 << 20).to_string(), "{:?}", hand.does);
    }
    running.end().await;
}

async fn repairs(world: &World) -> Vec<String> {
    let notes = world.notes("main").await;
    let of = notes.into_iter().filter(|(reason, _)| reason == "Repaired");
    of.map(|(_, note)| note).collect()
}
