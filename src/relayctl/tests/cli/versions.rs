//! `relayctl model manifest` and what of the other verbs needs no server; and their exit codes with one that misbehaves.

use serde_json::{Value, json};

use crate::scripted::{Answer, serve, serve_cluster};
use crate::support::{Home, first};

#[test]
fn a_manifest_is_the_file_of_the_page() {
    let home = Home::new();
    home.write("v2/encoder/config.json", "{}");
    home.write("v2/model.safetensors", "abc");
    home.write("v2/relay-manifest.json", "left out");
    let ran = home.run(&[
        "model",
        "manifest",
        "--dir",
        "v2",
        "--version",
        "v2",
        "--revision",
        "deb313b0",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(
        ran.out,
        "\
{
  \"baseUrl\": \"https://huggingface.co/eltonssouza/relay-laya/resolve/deb313b0/\",
  \"files\": [
    {
      \"path\": \"encoder/config.json\",
      \"asset\": \"encoder/config.json\",
      \"size\": 2,
      \"sha256\": \"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"
    },
    {
      \"path\": \"model.safetensors\",
      \"asset\": \"model.safetensors\",
      \"size\": 3,
      \"sha256\": \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"
    }
  ]
}
"
    );
    assert!(
        ran.err.starts_with("v2: sha256:") && ran.err.ends_with(", 2 files, 5 B\n"),
        "{}",
        ran.err
    );
    let ran = home.run(&[
        "model",
        "manifest",
        "--dir",
        "v2",
        "--version",
        "v2",
        "--base-url",
        "https://example.com/v2",
    ]);
    let manifest: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(manifest["baseUrl"], "https://example.com/v2/");
    assert_eq!(manifest["files"][0]["asset"], "encoder__config.json");
}

#[test]
fn fault_40_hostile_folders_and_files_are_refused() {
    let home = Home::new();
    home.write("good/a.json", "{}");
    home.write("empty/a.json", "");
    home.write("hidden/.git/config", "x");
    std::fs::create_dir(home.path("hollow")).unwrap();
    std::fs::create_dir(home.path("linked")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", home.path("linked/model.safetensors")).unwrap();
    std::fs::create_dir(home.path("piped")).unwrap();
    for pipe in ["piped/model.safetensors", "decisions.json"] {
        let path = std::ffi::CString::new(home.path(pipe).to_str().unwrap()).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
    }
    let manifest = |dir: &str| home.run(&["model", "manifest", "--dir", dir, "--version", "v"]);
    for (dir, code, line) in [
        ("none", 3, "relayctl: cannot read none/: "),
        ("good/a.json", 4, "relayctl: cannot read good/a.json/: "),
        ("hollow", 4, "relayctl: hollow holds no file"),
        ("empty", 4, "relayctl: empty/a.json is empty"),
        (
            "hidden",
            4,
            "relayctl: hidden/.git has a name that no checkpoint may have (UnsafePath)",
        ),
        (
            "linked",
            4,
            "relayctl: linked/model.safetensors is neither a file nor a folder",
        ),
        (
            "piped",
            4,
            "relayctl: piped/model.safetensors is neither a file nor a folder",
        ),
    ] {
        let ran = manifest(dir);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(code), ""),
            "{dir}: {}",
            ran.err
        );
        assert!(first(&ran).starts_with(line), "{dir}: {}", ran.err);
    }
    for (arguments, code, line) in [
        (
            &["model", "import", "m", "--dir", "none"][..],
            3,
            "relayctl: cannot use folder none: ",
        ),
        (
            &["model", "import", "m", "--dir", "decisions.json"],
            4,
            "relayctl: decisions.json is no folder",
        ),
        (
            &["model", "import", "m", "--decisions", "decisions.json"],
            4,
            "relayctl: cannot read decisions.json: ",
        ),
        (
            &["model", "import", "m", "--volume", "v"],
            2,
            "relayctl: the following required arguments were not provided: --path <PATH>",
        ),
        (
            &[
                "model", "import", "m", "--volume", "v", "--path", "p", "--digest", "sha256:x",
            ],
            2,
            "relayctl: `sha256:x` is no digest",
        ),
        (
            &["model", "import", "m", "--dir", "good", "--context", "none"],
            3,
            "relayctl: ",
        ),
    ] {
        let ran = home.run(arguments);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(code), ""),
            "{arguments:?}: {}",
            ran.err
        );
        assert!(first(&ran).starts_with(line), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn every_new_verb_has_the_exit_codes_of_the_page() {
    let status = |code: u16, reason: &str| {
        Answer::Json(
            code,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "m", "reason": reason, "code": code}),
        )
    };
    let verbs: [&[&str]; 10] = [
        &["models"],
        &["use", "m"],
        &["model", "fetch", "m"],
        &["model", "verify", "m"],
        &["model", "rm", "m", "--yes"],
        &["rollout", "status", "main"],
        &["rollout", "history", "main"],
        &["rollout", "pause", "main"],
        &["rollout", "undo", "main"],
        &["logs", "main"],
    ];
    for (code, reason, exit) in [
        (401, "Unauthorized", 11),
        (403, "Forbidden", 11),
        (503, "ServiceUnavailable", 6),
        (500, "InternalError", 6),
    ] {
        let home = Home::new();
        serve(&home, move |_| status(code, reason));
        for verb in verbs {
            let ran = home.run(verb);
            assert_eq!(ran.code, Some(exit), "{verb:?} {code}: {}", ran.err);
        }
    }
    let home = Home::new();
    for verb in verbs {
        let ran = home.run(verb);
        assert_eq!(ran.code, Some(6), "{verb:?}: {}", ran.err);
        assert!(
            ran.err.contains("hint: start it with `relayctl up`"),
            "{verb:?}: {}",
            ran.err
        );
    }
    serve(&home, |_| Answer::Silence);
    let ran = home.run(&["rollout", "status", "main", "--timeout", "200ms"]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
}

