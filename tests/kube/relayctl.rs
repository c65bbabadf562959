//! `relayctl` prints the same and ends the same on a laptop as on a cluster (control-plane 18). LayaServers are used, which
//! nobody reconciles here, so that both servers hold what was said and nothing else.

use std::process::Stdio;

use crate::cluster::{kubeconfig, namespace, real};
use crate::laptop::Laptop;
use crate::programs::{program, run};

const SERVER: &str = "apiVersion: relay.dev/v1alpha1
kind: LayaServer
metadata:
  name: main
  labels: {team: a}
spec:
  modelRef: {name: v1}
  replicas: 2
";

/// Both sides with one namespace.
struct Both {
    laptop: Laptop,
    namespace: String,
}

/// What a run left behind, without what tells the two sides apart.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Both {
    fn new(what: &str) -> Self {
        let laptop = Laptop::without_a_controller();
        let name = format!("relayctl-{what}-{}", std::process::id());
        namespace(&real(), &name);
        laptop.side.told(&["create", "namespace", &name]);
        Self {
            laptop,
            namespace: name,
        }
    }

    fn run(&self, context: &str, arguments: &[&str]) -> Said {
        let home = self.laptop.home.path();
        let mut command = std::process::Command::new(program("relayctl"));
        command
            .env_clear()
            .env("HOME", home)
            .env("RELAY_HOME", home)
            .env("KUBECONFIG", kubeconfig())
            .current_dir(home)
            .args(["--context", context, "-n", &self.namespace])
            .args(arguments)
            .stdin(Stdio::null());
        let ended = run(&mut command);
        let alike = |text: &str| {
            text.lines()
                .filter(|line| !line.starts_with("context "))
                .map(|line| {
                    ages(&line.replace(&format!("context {context}"), "context CONTEXT")) + "\n"
                })
                .collect()
        };
        Said {
            code: ended.code,
            out: alike(&ended.out),
            err: alike(&ended.err),
        }
    }

    /// Both say the same and end with this code.
    fn say(&self, arguments: &[&str], code: i32) -> Said {
        let laptop = self.run("local", arguments);
        let cluster = self.run("admin", arguments);
        assert_eq!(laptop, cluster, "laptop and cluster: {arguments:?}");
        assert_eq!(laptop.code, code, "{arguments:?}: {laptop:?}");
        laptop
    }
}

/// A table's last cell is an age, which goes on while a test runs.
fn ages(line: &str) -> String {
    let is_age = |word: &&str| {
        word.strip_suffix('s').is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    match line.split_whitespace().next_back().filter(is_age) {
        Some(age) => format!("{}AGE", line.strip_suffix(age).unwrap_or(line).trim_end()),
        None => line.to_owned(),
    }
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn every_verb_over_objects_says_the_same_on_both() {
    let both = Both::new("verbs");
    let home = &both.laptop.home;
    home.file("s.yaml", SERVER);
    home.file("s3.yaml", SERVER.replace("replicas: 2", "replicas: 3"));
    both.say(&["get", "ls"], 0);
    both.say(&["get", "ls/main"], 3);
    both.say(&["diff", "-f", "s.yaml"], 15);
    both.say(&["apply", "-f", "s.yaml", "--dry-run=server"], 0);
    assert_eq!(
        both.say(&["apply", "-f", "s.yaml"], 0).out,
        "layaserver.relay.dev/main created\n"
    );
    assert_eq!(
        both.say(&["apply", "-f", "s.yaml"], 0).out,
        "layaserver.relay.dev/main unchanged\n"
    );
    both.say(&["get", "ls"], 0);
    both.say(&["get", "ls", "-o", "wide"], 0);
    both.say(&["get", "relay"], 0);
    both.say(&["get", "ls", "-o", "name"], 0);
    both.say(
        &[
            "get",
            "ls",
            "-l",
            "team=a",
            "-o",
            "jsonpath={.items[*].spec}",
        ],
        0,
    );
    both.say(&["get", "ls", "-l", "team=b"], 0);
    both.say(&["diff", "-f", "s.yaml"], 0);
    both.say(&["diff", "-f", "s3.yaml"], 15);
    both.say(&["apply", "-f", "s3.yaml"], 0);
    both.say(&["wait", "ls/main", "--for=jsonpath={.spec.replicas}=3"], 0);
    both.say(
        &["wait", "ls/main", "--for=condition=Ready", "--timeout", "0"],
        7,
    );
    both.say(&["explain", "ls/main"], 0);
    // No `logs`: a laptop has them of its engine, a cluster of its pods; without a controller there is no engine.
    both.say(&["delete", "ls/main"], 12);
    both.say(&["delete", "ls/main", "--dry-run=server"], 0);
    both.say(&["delete", "ls/main", "--yes"], 0);
    both.say(&["delete", "ls/main", "--yes"], 3);
    both.say(&["delete", "ls/main", "--yes", "--ignore-not-found"], 0);
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn what_is_refused_is_refused_with_the_same_words_and_lines() {
    let both = Both::new("refusals");
    let home = &both.laptop.home;
    for (name, text) in [
        ("unknown", SERVER.replace("replicas", "replcas")),
        ("type", SERVER.replace("replicas: 2", "replicas: two")),
        ("bound", SERVER.replace("replicas: 2", "replicas: -1")),
        ("missing", SERVER.replace("  modelRef: {name: v1}\n", "")),
        (
            "name",
            SERVER.replace("name: main", &format!("name: {}", "a".repeat(41))),
        ),
        ("label", SERVER.replace("team: a", "team: \"a b\"")),
    ] {
        home.file("bad.yaml", text);
        let said = both.say(&["apply", "-f", "bad.yaml"], 4);
        assert!(
            said.err.starts_with("relayctl: bad.yaml:"),
            "{name}: {said:?}"
        );
    }
    both.say(&["get", "ls"], 0);
}
