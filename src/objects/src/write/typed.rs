//! Reading what Kubernetes reads into Go's structs: a value of another type is refused before anybody looks what it says.

use serde_json::Value;

use super::metadata::{self, cannot_unmarshal_field};
use crate::catalog::Resource;

/// The structs of fields, as Go calls them.
const STRUCTS: [(&str, &str); 7] = [
    ("involvedObject", "ObjectReference"),
    ("regarding", "ObjectReference"),
    ("related", "ObjectReference"),
    ("series", "EventSeries"),
    ("deprecatedSource", "EventSource"),
    ("source", "EventSource"),
    ("status", "NamespaceStatus"),
];

/// Times with microseconds; all others have seconds.
const MICRO_TIMES: [&str; 2] = ["eventTime", "lastObservedTime"];

/// What Go says of the first field that has another type than it should.
pub(super) fn mistyped(resource: &Resource, object: &Value) -> Option<String> {
    let definition = &resource.definition;
    if !definition.is_of_kind(object)
        || metadata::of_type(object, "apiVersion") != resource.api_version()
    {
        return Some(format!(
            "no kind {:?} is registered for version {:?}",
            metadata::of_type(object, "kind"),
            metadata::of_type(object, "apiVersion")
        ));
    }
    let root = Place {
        of: &definition.kind,
        path: String::new(),
    };
    fields(&definition.open_api, object, &root)
}

/// Where a value is: in which struct, and the path there.
struct Place<'a> {
    of: &'a str,
    path: String,
}

impl Place<'_> {
    fn refuse(&self, value: &Value, wanted: &str) -> Option<String> {
        Some(cannot_unmarshal_field(value, self.of, &self.path, wanted))
    }
}

fn fields(schema: &Value, object: &Value, place: &Place<'_>) -> Option<String> {
    let known = schema["properties"].as_object()?;
    let all = object.as_object()?.iter();
    let mut all = all.filter(|(key, value)| *key != "metadata" && !value.is_null());
    all.find_map(|(key, value)| {
        let path = match place.path.as_str() {
            "" => key.clone(),
            above => format!("{above}.{key}"),
        };
        let of = place.of;
        field(known.get(key)?, key, value, &Place { of, path })
    })
}

fn field(schema: &Value, key: &str, value: &Value, place: &Place<'_>) -> Option<String> {
    let of = STRUCTS.iter().find(|(known, _)| *known == key);
    let of = of.map_or("NamespaceSpec", |(_, of)| *of);
    match (schema["type"].as_str()?, value) {
        ("object", Value::Object(_)) => {
            let path = place.path.clone();
            fields(schema, value, &Place { of, path })
        }
        // Free JSON has rules of its own.
        ("object", _) if schema["properties"].is_null() => None,
        ("object", _) => place.refuse(value, &format!("v1.{of}")),
        ("integer", _) => {
            let wanted = schema["format"].as_str().unwrap_or("int64");
            let most = if wanted == "int32" {
                i64::from(i32::MAX)
            } else {
                i64::MAX
            };
            let fits = |number: i64| (-most - 1..=most).contains(&number);
            if value.as_i64().is_some_and(fits) {
                return None;
            }
            place.refuse(value, wanted)
        }
        ("string", Value::String(text)) if schema["format"] == "date-time" => not_a_time(key, text),
        ("string", Value::String(_)) | ("array", Value::Array(_)) => None,
        ("string", _) => place.refuse(value, "string"),
        ("array", _) => place.refuse(value, "[]string"),
        _ => None,
    }
}

fn not_a_time(key: &str, text: &str) -> Option<String> {
    let has_micros = MICRO_TIMES.contains(&key);
    let digits = text.split_once('.').map(|(_, rest)| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit);
        digits.count()
    });
    let is_time = text.parse::<jiff::Timestamp>().is_ok();
    if is_time && (!has_micros || digits == Some(6)) {
        return None;
    }
    let layout = if has_micros {
        "2006-01-02T15:04:05.000000Z07:00"
    } else {
        "2006-01-02T15:04:05Z07:00"
    };
    // Where a part of it is good, Go says the rest.
    let (rest, part) = if is_time {
        (&text[text.len().min(19)..], ".000000")
    } else {
        (text, "2006")
    };
    Some(format!(
        "parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}"
    ))
}
