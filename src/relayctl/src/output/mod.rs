//! How answers are written: tables, objects as JSON or YAML, names, or what a JSON path finds.

pub(crate) mod jsonpath;
pub(crate) mod table;
mod yaml;

use std::io::IsTerminal;

use serde_json::{Value, json};

use self::jsonpath::Template;
pub(crate) use self::yaml::to_yaml;
use crate::error::CliError;
use crate::kinds;
use crate::terminal::{self, Reader, escape};
use api::exit::Exit;

/// `apiVersion` of documents that are no objects of an API.
pub(crate) const CLI_VERSION: &str = "relay.dev/cli.v1";

/// Form of an answer (`-o`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// With every column.
    Wide,
    /// Objects as JSON.
    Json,
    /// Objects as YAML.
    Yaml,
    /// `kind.group/name`, one a line.
    Name,
    /// What a template finds.
    JsonPath(Template),
}

impl Format {
    /// Reads the value of `-o`.
    ///
    /// # Errors
    /// What there is.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "table" => Self::Table,
            "wide" => Self::Wide,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            "name" => Self::Name,
            _ => match text.strip_prefix("jsonpath=") {
                Some(template) => Self::JsonPath(Template::parse(template)?),
                None => {
                    return Err(
                        "it is table, wide, json, yaml, name or jsonpath=<template>".to_owned()
                    );
                }
            },
        })
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Wide => "wide",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Name => "name",
            Self::JsonPath(_) => "jsonpath",
        }
    }
}

/// Writes one tree: an object, a list, or a document of ours.
///
/// # Errors
/// A table was asked for, which only the caller can make; or it cannot be written.
pub(crate) fn tree(tree: &Value, format: &Format) -> Result<Reader, CliError> {
    let text = match format {
        Format::Json => to_json(tree),
        Format::Yaml => to_yaml(tree)?,
        Format::JsonPath(template) => {
            let text = template.render(tree);
            if std::io::stdout().is_terminal() {
                visible(&text)
            } else {
                text
            }
        }
        Format::Name => names(tree),
        Format::Table | Format::Wide => {
            return Err(CliError::new(Exit::Failed, "there is no table of this"));
        }
    };
    terminal::print(&text)
}

/// Indented, with a line break at the end, and nothing in it that a terminal would obey.
pub(crate) fn to_json(tree: &Value) -> String {
    let text = format!("{tree:#}\n");
    if text.is_ascii() {
        return text;
    }
    // What is escaped outside of ASCII stands inside of strings only.
    text.chars()
        .map(|c| match escape(c.encode_utf8(&mut [0; 4])) {
            escaped if c != '\n' && escaped.len() > c.len_utf8() => format!("\\u{:04x}", c as u32),
            _ => c.to_string(),
        })
        .collect()
}

/// Text of several lines for a terminal.
pub(crate) fn visible(text: &str) -> String {
    text.split_inclusive(['\n', '\t'])
        .map(|part| match part.strip_suffix(['\n', '\t']) {
            Some(line) => format!("{}{}", escape(line), &part[line.len()..]),
            None => escape(part).into_owned(),
        })
        .collect()
}

fn names(tree: &Value) -> String {
    let one = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&object["metadata"]["name"]);
        let kind = kinds::of_object(&text(&object["apiVersion"]), &text(&object["kind"]));
        let full = match kind {
            Some(kind) => kind.full(&name),
            None => format!("{}/{name}", text(&object["kind"]).to_lowercase()),
        };
        format!("{}\n", escape(&full))
    };
    match tree["items"].as_array() {
        Some(items) => items.iter().map(one).collect(),
        None => one(tree),
    }
}

/// Several objects as one.
pub(crate) fn list(items: Vec<Value>) -> Value {
    let mut list = json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}});
    list["items"] = Value::Array(items);
    list
}

/// An object without who wrote which field: long, and for few.
pub(crate) fn without_managers(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_speak_to_the_terminal_and_stays_the_same() {
        let tree = json!({"a": "\u{1b}[2J\u{9b}31m\u{202e}x", "b": "é日本😀"});
        let text = to_json(&tree);
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text}");
        assert!(text.contains("é日本😀"));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), tree);
    }

    #[test]
    fn names_are_those_of_kubectl() {
        let object = json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": "a"}});
        assert_eq!(names(&object), "routingpolicy.relay.dev/a\n");
        assert_eq!(
            names(&list(vec![object.clone(), object])),
            "routingpolicy.relay.dev/a\nroutingpolicy.relay.dev/a\n"
        );
    }

    #[test]
    fn formats_are_read() {
        assert_eq!(Format::parse("wide"), Ok(Format::Wide));
        assert!(Format::parse("jsonpath={.a}").is_ok());
        assert!(Format::parse("xml").is_err() && Format::parse("jsonpath={").is_err());
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(visible("a\tb\n\u{1b}c\n"), "a\tb\n\\u{1b}c\n");
    }
}
