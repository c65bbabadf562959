//! The same files on a laptop by `relayctl` and in a cluster by `kubectl`: what they say is in force on both, and what is
//! wrong in them is refused on both in the same words. The cluster has a real API server, `relayd controller`, and a router
//! that follows a policy of it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::{kubeconfig, namespace, real};
use crate::laptop::Laptop;
use crate::programs::{Ended, Home, Router, Running, program, run, until};
use crate::talk::Side;

/// An accepted edit is in force within a second (control-plane 19); on a machine that does other things too, this long.
const SOON: Duration = Duration::from_secs(5);

/// A cluster's side: controller and router are processes of their own.
struct Cluster {
    side: Side,
    namespace: String,
    router: Router,
    _controller: Running,
    _home: Home,
}

impl Cluster {
    fn start(what: &str) -> Self {
        let name = format!("{what}-{}", std::process::id());
        namespace(&real(), &name);
        let home = Home::new();
        let config = kubeconfig();
        let config = config.to_str().unwrap();
        let mut controller = Command::new(program("relayd"));
        controller
            .env_clear()
            .env("RELAY_HOME", home.path())
            .args(["controller", "--kubeconfig", config, "--namespace", &name])
            .args(["--admin-listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(home.path().join("controller.log")).unwrap());
        let controller = Running::spawn(&mut controller);
        let followed = [
            "--policy-object",
            "default",
            "--kubeconfig",
            config,
            "--namespace",
            &name,
        ];
        let router = Router::start(&home, &followed);
        Self {
            side: Side::new(kubeconfig()),
            namespace: name,
            router,
            _controller: controller,
            _home: home,
        }
    }

    fn kubectl(&self, arguments: &[&str]) -> Ended {
        self.side
            .run(&[&["-n", &self.namespace], arguments].concat())
    }

    fn policy(&self) -> Value {
        let ended = self.kubectl(&["get", "rp", "default", "-o", "json"]);
        serde_json::from_str(&ended.out).unwrap_or_default()
    }
}

fn relayctl(laptop: &Laptop, arguments: &[&str]) -> Ended {
    let mut command = Command::new(program("relayctl"));
    let home = laptop.home.path();
    command
        .env_clear()
        .env("HOME", home)
        .env("RELAY_HOME", home)
        .args(arguments)
        .stdin(Stdio::null());
    run(&mut command)
}

/// Waits until a router decides by the revision that was accepted for this generation or a later one.
fn until_in_force(router: &Router, policy: &dyn Fn() -> Value, generation: i64) -> String {
    let began = Instant::now();
    let revision = until("the policy is in force", || {
        let object = policy();
        let status = &object["status"];
        let current = status["acceptedGeneration"].as_i64() >= Some(generation);
        let served = router.get("/v1/policy").json();
        match status["acceptedRevision"].as_str() {
            Some(revision) if current && served["revision"] == revision => Ok(revision.to_owned()),
            _ => Err(format!("{status} and {}", served["revision"])),
        }
    });
    let took = began.elapsed();
    assert!(took < SOON, "in force after {took:?}");
    revision
}

fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap()
}

fn example(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../docs/examples").join(name)
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn the_examples_are_in_force_on_both_and_a_bad_edit_is_refused_in_the_same_words() {
    let laptop = Laptop::start();
    let cluster = Cluster::start("same-files");
    let here = || {
        let ended = relayctl(&laptop, &["get", "rp", "default", "-o", "json"]);
        serde_json::from_str(&ended.out).unwrap_or_default()
    };
    let there = || cluster.policy();
    let mut revisions = Vec::new();
    for name in ["policy-minimal.yaml", "policy-full.yaml"] {
        let file = example(name);
        let text = std::fs::read_to_string(&file).unwrap();
        let file = laptop.home.file(name, with_name(&text));
        let file = file.to_str().unwrap();
        let applied = relayctl(&laptop, &["apply", "-f", file, "--force-conflicts"]);
        assert_eq!(applied.code, 0, "{applied:?}");
        let local = until_in_force(laptop.router(), &here, generation(&here()));
        let applied = cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", file]);
        assert_eq!(applied.code, 0, "{applied:?}");
        let remote = until_in_force(&cluster.router, &there, generation(&there()));
        assert_eq!(local, remote, "one spec has one revision: {name}");
        revisions.push(local);
    }
    assert_ne!(revisions[0], revisions[1]);
    cluster.router.until_ready();

    // What the schema refuses is refused by both APIs with the same causes.
    let wrong = json!({"spec": {"exploration": "1.5", "profile": "fastest"}}).to_string();
    let patch = ["patch", "rp", "default", "--type=merge", "-p", &wrong];
    let refusals = [laptop.side.run(&patch), cluster.kubectl(&patch)];
    assert_eq!(refusals[0].code, 1, "{:?}", refusals[0]);
    assert_eq!(refusals[0].err, refusals[1].err);

    // What only compiling finds is stored, not put in force, and told in the same words.
    let wrong = json!({"spec": {"rules": [{"id": "r", "patterns": ["("]}]}}).to_string();
    let patch = ["patch", "rp", "default", "--type=merge", "-p", &wrong];
    assert_eq!(laptop.side.run(&patch).code, 0);
    assert_eq!(cluster.kubectl(&patch).code, 0);
    let judged = |policy: &dyn Fn() -> Value| {
        until("the edit is judged", || {
            let object = policy();
            let status = object["status"].clone();
            if status["observedGeneration"] == object["metadata"]["generation"] {
                Ok(status)
            } else {
                Err(status.to_string())
            }
        })
    };
    let [local, remote] = [judged(&here), judged(&there)];
    assert_eq!(local["problems"], remote["problems"]);
    assert_ne!(local["problems"], Value::Null, "{local}");
    let accepted = |status: &Value| {
        let conditions = status["conditions"].as_array().unwrap();
        let found = conditions
            .iter()
            .find(|condition| condition["type"] == "Accepted");
        let found = found.unwrap();
        [
            found["status"].clone(),
            found["reason"].clone(),
            found["message"].clone(),
        ]
    };
    assert_eq!(accepted(&local), accepted(&remote));
    assert_eq!(local["acceptedRevision"], revisions[1].as_str());
    assert_eq!(remote["acceptedRevision"], revisions[1].as_str());
    for router in [laptop.router(), &cluster.router] {
        assert_eq!(
            router.get("/v1/policy").ok()["revision"],
            revisions[1].as_str()
        );
    }
}

/// The example under the name that both routers follow.
fn with_name(text: &str) -> String {
    let mut named = false;
    let lines = text.lines().map(|line| {
        let is_name = line.trim_start().starts_with("name:") && !named;
        if is_name {
            named = true;
            let indent = &line[..line.len() - line.trim_start().len()];
            return format!("{indent}name: default\n");
        }
        if line.starts_with("metadata: {name:") {
            named = true;
            return "metadata: {name: default}\n".to_owned();
        }
        format!("{line}\n")
    });
    let text: String = lines.collect();
    assert!(named, "{text}");
    text
}
