//! The rules of wire.md 5, in their order and with the texts of section 7: the first failure of the first question wins.

use super::label::Label;
use super::question::{ChoiceOption, Form, Question, instructions_text};
use super::refusal::Refusal;
use crate::contract::Kind;
use crate::json::{Object, Text, Value, python_repr, repr_text, trim};

/// Checks every question in order and gives their normal form.
///
/// # Errors
/// The first rule that the first bad question breaks, as a refusal of status 422.
pub fn check_questions(questions: &Object) -> Result<Vec<Question>, Refusal> {
    questions
        .iter()
        .map(|(id, definition)| check_question(id, definition))
        .collect()
}

/// Checks one question and gives its normal form.
///
/// # Errors
/// The first rule that it breaks, as a refusal of status 422.
pub fn check_question(id: &Text, definition: &Value) -> Result<Question, Refusal> {
    let name = id.to_string_lossy();
    if trim(&name).is_empty() {
        return Err(Refusal::unprocessable(format!(
            "question id must be a non-empty string, got {}",
            repr_text(id)
        )));
    }
    let rules = Rules { id };
    let definition = definition.as_object().ok_or_else(|| {
        rules.broken(format!(
            "definition must be a dict, got {}",
            definition.type_name()
        ))
    })?;
    let kind = rules.kind(definition)?;
    let instructions = rules.instructions(definition)?;
    let criteria = definition.get("criteria");
    let form = match kind {
        Kind::Choice => Form::Choice(rules.choice(criteria)?),
        Kind::Score => Form::Score(rules.score(criteria)?),
        Kind::Noul => Form::Noul {
            descriptions: rules.noul(criteria)?,
            labels: None,
        },
    };
    let mut question = Question {
        id: name,
        instructions,
        form,
        option_order: None,
    };
    if let Some(order) = definition.get("option_order") {
        question.option_order = Some(rules.option_order(order, question.option_count())?);
    }
    if let Some(words) = definition.get("labels") {
        let Form::Noul { labels, .. } = &mut question.form else {
            return Err(rules.broken("'labels' is only supported for noul questions"));
        };
        *labels = rules.noul_labels(words)?;
    }
    Ok(question)
}

/// The rules for one question, whose id begins every message.
struct Rules<'a> {
    id: &'a Text,
}

