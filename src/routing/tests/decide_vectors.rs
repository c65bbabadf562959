//! From answers and texts to decisions: routing.md 23.1 (policy columns) and 23.2, and what must hold for every record.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

use decision::json::{self, Object, Value as Json};
use decision::{Answers, relay_contract};
use jiff::Timestamp;
use routing::assessment::Assessment;
use routing::decide::{Client, Decided, Explain, Judgement, Moment, NothingKnown, decide, prepare};
use routing::from_answers::from_answers;
use routing::policy::{Policy, PolicySource};
use routing::record::{ModelProvenance, Truncated};
use routing::request::RouteRequest;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn policy() -> Policy {
    let today = "2026-11-30".parse().unwrap();
    Policy::compile(
        "test",
        "sha256:0123456789abcdef",
        PolicySource::default(),
        today,
    )
    .unwrap()
}

fn moment() -> Moment<'static> {
    Moment::new(now(), [7; 28], &|| 0.0, Explain::Yes)
}

fn run(policy: &Policy, request: &RouteRequest, judgement: Judgement<'_>) -> Decided {
    let prepared = prepare(request, policy, Client::Own, None, now()).unwrap();
    decide(&prepared, judgement, &NothingKnown, moment()).unwrap()
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The answers of a decision model for a case of 23.2, as the JSON of wire.md 6.
fn reply(base: &Value, case: &Value) -> Object {
    let confidence = case["confidence"].as_f64().unwrap_or(0.9);
    let mut answers = serde_json::Map::new();
    for question in relay_contract().questions() {
        let id = question.id.as_str();
        if case["remove"] == id {
            continue;
        }
        let value = case["change"].get(id).unwrap_or(&base[id]);
        let answer = match (value, question.kind().as_str()) {
            (Value::String(_), _) if case["as_score"] == id => {
                json!({"type": "score", "score": 1.0})
            }
            (Value::String(choice), _) => {
                let probability = if case["not_a_number"] == id {
                    json!("NaN")
                } else {
                    json!(confidence)
                };
                json!({"type": "choice", "choice": choice, "probabilities": {choice.as_str(): probability}, "confidence": 0.8})
            }
            (number, "score") => json!({"type": "score", "score": number, "confidence": 0.9}),
            (number, _) => json!({"type": "noul", "noul": number, "confidence": 0.9}),
        };
        answers.insert(id.to_owned(), answer);
    }
    let text = Value::Object(answers).to_string().replace("\"NaN\"", "NaN");
    match json::read(text.as_bytes()).unwrap() {
        Json::Object(object) => object,
        other => panic!("{other:?}"),
    }
}

fn request(base: &Value, case: &Value) -> RouteRequest {
    let mut text = case["change"]
        .get("request")
        .unwrap_or(&base["request"])
        .as_str()
        .unwrap()
        .to_owned();
    if let (Some(units), Some(last)) = (case["pad_request_to"].as_u64(), case["last_line"].as_str())
    {
        while text.len() + last.len() + 1 < units as usize {
            text.push_str(" and so on");
        }
        text = format!("{text}\n{last}");
    }
    let mut request = RouteRequest::new(text);
    if let Some(constraints) = case.get("constraints") {
        request.constraints = serde_json::from_value(constraints.clone()).unwrap();
    }
    request
}

#[test]
fn answers_become_policy_as_the_vectors_say() {
    let vectors = read(include_str!("vectors/answers_to_policy.json"));
    let policy = policy();
    for case in vectors["cases"].as_array().unwrap() {
        let name = case["case"].as_str().unwrap();
        let base = &vectors["base"];
        let answers = Answers::from_object(relay_contract().questions(), &reply(base, case));
        if let Some(question) = case["invalid"].as_str() {
            let error = answers.expect_err(name);
            assert_eq!(error.question_id(), Some(question), "{name}");
            continue;
        }
        let assessment =
            from_answers(&answers.unwrap_or_else(|error| panic!("{name}: {error}"))).unwrap();
        check_assessment(name, &case["assessment"], &assessment);
        let judgement = Judgement::Model {
            assessment,
            provenance: ModelProvenance {
                version: "v1".to_owned(),
                checkpoint: "sha256:00".to_owned(),
                server: "main".to_owned(),
            },
            truncated: Truncated {
                request: case["truncated"] == true,
                ..Truncated::default()
            },
        };
        let decided = run(&policy, &request(base, case), judgement);
        check_policy(
            name,
            &case["policy"],
            &serde_json::to_value(&decided.decision).unwrap(),
        );
        if let Some(selected) = case["selected"].as_str() {
            assert_eq!(
                decided.decision.selected.model.to_string(),
                selected,
                "{name}"
            );
            assert!(decided.decision.selected.explicit, "{name}");
        }
        if let Some(warnings) = case.get("warnings") {
            let codes: Vec<_> = decided
                .decision
                .warnings
                .iter()
                .map(|warning| warning.code.as_str())
                .collect();
            assert_eq!(json!(codes), *warnings, "{name}");
        }
    }
}

fn check_assessment(name: &str, expected: &Value, got: &Assessment) {
    let Some(expected) = expected.as_object() else {
        return;
    };
    for (field, value) in expected {
        let number = match field.as_str() {
            "complexity" => got.task.complexity,
            "risk" => got.task.risk,
            "confidence" => got.confidence,
            "requires_web" => f64::from(u8::from(got.tools.requires_web)),
            other => panic!("{name}: no check for {other}"),
        };
        let wanted = value
            .as_f64()
            .unwrap_or_else(|| f64::from(u8::from(value.as_bool().unwrap())));
        assert!(
            (number - wanted).abs() < 1e-9,
            "{name}: {field} is {number}, expected {wanted}"
        );
    }
}

fn check_policy(name: &str, expected: &Value, decision: &Value) {
    let policy = &decision["policy"];
    let Some(expected) = expected.as_object() else {
        return;
    };
    for (field, value) in expected {
        let got = match field.as_str() {
            "validation" => &policy["validation"]["level"],
            "validation_required" => &policy["validation"]["required"],
            other => &policy[other],
        };
        assert_eq!(got, value, "{name}: {field}");
    }
}

#[test]
fn texts_become_policy_as_the_vectors_say() {
    let vectors = read(include_str!("vectors/rules_and_policy.json"));
    let policy = policy();
    let rows = vectors["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 39);
    for row in rows {
        let text = row["request"].as_str().unwrap();
        let decided = run(
            &policy,
            &RouteRequest::new(text),
            Judgement::Rules { fallback: None },
        );
        let decision = serde_json::to_value(&decided.decision).unwrap();
        check_policy(text, &row["policy"], &decision);
    }
}

/// A record with everything that must differ from run to run taken out.
fn stable(decision: &routing::record::Decision) -> Value {
    let mut tree = serde_json::to_value(decision).unwrap();
    for key in ["id", "task_id", "created"] {
        tree[key] = Value::Null;
    }
    tree["provenance"]["timings_ms"] = Value::Null;
    tree
}

#[test]
fn a_record_can_be_replayed_and_read_back() {
    let vectors = read(include_str!("vectors/rules_and_policy.json"));
    let policy = policy();
    for row in vectors["rows"].as_array().unwrap() {
        let request = RouteRequest::new(row["request"].as_str().unwrap());
        let first = run(&policy, &request, Judgement::Rules { fallback: None }).decision;
        let text = serde_json::to_string(&first).unwrap();
        let back: routing::record::Decision = serde_json::from_str(&text).unwrap();
        assert_eq!(back, first, "{}", request.request);
        let prepared = prepare(&request, &policy, Client::Own, None, now()).unwrap();
        let other = Moment::new(now(), [200; 28], &|| 3.0, Explain::No);
        let again = decide(
            &prepared,
            Judgement::Rules { fallback: None },
            &NothingKnown,
            other,
        )
        .unwrap()
        .decision;
        assert_ne!(again.id, first.id);
        assert_eq!(stable(&again), stable(&first), "{}", request.request);
    }
}

#[test]
fn labels_skip_the_assessment_but_not_the_rules() {
    let policy = policy();
    let labels = json!({
        "task_type": "bug_fix", "complexity": 1, "scope": "single_file", "risk": 0, "ambiguity": 0,
        "reasoning_requirement": 1, "capability_tier": "fast", "reasoning_effort": "low",
        "agent": "software-engineer", "validation_level": "unit_test", "requires_write": true,
        "requires_shell": false, "requires_tests": true, "requires_web": false, "requires_browser": false,
        "requires_database": false, "requires_git": false, "security_sensitive": false
    });
    let request = RouteRequest {
        labels: Some(labels.clone()),
        ..RouteRequest::new("Fix the login token expiry")
    };
    let decision = run(&policy, &request, Judgement::Rules { fallback: None }).decision;
    assert_eq!(decision.assessment.source.as_str(), "memory");
    assert_eq!(decision.assessment.confidence, 1.0);
    assert_eq!(decision.provenance.memory, None);
    assert_eq!(decision.policy.rules, ["authentication"]);
    assert_eq!(decision.selected.tier.as_str(), "strong");

    let mut wrong = labels;
    wrong["complexity"] = json!(9);
    wrong["agent"] = json!("wizard");
    let request = RouteRequest {
        labels: Some(wrong),
        ..RouteRequest::new("Fix it")
    };
    let errors = prepare(&request, &policy, Client::Own, None, now()).unwrap_err();
    let paths: Vec<_> = errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(paths, ["labels.complexity", "labels.agent"]);
}

/// A decision that came `age` before now, in the conversation `c`.
fn before(policy: &Policy, text: &str, age: jiff::SignedDuration) -> routing::record::Decision {
    let request = RouteRequest {
        conversation_id: Some("c".to_owned()),
        ..RouteRequest::new(text)
    };
    let mut decision = run(policy, &request, Judgement::Rules { fallback: None }).decision;
    decision.created = now() - age;
    decision.request = Some(text.to_owned());
    decision
}

#[test]
fn a_conversation_keeps_the_context_of_its_task() {
    let policy = policy();
    let minutes = jiff::SignedDuration::from_mins;
    let strong = before(&policy, "Fix the login token expiry", minutes(5));
    let follow = |text: &str, previous: &routing::record::Decision| {
        let request = RouteRequest {
            conversation_id: Some("c".to_owned()),
            ..RouteRequest::new(text)
        };
        let prepared = prepare(&request, &policy, Client::Own, Some(previous), now()).unwrap();
        let asks = prepared.question().is_some();
        let decided = decide(
            &prepared,
            Judgement::Rules { fallback: None },
            &NothingKnown,
            moment(),
        )
        .unwrap();
        (decided, asks)
    };
    for text in ["continue", "sim, pode fazer"] {
        let (decided, asks) = follow(text, &strong);
        let decision = &decided.decision;
        assert_eq!(decision.follow_up.as_str(), "continuation", "{text}");
        assert!(!asks, "{text}: nobody is asked");
        assert_eq!(decision.selected.model, strong.selected.model, "{text}");
        assert_eq!(decision.policy.effort, strong.policy.effort, "{text}");
        assert_eq!(
            (decision.task_id, decision.parent_id),
            (strong.task_id, Some(strong.id)),
            "{text}"
        );
    }
    let (decided, _) = follow("still fails on Safari", &strong);
    assert_eq!(decided.decision.follow_up.as_str(), "correction");
    assert_eq!(decided.decision.policy.min_tier.as_str(), "strong");
    assert_eq!(decided.decision.policy.effort.as_str(), "high");
    assert_eq!(decided.corrects, Some(strong.id));

    let (decided, _) = follow("thanks!", &strong);
    assert_eq!(decided.decision.follow_up.as_str(), "acknowledgement");
    assert_eq!(decided.decision.selected.model, strong.selected.model);
    assert_eq!(decided.decision.selected.effort.as_str(), "minimal");
    assert!(!decided.store);

    let (decided, _) = follow("também no rodapé", &strong);
    assert_eq!(decided.decision.follow_up.as_str(), "amendment");
    assert_eq!(decided.decision.policy.required_tier.as_str(), "strong");
    let (decided, _) = follow(
        "também no rodapé",
        &before(&policy, "Fix the login token expiry", minutes(40)),
    );
    assert_eq!(decided.decision.follow_up.as_str(), "new");
    let (decided, _) = follow(
        "continue",
        &before(&policy, "Fix the login token expiry", minutes(7 * 60)),
    );
    assert_eq!(decided.decision.follow_up.as_str(), "new");

    // Without the earlier text, the higher of both assessments counts.
    let mut hashed = strong.clone();
    hashed.request = None;
    let (decided, _) = follow("também no rodapé", &hashed);
    assert_eq!(decided.decision.follow_up.as_str(), "amendment");
    assert_eq!(decided.decision.policy.required_tier.as_str(), "strong");
    assert!(decided.decision.assessment.security_sensitive);
}

#[test]
fn what_the_user_chose_wins() {
    let policy = policy();
    let with = |constraints: Value| {
        let constraints = serde_json::from_value(constraints).unwrap();
        let request = RouteRequest {
            constraints,
            ..RouteRequest::new("Fix the login token expiry")
        };
        run(&policy, &request, Judgement::Rules { fallback: None }).decision
    };
    let codes = |decision: &routing::record::Decision| {
        decision
            .warnings
            .iter()
            .map(|warning| warning.code.as_str())
            .collect::<Vec<_>>()
    };
    let decision = with(json!({"tier": "fast"}));
    assert_eq!(decision.selected.tier.as_str(), "fast");
    assert_eq!(codes(&decision), ["below_floor"]);
    let decision = with(json!({"effort": "low"}));
    assert_eq!(
        (
            decision.selected.tier.as_str(),
            decision.selected.effort.as_str()
        ),
        ("strong", "low")
    );
    assert_eq!(codes(&decision), ["below_floor"]);
    let decision = with(json!({"model": "acme/unheard-of"}));
    assert_eq!(decision.selected.model.to_string(), "acme/unheard-of");
    assert_eq!(codes(&decision), ["capability_unknown", "below_floor"]);
    let decision = with(json!({"exclude": ["anthropic/claude-opus-5-5"]}));
    assert_eq!(
        decision.selected.model.to_string(),
        "openai-codex/gpt-6-sol"
    );
    assert!(
        decision
            .excluded
            .iter()
            .any(|excluded| excluded.reason.as_str() == "constraint")
    );
}

#[test]
fn a_shared_router_is_only_narrowed_by_its_clients() {
    let policy = policy();
    let settings = json!({
        "min_confidence": 0.1, "telemetry": false, "tiers": {"fast": ["anthropic/claude-haiku-4-5", "mine/own"]}
    });
    let request = RouteRequest {
        settings: serde_json::from_value(settings).unwrap(),
        ..RouteRequest::new("Kérlek javítsd ki a mentéskor fellépő összeomlást")
    };
    let shared = prepare(&request, &policy, Client::Shared, None, now()).unwrap();
    let decision = decide(
        &shared,
        Judgement::Rules { fallback: None },
        &NothingKnown,
        moment(),
    )
    .unwrap()
    .decision;
    assert_eq!(
        decision.policy.required_tier.as_str(),
        "balanced",
        "doubt is still 0.5"
    );
    let own = run(&policy, &request, Judgement::Rules { fallback: None }).decision;
    assert_eq!(
        own.policy.required_tier.as_str(),
        "fast",
        "the client's own limit holds on its own router"
    );
    assert_eq!(own.selected.model.to_string(), "anthropic/claude-haiku-4-5");
    let seen: Vec<_> = decision
        .alternatives
        .iter()
        .map(|other| other.model.to_string())
        .collect();
    assert!(!seen.contains(&"mine/own".to_owned()), "{seen:?}");
}

mod during_a_task {
    //! Escalations and provider errors as whole decisions (routing.md 12, 23.8).

    use std::time::Duration;

    use routing::bounded::{Ratio, Score};
    use routing::decide::{
        During, FailureReport, ProviderErrorReport, RunningTask, State, escalate, provider_failed,
    };
    use routing::escalation::{Failure, FailureKind};
    use routing::estimate::Tokens;
    use routing::history::{Evidence, HistoryKey};
    use routing::provider_error::ErrorClass;
    use routing::record::{Decision, DecisionKind};
    use routing::registry::ModelRef;

    use super::*;

    fn failures(kind: FailureKind, count: usize) -> Vec<Failure> {
        vec![
            Failure {
                kind,
                tool: None,
                signature: None
            };
            count
        ]
    }

    fn report(failures: &[Failure]) -> FailureReport<'_> {
        FailureReport {
            failures,
            carried: Score::LEAST,
            at_last_escalation: Score::LEAST,
        }
    }

    /// A provider is away, as after a rate limit.
    struct Away(&'static str);

    impl State for Away {
        fn availability(&self, provider: &str, configured: Ratio) -> Ratio {
            if provider == self.0 {
                Ratio::constant(0.0)
            } else {
                configured
            }
        }

        fn evidence(&self, _: HistoryKey, _: &ModelRef) -> Evidence {
            Evidence::NONE
        }

        fn tokens(&self, _: HistoryKey) -> Option<Tokens> {
            None
        }

        fn last_explored(&self, _: HistoryKey) -> Option<Timestamp> {
            None
        }

        fn stores(&self) -> bool {
            false
        }
    }

    fn started(policy: &Policy, text: &str) -> Decision {
        run(
            policy,
            &RouteRequest::new(text),
            Judgement::Rules { fallback: None },
        )
        .decision
    }

    fn task<'a>(
        policy: &'a Policy,
        decision: &'a Decision,
        request: &'a RouteRequest,
    ) -> RunningTask<'a> {
        RunningTask {
            decision,
            policy,
            client: Client::Own,
            request,
        }
    }

    #[test]
    fn failures_that_add_up_move_the_task_one_tier_up() {
        let policy = policy();
        let first = started(&policy, "Rename the author field in src/app.ts");
        let request = RouteRequest::new("");
        let task = task(&policy, &first, &request);
        let few = failures(FailureKind::LookupMiss, 8);
        let (tally, during) = escalate(task, report(&few), &NothingKnown, moment()).unwrap();
        assert_eq!(tally.score.get(), 2.0);
        assert!(
            matches!(during, During::Stay { exhausted: None }),
            "{during:?}"
        );

        let edits = failures(FailureKind::EditRejected, 3);
        let (_, during) = escalate(task, report(&edits), &NothingKnown, moment()).unwrap();
        let During::Move(next) = during else {
            panic!("{during:?}")
        };
        assert_eq!(first.selected.tier.as_str(), "fast");
        assert_eq!(next.selected.tier.as_str(), "balanced");
        assert_eq!(next.kind, DecisionKind::Escalation);
        assert_eq!(
            (next.task_id, next.parent_id),
            (first.task_id, Some(first.id))
        );
        let last = next.escalations.last().unwrap();
        assert_eq!(
            (last.reason.as_str(), last.from.as_str(), last.to.as_str()),
            ("repeated_failure", "fast", "balanced")
        );
        assert_eq!(next.request_digest, first.request_digest);

        let mut checked = failures(FailureKind::EditRejected, 2);
        checked.extend(failures(FailureKind::CheckFailed, 1));
        let (_, during) = escalate(task, report(&checked), &NothingKnown, moment()).unwrap();
        let During::Move(next) = during else {
            panic!("{during:?}")
        };
        assert_eq!(
            next.escalations.last().unwrap().reason.as_str(),
            "test_failure"
        );
    }

    #[test]
    fn at_the_top_it_thinks_more_and_then_asks_the_user() {
        let policy = policy();
        let mut first = started(&policy, "Fix the race condition in workers");
        first.selected.tier = "frontier".parse().unwrap();
        first.selected.model = "anthropic/claude-fable-5-1".parse().unwrap();
        first.policy.effort = "high".parse().unwrap();
        let request = RouteRequest::new("");
        let three = failures(FailureKind::CheckFailed, 3);
        let (_, during) = escalate(
            task(&policy, &first, &request),
            report(&three),
            &NothingKnown,
            moment(),
        )
        .unwrap();
        let During::Move(next) = during else {
            panic!("{during:?}")
        };
        assert_eq!(next.selected.model, first.selected.model);
        assert_eq!(next.selected.effort.as_str(), "extra_high");
        let six = failures(FailureKind::CheckFailed, 6);
        let again = FailureReport {
            failures: &six,
            carried: Score::LEAST,
            at_last_escalation: Score::new(3.0).unwrap(),
        };
        let (_, during) = escalate(
            task(&policy, &next, &request),
            again,
            &NothingKnown,
            moment(),
        )
        .unwrap();
        let During::Stay {
            exhausted: Some(stuck),
        } = during
        else {
            panic!("{during:?}")
        };
        assert!(stuck.plan.unwrap().contains("- Stuck:"));
    }

    #[test]
    fn a_model_of_the_users_choice_is_not_taken_away() {
        let policy = policy();
        let mut first = started(&policy, "Rename the author field");
        first.selected.explicit = true;
        let request = RouteRequest::new("");
        let three = failures(FailureKind::CheckFailed, 3);
        let (_, during) = escalate(
            task(&policy, &first, &request),
            report(&three),
            &NothingKnown,
            moment(),
        )
        .unwrap();
        assert!(
            matches!(during, During::Stay { exhausted: None }),
            "{during:?}"
        );
    }

    #[test]
    fn a_providers_error_never_replaces_a_model_of_the_users_choice() {
        let policy = policy();
        let mut chosen = started(&policy, "Fix the login token expiry");
        chosen.selected.explicit = true;
        let request = RouteRequest::new("");
        let asked = Some(Duration::from_secs(40));
        for (name, class, in_a_row, expected) in [
            ("a rate limit", ErrorClass::RateLimited, 1, Some(40)),
            ("away once", ErrorClass::Unavailable, 1, Some(40)),
            ("away again", ErrorClass::Unavailable, 2, Some(40)),
            ("a refused key", ErrorClass::Auth, 1, Some(40)),
            ("a full window", ErrorClass::ContextOverflow, 1, None),
            ("another error", ErrorClass::Other, 1, Some(40)),
        ] {
            let error = ProviderErrorReport {
                class,
                in_a_row,
                retry_after: asked,
            };
            let during = provider_failed(
                task(&policy, &chosen, &request),
                error,
                &Away("anthropic"),
                moment(),
            )
            .unwrap();
            match (during, expected) {
                (During::Wait { retry_after }, Some(seconds)) => {
                    assert_eq!(retry_after, Duration::from_secs(seconds), "{name}");
                }
                (During::Compact, None) => {}
                (during, _) => panic!("{name}: {during:?}"),
            }
        }
    }

    #[test]
    fn with_nobody_above_whom_selection_would_take_it_thinks_more_and_is_then_exhausted() {
        let policy = policy();
        let mut first = started(&policy, "Fix the race condition in workers");
        first.selected.model = "anthropic/claude-sonnet-5-5".parse().unwrap();
        first.selected.tier = "balanced".parse().unwrap();
        first.policy.min_tier = "fast".parse().unwrap();
        first.policy.effort = "high".parse().unwrap();
        let models = |with: Value| {
            let mut request: Value = json!({"request": ""});
            let fields = request.as_object_mut().unwrap();
            fields.extend(with.as_object().unwrap().clone());
            serde_json::from_value::<RouteRequest>(request).unwrap()
        };
        let two =
            json!([{"ref": "anthropic/claude-haiku-4-5"}, {"ref": "anthropic/claude-sonnet-5-5"}]);
        let three = json!([
            {"ref": "anthropic/claude-haiku-4-5"},
            {"ref": "anthropic/claude-sonnet-5-5", "context_window": 400_000},
            {"ref": "anthropic/claude-opus-5-5", "context_window": 100_000}
        ]);
        for (name, request) in [
            ("models", models(json!({"models": two}))),
            (
                "excluded",
                models(json!({
                    "models": three,
                    "constraints": {"exclude": ["anthropic/claude-opus-5-5"]}
                })),
            ),
            (
                "a window that is too small",
                models(json!({"models": three, "context": {"tokens": 90_000}})),
            ),
        ] {
            let failures = failures(FailureKind::CheckFailed, 3);
            let failed = |decision: &Decision| {
                let task = task(&policy, decision, &request);
                escalate(task, report(&failures), &NothingKnown, moment())
                    .unwrap()
                    .1
            };
            let During::Move(next) = failed(&first) else {
                panic!("{name}: it could think more");
            };
            assert_eq!(next.selected.model, first.selected.model, "{name}");
            assert_eq!(next.policy.effort.as_str(), "extra_high", "{name}");
            let during = failed(&next);
            let stuck = matches!(during, During::Stay { exhausted: Some(_) });
            assert!(stuck, "{name}: {during:?}");
        }
        let open = models(json!({"models": three, "context": {"tokens": 80_000}}));
        let three = failures(FailureKind::CheckFailed, 3);
        let (_, during) = escalate(
            task(&policy, &first, &open),
            report(&three),
            &NothingKnown,
            moment(),
        )
        .unwrap();
        let During::Move(next) = during else {
            panic!("{during:?}")
        };
        assert_eq!(next.selected.tier.as_str(), "strong", "one is above");
    }

    #[test]
    fn the_limit_of_escalations_is_the_tasks_from_message_to_message() {
        let policy = policy();
        let mut first = started(&policy, "Rename the author field in src/app.ts");
        let raise = |reason: &str| {
            let raise = json!({"reason": reason, "from": "fast", "to": "fast"});
            serde_json::from_value(raise).unwrap()
        };
        let moves = [
            "repeated_failure",
            "provider_unavailable",
            "test_failure",
            "repeated_failure",
            "repeated_failure",
            "test_failure",
        ];
        first.escalations = vec![raise("insufficient_confidence")];
        first.escalations.extend(moves.map(raise));
        let follow = |text: &str| {
            let request = RouteRequest::new(text);
            let prepared = prepare(&request, &policy, Client::Own, Some(&first), now()).unwrap();
            let judgement = Judgement::Rules { fallback: None };
            decide(&prepared, judgement, &NothingKnown, moment())
                .unwrap()
                .decision
        };
        for (text, kind, stays) in [
            ("continue", "continuation", true),
            ("still fails on Safari", "correction", true),
            ("also in the footer", "amendment", false),
            ("Explain how the scheduler picks a worker", "new", false),
        ] {
            let next = follow(text);
            assert_eq!(next.follow_up.as_str(), kind, "{text}");
            let of_the_task: Vec<_> = next
                .escalations
                .iter()
                .map(|raise| raise.reason.as_str())
                .filter(|reason| moves.contains(reason))
                .collect();
            let expected: &[&str] = if stays { &moves } else { &[] };
            assert_eq!(of_the_task, expected, "{text}");
            let at = |wanted: bool| {
                let mut reasons = next.escalations.iter().map(|raise| raise.reason);
                reasons.rposition(|reason| reason.is_of_running_task() == wanted)
            };
            assert!(at(false) < at(true) || !stays, "{text}: the policy's first");
            let request = RouteRequest::new("");
            let three = failures(FailureKind::EditRejected, 3);
            let task = task(&policy, &next, &request);
            let (_, during) = escalate(task, report(&three), &NothingKnown, moment()).unwrap();
            let stuck = matches!(during, During::Stay { exhausted: Some(_) });
            assert_eq!(stuck, stays, "{text}: {during:?}");
        }
    }

    #[test]
    fn a_rate_limit_moves_to_another_provider_or_waits() {
        let policy = policy();
        let first = started(&policy, "Fix the login token expiry");
        let limited = ProviderErrorReport {
            class: ErrorClass::RateLimited,
            in_a_row: 1,
            retry_after: Some(Duration::from_secs(30)),
        };
        let request = RouteRequest::new("");
        let during = provider_failed(
            task(&policy, &first, &request),
            limited,
            &Away("anthropic"),
            moment(),
        )
        .unwrap();
        let During::Move(next) = during else {
            panic!("{during:?}")
        };
        assert_eq!(next.selected.provider, "openai-codex");
        assert_eq!(next.selected.tier, first.selected.tier);
        assert_eq!(next.policy.effort, first.policy.effort);
        assert_eq!(next.kind, DecisionKind::Provider);
        let last = next.escalations.last().unwrap();
        assert_eq!(
            (last.reason.as_str(), last.from),
            ("provider_unavailable", last.to)
        );

        let only = RouteRequest {
            providers: Some(vec!["anthropic".to_owned()]),
            ..RouteRequest::new("")
        };
        // The frontier model of the same provider would be another model, so only the tier's own is left.
        let only = RouteRequest {
            models: Some(
                serde_json::from_value(json!([{"ref": "anthropic/claude-opus-5-5"}])).unwrap(),
            ),
            ..only
        };
        let during = provider_failed(
            task(&policy, &first, &only),
            limited,
            &Away("anthropic"),
            moment(),
        )
        .unwrap();
        let During::Wait { retry_after } = during else {
            panic!("{during:?}")
        };
        assert_eq!(retry_after, Duration::from_secs(30));
    }

    #[test]
    fn a_refused_key_leaves_the_provider_out_and_a_full_window_asks_for_a_larger_one() {
        let policy = policy();
        let first = started(&policy, "Fix the login token expiry");
        let request = RouteRequest::new("");
        let refused = ProviderErrorReport {
            class: ErrorClass::Auth,
            in_a_row: 1,
            retry_after: None,
        };
        let during = provider_failed(
            task(&policy, &first, &request),
            refused,
            &NothingKnown,
            moment(),
        )
        .unwrap();
        let During::Move(next) = during else {
            panic!("{during:?}")
        };
        assert_ne!(next.selected.provider, "anthropic");

        let windows = json!([
            {"ref": "anthropic/claude-opus-5-5", "context_window": 100_000},
            {"ref": "openai-codex/gpt-6-sol", "context_window": 400_000},
        ]);
        let mut request = RouteRequest {
            models: Some(serde_json::from_value(windows).unwrap()),
            ..RouteRequest::new("")
        };
        request.context.tokens = Some(90_000);
        let full = ProviderErrorReport {
            class: ErrorClass::ContextOverflow,
            in_a_row: 1,
            retry_after: None,
        };
        let during = provider_failed(
            task(&policy, &first, &request),
            full,
            &NothingKnown,
            moment(),
        )
        .unwrap();
        let During::Move(next) = during else {
            panic!("{during:?}")
        };
        assert_eq!(next.selected.model.to_string(), "openai-codex/gpt-6-sol");
        request.context.tokens = Some(390_000);
        let during = provider_failed(
            task(&policy, &first, &request),
            full,
            &NothingKnown,
            moment(),
        )
        .unwrap();
        assert!(matches!(during, During::Compact), "{during:?}");
    }
}

