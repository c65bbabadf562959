//! The body of an answer: every question with its first option, sure of it, or wrong in the way a fault asks for.

use serde_json::{Map, Value, json};

use super::{Answers, Fault};

/// The answer to a body of `/v1/systemone`, or to each state of a batch.
pub(super) fn answer(body: &[u8], answers: Answers, fault: &Fault) -> String {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let questions = request["questions"].as_object().cloned();
    let questions = questions.unwrap_or_default();
    let one = |state: &Value| {
        let sure = match answers {
            Answers::First => None,
            Answers::Lively if *fault == Fault::DeadHead => Some(0.625),
            Answers::Lively => Some(sureness(state)),
        };
        one(&questions, sure, fault)
    };
    let whole = match request["states"].as_array() {
        None => one(&request["state"]).to_string(),
        Some(states) => {
            let results: Vec<_> = states.iter().map(one).collect();
            let usage = json!({"input_tokens": 7 * states.len(), "output_tokens": 0});
            json!({"results": results, "total_usage": usage}).to_string()
        }
    };
    match fault {
        // A number that JSON has not, written where one was.
        Fault::NotANumber => whole.replace(&likeliest(answers, &request["state"]), "NaN"),
        Fault::MalformedJson => whole[..whole.len() / 2].to_owned(),
        _ => whole,
    }
}

/// How sure it is of its answers to a state: one of eighths between a half and one, by what the state is.
fn sureness(state: &Value) -> f64 {
    let hash = state.to_string().bytes().fold(7_u32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    0.5 + f64::from(hash % 1000 + 1) / 4096.0
}

/// The probability of each first option as it is written.
fn likeliest(answers: Answers, state: &Value) -> String {
    match answers {
        Answers::First => "0.9125".to_owned(),
        Answers::Lively => json!(sureness(state)).to_string(),
    }
}

fn one(questions: &Map<String, Value>, sure: Option<f64>, fault: &Fault) -> Value {
    let answers: Map<String, Value> = questions
        .iter()
        .filter(|(id, _)| !matches!(fault, Fault::MissingId(missing) if missing == *id))
        .map(|(id, question)| (id.clone(), answer_to(question, sure, fault)))
        .collect();
    json!({
        "model": "laya",
        "answers": answers,
        "usage": {"input_tokens": 7, "output_tokens": 0, "state_tokens_dropped": 0, "truncated_questions": []},
    })
}

fn answer_to(question: &Value, sure: Option<f64>, fault: &Fault) -> Value {
    let kind = question["type"].as_str().unwrap_or_default();
    match kind {
        "choice" if *fault == Fault::WrongKind => json!({"type": "score", "score": 1.0}),
        "choice" => {
            let options: Vec<&str> = match &question["criteria"] {
                Value::Object(options) => options.keys().map(String::as_str).collect(),
                Value::Array(options) => options.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            };
            let first = options.first().copied().unwrap_or_default();
            let choice = match fault {
                Fault::UnknownChoice => "no such option",
                Fault::LastOption => options.last().copied().unwrap_or_default(),
                _ => first,
            };
            let probabilities = match sure {
                None => json!({first: 0.9125}),
                Some(sure) => shared_out(&options, sure),
            };
            json!({"type": "choice", "choice": choice, "probabilities": probabilities, "confidence": 0.8})
        }
        "score" => {
            let probabilities = match sure {
                None => json!({"1": 0.9125}),
                Some(sure) => {
                    let levels = question["criteria"].as_array().map_or(0, Vec::len);
                    let levels: Vec<String> = (0..levels).map(|level| level.to_string()).collect();
                    let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
                    shared_out(&levels, sure)
                }
            };
            json!({"type": "score", "score": 1.0, "probabilities": probabilities, "confidence": 0.8})
        }
        _ => json!({"type": "noul", "noul": sure.unwrap_or(0.0875), "confidence": 0.8}),
    }
}

/// The first option has this probability, the others share the rest.
fn shared_out(options: &[&str], sure: f64) -> Value {
    let others = options.len().saturating_sub(1);
    let rest = (1.0 - sure) / others.max(1) as f64;
    let probability = |at: usize| match (at, others) {
        (_, 0) => 1.0,
        (0, _) => sure,
        _ => rest,
    };
    let shares = options.iter().enumerate();
    shares
        .map(|(at, option)| ((*option).to_owned(), json!(probability(at))))
        .collect::<Map<_, _>>()
        .into()
}
