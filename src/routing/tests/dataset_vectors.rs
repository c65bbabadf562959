//! The vectors of training.md 15.1 and 15.2 that rows, learning and splits have to meet, and routing.md 23.7 and 23.9
//! through rows and telemetry lines.

use std::collections::HashSet;

use decision::relay_contract;
use jiff::Timestamp;
use routing::bounded::Ratio;
use routing::dataset::{
    DatasetView, Edit, InForce, LearnBody, LearnRefusal, Row, RowStanding, SelectionRecipe,
    SessionSplits, Split, StaleReason, export_rows, import_telemetry, learn, read_file,
    read_telemetry, replay_size, request_hash, split_by_hash,
};
use routing::dataset::{FinishedTask, LearnAnswer, Outcome, TrainingAnswer, first_use};
use routing::decide::{Client, Explain, Judgement, Moment, NothingKnown, decide, prepare};
use routing::history::{Counts, Evidence as Sums};
use routing::keywords::Keywords;
use routing::memory::{MemoryIndex, Thresholds};
use routing::policy::Policy;
use routing::reason::Fallback;
use routing::record::Decision;
use routing::request::RouteRequest;
use routing::rules::{self, RuleId};
use serde::Deserialize;
use serde_json::{Map, Value, json};

fn in_force() -> InForce {
    InForce::of(relay_contract())
}

fn fired(request: &str) -> Vec<RuleId> {
    const NONE: [&str; 0] = [];
    rules::fired(&Keywords::builtin().scan(request), &NONE, &NONE)
}

fn now() -> Timestamp {
    "2026-11-30T10:41:37Z".parse().expect("a time")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnVectors {
    #[serde(rename = "source")]
    _source: String,
    labels: Map<String, Value>,
    refused: Vec<LearnRow>,
    taken: Vec<LearnRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnRow {
    name: String,
    #[serde(default)]
    labels: Map<String, Value>,
    without: Option<String>,
    #[serde(default)]
    exercise: Map<String, Value>,
    evidence: Option<Value>,
    #[serde(default)]
    body: Map<String, Value>,
    #[serde(default)]
    errors: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
    saved: Option<String>,
}

fn learn_vectors() -> LearnVectors {
    serde_json::from_str(include_str!("vectors/learn.json")).expect("vectors of this form")
}

/// `@600` stands for a text of 600 units.
fn spelled_out(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(length) = text
                .strip_prefix('@')
                .and_then(|length| length.parse().ok())
            {
                *text = "é".repeat(length);
            }
        }
        Value::Object(members) => members.values_mut().for_each(spelled_out),
        Value::Array(items) => items.iter_mut().for_each(spelled_out),
        _ => {}
    }
}

fn body(base: &Map<String, Value>, row: &LearnRow) -> LearnBody {
    let mut labels = base.clone();
    labels.extend(row.labels.clone());
    if let Some(id) = &row.without {
        labels.remove(id);
    }
    let mut exercise = json!({ "request": "Fix the date parser", "labels": labels });
    let members = exercise.as_object_mut().expect("an object");
    members.extend(row.exercise.clone());
    if let Some(evidence) = &row.evidence {
        members.insert("evidence".to_owned(), evidence.clone());
    }
    let mut body = json!({
        "session": "s-1", "shape": in_force().shape.to_string(), "exercises": [exercise],
    });
    body.as_object_mut()
        .expect("an object")
        .extend(row.body.clone());
    spelled_out(&mut body);
    serde_json::from_value(body).expect("a body")
}

fn try_learn(rows: &[Row], body: &LearnBody) -> Result<Edit, LearnRefusal> {
    let view = DatasetView {
        rows,
        highest_session_number: 0,
    };
    learn(&view, body, now(), &in_force(), fired)
}

#[test]
fn refuses_whole_bodies_and_names_each_problem() {
    let vectors = learn_vectors();
    for row in &vectors.refused {
        match try_learn(&[], &body(&vectors.labels, row)) {
            Err(LearnRefusal::Invalid(errors)) => {
                let paths: Vec<_> = errors.iter().map(|error| error.path.as_str()).collect();
                assert_eq!(paths, row.errors, "{}", row.name);
                assert!(
                    errors
                        .iter()
                        .all(|error| !error.message.contains("hunter2"))
                );
            }
            other => panic!("{}: {other:?}", row.name),
        }
    }
}

