//! Candidates that must not serve: each is started, found out, taken back with its reason, and never has traffic.

use std::sync::Arc;
use std::time::Duration;

use api::kinds::LayaServerStatus;
use api::kinds::laya_server::ProbeLevel;
use api::label::Task;
use backend::RunState;
use decision::contract::Criteria;
use decision::relay_contract;
use serde_json::{Value, json};
use testkit::backend::{FakeBackend, Script, argument, fetched};
use testkit::{Answers, Fault, Says};

use crate::world::{World, champion, condition, digest, holds, targets, told, until};

/// What is wrong with a candidate, and the reason it is taken back for.
struct Case {
    name: &'static str,
    says: Says,
    fault: Fault,
    spec: Value,
    reason: &'static str,
}

fn case(name: &'static str, reason: &'static str) -> Case {
    Case {
        name,
        says: Says::relay().serving(&digest(name)),
        fault: Fault::None,
        spec: json!({}),
        reason,
    }
}

const OTHER: &str = "sha256:4444444444444444444444444444444444444444444444444444444444444444";

/// A world with a champion and a candidate like this, until the candidate is taken back.
async fn is_rejected(case: Case) {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "champion").await;
    world.play(case.name, case.says, case.fault);
    world.create_model(case.name).await;
    let mut spec = json!({"modelRef": {"name": case.name}});
    crate::world::merge(&mut spec, &case.spec);
    world.edit("main", &spec).await;
    let looked = world
        .until("main", case.name, |status| {
            assert_eq!(targets(status), targets(&before), "{:#}", told(status));
            !status.rejected.is_empty()
        })
        .await;
    assert_rejected(&looked, case.reason, case.name);
    let after = world
        .until("main", "it is over", |status| {
            assert_eq!(targets(status), targets(&before), "{:#}", told(status));
            status.candidate.is_none()
                && condition(status, "Stalled").is_some_and(|(_, reason)| reason == "Rejected")
        })
        .await;
    assert!(holds(&after, "Ready"), "{:#}", told(&after));
    assert_eq!(
        after.champion.as_ref().unwrap().digest,
        Some(digest("champion"))
    );
    let uid = world.server("main").await.metadata.uid.unwrap();
    until("the candidate is removed", || async {
        let (servers, _) = world.engine.children(&uid);
        let mut others = servers
            .iter()
            .filter(|server| server.revision != champion(&before));
        match others.next() {
            None => Ok(()),
            other => Err(other.cloned()),
        }
    })
    .await;
    // The same wish is not tried again.
    world.forward(120);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let later = world.status("main").await;
    assert_eq!(later.rejected.len(), 1);
    assert!(later.candidate.is_none());
    running.end().await;
}

