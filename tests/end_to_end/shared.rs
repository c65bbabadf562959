//! A router that a team shares: tokens say whose decisions, tasks and outcomes these are, and `relay laya connect` points a
//! client at it. Outcomes that could not be delivered go out at the next contact.

use serde_json::{Value, json};

use crate::programs::{Ended, Home, Http, NOWHERE, PATIENCE, Router, labels, run, teach, until};

const TEXT: &str = "Fix the date parser of the calendar page";

/// A router with tokens, and the home of two users of different tenants who are connected to it.
struct Team {
    router: Router,
    ana: Home,
    ben: Home,
    _home: Home,
}

const ANA: &str = "token-of-team-a-0123456789";
const BEN: &str = "token-of-team-b-0123456789";

fn relay(home: &Home, arguments: &[&str]) -> Ended {
    run(&mut home.relay_alone(arguments))
}

fn connected(router: &Router, key: &str) -> Home {
    let home = Home::new();
    let file = home.private_file("key.txt", key);
    let arguments = [
        "laya",
        "connect",
        &router.url(),
        "--token-file",
        file.to_str().unwrap(),
    ];
    let ended = relay(&home, &arguments);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!format!("{ended:?}").contains(key), "{ended:?}");
    home
}

impl Team {
    fn start() -> Self {
        let home = Home::new();
        let tokens = home.private_file("router/tokens", format!("a {ANA}\nb {BEN}\n"));
        let router = Router::start(&home, &["--token-file", tokens.to_str().unwrap()]);
        let (ana, ben) = (connected(&router, ANA), connected(&router, BEN));
        Self {
            router,
            ana,
            ben,
            _home: home,
        }
    }
}

#[test]
fn a_client_is_connected_with_a_key_that_is_right() {
    let team = Team::start();
    let url = team.router.url();
    let shown = relay(&team.ana, &["laya", "connect", "-o", "json"]).document();
    assert_eq!(shown["address"], url.as_str(), "{shown}");
    let from = shown["address_from"].as_str().unwrap();
    assert!(from.starts_with("laya.baseUrl in "), "{shown}");

    let stranger = Home::new();
    let file = stranger.private_file("key.txt", "token-of-nobody-0123456789");
    let arguments = [
        "laya",
        "connect",
        &url,
        "--token-file",
        file.to_str().unwrap(),
    ];
    let refused = relay(&stranger, &arguments);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("nothing was written"), "{refused:?}");
    assert!(!stranger.path().join("agent/settings.json").exists());
    let nobody = relay(&stranger, &["laya", "connect", NOWHERE]);
    assert_eq!(nobody.code, 4, "{nobody:?}");
}

#[test]
fn tenants_do_not_see_each_other() {
    let team = Team::start();
    let url = team.router.url();
    let route = |home: &Home| {
        let ended = relay(home, &["route", "-o", "json", TEXT]);
        assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{ended:?}");
        ended.record()
    };
    teach(
        &Http::new(PATIENCE).with_key(ANA),
        &url,
        TEXT,
        "strong",
        Some("Three formats."),
    );
    let (of_ana, of_ben) = (route(&team.ana), route(&team.ben));
    assert_eq!(of_ana["assessment"]["source"], "memory", "{of_ana}");
    assert_ne!(of_ben["assessment"]["source"], "memory", "{of_ben}");

    let total = |home: &Home| {
        let list = relay(home, &["laya", "memory", "list", "-o", "json"]);
        list.document()["total"].clone()
    };
    assert_eq!((total(&team.ana), total(&team.ben)), (json!(1), json!(0)));
    let task = of_ana["provenance"]["memory"]["task"].as_str().unwrap();
    for arguments in [
        &["laya", "memory", "show", task][..],
        &["laya", "memory", "forget", task, "--yes"],
        &["explain", of_ana["id"].as_str().unwrap()],
    ] {
        let ended = relay(&team.ben, arguments);
        assert_eq!(ended.code, 1, "{arguments:?}: {ended:?}");
        assert!(!ended.out.contains("Three formats."), "{ended:?}");
    }
    let explained = relay(&team.ana, &["explain", of_ana["id"].as_str().unwrap()]);
    assert_eq!(explained.code, 0, "{explained:?}");

    let ben = Http::new(PATIENCE).with_key(BEN);
    let report = json!({
        "decision_id": of_ana["id"], "attempt": 1, "result": "failure", "tests_passed": null, "tool_failures": 0,
        "final": true,
    });
    let answer = ben.post(&format!("{url}/v1/outcomes"), &report).unwrap();
    assert_eq!(answer.status, 404, "{answer:?}");
    let follow_up = json!({"request": "continue", "previous_decision_id": of_ana["id"]});
    let answer = ben
        .post(&format!("{url}/v1/route"), &follow_up)
        .unwrap()
        .ok();
    assert_eq!(answer["parent_id"], Value::Null, "{answer}");
    let decisions = |home: &Home| {
        let report = relay(home, &["report", "-o", "json"]).document();
        report["total"]["decisions"].clone()
    };
    // A decision is written with the next group of writes.
    let deadline = std::time::Instant::now() + PATIENCE;
    while decisions(&team.ben) != json!(2) {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(decisions(&team.ana), json!(1));

    let nobody = Http::new(PATIENCE).post(
        &format!("{url}/v1/learn"),
        &json!({"exercises": [labels("fast")]}),
    );
    assert_eq!(nobody.unwrap().status, 401);
}

#[test]
fn outcomes_that_waited_go_out_at_the_next_contact() {
    let team = Team::start();
    let first = relay(&team.ana, &["route", "-o", "json", TEXT]).record();
    let line = |attempt: u32, result: &str, last: bool| {
        let report = json!({
            "decision_id": first["id"], "attempt": attempt, "result": result, "tests_passed": last, "tool_failures": 1,
            "final": last,
        });
        report.to_string() + "\n"
    };
    let spool = "agent/laya/outcomes.jsonl";
    let waiting = line(1, "failure", false) + &line(2, "success", true);
    team.ana.private_file(spool, &waiting);
    // A router that is not there takes nothing.
    let mut away = team.ana.relay(NOWHERE, &["route", "--dry-run", TEXT]);
    team.ana.file("elsewhere/settings.json", "{}");
    away.env("RELAY_CODING_AGENT_DIR", team.ana.path().join("elsewhere"));
    assert_eq!(run(&mut away).code, 0);
    assert_eq!(team.ana.text(spool).unwrap(), waiting);

    // Any command that asks the router will do.
    let id = first["id"].as_str().unwrap();
    // Delivery is given 200 ms, which a busy machine may not have.
    until("what waited is delivered", || {
        let contact = relay(&team.ana, &["explain", id]);
        assert_eq!(contact.code, 0, "{contact:?}");
        match team.ana.text(spool)? {
            left if left.is_empty() => Ok(()),
            left => Err(left),
        }
    });
    let stored = relay(&team.ana, &["explain", id, "-o", "json"]).document();
    let results: Vec<_> = stored["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|outcome| (outcome["attempt"].clone(), outcome["result"].clone()))
        .collect();
    assert_eq!(
        results,
        [(json!(1), json!("failure")), (json!(2), json!("success"))],
        "{stored}"
    );
    let report = relay(&team.ana, &["report", "-o", "json"]).document();
    assert_eq!(report["total"]["successes"], 1, "{report}");
}
