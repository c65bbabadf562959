//! `relayctl model`, `models`, `use`.

use serde_json::{Value, json};

use crate::api::Laptop;
use crate::support::first;

const DIGEST_A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const DIGEST_B: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A model that lies in a volume.
pub(crate) fn model(laptop: &Laptop, name: &str, digest: &str) {
    let spec =
        json!({"source": {"volume": {"name": "claim", "path": name}}, "manifestDigest": digest});
    laptop.make("LayaModel", "layamodels", name, &spec);
}

/// The same, ready.
pub(crate) fn ready_model(laptop: &Laptop, name: &str, digest: &str) {
    model(laptop, name, digest);
    laptop.set_status_of("layamodels", name, &ready(digest));
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-30T10:00:00Z", "observedGeneration": 1})
}

fn ready(digest: &str) -> Value {
    json!({"observedGeneration": 1, "phase": "Published", "digest": digest, "sizeBytes": 678_202_866,
        "conditions": [condition("Ready", "True", "Reconciled", "it is here"), condition("Verified", "True", "Observed", "every file is right")]})
}

/// LayaServer `main` that serves a model.
pub(crate) fn serving(laptop: &Laptop, model: &str, digest: &str) {
    laptop.make(
        "LayaServer",
        "layaservers",
        "main",
        &json!({"modelRef": {"name": model}}),
    );
    let status = json!({"observedGeneration": 1,
        "wish": {"model": model, "digest": digest, "from": "Spec", "specModel": model},
        "champion": {"model": model, "digest": digest, "shortDigest": &digest[7..19], "revision": "aaaaaaaaaa"},
        "rollout": {"kind": "First", "state": "Done"},
        "conditions": [condition("Ready", "True", "Reconciled", "it serves"), condition("RolledOut", "True", "Observed", "the wish serves")]});
    laptop.set_status_of("layaservers", "main", &status);
}

fn wishes(object: &Value, model: &str) -> bool {
    object["spec"]["modelRef"]["name"] == model
}

#[test]
fn a_version_is_used_with_its_progress_told() {
    let laptop = Laptop::new();
    ready_model(&laptop, "old", DIGEST_A);
    ready_model(&laptop, "new", DIGEST_B);
    serving(&laptop, "old", DIGEST_A);
    let ran = laptop.run_while(&["use", "new"], |laptop| {
        laptop.until("layaservers", "main", |object| wishes(object, "new"));
        for (state, message) in [("Loading", "0 of 1 replicas are ready"), ("Probing", "asked 3 of 6")] {
            laptop.set_status_of("layaservers", "main", &json!({"observedGeneration": 2,
                "wish": {"model": "new", "specModel": "new"}, "candidate": {"model": "new", "digest": DIGEST_B},
                "rollout": {"kind": "Model", "state": state, "message": message}}));
        }
        laptop.set_status_of("layaservers", "main", &json!({"candidate": null,
            "champion": {"model": "new", "digest": DIGEST_B, "shortDigest": "bbbbbbbbbbbb", "revision": "bbbbbbbbbb"},
            "previous": {"model": "old", "digest": DIGEST_A}, "rollout": {"state": "Baking", "message": null}}));
    });
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "main: new serves, old kept for rollback\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.lines().all(|line| line.starts_with("main: ")),
        "{}",
        ran.err
    );
    assert_eq!(
        laptop
            .managers_of("layaservers", "main", "modelRef")
            .last()
            .map(String::as_str),
        Some("relayctl-use")
    );
    // Once more: it is so already.
    laptop.set_status_of(
        "layaservers",
        "main",
        &json!({"rollout": {"state": "Done"}}),
    );
    let ran = laptop.home.run(&["model", "use", "new"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "main: new serves already\n"),
        "{}",
        ran.err
    );
    let ran = laptop.home.run(&["use", "new", "-o", "name"]);
    assert_eq!(ran.out, "layaserver.relay.dev/main\n");
}