fn assert_rejected(status: &LayaServerStatus, reason: &str, name: &str) {
    let rejected = &status.rejected[0];
    assert_eq!(
        rejected.reason.as_deref(),
        Some(reason),
        "{name}: {rejected:?}"
    );
    assert_eq!(rejected.digest, Some(digest(name)));
    assert!(rejected.message.as_ref().is_some_and(|it| !it.is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_26_another_contract_never_has_traffic() {
    is_rejected(Case {
        says: Says::contract(OTHER, OTHER).serving(&digest("reworded")),
        ..case("reworded", "ContractMismatch")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_26_one_that_finds_out_itself_that_it_is_wrong_is_taken_back_at_once() {
    // Long before the deadline: no clock is moved.
    let waits = json!({"rollout": {"progressDeadlineSeconds": 86_400}});
    let says = |name: &str| Says::relay().serving(&digest(name));
    let cases = [
        Case {
            says: says("alike").probe_failed("DeadHead"),
            spec: waits.clone(),
            ..case("alike", "DeadHead")
        },
        Case {
            says: says("silent").not_ready("ProbeFailed"),
            spec: waits.clone(),
            ..case("silent", "WrongAnswers")
        },
        Case {
            says: says("foreign").not_ready("WrongContract"),
            spec: waits,
            ..case("foreign", "ContractMismatch")
        },
    ];
    for case in cases {
        is_rejected(case).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_26_another_checkpoint_never_has_traffic() {
    is_rejected(Case {
        says: Says::relay().serving(OTHER),
        ..case("swapped", "WrongAnswers")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_26_a_dead_head_never_has_traffic() {
    is_rejected(Case {
        fault: Fault::DeadHead,
        ..case("dead", "DeadHead")
    })
    .await;
}

/// What the manifest of a checkpoint records: each question with its last option.
fn recorded() -> Value {
    let answers: serde_json::Map<String, Value> = relay_contract()
        .questions()
        .iter()
        .filter_map(|question| match &question.criteria {
            Criteria::Choice(options) => {
                let label = &options.last()?.id;
                Some((
                    question.id.clone(),
                    json!({"label": label, "probability": 0.8}),
                ))
            }
            _ => None,
        })
        .collect();
    assert!(!answers.is_empty());
    json!([{"state": {"request": "one"}, "answers": answers}, {"state": "two", "answers": answers}])
}

/// An engine whose fetches find checkpoints with recorded probes.
fn with_recorded_probes() -> Arc<FakeBackend> {
    let engine = FakeBackend::docker();
    engine.script(|_, spec| match argument(spec, "--digest") {
        Some(digest) if spec.key.task == Task::Fetch => {
            let mut result = fetched(&digest);
            result["probes"] = recorded();
            Script::Ends {
                code: 0,
                result: Some(result),
            }
        }
        _ => Script::Obeys,
    });
    engine
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_26_answers_of_the_right_shape_that_are_not_the_recorded_ones_never_have_traffic() {
    let world = World::with(with_recorded_probes()).await;
    let answering = |model: &str| Says {
        answers: Answers::Plausible(recorded().as_array().unwrap().clone()),
        ..Says::relay().serving(&digest(model))
    };
    world.play("champion", answering("champion"), Fault::None);
    let running = world.start();
    let before = world.serving("main", "champion").await;
    let level = |status: &LayaServerStatus| {
        let champion = status.champion.as_ref()?;
        champion.probe.as_ref()?.level
    };
    assert_eq!(level(&before), Some(ProbeLevel::Expected));
    // The least likely option each time: whole, finite, and another one for another state.
    world.play("other", answering("other"), Fault::UnknownChoice);
    world.create_model("other").await;
    world
        .edit("main", &json!({"modelRef": {"name": "other"}}))
        .await;
    let after = world
        .until("main", "it is taken back", |status| {
            assert_eq!(targets(status), targets(&before), "{:#}", told(status));
            !status.rejected.is_empty()
        })
        .await;
    assert_rejected(&after, "WrongAnswers", "other");
    let message = after.rejected[0].message.as_deref().unwrap();
    assert!(message.contains("recorded is"), "{message}");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_27_answers_that_are_no_numbers_never_have_traffic() {
    is_rejected(Case {
        fault: Fault::NotANumber,
        ..case("nan", "MalformedAnswers")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_25_a_silent_fall_to_the_cpu_never_has_traffic_where_a_gpu_is_required() {
    is_rejected(Case {
        spec: json!({"device": "Cuda"}),
        ..case("lying", "DeviceMismatch")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_25_where_it_is_preferred_it_serves_and_says_so() {
    let world = World::new().await;
    let running = world.start();
    world.create_model("v1").await;
    world
        .create(
            "main",
            "v1",
            &json!({"device": "Cuda", "devicePolicy": "Prefer"}),
        )
        .await;
    let status = world.until_serves("main", "v1").await;
    let (_, reason) = condition(&status, "DeviceMatched").unwrap();
    assert_eq!(reason, "DeviceMismatch");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_25_a_gpu_that_is_claimed_and_too_slow_is_not_believed() {
    is_rejected(Case {
        says: Says::relay().serving(&digest("slow")).on("cuda"),
        fault: Fault::Latency(Duration::from_millis(80)),
        spec: json!({"device": "Cuda", "deviceCheck": {"maxP50Millis": 20}}),
        ..case("slow", "DeviceSuspect")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_24_one_that_is_never_ready_is_taken_back_at_its_deadline() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "champion").await;
    let stuck = Says::relay()
        .serving(&digest("stuck"))
        .not_ready("Starting");
    world.play("stuck", stuck, Fault::None);
    world.create_model("stuck").await;
    world
        .edit("main", &json!({"modelRef": {"name": "stuck"}}))
        .await;
    world
        .until("main", "it loads", |status| {
            condition(status, "RolledOut").is_some_and(|(_, reason)| reason == "Loading")
        })
        .await;
    until("it is taken back", || async {
        world.forward(30);
        let status = world.status("main").await;
        assert_eq!(targets(&status), targets(&before));
        if status.rejected.is_empty() {
            Err(told(&status))
        } else {
            assert_rejected(&status, "LoadTimedOut", "stuck");
            Ok(())
        }
    })
    .await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_24_one_that_crashes_is_taken_back_and_the_champion_is_untouched() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "champion").await;
    let loading = Says::relay()
        .serving(&digest("crashing"))
        .not_ready("Starting");
    world.play("crashing", loading, Fault::None);
    world.create_model("crashing").await;
    world
        .edit("main", &json!({"modelRef": {"name": "crashing"}}))
        .await;
    let status = world
        .until("main", "it is started", |status| {
            status
                .candidate
                .as_ref()
                .is_some_and(|it| it.revision.is_some())
        })
        .await;
    let revision = status.candidate.unwrap().revision.unwrap();
    let uid = world.server("main").await.metadata.uid.unwrap();
    until("it runs", || async {
        let (servers, _) = world.engine.children(&uid);
        if servers.iter().any(|server| server.revision == revision) {
            Ok(())
        } else {
            Err(servers)
        }
    })
    .await;
    world.engine.change_server(&uid, &revision, 0, |server| {
        server.restarts = 3;
        server.exit_code = Some(1);
        server.state = RunState::Restarting;
        server.url = None;
        server.log_tail = "it does not want to".to_owned();
    });
    let after = world
        .until("main", "it is taken back", |status| {
            assert_eq!(targets(status), targets(&before));
            !status.rejected.is_empty()
        })
        .await;
    assert_rejected(&after, "CrashLoop", "crashing");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_32_one_that_dies_right_after_promotion_is_taken_back() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "champion").await;
    world.create_model("weak").await;
    world
        .edit(
            "main",
            &json!({"modelRef": {"name": "weak"}, "rollout": {"rollbackWindowSeconds": 600}}),
        )
        .await;
    let baking = world
        .until("main", "it is watched", |status| {
            condition(status, "RolledOut").is_some_and(|(_, reason)| reason == "Baking")
        })
        .await;
    let revision = champion(&baking);
    assert_ne!(revision, champion(&before));
    let uid = world.server("main").await.metadata.uid.unwrap();
    world.engine.change_server(&uid, &revision, 0, |server| {
        server.restarts = 3;
        server.exit_code = Some(1);
        server.state = RunState::Restarting;
        server.url = None;
    });
    let after = world
        .until("main", "the old one has all traffic", |status| {
            targets(status) == [(champion(&before), 100)] && !status.rejected.is_empty()
        })
        .await;
    assert_eq!(champion(&after), champion(&before));
    world
        .until("main", "it says what to do", |status| {
            condition(status, "Stalled").is_some_and(|(_, reason)| reason == "Rejected")
                && holds(status, "Ready")
        })
        .await;
    running.end().await;
}