impl Rules<'_> {
    fn broken(&self, detail: impl AsRef<str>) -> Refusal {
        Refusal::unprocessable(format!(
            "question {}: {}",
            repr_text(self.id),
            detail.as_ref()
        ))
    }

    fn kind(&self, definition: &Object) -> Result<Kind, Refusal> {
        let sent = definition.get("type").unwrap_or(&Value::Null);
        sent.as_str().and_then(Kind::from_word).ok_or_else(|| {
            self.broken(format!(
                "unknown type {}; use one of ['choice', 'noul', 'score']",
                python_repr(sent)
            ))
        })
    }

    fn instructions(&self, definition: &Object) -> Result<String, Refusal> {
        const ENDING: &str = "add the text the model should answer";
        let empty = || self.broken(format!("'instructions' must not be empty; {ENDING}"));
        match definition.get("instructions") {
            None => Err(self.broken(format!("no 'instructions'; {ENDING}"))),
            Some(Value::Null) => {
                Err(self.broken(format!("'instructions' must not be None; {ENDING}")))
            }
            Some(Value::String(text)) if trim(&text.to_string_lossy()).is_empty() => Err(empty()),
            Some(Value::List(items)) if items.is_empty() => Err(empty()),
            Some(Value::Object(object)) if object.is_empty() => Err(empty()),
            Some(value) => Ok(instructions_text(value)),
        }
    }

    fn choice(&self, criteria: Option<&Value>) -> Result<Vec<ChoiceOption>, Refusal> {
        let none = || self.broken("a choice question needs at least one criterion");
        match criteria {
            Some(Value::Object(options)) if options.is_empty() => Err(none()),
            Some(Value::List(labels)) if labels.is_empty() => Err(none()),
            Some(Value::Object(options)) => Ok(options
                .iter()
                .map(|(label, description)| ChoiceOption {
                    label: label.clone().into(),
                    description: description.clone(),
                })
                .collect()),
            Some(Value::List(labels)) => self.listed_labels(labels),
            _ => Err(self.broken(
                "a choice question takes 'criteria' as a dict of label -> description, or a list of labels",
            )),
        }
    }

    fn listed_labels(&self, sent: &[Value]) -> Result<Vec<ChoiceOption>, Refusal> {
        let labels = sent.iter().enumerate().map(|(index, value)| {
            Label::new(value).ok_or_else(|| match value {
                Value::Null => self.broken(format!(
                    "choice label {index} is null; a label is rendered as option text and used as the answer key, so it \
                     must be a string, number or bool -- a null label renders as the text \"None\" while its answer key \
                     is \"null\""
                )),
                other => self.broken(format!(
                    "choice label {index} is a {}; a label is rendered as option text and used as the answer key, so it \
                     must be a scalar (a string, number or bool), got {}",
                    other.type_name(),
                    python_repr(other)
                )),
            })
        });
        let labels = labels.collect::<Result<Vec<_>, _>>()?;
        for (index, label) in labels.iter().enumerate() {
            if let Some(earlier) = labels[..index]
                .iter()
                .position(|earlier| earlier.is_same(label))
            {
                return Err(self.broken(format!(
                    "choice label {index} ({}) repeats label {earlier}; the labels are the answer keys, so every option \
                     needs its own (1, 1.0 and True are one key)",
                    python_repr(label.value())
                )));
            }
        }
        Ok(labels
            .into_iter()
            .map(|label| ChoiceOption {
                label,
                description: Value::Null,
            })
            .collect())
    }

    fn score(&self, criteria: Option<&Value>) -> Result<Vec<Value>, Refusal> {
        let levels = criteria.and_then(Value::as_list).ok_or_else(|| {
            self.broken(
                "a score question takes 'criteria' as a list of level descriptions, index 0 first",
            )
        })?;
        if levels.is_empty() {
            return Err(self.broken("a score question needs at least one level"));
        }
        match levels.iter().position(Value::is_null) {
            Some(index) => Err(self.broken(format!(
                "score level {index} is null; give every level a description, index 0 first"
            ))),
            None => Ok(levels.to_vec()),
        }
    }

    /// Descriptions of false and true; keys in any case, a later one of the same word wins.
    fn noul(&self, criteria: Option<&Value>) -> Result<[Value; 2], Refusal> {
        let mut descriptions = [Value::Null, Value::Null];
        let object = match criteria {
            None | Some(Value::Null) => return Ok(descriptions),
            Some(Value::Object(object)) => object,
            Some(_) => {
                return Err(self.broken(
                    "a noul question takes 'criteria' as a dict with optional 'true'/'false' descriptions, or omits it",
                ));
            }
        };
        let mut foreign = false;
        for (key, description) in object {
            match key.to_string_lossy().to_lowercase().as_str() {
                "false" => descriptions[0] = description.clone(),
                "true" => descriptions[1] = description.clone(),
                _ => foreign = true,
            }
        }
        if foreign {
            Err(self.foreign_noul_keys(object))
        } else {
            Ok(descriptions)
        }
    }

    fn foreign_noul_keys(&self, object: &Object) -> Refusal {
        let mut keys: Vec<String> = object
            .keys()
            .map(|key| key.to_string_lossy().to_lowercase())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let keys = Value::List(keys.into_iter().map(Value::from).collect());
        self.broken(format!(
            "a noul question takes 'criteria' keyed only 'true'/'false' (either or both, and omitted is fine), got {}. \
             Those keys are the option texts the model reads; any other key was silently dropped and replaced with the \
             defaults. If you want the answer worded differently, keep 'criteria' keyed 'true'/'false' and set 'labels' \
             instead.",
            python_repr(&keys)
        ))
    }

    fn option_order(&self, sent: &Value, count: usize) -> Result<Vec<usize>, Refusal> {
        permutation(sent, count).ok_or_else(|| {
            self.broken(format!(
                "'option_order' must be a permutation of range({count}) -- one slot per option, each option once -- got \
                 {}",
                python_repr(sent)
            ))
        })
    }

    /// Words for false and true; null keeps the defaults.
    fn noul_labels(&self, sent: &Value) -> Result<Option<[String; 2]>, Refusal> {
        if sent.is_null() {
            return Ok(None);
        }
        let words = sent
            .as_object()
            .filter(|object| object.len() == 2)
            .and_then(|object| {
                let word = |key| {
                    Some(trim(object.get(key)?.as_str()?).to_owned())
                        .filter(|word| !word.is_empty())
                };
                Some([word("false")?, word("true")?])
            });
        let words = words.filter(|[when_false, when_true]| when_false != when_true);
        words.map(Some).ok_or_else(|| {
            self.broken(
                "noul labels must map exactly 'false' and 'true' to distinct non-empty strings",
            )
        })
    }
}

/// A list of 0..count in any order, integers only.
fn permutation(sent: &Value, count: usize) -> Option<Vec<usize>> {
    let items = sent.as_list().filter(|items| items.len() == count)?;
    let mut seen = vec![false; count];
    items
        .iter()
        .map(|item| {
            let Value::Integer(integer) = item else {
                return None;
            };
            let index = usize::try_from(integer.as_i64()?).ok()?;
            let seen = seen.get_mut(index)?;
            (!std::mem::replace(seen, true)).then_some(index)
        })
        .collect()
}
