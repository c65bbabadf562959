//! Verbs from one end to the other.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::api::Laptop;
use crate::support::first;

const POLICY: &str = "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata:\n  name: default\nspec:\n  profile: quality\n";

fn accepted(generation: i64) -> Value {
    json!({"observedGeneration": generation, "acceptedRevision": "0123456789", "acceptedGeneration": generation,
        "conditions": [
            {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "compiles", "lastTransitionTime": "2026-11-30T10:00:00Z", "observedGeneration": generation},
            {"type": "Ready", "status": "True", "reason": "Reconciled", "message": "in force", "lastTransitionTime": "2026-11-30T10:00:00Z", "observedGeneration": generation}]})
}

#[test]
fn every_example_validates_and_is_applied() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let mut count = 0;
    for entry in std::fs::read_dir(&examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "yaml") {
            continue;
        }
        let file = path.to_str().unwrap();
        let laptop = Laptop::new();
        let ran = laptop.home.run(&["validate", "-f", file]);
        assert_eq!(ran.code, Some(0), "{file}: {}{}", ran.out, ran.err);
        let ran = laptop.home.run(&["apply", "-f", file]);
        assert_eq!(ran.code, Some(0), "{file}: {}{}", ran.out, ran.err);
        count += 1;
    }
    assert!(count > 5);
    let laptop = Laptop::new();
    let all = examples.join("one-of-each.yaml");
    let ran = laptop.home.run(&["apply", "-f", all.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ran = laptop.home.run(&["get", "relay"]);
    for kind in [
        "layamodel",
        "layaserver",
        "trainingrun",
        "evaluationgate",
        "routingpolicy",
    ] {
        assert!(
            ran.out.contains(&format!("{kind}.relay.dev/")),
            "{}",
            ran.out
        );
    }
}

#[test]
fn the_folder_of_examples_is_one_input() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let folder = examples.to_str().unwrap();
    let laptop = Laptop::new();
    for (arguments, code) in [
        (&["validate"][..], 0),
        (&["diff"], 15),
        (&["apply"], 0),
        (&["diff"], 0),
        (&["delete", "--yes"], 0),
        (&["delete", "--yes"], 3),
    ] {
        let mut all = arguments.to_vec();
        all.extend(["-f", folder]);
        let ran = laptop.home.run(&all);
        assert_eq!(
            ran.code,
            Some(code),
            "{arguments:?}: {}{}",
            ran.out,
            ran.err
        );
    }
}

#[test]
fn what_get_wrote_is_edited_and_applied_again_and_again() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    home.write("p.yaml", POLICY);
    assert_eq!(home.run(&["apply", "-f", "p.yaml"]).code, Some(0));
    laptop.set_status("default", &accepted(1));
    let got = home.run(&["get", "rp/default", "-o", "yaml"]).out;
    assert!(
        got.contains("resourceVersion") && got.contains("acceptedRevision"),
        "{got}"
    );
    for profile in ["critical", "economy", "quality"] {
        home.write(
            "got.yaml",
            got.replace("profile: quality", &format!("profile: {profile}")),
        );
        for arguments in [["diff", "-f", "got.yaml"], ["apply", "-f", "got.yaml"]] {
            let ran = home.run(&arguments);
            let good = matches!(ran.code, Some(0 | 15)) && ran.err.is_empty();
            assert!(good, "{profile} {arguments:?}: {}", ran.err);
        }
        let now = home.run(&["get", "rp/default", "-o", "jsonpath={.spec.profile}"]);
        assert_eq!(now.out, profile);
    }
    let ran = home.run(&["apply", "-f", "got.yaml", "-v"]);
    assert_eq!(
        first(&ran),
        "got.yaml:1: routingpolicy/default: left out what servers write: metadata.creationTimestamp, metadata.generation, metadata.resourceVersion, metadata.uid, status",
    );
}