mod floors_stay {
    //! What a task was sensitive for stays while it goes on.

    use routing::record::Decision;

    use super::*;

    fn next(policy: &Policy, previous: &Decision, text: &str) -> Decision {
        let request = RouteRequest {
            conversation_id: Some("c".to_owned()),
            ..RouteRequest::new(text)
        };
        let prepared = prepare(&request, policy, Client::Own, Some(previous), now()).unwrap();
        decide(
            &prepared,
            Judgement::Rules { fallback: None },
            &NothingKnown,
            moment(),
        )
        .unwrap()
        .decision
    }

    fn check(name: &str, decision: &Decision, rule: &str) {
        assert_eq!(decision.policy.rules, [rule], "{name}");
        assert_eq!(decision.policy.min_tier.as_str(), "strong", "{name}");
        assert_eq!(
            decision.policy.validation.level.as_str(),
            "review",
            "{name}"
        );
        assert!(
            decision.policy.required_tier >= decision.policy.min_tier,
            "{name}"
        );
        assert!(
            decision.plan.as_ref().unwrap().contains("- Sensitive:"),
            "{name}"
        );
    }

    #[test]
    fn through_continuations_corrections_and_amendments_with_and_without_the_text() {
        let source = PolicySource {
            rules: vec![routing::policy::AddedRule {
                id: "frob".to_owned(),
                patterns: vec!["frobnicator".to_owned()],
                unless: Vec::new(),
                floor: Some(routing::requirement::Floor::BUILT_IN),
            }],
            request_text: Some(routing::policy::RequestTextPrivacy::Full),
            ..PolicySource::default()
        };
        let today = "2026-11-30".parse().unwrap();
        let full = Policy::compile("full", "sha256:00", source.clone(), today).unwrap();
        let source = PolicySource {
            request_text: None,
            ..source
        };
        let hashed = Policy::compile("hashed", "sha256:00", source, today).unwrap();
        for (policy, kept) in [(&full, "kept"), (&hashed, "not kept")] {
            for (text, rule) in [
                ("Add a refund form", "payment-processing"),
                ("Fix the login token expiry", "authentication"),
                ("Rename the frobnicator label", "frob"),
            ] {
                let first = run(
                    policy,
                    &RouteRequest::new(text),
                    Judgement::Rules { fallback: None },
                )
                .decision;
                check(&format!("{text}, {kept}"), &first, rule);
                let mut last = first;
                for follow in [
                    "yes",
                    "and a tooltip",
                    "still fails on Safari",
                    "also in the footer",
                ] {
                    last = next(policy, &last, follow);
                    assert_ne!(last.follow_up.as_str(), "new", "{follow}");
                    check(&format!("{text}, {kept}, then {follow}"), &last, rule);
                }
            }
        }
    }

