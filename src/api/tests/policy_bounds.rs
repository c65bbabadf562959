//! The bounds of the CRD of RoutingPolicy and those of a policy file are the same (control-plane 6): for each bound of the
//! schema, the document that lies on it is read, and the one just beyond is refused.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

use api::document::read_yaml;
use api::group::{Kind, NAME_PATTERN};
use api::kinds::crd::crd;
use api::routing_policy::{PolicyError, RoutingPolicy};
use jiff::civil::date;
use serde_json::{Value, json};

/// Has every field.
const FULL: &str = include_str!("../../../docs/examples/policy-full.yaml");

/// What is wrong with a document; bounds of integers are found when it is compiled.
fn wrong(document: &Value) -> Vec<String> {
    let policy = match RoutingPolicy::read(&document.to_string()) {
        Ok(policy) => policy,
        Err(error) => return vec![error.to_string()],
    };
    match policy.compile(date(2026, 11, 30)) {
        Ok(_) => Vec::new(),
        Err(PolicyError::Document(error)) => vec![error.to_string()],
        Err(PolicyError::Problems(problems)) => problems
            .iter()
            .map(|problem| format!("{}: {}", problem.path, problem.message))
            .collect(),
    }
}

/// A text of that length which the schema's pattern allows.
fn text(schema: &Value, length: usize) -> Option<Value> {
    let text = match schema["pattern"].as_str() {
        None | Some(r"\S") => "x".repeat(length),
        Some(NAME_PATTERN) => "a".repeat(length),
        Some(pattern) if pattern.contains(")/") || pattern.contains("]+/[") => {
            format!("a/{}", "x".repeat(length.checked_sub(2)?))
        }
        // Numbers as text: the pattern is narrower than the length.
        Some(_) => return None,
    };
    Some(json!(text))
}

/// A list of that many entries, made from the first there is; entries with a key have each their own.
fn list(schema: &Value, first: &Value, count: usize) -> Option<Value> {
    let key = schema["x-kubernetes-list-map-keys"][0].as_str();
    let items = &schema["items"];
    (0..count)
        .map(|at| match key {
            // There are as many as the enum has words.
            Some(key) if items["properties"][key]["enum"].is_array() => None,
            Some(key) => {
                let mut item = first.clone();
                item[key] = json!(format!("acme/{at}"));
                Some(item)
            }
            None if items["enum"].is_array() => Some(first.clone()),
            None => Some(json!(format!("acme/{at}"))),
        })
        .collect()
}

/// What a value is, and the value.
type Named = Vec<(String, Value)>;

/// Values on the bounds and just beyond, each with what it is.
fn values(schema: &Value, now: &Value) -> (Named, Named) {
    let bound = |name: &str| {
        schema[name]
            .as_u64()
            .map(|bound| usize::try_from(bound).unwrap())
    };
    let (mut good, mut bad) = (Named::new(), Named::new());
    let mut put = |to_good: bool, what: String, value: Option<Value>| {
        let rows = if to_good { &mut good } else { &mut bad };
        rows.extend(value.map(|value| (what, value)));
    };
    match schema["type"].as_str().unwrap() {
        "string" if schema["format"].is_null() => {
            if let Some(most) = bound("maxLength") {
                put(true, format!("{most} characters"), text(schema, most));
                put(
                    false,
                    format!("{} characters", most + 1),
                    text(schema, most + 1),
                );
            }
            match bound("minLength") {
                Some(1) => put(false, "no character".to_owned(), Some(json!(""))),
                None if schema["enum"].is_null() && schema["pattern"].is_null() => {
                    put(true, "no character".to_owned(), Some(json!("")));
                }
                _ => {}
            }
        }
        "array" => {
            let first = &now[0];
            let most = bound("maxItems").unwrap();
            put(true, format!("{most} entries"), list(schema, first, most));
            put(
                false,
                format!("{} entries", most + 1),
                list(schema, first, most + 1),
            );
            put(
                bound("minItems").is_none(),
                "no entry".to_owned(),
                Some(json!([])),
            );
        }
        "integer" if schema["format"] == "int32" => {
            let (least, most) = (
                schema["minimum"].as_i64().unwrap(),
                schema["maximum"].as_i64().unwrap(),
            );
            for value in [least, most] {
                put(true, value.to_string(), Some(json!(value)));
            }
            for value in [least - 1, most + 1] {
                put(false, value.to_string(), Some(json!(value)));
            }
        }
        _ => {}
    }
    (good, bad)
}

/// Tries every bound at and below a place of the document.
fn try_all(whole: &Value, pointer: &str, schema: &Value, tried: &mut usize) {
    let now = whole
        .pointer(pointer)
        .unwrap_or_else(|| panic!("the full example has no {pointer}"));
    let with = |value: &Value| {
        let mut changed = whole.clone();
        *changed.pointer_mut(pointer).unwrap() = value.clone();
        changed
    };
    let integer = schema["type"] == "integer";
    let (good, bad) = values(schema, now);
    *tried += good.len() + bad.len();
    for (what, value) in good {
        let document = with(&value);
        // What a value means is another matter: a profile of 128 letters is unknown.
        let form = RoutingPolicy::read(&document.to_string());
        assert!(
            form.is_ok(),
            "{pointer} with {what} is refused: {:?}",
            form.err()
        );
        if integer {
            assert_eq!(wrong(&document), Vec::<String>::new(), "{pointer} = {what}");
        }
    }
    for (what, value) in bad {
        let found = wrong(&with(&value));
        // The path of a policy, `spec.tiers[0].models`, and of JSON, `/spec/tiers/0/models`, name the same field last.
        let last = pointer
            .rsplit('/')
            .find(|part| part.parse::<usize>().is_err())
            .unwrap();
        let named = found.iter().any(|text| text.contains(last));
        let keyed = found
            .iter()
            .any(|text| text.contains("key") || text.contains("blank"));
        assert!(named || keyed, "{pointer} with {what}: {found:?}");
    }
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        // Entries of a list need not all have every field.
        let pointer = format!("{pointer}/{name}");
        if whole.pointer(&pointer).is_some() {
            try_all(whole, &pointer, child, tried);
        }
    }
    if schema["items"].is_object() {
        try_all(whole, &format!("{pointer}/0"), &schema["items"], tried);
    }
}

#[test]
fn a_file_is_refused_where_the_crd_refuses_and_not_before() {
    let mut whole = read_yaml(FULL).unwrap();
    assert_eq!(wrong(&whole), Vec::<String>::new());
    // The first entry of each list shows every field.
    whole["spec"]["keywords"][0]["unless"] = json!(["gateway"]);
    let crd = crd(Kind::RoutingPolicy);
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut tried = 0;
    try_all(&whole, "/spec", schema, &mut tried);
    assert!(tried >= 100, "{tried} bounds");
}
