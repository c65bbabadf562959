//! Probe questions (control-plane 12): whether a loaded checkpoint answers as recorded in its manifest, or, without a
//! record, whether its answers have the right shape and depend on the request. Pure: who asks is passed in.

mod check;

use decision::json::{self, Object, Value};
use decision::wire::{Answer, Question, Refusal, check_questions};
use laya::checkpoint::Probe;
use laya::{CheckpointInfo, PredictError, Prediction};

pub use check::{label_of, probability_of};

/// How far a probability may lie from the recorded one.
pub const PROBABILITY_TOLERANCE: f64 = 0.02;

/// Why a checkpoint does not pass.
#[derive(Debug, thiserror::Error)]
pub enum ProbeFailure {
    /// It cannot answer at all.
    #[error("a probe question was not answered: {0}")]
    Asked(#[from] PredictError),
    /// The questions of its own contract are refused.
    #[error("the questions of its contract are refused: {}", .0.detail)]
    Questions(Refusal),
    /// Another answer than recorded.
    #[error("probe {probe}, question '{question}': expected {expected}, got {got}")]
    Differs {
        /// Position of the probe.
        probe: usize,
        /// Id of the question.
        question: String,
        /// Recorded label and probability.
        expected: String,
        /// Answered label and probability.
        got: String,
    },
    /// An answer that is none.
    #[error("question '{question}': {problem}")]
    Shape {
        /// Id of the question.
        question: String,
        /// What is wrong.
        problem: String,
    },
    /// All requests get one answer.
    #[error("DeadHead: every probe request got the same answers with the same probabilities")]
    DeadHead,
    /// Asked twice, answered differently.
    #[error("the same probe was answered differently the second time")]
    NotRepeatable,
}

/// Asks the probe questions of a checkpoint.
///
/// # Errors
/// The first thing that is wrong.
pub fn probe(
    info: &CheckpointInfo,
    ask: impl Fn(&Value, &[Question]) -> Result<Prediction, PredictError>,
) -> Result<(), ProbeFailure> {
    let own = info
        .questions
        .as_ref()
        .map(|contract| contract.request_questions());
    match &own {
        Some(questions) if !info.probes.is_empty() => recorded(&info.probes, questions, ask),
        Some(questions) => {
            let states: Vec<Value> = STATES.iter().map(|text| request(text)).collect();
            shape(&states, questions, ask)
        }
        None => shape(&[Value::from(STATES[0])], &built_in_questions(), ask),
    }
}

/// Six requests that differ in everything a question can ask for.
pub const STATES: [&str; 6] = [
    "Rename the variable in the settings page.",
    "The payment service answers 500 since the last deployment. Find out why, fix it and add a test.",
    "What does this function do?",
    "Design a migration of all customer data to the new region without downtime.",
    "Delete every user account that looks unused, in production, now.",
    "Translate the error messages to German and keep the placeholders.",
];

/// A state as Relay's own contract has it.
#[must_use]
pub fn request(text: &str) -> Value {
    let object: Object = [("request", text)].into_iter().collect();
    Value::Object(object)
}

/// One question of each type, for checkpoints without a contract.
#[must_use]
pub fn built_in_questions() -> Object {
    const TEXT: &str = r#"{
        "topic": {"type": "choice", "instructions": "What is the text about?",
                  "criteria": {"work": "a task to be done", "question": "something to be explained", "other": null}},
        "urgency": {"type": "score", "instructions": "How urgent is it?", "criteria": ["not urgent", "soon", "now"]},
        "code": {"type": "noul", "instructions": "The text is about software."}
    }"#;
    match json::read(TEXT.as_bytes()) {
        Ok(Value::Object(questions)) => questions,
        _ => Object::new(),
    }
}

fn recorded(
    probes: &[Probe],
    questions: &Object,
    ask: impl Fn(&Value, &[Question]) -> Result<Prediction, PredictError>,
) -> Result<(), ProbeFailure> {
    let questions = check_questions(questions).map_err(ProbeFailure::Questions)?;
    for (index, probe) in probes.iter().enumerate() {
        let state = json::read(probe.state.to_string().as_bytes()).unwrap_or(Value::Null);
        let answers = ask(&state, &questions)?.answers;
        if index == 0 && ask(&state, &questions)?.answers != answers {
            return Err(ProbeFailure::NotRepeatable);
        }
        for (id, expected) in &probe.answers {
            let answer = answers
                .iter()
                .find(|(known, _)| known == id)
                .map(|(_, answer)| answer);
            let label = answer.map(label_of).unwrap_or_default();
            let probability = answer.and_then(|answer| probability_of(answer, &expected.label));
            let close = probability
                .is_some_and(|p| (p - expected.probability).abs() <= PROBABILITY_TOLERANCE);
            if label != expected.label || !close {
                return Err(ProbeFailure::Differs {
                    probe: index,
                    question: id.clone(),
                    expected: format!("'{}' with {:.4}", expected.label, expected.probability),
                    got: format!(
                        "'{label}', and '{}' with {:.4}",
                        expected.label,
                        probability.unwrap_or(0.0)
                    ),
                });
            }
        }
    }
    Ok(())
}

fn shape(
    states: &[Value],
    questions: &Object,
    ask: impl Fn(&Value, &[Question]) -> Result<Prediction, PredictError>,
) -> Result<(), ProbeFailure> {
    let questions = check_questions(questions).map_err(ProbeFailure::Questions)?;
    let mut all: Vec<Vec<(String, Answer)>> = Vec::new();
    for (index, state) in states.iter().enumerate() {
        let prediction = ask(state, &questions)?;
        check::shape_of(&prediction, &questions)
            .map_err(|(question, problem)| ProbeFailure::Shape { question, problem })?;
        if index == 0 && ask(state, &questions)?.answers != prediction.answers {
            return Err(ProbeFailure::NotRepeatable);
        }
        all.push(prediction.answers);
    }
    let same = |answers: &Vec<(String, Answer)>| all.first() == Some(answers);
    if all.len() > 1 && !questions.is_empty() && all.iter().all(same) {
        return Err(ProbeFailure::DeadHead);
    }
    Ok(())
}