    #[test]
    fn a_choice_below_a_floor_is_told_as_long_as_it_runs() {
        let policy = policy();
        let constraints =
            serde_json::from_value(json!({"model": "anthropic/claude-haiku-4-5"})).unwrap();
        let request = RouteRequest {
            constraints,
            ..RouteRequest::new("Fix the login")
        };
        let first = run(&policy, &request, Judgement::Rules { fallback: None }).decision;
        let second = next(&policy, &first, "continue");
        assert_eq!(second.selected.model, first.selected.model);
        assert!(second.policy.required_tier >= second.policy.min_tier);
        let codes: Vec<_> = second
            .warnings
            .iter()
            .map(|warning| warning.code.as_str())
            .collect();
        assert_eq!(codes, ["below_floor"]);
    }

    #[test]
    fn the_chosen_model_is_not_among_the_excluded() {
        let policy = policy();
        let constraints = json!({"model": "anthropic/claude-haiku-4-5", "exclude": ["anthropic/claude-haiku-4-5"]});
        let constraints = serde_json::from_value(constraints).unwrap();
        let request = RouteRequest {
            constraints,
            ..RouteRequest::new("Rename the author field")
        };
        let decision = run(&policy, &request, Judgement::Rules { fallback: None }).decision;
        assert!(
            decision
                .excluded
                .iter()
                .all(|excluded| excluded.model != decision.selected.model)
        );
    }
}
