use kube::core::ObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::*;
use crate::watched::Unparsed;

fn server(status: &Value) -> LayaServer {
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
        "metadata": {"name": "main", "namespace": "space", "uid": "u1"},
        "spec": {"modelRef": {"name": "wished"}}, "status": status,
    });
    serde_json::from_value(object).unwrap()
}

fn model(name: &str, spec: &Value, status: &Value) -> Watched<LayaModel> {
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel",
        "metadata": {"name": name, "namespace": "space"}, "spec": spec, "status": status,
    });
    serde_json::from_value(object).unwrap()
}

fn volume(name: &str) -> Value {
    json!({"source": {"volume": {"name": name, "path": "x"}}, "manifestDigest": format!("sha256:{}", "1".repeat(64))})
}

fn store(models: Vec<Watched<LayaModel>>) -> Store<Watched<LayaModel>> {
    let mut writer = Writer::default();
    let store = writer.as_reader();
    for model in models {
        writer.apply_watcher_event(&Event::Apply(model));
    }
    store
}

#[test]
fn models_that_spec_and_status_name_are_looked_up() {
    let ready = json!({
        "digest": "sha256:d", "sizeBytes": 7, "verifiedAt": "2026-11-30T10:00:00Z",
        "location": {"backend": "docker", "volume": "v", "path": "p"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": "", "lastTransitionTime": "2026-11-30T10:00:00Z"}],
    });
    let broken = Watched::Unparsed(Box::new(Unparsed {
        metadata: ObjectMeta {
            name: Some("older".to_owned()),
            namespace: Some("space".to_owned()),
            ..ObjectMeta::default()
        },
        error: "spec.source: unknown".to_owned(),
    }));
    let mut contracted = volume("foreign");
    contracted["contract"] = json!(format!("sha256:{}", "c".repeat(64)));
    let store = store(vec![
        model("wished", &volume("models"), &json!({})),
        model("serves", &contracted, &ready),
        model("unnamed", &volume("models"), &json!({})),
        broken,
    ]);
    let server = server(
        &json!({"champion": {"model": "serves"}, "previous": {"model": "older"}, "candidate": {"model": "gone"}}),
    );
    let views = models(&server, &store, &[]);
    assert_eq!(
        views.keys().collect::<Vec<_>>(),
        ["older", "serves", "wished"]
    );
    let wished = &views["wished"];
    assert_eq!(
        (wished.ready, wished.reason.as_str(), wished.foreign_volume),
        (false, "Waiting", false)
    );
    let serves = &views["serves"];
    assert!(serves.ready && serves.foreign_volume && serves.verified_at.is_some());
    assert_eq!(serves.size_bytes, 7);
    assert_eq!(serves.digest.as_deref(), Some("sha256:d"));
    assert!(serves.contract.as_ref().unwrap().contains("cccc"));
    assert_eq!(views["older"].reason, "InvalidSpec");
    assert!(names_model(&server, "gone") && !names_model(&server, "unnamed"));
}

#[test]
fn a_gate_that_is_named_has_not_judged() {
    assert_eq!(gate(&server(&json!({}))), GateView::None);
    let mut gated = server(&json!({}));
    gated.spec.rollout.gate_ref = serde_json::from_value(json!({"name": "default"})).unwrap();
    assert_eq!(
        gate(&gated),
        GateView::NotJudged {
            name: "default".to_owned()
        }
    );
}

fn run(name: &str, change: impl Fn(&mut Value)) -> TrainingRun {
    let mut object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "TrainingRun",
        "metadata": {"name": name, "namespace": "space"},
        "spec": {"baseRef": {"name": "v1"}, "dataset": {"store": {}}, "gateRef": {"name": "default"},
            "promote": {"mode": "Automatic", "serverRef": {"name": "main"}}},
        "status": {"outcome": {"succeeded": true}, "gate": {"verdict": "Passed"},
            "producedModel": {"name": name}, "completedAt": "2026-11-30T10:00:00Z"},
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

#[test]
fn control_plane_3_1_only_runs_that_are_due_promote() {
    type Edit = fn(&mut Value);
    let cases: [(&str, Edit, bool); 10] = [
        ("as it is", |_| {}, true),
        (
            "another server",
            |run| run["spec"]["promote"]["serverRef"]["name"] = json!("other"),
            false,
        ),
        (
            "another namespace",
            |run| run["metadata"]["namespace"] = json!("other"),
            false,
        ),
        (
            "failed",
            |run| run["status"]["outcome"]["succeeded"] = json!(false),
            false,
        ),
        (
            "not finished",
            |run| run["status"]["outcome"] = json!(null),
            false,
        ),
        (
            "gate failed",
            |run| run["status"]["gate"]["verdict"] = json!("Failed"),
            false,
        ),
        (
            "not judged",
            |run| run["status"]["gate"] = json!(null),
            false,
        ),
        (
            "by hand, not approved",
            |run| run["spec"]["promote"]["mode"] = json!("Manual"),
            false,
        ),
        (
            "by hand, approved",
            |run| {
                run["spec"]["promote"] =
                    json!({"mode": "Manual", "approved": true, "serverRef": {"name": "main"}})
            },
            true,
        ),
        (
            "another wording",
            |run| run["status"]["producedModel"]["name"] = json!("reworded"),
            false,
        ),
    ];
    let server = server(&json!({"champion": {"model": "v1", "contract": "sha256:c"}}));
    let contract_of = |model: &str| {
        Some(
            if model == "reworded" {
                "sha256:e"
            } else {
                "sha256:c"
            }
            .to_owned(),
        )
    };
    for (what, edit, due) in cases {
        let run = run("week-1", edit);
        let found = promotions(&server, [&run].into_iter(), contract_of);
        assert_eq!(!found.is_empty(), due, "{what}");
    }
    let late = run("late", |run| {
        run["status"]["completedAt"] = json!("2026-11-30T12:00:00Z")
    });
    let early = run("early", |_| {});
    let found = promotions(&server, [&late, &early].into_iter(), contract_of);
    let names: Vec<_> = found
        .iter()
        .map(|promotion| promotion.run.as_str())
        .collect();
    assert_eq!(names, ["early", "late"]);
}