#[test]
fn takes_what_is_right_and_says_what_is_odd() {
    let vectors = learn_vectors();
    for row in &vectors.taken {
        let edit = try_learn(&[], &body(&vectors.labels, row)).expect(&row.name);
        let paths: Vec<_> = edit
            .warnings
            .iter()
            .map(|found| found.path.as_str())
            .collect();
        assert_eq!(paths, row.warnings, "{}", row.name);
        if let Some(saved) = &row.saved {
            assert_eq!(edit.puts[0].request(), saved, "{}", row.name);
        }
    }
}

#[test]
fn one_valid_exercise_becomes_a_session_row() {
    let vectors = learn_vectors();
    let row = LearnRow {
        name: String::new(),
        labels: Map::new(),
        without: None,
        exercise: json!({ "lesson": "  Months count from 1. \n", "note": " " })
            .as_object()
            .cloned()
            .unwrap_or_default(),
        evidence: Some(
            json!({ "files": ["src/date.ts"], "tests_passed": true, "outcome": "completed" }),
        ),
        body: Map::new(),
        errors: Vec::new(),
        warnings: Vec::new(),
        saved: None,
    };
    let edit = try_learn(&[], &body(&vectors.labels, &row)).expect("valid");
    let InForce { shape, contract } = in_force();
    let labels = r#"{"task_type":"bug_fix","complexity":1,"scope":"single_file","risk":0,"ambiguity":0,"reasoning_requirement":1,"capability_tier":"fast","reasoning_effort":"low","agent":"software-engineer","validation_level":"unit_test","requires_write":true,"requires_shell":false,"requires_tests":true,"requires_web":false,"requires_browser":false,"requires_database":false,"requires_git":false,"security_sensitive":false}"#;
    assert_eq!(
        edit.puts[0].line(),
        format!(
            r#"{{"id":"s00001","state":{{"request":"Fix the date parser"}},"expected":{labels},"source":"session","split":"train","session":"s-1","label_source":"agent","lesson":"Months count from 1.","created":"2026-11-30T10:41:37.000Z","shape":"{shape}","contract":"{contract}","evidence":{{"files":["src/date.ts"],"tests_passed":true,"outcome":"completed"}}}}"#
        )
    );
    assert_eq!(
        (edit.added, edit.updated, edit.ids),
        (1, 0, vec!["s00001".to_owned()])
    );
    assert_eq!(edit.highest_session_number, 1);
}

fn saved(rows: &[Row], tasks: &[(&str, &str)]) -> Edit {
    let vectors = learn_vectors();
    let exercises: Vec<Value> = tasks
        .iter()
        .map(|(request, tier)| {
            let mut labels = vectors.labels.clone();
            labels.insert("capability_tier".to_owned(), (*tier).into());
            labels.insert("security_sensitive".to_owned(), true.into());
            json!({ "request": request, "labels": labels })
        })
        .collect();
    let body =
        json!({ "session": "s-1", "shape": in_force().shape.to_string(), "exercises": exercises });
    try_learn(rows, &serde_json::from_value(body).expect("a body")).expect("valid")
}

#[test]
fn the_same_task_is_replaced_and_keeps_its_id() {
    let first = saved(
        &[],
        &[
            ("Fix the date parser", "fast"),
            ("Add a refund form", "strong"),
        ],
    );
    assert_eq!(first.ids, ["s00001", "s00002"]);
    let rows = first.applied(&[]);
    let second = saved(
        &rows,
        &[
            ("  fix THE   date parser ", "balanced"),
            ("Write release notes", "fast"),
        ],
    );
    assert_eq!((second.added, second.updated), (1, 1));
    let change = &second.changes[0];
    assert_eq!(
        (change.id.as_str(), change.from.as_str(), change.to.as_str()),
        ("s00001", "fast", "balanced")
    );
    let after: Vec<_> = second
        .applied(&rows)
        .iter()
        .map(|row| {
            (
                row.id().to_owned(),
                row.labels().expect("labels").capability_tier.to_string(),
            )
        })
        .collect();
    let expected = [
        ("s00001", "balanced"),
        ("s00002", "strong"),
        ("s00003", "fast"),
    ];
    assert_eq!(
        after,
        expected.map(|(id, tier)| (id.to_owned(), tier.to_owned()))
    );
}

