//! Which questions `laya predict` asks, and under which key of the state the text stands.

use std::path::Path;

use decision::json::{self, Object, Value, python_repr, repr_text, trim};
use decision::relay_contract;

use super::query::Query;

/// Largest file of questions, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Questions and the key of the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Questions {
    pub(super) questions: Object,
    pub(super) state_key: String,
}

/// Those of the arguments; by default the router's.
///
/// # Errors
/// One sentence.
pub(super) fn questions(query: &Query) -> Result<Questions, String> {
    match (&query.questions, query.preset.as_deref()) {
        (Some(file), _) => read_file(file),
        (None, None | Some("router")) => Ok(Questions {
            questions: relay_contract().request_questions(),
            state_key: "request".to_owned(),
        }),
        (None, Some(other)) => Err(format!(
            "preset '{other}' is not part of this build; pass --questions FILE"
        )),
    }
}

fn read_file(file: &Path) -> Result<Questions, String> {
    let shown = file.display();
    let size = std::fs::metadata(file)
        .map_err(|error| format!("cannot read {shown}: {error}"))?
        .len();
    if size > MAX_FILE_BYTES {
        return Err(format!("{shown} has {size} bytes, limit {MAX_FILE_BYTES}"));
    }
    let bytes = std::fs::read(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    parse(&bytes).map_err(|problem| format!("{shown}: {problem}"))
}

fn parse(bytes: &[u8]) -> Result<Questions, String> {
    let value = json::read(bytes).map_err(|error| error.to_string())?;
    let Value::Object(file) = value else {
        return Err(
            "--questions file must be a JSON object of question id -> definition".to_owned(),
        );
    };
    let (questions, state_key) = match file.get("questions") {
        Some(inner) if is_wrapped(&file, inner) => {
            let Value::Object(questions) = inner else {
                return Err(
                    "the 'questions' field of the --questions file must be an object".to_owned(),
                );
            };
            let key = file
                .get("state_key")
                .cloned()
                .unwrap_or_else(|| "request".into());
            match key.as_str().filter(|key| !trim(key).is_empty()) {
                Some(key) => (questions.clone(), key.to_owned()),
                None => {
                    return Err(format!(
                        "'state_key' must be a non-empty string, got {}",
                        python_repr(&key)
                    ));
                }
            }
        }
        _ => (file, "request".to_owned()),
    };
    if questions.is_empty() {
        return Err("--questions file holds no questions".to_owned());
    }
    for (id, definition) in &questions {
        if definition.as_object().is_none() {
            return Err(format!(
                "question {} must map to an object, got {}",
                repr_text(id),
                definition.type_name()
            ));
        }
    }
    Ok(Questions {
        questions,
        state_key,
    })
}

/// Whether `questions` is the wrapper's field and not the id of a question.
fn is_wrapped(file: &Object, inner: &Value) -> bool {
    if file
        .keys()
        .any(|key| *key != "questions" && *key != "state_key")
    {
        return false;
    }
    match inner.as_object() {
        _ if file.get("state_key").is_some() => true,
        None => true,
        Some(inner) => {
            inner.is_empty()
                || inner
                    .values()
                    .all(|definition| definition.as_object().is_some())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms() {
        let question = r#"{"type":"noul","instructions":"?"}"#;
        for (name, text, expected) in [
            (
                "a map",
                format!(r#"{{"a":{question}}}"#),
                Ok(("a", "request")),
            ),
            (
                "wrapped",
                format!(r#"{{"questions":{{"a":{question}}}}}"#),
                Ok(("a", "request")),
            ),
            (
                "wrapped with a key",
                format!(r#"{{"state_key":"body","questions":{{"a":{question}}}}}"#),
                Ok(("a", "body")),
            ),
            (
                "a question of that id",
                format!(r#"{{"questions":{question}}}"#),
                Ok(("questions", "request")),
            ),
            (
                "a third key makes it a map",
                format!(r#"{{"questions":{question},"b":{question}}}"#),
                Ok(("questions", "request")),
            ),
            ("a list", "[]".to_owned(), Err("must be a JSON object")),
            ("nothing", "{}".to_owned(), Err("holds no questions")),
            (
                "no object inside",
                r#"{"questions":[]}"#.to_owned(),
                Err("must be an object"),
            ),
            (
                "a blank key",
                format!(r#"{{"state_key":" ","questions":{{"a":{question}}}}}"#),
                Err("'state_key' must be a non-empty string, got ' '"),
            ),
            (
                "a text",
                r#"{"a":"x"}"#.to_owned(),
                Err("question 'a' must map to an object, got str"),
            ),
        ] {
            let read = parse(text.as_bytes());
            match (read, expected) {
                (Ok(read), Ok((first, key))) => {
                    let ids: Vec<String> = read
                        .questions
                        .keys()
                        .map(|id| id.to_string_lossy())
                        .collect();
                    assert_eq!(
                        (ids[0].as_str(), read.state_key.as_str()),
                        (first, key),
                        "{name}"
                    );
                }
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{name}: {error}"),
                (read, _) => panic!("{name}: {read:?}"),
            }
        }
    }
}