#[test]
fn a_version_that_is_taken_back_ends_with_10() {
    let laptop = Laptop::new();
    ready_model(&laptop, "old", DIGEST_A);
    ready_model(&laptop, "new", DIGEST_B);
    serving(&laptop, "old", DIGEST_A);
    let rejected = json!({"observedGeneration": 2, "rollout": {"state": "Done"},
        "rejected": [{"revision": "bbbbbbbbbb", "digest": DIGEST_B, "reason": "WrongAnswers", "message": "2 of 8"}],
        "conditions": [condition("Ready", "True", "Reconciled", "old serves"),
            condition("Stalled", "True", "Rejected", "spec names model new, which was taken back: WrongAnswers.")]});
    let ran = laptop.run_while(&["use", "new"], |laptop| {
        laptop.until("layaservers", "main", |object| wishes(object, "new"));
        laptop.set_status_of("layaservers", "main", &rejected);
    });
    assert_eq!(ran.code, Some(10), "{}", ran.err);
    assert!(
        ran.err.contains("relayctl: main: the new version was taken back: spec names model new, which was taken back: WrongAnswers.; old serves\n")
            && ran.err.contains("hint: `relayctl rollout retry main` tries it once more"),
        "{}",
        ran.err
    );
    // The same wish again is not tried again.
    let ran = laptop.home.run(&["use", "new"]);
    assert_eq!(ran.code, Some(10), "{}", ran.err);
    assert!(
        ran.err.contains("`--force --reason …` also past its gate"),
        "{}",
        ran.err
    );
    // By force it is, with digest, reason and a raised retry.
    let ran = laptop.home.run(&[
        "use",
        "new",
        "--force",
        "--reason",
        "agent is worse on purpose",
        "--no-wait",
    ]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "layaserver.relay.dev/main uses new\n"),
        "{}",
        ran.err
    );
    let rollout = laptop.object("layaservers", "main")["spec"]["rollout"].clone();
    assert_eq!(
        (
            &rollout["retry"],
            &rollout["force"]["digest"],
            &rollout["force"]["reason"]
        ),
        (
            &json!(1),
            &json!(DIGEST_B),
            &json!("agent is worse on purpose")
        )
    );
}

#[test]
fn what_cannot_be_used_is_refused_with_what_there_is() {
    let laptop = Laptop::new();
    ready_model(&laptop, "old", DIGEST_A);
    let ran = laptop.home.run(&["use", "old"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(
        ran.err.contains("there is no layaserver/main")
            && ran.err.contains("hint: `relayctl up` makes `main`"),
        "{}",
        ran.err
    );
    serving(&laptop, "old", DIGEST_A);
    for (arguments, code, line) in [
        (
            &["use", "none"][..],
            3,
            "there is no layamodel/none in namespace default\nhint: there are: old",
        ),
        (
            &["use", "old", "--server", "other"],
            3,
            "there is no layaserver/other in namespace default\nhint: there are: main",
        ),
        (
            &["use", "shipped"],
            3,
            "there is no LayaModel of the shipped version",
        ),
        (&["use", "../old"], 2, "`../old` is no name of an object"),
        (
            &["use", "\u{1b}[2J"],
            2,
            "`\\u{1b}[2J` is no name of an object",
        ),
        (&["use", "old", "--force"], 2, "--reason"),
        (
            &["use", "old", "--force", "--reason", " "],
            2,
            "`--reason` says nothing",
        ),
    ] {
        let ran = laptop.home.run(arguments);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(code), ""),
            "{arguments:?}: {}",
            ran.err
        );
        assert!(ran.err.contains(line), "{arguments:?}: {}", ran.err);
    }
    let ran = laptop.home.run(&["use", "none", "-o", "json"]);
    let status: Value = serde_json::from_str(ran.err.lines().last().unwrap()).unwrap();
    assert_eq!(status["reason"], "NotFound");
}

#[test]
fn a_dry_run_changes_nothing_and_another_writer_is_told_of() {
    let laptop = Laptop::new();
    ready_model(&laptop, "old", DIGEST_A);
    ready_model(&laptop, "new", DIGEST_B);
    serving(&laptop, "old", DIGEST_A);
    laptop.edit_of(
        "layaservers",
        "main",
        &json!({"spec": {"modelRef": {"name": "new"}}}),
    );
    laptop.edit_of(
        "layaservers",
        "main",
        &json!({"spec": {"modelRef": {"name": "old"}}}),
    );
    for (flag, word) in [
        ("--dry-run=client", "client"),
        ("--dry-run=server", "server"),
    ] {
        let ran = laptop.home.run(&["use", "new", flag]);
        assert_eq!(
            (ran.code, ran.out.clone()),
            (
                Some(0),
                format!("layaserver.relay.dev/main uses new ({word} dry run)\n")
            ),
            "{}",
            ran.err
        );
        assert_eq!(
            first(&ran),
            "note: somebody writes spec.modelRef of main too, and what it says wins the next time it does"
        );
    }
    assert!(wishes(&laptop.object("layaservers", "main"), "old"));
}