#[test]
fn a_row_of_other_questions_is_kept_and_stale() {
    let row = saved(&[], &[("Fix the date parser", "fast")])
        .puts
        .remove(0);
    let unstamped = row
        .line()
        .split(r#","shape""#)
        .next()
        .expect("a part")
        .to_owned()
        + "}";
    let with_19 = unstamped.replace(
        r#""security_sensitive":true"#,
        r#""security_sensitive":true,"urgency":2"#,
    );
    let of_20_agents = unstamped.replace("software-engineer", "game-engineer");
    let of_other_shape = row.line().replace(
        &in_force().shape.to_string(),
        &format!("sha256:{}", "0".repeat(64)),
    );
    let file = read_file(&format!(
        "{unstamped}\n{with_19}\n{of_20_agents}\n{of_other_shape}\n"
    ));
    // One id four times: only the first line is a row of a file, so each is read by itself.
    assert_eq!((file.rows.len(), file.rejected.len()), (1, 3));
    let standing = |line: &str| Row::read(line).expect("a row").standing(&in_force());
    assert!(matches!(standing(&unstamped), RowStanding::InForce(_)));
    assert!(matches!(
        standing(&with_19),
        RowStanding::Stale(StaleReason::Labels(_))
    ));
    assert!(matches!(
        standing(&of_20_agents),
        RowStanding::Stale(StaleReason::Labels(_))
    ));
    assert!(matches!(
        standing(&of_other_shape),
        RowStanding::Stale(StaleReason::OtherShape { .. })
    ));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SplitVectors {
    #[serde(rename = "source")]
    _source: String,
    splits: Vec<SplitRow>,
    replay: Vec<ReplayRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SplitRow {
    request: String,
    h: u8,
    pool: Split,
    session: Option<Split>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayRow {
    pool: usize,
    focus: usize,
    size: usize,
}

fn split_vectors() -> SplitVectors {
    serde_json::from_str(include_str!("vectors/split.json")).expect("vectors of this form")
}

/// Twenty session rows that are like nothing in the vectors.
fn twenty_sessions() -> Vec<Row> {
    let names: Vec<String> = (0..20)
        .map(|at| format!("zulu{at} yankee{at} xray{at}"))
        .collect();
    let tasks: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "fast")).collect();
    saved(&[], &tasks).puts
}

#[test]
fn splits_rows_by_their_text() {
    let sessions = twenty_sessions();
    assert!(
        sessions.iter().all(|row| row.split() == Some(Split::Train)),
        "fewer than 20 before each"
    );
    for SplitRow {
        request,
        h,
        pool,
        session,
    } in split_vectors().splits
    {
        assert_eq!(request_hash(&request), h, "{request:?}");
        assert_eq!(split_by_hash(h), pool, "{request}");
        if let Some(session) = session {
            assert_eq!(
                SessionSplits::of(&sessions).assign(&request),
                session,
                "{request}"
            );
            assert_eq!(
                SessionSplits::of(&sessions[1..]).assign(&request),
                Split::Train,
                "the 20th"
            );
        }
    }
}

#[test]
fn a_near_duplicate_follows_its_twin() {
    // Similarity 0.870407 (routing.md 23.7) and h = 50 or more: by itself it would be trained on.
    let twin = "Corrija o texto do botão Salvar na tela de pedidos";
    let near = "Corrija o texto do botão Salvar na tela de pedidos, está cortado";
    assert!(request_hash(near) >= 20, "{}", request_hash(near));
    let mut sessions = twenty_sessions();
    sessions.push(
        saved(&[], &[(twin, "fast")])
            .puts
            .remove(0)
            .with_split(Split::Test)
            .with_id("s00021"),
    );
    assert_eq!(SessionSplits::of(&sessions).assign(near), Split::Test);
    let body = saved(&sessions, &[(near, "fast")]);
    assert_eq!(
        (body.puts[0].id(), body.puts[0].split()),
        ("s00022", Some(Split::Test))
    );
}

#[test]
fn sizes_the_replay() {
    for ReplayRow { pool, focus, size } in split_vectors().replay {
        assert_eq!(
            replay_size(pool, focus, &SelectionRecipe::default()),
            size,
            "{pool}, {focus}"
        );
    }
}

#[test]
fn learned_rows_answer_as_the_memory_vectors_say() {
    // The two-language corpus of routing.md 23.7: T1, T2 and T5 learned, the others pool rows.
    let corpus = [
        "Fix the date parser",
        "Add a refund form",
        "Fix the date format",
        "Write release notes",
        "Corrija o texto do botão Salvar na tela de pedidos",
        "Corrija o texto do rodapé",
    ];
    let learned = saved(
        &[],
        &[
            (corpus[0], "fast"),
            (corpus[1], "strong"),
            (corpus[4], "balanced"),
        ],
    )
    .puts;
    let pool = [corpus[2], corpus[3], corpus[5]];
    let requests = learned.iter().map(Row::request).chain(pool);
    let tasks = learned
        .iter()
        .filter_map(|row| row.learned(&in_force()))
        .collect();
    let index = MemoryIndex::build(requests, tasks);
    let rows: &[(&str, Option<(&str, f64)>)] = &[
        ("Fix date parser", Some(("s00001", 1.0))),
        ("Fix the date", Some(("s00001", 0.757_320))),
        ("Add a form", Some(("s00002", 0.816_497))),
        ("refund", None),
        (
            "Corrija o texto do botão Salvar na tela de pedidos, está cortado",
            Some(("s00003", 0.870_407)),
        ),
        ("corrija o texto do botão Cancelar", None),
    ];
    for (text, expected) in rows {
        let recall = index.recall(text, Thresholds::default());
        let route = recall
            .route
            .map(|found| (found.task.id.as_str(), found.similarity));
        match (route, expected) {
            (None, None) => {}
            (Some((id, similarity)), Some((task, expected))) => {
                assert_eq!(id, *task, "{text}");
                assert!((similarity - expected).abs() < 5e-7, "{text}: {similarity}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

fn telemetry_line(task: &str, outcome: &str, success: bool, tests: &str) -> String {
    format!(
        r#"{{"task_id":"{task}","timestamp":"2026-11-30T09:00:00.000Z","request":"Fix the date parser","classification":{{"source":"heuristic","type":"bug_fix","complexity":0.5,"risk":0.33,"ambiguity":0,"reasoning":0.5,"scope":"module","agent":"software-engineer","validation":"unit_test","confidence":0.5,"recommended_tier":"balanced","recommended_effort":"medium"}},"policy":{{"profile":"balanced","required_tier":"balanced","rules":[]}},"selected":{{"provider":"anthropic","model":"claude-sonnet-5-5","tier":"balanced","thinking_level":"medium"}},"result":{{"success":{success},"outcome":"{outcome}","attempts":1,"escalations":0,"tests_passed":{tests},"tool_failures":0}},"usage":{{"tokens":1200,"cost":0.012,"duration_ms":900,"models":["anthropic/claude-sonnet-5-5"]}},"extra":[1]}}"#
    )
}

#[test]
fn telemetry_becomes_history_once() {
    let file = |tests| {
        [
            telemetry_line("t1", "completed", true, tests),
            telemetry_line("t2", "error", false, "null"),
            "{\"task_id\": \"t3\", broken".to_owned(),
            telemetry_line("t4", "aborted", false, "null"),
        ]
        .join("\n")
    };
    for (tests, successes) in [("true", 1.0), ("null", 0.5)] {
        let import = import_telemetry(&file(tests), &HashSet::new());
        let classes: HashSet<String> = import
            .observed
            .iter()
            .map(|seen| seen.class.to_string())
            .collect();
        assert_eq!(classes, HashSet::from(["bug_fix:2".to_owned()]));
        let observations: Vec<_> = import
            .observed
            .iter()
            .map(|seen| seen.observation)
            .collect();
        let at = "2026-11-30T09:00:00Z".parse().expect("a time");
        let sums = Sums::of(&observations, at);
        assert_eq!(sums, Sums::new(successes, 0.5).expect("sums"));
        assert_eq!(import.taken, ["t1", "t2", "t4"]);
        assert_eq!((import.rejected.len(), import.rejected[0].line), (1, 3));
        assert_eq!(import.rejected[0].text, "{\"task_id\": \"t3\", broken");
        let again = import_telemetry(&file(tests), &import.taken.into_iter().collect());
        assert_eq!(
            (again.observed.len(), again.taken.len(), again.known),
            (0, 0, 3)
        );
    }
}

#[test]
fn exports_one_row_for_the_one_success() {
    let text = [
        telemetry_line("t1", "completed", true, "null"),
        telemetry_line("t2", "error", false, "null"),
        telemetry_line("t4", "aborted", false, "null"),
    ]
    .join("\n");
    let file = read_telemetry(&text);
    assert_eq!(
        export_rows(&file.lines),
        "{\"state\":{\"request\":\"Fix the date parser\"},\"expected\":{\"capability_tier\":\"balanced\"},\"source\":\"harness\"}\n"
    );
    assert_eq!(
        file.lines[0].line(),
        text.lines().next().expect("a line"),
        "unknown fields stay"
    );
}

/// The decision on a request that rules assess, as the store keeps it.
fn decided(request: &str) -> Decision {
    let today = "2026-11-30".parse().expect("a date");
    let policy = Policy::builtin("sha256:0123456789abcdef", today).expect("a policy");
    let request = RouteRequest::new(request);
    let prepared = prepare(&request, &policy, Client::Own, None, now()).expect("a request");
    let moment = Moment::new(now(), [7; 28], &|| 0.0, Explain::No);
    let judgement = Judgement::Rules {
        fallback: Some(Fallback::NoModel),
    };
    decide(&prepared, judgement, &NothingKnown, moment)
        .expect("a model")
        .decision
}

#[test]
fn a_finished_task_is_written_and_read_back() {
    let text = "Fix the race condition in workers, password=hunter2";
    let decision = Decision {
        request: Some(text.to_owned()),
        ..decided(text)
    };
    let finished = FinishedTask {
        at: now(),
        outcome: Outcome::Completed,
        tests_passed: Some(true),
        attempts: 2,
        escalations: 1,
        tool_failures: 3,
        tokens: 1200,
        cost_usd: Some(0.012_345_678),
        duration_ms: 900,
        models: vec![decision.selected.model.clone()],
    };
    let line = finished.telemetry_line(&decision);
    let value: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(
        value["request"],
        "Fix the race condition in workers, password=[redacted]"
    );
    assert_eq!(value["classification"]["source"], "heuristic");
    assert_eq!(value["usage"]["cost"], 0.012_346);
    assert_eq!(value["selected"]["provider"], "anthropic");
    assert_eq!(value["selected"]["model"], "claude-opus-5-5");
    assert_eq!(
        value["result"],
        json!({"success": true, "outcome": "completed", "attempts": 2, "escalations": 1, "tests_passed": true, "tool_failures": 3})
    );
    let keys = [
        "\"task_id\"",
        "\"timestamp\"",
        "\"request\"",
        "\"classification\"",
        "\"policy\"",
        "\"selected\"",
        "\"result\"",
        "\"usage\"",
    ];
    let places: Vec<_> = keys
        .iter()
        .map(|key| line.find(key).expect("is there"))
        .collect();
    assert!(places.is_sorted(), "{line}");
    let file = read_telemetry(&line);
    assert_eq!(file.rejected, []);
    let read = &file.lines[0];
    assert_eq!(read.task_id, decision.task_id.to_string());
    assert_eq!(read.class.to_string(), "bug_fix:3");
    assert_eq!(read.model, decision.selected.model);
    assert_eq!(
        read.observation().map(|seen| (seen.counts, seen.weight)),
        Some((Counts::Success, Ratio::ONE))
    );
    let failed = FinishedTask {
        tests_passed: Some(false),
        cost_usd: None,
        ..finished
    };
    let line = failed.telemetry_line(&decision);
    assert!(
        line.contains("\"success\":false") && line.contains("\"cost\":null"),
        "{line}"
    );
}

#[test]
fn damaged_telemetry_is_named_by_its_first_wrong_field() {
    let good = telemetry_line("t1", "completed", true, "true");
    let rows = [
        (
            good.replace("\"task_id\":\"t1\",", ""),
            "task_id: is missing",
        ),
        (
            good.replace("2026-11-30T09:00:00.000Z", "yesterday"),
            "timestamp: expected an RFC 3339 time",
        ),
        (
            good.replace("\"complexity\":0.5", "\"complexity\":\"high\""),
            "classification.complexity: expected a number",
        ),
        (
            good.replace("\"type\":\"bug_fix\"", "\"type\":\"chore\""),
            "classification.type: unknown task type `chore`",
        ),
        (
            good.replace("\"tier\":\"balanced\"", "\"tier\":\"huge\""),
            "selected.tier: unknown tier `huge`",
        ),
        (
            good.replace("\"outcome\":\"completed\"", "\"outcome\":\"won\""),
            "result.outcome: unknown word `won`",
        ),
        (
            good.replace("\"success\":true", "\"success\":1"),
            "result.success: expected true or false",
        ),
    ];
    for (line, reason) in rows {
        assert_ne!(line, good, "{reason}");
        let file = read_telemetry(&line);
        assert!(file.lines.is_empty(), "{reason}");
        assert!(
            file.rejected[0].reason.starts_with(reason),
            "{}",
            file.rejected[0].reason
        );
    }
    let millis = good.replace("\"2026-11-30T09:00:00.000Z\"", "1796029200000");
    assert_eq!(
        read_telemetry(&millis).lines[0].at,
        read_telemetry(&good).lines[0].at
    );
}

#[test]
fn twenty_saves_one_after_the_other_give_twenty_ids() {
    let mut rows = Vec::new();
    for at in 0..20 {
        let name = format!("zulu{at}");
        rows = saved(&rows, &[(name.as_str(), "fast")]).applied(&rows);
    }
    let ids: Vec<&str> = rows.iter().map(Row::id).collect();
    let expected: Vec<String> = (1..=20).map(|at| format!("s{at:05}")).collect();
    assert_eq!(ids, expected);
}

#[test]
fn an_id_is_never_given_twice() {
    let view = DatasetView {
        rows: &[],
        highest_session_number: 41,
    };
    let vectors = learn_vectors();
    let plain = body(&vectors.labels, &vectors.taken[0]);
    let edit = learn(&view, &plain, now(), &in_force(), fired).expect("valid");
    assert_eq!(
        (edit.ids, edit.highest_session_number),
        (vec!["s00042".to_owned()], 42)
    );
}

#[test]
fn other_questions_are_an_error_of_their_own() {
    let vectors = learn_vectors();
    let mut other = body(&vectors.labels, &vectors.refused[0]);
    other.shape = format!("sha256:{}", "0".repeat(64));
    match try_learn(&[], &other) {
        Err(LearnRefusal::ContractMismatch { expected, got }) => {
            assert_eq!(expected, in_force().shape);
            assert_eq!(got.to_string(), other.shape);
        }
        result => panic!("{result:?}"),
    }
}

#[test]
fn bodies_have_between_1_and_200_exercises() {
    let vectors = learn_vectors();
    let mut many = body(&vectors.labels, &vectors.taken[0]);
    for (count, allowed) in [(0, false), (1, true), (200, true), (201, false)] {
        many.exercises = vec![
            many.exercises.first().cloned().unwrap_or_else(|| body(
                &vectors.labels,
                &vectors.taken[0]
            )
            .exercises
            .remove(0));
            count
        ];
        let result = try_learn(&[], &many);
        match result {
            Ok(edit) => assert!(allowed && edit.added == 1 && edit.ids.len() == count),
            Err(LearnRefusal::Invalid(errors)) => {
                assert!(!allowed && errors[0].path == "exercises")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_first_use_is_seeded_once() {
    let none = DatasetView {
        rows: &[],
        highest_session_number: 0,
    };
    let edit = first_use(&none, &in_force());
    assert_eq!((edit.added, edit.puts[0].id()), (1100, "r00001"));
    let seeded = DatasetView {
        rows: &edit.puts,
        highest_session_number: 0,
    };
    assert!(first_use(&seeded, &in_force()).is_empty());
    let forgotten = DatasetView {
        rows: &[],
        highest_session_number: 3,
    };
    assert!(first_use(&forgotten, &in_force()).is_empty());
}

#[test]
fn the_answer_counts_learned_tasks_and_stale_ones() {
    let rows = saved(
        &[],
        &[("Fix the date parser", "fast"), ("Add a list", "fast")],
    )
    .puts;
    let other = InForce {
        shape: decision::contract::Digest::of(b"x"),
        ..in_force()
    };
    let rows = vec![rows[0].stamped(&other), rows[1].clone()];
    let edit = saved(&rows, &[("Write release notes", "fast")]);
    let training = TrainingAnswer {
        run: None,
        reason: Some("not asked for".to_owned()),
    };
    let answer = LearnAnswer::of(&edit, &rows, &in_force(), training);
    assert_eq!(
        serde_json::to_string(&answer).expect("writes"),
        r#"{"added":1,"updated":0,"total":3,"stale":1,"ids":["s00003"],"training":{"run":null,"reason":"not asked for"}}"#
    );
}
