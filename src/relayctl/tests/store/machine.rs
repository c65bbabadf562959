//! What only a machine has: logs by the daemon, the engine in `status` and `doctor`, a server that is not ours.

use serde_json::{Value, json};
use testkit::{FakeLaya, Says};

use crate::api::Laptop;
use crate::models::{ready_model, serving};
use crate::support::first;

const DIGEST_A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[test]
fn logs_come_from_the_daemon_whole_or_their_end() {
    let laptop = Laptop::new();
    ready_model(&laptop, "v1", DIGEST_A);
    serving(&laptop, "v1", DIGEST_A);
    let ran = laptop.home.run(&["logs", "main"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert_eq!(
        first(&ran),
        "relayctl: nothing runs for layaserver/main, so it has no logs"
    );
    laptop.daemon(|_| (200, "one\ntwo \u{1b}[2J\nthree\n".to_owned()));
    let ran = laptop
        .home
        .run(&["logs", "main", "--revision", "aaaaaaaaaa"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "one\ntwo \\u{1b}[2J\nthree\n"),
        "{}",
        ran.err
    );
    let (method, path, _) = laptop.called().pop().unwrap();
    assert_eq!(
        (method.as_str(), path.as_str()),
        (
            "GET",
            "/api/logs/default/layaservers/main?revision=aaaaaaaaaa&tail=65536"
        )
    );
    assert_eq!(
        laptop.home.run(&["logs", "lm/v1", "--tail", "1"]).out,
        "three\n"
    );
    assert_eq!(
        laptop.called().pop().unwrap().1,
        "/api/logs/default/layamodels/v1?tail=65536"
    );
    for (arguments, code, line) in [
        (
            &["logs", "none"][..],
            3,
            "there is no layaserver/none or trainingrun/none or layamodel/none in namespace default",
        ),
        (
            &["logs", "main", "--revision", "x,y"],
            2,
            "`--revision x,y` is no revision",
        ),
        (
            &["logs", "lm/v1", "--revision", "aa"],
            2,
            "only a LayaServer has revisions, layamodel/v1 has none",
        ),
        (&["logs", "../x"], 2, ""),
    ] {
        let ran = laptop.home.run(arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.err);
        assert!(first(&ran).contains(line), "{}", ran.err);
    }
}

#[test]
fn following_shows_each_line_once() {
    let laptop = Laptop::new();
    ready_model(&laptop, "v1", DIGEST_A);
    serving(&laptop, "v1", DIGEST_A);
    let texts = std::sync::Mutex::new(vec!["b\nc\nd\n", "a\nb\nc\n", "a\nb\n"]);
    laptop.daemon(move |_| {
        let mut texts = texts.lock().unwrap();
        let text = if texts.len() > 1 {
            texts.pop().unwrap()
        } else {
            texts[0]
        };
        (200, text.to_owned())
    });
    let ran = laptop
        .home
        .run(&["logs", "main", "-f", "--timeout", "2500ms"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "a\nb\nc\nd\n"),
        "{}",
        ran.err
    );
}

#[test]
fn the_engine_and_what_is_in_its_way_are_told() {
    let laptop = Laptop::new();
    ready_model(&laptop, "v1", DIGEST_A);
    serving(&laptop, "v1", DIGEST_A);
    laptop.daemon(|_| {
        let engine = json!({"backend": "docker", "chosen": "meta", "reachable": false, "reason": "EngineUnavailable", "message": "connection refused",
            "strangers": [{"name": "relay-abc-main-0", "reason": "NameTaken", "holder": "a container that is not ours"}],
            "unclaimed": [{"kind": "LayaServer", "namespace": "default", "name": "gone", "uid": "u", "children": ["relay-abc-gone-0"]}]});
        (200, engine.to_string())
    });
    let ran = laptop.home.run(&["status"]);
    for line in [
        "engine    docker, not reachable: connection refused\n",
        "server    main: Ready=True (Reconciled), champion v1 (aaaaaaaaaaaa)\n",
        "problem   the engine docker is not reachable (EngineUnavailable): connection refused\n",
        "fix: rename or remove it: docker rename relay-abc-main-0 OTHER\n",
        "problem   relay-abc-gone-0 of layaserver/gone in namespace default runs on and belongs to no object\n",
        "fix: relayctl up --recover makes the object again\n",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    let document: Value =
        serde_json::from_str(&laptop.home.run(&["status", "-o", "json"]).out).unwrap();
    assert_eq!(
        (
            &document["engine"]["backend"],
            &document["servers"][0]["champion"]
        ),
        (&json!("docker"), &json!("v1 (aaaaaaaaaaaa)"))
    );
    let ran = laptop.home.run(&["explain", "ls/main"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.out.contains("\n  serves: v1 (aaaaaaaaaaaa)\n"),
        "{}",
        ran.out
    );
    let ran = laptop.home.run(&["explain", "lm/v1"]);
    assert!(
        ran.out
            .contains("\n  in use: champion (aaaaaaaaaaaa) of layaserver/main\n"),
        "{}",
        ran.out
    );
}

#[test]
fn a_server_that_answers_our_questions_is_adopted() {
    for (says, ending) in [
        (Says::relay(), ""),
        (
            Says::original(),
            "; it names no contract, and answers our questions (ContractUnverified)",
        ),
    ] {
        let laptop = Laptop::new();
        ready_model(&laptop, "v1", DIGEST_A);
        serving(&laptop, "v1", DIGEST_A);
        let laya = laptop.block_on(FakeLaya::start(says));
        let url = laya.url();
        let ran = laptop.run_while(&["adopt", "--url", &url], |laptop| {
            let object = laptop.until("layaservers", "main", |object| object["spec"]["external"]["url"].is_string());
            let generation = &object["metadata"]["generation"];
            let reason = if ending.is_empty() { "Observed" } else { "ContractUnverified" };
            let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-11-30T10:00:00Z"});
            laptop.set_status_of("layaservers", "main", &json!({"observedGeneration": generation,
                "conditions": [condition("Adopted", "Observed"), condition("ContractMatched", reason)]}));
        });
        assert_eq!(
            (ran.code, ran.out),
            (
                Some(0),
                format!("main: the server at {url} serves{ending}\n")
            ),
            "{}",
            ran.err
        );
        assert_eq!(
            laptop.managers_of("layaservers", "main", "external"),
            ["relayctl-use"]
        );
        let again = laptop.home.run(&["adopt", "--url", &url]);
        assert_eq!(
            again.out, "layaserver.relay.dev/main unchanged\n",
            "{}",
            again.err
        );
        laptop.block_on(laya.stop());
    }
}

#[test]
fn a_foreign_server_with_other_questions_is_not_used() {
    let laptop = Laptop::new();
    ready_model(&laptop, "v1", DIGEST_A);
    serving(&laptop, "v1", DIGEST_A);
    let ids: Vec<_> = decision::relay_contract()
        .questions()
        .iter()
        .map(|question| question.id.clone())
        .filter(|id| id != "requires_git")
        .collect();
    let mut says = Says::original();
    says.health = (200, json!({"status": "ok", "decisions": ids}).to_string());
    let laya = laptop.block_on(FakeLaya::start(says));
    let address = laya.address();
    let ran = laptop.home.run(&["adopt", "--url", &laya.url()]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert_eq!(
        first(&ran),
        format!(
            "relayctl: the server at {address} is not used (ContractMismatch): it does not know `requires_git`"
        )
    );
    assert!(
        ran.err.contains("hint: stop it, or change `laya.baseUrl`"),
        "{}",
        ran.err
    );
    laptop.block_on(laya.stop());
    let ran = laptop
        .home
        .run(&["adopt", "--url", &format!("http://{address}")]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert_eq!(
        first(&ran),
        format!("relayctl: nothing listens on {address}")
    );
    for url in ["http://10.0.0.1:1", "https://127.0.0.1:1", "x"] {
        assert_eq!(
            laptop.home.run(&["adopt", "--url", url]).code,
            Some(2),
            "{url}"
        );
    }
    assert_eq!(
        laptop.home.run(&["adopt", "--context", "team"]).code,
        Some(2)
    );
}

#[test]
fn taking_a_port_over_needs_ours_and_a_yes() {
    let laptop = Laptop::new();
    ready_model(&laptop, "v1", DIGEST_A);
    serving(&laptop, "v1", DIGEST_A);
    laptop.edit_of(
        "layaservers",
        "main",
        &json!({"spec": {"external": {"url": "http://127.0.0.1:8737"}}}),
    );
    let ran = laptop.home.run(&["adopt", "--replace"]);
    assert_eq!(ran.code, Some(12), "{}", ran.err);
    assert!(
        laptop.object("layaservers", "main")["spec"]["external"].is_object(),
        "nothing was begun"
    );
    let ran = laptop.run_while(&["adopt", "--replace", "--yes"], |laptop| {
        let object = laptop.until("layaservers", "main", |object| object["spec"]["external"].is_null());
        laptop.set_status_of("layaservers", "main", &json!({"observedGeneration": object["metadata"]["generation"],
            "conditions": [{"type": "Available", "status": "True", "reason": "Observed", "message": "", "lastTransitionTime": "2026-11-30T10:00:00Z"}]}));
    });
    // There is no docker on the empty PATH of a test: the command is told, and nothing was touched.
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "main: v1 serves\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("docker stop $(docker ps -q --filter publish=8737)"),
        "{}",
        ran.err
    );
}