#[test]
fn metadata_that_the_server_refuses_is_refused_without_one() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    let long = "x".repeat(64);
    let large = "x".repeat(256 << 10);
    for (name, metadata, field) in [
        (
            "a label with spaces",
            "labels: {a: b c}".to_owned(),
            "metadata.labels",
        ),
        (
            "a long label",
            format!("labels: {{a: {long}}}"),
            "metadata.labels",
        ),
        (
            "a bad key",
            "labels: {\"a b\": c}".to_owned(),
            "metadata.labels",
        ),
        (
            "large annotations",
            format!("annotations: {{a: {large}}}"),
            "metadata.annotations",
        ),
        (
            "a number",
            "labels: {a: 5}".to_owned(),
            "metadata.labels[a]",
        ),
        (
            "a bad namespace",
            "namespace: a.b".to_owned(),
            "metadata.namespace",
        ),
    ] {
        let text = format!(
            "apiVersion: relay.dev/v1alpha1\nkind: LayaModel\nmetadata:\n  name: m\n  {metadata}\nspec:\n  manifestDigest: sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752\n  source: {{volume: {{name: c, path: m}}}}\n"
        );
        home.write("m.yaml", text);
        let ran = home.run(&["validate", "-f", "m.yaml"]);
        assert_eq!(ran.code, Some(4), "{name}: {}{}", ran.out, ran.err);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(
            said.contains(&format!("m.yaml:5: {field}: "))
                || said.contains(&format!("m.yaml:5: layamodel/m: {field}: ")),
            "{name}: {said}"
        );
        assert_eq!(home.run(&["apply", "-f", "m.yaml"]).code, Some(4), "{name}");
    }
}

#[test]
fn of_several_that_make_an_object_at_once_one_says_so() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    home.write("p.yaml", POLICY);
    let program = Path::new(env!("CARGO_BIN_EXE_relayctl"));
    let children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = home.command(program);
            command
                .args(["apply", "-f", "p.yaml"])
                .stdout(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let created = children
        .into_iter()
        .map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
        .filter(|out| out.contains("created"))
        .count();
    assert_eq!(created, 1);
}

#[test]
fn a_kind_that_nobody_acts_on_is_applied_and_not_waited_for() {
    let laptop = Laptop::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let file = examples.join("run-minimal.yaml");
    let ran = laptop
        .home
        .run(&["apply", "--wait", "-f", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err
            .contains("is not waited for: nothing acts on this kind yet"),
        "{}",
        ran.err
    );
}

#[test]
fn a_new_policy_has_nothing_in_force_to_be_compared_with() {
    let laptop = Laptop::new();
    laptop.home.write("p.yaml", POLICY);
    let ran = laptop.home.run(&["policy", "diff", "p.yaml"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("hint: `--against NAME`"), "{}", ran.err);
}

#[test]
fn an_object_is_made_changed_shown_and_deleted() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    home.write("p.yaml", POLICY);
    let ran = home.run(&["get", "rp"]);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(0), "", "no objects found in namespace default\n")
    );
    assert_eq!(home.run(&["diff", "-f", "p.yaml"]).code, Some(15));
    assert_eq!(
        home.run(&["apply", "-f", "p.yaml"]).out,
        "routingpolicy.relay.dev/default created\n"
    );
    assert_eq!(
        home.run(&["apply", "-f", "p.yaml"]).out,
        "routingpolicy.relay.dev/default unchanged\n"
    );
    let ran = home.run(&["diff", "-f", "p.yaml"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);

    home.write("p.yaml", POLICY.replace("quality", "economy"));
    let ran = home.run(&["diff", "-f", "p.yaml"]);
    assert!(
        ran.out
            .contains("\n-  profile: quality\n+  profile: economy\n"),
        "{}",
        ran.out
    );
    let ran = home.run(&["apply", "-f", "p.yaml", "--dry-run=server"]);
    assert_eq!(
        ran.out,
        "routingpolicy.relay.dev/default configured (server dry run)\n"
    );
    assert_eq!(
        home.run(&["get", "rp/default", "-o", "jsonpath={.spec.profile}"])
            .out,
        "quality"
    );
    assert_eq!(
        home.run(&["apply", "-f", "p.yaml"]).out,
        "routingpolicy.relay.dev/default configured\n"
    );

    laptop.set_status("default", &accepted(2));
    let ran = home.run(&["get", "rp", "--no-headers"]);
    let cells: Vec<_> = ran.out.split_whitespace().collect();
    assert_eq!(
        cells[..5],
        ["default", "economy", "True", "Accepted", "0123456789"]
    );
    let header = home.run(&["get", "rp", "-o", "wide"]).out;
    let header: Vec<_> = header.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(
        header,
        [
            "NAME", "PROFILE", "ACCEPTED", "REASON", "REVISION", "AGE", "SERVER", "MODELS", "RULES"
        ]
    );
    assert_eq!(
        home.run(&["wait", "rp/default", "--for=condition=Ready"])
            .out,
        "routingpolicy.relay.dev/default condition met\n"
    );
    assert_eq!(home.run(&["apply", "-f", "p.yaml", "--wait"]).code, Some(0));

    let ran = home.run(&["delete", "rp/default", "--yes"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "routingpolicy.relay.dev/default deleted\n"),
        "{}",
        ran.err
    );
    let ran = home.run(&["get", "rp/default"]);
    assert_eq!(ran.code, Some(3));
    assert_eq!(
        first(&ran),
        "relayctl: routingpolicies.relay.dev \"default\" not found"
    );
    assert_eq!(home.run(&["delete", "rp/default", "--yes"]).code, Some(3));
    assert_eq!(
        home.run(&["delete", "rp/default", "--yes", "--ignore-not-found"])
            .code,
        Some(0)
    );
}