#[test]
fn shipped_is_the_embedded_version_whatever_its_name() {
    let laptop = Laptop::new();
    ready_model(&laptop, "local-1", DIGEST_A);
    let shipped = "sha256:d5a13ee2404702eb1e6f08e548878b5c32e664da8d7fdae4ffac5d3f5f8cc729";
    ready_model(&laptop, "base", shipped);
    serving(&laptop, "local-1", DIGEST_A);
    let ran = laptop.home.run(&["use", "shipped", "--no-wait"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "layaserver.relay.dev/main uses base\n"),
        "{}",
        ran.err
    );
}

#[test]
fn another_wish_meanwhile_is_a_conflict_and_silence_a_time_out() {
    let laptop = Laptop::new();
    for (name, digest) in [("old", DIGEST_A), ("new", DIGEST_B)] {
        ready_model(&laptop, name, digest);
    }
    serving(&laptop, "old", DIGEST_A);
    let ran = laptop.run_while(&["use", "new"], |laptop| {
        laptop.until("layaservers", "main", |object| wishes(object, "new"));
        laptop.edit_of(
            "layaservers",
            "main",
            &json!({"spec": {"modelRef": {"name": "old"}}}),
        );
    });
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    let ran = laptop.home.run(&["use", "new", "--timeout", "300ms"]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert!(
        ran.err.contains(
            "waited 0s for layaserver/main: main: the controller has not looked at it yet"
        ),
        "{}",
        ran.err
    );
}

#[test]
fn versions_are_listed_with_what_the_volume_holds_besides() {
    let laptop = Laptop::new();
    ready_model(&laptop, "old", DIGEST_A);
    serving(&laptop, "old", DIGEST_A);
    let ran = laptop.home.run(&["models"]);
    assert_eq!(ran.code, Some(0));
    assert!(first(&ran).starts_with("note: what else the models volume holds is not known: this `relayd local` has no call `engine`"), "{}", ran.err);
    laptop.daemon(|_| {
        let engine = json!({"backend": "embedded", "reachable": true,
            "modelsVolume": {"name": "models", "freeBytes": 1, "totalBytes": 1, "unknownFolders": ["left-over"]},
            "models": [{"digest": DIGEST_A, "sizeBytes": 1, "keep": false}, {"digest": DIGEST_B, "sizeBytes": 5_000_000, "keep": true}]});
        (200, engine.to_string())
    });
    let ran = laptop.home.run(&["model", "ls"]);
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>().join(" "),
        "NAME STATE GATE TEST SEEN HELD OUT TASKS CREATED SIZE"
    );
    assert!(
        lines[1].starts_with("old    champion   -") && lines[1].ends_with("678 MB"),
        "{}",
        ran.out
    );
    assert_eq!(
        lines[3..],
        [
            "without an object in models: bbbbbbbbbbbb (5.0 MB), kept on purpose",
            "unknown folders in models, left alone: left-over"
        ]
    );
    assert_eq!(
        laptop.home.run(&["models", "-o", "name"]).out,
        "layamodel.relay.dev/old\n"
    );
    let document: Value =
        serde_json::from_str(&laptop.home.run(&["models", "-o", "json"]).out).unwrap();
    assert_eq!(document["items"][0]["status"]["digest"], DIGEST_A);
    let wide = laptop
        .home
        .run(&["models", "-o", "wide", "--no-headers"])
        .out;
    let cells: Vec<_> = wide.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(
        cells[cells.len() - 4..],
        ["aaaaaaaaaaaa", "-", "True", "Reconciled"],
        "{wide}"
    );
}

