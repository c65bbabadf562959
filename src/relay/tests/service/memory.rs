//! `relay laya memory`.

use api::problem::{Problem, Slug};
use serde_json::{Value, json};

use crate::fake_router::FakeRouter;
use crate::{Home, assert_harmless};

fn task(id: &str, stale: bool) -> Value {
    json!({
        "id": id, "request": format!("Fix the {id} parser"), "lesson": "Change both places.\u{1b}[2J",
        "created": "2026-11-30T10:41:00.000Z", "labels": {"capability_tier": "fast", "task_type": "bug_fix"},
        "stale": stale, "session": "one",
    })
}

fn memory(tasks: &[Value]) -> Value {
    let stale = tasks.iter().filter(|task| task["stale"] == true).count();
    json!({"tasks": tasks, "total": tasks.len(), "stale": stale, "revision": 7})
}

#[test]
fn lists_shows_and_searches() {
    let (home, router) = (Home::new(), FakeRouter::start());
    let (one, two) = (task("s00001", false), task("s00002", true));
    let mut near = one.clone();
    near["similarity"] = json!(0.7573);
    router.answer("GET /v1/memory", &memory(&[one.clone(), two.clone()]));
    router.answer("GET /v1/memory?stale=true", &memory(&[two]));
    router.answer("GET /v1/memory/s00001", &one);
    router.answer("GET /v1/memory/search?q=date%20parser", &memory(&[near]));
    let run = |arguments: &[&str]| {
        let ended = home.run(&router.url(), &[&["laya", "memory"], arguments].concat());
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended
    };
    let ended = run(&["list"]);
    assert!(
        ended.out.contains("s00002") && ended.out.contains("(stale) Change both"),
        "{}",
        ended.out
    );
    assert!(
        ended.err.starts_with("2 learned tasks, 1 of them stale"),
        "{}",
        ended.err
    );
    assert_harmless(&ended.out);
    let ended = run(&["list", "--stale", "--json"]);
    let listed: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(listed["tasks"][0]["id"], "s00002");
    let ended = run(&["show", "s00001"]);
    assert!(
        ended
            .out
            .contains("Lesson\n  Change both places.\\u{1b}[2J\n"),
        "{}",
        ended.out
    );
    let ended = run(&["search", "date", "parser"]);
    assert!(ended.out.contains("s00001  0.76 "), "{}", ended.out);
}

#[test]
fn an_empty_memory_says_how_to_fill_it() {
    let (home, router) = (Home::new(), FakeRouter::start());
    router.answer("GET /v1/memory", &memory(&[]));
    let ended = home.run(&router.url(), &["laya", "memory", "list"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, ""));
    assert!(ended.err.contains("/laya learn"), "{}", ended.err);
}

#[test]
fn a_lesson_is_edited() {
    let (home, router) = (Home::new(), FakeRouter::start());
    router.answer("PATCH /v1/memory/s00001", &task("s00001", false));
    let ended = home.run(
        &router.url(),
        &["laya", "memory", "edit", "s00001", "--lesson", "Both."],
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(router.asked()[0].body, json!({"lesson": "Both."}));
    let too_long = Problem::invalid(vec![api::FieldError::new(
        "lesson",
        "has 700 UTF-16 units, limit 600",
    )]);
    router.refuse("PATCH /v1/memory/s00001", &too_long);
    let ended = home.run(
        &router.url(),
        &["laya", "memory", "edit", "s00001", "--lesson", "x"],
    );
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("limit 600"), "{}", ended.err);
}

#[test]
fn nothing_is_forgotten_unasked() {
    let (home, router) = (Home::new(), FakeRouter::start());
    for what in [&["s00001"][..], &["--session", "one"], &["--all"]] {
        let ended = home.run(
            &router.url(),
            &[&["laya", "memory", "forget"], what].concat(),
        );
        assert_eq!(ended.code, 2, "{what:?}: {ended:?}");
        assert!(ended.err.contains("hint: `--yes`"), "{}", ended.err);
    }
    for wrong in [
        &[][..],
        &["--all", "s00001"],
        &["--all", "--session", "one"],
        &["../x"],
    ] {
        let ended = home.run(
            &router.url(),
            &[&["laya", "memory", "forget", "--yes"], wrong].concat(),
        );
        assert_eq!(ended.code, 2, "{wrong:?}: {ended:?}");
    }
    assert_eq!(router.lines(), [""; 0]);
}

#[test]
fn what_is_forgotten_is_told_with_the_models_that_know_it() {
    let (home, router) = (Home::new(), FakeRouter::start());
    let gone = |ids: &[&str]| json!({"forgotten": ids, "trained_models": ["local-3"]});
    router.answer(
        "GET /v1/memory",
        &memory(&[task("s00001", false), task("s00002", false)]),
    );
    for id in ["s00001", "s00002"] {
        router.answer(&format!("GET /v1/memory/{id}"), &task(id, false));
        router.answer(&format!("DELETE /v1/memory/{id}"), &gone(&[id]));
    }
    router.answer(
        "DELETE /v1/memory?session=one",
        &gone(&["s00001", "s00002"]),
    );
    router.answer("DELETE /v1/memory?all=true", &gone(&["s00001", "s00002"]));
    let both = "2 forgotten: s00001, s00002\nalready trained on them, and what they learned stays in them: local-3\n";
    for (what, told) in [
        (&["s00001", "s00002"][..], both),
        (&["--session", "one"], both),
        (&["--session", "two"], "there is nothing to forget\n"),
        (&["--all"], both),
    ] {
        let ended = home.run(
            &router.url(),
            &[&["laya", "memory", "forget", "--yes"], what].concat(),
        );
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (0, told),
            "{what:?}: {ended:?}"
        );
    }
    assert!(
        !router
            .lines()
            .contains(&"DELETE /v1/memory?session=two".to_owned())
    );
}

/// One that is not there stops it before any other is gone.
#[test]
fn an_unknown_task_saves_the_others() {
    let (home, router) = (Home::new(), FakeRouter::start());
    router.answer("GET /v1/memory/s00001", &task("s00001", false));
    router.refuse(
        "GET /v1/memory/s00009",
        &Problem::new(Slug::NotFound, "no learned task s00009"),
    );
    let ended = home.run(
        &router.url(),
        &["laya", "memory", "forget", "--yes", "s00001", "s00009"],
    );
    assert_eq!((ended.code, ended.out.as_str()), (1, ""));
    assert!(
        ended
            .err
            .starts_with("relay: no learned task s00009\nhint: "),
        "{}",
        ended.err
    );
    assert!(router.lines().iter().all(|line| line.starts_with("GET ")));
}
