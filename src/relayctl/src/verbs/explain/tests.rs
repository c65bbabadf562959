//! What an object comes to in words.

use serde_json::json;

use super::*;

fn told(object: &Value) -> String {
    let now = "2026-11-30T10:00:00Z".parse().unwrap();
    explain(
        kinds::routing_policy(),
        object,
        Vec::new(),
        &Beside::default(),
        now,
    )
    .render(now, Styles::PLAIN)
}

fn object(generation: i64, status: &Value) -> Value {
    json!({"metadata": {"name": "default", "namespace": "default", "generation": generation}, "status": status})
}

#[test]
fn a_new_object_waits_for_its_controller() {
    assert_eq!(
        told(&object(1, &Value::Null)),
        "routingpolicy/default was not looked at by any controller yet
  generation 1 waits, status is of generation none: what follows tells of the spec as it was
  in force: no revision was accepted yet; routers use the built-in policy
waits for: the controller
next: `relayctl status` tells whether the controller runs; it looks within seconds
"
    );
}

#[test]
fn a_good_policy_needs_nothing() {
    let status = json!({"observedGeneration": 1, "acceptedRevision": "0123456789", "acceptedGeneration": 1, "conditions": [
        {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "compiles"},
        {"type": "Ready", "status": "True", "reason": "Reconciled", "message": "in force", "lastTransitionTime": "2026-11-30T09:59:00Z"}]});
    assert_eq!(
        told(&object(1, &status)),
        "routingpolicy/default is ready, since 60s
  Ready=True (Reconciled), since 60s: in force
  in force: revision 0123456789 is in force
waits for: nothing
next: nothing
"
    );
}

#[test]
fn a_refused_edit_leads_to_its_fields() {
    let status = json!({"observedGeneration": 2, "acceptedRevision": "0123456789", "acceptedGeneration": 1,
        "problems": [{"severity": "Error", "path": "spec.rules[0].patterns[0]", "message": "a word is empty"},
            {"severity": "Warning", "path": "spec.models[0].prices", "message": "older than 90 days"}],
        "conditions": [
        {"type": "Ready", "status": "False", "reason": "BadPattern", "message": "see Accepted", "lastTransitionTime": "2026-11-30T09:58:00Z"},
        {"type": "Stalled", "status": "True", "reason": "BadPattern", "message": "edit the spec", "lastTransitionTime": "2026-11-30T09:58:00Z"},
        {"type": "Accepted", "status": "False", "reason": "BadPattern", "message": "1 problem", "lastTransitionTime": "2026-11-30T09:58:00Z"}]});
    assert_eq!(
        told(&object(2, &status)),
        "routingpolicy/default is not ready, since 2m
  Ready=False (BadPattern), since 2m: see Accepted
  Stalled=True (BadPattern), since 2m: edit the spec
  Accepted=False (BadPattern), since 2m: 1 problem
  in force: revision 0123456789 of generation 1 stays in force until this one is accepted
  error spec.rules[0].patterns[0]: a word is empty
  warning spec.models[0].prices: older than 90 days
waits for: a change by somebody
next: correct spec.rules[0].patterns[0], then `relayctl apply -f FILE`; `relayctl validate -f FILE` tells beforehand
next: look at spec.models[0].prices: a warning, nothing is stopped by it
"
    );
}

#[test]
fn a_deleted_object_names_who_holds_it() {
    let object = json!({"metadata": {"name": "m", "namespace": "default", "deletionTimestamp": "2026-11-30T09:59:30Z",
        "finalizers": ["relay.dev/model-in-use"]}});
    let text = told(&object);
    assert!(
        text.starts_with(
            "routingpolicy/m is being deleted, since 30s\n  finalizers: relay.dev/model-in-use"
        ),
        "{text}"
    );
}

#[test]
fn what_an_object_says_cannot_speak_to_the_terminal() {
    let status = json!({"observedGeneration": 1, "conditions": [
        {"type": "Ready", "status": "False", "reason": "X\u{1b}[2J", "message": "a\nb\u{202e}"}]});
    let text = told(&object(1, &status));
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
}

#[test]
fn a_kind_that_nobody_acts_on_waits_for_a_release() {
    let kind = kinds::named("TrainingRun").unwrap();
    let object = object(1, &Value::Null);
    let now = "2026-11-30T10:00:00Z".parse().unwrap();
    assert_eq!(
        explain(kind, &object, Vec::new(), &Beside::default(), now).render(now, Styles::PLAIN),
        "trainingrun/default is stored; nothing acts on this kind yet
waits for: a release of Relay whose controller acts on it
next: nothing: trainingrun/default is checked and kept until then
"
    );
}

#[test]
fn a_full_store_needs_room_and_no_rights() {
    let status = json!({"observedGeneration": 1, "conditions": [
        {"type": "Ready", "status": "False", "reason": "Forbidden", "message": "the local store holds at most 10000 objects"},
        {"type": "Stalled", "status": "True", "reason": "Forbidden", "message": "the local store holds at most 10000 objects"}]});
    let text = told(&object(1, &status));
    assert!(text.ends_with(&format!("next: {DELETE_SOME}\n")), "{text}");
}

#[test]
fn an_event_tells_when_and_how_often() {
    let event = |count: u64| {
        json!({"items": [{"type": "Warning", "reason": "R", "note": "n", "eventTime": "2026-11-30T09:59:00Z",
        "series": {"count": count, "lastObservedTime": "2026-11-30T09:59:30Z"}}]})
    };
    let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
    for (count, said) in [(1, "30s ago  Warning"), (3, "30s ago (x3)  Warning")] {
        let events = events::read(&event(count));
        let text = explain(
            kinds::routing_policy(),
            &object(1, &Value::Null),
            events,
            &Beside::default(),
            now,
        )
        .render(now, Styles::PLAIN);
        assert!(text.contains(&format!("\n  {said}  R: n\n")), "{text}");
    }
}