#[test]
fn two_clients_that_edit_one_field_are_told_of_each_other() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    home.write("p.yaml", POLICY);
    assert_eq!(home.run(&["apply", "-f", "p.yaml"]).code, Some(0));
    laptop.edit("default", &json!({"spec": {"profile": "critical"}}));
    let ran = home.run(&["apply", "-f", "p.yaml"]);
    assert_eq!(ran.code, Some(5));
    assert_eq!(
        first(&ran),
        "relayctl: p.yaml:1: routingpolicy/default: others own spec.profile (conflict with \"somebody\" using relay.dev/v1alpha1)"
    );
    assert_eq!(
        home.run(&["apply", "-f", "p.yaml", "--force-conflicts"])
            .code,
        Some(0)
    );
}

#[test]
fn what_the_api_refuses_is_told_at_its_lines() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    for (text, line) in [
        (
            POLICY.replace("profile", "profle"),
            "relayctl: p.yaml:6: routingpolicy/default: spec.profle: unknown field",
        ),
        (
            POLICY.replace("quality", "nothing"),
            "relayctl: p.yaml:6: routingpolicy/default: spec.profile: ",
        ),
        (
            POLICY.replace("quality", "3"),
            "relayctl: p.yaml:6: routingpolicy/default: spec.profile: ",
        ),
        (
            POLICY.replace("name: default", "name: UPPER"),
            "relayctl: p.yaml:4: metadata.name: `UPPER` is no name: ",
        ),
        (
            POLICY.replace("name: default", &format!("name: {}", "a".repeat(41))),
            "relayctl: p.yaml:4: ",
        ),
    ] {
        home.write("p.yaml", text);
        let ran = home.run(&["apply", "-f", "p.yaml"]);
        assert_eq!(ran.code, Some(4), "{}", ran.err);
        assert!(first(&ran).starts_with(line), "{}", ran.err);
        assert_eq!(home.run(&["get", "rp", "-o", "name"]).out, "");
    }
}

#[test]
fn a_refused_edit_ends_a_wait_and_is_explained() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    home.write("p.yaml", POLICY);
    assert_eq!(home.run(&["apply", "-f", "p.yaml"]).code, Some(0));
    let ran = home.run(&["apply", "-f", "p.yaml", "--wait", "--timeout", "300ms"]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    laptop.set_status("default", &json!({"observedGeneration": 1,
        "problems": [{"severity": "Error", "path": "spec.rules[0]", "message": "is empty"}],
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "BadPattern", "message": "see Accepted", "lastTransitionTime": "2026-11-30T10:00:00Z"},
            {"type": "Stalled", "status": "True", "reason": "BadPattern", "message": "1 problem. Edit the spec.", "lastTransitionTime": "2026-11-30T10:00:00Z"}]}));
    let ran = home.run(&["apply", "-f", "p.yaml", "--wait"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert_eq!(
        first(&ran),
        "relayctl: routingpolicy/default is refused (BadPattern): 1 problem. Edit the spec."
    );
    let ran = home.run(&["explain", "rp/default"]);
    assert!(
        ran.out
            .contains("\n  error spec.rules[0]: is empty\nwaits for: a change by somebody\n"),
        "{}",
        ran.out
    );
    let ran = home.run(&["explain", "rp/default", "-o", "json"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&document["apiVersion"], &document["kind"]),
        (&json!("relay.dev/cli.v1"), &json!("Explanation"))
    );
    let ran = home.run(&["describe", "rp/default"]);
    assert!(
        ran.out.contains("Stalled   True     BadPattern"),
        "{}",
        ran.out
    );
}

#[test]
fn a_watch_shows_each_change_and_an_interrupt_ends_it_with_130() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    home.write("p.yaml", POLICY);
    assert_eq!(home.run(&["apply", "-f", "p.yaml"]).code, Some(0));
    // A shell, which counts signals.
    let script = format!(
        "{} get rp -w & echo $!; wait $!; echo code $?",
        env!("CARGO_BIN_EXE_relayctl")
    );
    let mut child = home
        .command(Path::new("/bin/sh"))
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let pid: i32 = lines.next().unwrap().parse().unwrap();
    assert!(lines.next().unwrap().starts_with("NAME"));
    assert!(lines.next().unwrap().contains("quality"));
    laptop.edit("default", &json!({"spec": {"profile": "critical"}}));
    assert!(lines.next().unwrap().contains("critical"));
    laptop.set_status("default", &accepted(2));
    assert!(lines.next().unwrap().contains("0123456789"));
    let target = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(target, rustix::process::Signal::TERM).unwrap();
    assert_eq!(lines.next().unwrap(), "code 143");
    child.wait().unwrap();
}

