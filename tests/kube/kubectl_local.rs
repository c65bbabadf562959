//! A real kubectl on `relayd local`: what only a laptop has.

use std::io::BufRead as _;
use std::process::Stdio;

use crate::laptop::Laptop;
use crate::programs::{Running, until};
use crate::talk::Side;

const POLICY: &str = "apiVersion: relay.dev/v1alpha1
kind: RoutingPolicy
metadata: {name: mine}
spec:
  tiers: [{name: fast, models: [anthropic/claude-haiku-4-5]}, {name: strong, models: [anthropic/claude-opus-5-5]}]
";

#[test]
#[ignore = "needs kubectl"]
fn a_policy_is_applied_waited_for_and_refused_by_kubectl_alone() {
    let laptop = Laptop::start();
    let side = &laptop.side;
    let file = laptop.home.file("policy.yaml", POLICY);
    let file = file.to_str().unwrap();
    side.told(&["apply", "-f", file]);
    side.told(&[
        "wait",
        "rp/mine",
        "--for=condition=Accepted",
        "--timeout=30s",
    ]);
    let first = side.object(&["get", "rp", "mine"])["status"]["acceptedRevision"].clone();
    assert_eq!(first.as_str().map(str::len), Some(10), "{first}");
    // What the schema cannot know: a pattern that does not compile.
    let patch = r#"{"spec":{"rules":[{"id":"r","patterns":["("]}]}}"#;
    side.told(&["patch", "rp", "mine", "--type=merge", "-p", patch]);
    side.told(&[
        "wait",
        "rp/mine",
        "--for=condition=Accepted=false",
        "--timeout=30s",
    ]);
    let object = side.object(&["get", "rp", "mine"]);
    assert_eq!(object["status"]["acceptedRevision"], first, "{object:#}");
    assert_ne!(
        object["status"]["problems"],
        serde_json::json!([]),
        "{object:#}"
    );
}

#[test]
#[ignore = "needs kubectl"]
fn a_watch_sees_every_change_in_order() {
    let laptop = Laptop::without_a_controller();
    let mut watch =
        laptop
            .side
            .command(&["get", "ls", "-w", "-o", "jsonpath={.spec.replicas}{'\\n'}"]);
    let mut watch = Running::spawn(watch.stdout(Stdio::piped()));
    let lines = std::io::BufReader::new(watch.0.stdout.take().unwrap()).lines();
    let server = "apiVersion: relay.dev/v1alpha1\nkind: LayaServer\nmetadata: {name: main}\nspec: {modelRef: {name: v1}}\n";
    let file = laptop.home.file("server.yaml", server);
    laptop.side.told(&["create", "-f", file.to_str().unwrap()]);
    for replicas in 2..=5 {
        let replicas = format!("--replicas={replicas}");
        laptop.side.told(&["scale", "ls", "main", &replicas]);
    }
    let seen: Vec<String> = lines.map(Result::unwrap).take(5).collect();
    assert_eq!(seen, ["1", "2", "3", "4", "5"]);
}

#[test]
#[ignore = "needs kubectl"]
fn objects_outlive_a_daemon_that_was_killed() {
    let mut laptop = Laptop::start();
    let file = laptop.home.file("policy.yaml", POLICY);
    laptop.side.told(&["apply", "-f", file.to_str().unwrap()]);
    let wanted = laptop.side.object(&["get", "rp", "mine"])["metadata"]["uid"].clone();
    laptop.restart();
    let is = laptop.side.object(&["get", "rp", "mine"])["metadata"]["uid"].clone();
    assert_eq!(is, wanted);
}

#[test]
#[ignore = "needs kubectl"]
fn without_the_token_nothing_is_told() {
    let laptop = Laptop::start();
    let text = std::fs::read_to_string(laptop.kubeconfig()).unwrap();
    let config = api::document::read_yaml(&text).unwrap();
    let token = config["users"][0]["user"]["token"].as_str().unwrap();
    for (name, instead) in [("wrong", "wrong"), ("none", "")] {
        let other = text.replace(token, instead);
        assert_ne!(other, text);
        let other = laptop.home.private_file(name, other);
        let ended = Side::new(other).run(&["get", "rp"]);
        assert_ne!(ended.code, 0, "{name}: {ended:?}");
        let told = format!("{}{}", ended.out, ended.err);
        assert!(
            told.contains("logged in to the server") || told.contains("enter Username"),
            "{name}: {told}"
        );
        assert!(!told.contains("No resources"), "{name}: {told}");
    }
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(laptop.kubeconfig())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
#[ignore = "needs kubectl"]
fn events_of_the_reconciler_are_listed() {
    let laptop = Laptop::start();
    let file = laptop.home.file("policy.yaml", POLICY);
    laptop.side.told(&["apply", "-f", file.to_str().unwrap()]);
    until("an event about the policy", || {
        let events = laptop.side.object(&["get", "events.events.k8s.io"]);
        let items = events["items"].as_array().unwrap();
        let accepted = items
            .iter()
            .find(|event| event["reason"] == "PolicyAccepted");
        accepted.map(|_| ()).ok_or_else(|| events.to_string())
    });
}
