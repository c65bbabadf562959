//! The reference page of a kind, written from its CRD and the closed words, so that it cannot say something else.

use std::fmt::Write;

use serde_json::Value;

use super::crd::crd;
use crate::condition::{ConditionType, Polarity};
use crate::group::{API_VERSION, Kind, NAME_PATTERN, Subresources};
use crate::reason::Reason;

/// The page, as Markdown. `example` is the text of the plainest example of the kind.
#[must_use]
pub fn page(kind: Kind, example: &str) -> String {
    let crd = crd(kind);
    let version = &crd["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut out = String::new();
    head(&mut out, kind, schema, example);
    let spec = &schema["properties"]["spec"];
    out.push_str("\n## Spec\n\n");
    out.push_str(
        "`!` = required, `im` = cannot be changed. Decimals and quantities are strings.\n\n",
    );
    out.push_str("| field | type | default | bounds | meaning |\n|---|---|---|---|---|\n");
    fields(&mut out, "spec", spec, &mut |row: &Row<'_>| {
        row.with_bounds()
    });
    let mut rules = Vec::new();
    find_rules("spec", spec, &mut rules);
    if !rules.is_empty() {
        out.push_str("\n## Rules\n\nBeside types and bounds, which hold for each field alone.\n\n");
        out.push_str("| where | what is refused otherwise | rule |\n|---|---|---|\n");
        for (path, message, rule) in rules {
            let _ = writeln!(out, "| `{path}` | {message} | `{}` |", cell(&rule));
        }
    }
    out.push_str("\n## Status\n\nWritten by the controller; every field may be absent.\n\n");
    out.push_str("| field | type | meaning |\n|---|---|---|\n");
    fields(
        &mut out,
        "status",
        &schema["properties"]["status"],
        &mut |row: &Row<'_>| row.plain(),
    );
    conditions(&mut out, kind);
    columns(&mut out, version);
    out
}

fn head(out: &mut String, kind: Kind, schema: &Value, example: &str) {
    let _ = write!(
        out,
        "<!-- Written by `cargo xtask docs` from src/api/src/kinds; changes here are lost. -->\n\n# {kind}\n\n{}\n\n",
        text(schema, "description")
    );
    let short = kind.short_names().join("`, `");
    let _ = writeln!(
        out,
        "- `apiVersion: {API_VERSION}`, `kind: {kind}`, namespaced; commands take `{}`, `{}`, `{short}`",
        kind.singular(),
        kind.plural()
    );
    let scale = match kind.subresources() {
        Subresources::Status => "",
        Subresources::StatusAndScale => ", `/scale` (`spec.replicas`)",
    };
    let _ = writeln!(out, "- subresources `/status`{scale}");
    out.push_str("- `metadata.name`: 1 to 40 of `a-z`, `0-9` and `-`, begins with a letter, does not end with `-`\n\n");
    let _ = write!(out, "```yaml\n{}\n```\n", example.trim_end());
}

/// One field of a table.
struct Row<'a> {
    path: &'a str,
    schema: &'a Value,
    required: Presence,
    change: Change,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Allowed,
    Refused,
    RefusedOnceSet,
}

impl Row<'_> {
    fn plain(&self) -> String {
        format!(
            "| `{}` | {} | {} |\n",
            self.path,
            kind_of(self.schema),
            cell(text(self.schema, "description"))
        )
    }

    fn with_bounds(&self) -> String {
        let default = match &self.schema["default"] {
            Value::Null => String::new(),
            // Its fields say theirs.
            Value::Object(_) => String::new(),
            plain => format!("`{plain}`"),
        };
        let mut bounds = Vec::new();
        if self.required == Presence::Required {
            bounds.push("!".to_owned());
        }
        match self.change {
            Change::Allowed => {}
            Change::Refused => bounds.push("im".to_owned()),
            Change::RefusedOnceSet => bounds.push("im once set".to_owned()),
        }
        limits(self.schema, &mut bounds);
        format!(
            "| `{}` | {} | {default} | {} | {} |\n",
            self.path,
            kind_of(self.schema),
            bounds.join(", "),
            cell(text(self.schema, "description"))
        )
    }
}

/// A field and everything below it.
fn fields(out: &mut String, path: &str, schema: &Value, write: &mut dyn FnMut(&Row<'_>) -> String) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    for (name, child) in properties {
        let path = format!("{path}.{name}");
        out.push_str(&write(&Row {
            path: &path,
            schema: child,
            required: presence(schema, name),
            change: change(schema, name, child),
        }));
        fields(out, &path, child, write);
        fields(out, &format!("{path}[]"), &child["items"], write);
    }
}

fn presence(parent: &Value, name: &str) -> Presence {
    let required = parent["required"].as_array();
    if required.is_some_and(|list| list.iter().any(|item| item == name)) {
        Presence::Required
    } else {
        Presence::Optional
    }
}

/// Whether a rule of the field, or one of its parent about it, keeps it as it is.
fn change(parent: &Value, name: &str, schema: &Value) -> Change {
    let own = rules_of(schema).any(|rule| text(rule, "rule") == "self == oldSelf");
    let at = format!(".{name}");
    let of_parent = |message: &str| {
        rules_of(parent)
            .any(|rule| text(rule, "fieldPath") == at && text(rule, "message") == message)
    };
    if own && of_parent("cannot be removed once set") {
        Change::RefusedOnceSet
    } else if own || of_parent("is immutable") {
        Change::Refused
    } else {
        Change::Allowed
    }
}

fn rules_of(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
}

