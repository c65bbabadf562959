use std::time::Duration;

use decision::Contract;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::probe::questions::RecordedAnswer;

/// One question of each kind.
fn set() -> QuestionSet {
    // As text: the order of questions counts.
    let file = r#"{"decisions": {
        "topic": {"type": "choice", "instructions": "About?", "criteria": {"code": "a", "money": "b"}},
        "urgency": {"type": "score", "instructions": "How urgent?", "criteria": ["can wait", "soon", "now"]},
        "asks": {"type": "noul", "instructions": "Is it a question?"}
    }}"#;
    QuestionSet::new(Contract::import(file.as_bytes()).unwrap())
}

fn right() -> Value {
    json!({
        "answers": {
            "topic": {"type": "choice", "choice": "money", "probabilities": {"code": 0.25, "money": 0.75}},
            "urgency": {"type": "score", "score": 1.4, "probabilities": {"0": 0.1, "1": 0.4, "2": 0.5}},
            "asks": {"type": "noul", "noul": 0.2},
        },
        "usage": {"input_tokens": 9, "state_tokens_dropped": 0, "truncated": false, "truncated_questions": []},
    })
}

fn answered(body: &str) -> Result<Said, CallError> {
    status(200, body)
}

fn status(status: u16, body: &str) -> Result<Said, CallError> {
    Ok(Said {
        status,
        checkpoint: None,
        body: body.as_bytes().to_vec().into(),
    })
}

/// The reason, and whether asking again can help.
fn verdict(came: &Result<Said, CallError>, recorded: Option<&RecordedProbe>) -> String {
    match judge(&set(), came, recorded) {
        Judged::Right(_) => "right".to_owned(),
        Judged::Busy => "busy".to_owned(),
        Judged::Wrong(failed) => {
            let again = if failed.conclusive { "" } else { ", again" };
            format!("{}{again}", failed.reason.as_str())
        }
    }
}

#[test]
fn a_right_answer_gives_the_likeliest_labels_in_order() {
    let label = |label: &str, probability| (label.to_owned(), probability);
    let labels = vec![label("money", 0.75), label("2", 0.5), label("false", 0.8)];
    assert_eq!(
        judge(&set(), &answered(&right().to_string()), None),
        Judged::Right(labels)
    );
}

#[test]
fn fault_27_answers_that_are_none_are_told_apart() {
    let changed = |change: fn(&mut Value)| {
        let mut body = right();
        change(&mut body);
        answered(&body.to_string())
    };
    let cases = [
        ("right", changed(|_| {})),
        // Ids that nobody asked for are no harm.
        (
            "right",
            changed(|body| body["answers"]["more"] = json!({"type": "noul", "noul": 7})),
        ),
        (
            "QuestionsUnknown",
            changed(|body| {
                body["answers"].as_object_mut().unwrap().remove("asks");
            }),
        ),
        (
            "MalformedAnswers",
            changed(|body| body["answers"]["topic"]["choice"] = json!("weather")),
        ),
        (
            "MalformedAnswers",
            changed(|body| {
                body["answers"]["topic"]["probabilities"] = json!({"code": 0.25, "weather": 0.75})
            }),
        ),
        (
            "MalformedAnswers",
            changed(|body| body["answers"]["topic"]["probabilities"] = json!({"money": 1.0})),
        ),
        (
            "MalformedAnswers",
            changed(|body| {
                body["answers"]["topic"]["probabilities"] = json!({"code": 0.25, "money": 0.7})
            }),
        ),
        (
            "MalformedAnswers",
            changed(|body| {
                body["answers"]["topic"]["probabilities"] = json!({"code": -0.25, "money": 1.25})
            }),
        ),
        // Rounded to four decimals.
        (
            "right",
            changed(|body| {
                body["answers"]["topic"]["probabilities"] = json!({"code": 0.2491, "money": 0.75})
            }),
        ),
        (
            "MalformedAnswers",
            changed(|body| body["answers"]["urgency"]["probabilities"]["3"] = json!(0.0)),
        ),
        (
            "MalformedAnswers",
            changed(|body| body["answers"]["urgency"]["type"] = json!("noul")),
        ),
        (
            "MalformedAnswers",
            changed(|body| body["answers"]["asks"]["noul"] = json!(1.5)),
        ),
        (
            "MalformedAnswers",
            changed(|body| body["answers"]["asks"]["noul"] = json!(null)),
        ),
        (
            "MalformedAnswers",
            changed(|body| body["answers"] = json!([])),
        ),
        (
            "WrongAnswers",
            changed(|body| body["usage"]["state_tokens_dropped"] = json!(4)),
        ),
        (
            "WrongAnswers",
            changed(|body| body["usage"]["truncated_questions"] = json!(["asks"])),
        ),
        (
            "MalformedAnswers",
            answered(&right().to_string().replace("0.75", "NaN")),
        ),
        ("MalformedAnswers", answered(&right().to_string()[..40])),
        ("MalformedAnswers", answered("")),
        ("busy", status(503, "{}")),
        ("busy", status(429, "{}")),
        ("ContractMismatch", status(409, "{}")),
        ("QuestionsUnknown", status(422, "{}")),
        ("QuestionsUnknown", status(400, "{}")),
        ("MalformedAnswers", status(401, "{}")),
        ("MalformedAnswers", status(404, "{}")),
        ("MalformedAnswers", status(302, "")),
        ("MalformedAnswers, again", status(500, "{}")),
        ("ProbeTimedOut, again", status(504, "{}")),
        (
            "MalformedAnswers",
            Err(CallError::TooLong { limit: 1 << 20 }),
        ),
        (
            "ProbeTimedOut, again",
            Err(CallError::Deadline {
                after: Duration::from_secs(5),
            }),
        ),
        (
            "ProbeTimedOut, again",
            Err(CallError::Unreachable {
                refused: true,
                message: "refused".to_owned(),
            }),
        ),
    ];
    for (expected, came) in cases {
        assert_eq!(verdict(&came, None), expected, "{came:?}");
    }
}

