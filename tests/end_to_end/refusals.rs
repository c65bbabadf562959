//! A router that refuses is obeyed: no decision is made behind its back, and the exit code says why.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::programs::{Ended, Home, NOWHERE, Router, run};
use crate::records::fallback;

const TOKEN: &str = "a-token-of-a-team-0123456789";

fn with_tokens(home: &Home) -> Router {
    let tokens = home.file("tokens", format!("team {TOKEN}\n"));
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    Router::start(home, &["--token-file", tokens.to_str().unwrap()])
}

fn route(home: &Home, router: &Router, key: Option<&str>, more: &[&str]) -> Ended {
    let mut arguments = vec!["route", "-o", "json"];
    arguments.extend(more);
    let mut command = home.relay(&router.url(), &arguments);
    command.envs(key.map(|key| ("LAYA_API_KEY", key)));
    run(&mut command)
}

#[test]
fn a_wrong_token_is_said_and_nothing_is_decided() {
    let home = Home::new();
    let router = with_tokens(&home);
    for (name, key) in [
        ("no key", None),
        ("a wrong key", Some("another-token-0123456789abcdef")),
    ] {
        for more in [&["x y"][..], &["--no-fallback", "x y"]] {
            let ended = route(&home, &router, key, more);
            assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{name}");
            assert!(
                ended.err.starts_with("relay: the router refused: "),
                "{name}: {}",
                ended.err
            );
            assert!(!ended.err.contains("0123456789"), "{name}: {}", ended.err);
            let stored = home.path().join("agent/auth.json");
            let hint = format!(
                "\nhint: its key goes into LAYA_API_KEY, or as `laya` into {}\n",
                stored.display()
            );
            assert!(ended.err.ends_with(&hint), "{name}: {}", ended.err);
        }
    }
    let ended = route(&home, &router, Some(TOKEN), &["x y"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(fallback(&ended.record()), "no_model");
}

#[test]
fn a_stored_key_goes_before_the_environment() {
    let home = Home::new();
    let router = with_tokens(&home);
    let auth = json!({"laya": {"type": "api_key", "key": TOKEN}});
    home.file("agent/auth.json", auth.to_string());
    let ended = route(
        &home,
        &router,
        Some("another-token-0123456789abcdef"),
        &["x y"],
    );
    assert_eq!(ended.code, 0, "{}", ended.err);
}

/// A key that cannot be sent is the user's mistake, not an absent router; and it is not printed.
#[test]
fn a_key_that_no_header_can_hold_is_refused() {
    let home = Home::new();
    let router = with_tokens(&home);
    let key = format!("{TOKEN}\nx");
    let ended = route(&home, &router, Some(&key), &["x y"]);
    assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{}", ended.err);
    assert!(ended.err.contains("LAYA_API_KEY"), "{}", ended.err);
    assert!(!ended.err.contains(TOKEN), "{}", ended.err);

    let auth = json!({"laya": {"type": "api_key", "key": key}});
    home.file("agent/auth.json", auth.to_string());
    let ended = route(&home, &router, None, &["x y"]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{}", ended.err);
    assert!(ended.err.contains("auth.json: laya.key"), "{}", ended.err);
    assert!(!ended.err.contains(TOKEN), "{}", ended.err);
}

/// A refusal that is not about a line is said once and ends a batch; every line would be refused alike.
#[test]
fn a_batch_ends_at_a_wrong_token() {
    let home = Home::new();
    let router = with_tokens(&home);
    let file = home.file("lines.jsonl", "{\"request\":\"x y\"}\n".repeat(50));
    let ended = route(&home, &router, None, &["--batch", file.to_str().unwrap()]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{}", ended.err);
    let told = ended.err.matches("the router refused").count();
    assert_eq!(told, 1, "{}", ended.err);
}

/// What is wrong with a request is wrong in either place.
#[test]
fn bad_requests_have_the_same_exit_code_either_way() {
    let home = Home::new();
    let router = Router::start(&home, &[]);
    let long = "x".repeat(100_001);
    for (name, arguments, code, told) in [
        (
            "blank",
            &["route", " \n"][..],
            2,
            "request: must not be blank",
        ),
        ("too long", &["route", &long], 2, "request: has 100001"),
        (
            "unknown profile",
            &["route", "--profile", "cheap", "x y"],
            2,
            "profile: `cheap` is unknown",
        ),
        (
            "no candidate",
            &["route", "--providers", "nobody", "x y"],
            3,
            "hint: name providers with `--providers`",
        ),
    ] {
        for url in [router.url().as_str(), NOWHERE] {
            let ended = run(&mut home.relay(url, arguments));
            assert_eq!(
                (ended.code, ended.out.as_str()),
                (code, ""),
                "{name} at {url}: {}",
                ended.err
            );
            assert!(ended.err.contains(told), "{name} at {url}: {}", ended.err);
        }
    }
}

/// What a file says is the file's to change, wherever it is found out.
#[test]
fn a_wrong_profile_of_the_settings_is_named_with_its_file_either_way() {
    let home = Home::new();
    let router = Router::start(&home, &[]);
    home.settings(&json!({"policy": "cheap"}));
    let file = home.path().join("agent/settings.json");
    let told = format!(
        "relay: cannot use {}: laya.policy: `cheap` is unknown",
        file.display()
    );
    for url in [router.url().as_str(), NOWHERE] {
        let ended = run(&mut home.relay(url, &["route", "x y"]));
        assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{url}");
        assert!(ended.err.starts_with(&told), "{url}: {}", ended.err);
    }
    let ended = run(&mut home.relay(&router.url(), &["route", "--profile", "economy", "x y"]));
    assert_eq!(ended.code, 0, "{}", ended.err);
}

/// Words of the settings count where the settings are read.
#[test]
fn a_router_does_not_know_the_users_words_and_that_is_said() {
    let home = Home::new();
    let router = Router::start(&home, &[]);
    let words = "version = 1\n[[group]]\nid = \"topic.auth\"\nany = [\"frobnicate\"]\n";
    let words = home.file("words.toml", words);
    home.settings(&json!({"keywords": words}));
    let lines = "{\"request\":\"Fix the frobnicate module\"}\n".repeat(3);
    let file = home.file("lines.jsonl", lines);
    let arguments = ["route", "-o", "json", "--batch", file.to_str().unwrap()];
    for (url, rules, notes) in [
        (router.url().as_str(), json!([]), 1),
        (NOWHERE, json!(["authentication"]), 0),
    ] {
        let ended = run(&mut home.relay(url, &arguments));
        assert_eq!((ended.code, ended.records().len()), (0, 3), "{}", ended.err);
        assert_eq!(ended.records()[2]["policy"]["rules"], rules, "{url}");
        let told = ended.err.matches("(`laya.keywords`) count only").count();
        assert_eq!(told, notes, "{url}: {}", ended.err);
    }
}

/// Lines of a batch are named alike too, and the rest goes on.
#[test]
fn bad_lines_are_named_alike_either_way() {
    let home = Home::new();
    let router = Router::start(&home, &[]);
    let lines = [
        r#"{"request":"Fix the pager"}"#,
        "not json",
        r#"{"request":" "}"#,
        r#"{"request":"x y","profile":"cheap"}"#,
        r#"{"request":"Rename the author field"}"#,
    ];
    let file = home.file("lines.jsonl", lines.join("\n"));
    for url in [router.url().as_str(), NOWHERE] {
        let arguments = ["route", "-o", "json", "--batch", file.to_str().unwrap()];
        let ended = run(&mut home.relay(url, &arguments));
        assert_eq!((ended.code, ended.records().len()), (1, 2), "{url}");
        for line in ["line 2: ", "line 3: ", "line 4: "] {
            assert_eq!(ended.err.matches(line).count(), 1, "{url}: {}", ended.err);
        }
        assert!(
            ended
                .err
                .ends_with("2 decided (fast 1, balanced 1), 3 bad\n"),
            "{}",
            ended.err
        );
    }
}
