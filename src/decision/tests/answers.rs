//! Replies of a decision model, valid and invalid (routing.md 2, 23.2).

use decision::answers::{Answer, AnswerError, Reply};
use decision::relay_contract;

/// Base S of routing.md 23.2 with some of its texts replaced.
fn reply(edits: &[(&str, &str)]) -> Result<Reply, AnswerError> {
    let choices = [
        ("task_type", "bug_fix"),
        ("scope", "single_file"),
        ("capability_tier", "fast"),
        ("reasoning_effort", "low"),
        ("agent", "software-engineer"),
        ("validation_level", "unit_test"),
    ];
    let mut answers: Vec<String> = choices
        .iter()
        .map(|(id, option)| {
            format!(r#""{id}":{{"type":"choice","choice":"{option}","probabilities":{{"{option}":0.9}}}}"#)
        })
        .collect();
    for (id, level) in [
        ("complexity", 1),
        ("risk", 0),
        ("ambiguity", 0),
        ("reasoning_requirement", 1),
    ] {
        answers.push(format!(
            r#""{id}":{{"type":"score","score":{level},"probabilities":{{"{level}":0.8}}}}"#
        ));
    }
    let nouls = [
        ("requires_write", 0.9),
        ("requires_shell", 0.1),
        ("requires_tests", 0.9),
        ("requires_web", 0.1),
        ("requires_browser", 0.1),
        ("requires_database", 0.1),
        ("requires_git", 0.1),
        ("security_sensitive", 0.1),
    ];
    for (id, noul) in nouls {
        answers.push(format!(r#""{id}":{{"type":"noul","noul":{noul}}}"#));
    }
    let mut body = format!(
        r#"{{"answers":{{{},"urgency":7}},"extra":1}}"#,
        answers.join(",")
    );
    for (from, to) in edits {
        assert!(body.contains(from), "nothing to replace: {from}");
        body = body.replace(from, to);
    }
    Reply::read(relay_contract().questions(), body.as_bytes())
}

fn answer(reply: &Reply, id: &str) -> Answer {
    reply.answers.get(id).expect("asked").clone()
}

#[test]
fn reads_base_s() {
    let reply = reply(&[]).expect("valid");
    assert_eq!(reply.answers.len(), 18);
    assert_eq!(answer(&reply, "capability_tier").choice(), Some("fast"));
    assert!((answer(&reply, "complexity").score_fraction() - 0.25).abs() < 1e-12);
    assert!(answer(&reply, "requires_write").holds());
    assert!(!answer(&reply, "requires_git").holds());
    assert!((answer(&reply, "requires_git").answer_probability() - 0.9).abs() < 1e-12);
    assert!((answer(&reply, "complexity").answer_probability() - 0.8).abs() < 1e-12);
    assert!(!reply.was_truncated());
}

#[test]
fn names_the_question_of_an_invalid_answer() {
    let tier =
        r#""capability_tier":{"type":"choice","choice":"fast","probabilities":{"fast":0.9}}"#;
    let swap = |to: &'static str| vec![(tier, to)];
    let rows = [
        (
            "unknown option",
            swap(r#""capability_tier":{"type":"choice","choice":"huge"}"#),
            "answer to `capability_tier`: `huge` is not one of its options",
        ),
        (
            "no choice",
            swap(r#""capability_tier":{"type":"choice"}"#),
            "answer to `capability_tier`: `None` is not one of its options",
        ),
        (
            "missing id",
            vec![(r#""requires_web":"#, r#""requires_wob":"#)],
            "answer to `requires_web`: is missing",
        ),
        (
            "probability NaN",
            swap(
                r#""capability_tier":{"type":"choice","choice":"fast","probabilities":{"fast":NaN}}"#,
            ),
            "answer to `capability_tier`: `probabilities.fast` is not a finite number",
        ),
        (
            "probability infinite by overflow",
            swap(
                r#""capability_tier":{"type":"choice","choice":"fast","probabilities":{"fast":1e999}}"#,
            ),
            "answer to `capability_tier`: `probabilities.fast` is not a finite number",
        ),
        (
            "probability of another option NaN",
            swap(
                r#""capability_tier":{"type":"choice","choice":"fast","probabilities":{"fast":1,"x":NaN}}"#,
            ),
            "answer to `capability_tier`: `probabilities.x` is not a finite number",
        ),
        (
            "choice answer of kind score",
            swap(r#""capability_tier":{"type":"score","score":1}"#),
            "answer to `capability_tier`: is of kind score, asked was choice",
        ),
        (
            "score as a bool",
            vec![(r#""score":0"#, r#""score":true"#)],
            "answer to `risk`: `score` is not a finite number",
        ),
        (
            "noul missing",
            vec![(r#""noul":0.9"#, r#""nool":0.9"#)],
            "answer to `requires_write`: `noul` is not a finite number",
        ),
        (
            "no object",
            swap(r#""capability_tier":"fast""#),
            "answer to `capability_tier`: is not an object",
        ),
        (
            "no answers",
            vec![(r#"{"answers""#, r#"{"replies""#)],
            "the reply has no object `answers`",
        ),
    ];
    for (name, edits, message) in rows {
        assert_eq!(
            reply(&edits).expect_err(name).to_string(),
            message,
            "{name}"
        );
    }
}

#[test]
fn holds_and_clamps_at_the_borders() {
    for (noul, holds) in [("0.5", true), ("0.4999", false), ("-1", false), ("9", true)] {
        let reply = reply(&[(r#""noul":0.9"#, &format!(r#""noul":{noul}"#))]).expect("valid");
        assert_eq!(
            answer(&reply, "requires_write").holds(),
            holds,
            "noul {noul}"
        );
    }
    for (score, fraction) in [("-1", 0.0), ("9", 1.0), ("1.98", 0.495)] {
        let reply = reply(&[(r#""score":1,"#, &format!(r#""score":{score},"#))]).expect("valid");
        assert!(
            (answer(&reply, "complexity").score_fraction() - fraction).abs() < 1e-12,
            "score {score}"
        );
    }
}

#[test]
fn prefers_the_probability_of_the_chosen_option() {
    let tier = r#""probabilities":{"fast":0.9}"#;
    for (name, fields, probability) in [
        (
            "own probability",
            r#""probabilities":{"fast":0.7,"strong":0.2},"answer_confidence":0.5"#,
            0.7,
        ),
        (
            "answer_confidence",
            r#""probabilities":{"strong":0.2},"answer_confidence":0.5,"confidence":0.4"#,
            0.5,
        ),
        (
            "confidence",
            r#""answer_confidence":null,"confidence":0.4"#,
            0.4,
        ),
        ("nothing", r#""probabilities":{}"#, 0.0),
        ("beyond one", r#""probabilities":{"fast":1.7}"#, 1.0),
    ] {
        let reply = reply(&[(tier, fields)]).expect(name);
        assert!(
            (answer(&reply, "capability_tier").answer_probability() - probability).abs() < 1e-12,
            "{name}"
        );
    }
}

#[test]
fn reports_cuts() {
    let with =
        |usage: &str| reply(&[(r#""extra":1"#, &format!(r#""usage":{usage}"#))]).expect("valid");
    let cut =
        with(r#"{"input_tokens":7,"state_tokens_dropped":3,"truncated_questions":["agent"]}"#);
    assert_eq!((cut.input_tokens, cut.state_tokens_dropped), (7, 3));
    assert_eq!(cut.truncated_questions, ["agent"]);
    assert!(cut.was_truncated());
    assert!(
        !with(r#"{"input_tokens":7,"state_tokens_dropped":0,"truncated_questions":[]}"#)
            .was_truncated()
    );
}
