//! Candidates that must not serve: each is started on the engine, found out and removed, and the champion has all traffic
//! all the time.

use serde_json::{Value, json};

use crate::parts::objects::{merge, until};
use crate::parts::status::{champion, condition, is_at_rest, is_reason};
use crate::world::{MEMORY, World, memory};

/// What is wrong with a candidate, and what is said of it.
struct Case {
    /// Of the fault image.
    switches: &'static str,
    spec: Value,
    reason: &'static str,
    /// Part of the message.
    says: &'static str,
    /// Its deadline is waited for.
    late: bool,
}

fn case(switches: &'static str, reason: &'static str, says: &'static str) -> Case {
    Case {
        switches,
        spec: json!({}),
        reason,
        says,
        late: false,
    }
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            late: true,
            ..case("never-ready", "LoadTimedOut", "60 s")
        },
        case("crash-at-start=1", "CrashLoop", "with code 1"),
        Case {
            spec: json!({"resources": memory("32Mi")}),
            ..case("eat-memory", "OutOfMemory", "32 MiB")
        },
        case("nan", "MalformedAnswers", ""),
        case("malformed", "MalformedAnswers", ""),
        case("wrong-contract", "ContractMismatch", ""),
        case("wrong-digest", "WrongAnswers", ""),
        // What is not there cannot be claimed: the start fails before anybody is asked.
        Case {
            spec: json!({"device": "Cuda"}),
            ..case("cpu-claim", "GpuUnavailable", "")
        },
        case("dead-head", "DeadHead", ""),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_23_24_25_26_27_bad_candidates_are_taken_back_each_with_its_reason() {
    let mut world = World::new().await;
    let cases: Vec<_> = cases()
        .into_iter()
        .map(|case| (world.faulty(case.switches), case))
        .collect();
    let running = world.start();
    let before = world.serving("main", "v1").await;
    let container = world.container("main", &champion(&before));
    world.create_model("v2").await;
    let seen = world.watch("main");
    let mut rejected = Vec::new();
    for (image, case) in &cases {
        // Of an object ten events a minute are told.
        world.clock.forward(61);
        rejected.push(is_rejected(&world, image, case, &rejected).await);
        println!("{} -> {}", case.switches, case.reason);
    }
    seen.assert_untouched(&champion(&before));
    assert_eq!(world.containers("main"), [container], "and was not touched");
    running.end().await;
}

/// The candidate is taken back and remembered as the newest; its revision.
async fn is_rejected(world: &World, image: &str, case: &Case, before: &[String]) -> String {
    let mut spec = json!({
        "modelRef": {"name": "v2"}, "image": image, "device": "Auto", "resources": memory(MEMORY),
    });
    merge(&mut spec, &case.spec);
    world.edit("main", &spec).await;
    if case.late {
        world
            .until("main", case.switches, is_reason("Loading"))
            .await;
        // From the next pass on its age is known.
        world.forward("main", 0).await;
        world.until("main", case.switches, |_| true).await;
        world.forward("main", 61).await;
    }
    let status = world
        .until("main", case.switches, |status| {
            status.rejected.len() > before.len()
                && is_at_rest(status)
                && condition(status, "Stalled").is_some_and(|(_, reason)| reason == "Rejected")
        })
        .await;
    let is_new = |it: &&api::kinds::laya_server::Rejection| {
        let revision = it.revision.clone().unwrap_or_default();
        !before.contains(&revision)
    };
    let new = status.rejected.iter().find(is_new).unwrap();
    let message = new.message.clone().unwrap_or_default();
    assert_eq!(
        new.reason.as_deref(),
        Some(case.reason),
        "{}: {new:?}",
        case.switches
    );
    assert!(message.contains(case.says), "{}: {message}", case.switches);
    let revision = new.revision.clone().unwrap();
    world
        .until_containers("main", "the candidate is removed", |containers| {
            containers.iter().all(|it| it.revision != revision)
        })
        .await;
    until("it is told", || async {
        let notes = world.notes("main").await;
        let is_told = |(reason, note): &(String, String)| {
            reason == "Rejected" && note.contains(&revision) && note.contains(&message)
        };
        if notes.iter().any(is_told) {
            Ok(())
        } else {
            Err(notes)
        }
    })
    .await;
    revision
}
