//! A question that obeys the rules of wire.md 5, in normal form, and the texts a model reads of it (10.2).

use super::label::Label;
use super::state::value_text;
use crate::contract::Kind;
use crate::json::{Value, json_text};

/// One option of a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceOption {
    /// The label.
    pub label: Label,
    /// Its description as sent; null for none.
    pub description: Value,
}

/// What a question asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// One of these options, at least one, labels all different.
    Choice(Vec<ChoiceOption>),
    /// A level; descriptions as sent from level 0, at least one, none of them null.
    Score(Vec<Value>),
    /// Whether a statement holds.
    Noul {
        /// Descriptions of false and true as sent; null for the default.
        descriptions: [Value; 2],
        /// Words for false and true in place of `false` and `true`; trimmed, not empty, distinct.
        labels: Option<[String; 2]>,
    },
}

/// A checked question in normal form.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Id, not blank.
    pub id: String,
    /// What is asked; instructions that were no string are JSON text.
    pub instructions: String,
    /// Kind and options.
    pub form: Form,
    /// Which option stands in which slot, a permutation; none for the order of the question.
    pub option_order: Option<Vec<usize>>,
}

impl Question {
    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self.form {
            Form::Choice(_) => Kind::Choice,
            Form::Score(_) => Kind::Score,
            Form::Noul { .. } => Kind::Noul,
        }
    }

    /// Number of options, at least one.
    #[must_use]
    pub const fn option_count(&self) -> usize {
        match &self.form {
            Form::Choice(options) => options.len(),
            Form::Score(levels) => levels.len(),
            Form::Noul { .. } => 2,
        }
    }

    /// First text of a row: `<type> question: <instructions>` (wire.md 10.1).
    #[must_use]
    pub fn prompt(&self) -> String {
        format!("{} question: {}", self.kind(), self.instructions)
    }

    /// Text of every option in question order (wire.md 10.2).
    #[must_use]
    pub fn option_texts(&self) -> Vec<String> {
        match &self.form {
            Form::Choice(options) => options
                .iter()
                .map(|option| {
                    let label = option.label.text();
                    if says_nothing(&option.description) {
                        label
                    } else {
                        format!("{label}: {}", value_text(&option.description))
                    }
                })
                .collect(),
            Form::Score(levels) => levels
                .iter()
                .enumerate()
                .map(|(index, level)| format!("level {index}: {}", value_text(level)))
                .collect(),
            Form::Noul {
                descriptions,
                labels,
            } => {
                const DEFAULTS: [(&str, &str); 2] = [
                    ("false", "no, the statement does not hold"),
                    ("true", "yes, the statement holds"),
                ];
                let side = |index: usize| {
                    let (word, default) = DEFAULTS[index];
                    let word = labels
                        .as_ref()
                        .map_or(word, |labels| labels[index].as_str());
                    let description = &descriptions[index];
                    let text = if says_nothing(description) {
                        default.to_owned()
                    } else {
                        value_text(description)
                    };
                    format!("{word}: {text}")
                };
                vec![side(0), side(1)]
            }
        }
    }

    /// Level texts for the `legend` of a score (wire.md 6.2).
    pub(super) fn legend(levels: &[Value]) -> Vec<String> {
        levels.iter().map(value_text).collect()
    }
}

/// Null and the empty string are no description; `0`, `false` and `[]` are.
fn says_nothing(description: &Value) -> bool {
    match description {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Instructions in normal form.
pub(super) fn instructions_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string_lossy(),
        other => json_text(other),
    }
}
