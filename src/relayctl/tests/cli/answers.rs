//! What comes of each answer of an API, and of none.

use serde_json::{Value, json};

use crate::scripted::{Answer, serve};
use crate::support::{Home, first};

const FILE: &str = "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata:\n  name: default\nspec:\n  profile: quality\n  memory: false\n";

fn status(code: u16, reason: &str, message: &str, causes: &Value) -> Answer {
    Answer::Json(
        code,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason, "code": code, "details": {"name": "default", "causes": causes}}),
    )
}

fn object() -> Value {
    json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "metadata": {"name": "default", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 1,
            "managedFields": [{"manager": "x"}]},
        "spec": {"profile": "balanced"}})
}

#[test]
fn each_refusal_has_its_exit_code() {
    for (code, reason, exit) in [
        (400, "BadRequest", 4),
        (401, "Unauthorized", 11),
        (403, "Forbidden", 11),
        (404, "NotFound", 3),
        (405, "MethodNotAllowed", 1),
        (409, "Conflict", 5),
        (422, "Invalid", 4),
        (429, "TooManyRequests", 6),
        (500, "InternalError", 6),
        (503, "ServiceUnavailable", 6),
    ] {
        let home = Home::new();
        serve(&home, move |_| {
            status(code, reason, "what the \u{1b}server said", &json!([]))
        });
        let ran = home.run(&["get", "rp/default", "-o", "json"]);
        assert_eq!(ran.code, Some(exit), "{code}: {}", ran.err);
        assert_eq!(
            first(&ran),
            "relayctl: what the \\u{1b}server said",
            "{code}"
        );
        let last = ran.err.lines().last().unwrap();
        let told: Value = serde_json::from_str(last).unwrap();
        assert_eq!(told["reason"], reason, "{code}");
    }
}

