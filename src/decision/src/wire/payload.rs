//! The reply of the decision routes: answers, usage and routing in their order, plain, strict and in batches
//! (wire.md 4.5, 6.3, 6.6).

use super::answer::Answer;
use super::refusal::Refusal;
use crate::json::{Object, Value, write};

/// The `model` of every reply.
const MODEL: &str = "laya-rl-agent";

/// Who reads a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// HTTP: with `x_jev_confidence`.
    Http,
    /// HTTP in strict mode (`LAYA_JEV_STRICT`): the least fields.
    HttpStrict,
    /// Library, MCP and command line: without `x_jev_confidence`.
    Library,
}

/// How few different texts the options of a question became when cut (wire.md 10.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionUsage {
    /// Id of the question.
    pub question: String,
    /// Options.
    pub total: usize,
    /// Different token spans among them.
    pub distinct: usize,
    /// Tokens an option was cut to; none where no cap was applied.
    pub tokens_per_option: Option<usize>,
}

/// What became of the state. Absent where nothing was asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StateUsage {
    /// Tokens of the whole state.
    pub state_tokens: usize,
    /// Largest number of them dropped for a question.
    pub state_tokens_dropped: usize,
    /// Ids of the questions that saw a cut state, in order.
    pub truncated_questions: Vec<String>,
    /// Questions with fewer distinct options than options, in order.
    pub options: Vec<OptionUsage>,
}

/// Tokens of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of all rows, padding not counted.
    pub input_tokens: usize,
    /// The state; none where there were no questions.
    pub state: Option<StateUsage>,
}

/// The reply about one state.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// Question id → answer, in question order.
    pub answers: Vec<(String, Answer)>,
    /// Tokens.
    pub usage: Usage,
    /// Which checkpoint answered and why (wire.md 8).
    pub routing: Value,
}

impl Payload {
    /// The reply as a surface reads it.
    #[must_use]
    pub fn to_object(&self, surface: Surface) -> Object {
        let answers: Object = self
            .answers
            .iter()
            .map(|(id, answer)| (id.as_str(), answer.to_object(surface)))
            .collect();
        let mut object = Object::new();
        object.push("model", MODEL);
        object.push("answers", answers);
        if surface == Surface::HttpStrict {
            object.push("usage", token_counts(self.usage.input_tokens));
        } else {
            object.push("usage", self.usage.to_object());
            object.push("routing", self.routing.clone());
        }
        object
    }

    fn is_json(&self) -> bool {
        self.answers.iter().all(|(_, answer)| answer.is_json())
    }
}

impl Usage {
    /// The fields of `usage` outside strict mode.
    #[must_use]
    pub fn to_object(&self) -> Object {
        let mut object = token_counts(self.input_tokens);
        let Some(state) = &self.state else {
            return object;
        };
        object.push("state_tokens", count(state.state_tokens));
        object.push("state_tokens_dropped", count(state.state_tokens_dropped));
        object.push("truncated", state.state_tokens_dropped > 0);
        let ids: Vec<Value> = state
            .truncated_questions
            .iter()
            .map(|id| id.as_str().into())
            .collect();
        object.push("truncated_questions", ids);
        if !state.options.is_empty() {
            let options: Object = state
                .options
                .iter()
                .map(|options| (options.question.as_str(), options.to_object()))
                .collect();
            object.push("options", options);
        }
        object
    }
}

impl OptionUsage {
    fn to_object(&self) -> Object {
        let mut object = Object::new();
        object.push("total", count(self.total));
        object.push("distinct", count(self.distinct));
        object.push("tokens_per_option", self.tokens_per_option.map(count));
        object
    }
}

/// Body of a reply about one state.
///
/// # Errors
/// A label that is NaN or infinite, as a refusal of status 422.
pub fn write_reply(payload: &Payload, surface: Surface) -> Result<String, Refusal> {
    if !payload.is_json() {
        return Err(not_json());
    }
    Ok(write(&Value::Object(payload.to_object(surface))))
}

/// Body of a reply about several states, in the order of the request.
///
/// # Errors
/// As [`write_reply`].
pub fn write_batch(payloads: &[Payload], surface: Surface) -> Result<String, Refusal> {
    if !payloads.iter().all(Payload::is_json) {
        return Err(not_json());
    }
    let results: Vec<Value> = payloads
        .iter()
        .map(|payload| Value::Object(payload.to_object(surface)))
        .collect();
    let mut object = Object::new();
    object.push("results", results);
    object.push(
        "total_usage",
        token_counts(
            payloads
                .iter()
                .map(|payload| payload.usage.input_tokens)
                .sum(),
        ),
    );
    Ok(write(&Value::Object(object)))
}

fn not_json() -> Refusal {
    Refusal::unprocessable("Out of range float values are not JSON compliant")
}

fn token_counts(input_tokens: usize) -> Object {
    [
        ("input_tokens", count(input_tokens)),
        ("output_tokens", count(0)),
    ]
    .into_iter()
    .collect()
}

fn count(number: usize) -> Value {
    Value::from(i64::try_from(number).unwrap_or(i64::MAX))
}