fn chain(kind: &'static Kind, object: &Value, beside: &Beside) -> String {
    let now = "2026-11-30T10:00:00Z".parse().unwrap();
    explain(kind, object, Vec::new(), beside, now).render(now, Styles::PLAIN)
}

#[test]
fn a_server_leads_to_its_wish_its_model_and_the_failed_fetch() {
    let laya = json!({"metadata": {"name": "main", "namespace": "default", "generation": 2}, "spec": {"modelRef": {"name": "w"}},
        "status": {"observedGeneration": 2, "wish": {"model": "w", "from": "Spec", "since": "2026-11-30T09:50:00Z"},
            "champion": {"model": "v1", "shortDigest": "d5a13ee24047", "device": {"actual": "cpu", "p50Millis": 18}, "since": "2026-11-30T09:00:00Z"},
            "rollout": {"kind": "Model", "state": "Preparing", "startedAt": "2026-11-30T09:55:00Z", "message": "w is being fetched"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": "v1 serves"},
                {"type": "ModelReady", "status": "False", "reason": "ModelNotReady", "message": "w is not ready"}]}});
    let model = json!({"metadata": {"name": "w", "generation": 1}, "status": {"observedGeneration": 1, "phase": "Fetching",
        "fetch": {"attempt": 3, "startedAt": "2026-11-30T09:50:00Z", "bytesDone": 50_000_000, "bytesTotal": 678_000_000, "nextAttemptAt": "2026-11-30T10:02:00Z",
            "lastError": {"reason": "SourceBusy", "message": "503 from models.example.com", "at": "2026-11-30T09:59:00Z"}},
        "conditions": [{"type": "Ready", "status": "False", "reason": "Fetching", "message": "7 %"}]}});
    let beside = Beside {
        model: Some(model),
        servers: Vec::new(),
    };
    assert_eq!(
        chain(kinds::laya_server(), &laya, &beside),
        "\
layaserver/main is ready
  Ready=True (Reconciled): v1 serves
  ModelReady=False (ModelNotReady): w is not ready
  serves, since 60m: v1 (d5a13ee24047) on cpu, 18 ms a question
  wish, since 10m: w, by spec.modelRef
  layamodel/w is Fetching (Fetching): 7 %
  fetch, attempt 3, since 10m: 50 MB of 678 MB are here
  last failure (SourceBusy), since 60s: 503 from models.example.com; again at 2026-11-30 10:02
  rollout, since 5m: v1 (d5a13ee24047) -> w, blue-green, preparing: w is being fetched
waits for: nothing
deadline: given up at 2026-11-30 10:10, in 10m
next: `relayctl explain lm/w` tells what w waits for
"
    );
}

#[test]
fn a_rejected_wish_says_what_was_wrong_and_what_to_do() {
    let laya = json!({"metadata": {"name": "main", "namespace": "default", "generation": 2}, "spec": {"modelRef": {"name": "w"}},
        "status": {"observedGeneration": 2, "champion": {"model": "v1"},
            "rejected": [{"revision": "0123456789", "digest": "sha256:ab", "reason": "WrongAnswers", "message": "2 of 8", "at": "2026-11-30T09:59:00Z"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": ""},
                {"type": "Stalled", "status": "True", "reason": "Rejected", "message": "spec names w, which was taken back"}]}});
    let model = json!({"metadata": {"name": "w", "generation": 1}, "status": {"observedGeneration": 1, "digest": "sha256:ab",
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let text = chain(
        kinds::laya_server(),
        &laya,
        &Beside {
            model: Some(model),
            servers: Vec::new(),
        },
    );
    assert!(
        text.contains("\n  revision 0123456789 was taken back (WrongAnswers), since 60s: 2 of 8\n"),
        "{text}"
    );
    assert!(text.ends_with("next: `relayctl rollout retry main` tries w once more; `relayctl use NAME --server main` names another\n"), "{text}");
}

#[test]
fn a_model_says_how_its_fetch_ended_and_who_has_it() {
    let failed = json!({"metadata": {"name": "w", "namespace": "default", "generation": 1}, "spec": {}, "status": {"observedGeneration": 1, "phase": "Failed",
        "fetch": {"attempt": 5, "bytesDone": 0, "bytesTotal": 10, "lastError": {"reason": "SourceNotFound", "message": "404 for model.safetensors"}},
        "conditions": [{"type": "Ready", "status": "False", "reason": "SourceNotFound", "message": "404"},
            {"type": "Stalled", "status": "True", "reason": "SourceNotFound", "message": "404"}]}});
    let server = json!({"metadata": {"name": "main"}, "status": {"candidate": {"model": "w"}}});
    let beside = Beside {
        model: None,
        servers: vec![server],
    };
    let text = chain(kinds::laya_model(), &failed, &beside);
    for part in [
        "\n  fetch, attempt 5: 0 B of 10 B are here\n",
        "\n  last failure (SourceNotFound): 404 for model.safetensors\n",
        "\n  in use: candidate of layaserver/main\n",
        "\nnext: correct the address or the name of the file\nnext: `relayctl model fetch w` tries it again\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut deleting = failed;
    deleting["metadata"]["deletionTimestamp"] = json!("2026-11-30T09:59:00Z");
    deleting["metadata"]["finalizers"] = json!(["relay.dev/model-in-use"]);
    let text = chain(kinds::laya_model(), &deleting, &beside);
    assert!(
        text.contains("waits for: candidate of layaserver/main\n")
            && text.contains("next: give those servers another version"),
        "{text}"
    );
}
