//! Reading `decisions.json` (routing.md 1.2): the order of the file is the order of the contract, and whatever could be
//! read in two ways is refused with its path.

use std::collections::HashSet;
use std::fmt;

use super::{
    ChoiceOption, Contract, Criteria, Kind, MAX_FILE_BYTES, MAX_OPTIONS, MAX_QUESTIONS, NoulTexts,
    Question,
};
use crate::json::{Object, ReadError, Value, read_keeping_duplicates, trim};

/// Why a file is no contract: where, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ImportError {
    /// Path of the refused part, for example `decisions.agent.criteria`; empty for the file as a whole.
    pub path: String,
    /// What is wrong.
    #[source]
    pub fault: ImportFault,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "{}", self.fault)
        } else {
            write!(f, "{}: {}", self.path, self.fault)
        }
    }
}

/// What can be wrong with a part of `decisions.json`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportFault {
    /// The file is too large.
    #[error("the file has {bytes} bytes, limit {MAX_FILE_BYTES}")]
    FileTooLarge {
        /// Size of the file.
        bytes: usize,
    },
    /// The file is not UTF-8.
    #[error("the file is not UTF-8 text")]
    NotUtf8,
    /// The file is not JSON.
    #[error("the file is not JSON: {0}")]
    NotJson(ReadError),
    /// A part that must be there is not.
    #[error("is missing")]
    Missing,
    /// Another JSON type is needed.
    #[error("expected {expected}, got {got}")]
    WrongType {
        /// What is needed.
        expected: &'static str,
        /// What is there.
        got: &'static str,
    },
    /// A key that a question does not have.
    #[error("unknown key `{key}`: a question has `type`, `instructions` and `criteria`")]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A key, id or option that occurs twice.
    #[error("`{name}` occurs twice")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A question id or instructions without visible characters.
    #[error("must not be blank")]
    Blank,
    /// A kind that does not exist.
    #[error("unknown type `{got}`: expected one of choice, score, noul")]
    UnknownKind {
        /// The word in the file.
        got: String,
    },
    /// A noul answer that does not exist.
    #[error("unknown answer `{got}`: a noul question has `true` and `false`")]
    UnknownAnswer {
        /// The key in the file.
        got: String,
    },
    /// No question, option or level where at least one is needed.
    #[error("needs at least one entry")]
    Empty,
    /// Too many questions, options or levels.
    #[error("has {got} entries, limit {limit}")]
    TooMany {
        /// How many.
        got: usize,
        /// How many at most.
        limit: usize,
    },
    /// A text that cannot be written as UTF-8.
    #[error("holds an unpaired surrogate")]
    UnpairedSurrogate,
}

impl Contract {
    /// Reads `decisions.json`. Unknown top-level keys are ignored, missing `description` and `language` read as empty
    /// and `auto`.
    ///
    /// # Errors
    /// The first part that breaks a rule of routing.md 1.2, with its path. Beyond the page, what no server could be
    /// asked is refused as well: no question at all, blank ids or instructions, a choice or score without entries, a
    /// null level.
    pub fn import(bytes: &[u8]) -> Result<Self, ImportError> {
        let file = read_file(bytes)?;
        let file = file
            .as_object()
            .ok_or_else(|| wrong_type("", "an object", &file))?;
        refuse_duplicates(file, "")?;
        let text = |key: &'static str, default: &str| match file.get(key) {
            None => Ok(default.to_owned()),
            Some(value) => string(value, key),
        };
        let questions = file
            .get("decisions")
            .ok_or_else(|| fault("decisions", ImportFault::Missing))?;
        Ok(Self::new(
            text("description", "")?,
            text("language", "auto")?,
            questions_of(questions, "decisions")?,
        ))
    }

    /// Reads a bare object id → question, as trained checkpoints carry it in `questions.json` (wire.md 12.4, 19.2).
    ///
    /// # Errors
    /// As [`Contract::import`]; paths begin with the question id.
    pub fn import_questions(bytes: &[u8]) -> Result<Self, ImportError> {
        Ok(Self::new(
            String::new(),
            "auto".to_owned(),
            questions_of(&read_file(bytes)?, "")?,
        ))
    }
}

fn read_file(bytes: &[u8]) -> Result<Value, ImportError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(fault("", ImportFault::FileTooLarge { bytes: bytes.len() }));
    }
    // A zero byte would make the reader take the file for UTF-16 or UTF-32.
    if bytes.contains(&0) || std::str::from_utf8(bytes).is_err() {
        return Err(fault("", ImportFault::NotUtf8));
    }
    read_keeping_duplicates(bytes).map_err(|error| fault("", ImportFault::NotJson(error)))
}

fn questions_of(value: &Value, path: &str) -> Result<Vec<Question>, ImportError> {
    let object = value
        .as_object()
        .ok_or_else(|| wrong_type(path, "an object", value))?;
    check_count(object.len(), MAX_QUESTIONS, path)?;
    refuse_duplicates(object, path)?;
    object
        .iter()
        .map(|(id, definition)| {
            let id = id
                .as_str()
                .ok_or_else(|| fault(path, ImportFault::UnpairedSurrogate))?;
            let path = join(path, id);
            if trim(id).is_empty() {
                return Err(fault(&path, ImportFault::Blank));
            }
            question(id, definition, &path)
        })
        .collect()
}