#[test]
fn a_conflict_is_5_and_a_gone_daemon_no_error_of_down() {
    let home = Home::new();
    serve(&home, |asked| {
        let object = json!({"metadata": {"name": "main"}, "spec": {"modelRef": {"name": "v1"}}});
        match asked.method.as_str() {
            "GET" => Answer::Json(200, object),
            _ => Answer::Json(
                409,
                json!({"kind": "Status", "message": "changed meanwhile", "reason": "Conflict", "code": 409}),
            ),
        }
    });
    let ran = home.run(&["rollout", "pause", "main"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    let ran = home.run(&["down", "--keep-servers"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(0), "`relayd local` is not running\n")
    );
}

#[test]
fn help_of_every_word_below_the_new_verbs() {
    let home = Home::new();
    for words in [
        &["model", "ls"][..],
        &["model", "fetch"],
        &["model", "verify"],
        &["model", "rm"],
        &["model", "prune"],
        &["model", "use"],
        &["model", "import"],
        &["model", "manifest"],
        &["rollout", "status"],
        &["rollout", "history"],
        &["rollout", "pause"],
        &["rollout", "resume"],
        &["rollout", "approve"],
        &["rollout", "abort"],
        &["rollout", "retry"],
        &["rollout", "undo"],
    ] {
        let mut arguments = words.to_vec();
        arguments.push("--help");
        let ran = home.run(&arguments);
        assert_eq!(ran.code, Some(0), "{words:?}");
        assert!(
            ran.out
                .contains(&format!("Usage: relayctl {}", words.join(" "))),
            "{}",
            ran.out
        );
    }
}

#[test]
fn in_a_cluster_logs_are_those_of_the_pods() {
    let home = Home::new();
    let (address, log) = serve_cluster(|asked| {
        let path = asked.path.as_str();
        if path.contains("/pods?") {
            let pod = |name: &str| json!({"metadata": {"name": name}});
            Answer::Json(200, json!({"items": [pod("main-a"), pod("main-b")]}))
        } else if path.contains("/pods/main-a/log") {
            Answer::Text(200, "one\ntwo\n")
        } else if path.contains("/pods/main-b/log") {
            Answer::Text(200, "three \u{1b}[2J")
        } else {
            Answer::Json(200, json!({"metadata": {"name": "main"}}))
        }
    });
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\nclusters:\n  - {{name: c, cluster: {{server: 'http://{address}'}}}}\ncontexts:\n  - {{name: team, context: {{cluster: c, user: u, namespace: relay}}}}\nusers:\n  - {{name: u, user: {{token: t}}}}\n"
    );
    home.write("kubeconfig", kubeconfig);
    let ran = home.run(&[
        "logs",
        "main",
        "--context",
        "team",
        "--revision",
        "0123456789",
        "--tail",
        "1",
    ]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            Some(0),
            "==> main-a <==\ntwo\n==> main-b <==\nthree \\u{1b}[2J\n"
        ),
        "{}",
        ran.err
    );
    let asked = log.lock().unwrap();
    let listed = asked
        .iter()
        .find(|asked| asked.path.contains("/pods?"))
        .unwrap();
    assert!(
        listed.path.starts_with("/api/v1/namespaces/relay/pods?labelSelector=relay.dev%2Fkind%3DLayaServer%2Crelay.dev%2Fname%3Dmain%2Crelay.dev%2Frevision%3D0123456789"),
        "{}",
        listed.path
    );
    assert!(
        asked
            .iter()
            .all(|asked| !asked.path.starts_with("/api/logs"))
    );
    drop(asked);
    // What only a machine can do is said.
    home.write("m/model.safetensors", "x");
    let ran = home.run(&["model", "import", "m", "--dir", "m", "--context", "team"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(
        ran.err
            .contains("`--dir` publishes a folder of this machine, and the context is `team`"),
        "{}",
        ran.err
    );
}
