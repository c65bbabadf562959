//! Reads documents: YAML files as `kubectl` reads them (untyped first, so that `0.5` is a number and `"0.5"` a string
//! here and on an API server alike), JSON bodies, and typed values out of either with the path of what was refused.

use decision::contract::Digest;
use routing::request::FieldError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tree::Tree;
use crate::unique::Unique;

/// Largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 64;
const MAX_ALIASES: usize = 100;
/// Longest path and longest message of an error, in characters.
const MAX_QUOTED: usize = 500;

/// A file that is no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is larger than [`MAX_BYTES`].
    #[error("has {got} bytes, limit {MAX_BYTES}")]
    TooLarge {
        /// Its size.
        got: usize,
    },
    /// It does not parse.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// From 1.
        line: u64,
        /// From 1.
        column: u64,
        /// What is wrong there.
        message: String,
    },
    /// It parses and a field is wrong.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// Reads one YAML document into a JSON tree: YAML 1.2 booleans only, no duplicate keys, bounded depth and aliases.
///
/// # Errors
/// [`DocumentError::TooLarge`] or [`DocumentError::Syntax`] with the place.
pub fn read_yaml(text: &str) -> Result<Value, DocumentError> {
    bounded(text)?;
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| syntax(&error))
}

/// Reads every document of a YAML stream under the same rules; empty ones are left out. With a `T` made of
/// `serde_saphyr::Spanned` the reader learns where each value stands.
///
/// # Errors
/// As [`read_yaml`]; one bad document spoils the stream.
pub fn read_yaml_stream<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, DocumentError> {
    bounded(text)?;
    serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| syntax(&error))
}

fn bounded(text: &str) -> Result<(), DocumentError> {
    if text.len() > MAX_BYTES {
        return Err(DocumentError::TooLarge { got: text.len() });
    }
    Ok(())
}

fn options() -> serde_saphyr::Options {
    let mut options = serde_saphyr::Options::default();
    options.strict_booleans = true;
    options.with_snippet = false;
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::Error;
    options.non_finite_float_policy = serde_saphyr::NonFiniteFloatPolicy::Reject;
    let mut budget = options.budget.take().unwrap_or_default();
    budget.max_depth = MAX_DEPTH;
    budget.max_aliases = MAX_ALIASES;
    options.budget = Some(budget);
    options
}

fn syntax(error: &serde_saphyr::Error) -> DocumentError {
    let place = error.location();
    let line = place.map_or(1, |place| place.line());
    let column = place.map_or(1, |place| place.column());
    let message = in_our_words(error);
    // The place is said once, before the message.
    let said = format!(" at line {line}, column {column}");
    DocumentError::Syntax {
        line,
        column,
        message: cut(message.strip_suffix(&said).unwrap_or(&message)),
    }
}