#[test]
fn a_suspended_version_is_fetched_and_its_failure_is_the_answer() {
    let laptop = Laptop::new();
    let files =
        json!([{"path": "model.safetensors", "size": 678_000_000, "sha256": "ab".repeat(32)}]);
    let source = json!({"http": {"baseUrl": "https://models.example.com/v1/", "files": files}});
    laptop.make(
        "LayaModel",
        "layamodels",
        "v1",
        &json!({"source": source, "suspend": true}),
    );
    let seen = |object: &Value| object["spec"]["suspend"] == false;
    let ran = laptop.run_while(&["model", "fetch", "v1"], |laptop| {
        laptop.until("layamodels", "v1", seen);
        laptop.set_status_of(
            "layamodels",
            "v1",
            &json!({"observedGeneration": 2, "phase": "Fetching",
            "fetch": {"attempt": 1, "bytesDone": 339_000_000, "bytesTotal": 678_000_000}}),
        );
        let mut here = ready(DIGEST_A);
        here["observedGeneration"] = json!(2);
        laptop.set_status_of("layamodels", "v1", &here);
    });
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "v1: aaaaaaaaaaaa is here, 678 MB\n"),
        "{}",
        ran.err
    );
    assert_eq!(
        laptop
            .managers_of("layamodels", "v1", "suspend")
            .last()
            .map(String::as_str),
        Some("relayctl-use")
    );
    assert_eq!(
        laptop.home.run(&["model", "fetch", "v1"]).out,
        "v1: aaaaaaaaaaaa is here, 678 MB\n"
    );

    // One that was given up is asked for anew.
    let stalled = |message: &str| {
        json!({"observedGeneration": 2, "phase": "Failed", "conditions": [
        condition("Ready", "False", "SourceNotFound", message), condition("Stalled", "True", "SourceNotFound", message)]})
    };
    laptop.set_status_of("layamodels", "v1", &stalled("404 for model.safetensors"));
    let ran = laptop.run_while(&["model", "fetch", "v1"], |laptop| {
        laptop.until("layamodels", "v1", |object| {
            object["metadata"]["annotations"]["relay.dev/verify"].is_string()
        });
        laptop.set_status_of("layamodels", "v1", &stalled("404 once more"));
    });
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(
        ran.err.contains("relayctl: layamodel/v1 cannot be had (SourceNotFound): 404 once more\nhint: correct the address or the name of the file; `relayctl explain layamodel/v1` tells more\n"),
        "{}",
        ran.err
    );
    assert_eq!(laptop.home.run(&["model", "fetch", "none"]).code, Some(3));
}

#[test]
fn a_version_is_hashed_again_when_asked() {
    let laptop = Laptop::new();
    ready_model(&laptop, "v1", DIGEST_A);
    let nonce = |object: &Value| object["metadata"]["annotations"]["relay.dev/verify"].clone();
    let ran = laptop.run_while(&["model", "verify", "v1"], |laptop| {
        let object = laptop.until("layamodels", "v1", |object| nonce(object).is_string());
        laptop.set_status_of("layamodels", "v1", &json!({"phase": "Verifying"}));
        laptop.set_status_of("layamodels", "v1", &json!({"phase": "Published", "verifyNonce": nonce(&object), "verifiedAt": "2026-11-30T10:00:00Z"}));
    });
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            Some(0),
            "v1: every file is right, aaaaaaaaaaaa at 2026-11-30T10:00:00Z\n"
        ),
        "{}",
        ran.err
    );
    let before = nonce(&laptop.object("layamodels", "v1"));
    let ran = laptop.run_while(&["model", "verify", "v1"], |laptop| {
        laptop.until("layamodels", "v1", |object| nonce(object) != before);
        laptop.set_status_of("layamodels", "v1", &json!({"phase": "Failed", "conditions": [
            condition("Ready", "False", "ModelDamaged", "differs"), condition("Verified", "False", "ModelDamaged", "model.safetensors differs")]}));
    });
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(
        ran.err
            .contains("layamodel/v1 cannot be had (ModelDamaged): model.safetensors differs"),
        "{}",
        ran.err
    );
}