fn question(id: &str, definition: &Value, path: &str) -> Result<Question, ImportError> {
    let definition = definition
        .as_object()
        .ok_or_else(|| wrong_type(path, "an object", definition))?;
    if let Some(key) = definition.keys().find(|key| {
        ["type", "instructions", "criteria"]
            .iter()
            .all(|known| *key != known)
    }) {
        return Err(fault(
            path,
            ImportFault::UnknownKey {
                key: key.to_string_lossy(),
            },
        ));
    }
    refuse_duplicates(definition, path)?;
    let required = |key: &str| {
        definition
            .get(key)
            .ok_or_else(|| fault(&join(path, key), ImportFault::Missing))
    };
    let kind_path = join(path, "type");
    let kind = string(required("type")?, &kind_path)?;
    let kind = Kind::from_word(&kind)
        .ok_or_else(|| fault(&kind_path, ImportFault::UnknownKind { got: kind }))?;
    let instructions_path = join(path, "instructions");
    let instructions = string(required("instructions")?, &instructions_path)?;
    if trim(&instructions).is_empty() {
        return Err(fault(&instructions_path, ImportFault::Blank));
    }
    let criteria_path = join(path, "criteria");
    let criteria = match (kind, definition.get("criteria")) {
        (Kind::Noul, None | Some(Value::Null)) => Criteria::Noul(None),
        (Kind::Noul, Some(texts)) => Criteria::Noul(noul_texts(texts, &criteria_path)?),
        (_, None) => return Err(fault(&criteria_path, ImportFault::Missing)),
        (Kind::Choice, Some(options)) => Criteria::Choice(choice_options(options, &criteria_path)?),
        (Kind::Score, Some(levels)) => Criteria::Score(score_levels(levels, &criteria_path)?),
    };
    Ok(Question {
        id: id.to_owned(),
        instructions,
        criteria,
    })
}

fn choice_options(value: &Value, path: &str) -> Result<Vec<ChoiceOption>, ImportError> {
    let object = value
        .as_object()
        .ok_or_else(|| wrong_type(path, "an object of option and text", value))?;
    check_count(object.len(), MAX_OPTIONS, path)?;
    refuse_duplicates(object, path)?;
    object
        .iter()
        .map(|(id, text)| {
            let id = id
                .as_str()
                .ok_or_else(|| fault(path, ImportFault::UnpairedSurrogate))?;
            Ok(ChoiceOption {
                id: id.to_owned(),
                text: text_or_null(text, &join(path, id))?,
            })
        })
        .collect()
}

fn score_levels(value: &Value, path: &str) -> Result<Vec<String>, ImportError> {
    let levels = value
        .as_list()
        .ok_or_else(|| wrong_type(path, "an array of level texts", value))?;
    check_count(levels.len(), MAX_OPTIONS, path)?;
    levels
        .iter()
        .enumerate()
        .map(|(index, level)| string(level, &format!("{path}[{index}]")))
        .collect()
}

fn noul_texts(value: &Value, path: &str) -> Result<Option<NoulTexts>, ImportError> {
    let object = value
        .as_object()
        .ok_or_else(|| wrong_type(path, "an object of `true` and `false`", value))?;
    refuse_duplicates(object, path)?;
    if object.is_empty() {
        return Ok(None);
    }
    let mut texts = NoulTexts::default();
    for (answer, text) in object {
        let place = match answer.as_str() {
            Some("true") => &mut texts.when_true,
            Some("false") => &mut texts.when_false,
            _ => {
                return Err(fault(
                    path,
                    ImportFault::UnknownAnswer {
                        got: answer.to_string_lossy(),
                    },
                ));
            }
        };
        *place = text_or_null(text, &join(path, &answer.to_string_lossy()))?;
    }
    Ok(Some(texts))
}

fn string(value: &Value, path: &str) -> Result<String, ImportError> {
    let text = value
        .as_text()
        .ok_or_else(|| wrong_type(path, "a string", value))?;
    text.as_str()
        .map(str::to_owned)
        .ok_or_else(|| fault(path, ImportFault::UnpairedSurrogate))
}

fn text_or_null(value: &Value, path: &str) -> Result<Option<String>, ImportError> {
    match value {
        Value::Null => Ok(None),
        Value::String(_) => string(value, path).map(Some),
        other => Err(wrong_type(path, "a string or null", other)),
    }
}

fn check_count(got: usize, limit: usize, path: &str) -> Result<(), ImportError> {
    match got {
        0 => Err(fault(path, ImportFault::Empty)),
        _ if got > limit => Err(fault(path, ImportFault::TooMany { got, limit })),
        _ => Ok(()),
    }
}

fn refuse_duplicates(object: &Object, path: &str) -> Result<(), ImportError> {
    let mut seen = HashSet::new();
    match object.keys().find(|key| !seen.insert(*key)) {
        Some(key) => Err(fault(
            path,
            ImportFault::Duplicate {
                name: key.to_string_lossy(),
            },
        )),
        None => Ok(()),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn fault(path: &str, fault: ImportFault) -> ImportError {
    ImportError {
        path: path.to_owned(),
        fault,
    }
}

fn wrong_type(path: &str, expected: &'static str, value: &Value) -> ImportError {
    let got = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::String(_) => "a string",
        Value::List(_) => "an array",
        Value::Object(_) => "an object",
    };
    fault(path, ImportFault::WrongType { expected, got })
}
