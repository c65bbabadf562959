//! What a server goes through when nothing is wrong, and when the world is.

use api::kinds::ConditionStatus;
use api::revisions::RevisionReports;
use backend::{Action, Hint, RunState};
use prometheus::TextEncoder;
use serde_json::json;
use testkit::backend::Outage;
use testkit::{Fault, Says};

use crate::world::{
    NAMESPACE, World, champion, condition, digest, holds, is_at_rest, message, serves, targets,
    told, until,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_ends_ready_with_all_traffic() {
    let world = World::new().await;
    let running = world.start();
    let status = world.serving("main", "v1").await;
    assert_eq!(status.champion.as_ref().unwrap().digest, Some(digest("v1")));
    let revision = champion(&status);
    let traffic = status.traffic.clone().unwrap();
    let url = world.replica(&revision, testkit::FakeLaya::url);
    assert_eq!(traffic.targets[0].urls, [url]);
    for kind in [
        "Available",
        "ContractMatched",
        "Probed",
        "DeviceMatched",
        "ModelReady",
    ] {
        assert!(holds(&status, kind), "{kind}: {:#}", told(&status));
    }
    assert_eq!(world.stored("main").await, [format!("ls-main-{revision}")]);
    world.until_told("main", "Promoted").await;
    until("its gauges are there", || async {
        let text = TextEncoder::new()
            .encode_to_string(&running.metrics.process.registry.gather())
            .unwrap();
        let of = format!(r#"{{name="main",namespace="{NAMESPACE}"}} 1"#);
        let there = [
            "relay_server_replicas_wanted",
            "relay_server_replicas_ready",
        ]
        .iter()
        .all(|gauge| text.contains(&format!("{gauge}{of}")));
        if there && text.contains("relay_server_probe_latency_seconds{") {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await;
    world
        .servers()
        .delete("main", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    until("its gauges go with it", || async {
        let text = TextEncoder::new()
            .encode_to_string(&running.metrics.process.registry.gather())
            .unwrap();
        if text.contains(r#"name="main""#) {
            Err(text)
        } else {
            Ok(())
        }
    })
    .await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_model_is_promoted_baked_and_the_old_one_kept_stopped() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    world.create_model("v2").await;
    world
        .edit("main", &json!({"modelRef": {"name": "v2"}}))
        .await;
    let after = world.until_serves("main", "v2").await;
    let old = champion(&before);
    assert_ne!(champion(&after), old);
    let previous = after.previous.clone().unwrap();
    assert_eq!(previous.revision.as_deref(), Some(old.as_str()));
    assert!(
        after.traffic.as_ref().unwrap().generation > before.traffic.as_ref().unwrap().generation
    );
    let uid = world.server("main").await.metadata.uid.unwrap();
    until("the old one is stopped and kept", || async {
        let (servers, _) = world.engine.children(&uid);
        let found = servers.iter().find(|server| server.revision == old);
        match found {
            Some(server) if server.state == RunState::Exited => Ok(()),
            other => Err(other.cloned()),
        }
    })
    .await;
    let applied = world.engine.applied();
    let drained = |(_, action): &(backend::Owner, Action)| matches!(action, Action::Drain { .. });
    let stopped =
        |(_, action): &(backend::Owner, Action)| matches!(action, Action::StopServer { .. });
    let drained = applied
        .iter()
        .position(drained)
        .expect("it was told to drain");
    let stopped = applied.iter().position(stopped).expect("it was stopped");
    assert!(drained < stopped);
    assert_eq!(
        world.stored("main").await.len(),
        2,
        "what makes champion and previous is kept"
    );
    let outcomes: Vec<_> = after
        .history
        .iter()
        .filter_map(|record| record.outcome.clone())
        .collect();
    assert_eq!(outcomes, ["Promoted", "Promoted"]);
    // Traffic was whole whenever anybody looked: the candidate was never a target before it was all of it.
    let mut never = world.engine.applied().into_iter();
    assert!(!never.any(|(_, action)| matches!(
        action,
        Action::StopServer { revision, .. } | Action::DeleteServer { revision, .. } if revision == champion(&after)
    )));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_champion_that_is_lost_is_repaired() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    let uid = world.server("main").await.metadata.uid.unwrap();
    world
        .engine
        .change_server(&uid, &champion(&before), 0, |server| {
            server.state = RunState::Exited;
            server.url = None;
            server.exit_code = Some(137);
        });
    let after = world
        .until("main", "it serves at another address", |status| {
            serves(status, "v1") && status.traffic != before.traffic
        })
        .await;
    assert_eq!(champion(&after), champion(&before));
    world.until_told("main", "Repaired").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_16_without_the_engine_ready_is_unknown_and_traffic_stays() {
    for (outage, reason) in [
        (Outage::Unavailable, "EngineUnavailable"),
        (Outage::Forbidden, "EngineForbidden"),
        (Outage::Incomplete, "ObservationTimedOut"),
    ] {
        let world = World::new().await;
        let running = world.start();
        let before = world.serving("main", "v1").await;
        world.engine.outage(Some(outage));
        let blind = world
            .until("main", "it is not known", |status| {
                condition(status, "Ready") == Some((ConditionStatus::Unknown, reason.to_owned()))
            })
            .await;
        assert_eq!(blind.traffic, before.traffic);
        assert_eq!(blind.champion, before.champion);
        assert_eq!(
            condition(&blind, "BackendReachable"),
            Some((ConditionStatus::False, reason.to_owned()))
        );
        let applied = world.engine.applied().len();
        world.engine.outage(None);
        let after = world.until_serves("main", "v1").await;
        assert_eq!(after.traffic, before.traffic, "adopted as it is");
        assert_eq!(
            world.engine.applied().len(),
            applied,
            "nothing was made twice"
        );
        running.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_it_has_no_traffic_and_comes_back() {
    let world = World::new().await;
    let running = world.start();
    world.serving("main", "v1").await;
    world.edit("main", &json!({"suspend": true})).await;
    world
        .until("main", "no traffic", |status| targets(status).is_empty())
        .await;
    let uid = world.server("main").await.metadata.uid.unwrap();
    until("nothing runs", || async {
        let (servers, _) = world.engine.children(&uid);
        if servers
            .iter()
            .all(|server| server.state != RunState::Running)
        {
            Ok(())
        } else {
            Err(servers)
        }
    })
    .await;
    world.edit("main", &json!({"suspend": false})).await;
    world.until_serves("main", "v1").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_replicas_all_get_traffic() {
    let world = World::new().await;
    let running = world.start();
    world.serving("main", "v1").await;
    world.edit("main", &json!({"replicas": 3})).await;
    let status = world
        .until("main", "three addresses", |status| {
            let traffic = status.traffic.clone().unwrap_or_default();
            traffic.targets.first().is_some_and(|it| it.urls.len() == 3) && serves(status, "v1")
        })
        .await;
    assert_eq!((status.replicas, status.ready_replicas), (Some(3), Some(3)));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_takes_its_steps_by_what_the_router_measured() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    world.create_model("v2").await;
    world
        .edit(
            "main",
            &json!({
                "modelRef": {"name": "v2"},
                "rollout": {"strategy": "Canary", "canary": {"steps": [{"weight": 20, "holdSeconds": 30}]}},
            }),
        )
        .await;
    let shifting = world
        .until("main", "the first step", |status| {
            targets(status).iter().any(|(_, weight)| *weight == 20)
        })
        .await;
    let old = champion(&before);
    let new = shifting.candidate.clone().unwrap().revision.unwrap();
    let mut shares = targets(&shifting);
    shares.sort_by_key(|(_, weight)| *weight);
    assert_eq!(shares, [(new.clone(), 20), (old.clone(), 80)]);
    world.report("main", &[(&old, 400, 0), (&new, 100, 0)]);
    world.forward(31);
    let after = world.until_serves("main", "v2").await;
    assert_eq!(champion(&after), new);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_30_without_a_report_a_canary_holds_and_nothing_is_promoted_or_taken_back() {
    let world = World::new().await;
    let running = world.start();
    world.serving("main", "v1").await;
    world.create_model("v2").await;
    world
        .edit(
            "main",
            &json!({
                "modelRef": {"name": "v2"},
                "rollout": {"strategy": "Canary", "canary": {"steps": [{"weight": 20, "holdSeconds": 30}]}},
            }),
        )
        .await;
    world
        .until("main", "the first step", |status| {
            targets(status).iter().any(|(_, weight)| *weight == 20)
        })
        .await;
    // The report is about another server, which is as good as none.
    assert_eq!(RevisionReports::default().server, "");
    world.forward(31);
    world
        .until("main", "it waits for the report", |status| {
            let message = status.rollout.as_ref().and_then(|it| it.message.clone());
            message.is_some_and(|message| message.contains("report"))
        })
        .await;
    world.forward(301);
    let paused = world
        .until("main", "it stands still", |status| {
            condition(status, "RolledOut").is_some_and(|(_, reason)| reason == "Paused")
        })
        .await;
    assert!(paused.rejected.is_empty());
    assert!(targets(&paused).iter().any(|(_, weight)| *weight == 20));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_plane_10_a_gate_that_nothing_judges_waits_and_says_so() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    world.create_model("v2").await;
    world
        .edit(
            "main",
            &json!({"modelRef": {"name": "v2"}, "rollout": {"gateRef": {"name": "default"}}}),
        )
        .await;
    let gating = world
        .until("main", "it waits for the gate and says so", |status| {
            condition(status, "RolledOut").is_some_and(|(_, reason)| reason == "Gating")
                && message(status, "RolledOut").contains("not judged yet")
        })
        .await;
    assert_eq!(targets(&gating), targets(&before), "the champion serves on");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_external_server_gets_traffic_while_its_answers_are_right_and_nothing_is_started() {
    let world = World::new().await;
    let theirs = testkit::FakeLaya::start(Says::relay().serving(&digest("theirs"))).await;
    let running = world.start();
    world
        .create("main", "later", &json!({"external": {"url": theirs.url()}}))
        .await;
    let status = world
        .until("main", "it has traffic", |status| {
            let traffic = status.traffic.clone().unwrap_or_default();
            traffic.targets.len() == 1 && holds(status, "Adopted")
        })
        .await;
    let traffic = status.traffic.unwrap();
    assert_eq!(traffic.targets[0].urls, [theirs.url()]);
    theirs.fail(Fault::NotANumber);
    // Three wrong answers in a row, ten seconds apart.
    for _ in 0..6 {
        world.forward(61);
        tokio::task::yield_now().await;
    }
    until("it has no traffic", || async {
        world.forward(11);
        let status = world.status("main").await;
        if targets(&status).is_empty() && !is_ready(&status) {
            Ok(())
        } else {
            Err(told(&status))
        }
    })
    .await;
    assert_eq!(world.engine.applied(), []);
    assert!(is_at_rest(&world.status("main").await));
    running.end().await;
}

fn is_ready(status: &api::kinds::LayaServerStatus) -> bool {
    holds(status, "Ready")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_17_what_no_hint_told_of_is_found_by_the_next_full_look() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    // The replica ends, and its end is told to nobody but by the look that is due.
    let old = world.replica(&champion(&before), testkit::FakeLaya::url);
    let uid = world.server("main").await.metadata.uid.unwrap();
    world
        .engine
        .change_server(&uid, &champion(&before), 0, |server| {
            server.state = RunState::Exited;
            server.url = None;
        });
    world.engine.hint(Hint::Everything);
    world
        .until("main", "it serves elsewhere", |status| {
            let traffic = status.traffic.clone().unwrap_or_default();
            serves(status, "v1") && !traffic.targets[0].urls.contains(&old)
        })
        .await;
    running.end().await;
}
