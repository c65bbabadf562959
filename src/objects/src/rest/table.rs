//! `Table`: what `kubectl get` prints.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::json_path::JsonPath;
use crate::catalog::{Nature, Resource};

/// How much of an object a row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Include {
    /// The word of a query.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "None" => Some(Self::Nothing),
            "" | "Metadata" => Some(Self::Metadata),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

enum Cell {
    Name,
    Path { path: JsonPath, type_: String },
    LastSeen,
    Regarding,
}

/// The columns of a kind.
pub(super) struct Columns {
    definitions: Value,
    cells: Vec<Cell>,
}

impl Columns {
    /// Those of its definition; events have their own.
    pub(super) fn of(resource: &Resource) -> Self {
        let mut definitions = vec![column(
            "Name",
            "string",
            "name",
            "Name must be unique within a namespace.",
            0,
        )];
        let mut cells = vec![Cell::Name];
        if resource.nature == Nature::Event {
            return Self::of_events(resource);
        }
        for of in &resource.definition.columns {
            let described = if of.description.is_empty() {
                format!(
                    "Custom resource definition column (in JSONPath format): {}",
                    of.json_path
                )
            } else {
                of.description.clone()
            };
            let format = of.format.as_deref().unwrap_or_default();
            definitions.push(column(&of.name, &of.type_, format, &described, of.priority));
            cells.push(Cell::Path {
                path: JsonPath::parse(&of.json_path),
                type_: of.type_.clone(),
            });
        }
        Self {
            definitions: definitions.into(),
            cells,
        }
    }

    fn of_events(resource: &Resource) -> Self {
        let note = match resource.view {
            crate::catalog::View::Stored => ".note",
            crate::catalog::View::CoreEvent => ".message",
        };
        let path = |path: &str| Cell::Path {
            path: JsonPath::parse(path),
            type_: "string".to_owned(),
        };
        let definitions = json!([
            column(
                "Last Seen",
                "string",
                "",
                "When the event was seen last.",
                0
            ),
            column("Type", "string", "", "Normal or Warning.", 0),
            column("Reason", "string", "", "Why it was done, in one word.", 0),
            column("Object", "string", "", "The object that it happened to.", 0),
            column("Message", "string", "", "What happened, in words.", 0),
            column("Name", "string", "name", "Name of the event.", 1),
        ]);
        let cells = vec![
            Cell::LastSeen,
            path(".type"),
            path(".reason"),
            Cell::Regarding,
            path(note),
            Cell::Name,
        ];
        Self { definitions, cells }
    }

    /// `columnDefinitions`.
    pub(super) const fn definitions(&self) -> &Value {
        &self.definitions
    }

    /// The row of an object.
    pub(super) fn row(&self, object: &Value, include: Include, now: Timestamp) -> Value {
        let cells = self.cells.iter().map(|cell| cell.show(object, now));
        let mut row = json!({"cells": cells.collect::<Vec<_>>()});
        match include {
            Include::Nothing => {}
            Include::Metadata => row["object"] = metadata_only(object),
            Include::Object => row["object"] = object.clone(),
        }
        row
    }
}

fn column(name: &str, type_: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({
        "name": name, "type": type_, "format": format, "description": description, "priority": priority,
    })
}

/// `PartialObjectMetadata`.
pub(super) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

impl Cell {
    fn show(&self, object: &Value, now: Timestamp) -> Value {
        match self {
            Self::Name => object["metadata"]["name"].clone(),
            Self::Path { path, type_ } => match path.first(object) {
                Some(value) => typed(value, type_, now),
                None => Value::Null,
            },
            Self::LastSeen => last_seen(object, now),
            Self::Regarding => regarding(object).into(),
        }
    }
}

fn typed(value: &Value, type_: &str, now: Timestamp) -> Value {
    match (type_, value) {
        (_, Value::Null) => Value::Null,
        ("integer", Value::Number(number)) => {
            // A float counts as what is before its point.
            let whole = number.as_i64().or_else(|| number.as_f64().map(truncated));
            whole.map_or(Value::Null, Into::into)
        }
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", Value::String(_)) => value.clone(),
        ("string", other) => other.to_string().into(),
        ("date", Value::String(text)) => age(text, now).into(),
        _ => Value::Null,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "that is what is wanted")]
const fn truncated(number: f64) -> i64 {
    number as i64
}

/// How long ago a time is, in kubectl's words.
pub(super) fn age(text: &str, now: Timestamp) -> String {
    match text.parse::<Timestamp>() {
        Ok(then) => human(now.as_second() - then.as_second()),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// `duration.HumanDuration` of `k8s.io/apimachinery`.
fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    let two = |large: i64, unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(hours / 24, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{}d", hours / 24),
        63_072_000..252_288_000 => two(hours / 24 / 365, 'y', hours / 24 % 365, 'd'),
        _ => format!("{}y", hours / 24 / 365),
    }
}

/// When an event was seen last: of a series its last time, else the time that its version has.
fn last_seen(event: &Value, now: Timestamp) -> Value {
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["deprecatedLastTimestamp"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    let found = times.into_iter().find_map(Value::as_str);
    found.map_or_else(|| "<unknown>".into(), |text| age(text, now).into())
}

fn regarding(event: &Value) -> String {
    let object = match &event["regarding"] {
        Value::Null => &event["involvedObject"],
        object => object,
    };
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let kind = text("kind").to_lowercase();
    match text("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_those_of_kubectl() {
        for (seconds, shown) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_000, "3h3m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_172_000, "2y1d"),
            (315_360_000, "10y"),
        ] {
            assert_eq!(human(seconds), shown, "{seconds}");
        }
    }
}