fn find_rules(path: &str, schema: &Value, found: &mut Vec<(String, String, String)>) {
    for rule in rules_of(schema) {
        let (message, text_of_rule) = (text(rule, "message"), text(rule, "rule"));
        if matches!(message, "is immutable" | "cannot be removed once set") {
            continue;
        }
        let place = format!("{path}{}", text(rule, "fieldPath"));
        found.push((place, message.to_owned(), text_of_rule.to_owned()));
    }
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        find_rules(&format!("{path}.{name}"), child, found);
    }
    if schema["items"].is_object() {
        find_rules(&format!("{path}[]"), &schema["items"], found);
    }
}

fn kind_of(schema: &Value) -> String {
    match text(schema, "type") {
        "array" => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array();
            let by = keys.and_then(|keys| keys.first()).and_then(Value::as_str);
            let item = kind_of(&schema["items"]);
            match (by, text(schema, "x-kubernetes-list-type")) {
                (Some(key), _) => format!("list by `{key}`"),
                (None, "set") => format!("set of {item}"),
                (None, _) => format!("list of {item}"),
            }
        }
        "object" if schema["additionalProperties"].is_object() => {
            format!("map to {}", kind_of(&schema["additionalProperties"]))
        }
        "integer" => match text(schema, "format") {
            "" => "integer".to_owned(),
            format => format.to_owned(),
        },
        "string" if text(schema, "format") == "date-time" => "time".to_owned(),
        "string" if text(schema, "format") == "date" => "date".to_owned(),
        other => other.to_owned(),
    }
}

fn limits(schema: &Value, bounds: &mut Vec<String>) {
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
        bounds.push(format!("`{}`", words.join("` `")));
    }
    range(schema, ("minimum", "maximum"), "", bounds);
    range(schema, ("minItems", "maxItems"), " entries", bounds);
    range(
        schema,
        ("minProperties", "maxProperties"),
        " entries",
        bounds,
    );
    if let Some(word) = word_for(text(schema, "pattern")) {
        bounds.push(word.to_owned());
    } else {
        range(schema, ("minLength", "maxLength"), " characters", bounds);
        if let Some(pattern) = schema["pattern"].as_str() {
            bounds.push(format!("`{}`", cell(pattern)));
        }
    }
    let items = &schema["items"];
    if items["properties"].is_null() {
        range(
            items,
            ("minLength", "maxLength"),
            " characters each",
            bounds,
        );
        if let Some(words) = items["enum"].as_array() {
            let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
            bounds.push(format!("`{}`", words.join("` `")));
        }
    }
}

/// Patterns that have a name on the page, bounds of length included.
fn word_for(pattern: &str) -> Option<&'static str> {
    let begins = |start: &str| pattern.starts_with(start);
    match pattern {
        NAME_PATTERN => Some("name"),
        _ if begins("^sha256:") => Some("digest"),
        _ if begins(r"^(0(\.[0-9]") => Some("ratio"),
        _ if begins("^[0-9]{1,9}") => Some("decimal"),
        _ if begins("^[0-9]+(") => Some("quantity"),
        _ => None,
    }
}

fn range(schema: &Value, (least, most): (&str, &str), what: &str, bounds: &mut Vec<String>) {
    let number = |key: &str| schema[key].as_i64().map(grouped);
    match (number(least), number(most)) {
        (Some(least), Some(most)) if least == most => bounds.push(format!("{most}{what}")),
        (Some(least), Some(most)) => bounds.push(format!("{least}–{most}{what}")),
        (None, Some(most)) => bounds.push(format!("≤ {most}{what}")),
        (Some(least), None) => bounds.push(format!("≥ {least}{what}")),
        (None, None) => {}
    }
}

/// 1099511627776 is read as 1,099,511,627,776.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if number < 0 { format!("-{out}") } else { out }
}

fn conditions(out: &mut String, kind: Kind) {
    out.push_str(
        "\n## Conditions\n\nReasons that `Ready` borrows from another condition stand there.\n",
    );
    for condition in ConditionType::of(kind) {
        let note = match condition.polarity() {
            Polarity::TrueIsNormal => "",
            Polarity::TrueIsAbnormal => " Absent when it does not hold.",
            Polarity::Informative => " Neither is better.",
        };
        let _ = write!(
            out,
            "\n### {condition}\n\nTrue: {}.{note}\n\n| reason | meaning | what to do |\n|---|---|---|\n",
            condition.meaning()
        );
        for reason in Reason::of(condition).filter(|reason| reason.fits(kind)) {
            let _ = writeln!(
                out,
                "| `{reason}` | {} | {} |",
                cell(reason.meaning()),
                cell(reason.remedy())
            );
        }
    }
}

fn columns(out: &mut String, version: &Value) {
    out.push_str("\n## Columns\n\n| column | from | |\n|---|---|---|\n");
    for column in version["additionalPrinterColumns"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let wide = if column["priority"].as_i64().unwrap_or(0) > 0 {
            " (`-o wide`)"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "| {}{wide} | `{}` | {} |",
            text(column, "name"),
            cell(text(column, "jsonPath")),
            cell(text(column, "description"))
        );
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A `|` would end the cell, also between back-ticks.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Every path of a field of a kind's spec, to be looked for in examples.
#[must_use]
pub fn spec_paths(kind: Kind) -> Vec<String> {
    let crd = crd(kind);
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut paths = Vec::new();
    let spec = &schema["properties"]["spec"];
    fields(&mut String::new(), "spec", spec, &mut |row: &Row<'_>| {
        paths.push(row.path.to_owned());
        String::new()
    });
    paths
}
