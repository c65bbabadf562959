//! Files that were there before the router: what an older installation left in the agent folder, and a copy of the learned
//! tasks that somebody edits while the router runs.

use serde_json::{Value, json};

use crate::programs::{Home, Http, PATIENCE, Router, labels, teach, until};

const DATASET: &str = "agent/laya/training/data/dataset.jsonl";
const TELEMETRY: &str = "agent/laya/telemetry.jsonl";
const TEXT: &str = "Implement the CSV export with tests";
const TAKEN_IN: &str = "data set file changed by another program taken in";
const OUTCOMES: &str = "outcomes of an older installation taken in";

/// A row as Relay 1.0.3 wrote it: without digests, with a key that we do not know.
fn row(id: &str, text: &str, source: &str) -> Value {
    json!({
        "id": id, "state": {"request": text}, "expected": labels("strong"), "source": source,
        "session": "old-session", "label_source": "agent", "created": "2026-11-01T10:00:00.000Z",
        "kept_by": "another program",
    })
}

fn finished(task: &str, decision: &Value, tests_passed: Option<bool>, outcome: &str) -> Value {
    json!({
        "task_id": task, "timestamp": now_millis(), "request": TEXT,
        "classification": {
            "source": "heuristic", "type": decision["assessment"]["task"]["type"],
            "complexity": decision["assessment"]["task"]["complexity"], "risk": 0.0, "ambiguity": 0.0,
            "reasoning": 0.3, "scope": "module", "agent": "software-engineer", "validation": "unit_test",
            "confidence": 0.5, "recommended_tier": "balanced", "recommended_effort": "medium",
        },
        "policy": {"profile": "balanced", "required_tier": "balanced", "rules": []},
        "selected": {
            "provider": decision["selected"]["provider"], "model": model(decision),
            "tier": decision["selected"]["tier"], "thinking_level": "medium",
        },
        "result": {
            "success": outcome == "completed" && tests_passed != Some(false), "outcome": outcome, "attempts": 1,
            "escalations": 0, "tests_passed": tests_passed, "tool_failures": 0,
        },
        "usage": {"tokens": 1000, "cost": 0.01, "duration_ms": 1000, "models": []},
    })
}

/// Milliseconds since 1970, as JavaScript has them.
fn now_millis() -> u64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// The model without its provider.
fn model(decision: &Value) -> String {
    let full = decision["selected"]["model"].as_str().unwrap();
    let provider = decision["selected"]["provider"].as_str().unwrap();
    full.strip_prefix(provider)
        .unwrap()
        .trim_start_matches('/')
        .to_owned()
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| row.to_string() + "\n").collect()
}

/// What the router said of an event, oldest first.
fn events(router: &Router, message: &str) -> Vec<Value> {
    let log = router.log();
    let events = log.lines().map(|line| serde_json::from_str(line).unwrap());
    events
        .filter(|event: &Value| event["message"] == message)
        .collect()
}

/// Decides for a model, reports a success, and gives the decision with the history that answers.
fn decided_well(router: &Router) -> (Value, Value) {
    let body = json!({"request": TEXT, "constraints": {"model": "anthropic/claude-sonnet-5-5"}});
    let decision = router.post("/v1/route", &body).ok();
    let report = json!({
        "decision_id": decision["id"], "attempt": 1, "result": "success", "tests_passed": true, "tool_failures": 0,
        "final": true,
    });
    let answer = router.post("/v1/outcomes", &report).ok();
    (decision, answer["history"].clone())
}

