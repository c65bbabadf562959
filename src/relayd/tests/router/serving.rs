//! `relayd local` that serves a model inside: from objects to decisions by the model, another model under load, restarts,
//! and signals in every phase.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::embedded::{GROUP, call, embedded, get, model, patch, post, stopped};
use crate::support::{Router, ask, post as request, wait_for};

/// Longest wait for a rollout on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server of the model, with the shortest rollouts there are.
fn server(home: &Path, model: &str) {
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer", "metadata": {"name": "main"},
        "spec": {
            "modelRef": {"name": model},
            "serving": {"threads": 1},
            "rollout": {"minReadySeconds": 0, "drainSeconds": 1, "rollbackWindowSeconds": 0},
        },
    });
    let made = post(home, &format!("{GROUP}/layaservers"), &object);
    assert_eq!(made.status, 201, "{made:?}");
}

/// A policy whose decisions come of that server.
fn policy(home: &Path) {
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": "default"},
        "spec": {"serverRef": {"name": "main"}},
    });
    let made = post(home, &format!("{GROUP}/routingpolicies"), &object);
    assert_eq!(made.status, 201, "{made:?}");
}

fn status(home: &Path) -> Value {
    get(home, &format!("{GROUP}/layaservers/main")).json()["status"].clone()
}

fn until(home: &Path, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let status = status(home);
        if holds(&status) {
            return status;
        }
        assert!(began.elapsed() < PATIENCE, "waited for {what}: {status:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until a model serves, and its rollout is over.
fn until_served(home: &Path, model: &str) -> Value {
    until(home, &format!("{model} to serve"), |status| {
        status["champion"]["model"] == model
            && status["traffic"]["targets"][0]["weight"] == 100
            && status["candidate"].is_null()
    })
}

fn route(router: &Router, number: usize) -> Value {
    let body = json!({"request": format!("Rename variable {number} in the settings page.")});
    let answer = router.route(body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn by_model(decision: &Value) -> Option<String> {
    let is_model = decision["assessment"]["source"] == "model";
    is_model.then(|| decision["provenance"].to_string())
}

/// Waits until decisions are made by the model with this digest.
fn until_decided_by(router: &Router, digest: &str) {
    let mut number = 1_000_000;
    wait_for("a decision by the model", || {
        number += 1;
        let decision = route(router, number);
        by_model(&decision).filter(|checkpoint| checkpoint.contains(digest))
    });
}

#[test]
fn a_model_serves_decides_and_is_replaced_under_load_without_a_lost_request() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut router = embedded(home);
    let first = model(home, "v1", 11);
    let second = model(home, "v2", 12);
    server(home, "v1");
    policy(home);
    let served = until_served(home, "v1");
    assert_eq!(served["champion"]["digest"], first.as_str(), "{served:#}");
    until_decided_by(&router, &first);
    let logs = get(home, "/api/logs/default/layaservers/main");
    assert_eq!(logs.status, 200, "{logs:?}");
    assert!(
        logs.body.contains("listening on http://127.0.0.1:"),
        "{logs:?}"
    );

    let (stop, lost, asked) = (
        Arc::new(AtomicBool::new(false)),
        Arc::default(),
        Arc::default(),
    );
    let load = load(&router, &stop, &lost, &asked);
    let wish = json!({"spec": {"modelRef": {"name": "v2"}}});
    let used = patch(home, &format!("{GROUP}/layaservers/main"), &wish);
    assert_eq!(used.status, 200, "{used:?}");
    let served = until_served(home, "v2");
    assert_eq!(served["champion"]["digest"], second.as_str());
    until_decided_by(&router, &second);
    stop.store(true, Ordering::Relaxed);
    load.join().unwrap();
    let lost: Vec<String> = std::mem::take(&mut lost.lock().unwrap());
    assert!(lost.is_empty(), "{lost:?}");
    assert!(*asked.lock().unwrap() > 5);

    // Nothing of it outlives the process; the next one serves what the objects say.
    stopped(&mut router);
    let mut router = embedded(home);
    until_decided_by(&router, &second);
    // No address of the earlier life was ever asked: there is one target, and it answers.
    let urls = status(home)["traffic"]["targets"][0]["urls"].clone();
    assert_eq!(urls.as_array().unwrap().len(), 1, "{urls}");
    stopped(&mut router);
}

type Lost = Arc<Mutex<Vec<String>>>;

/// Twenty requests a second, each with one retry, until it is told to stop.
fn load(
    router: &Router,
    stop: &Arc<AtomicBool>,
    lost: &Lost,
    asked: &Arc<Mutex<usize>>,
) -> std::thread::JoinHandle<()> {
    let (address, stop, lost, asked) = (router.address, stop.clone(), lost.clone(), asked.clone());
    std::thread::spawn(move || {
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            number += 1;
            let body = json!({"request": format!("Translate message {number} to German.")});
            let bytes = request("/v1/route", "application/json", body.to_string().as_bytes());
            let began = Instant::now();
            let answer = ask(address, &bytes);
            if answer.status != 200 || began.elapsed() > Duration::from_secs(5) {
                lost.lock().unwrap().push(format!("{answer:?}"));
            }
            *asked.lock().unwrap() += 1;
            std::thread::sleep(Duration::from_millis(50));
        }
    })
}

#[test]
fn fault_38_a_signal_in_every_phase_of_serving_ends_well_and_the_next_start_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut router = embedded(home);
    model(home, "v1", 21);
    let digest = model(home, "v2", 22);
    // Before anything runs, while it starts, while it serves, while another one takes over, and by SIGKILL.
    stopped(&mut router);
    let mut router = embedded(home);
    server(home, "v1");
    policy(home);
    stopped(&mut router);
    let mut router = embedded(home);
    until(home, "a rollout", |status| status["rollout"].is_object());
    stopped(&mut router);
    let mut router = embedded(home);
    until_served(home, "v1");
    let wish = json!({"spec": {"modelRef": {"name": "v2"}}});
    assert_eq!(
        patch(home, &format!("{GROUP}/layaservers/main"), &wish).status,
        200
    );
    until(home, "a candidate", |status| {
        status["candidate"]["model"] == "v2" || status["champion"]["model"] == "v2"
    });
    router.signal(Signal::KILL);
    router.ended();
    let mut router = embedded(home);
    until_served(home, "v2");
    until_decided_by(&router, &digest);
    stopped(&mut router);
}

#[test]
fn what_an_embedded_engine_cannot_do_is_cut_and_said() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut router = embedded(home);
    model(home, "v1", 31);
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer", "metadata": {"name": "main"},
        "spec": {
            "modelRef": {"name": "v1"}, "replicas": 3, "serving": {"threads": 1},
            "rollout": {"minReadySeconds": 0, "strategy": "Shadow", "shadow": {}},
        },
    });
    let made = post(home, &format!("{GROUP}/layaservers"), &object);
    assert_eq!(made.status, 201, "{made:?}");
    until_served(home, "v1");
    let status = until(home, "the condition", |status| {
        let conditions = status["conditions"].as_array();
        conditions.into_iter().flatten().any(|condition| {
            condition["type"] == "FieldsSupported" && condition["reason"] == "FieldsIgnored"
        })
    });
    assert_eq!(status["readyReplicas"], 1, "{status:#}");
    stopped(&mut router);
}

#[test]
fn source_volume_knows_only_the_models_of_this_home() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut router = embedded(home);
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel", "metadata": {"name": "theirs"},
        "spec": {
            "source": {"volume": {"name": "relay-laya-models", "path": "local-1"}},
            "manifestDigest": format!("sha256:{}", "0".repeat(64)),
        },
    });
    let made = call(
        home,
        "POST",
        &format!("{GROUP}/layamodels"),
        "application/json",
        &object.to_string(),
    );
    assert_eq!(made.status, 201, "{made:?}");
    let stalled = wait_for("it to be stalled", || {
        let object = get(home, &format!("{GROUP}/layamodels/theirs")).json();
        let conditions = object["status"]["conditions"].as_array()?.clone();
        conditions
            .into_iter()
            .find(|condition| condition["type"] == "Stalled")
    });
    assert_eq!(stalled["reason"], "InvalidSpec", "{stalled:#}");
    assert!(
        stalled["message"]
            .as_str()
            .unwrap()
            .contains("relay-laya-models"),
        "{stalled:#}"
    );
    stopped(&mut router);
}
