//! Help, versions, completions, manual pages, and the name the program goes by.

use std::path::Path;

use crate::support::{Home, first};

/// Words of this release; those of later ones are not there before they do something.
const VERBS: [&str; 24] = [
    "up",
    "down",
    "status",
    "doctor",
    "get",
    "describe",
    "explain",
    "apply",
    "diff",
    "delete",
    "validate",
    "wait",
    "model",
    "models",
    "use",
    "adopt",
    "rollout",
    "events",
    "logs",
    "context",
    "policy",
    "completion",
    "man",
    "version",
];

#[test]
fn help_lists_every_word_and_every_code() {
    let home = Home::new();
    let ran = home.run(&["--help"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for verb in VERBS {
        assert!(
            ran.out.contains(&format!("\n  {verb} ")),
            "{verb}: {}",
            ran.out
        );
        let help = home.run(&[verb, "--help"]);
        assert_eq!(help.code, Some(0), "{verb}");
        assert!(help.out.contains("Usage: relayctl"), "{verb}");
    }
    for code in api::exit::Exit::ALL {
        assert!(
            ran.out
                .contains(&format!("\n  {:<5}{}", code.code(), code.meaning())),
            "{code:?}"
        );
    }
    for later in ["train", "gate", "dataset", "bundle"] {
        assert_eq!(home.run(&[later]).code, Some(2), "{later}");
    }
}

#[test]
fn a_wrong_use_is_one_line_and_a_hint() {
    let home = Home::new();
    for (arguments, line) in [
        (&["gte"][..], "relayctl: unrecognized subcommand 'gte'"),
        (
            &["get"],
            "relayctl: the following required arguments were not provided: <KIND>...",
        ),
        (&["get", "pods"], "relayctl: there is no kind `pods`"),
        (&["get", "rp", "../x"], "relayctl: `rp` is no KIND/NAME"),
        (
            &["get", "rp/..%2f"],
            "relayctl: `..%2f` is no name of an object: only a-z, 0-9, `-` and `.` may be in it",
        ),
        (
            &["get", "rp", "-o", "xml"],
            "relayctl: invalid value 'xml' for '--output <FORM>': it is table, wide, json, yaml, name or jsonpath=<template>",
        ),
        (
            &["get", "rp", "-o", "jsonpath={.a"],
            "relayctl: invalid value 'jsonpath={.a' for '--output <FORM>': a `{` has no `}`",
        ),
        (
            &["get", "rp", "--timeout", "soon"],
            "relayctl: invalid value 'soon' for '--timeout <TIME>': `soon` is no length of time such as 30s, 5m or 1h30m",
        ),
        (
            &["get", "rp", "--dry-run=server"],
            "relayctl: `get` knows no `--dry-run`",
        ),
        (
            &["get", "rp", "--wait"],
            "relayctl: `get` knows no `--wait`",
        ),
        (
            &["diff", "-f", "x", "-o", "json"],
            "relayctl: `diff` knows no `-o json`",
        ),
        (
            &["status", "-o", "name"],
            "relayctl: `status` knows no `-o name`",
        ),
        (
            &["get", "rp/a", "-l", "x=y"],
            "relayctl: objects are chosen by name or by labels, not both",
        ),
        (&["explain", "rp"], "relayctl: `rp` is no KIND/NAME"),
        (&["delete", "rp"], "relayctl: no names were given"),
        (
            &["wait", "rp/a", "--for=ready"],
            "relayctl: invalid value 'ready' for '--for <WHAT>': it is condition=TYPE[=STATUS], jsonpath=PATH[=VALUE], create or delete",
        ),
        (
            &["logs", "rp/default"],
            "relayctl: a RoutingPolicy runs nothing and has no logs; LayaServer, TrainingRun, LayaModel have",
        ),
        (
            &["up", "--context", "team"],
            "relayctl: `up` is about this machine, and the context is `team` (named by --context)",
        ),
        (
            &["model", "import", "x"],
            "relayctl: nothing was named that could be imported",
        ),
        (
            &["model", "import", "Shipped", "--dir", "."],
            "relayctl: `Shipped` is no name of a LayaModel: only a-z, 0-9, `-` and `.` may be in it",
        ),
        (
            &["model", "import", "shipped", "--dir", "."],
            "relayctl: `shipped` always means the version that Relay ships",
        ),
        (
            &["model", "rm", "a/b"],
            "relayctl: `a/b` is no name of an object: only a-z, 0-9, `-` and `.` may be in it",
        ),
        (
            &["rollout", "undo", "main", "-o", "xml"],
            "relayctl: invalid value 'xml' for '--output <FORM>': it is table, wide, json, yaml, name or jsonpath=<template>",
        ),
        (
            &["model", "manifest", "--dir", ".", "--version", "../v"],
            "relayctl: `--version ../v` is no name: only a-z, A-Z, 0-9, `-`, `_` and `.` may be in it",
        ),
        (
            &["models", "--dry-run=server"],
            "relayctl: `models` knows no `--dry-run`",
        ),
        (
            &["up", "--backend", "docker", "--no-docker"],
            "relayctl: the argument '--backend <WHAT>' cannot be used with '--no-docker'",
        ),
        (
            &["adopt", "--url", "http://example.com:8737"],
            "relayctl: `http://example.com:8737` is no address of this machine with a port",
        ),
        (
            &["man", "nothing"],
            "relayctl: `relayctl` has no command `nothing`",
        ),
    ] {
        let ran = home.run(arguments);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(2), ""),
            "{arguments:?}: {}",
            ran.err
        );
        assert_eq!(first(&ran), line, "{arguments:?}");
        assert!(
            ran.err.contains("\nhint: ") || ran.err.lines().count() == 1,
            "{}",
            ran.err
        );
    }
}

