//! How much one request may ask (wire.md 4.4, steps 7 to 12). Looked at before anything is understood.

use super::refusal::Refusal;
use super::state::state_chars;
use crate::json::{Object, Text, Value, repr_text};

/// Most questions of a request.
pub const MAX_QUESTIONS: usize = 64;
/// Most options of a choice in one pass.
pub const MAX_CHOICE_OPTIONS: usize = 100;
/// Most options of a choice where a tournament narrows it (wire.md 15.2).
pub const MAX_TOURNAMENT_OPTIONS: usize = 255;
/// Most levels of a score.
pub const MAX_SCORE_LEVELS: usize = 32;
/// Most options and levels of all choices and scores of a request.
pub const MAX_TOTAL_OPTIONS: usize = 512;
/// Longest state, in code points.
pub const MAX_STATE_CHARS: usize = 50_000;
/// Most states of a batch.
pub const MAX_STATES: usize = 64;

/// Whether choices are narrowed by a tournament, and so how many options one may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionLimit {
    /// Every choice is one pass: 100 options.
    OnePass,
    /// A tournament group is configured: 255 options.
    Tournament,
}

impl OptionLimit {
    /// The number of options.
    #[must_use]
    pub const fn options(self) -> usize {
        match self {
            Self::OnePass => MAX_CHOICE_OPTIONS,
            Self::Tournament => MAX_TOURNAMENT_OPTIONS,
        }
    }
}

/// Steps 7 to 12 for one state. Gives back the questions, which are an object from here on.
pub(super) fn check<'a>(
    state: Option<&Value>,
    questions: &'a Value,
    limit: OptionLimit,
) -> Result<&'a Object, Refusal> {
    let state = state
        .filter(|state| !state.is_null())
        .ok_or_else(|| Refusal::bad_request("'state' is required"))?;
    let questions = questions
        .as_object()
        .ok_or_else(|| Refusal::bad_request("'questions' must be an object"))?;
    if questions.len() > MAX_QUESTIONS {
        return Err(Refusal::too_large(format!(
            "too many questions ({} > {MAX_QUESTIONS})",
            questions.len()
        )));
    }
    let mut total = 0;
    for (id, definition) in questions {
        total += option_count(id, definition, limit)?;
    }
    if total > MAX_TOTAL_OPTIONS {
        let detail =
            format!("too many answer options across questions ({total} > {MAX_TOTAL_OPTIONS})");
        return Err(Refusal::too_large(detail));
    }
    let chars = state_chars(state);
    if chars > MAX_STATE_CHARS {
        return Err(Refusal::too_large(format!(
            "state too large ({chars} > {MAX_STATE_CHARS} chars)"
        )));
    }
    Ok(questions)
}

/// Options of a choice, levels of a score; 0 for everything that the question rules will look at later.
fn option_count(id: &Text, definition: &Value, limit: OptionLimit) -> Result<usize, Refusal> {
    let Some(definition) = definition.as_object() else {
        return Ok(0);
    };
    match (
        definition.get("type").and_then(Value::as_str),
        definition.get("criteria"),
    ) {
        (Some("choice"), Some(Value::Object(options))) => {
            at_most(options.len(), limit.options(), "choice options", id)
        }
        (Some("choice"), Some(Value::List(options))) => {
            at_most(options.len(), limit.options(), "choice options", id)
        }
        (Some("score"), Some(Value::List(levels))) => {
            let count = at_most(levels.len(), MAX_SCORE_LEVELS, "score levels", id)?;
            match levels.iter().position(Value::is_null) {
                Some(index) => Err(Refusal::unprocessable(format!(
                    "score question {} has a null level at index {index}; give every level a description",
                    repr_text(id)
                ))),
                None => Ok(count),
            }
        }
        _ => Ok(0),
    }
}

fn at_most(count: usize, limit: usize, what: &str, id: &Text) -> Result<usize, Refusal> {
    if count > limit {
        let detail = format!("too many {what} for {} ({count} > {limit})", repr_text(id));
        return Err(Refusal::too_large(detail));
    }
    Ok(count)
}