#[test]
fn what_an_older_installation_left_counts_once() {
    let other = Home::new();
    let (decision, before) = decided_well(&Router::local(&other, &[]));

    let home = Home::new();
    let dataset = lines(&[
        row(
            "s00001",
            "Fix the date parser of the calendar page",
            "session",
        ),
        row("s00007", "Repair the pager of the archive list", "session"),
        row("r00001", "Rename the author field", "synthetic"),
    ]) + "{\"id\":\"s00008\",\"state\n";
    home.file(DATASET, &dataset);
    let telemetry = lines(&[
        finished("t-1", &decision, Some(true), "completed"),
        finished("t-2", &decision, None, "completed"),
        finished("t-3", &decision, Some(false), "completed"),
        finished("t-4", &decision, None, "aborted"),
        finished("t-1", &decision, Some(true), "completed"),
    ]) + "no JSON\n";
    home.file(TELEMETRY, &telemetry);

    let mut router = Router::local(&home, &[]);
    let taken = events(&router, TAKEN_IN);
    assert_eq!(taken.len(), 1, "{taken:?}");
    for (what, count) in [
        ("lines", 4),
        ("added", 3),
        ("forgotten", 0),
        ("rejected", 1),
    ] {
        assert_eq!(taken[0][what], count, "{what}: {}", taken[0]);
    }
    let outcomes = events(&router, OUTCOMES);
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    assert_eq!(
        (&outcomes[0]["new"], &outcomes[0]["rejected"]),
        (&json!(3), &json!(1))
    );
    let memory = router.get("/v1/memory").ok();
    assert_eq!(
        (&memory["total"], &memory["stale"]),
        (&json!(2), &json!(0)),
        "{memory}"
    );
    let asked = json!({"request": "Repair the pager of the archive list"});
    let known = router.post("/v1/route", &asked).ok();
    assert_eq!(known["provenance"]["memory"]["task"], "s00007", "{known}");
    // The next number is above the highest that was ever used.
    let http = Http::new(PATIENCE);
    let id = teach(
        &http,
        &router.url(),
        "Sort the archive list by year",
        "fast",
        None,
    );
    assert_eq!(id, "s00008");
    let kept = home
        .text("agent/laya/training/data/dataset.jsonl.rejected")
        .unwrap();
    assert_eq!(kept, "{\"id\":\"s00008\",\"state\n");
    let kept = home.text("agent/laya/telemetry.jsonl.rejected").unwrap();
    assert_eq!(kept, "no JSON\n");
    until("the file has the new row and what we do not know", || {
        let text = home.text(DATASET)?;
        match (
            text.contains("Sort the archive list"),
            text.matches("another program").count(),
        ) {
            (true, 3) => Ok(()),
            _ => Err(text),
        }
    });
    assert_eq!(
        home.text(TELEMETRY).unwrap(),
        telemetry,
        "that file is not ours"
    );

    // 1 and 0.5 of the file beside the one that was just reported; one failure.
    let (_, history) = decided_well(&router);
    assert_eq!(history["key"], before["key"]);
    let number = |history: &Value, what: &str| history[what].as_f64().unwrap();
    let more = number(&history, "successes") - number(&before, "successes");
    assert!((more - 1.5).abs() < 0.01, "{before} {history}");
    assert!(
        (number(&history, "failures") - 1.0).abs() < 0.01,
        "{history}"
    );

    router.terminate();
    assert_eq!(router.ended().code(), Some(0));
    let file = home.text(DATASET).unwrap();
    let second = Router::local(&home, &[]);
    second.until_ready();
    assert_eq!(events(&second, TAKEN_IN).len(), 1, "the file is our own");
    let new: Vec<_> = events(&second, OUTCOMES)
        .iter()
        .skip(1)
        .map(|event| event["new"].clone())
        .collect();
    assert!(new.iter().all(|new| *new == 0), "{new:?}");
    assert_eq!(home.text(DATASET).unwrap(), file);
    assert_eq!(second.get("/v1/memory").ok()["total"], 3);
    let (_, history) = decided_well(&second);
    let more = number(&history, "successes") - number(&before, "successes");
    assert!(
        (more - 2.5).abs() < 0.01,
        "one more was reported: {before} {history}"
    );
}

#[test]
fn a_copy_that_is_edited_by_hand_is_taken_in_while_the_router_runs() {
    let home = Home::new();
    let router = Router::local(&home, &[]);
    let http = Http::new(PATIENCE);
    let kept = "Fix the date parser of the calendar page";
    let deleted = "Repair the pager of the archive list";
    for text in [kept, deleted] {
        teach(&http, &router.url(), text, "strong", None);
    }
    let copy = until("both are in the copy", || {
        let text = home.text(DATASET)?;
        if text.contains(deleted) {
            Ok(text)
        } else {
            Err(format!("{} lines", text.lines().count()))
        }
    });
    assert!(
        copy.lines().count() > 1000,
        "with the first rows: {}",
        copy.lines().count()
    );

    let added = row("", "Translate the menu of the settings page", "session");
    let edited: String = copy
        .lines()
        .filter(|line| !line.contains(deleted))
        .map(|line| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            if row["state"]["request"] == kept {
                row["lesson"] = "By hand.".into();
            } else {
                return line.to_owned() + "\n";
            }
            row.to_string() + "\n"
        })
        .collect();
    home.file(DATASET, edited + &added.to_string() + "\n");
    until("the edit is taken in", || {
        let memory = router.get("/v1/memory").ok();
        let tasks = memory["tasks"].as_array().unwrap();
        let mut seen: Vec<_> = tasks
            .iter()
            .map(|task| (task["request"].as_str().unwrap(), task["lesson"].as_str()))
            .collect();
        seen.sort_unstable();
        let wanted = [
            (kept, Some("By hand.")),
            ("Translate the menu of the settings page", None),
        ];
        if seen == wanted {
            Ok(())
        } else {
            Err(format!("{seen:?}"))
        }
    });
    until("memory follows", || {
        let body = json!({"request": deleted, "dry_run": true});
        let decision = router.post("/v1/route", &body).ok();
        match decision["assessment"]["source"].as_str() {
            Some("memory") => Err("it still knows".to_owned()),
            _ => Ok(()),
        }
    });
    let taken = events(&router, TAKEN_IN);
    assert_eq!(taken.len(), 1, "once: {taken:?}");
    assert_eq!(
        (
            &taken[0]["added"],
            &taken[0]["updated"],
            &taken[0]["forgotten"]
        ),
        (&json!(1), &json!(1), &json!(1))
    );
}
