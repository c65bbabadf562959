use backend::{Capabilities, ServerSeen};
use serde_json::{Value, json};

use super::*;
use crate::layaserver::observation::GateView;

fn server(spec: &Value, status: &Value) -> LayaServer {
    let mut object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
        "metadata": {"name": "main", "namespace": "space", "uid": "u1"},
        "spec": {"modelRef": {"name": "v1"}}, "status": status,
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn checked() -> Checked {
    Checked {
        models: BTreeMap::new(),
        promotions: Vec::new(),
        gate: GateView::None,
        capabilities: Capabilities {
            name: "fake",
            max_replicas: 4,
            gpu: false,
            split_traffic: true,
            training: false,
            images: true,
            pods: false,
        },
        default_image: "laya:default".to_owned(),
        documents: BTreeMap::new(),
        document_uids: BTreeMap::new(),
        logs: BTreeMap::new(),
        taken: std::collections::BTreeSet::new(),
        own_address: None,
    }
}

fn inputs(contract: Option<&str>) -> RevisionInputs {
    let inputs = json!({
        "ownerUid": "u1", "digest": "sha256:d", "contract": contract, "image": "laya",
        "serverApi": "Relay", "device": "Auto", "devicePolicy": "Require", "serving": {}, "renderVersion": 1,
    });
    serde_json::from_value(inputs).unwrap()
}

fn seen(revision: &str, state: RunState, url: Option<&str>) -> ServerSeen {
    ServerSeen {
        revision: revision.to_owned(),
        ordinal: 0,
        state,
        started_at: None,
        restarts: 0,
        exit_code: None,
        oom_killed: false,
        image_id: None,
        url: url.map(str::to_owned),
        spec_hash: None,
        hash_matches: None,
        tampered: Vec::new(),
        waiting: None,
        memory_bytes: 0,
        model: None,
        inputs: None,
        checkpoint: None,
        log_tail: String::new(),
    }
}

#[test]
fn images_of_spec_and_status_are_asked_for_once_each() {
    let status = json!({
        "champion": {"image": "laya:1", "imageId": "sha256:i1"}, "previous": {"image": "laya:1"},
        "candidate": {"image": "laya:2"},
    });
    let images = |spec| question(&server(&spec, &status), &checked()).images;
    assert_eq!(
        images(json!({})),
        ["laya:1", "laya:2", "laya:default", "sha256:i1"]
    );
    assert_eq!(
        images(json!({"image": "laya:2"})),
        ["laya:1", "laya:2", "sha256:i1"]
    );
}

#[test]
fn what_runs_is_asked_for_what_its_document_says() {
    let unknown = format!("sha256:{}", "e".repeat(64));
    let mut checked = checked();
    checked
        .documents
        .insert("r1".to_owned(), inputs(Some(QuestionSet::ours().digest())));
    checked
        .documents
        .insert("r2".to_owned(), inputs(Some(&unknown)));
    let observed = Observed {
        servers: vec![
            seen("r1", RunState::Running, Some("http://127.0.0.1:1")),
            seen("r1", RunState::Exited, Some("http://127.0.0.1:2")),
            seen("r2", RunState::Running, Some("http://127.0.0.1:3")),
            seen("r3", RunState::Running, Some("http://127.0.0.1:4")),
            seen("r3", RunState::Running, None),
        ],
        ..Observed::default()
    };
    let serving = server(
        &json!({"probe": {"intervalSeconds": 30, "timeoutMillis": 700}}),
        &json!({"champion": {"revision": "r1"}}),
    );
    let questions =
        |contract: &str| (contract == QuestionSet::ours().digest()).then(QuestionSet::ours);
    let recorded = |checkpoint: &str| -> Arc<[RecordedProbe]> {
        let probes =
            json!([{"state": "x", "answers": {"risk": {"label": "true", "probability": 0.5}}}]);
        assert_eq!(checkpoint, "sha256:d");
        Arc::from(serde_json::from_value::<Vec<RecordedProbe>>(probes).unwrap())
    };
    let watched = replicas(&serving, &checked, &observed, questions, recorded);
    let told: Vec<_> = watched
        .iter()
        .map(|replica| {
            (
                replica.url.as_str(),
                replica.digest.is_some(),
                replica.questions.is_some(),
                replica.recorded.len(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("http://127.0.0.1:1", true, true, 1),
            ("http://127.0.0.1:3", true, false, 1),
            // Nothing is known of what made it, so it is asked our questions.
            ("http://127.0.0.1:4", false, true, 0),
        ]
    );
    assert_eq!(watched[0].interval, Duration::from_secs(30));
    assert_eq!(watched[0].timeout, Duration::from_millis(700));
    assert_eq!(watched[0].pace, Pace::Steady);
}

#[test]
fn a_rollout_hurries_and_needs_the_report() {
    for (status, hurry, report) in [
        (json!({}), Pace::Rollout, false),
        (json!({"champion": {"revision": "r1"}}), Pace::Steady, false),
        (
            json!({"champion": {"revision": "r1"}, "rollout": {"state": "Done"}}),
            Pace::Steady,
            false,
        ),
        (
            json!({"champion": {"revision": "r1"}, "rollout": {"state": "Baking"}}),
            Pace::Rollout,
            true,
        ),
    ] {
        let server = server(&json!({}), &status);
        assert_eq!(
            (pace(&server), needs_report(&server)),
            (hurry, report),
            "{status}"
        );
    }
}

#[test]
fn an_external_server_is_asked_in_the_wording_it_names() {
    let external_server = server(
        &json!({"external": {"url": "http://127.0.0.1:8737/"}}),
        &json!({}),
    );
    let none = |_: &str| None;
    let first = external(&external_server, None, none).unwrap();
    assert_eq!(
        (first.url.as_str(), first.questions.is_some()),
        ("http://127.0.0.1:8737", true)
    );
    assert!(external(&server(&json!({}), &json!({})), None, none).is_none());
}

#[test]
fn fault_11_a_fact_is_as_old_as_this_process_has_known_it() {
    let ages = FactAges::new(Duration::from_secs(100));
    let status = json!({"rollout": {"state": "Loading", "startedAt": "2026-11-30T10:00:00Z"}});
    let rolling = server(&json!({}), &status);
    let at = |seconds| ages.of("u1", &rolling, Duration::from_secs(seconds));
    let key = "rollout@2026-11-30T10:00:00Z";
    assert_eq!(at(130).facts.get(key), None, "older than anybody knows");
    let idle = server(&json!({}), &json!({}));
    let none = ages.of("u1", &idle, Duration::from_secs(140));
    assert_eq!(
        (none.facts.len(), none.process),
        (0, Duration::from_secs(40))
    );
    assert_eq!(at(150).facts[key], Duration::ZERO, "it came up just now");
    assert_eq!(at(170).facts[key], Duration::from_secs(20));
    ages.forget("u1");
    assert_eq!(at(180).facts.get(key), None);
}