#[test]
fn events_and_revisions_belong_to_their_object() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    home.write("p.yaml", POLICY);
    assert_eq!(home.run(&["apply", "-f", "p.yaml"]).code, Some(0));
    let uid = home
        .run(&["get", "rp/default", "-o", "jsonpath={.metadata.uid}"])
        .out;
    let event = |name: &str, uid: &str, note: &str| {
        json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"},
            "eventTime": "2026-11-30T10:00:00.000000Z", "reportingController": "relay.dev/controller", "reportingInstance": "t",
            "action": "Accept", "reason": "PolicyAccepted", "type": "Normal", "note": note,
            "regarding": {"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "name": "default", "namespace": "default", "uid": uid}})
    };
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    laptop.create(path, &event("a", &uid, "revision 0123456789"));
    laptop.create(path, &event("b", "another", "of one that was deleted"));
    let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
        "metadata": {"name": "rp-default-0123456789", "namespace": "default", "ownerReferences": [
            {"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "name": "default", "uid": uid, "controller": true}]},
        "data": {"profile": "quality"}});
    laptop.create(
        "/apis/apps/v1/namespaces/default/controllerrevisions",
        &revision,
    );
    laptop.set_status("default", &accepted(1));

    assert_eq!(home.run(&["events", "--no-headers"]).out.lines().count(), 2);
    let ran = home.run(&["describe", "rp/default"]);
    assert!(ran.out.contains("rp-default-0123456789   1"), "{}", ran.out);
    assert!(
        ran.out.contains("PolicyAccepted   revision 0123456789")
            && !ran.out.contains("of one that was deleted"),
        "{}",
        ran.out
    );

    let ran = home.run(&["policy", "show"]);
    assert!(
        ran.out
            .starts_with("# default@0123456789\napiVersion: relay.dev/v1alpha1\n"),
        "{}{}",
        ran.out,
        ran.err
    );
    let ran = home.run(&["policy", "diff", "p.yaml"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
    home.write("p.yaml", POLICY.replace("quality", "economy"));
    let ran = home.run(&["policy", "diff", "p.yaml"]);
    assert_eq!(ran.code, Some(15));
    assert!(
        ran.out.contains("\n-profile: quality\n") && ran.out.contains("\n+profile: economy\n"),
        "{}",
        ran.out
    );
    home.write(
        "r.jsonl",
        "{\"request\": \"rename the button\", \"tier\": \"balanced\"}\n",
    );
    let ran = home.run(&["policy", "test", "r.jsonl"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            Some(0),
            "default@0123456789: 1 requests by rules alone, 0 failed\n"
        ),
        "{}",
        ran.err
    );
    let ran = home.run(&[
        "policy", "test", "r.jsonl", "--policy", "p.yaml", "-o", "json",
    ]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&document["kind"], &document["against"]),
        (&json!("PolicyTest"), &json!("default@0123456789"))
    );
    laptop.edit("default", &json!({"spec": {"profile": "critical"}}));
    let ran = home.run(&["policy", "show"]);
    assert!(
        ran.err.starts_with("note: the object was edited since"),
        "{}",
        ran.err
    );
    let ran = home.run(&["policy", "show", "none"]);
    assert_eq!(ran.code, Some(3));
}
