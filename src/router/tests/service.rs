//! The router as a service: what it learns, records and answers, through its routes and a real store.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

mod support;

use http::Method;
use serde_json::{Value, json};
use support::{TestRouter, built_in_policy};

fn labels(tier: &str) -> Value {
    json!({
        "task_type": "bug_fix", "complexity": 1, "scope": "single_file", "risk": 0, "ambiguity": 0,
        "reasoning_requirement": 1, "capability_tier": tier, "reasoning_effort": "low",
        "agent": "software-engineer", "validation_level": "unit_test", "requires_write": true,
        "requires_shell": false, "requires_tests": true, "requires_web": false, "requires_browser": false,
        "requires_database": false, "requires_git": false, "security_sensitive": false
    })
}

async fn learn(router: &TestRouter, request: &str, tier: &str, lesson: Option<&str>) -> Value {
    let (_, contract) = router.get("/v1/contract").await;
    let mut exercise = json!({"request": request, "labels": labels(tier)});
    if let Some(lesson) = lesson {
        exercise["lesson"] = lesson.into();
    }
    let body = json!({"session": "s-1", "shape": contract["shape"], "exercises": [exercise]});
    let (status, answer) = router.post("/v1/learn", &body).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

async fn route(router: &TestRouter, body: Value) -> Value {
    let (status, decision) = router.post("/v1/route", &body).await;
    assert_eq!(status, 200, "{decision}");
    decision
}

/// Evidence fades from the moment it is there.
fn about(value: &Value, wanted: f64) -> bool {
    value
        .as_f64()
        .is_some_and(|value| (value - wanted).abs() < 1e-4)
}

fn outcome(decision: &Value, attempt: u32, result: &str) -> Value {
    json!({
        "decision_id": decision["id"], "attempt": attempt, "result": result, "tests_passed": null,
        "tool_failures": 0, "final": true
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learned_answers_and_teaches_from_the_next_request_on() {
    let router = TestRouter::start(&built_in_policy()).await;
    let request = "Fix the date parser";
    let before = route(&router, json!({ "request": request })).await;
    assert_eq!(before["assessment"]["source"], "rules");
    let answer = learn(
        &router,
        request,
        "strong",
        Some("Dates come in three formats."),
    )
    .await;
    assert_eq!(
        (&answer["added"], &answer["ids"][0]),
        (&json!(1), &json!("s00001"))
    );

    let after = route(&router, json!({ "request": request })).await;
    assert_eq!(after["assessment"]["source"], "memory", "{after}");
    assert_eq!(after["selected"]["tier"], "strong");
    assert_eq!(after["provenance"]["memory"]["task"], "s00001");
    let plan = after["plan"].as_str().unwrap();
    assert!(plan.contains("Dates come in three formats."), "{plan}");

    let explicit =
        json!({"request": request, "constraints": {"model": "anthropic/claude-haiku-4-5"}});
    let explicit = route(&router, explicit).await;
    let lessons = explicit["lessons"].as_str().unwrap();
    assert!(lessons.starts_with("[laya:lessons] "), "{lessons}");

    let off = json!({"request": request, "settings": {"memory": false}});
    assert_eq!(route(&router, off).await["assessment"]["source"], "rules");

    let (_, list) = router.get("/v1/memory").await;
    assert_eq!(
        (&list["total"], &list["tasks"][0]["id"]),
        (&json!(1), &json!("s00001"))
    );
    let (_, found) = router.get("/v1/memory/search?q=date+parser").await;
    assert!(
        found["tasks"][0]["similarity"].as_f64().unwrap() > 0.8,
        "{found}"
    );
    let patch = json!({"lesson": "Use the one date module."});
    let (status, task) = router
        .ask(Method::PATCH, "/v1/memory/s00001", Some(&patch))
        .await;
    assert_eq!((status.as_u16(), &task["lesson"]), (200, &patch["lesson"]));
    let (status, gone) = router.ask(Method::DELETE, "/v1/memory/s00001", None).await;
    assert_eq!(
        (status.as_u16(), &gone["forgotten"]),
        (200, &json!(["s00001"]))
    );
    let forgotten = route(&router, json!({ "request": request })).await;
    assert_eq!(forgotten["assessment"]["source"], "rules");
    for (method, path) in [
        (Method::GET, "/v1/memory/s00001"),
        (Method::DELETE, "/v1/memory/s00001"),
        (Method::PATCH, "/v1/memory/s00001"),
    ] {
        let body = (method == Method::PATCH).then_some(&patch);
        let (status, problem) = router.ask(method.clone(), path, body).await;
        assert_eq!(status, 404, "{method} {path}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_are_recorded_once_and_change_what_is_chosen() {
    let router = TestRouter::start(&built_in_policy()).await;
    let request = json!({"request": "Implement the CSV export with tests"});
    let first = route(&router, request.clone()).await;
    let model = first["selected"]["model"].clone();
    let failure = outcome(&first, 1, "failure");
    let (status, answer) = router.post("/v1/outcomes", &failure).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["recorded"], true);
    assert!(about(&answer["history"]["failures"], 1.0), "{answer}");
    let (status, again) = router.post("/v1/outcomes", &failure).await;
    assert_eq!((status.as_u16(), &again), (200, &answer), "the same answer");
    let (status, problem) = router
        .post("/v1/outcomes", &outcome(&first, 1, "success"))
        .await;
    assert_eq!(status, 409, "{problem}");

    let second = route(&router, request.clone()).await;
    router
        .post("/v1/outcomes", &outcome(&second, 1, "failure"))
        .await;
    let third = route(&router, request.clone()).await;
    assert_ne!(
        third["selected"]["model"], model,
        "a model that fails goes behind its equals"
    );

    let unknown = json!({"id": "0193d2b1-0000-7000-8000-000000000001"});
    let (status, _) = router
        .post("/v1/outcomes", &outcome(&unknown, 1, "failure"))
        .await;
    assert_eq!(status, 404);
    let mut extra = failure.clone();
    extra["text"] = "x".into();
    let (status, problem) = router.post("/v1/outcomes", &extra).await;
    assert_eq!(status, 422, "{problem}");

    let id = first["id"].as_str().unwrap();
    let (status, stored) = router.get(&format!("/v1/decisions/{id}")).await;
    assert_eq!(status, 200, "{stored}");
    assert_eq!(stored["outcomes"][0]["result"], "failure");
    assert_eq!(stored["selected"], first["selected"]);
    let (_, page) = router.get("/v1/decisions?limit=2").await;
    assert_eq!(page["decisions"].as_array().unwrap().len(), 2);
    let cursor = page["next_cursor"].as_str().unwrap();
    let (_, rest) = router
        .get(&format!("/v1/decisions?limit=2&cursor={cursor}"))
        .await;
    assert_eq!(rest["decisions"].as_array().unwrap().len(), 1, "{rest}");
    for bad in [
        "?limit=501",
        "?limit=x",
        "?cursor=%00",
        "?since=yesterday",
        "?what=1",
    ] {
        let (status, problem) = router.get(&format!("/v1/decisions{bad}")).await;
        assert_eq!(status, 422, "{bad}: {problem}");
    }
    let (_, report) = router.get("/v1/report?since=1d").await;
    assert_eq!(report["total"]["decisions"], 3, "{report}");
    assert_eq!(report["total"]["judged"], 2, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_move_a_task_and_the_same_failures_move_it_once() {
    let router = TestRouter::start(&built_in_policy()).await;
    let request = json!({"request": "Rename the author field", "conversation_id": "c-1"});
    let first = route(&router, request).await;
    assert_eq!(first["selected"]["tier"], "fast");
    let failed = json!({"kind": "edit_rejected"});
    let report = |decision: &Value, count: usize| json!({"decision_id": decision["id"], "failures": vec![failed.clone(); count]});
    let (_, stay) = router.post("/v1/escalate", &report(&first, 2)).await;
    assert_eq!(
        (&stay["action"], &stay["failure_score"]),
        (&json!("stay"), &json!(2.0))
    );
    let (status, moved) = router.post("/v1/escalate", &report(&first, 3)).await;
    assert_eq!(status, 200, "{moved}");
    assert_eq!(moved["action"], "move", "{moved}");
    let second = &moved["decision"];
    assert_eq!(second["selected"]["tier"], "balanced");
    assert_eq!(second["task_id"], first["task_id"]);
    let (_, again) = router.post("/v1/escalate", &report(&first, 3)).await;
    assert_eq!(again, moved, "the same failures get the same answer");
    let (_, stay) = router.post("/v1/escalate", &report(second, 5)).await;
    assert_eq!(
        stay["action"], "stay",
        "counted from the last escalation: {stay}"
    );
    let (_, up) = router.post("/v1/escalate", &report(second, 6)).await;
    assert_eq!(up["decision"]["selected"]["tier"], "strong", "{up}");

    let own = json!({
        "request": "Rename the author field", "providers": ["google"],
        "settings": {"escalate_after_failures": 1}
    });
    let own = route(&router, own).await;
    let (_, moved) = router.post("/v1/escalate", &report(&own, 1)).await;
    assert_eq!(
        moved["action"], "move",
        "its client's threshold holds: {moved}"
    );
    assert_eq!(
        moved["decision"]["selected"]["provider"], "google",
        "its client's providers too"
    );

    let limited = json!({"decision_id": first["id"], "provider_error": {"status": 429, "retry_after_ms": 30_000}});
    let (_, other) = router.post("/v1/escalate", &limited).await;
    assert_eq!(other["action"], "move", "{other}");
    assert_ne!(
        other["decision"]["selected"]["provider"],
        first["selected"]["provider"]
    );
    let (_, models) = router.get("/v1/models").await;
    let provider = &first["selected"]["provider"];
    let model = models["tiers"]["fast"]
        .as_array()
        .unwrap()
        .iter()
        .find(|model| model["provider"] == *provider);
    assert_eq!(
        model.unwrap()["availability"],
        0.0,
        "left alone as it asked"
    );

    for (name, bad) in [
        (
            "both",
            json!({"decision_id": first["id"], "failures": [], "provider_error": {}}),
        ),
        ("neither", json!({"decision_id": first["id"]})),
    ] {
        let (status, problem) = router.post("/v1/escalate", &bad).await;
        assert_eq!(status, 422, "{name}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_turns_the_success_into_half_a_failure() {
    let router = TestRouter::start(&built_in_policy()).await;
    let ask = |text: &str| json!({"request": text, "conversation_id": "c-9"});
    let first = route(&router, ask("Add error handling to the uploader")).await;
    let mut success = outcome(&first, 1, "success");
    success["tests_passed"] = true.into();
    let (_, answer) = router.post("/v1/outcomes", &success).await;
    assert!(about(&answer["history"]["successes"], 1.0), "{answer}");
    let second = route(&router, ask("still fails on Safari")).await;
    assert_eq!(second["follow_up"], "correction", "{second}");
    let id = first["id"].as_str().unwrap();
    let mut corrected = Value::Null;
    for _ in 0..100 {
        let (_, stored) = router.get(&format!("/v1/decisions/{id}")).await;
        corrected = stored["outcomes"][0]["corrected"].clone();
        if corrected == true {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(corrected, true);
    let (_, answer) = router
        .post("/v1/outcomes", &outcome(&second, 1, "aborted"))
        .await;
    assert!(about(&answer["history"]["successes"], 0.0), "{answer}");
    assert!(about(&answer["history"]["failures"], 0.5), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_forgets_nothing() {
    let policy = built_in_policy();
    let folder = tempfile::tempdir().unwrap();
    let laya = folder.path().join("agent").join("laya");
    let ask = |text: &str| json!({"request": text, "conversation_id": "c"});
    let first = {
        let router = TestRouter::on(&policy, folder.path(), Some(&laya)).await;
        let (_, list) = router.get("/v1/memory").await;
        assert_eq!(list["total"], 0);
        learn(&router, "Fix the date parser", "frontier", None).await;
        let first = route(
            &router,
            ask("Design a job scheduler service for our platform"),
        )
        .await;
        router
            .post("/v1/outcomes", &outcome(&first, 1, "failure"))
            .await;
        router
            .store
            .close(std::time::Duration::from_secs(5))
            .await
            .unwrap();
        first
    };
    let router = TestRouter::on(&policy, folder.path(), Some(&laya)).await;
    let next = route(&router, ask("continue")).await;
    assert_eq!(
        (&next["follow_up"], &next["parent_id"]),
        (&json!("continuation"), &first["id"])
    );
    let learned = route(&router, json!({"request": "Fix the date parser"})).await;
    assert_eq!(learned["assessment"]["source"], "memory");
    let (_, answer) = router
        .post("/v1/outcomes", &outcome(&next, 1, "aborted"))
        .await;
    assert_eq!(
        answer["history"]["failures"].as_f64().unwrap().round(),
        1.0,
        "{answer}"
    );

    let text = std::fs::read_to_string(laya.join("training/data/dataset.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 1101, "first rows and the learned one");
    assert!(laya.join("training/decisions.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_frozen_under_their_digest() {
    let router = TestRouter::start(&built_in_policy()).await;
    learn(&router, "Fix the date parser", "fast", None).await;
    let (status, frozen) = router
        .ask(Method::POST, "/v1/dataset/snapshots", None)
        .await;
    assert_eq!(status, 200, "{frozen}");
    assert_eq!(frozen["rows"], 1101);
    let digest = frozen["digest"].as_str().unwrap();
    let (status, text) = router.get(&format!("/v1/dataset/snapshots/{digest}")).await;
    assert_eq!(status, 200);
    assert_eq!(text.as_str().unwrap().lines().count(), 1101);
    let none = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    assert_eq!(
        router.get(&format!("/v1/dataset/snapshots/{none}")).await.0,
        404
    );
    assert_eq!(router.get("/v1/dataset/snapshots/x").await.0, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_says_how_much_of_a_request_is_kept() {
    use routing::policy::RequestTextPrivacy::{Full, Hashed, None as Nothing};
    for (mode, text, digest) in [
        (Full, true, true),
        (Hashed, false, true),
        (Nothing, false, false),
    ] {
        let mut policy = std::sync::Arc::into_inner(built_in_policy()).unwrap();
        policy.policy.source.request_text = Some(mode);
        let router = TestRouter::start(&std::sync::Arc::new(policy)).await;
        let body = json!({"request": "Fix the marker 7f3a", "conversation_id": "c"});
        let decision = route(&router, body).await;
        assert_eq!(decision.get("request").is_some(), text, "{mode:?}");
        assert_eq!(decision["request_digest"] != "", digest, "{mode:?}");
        let next = json!({"request": "also in the footer", "conversation_id": "c"});
        assert_eq!(
            route(&router, next).await["follow_up"],
            "amendment",
            "{mode:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_readme_is_learned() {
    let router = TestRouter::start(&built_in_policy()).await;
    let body: Value =
        serde_json::from_str(include_str!("../../../docs/requests/learned-task.json")).unwrap();
    let (status, answer) = router.post("/v1/learn", &body).await;
    assert_eq!(status, 200, "{answer}");
    let decision = route(&router, json!({"request": "fix date parser"})).await;
    assert_eq!(decision["assessment"]["source"], "memory");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_wants_nothing_recorded_has_nothing_recorded() {
    let router = TestRouter::start(&built_in_policy()).await;
    let body = json!({"request": "Fix the pager", "settings": {"telemetry": false}});
    let decision = route(&router, body).await;
    let (status, answer) = router
        .post("/v1/outcomes", &outcome(&decision, 1, "failure"))
        .await;
    assert_eq!((status.as_u16(), &answer["recorded"]), (200, &json!(false)));
    assert!(about(&answer["history"]["failures"], 0.0), "{answer}");
    let id = decision["id"].as_str().unwrap();
    let (_, stored) = router.get(&format!("/v1/decisions/{id}")).await;
    assert_eq!(stored["outcomes"], json!([]));
    assert!(stored.get("request").is_none(), "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_store_learns_again_from_the_copy_of_its_tasks() {
    let policy = built_in_policy();
    let folder = tempfile::tempdir().unwrap();
    let laya = folder.path().join("agent").join("laya");
    {
        let router = TestRouter::on(&policy, folder.path(), Some(&laya)).await;
        learn(&router, "Fix the date parser", "strong", None).await;
        router
            .store
            .close(std::time::Duration::from_secs(5))
            .await
            .unwrap();
        // The copy follows a change beside requests; here nothing follows, so the next start writes it.
    }
    {
        let router = TestRouter::on(&policy, folder.path(), Some(&laya)).await;
        router
            .store
            .close(std::time::Duration::from_secs(5))
            .await
            .unwrap();
    }
    let file = laya.join("training/data/dataset.jsonl");
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("Fix the date parser")
    );
    for name in ["relay.db", "relay.db-wal", "relay.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join(name));
    }
    let router = TestRouter::on(&policy, folder.path(), Some(&laya)).await;
    let (_, list) = router.get("/v1/memory").await;
    assert_eq!(list["total"], 1, "{list}");
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("Fix the date parser")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_learned_tasks_is_not_read_half_and_not_lost_for_one_bad_byte() {
    let policy = built_in_policy();
    let folder = tempfile::tempdir().unwrap();
    let laya = folder.path().join("agent").join("laya");
    let file = laya.join("training/data/dataset.jsonl");
    let start = || TestRouter::on(&policy, folder.path(), Some(&laya));
    {
        let router = start().await;
        learn(&router, "Fix the date parser", "strong", None).await;
        router
            .store
            .close(std::time::Duration::from_secs(5))
            .await
            .unwrap();
    }
    start()
        .await
        .store
        .close(std::time::Duration::from_secs(5))
        .await
        .unwrap();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    {
        let router = start().await;
        let (_, list) = router.get("/v1/memory").await;
        assert_eq!(list["total"], 1, "somebody may still be writing: {list}");
        router
            .store
            .close(std::time::Duration::from_secs(5))
            .await
            .unwrap();
    }
    // A line that is no text, long settled: refused alone.
    let mut bytes = whole.clone();
    bytes.extend(b"{\"id\":\"s00099\",\"state\":{\"request\":\"caf\xe9\"}}\n");
    std::fs::write(&file, &bytes).unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let opened = std::fs::File::options().write(true).open(&file).unwrap();
    opened.set_modified(long_ago).unwrap();
    let router = start().await;
    let (_, list) = router.get("/v1/memory").await;
    assert_eq!(list["total"], 1, "{list}");
    let rejected = std::fs::read_to_string(file.with_file_name("dataset.jsonl.rejected")).unwrap();
    assert!(rejected.contains("s00099"), "{rejected}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_with_a_credential_loses_it_on_the_way_in() {
    let policy = built_in_policy();
    let folder = tempfile::tempdir().unwrap();
    let laya = folder.path().join("agent").join("laya");
    let file = laya.join("training/data/dataset.jsonl");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let row = json!({
        "id": "s00001", "state": {"request": format!("Use {token} to push")}, "expected": labels("fast"),
        "source": "session", "lesson": "password=hunter2secret"
    });
    std::fs::write(&file, format!("{row}\n")).unwrap();
    let router = TestRouter::on(&policy, folder.path(), Some(&laya)).await;
    let (_, task) = router.get("/v1/memory/s00001").await;
    assert!(!task.to_string().contains(&token), "{task}");
    assert!(task.get("lesson").is_none(), "{task}");
    assert!(!std::fs::read_to_string(&file).unwrap().contains(&token));
}