#[test]
fn arguments_cannot_speak_to_the_terminal() {
    let home = Home::new();
    for arguments in [
        &["get", "\u{1b}]0;x\u{7}"][..],
        &["\u{1b}[2J"],
        &["get", "rp/\u{202e}x"],
        &["apply", "-f", "\u{1b}[2J.yaml"],
        &["get", "rp", "-o", "\u{1b}[2J"],
    ] {
        let ran = home.run(arguments);
        assert!(ran.code.is_some_and(|code| code != 0));
        assert!(
            !ran.err.contains(['\u{1b}', '\u{202e}', '\u{7}']),
            "{:?}",
            ran.err
        );
    }
}

#[test]
fn a_link_makes_it_a_plugin_of_kubectl() {
    let home = Home::new();
    let link = home.path("kubectl-relay");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_relayctl"), &link).unwrap();
    let run = |arguments: &[&str]| {
        home.ran(
            home.command(Path::new(&link))
                .args(arguments)
                .output()
                .unwrap(),
        )
    };
    let help = run(&["get", "--help"]);
    assert!(
        help.out.contains("Usage: kubectl relay get"),
        "{}",
        help.out
    );
    assert!(
        help.out.contains("\n  kubectl relay get rp\n") && !help.out.contains("relayctl get"),
        "{}",
        help.out
    );
    let ran = run(&["get", "rp"]);
    assert_eq!(ran.code, Some(6));
    assert!(
        ran.err.starts_with("kubectl relay: cannot reach"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("hint: start it with `kubectl relay up`"),
        "{}",
        ran.err
    );
}

#[test]
fn versions_completions_and_pages_need_nobody() {
    let home = Home::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        home.run(&["--version"]).out,
        format!("relayctl {version}\n")
    );
    let ran = home.run(&["version", "--client", "-o", "json"]);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["apiVersion"], "relay.dev/cli.v1");
    assert_eq!(document["client"], version);
    let ran = home.run(&["version"]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.err
            .starts_with("note: cannot reach the API of context `local`"),
        "{}",
        ran.err
    );
    for shell in ["bash", "zsh", "fish"] {
        let ran = home.run(&["completion", shell]);
        assert_eq!(ran.code, Some(0));
        assert!(
            ran.out.contains("relayctl") && ran.out.contains("explain"),
            "{shell}"
        );
    }
    let page = home.run(&["man"]).out;
    assert!(page.contains(".TH relayctl 1"), "{page}");
    let page = home.run(&["man", "rollout", "undo"]).out;
    assert!(page.contains("relayctl-rollout-undo"), "{page}");
    let page = home.run(&["man", "policy", "test"]).out;
    assert!(
        page.contains("relayctl-policy-test") && page.contains("JSON Lines"),
        "{page}"
    );
    assert!(
        !home.path("relay").exists(),
        "nothing of this writes anything"
    );
}
