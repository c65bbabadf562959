//! `relay laya connect`.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::fake_router::{FakeRouter, health};
use crate::{Home, decision, end, with_input};

const KEY: &str = "key-of-the-team-0123";

fn connect(home: &Home, arguments: &[&str]) -> crate::Ended {
    end(&mut home.command(&[&["laya", "connect"], arguments].concat()))
}

#[test]
fn points_the_client_at_a_router_that_passed_the_test() {
    let (home, router) = (Home::new(), FakeRouter::start());
    router.demand(KEY);
    home.write(
        "settings.json",
        "{\n  \"theme\": \"dark\",\n  \"laya\": {\"policy\": \"economy\"}\n}\n",
    );
    home.write("key.txt", &format!("{KEY}\n"));
    let key_file = home.agent("key.txt");
    let ended = connect(
        &home,
        &[&router.url(), "--token-file", key_file.to_str().unwrap()],
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended
            .out
            .contains("policy      team, revision 0123456789, profile balanced\n"),
        "{}",
        ended.out
    );
    assert_eq!(ended.err.matches("written: ").count(), 2, "{}", ended.err);
    assert_eq!(
        home.read("settings.json").unwrap(),
        format!(
            "{{\n  \"theme\": \"dark\",\n  \"laya\": {{\"policy\": \"economy\", \"baseUrl\": \"{}/v1\"}}\n}}\n",
            router.url()
        )
    );
    let stored: Value = serde_json::from_str(&home.read("auth.json").unwrap()).unwrap();
    assert_eq!(
        stored,
        json!({"laya": {"type": "api_key", "key": KEY, "address": router.url()}})
    );
    let mode = std::fs::metadata(home.agent("auth.json"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(home.files(), ["auth.json", "key.txt", "settings.json"]);

    // From now on it is in force, and the key goes with it.
    let shown = connect(&home, &[]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(
        shown
            .out
            .starts_with(&format!("router      {}   (laya.baseUrl in ", router.url())),
        "{}",
        shown.out
    );
    let json = connect(&home, &["--json"]);
    let told: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&told["policy"], &told["serving"], &told["written"]),
        (&json!("team"), &json!("rules_only"), &json!([]))
    );
    let asked = router.asked();
    assert_eq!(asked.last().unwrap().key.as_deref(), Some(KEY));
    for ended in [ended, shown, json] {
        assert!(
            !ended.out.contains(KEY) && !ended.err.contains(KEY),
            "{ended:?}"
        );
    }
}

#[test]
fn a_key_may_come_from_standard_input() {
    let (home, router) = (Home::new(), FakeRouter::start());
    router.demand(KEY);
    let url = router.url();
    let mut command = home.command(&["laya", "connect", &url, "--token-file", "-"]);
    let ended = with_input(&mut command, &format!("{KEY}\n"));
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(home.read("auth.json").unwrap().contains(KEY));
}

#[test]
fn nothing_is_written_when_the_test_fails() {
    let (home, router) = (Home::new(), FakeRouter::start());
    let mut other = health();
    other["shape"] =
        json!("sha256:b8ad124631b97759f7b11aae7d953727a9e6e814b2b142d26d57ed9e17ef6c93");
    other["decisions"] = json!(["task_type", "size"]);
    let url = router.url();
    let fails = |name: &str, arguments: &[&str], code: i32, told: &str| {
        let ended = connect(&home, arguments);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (code, ""),
            "{name}: {ended:?}"
        );
        assert!(ended.err.contains(told), "{name}: {}", ended.err);
        assert!(!ended.err.contains("hunter2"), "{name}: {}", ended.err);
        assert_eq!(home.files(), [""; 0], "{name}");
    };
    fails(
        "nobody there",
        &["http://127.0.0.1:9"],
        4,
        "no router at http://127.0.0.1:9",
    );
    fails(
        "a password",
        &["https://me:hunter2@a.example"],
        2,
        "must not hold a user name or a password",
    );
    fails(
        "no address",
        &["router"],
        2,
        "must begin with http:// or https://",
    );
    fails(
        "no such key file",
        &[&url, "--token-file", "/nowhere/key"],
        1,
        "/nowhere/key",
    );
    fails(
        "a key without an address",
        &["--token-file", "/nowhere/key"],
        2,
        "<URL>",
    );
    router.demand(KEY);
    fails(
        "the key is refused",
        &[&url],
        1,
        "refused the key; nothing was written\nhint: name the file of its key with `--token-file`",
    );
    router.answer("GET /health", &other);
    fails(
        "other questions",
        &[&url],
        1,
        "(shape b8ad124631b9 instead of 69666a987e7b; the first that differs is `complexity`)",
    );
    router.answer("GET /health", &json!({"status": "ok", "model": "laya"}));
    fails(
        "a plain Laya server",
        &[&url],
        4,
        "its answer is no health of a router",
    );
}