#[test]
fn no_answer_a_cut_one_and_nonsense_are_told_apart() {
    let home = Home::new();
    serve(&home, |asked| match asked.path.as_str() {
        path if path.contains("/silent?") => Answer::Silence,
        path if path.ends_with("/silent") => Answer::Silence,
        path if path.ends_with("/cut") => Answer::Cut,
        path if path.contains("/list") || path.contains("layamodels?") => Answer::Text(200, "[1]"),
        _ => Answer::Text(200, "<html>hello</html>"),
    });
    let ran = home.run(&["get", "lm", "-o", "json"]);
    assert_eq!(ran.code, Some(6), "{}", ran.err);
    let ran = home.run(&["get", "rp/silent", "--timeout", "200ms"]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert_eq!(
        first(&ran),
        "relayctl: the API of context `local` does not answer: no answer within 200ms"
    );
    let ran = home.run(&["get", "rp/cut"]);
    assert_eq!(ran.code, Some(6), "{}", ran.err);
    assert!(first(&ran).contains("its answer broke off"), "{}", ran.err);
    let ran = home.run(&["get", "rp/other"]);
    assert_eq!(ran.code, Some(6), "{}", ran.err);
    assert!(first(&ran).contains("is no object API"), "{}", ran.err);
}

#[test]
fn a_refused_object_is_told_at_its_lines() {
    let home = Home::new();
    home.write("p.yaml", FILE);
    serve(&home, |asked| match asked.method.as_str() {
        "GET" => Answer::Json(200, object()),
        _ => status(
            422,
            "Invalid",
            "RoutingPolicy.relay.dev \"default\" is invalid",
            &json!([{"reason": "FieldValueInvalid", "field": "spec.profile", "message": "Invalid value: \"quality\""},
                {"reason": "FieldValueInvalid", "field": "spec.memory", "message": "Invalid value: false"}]),
        ),
    });
    let ran = home.run(&["apply", "-f", "p.yaml"]);
    assert_eq!(ran.code, Some(4));
    assert_eq!(
        ran.err,
        "relayctl: p.yaml:6: routingpolicy/default: spec.profile: Invalid value: \"quality\"; p.yaml:7: spec.memory: Invalid value: false\n"
    );
}

#[test]
fn a_conflict_names_fields_and_owner() {
    let home = Home::new();
    home.write("p.yaml", FILE);
    serve(&home, |asked| match asked.method.as_str() {
        "GET" => Answer::Json(200, object()),
        _ => status(
            409,
            "Conflict",
            "Apply failed with 1 conflict",
            &json!([{"reason": "FieldManagerConflict", "field": ".spec.profile", "message": "conflict with \"kubectl-edit\" using relay.dev/v1alpha1"}]),
        ),
    });
    let ran = home.run(&["apply", "-f", "p.yaml"]);
    assert_eq!(ran.code, Some(5));
    assert_eq!(
        ran.err,
        "relayctl: p.yaml:1: routingpolicy/default: others own spec.profile (conflict with \"kubectl-edit\" using relay.dev/v1alpha1)\nhint: leave these fields out, or take them over with `--force-conflicts`\n"
    );
}

#[test]
fn of_several_objects_none_is_written_when_one_is_refused() {
    let home = Home::new();
    home.write(
        "two.yaml",
        format!(
            "{FILE}---\n{}",
            FILE.replace("name: default", "name: other")
        ),
    );
    let asked = serve(&home, |asked| {
        if asked.method == "PATCH" && asked.path.contains("/other?") {
            status(
                422,
                "Invalid",
                "is invalid",
                &json!([{"field": "spec.profile", "message": "bad"}]),
            )
        } else {
            Answer::Json(200, object())
        }
    });
    let ran = home.run(&["apply", "-f", "two.yaml"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(4), ""));
    assert_eq!(
        ran.err,
        "nothing was applied\nrelayctl: two.yaml:14: routingpolicy/other: spec.profile: bad\n"
    );
    let writes = asked
        .lock()
        .unwrap()
        .iter()
        .filter(|asked| asked.method == "PATCH" && !asked.path.contains("dryRun=All"))
        .count();
    assert_eq!(writes, 0);
}

#[test]
fn apply_asks_strictly_as_its_own_manager() {
    let home = Home::new();
    home.write("p.yaml", FILE);
    let asked = serve(&home, |asked| match asked.method.as_str() {
        "GET" => status(404, "NotFound", "not found", &json!([])),
        _ => Answer::Json(201, object()),
    });
    let ran = home.run(&["apply", "-f", "p.yaml"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "routingpolicy.relay.dev/default created\n"),
        "{}",
        ran.err
    );
    let asked = asked.lock().unwrap();
    let patch = asked.last().unwrap();
    assert_eq!(patch.method, "PATCH");
    assert_eq!(
        patch.path,
        "/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies/default?fieldManager=relayctl&fieldValidation=Strict&force=false"
    );
    let sent: Value = serde_json::from_str(&patch.body).unwrap();
    assert_eq!(sent["spec"], json!({"profile": "quality", "memory": false}));
}

#[test]
fn deleting_needs_a_yes_and_says_whose_object_it_is() {
    let home = Home::new();
    let asked = serve(&home, |_| Answer::Json(200, object()));
    let ran = home.run(&["delete", "rp/default"]);
    assert_eq!(ran.code, Some(12));
    assert_eq!(
        ran.err,
        "relayctl: delete routingpolicy/default of context local needs a yes, and there is no terminal to ask on\nhint: say it with `--yes`\n"
    );
    assert!(
        asked
            .lock()
            .unwrap()
            .iter()
            .all(|asked| asked.method == "GET")
    );
    let ran = home.run(&["delete", "rp/default", "--dry-run=server"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            Some(0),
            "routingpolicy.relay.dev/default deleted (server dry run)\n"
        ),
        "{}",
        ran.err
    );
    let ran = home.run(&["delete", "rp/default", "--yes", "--no-wait"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "routingpolicy.relay.dev/default deleted\n"),
        "{}",
        ran.err
    );
    let asked = asked.lock().unwrap();
    let sent: Value = serde_json::from_str(&asked.last().unwrap().body).unwrap();
    assert_eq!(sent["preconditions"]["uid"], "u");
}

#[test]
fn what_is_gone_before_anybody_looks_is_gone() {
    let home = Home::new();
    serve(&home, |asked| match asked.path.as_str() {
        path if path.contains("routingpolicies?") => Answer::Json(
            200,
            json!({"kind": "RoutingPolicyList", "metadata": {"resourceVersion": "7"}, "items": []}),
        ),
        _ => Answer::Json(200, object()),
    });
    let ran = home.run(&["delete", "rp/default", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ran = home.run(&["wait", "rp/default", "--for=delete"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ran = home.run(&["wait", "rp/default", "--for=condition=Ready"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
}

#[test]
fn objects_are_written_as_they_are_in_each_form() {
    let home = Home::new();
    serve(&home, |asked| match asked.path.as_str() {
        path if path.contains("routingpolicies?") => Answer::Json(
            200,
            json!({"kind": "RoutingPolicyList", "metadata": {"resourceVersion": "7"}, "items": [object()]}),
        ),
        path if path.ends_with("/default") => Answer::Json(200, object()),
        _ => status(
            404,
            "NotFound",
            "routingpolicies.relay.dev \"x\" not found",
            &json!([]),
        ),
    });
    let ran = home.run(&["get", "rp/default", "-o", "yaml"]);
    assert_eq!(
        ran.out,
        "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata:\n  generation: 1\n  name: default\n  namespace: default\n  resourceVersion: \"7\"\n  uid: u\nspec:\n  profile: balanced\n"
    );
    assert_eq!(
        home.run(&["get", "rp", "-o", "name"]).out,
        "routingpolicy.relay.dev/default\n"
    );
    assert_eq!(
        home.run(&["get", "rp", "-o", "jsonpath={.items[*].spec.profile}"])
            .out,
        "balanced"
    );
    let ran = home.run(&["get", "rp", "-o", "json"]);
    let list: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&list["kind"], list["items"].as_array().unwrap().len()),
        (&json!("List"), 1)
    );
    let ran = home.run(&["get", "rp", "default", "x", "-o", "name"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(3), "routingpolicy.relay.dev/default\n")
    );
    assert_eq!(
        ran.err,
        "relayctl: routingpolicies.relay.dev \"x\" not found\n"
    );
    assert_eq!(
        home.run(&["get", "rp", "x", "--ignore-not-found"]).code,
        Some(0)
    );
    let ran = home.run(&[
        "wait",
        "rp/default",
        "--for=condition=Ready",
        "--timeout",
        "0",
    ]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert_eq!(
        first(&ran),
        "relayctl: waited 0s for routingpolicy/default: it has no condition Ready"
    );
}

#[test]
fn a_full_disk_and_a_full_store_are_no_matter_of_reach_or_rights() {
    for (code, reason, message, exit, hint) in [
        (
            507,
            "InsufficientStorage",
            "no space left for objects.db: the disk is full or the store at its limit; nothing was written",
            1,
            "hint: free some space",
        ),
        (
            403,
            "Forbidden",
            "routingpolicies.relay.dev \"default\" is forbidden: the local store holds at most 10000 objects",
            11,
            "hint: delete objects",
        ),
    ] {
        let home = Home::new();
        home.write("p.yaml", FILE);
        serve(&home, move |asked| match asked.method.as_str() {
            "GET" => status(404, "NotFound", "not found", &json!([])),
            _ => status(code, reason, message, &json!([])),
        });
        let ran = home.run(&["apply", "-f", "p.yaml"]);
        assert_eq!(ran.code, Some(exit), "{}", ran.err);
        assert!(ran.err.contains(hint), "{}", ran.err);
    }
}

#[test]
fn a_screen_without_rights_ends_as_forbidden() {
    let home = Home::new();
    serve(&home, |_| status(403, "Forbidden", "no", &json!([])));
    let ran = home.run(&["status"]);
    assert_eq!(ran.code, Some(11), "{}{}", ran.out, ran.err);
}

#[test]
fn a_namespace_is_no_path() {
    let home = Home::new();
    let asked = serve(&home, |_| Answer::Json(200, object()));
    let long = "x".repeat(64);
    for name in ["../x", "a/b", "a#b", "%2e%2e", "a.b", "", "-a", "A", &long] {
        let ran = home.run(&["get", "rp/default", &format!("-n={name}")]);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.err);
        assert!(ran.err.contains("is no namespace"), "{name}: {}", ran.err);
    }
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn what_was_never_there_is_not_said_to_be_deleted() {
    let home = Home::new();
    serve(&home, |asked| match asked.path.as_str() {
        path if path.contains('?') => Answer::Json(
            200,
            json!({"kind": "RoutingPolicyList", "metadata": {"resourceVersion": "7"}, "items": []}),
        ),
        _ => status(404, "NotFound", "not found", &json!([])),
    });
    let ran = home.run(&["wait", "rp/none", "--for=delete"]);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(0), "", "routingpolicy.relay.dev/none is not there\n")
    );
    let ran = home.run(&["wait", "rp/none", "--for=create", "--timeout", "0"]);
    assert_eq!(ran.code, Some(7));
    assert!(
        ran.err
            .contains("hint: `relayctl get routingpolicies` lists"),
        "{}",
        ran.err
    );
}

#[test]
fn what_stands_in_the_way_of_the_socket_is_told_with_what_helps() {
    let plain = Home::new();
    plain.write("relay/daemon/sock", "x");
    let ran = plain.run(&["get", "rp"]);
    assert_eq!(ran.code, Some(6), "{}", ran.err);
    assert!(
        ran.err
            .contains("hint: move ~/relay/daemon/sock out of the way"),
        "{}",
        ran.err
    );

    let file = Home::new();
    file.write("relay", "x");
    assert!(file.run(&["doctor"]).out.contains("is no folder"));
    for verb in [&["get", "rp"][..], &["up"]] {
        let ran = file.run(verb);
        assert!(matches!(ran.code, Some(1 | 6)), "{}", ran.err);
        assert!(
            ran.err.contains("a folder of yours") || ran.err.contains("one of yours"),
            "{}",
            ran.err
        );
    }

    let long = Home::new();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_relayctl"));
    for verb in [&["get", "rp"][..], &["up"]] {
        let mut command = long.command(program);
        let folder = long.path(&"x".repeat(120));
        let output = command
            .env("RELAY_HOME", &folder)
            .args(verb)
            .output()
            .unwrap();
        let ran = long.ran(output);
        assert!(matches!(ran.code, Some(1 | 6)), "{}", ran.err);
        assert!(
            ran.err.contains("set RELAY_HOME to a shorter folder"),
            "{}",
            ran.err
        );
        assert!(!folder.exists());
    }
}

#[test]
fn down_leaves_a_process_alone_that_is_not_the_daemon_of_this_home() {
    let home = Home::new();
    let mut child = std::process::Command::new("/bin/sleep")
        .arg("600")
        .spawn()
        .unwrap();
    home.write(
        "relay/daemon/endpoint.json",
        format!("{{\"pid\":{},\"url\":\"http://127.0.0.1:1\"}}", child.id()),
    );
    let ran = home.run(&["down"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("may be anything"), "{}", ran.err);
    assert!(child.try_wait().unwrap().is_none(), "it was stopped");
    for verb in ["status", "doctor"] {
        let ran = home.run(&[verb]);
        assert!(ran.out.contains("may be anything"), "{verb}: {}", ran.out);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