#[test]
fn a_version_in_use_is_not_deleted_and_another_only_after_a_yes() {
    let laptop = Laptop::new();
    ready_model(&laptop, "old", DIGEST_A);
    ready_model(&laptop, "spare", DIGEST_B);
    serving(&laptop, "old", DIGEST_A);
    let ran = laptop.home.run(&["model", "rm", "old", "--yes"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert_eq!(
        first(&ran),
        "relayctl: layamodel/old is in use (StillInUse): it is champion of layaserver/main"
    );
    let ran = laptop.home.run(&["model", "rm", "spare"]);
    assert_eq!(ran.code, Some(12), "{}", ran.err);
    assert!(
        first(&ran).contains("delete layamodel/spare, its files stay of context local needs a yes"),
        "{}",
        ran.err
    );
    let ran = laptop
        .home
        .run(&["model", "rm", "spare", "--dry-run=server"]);
    assert_eq!(
        ran.out, "layamodel.relay.dev/spare deleted (server dry run)\n",
        "{}",
        ran.err
    );
    let ran = laptop.home.run(&["model", "rm", "spare", "--yes"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "layamodel.relay.dev/spare deleted\n"),
        "{}",
        ran.err
    );
    assert_eq!(
        laptop.home.run(&["model", "rm", "spare", "--yes"]).code,
        Some(3)
    );
    assert_eq!(
        laptop.home.run(&["model", "rm", "old", "-o", "json"]).code,
        Some(2)
    );
}

#[test]
fn files_without_an_object_are_shown_asked_about_and_deleted() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    let ran = home.run(&["model", "prune", "--yes"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let found = json!({"ok": true, "dryRun": true, "delete": [{"digest": DIGEST_A, "sizeBytes": 678_000_000}],
        "keep": [], "unknown": ["local-1"], "freeBytes": 1, "totalBytes": 2})
    .to_string();
    laptop.daemon(move |_| (200, found.clone()));
    let listed = "nothing names aaaaaaaaaaaa (678 MB)\n1 version, 678 MB in all\nunknown folders, left alone: local-1\n";
    let ran = home.run(&["model", "prune", "--dry-run"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), listed),
        "{}",
        ran.err
    );
    let (_, path, body) = laptop.called().pop().unwrap();
    assert_eq!(
        (path.as_str(), &body),
        ("/api/prune", &json!({"dryRun": true}))
    );
    // Nobody can be asked: nothing is deleted.
    let before = laptop.called().len();
    let ran = home.run(&["model", "prune"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(12), listed),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("delete the files of 1 version (678 MB) needs a yes"),
        "{}",
        ran.err
    );
    assert_eq!(laptop.called().len(), before + 1);
    let ran = home.run(&["model", "prune", "--dry-run", "-o", "json"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["unnamed"][0]["digest"], DIGEST_A, "{document}");
    // Nothing else goes than what was shown.
    let ran = home.run(&["model", "prune", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let (_, _, body) = laptop.called().pop().unwrap();
    assert_eq!(body, json!({"delete": [DIGEST_A]}));
    assert_eq!(home.run(&["model", "prune", "-o", "name"]).code, Some(2));
}

#[test]
fn a_folder_is_published_by_the_daemon() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    home.write("tiny/model.safetensors", "x");
    let ran = home.run(&["model", "import", "tiny", "--dir", "tiny"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(
        ran.err
            .contains("this `relayd local` has no call `import`: it is of an older release"),
        "{}",
        ran.err
    );
    laptop.daemon(|_| (422, json!({"title": "Unprocessable", "status": 422, "detail": "config.json cannot be read"}).to_string()));
    let ran = home.run(&["model", "import", "tiny", "--dir", "tiny"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(
        ran.err.contains("relayctl: config.json cannot be read"),
        "{}",
        ran.err
    );

    // The daemon makes the object before it answers.
    let (made, waits) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Mutex::new(waits);
    laptop.daemon(move |_| {
        waits.lock().unwrap().recv().unwrap();
        (200, json!({"digest": DIGEST_A}).to_string())
    });
    home.write("decisions.json", decision::RELAY_DECISIONS_JSON);
    let arguments = [
        "model",
        "import",
        "tiny",
        "--dir",
        "tiny",
        "--decisions",
        "decisions.json",
    ];
    let before = laptop.called().len();
    let ran = laptop.run_while(&arguments, |laptop| {
        laptop.until_called_after(before, "/api/import");
        ready_model(laptop, "tiny", DIGEST_A);
        made.send(()).unwrap();
    });
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            Some(0),
            "tiny: aaaaaaaaaaaa is here, `relayctl use tiny` lets it serve\n"
        ),
        "{}",
        ran.err
    );
    let (method, path, body) = laptop.called().pop().unwrap();
    assert_eq!((method.as_str(), path.as_str()), ("POST", "/api/import"));
    assert_eq!(
        (&body["name"], &body["namespace"]),
        (&json!("tiny"), &json!("default"))
    );
    assert!(
        body["path"].as_str().unwrap().ends_with("/tiny")
            && body["decisions"] == decision::RELAY_DECISIONS_JSON,
        "{body}"
    );
    // The same name for another folder: the daemon says so.
    laptop.daemon(|_| {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409,
            "message": "default/tiny is another checkpoint; choose another name"});
        (409, status.to_string())
    });
    let ran = home.run(&["model", "import", "tiny", "--dir", "tiny"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    let ran = home.run(&["model", "import", "other", "--dir", "tiny", "--dry-run"]);
    assert_eq!(
        ran.out,
        "layamodel.relay.dev/other imported (client dry run)\n"
    );
    assert_eq!(
        home.run(&[
            "model",
            "import",
            "other",
            "--dir",
            "tiny",
            "--dry-run=server"
        ])
        .code,
        Some(2)
    );
}

#[test]
fn a_version_in_a_volume_is_registered_with_its_wording() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    home.write("decisions.json", decision::RELAY_DECISIONS_JSON);
    let contract = decision::relay_contract().digest().to_string();
    let arguments = [
        "model",
        "import",
        "local-3",
        "--volume",
        "relay-laya-models",
        "--path",
        "local-3",
        "--digest",
        DIGEST_A,
        "--decisions",
        "decisions.json",
    ];
    let ran = laptop.run_while(&arguments, |laptop| {
        laptop.until("layamodels", "local-3", |object| !object["spec"].is_null());
        laptop.set_status_of("layamodels", "local-3", &ready(DIGEST_A));
    });
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            Some(0),
            "local-3: aaaaaaaaaaaa is registered, `relayctl use local-3` lets it serve\n"
        ),
        "{}",
        ran.err
    );
    let spec = laptop.object("layamodels", "local-3")["spec"].clone();
    assert_eq!(
        spec["source"],
        json!({"volume": {"name": "relay-laya-models", "path": "local-3"}})
    );
    assert_eq!(
        (&spec["manifestDigest"], &spec["contract"]),
        (&json!(DIGEST_A), &json!(contract))
    );
    let name = format!("contract-{}", &contract[7..19]);
    let document = laptop.get(&format!(
        "/apis/apps/v1/namespaces/default/controllerrevisions/{name}"
    ));
    assert_eq!(
        document["data"]["decisions.json"],
        decision::RELAY_DECISIONS_JSON
    );
    let ran = home.run(&["model", "import", "x", "--volume", "v", "--path", "local-3"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert_eq!(
        first(&ran),
        "relayctl: a version in a volume needs its checkpoint digest"
    );
}

#[test]
fn a_contract_is_set_once_and_its_wording_kept() {
    let laptop = Laptop::new();
    let home = &laptop.home;
    ready_model(&laptop, "v1", DIGEST_A);
    home.write("decisions.json", decision::RELAY_DECISIONS_JSON);
    let contract = decision::relay_contract().digest().to_string();
    let said = format!("v1: contract {} of 18 questions\n", &contract[7..19]);
    let run = || home.run(&["model", "import", "v1", "--decisions", "decisions.json"]);
    let ran = run();
    assert_eq!((ran.code, ran.out), (Some(0), said), "{}", ran.err);
    assert_eq!(
        laptop.object("layamodels", "v1")["spec"]["contract"],
        contract
    );
    assert_eq!(run().out, "layamodel.relay.dev/v1 unchanged\n");
    home.write(
        "other.json",
        decision::RELAY_DECISIONS_JSON.replacen("capability_tier", "capability_level", 1),
    );
    let ran = home.run(&["model", "import", "v1", "--decisions", "other.json"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(
        first(&ran).contains("layamodel.relay.dev/v1 has contract"),
        "{}",
        ran.err
    );
    for (file, text, code) in [
        ("bad.json", "{", 4),
        ("empty.json", "{\"decisions\": {}}", 4),
    ] {
        home.write(file, text);
        let ran = home.run(&["model", "import", "v1", "--decisions", file]);
        assert_eq!(ran.code, Some(code), "{file}: {}", ran.err);
    }
    assert_eq!(
        home.run(&["model", "import", "v1", "--decisions", "none.json"])
            .code,
        Some(3)
    );
    assert_eq!(
        home.run(&["model", "import", "none", "--decisions", "decisions.json"])
            .code,
        Some(3)
    );
}