/// The library's messages are for programmers: they name its options and functions.
fn in_our_words(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    match error.without_snippet() {
        // What is wrong inside of what an alias stands for; the place that is said is the alias's.
        Error::AliasError { error, .. } => in_our_words(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` stands there twice")
        }
        Error::DuplicateMappingKey { .. } => "a key stands there twice".to_owned(),
        Error::MultipleDocuments { .. } => "another document begins; a file holds one".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => format!(
            "the document is too complex; limits are {MAX_DEPTH} levels and {MAX_ALIASES} aliases"
        ),
        other => other.render_with_formatter(&serde_saphyr::UserMessageFormatter),
    }
}

/// Reads a JSON text into a tree. A key that an object names twice is refused at its path.
///
/// # Errors
/// [`DocumentError::Syntax`] with the place, or [`DocumentError::Field`].
pub fn read_json(text: &str) -> Result<Value, DocumentError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let syntax = |error: &serde_json::Error| DocumentError::Syntax {
        line: error.line() as u64,
        column: error.column() as u64,
        message: cut(without_position(&error.to_string())),
    };
    let Unique(tree) = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        if error.inner().is_data() {
            let path = error.path().to_string();
            DocumentError::Field(field_error(&path, &error.inner().to_string()))
        } else {
            syntax(error.inner())
        }
    })?;
    json.end().map_err(|error| syntax(&error))?;
    Ok(tree)
}

/// A typed value out of a tree. A struct is an object there, never a list of its fields.
///
/// # Errors
/// The path of the first field that is unknown, missing or of the wrong type.
pub fn typed<T: DeserializeOwned>(tree: Value) -> Result<T, FieldError> {
    let mut track = serde_path_to_error::Track::new();
    let deserializer = serde_path_to_error::Deserializer::new(Tree(tree), &mut track);
    T::deserialize(deserializer)
        .map_err(|error| field_error(&track.path().to_string(), &error.to_string()))
}

/// What a reader says, at the path of the field itself. It stops at the parent where a field is missing or stands there
/// twice, and says which one only in its message; and it says where in the text it was, which the path says better.
#[must_use]
pub fn field_error(parent: &str, message: &str) -> FieldError {
    let message = without_position(message);
    let parent = if parent == "." { "" } else { parent };
    let name = ["missing field `", "duplicate field `"]
        .iter()
        .find_map(|start| message.strip_prefix(start)?.strip_suffix('`'));
    let path = match name {
        Some(name) if parent.is_empty() => name.to_owned(),
        Some(name) => format!("{parent}.{name}"),
        None => parent.to_owned(),
    };
    FieldError::new(cut(&path), cut(message))
}

/// The message alone.
fn without_position(message: &str) -> &str {
    match message.rfind(" at line ") {
        Some(at) => &message[..at],
        None => message,
    }
}

/// What an error quotes of a document is bounded, however long it is there.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Compact JSON with sorted keys at every depth: equal trees have equal bytes.
#[must_use]
pub fn canonical(tree: &Value) -> String {
    let mut out = String::new();
    write_canonical(tree, &mut out);
    out
}

fn write_canonical(tree: &Value, out: &mut String) {
    match tree {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (at, (key, value)) in entries.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// `sha256:` and the hex digest of the canonical form.
#[must_use]
pub fn digest(tree: &Value) -> String {
    Digest::of(canonical(tree).as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_yaml_as_an_api_server_would() {
        let tree = read_yaml("a: yes\nb: 0.5\nc: \"0.5\"\nd: true\ne: [1, 2]\n").unwrap();
        assert_eq!(
            tree,
            serde_json::json!({"a": "yes", "b": 0.5, "c": "0.5", "d": true, "e": [1, 2]})
        );
    }

    #[test]
    fn refuses_what_is_no_document_with_its_place() {
        for (name, text) in [
            ("duplicate key", "a: 1\nb: 2\na: 3\n"),
            ("open bracket", "a: [1, 2\n"),
            ("infinite", "a: .inf\n"),
            ("two documents", "a: 1\n---\na: 2\n"),
        ] {
            assert!(
                matches!(read_yaml(text), Err(DocumentError::Syntax { .. })),
                "{name}: {:?}",
                read_yaml(text)
            );
        }
        let Err(DocumentError::Syntax { line, .. }) = read_yaml("a: 1\nb: 2\na: 3\n") else {
            panic!("accepted")
        };
        assert_eq!(line, 3);
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(read_yaml(&deep).is_err());
        let large = format!("a: \"{}\"", "x".repeat(MAX_BYTES));
        assert!(matches!(
            read_yaml(&large),
            Err(DocumentError::TooLarge { .. })
        ));
    }

    /// What is wrong is said for who wrote the document, not for who wrote its reader.
    #[test]
    fn syntax_is_explained_in_our_words() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for (name, text, expected) in [
            (
                "duplicate key",
                "a: 1\na: 3\n",
                "line 2, column 1: the key `a` stands there twice",
            ),
            (
                "two documents",
                "a: 1\n---\na: 2\n",
                "line 3, column 1: another document begins; a file holds one",
            ),
            (
                "deep",
                &deep,
                "line 1, column 65: the document is too complex; limits are 64 levels and 100 aliases",
            ),
            (
                "unknown alias",
                "a: *b\n",
                "line 1, column 4: reference to unknown value",
            ),
        ] {
            assert_eq!(read_yaml(text).unwrap_err().to_string(), expected, "{name}");
        }
        for text in [
            "a: [1, 2\n",
            "a: .inf\n",
            "a: b: c\n",
            "a: \"x\n",
            "? [a]\n: b\n",
        ] {
            let told = read_yaml(text).unwrap_err().to_string();
            for advice in ["Options", "from_str", "Policy", "use ", "::"] {
                assert!(!told.contains(advice), "{text:?}: {told}");
            }
        }
    }

    #[test]
    fn aliases_that_multiply_are_too_complex() {
        let mut text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (name, before) in "bcdefghij".chars().zip("abcdefghi".chars()) {
            let list = vec![format!("*{before}"); 10].join(", ");
            text.push_str(&format!("{name}: &{name} [{list}]\n"));
        }
        let told = read_yaml(&text).unwrap_err().to_string();
        let limits = "the document is too complex; limits are 64 levels and 100 aliases";
        assert!(told.ends_with(limits), "{told}");
        let told = read_yaml_stream::<Value>(&text).unwrap_err().to_string();
        assert!(told.ends_with(limits), "{told}");
    }

    #[test]
    fn a_json_object_names_each_key_once() {
        let text = r#"{"a":[1,-1,1.5,1e300,null,true,"x",{"b":{}}],"c":18446744073709551615}"#;
        let tree: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read_json(text), Ok(tree));
        for (name, text, expected) in [
            (
                "at the top",
                r#"{"a":1,"b":2,"a":1}"#,
                "a: duplicate field `a`",
            ),
            (
                "inside",
                r#"{"a":[{"b":{"c":1,"c":2}}]}"#,
                "a[0].b.c: duplicate field `c`",
            ),
            (
                "written differently",
                r#"{"a":1,"\u0061":2}"#,
                "a: duplicate field `a`",
            ),
            (
                "no JSON",
                "{\n  \"a\": }",
                "line 2, column 8: expected value",
            ),
            ("more", "{} {}", "line 1, column 4: trailing characters"),
        ] {
            assert_eq!(read_json(text).unwrap_err().to_string(), expected, "{name}");
        }
    }

    #[test]
    fn the_path_is_that_of_the_field() {
        for (parent, message, expected) in [
            (".", "missing field `a`", "a: missing field `a`"),
            ("b[1]", "missing field `a`", "b[1].a: missing field `a`"),
            (
                "b",
                "invalid type: null at line 3 column 4",
                "b: invalid type: null",
            ),
            (
                ".",
                "invalid type: null, expected an object",
                "invalid type: null, expected an object",
            ),
        ] {
            assert_eq!(field_error(parent, message).to_string(), expected);
        }
    }

    #[test]
    fn canonical_form_does_not_depend_on_order() {
        let one = serde_json::json!({"b": [1, {"y": null, "x": "é\n"}], "a": true});
        assert_eq!(
            canonical(&one),
            r#"{"a":true,"b":[1,{"x":"é\n","y":null}]}"#
        );
    }
}