#[test]
fn recorded_answers_must_come_again_within_two_hundredths() {
    let recorded = |label: &str, probability: f64| RecordedProbe {
        state: json!("pay me"),
        answers: [(
            "topic".to_owned(),
            RecordedAnswer {
                label: label.to_owned(),
                probability,
            },
        )]
        .into(),
    };
    for (label, probability, expected) in [
        ("money", 0.75, "right"),
        ("money", 0.77, "right"),
        ("money", 0.73, "right"),
        ("money", 0.78, "WrongAnswers"),
        ("code", 0.75, "WrongAnswers"),
    ] {
        let came = answered(&right().to_string());
        assert_eq!(
            verdict(&came, Some(&recorded(label, probability))),
            expected,
            "{label} {probability}"
        );
    }
    let mut cut = right();
    cut["usage"]["state_tokens_dropped"] = json!(4);
    let long = recorded("money", 0.75);
    assert_eq!(
        verdict(&answered(&cut.to_string()), Some(&long)),
        "right",
        "a recorded state may be long"
    );
}

#[test]
fn a_head_is_dead_when_nothing_changes_its_answers() {
    let labels = |probability| vec![("a".to_owned(), probability), ("b".to_owned(), 0.5)];
    for (answers, dead) in [
        (vec![], false),
        (vec![labels(0.6)], false),
        (vec![labels(0.6), labels(0.6)], true),
        (vec![labels(0.6), labels(0.6), labels(0.61)], false),
    ] {
        assert_eq!(is_dead(&answers), dead, "{answers:?}");
    }
}

fn junk() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(
                prop::sample::select(vec!["type", "choice", "probabilities", "0", "code", "noul"]),
                inner,
                0..4
            )
            .prop_map(|map| Value::Object(
                map.into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn fault_27_no_body_is_too_strange_to_be_judged(body in any::<Vec<u8>>(), code in 100_u16..600) {
        let came = Ok(Said { status: code, checkpoint: None, body: body.into() });
        prop_assert!(!matches!(judge(&set(), &came, None), Judged::Right(_)));
    }

    #[test]
    fn fault_27_what_is_judged_right_has_a_probability_for_each_question(
        id in prop::sample::select(vec!["topic", "urgency", "asks"]),
        field in prop::sample::select(vec!["type", "choice", "probabilities", "score", "noul", "confidence"]),
        junk in junk(),
    ) {
        let mut body = right();
        body["answers"][id][field] = junk;
        if let Judged::Right(labels) = judge(&set(), &answered(&body.to_string()), None) {
            prop_assert_eq!(labels.len(), 3);
            prop_assert!(labels.iter().all(|(_, probability)| (0.0..=1.0).contains(probability)));
        }
    }
}
