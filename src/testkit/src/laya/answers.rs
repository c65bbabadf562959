//! The body of an answer: every question with its first option, sure of it, or as a model would, or wrong in the way a
//! fault asks for.

use serde_json::{Map, Value, json};

use super::plausible;
use super::{Answers, Fault};

/// The answer to a body of `/v1/systemone`, or to each state of a batch.
pub(super) fn answer(body: &[u8], answers: &Answers, fault: &Fault) -> String {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let questions = request["questions"].as_object().cloned();
    let questions = questions.unwrap_or_default();
    let to = |state: &Value| match answers {
        Answers::First => one(&questions, fault),
        Answers::Plausible(known) => plausible::answers(state, &questions, known, fault),
    };
    let whole = match request["states"].as_array() {
        None => to(&request["state"]).to_string(),
        Some(states) => {
            let results: Vec<_> = states.iter().map(to).collect();
            let usage = json!({"input_tokens": 7 * states.len(), "output_tokens": 0});
            json!({"results": results, "total_usage": usage}).to_string()
        }
    };
    match fault {
        // A number that JSON has not, written where one was.
        Fault::NotANumber => whole
            .replace("0.9125", "NaN")
            .replace("\"confidence\":0.5", "\"confidence\":NaN"),
        Fault::MalformedJson => whole[..whole.len() / 2].to_owned(),
        _ => whole,
    }
}

fn one(questions: &Map<String, Value>, fault: &Fault) -> Value {
    let answers: Map<String, Value> = questions
        .iter()
        .filter(|(id, _)| !matches!(fault, Fault::MissingId(missing) if missing == *id))
        .map(|(id, question)| (id.clone(), answer_to(question, fault)))
        .collect();
    json!({
        "model": "laya",
        "answers": answers,
        "usage": {"input_tokens": 7, "output_tokens": 0, "state_tokens_dropped": 0, "truncated_questions": []},
    })
}

fn answer_to(question: &Value, fault: &Fault) -> Value {
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
            json!({"type": "choice", "choice": choice, "probabilities": {first: 0.9125}, "confidence": 0.8})
        }
        "score" => {
            json!({"type": "score", "score": 1.0, "probabilities": {"1": 0.9125}, "confidence": 0.8})
        }
        _ => json!({"type": "noul", "noul": 0.0875, "confidence": 0.8}),
    }
}