/// A typo must not cost the user the file (agent.md 3.2).
#[test]
fn a_damaged_file_is_named_and_left_alone() {
    let (home, router) = (Home::new(), FakeRouter::start());
    for (name, text) in [
        ("settings.json", "{\n  \"theme\": \"dark\",\n}\n"),
        ("auth.json", "{\"laya\""),
    ] {
        home.write(name, text);
        let ended = connect(&home, &[&router.url()]);
        assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{name}");
        assert!(
            ended.err.contains(name) && ended.err.contains("line "),
            "{}",
            ended.err
        );
        assert_eq!(home.read(name).unwrap(), text);
        std::fs::remove_file(home.agent(name)).unwrap();
    }
}

#[test]
fn a_key_on_an_open_line_is_warned_of() {
    let home = Home::new();
    home.write("key.txt", KEY);
    home.write("settings.json", "{\"laya\": {\"timeoutMs\": 100}}");
    let key_file = home.agent("key.txt");
    // An address for documentation: nobody has it.
    let ended = connect(
        &home,
        &[
            "http://192.0.2.1:9",
            "--token-file",
            key_file.to_str().unwrap(),
        ],
    );
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(
        ended
            .err
            .starts_with("warning: http://192.0.2.1:9 is not encrypted"),
        "{}",
        ended.err
    );
}

#[test]
fn what_is_in_force_is_shown_also_where_nobody_answers() {
    let home = Home::new();
    let ended = home.run("http://127.0.0.1:9", &["laya", "connect"]);
    assert_eq!((ended.code, ended.out.as_str()), (4, ""));
    assert!(
        ended.err.starts_with("router      http://127.0.0.1:9   (LAYA_BASE_URL)\nkey         none\nrelay: no router at"),
        "{}",
        ended.err
    );
}

/// Whoever is asked instead of the team's router must not learn its key.
#[test]
fn a_stored_key_is_sent_to_its_address_alone() {
    let (home, team, other) = (Home::new(), FakeRouter::start(), FakeRouter::start());
    team.demand(KEY);
    for router in [&team, &other] {
        router.answer("POST /v1/route", &decision("Fix the pager"));
    }
    home.write("key.txt", KEY);
    let file = home.agent("key.txt");
    let ended = connect(
        &home,
        &[&team.url(), "--token-file", file.to_str().unwrap()],
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    let switched = connect(&home, &[&other.url()]);
    let route = ["route", "Fix the pager"];
    let routed = end(&mut home.command(&route));
    let variable = end(home.command(&route).env("LAYA_API_KEY", "mine"));
    // By hand, and where the address comes from the environment.
    home.write(
        "settings.json",
        &json!({"laya": {"baseUrl": other.url()}}).to_string(),
    );
    let edited = end(&mut home.command(&route));
    home.write("settings.json", "{}");
    let named = home.run(&other.url(), &route);
    for ended in [&switched, &routed, &variable, &edited, &named] {
        assert_eq!(ended.code, 0, "{ended:?}");
        let told = format!("is for {} and not for {}; ", team.url(), other.url());
        assert_eq!(ended.err.matches(&told).count(), 1, "{ended:?}");
        assert!(
            !ended.err.contains(KEY) && !ended.out.contains(KEY),
            "{ended:?}"
        );
    }
    let keys: Vec<_> = other
        .asked()
        .into_iter()
        .filter_map(|asked| asked.key)
        .collect();
    assert!(!keys.iter().any(|key| key == KEY), "{keys:?}");
    assert_eq!(
        keys.iter().filter(|key| *key == "mine").count(),
        1,
        "{keys:?}"
    );
    // And back, without naming the key again.
    let back = connect(&home, &[&team.url()]);
    assert_eq!(back.code, 0, "{back:?}");
    let routed = end(&mut home.command(&route));
    assert_eq!((routed.code, routed.err.as_str()), (0, ""), "{routed:?}");
    assert_eq!(team.asked().last().unwrap().key.as_deref(), Some(KEY));
}

/// Entries that others wrote have no address; the one in force is theirs as soon as another is connected.
#[test]
fn a_key_without_an_address_stays_with_the_router_in_force() {
    let (home, team, other) = (Home::new(), FakeRouter::start(), FakeRouter::start());
    team.demand(KEY);
    for router in [&team, &other] {
        router.answer("POST /v1/route", &decision("Fix the pager"));
    }
    home.write(
        "settings.json",
        &json!({"laya": {"baseUrl": team.url()}}).to_string(),
    );
    let entry = json!({"laya": {"type": "api_key", "key": KEY, "env": "X"}});
    home.write("auth.json", &entry.to_string());
    let routed = end(&mut home.command(&["route", "Fix the pager"]));
    assert_eq!((routed.code, routed.err.as_str()), (0, ""), "{routed:?}");
    let switched = connect(&home, &[&other.url()]);
    assert_eq!(switched.code, 0, "{switched:?}");
    let stored: Value = serde_json::from_str(&home.read("auth.json").unwrap()).unwrap();
    let expected =
        json!({"laya": {"type": "api_key", "key": KEY, "env": "X", "address": team.url()}});
    assert_eq!(stored, expected);
    let routed = end(&mut home.command(&["route", "Fix the pager"]));
    assert_eq!(routed.code, 0, "{routed:?}");
    let asked = other.asked();
    assert!(asked.len() > 2 && asked.iter().all(|asked| asked.key.as_deref() != Some(KEY)));
}
