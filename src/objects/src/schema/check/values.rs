//! One value against one node (`kube-openapi/pkg/validation/validate`): all checks are made, in a fixed order, whatever
//! the ones before them said.

use serde_json::{Map, Value, json};

use super::super::go_text;
use super::super::node::{Bound, Node, Reach};
use super::super::path::Path;
use super::correlation::Pair;
use super::junctors::check_junctors;
use super::outcome::{Fault, Outcome};

/// Checks a value that nothing is excused for.
pub(in super::super) fn check(node: &Node, path: &Path<'_>, value: &Value) -> Outcome {
    check_against(node, path, value, None)
}

/// Checks the new side of a pair; faults of parts that are as they were are dropped.
pub(in super::super) fn check_update(node: &Node, path: &Path<'_>, pair: Pair<'_>) -> Outcome {
    let mut outcome = check_against(node, path, pair.new, Some(&pair));
    if !outcome.is_valid() && pair.is_unchanged() {
        outcome.faults.clear();
    }
    outcome
}

fn check_against(node: &Node, path: &Path<'_>, value: &Value, pair: Option<&Pair<'_>>) -> Outcome {
    let mut outcome = check_type(node, path, value);
    if value.is_null() {
        outcome.merge(check_enum(node, path, value));
        return outcome;
    }
    let has_type = !node.kind.names().is_empty() || node.format.is_some();
    outcome.passed += u32::from(has_type);
    let mut merge = |part: Outcome| {
        outcome.merge(part);
        outcome.passed += 1;
    };
    merge(check_junctors(node, path, value));
    match value {
        Value::String(text) => {
            merge(check_string(node, path, text));
            if node.format.is_some() {
                merge(check_format(node, path, text));
            }
        }
        Value::Number(_) => merge(check_number(node, path, value)),
        Value::Array(items) => merge(check_items(node, path, items, pair)),
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    merge(check_enum(node, path, value));
    if let Value::Object(map) = value {
        merge(check_object(node, path, map, pair));
    }
    outcome.passed += 1;
    outcome
}

/// The name of a value's JSON type, and the format that Go's type of it has.
fn described(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn check_type(node: &Node, path: &Path<'_>, value: &Value) -> Outcome {
    let wanted = node.kind.names();
    let (name, format) = described(value);
    let passed = Outcome { passed: 1, ..Outcome::default() };
    if value.is_null() {
        return if wanted.is_empty() || node.nullable {
            passed
        } else {
            Outcome::fault(Fault::wrong_type(path.dotted(), wanted, "null"))
        };
    }
    if wanted.is_empty() && node.format.is_none() {
        return Outcome::default();
    }
    if let Some(asked) = &node.format {
        // only strings have formats that are checked; a list passes here, as there
        return match value {
            Value::String(_) | Value::Array(_) => passed,
            _ => Outcome::fault(Fault::wrong_type(path.dotted(), &asked.name, format)),
        };
    }
    let whole_float = name == "number" && node.kind.takes("integer") && value.as_f64().is_some_and(is_whole);
    let integer_as_number = name == "integer" && node.kind.takes("number");
    if node.kind.takes(name) || whole_float || integer_as_number {
        passed
    } else {
        Outcome::fault(Fault::wrong_type(path.dotted(), wanted, name))
    }
}

/// `swag.IsFloat64AJSONInteger`, its tolerance included.
fn is_whole(value: f64) -> bool {
    const JSON_MAX: f64 = ((1_i64 << 53) - 1) as f64;
    const EPSILON: f64 = 1e-9;
    if !value.is_finite() || value.abs() > JSON_MAX {
        return false;
    }
    let whole = value.trunc();
    value == whole || (whole != 0.0 && (value - whole).abs() / (value.abs() + whole.abs()) < EPSILON)
}

fn check_enum(node: &Node, path: &Path<'_>, value: &Value) -> Outcome {
    let same = |allowed: &Value| match (allowed, value) {
        // null is never in an enumeration there
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(allowed), Value::Number(found)) => allowed.as_f64() == found.as_f64(),
        (allowed, found) => allowed == found,
    };
    if node.allowed.is_empty() || node.allowed.iter().any(same) {
        return Outcome::default();
    }
    Outcome::fault(Fault::not_supported(path.dotted(), value, &node.allowed))
}

/// The first that fails of length and pattern.
fn check_string(node: &Node, path: &Path<'_>, text: &str) -> Outcome {
    let length = || text.chars().count() as u64;
    let fault = if let Some(most) = node.max_length.filter(|most| length() > *most) {
        Fault::too_long(path.dotted(), most)
    } else if let Some(least) = node.min_length.filter(|least| length() < *least) {
        Fault::invalid(path.dotted(), json!(text), &format!("should be at least {least} chars long"))
    } else if let Some(pattern) = node.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        Fault::invalid(path.dotted(), json!(text), &format!("should match '{}'", pattern.source()))
    } else {
        return Outcome::default();
    };
    Outcome::fault(fault)
}

fn check_format(node: &Node, path: &Path<'_>, text: &str) -> Outcome {
    match &node.format {
        Some(format) if !format.form.accepts(text) => {
            Outcome::fault(Fault::wrong_type(path.dotted(), &format.name, text))
        }
        _ => Outcome::default(),
    }
}

fn check_number(node: &Node, path: &Path<'_>, value: &Value) -> Outcome {
    let mut outcome = Outcome { passed: 1, ..Outcome::default() };
    if node.multiple_of.is_some_and(|factor| value.is_i64() && factor as i64 == 0) {
        outcome.add(Fault::factor_is_zero(path.dotted()));
    } else if let Some(factor) = node.multiple_of.filter(|factor| !is_multiple(value, *factor)) {
        let said = format!("should be a multiple of {}", limit_text(value, factor));
        outcome.add(Fault::invalid(path.dotted(), value.clone(), &said));
    }
    let mut invalid = |said: String| outcome.add(Fault::invalid(path.dotted(), value.clone(), &said));
    if let Some(bound) = node.minimum.filter(|bound| !holds(value, bound, Side::Lower)) {
        let words = if bound.reach == Reach::Exclusive { "greater than" } else { "greater than or equal to" };
        invalid(format!("should be {words} {}", limit_text(value, bound.limit)));
    }
    if let Some(bound) = node.maximum.filter(|bound| !holds(value, bound, Side::Upper)) {
        let words = if bound.reach == Reach::Exclusive { "less than" } else { "less than or equal to" };
        invalid(format!("should be {words} {}", limit_text(value, bound.limit)));
    }
    outcome
}

#[derive(Clone, Copy)]
enum Side {
    Lower,
    Upper,
}

/// Integers are compared as integers: the limit loses its fraction, as there.
fn holds(value: &Value, bound: &Bound, side: Side) -> bool {
    use std::cmp::Ordering;
    let order = match value.as_i64() {
        Some(whole) => whole.cmp(&(bound.limit as i64)),
        None => value.as_f64().and_then(|float| float.partial_cmp(&bound.limit)).unwrap_or(Ordering::Equal),
    };
    match (side, bound.reach) {
        (_, Reach::Exclusive) if order == Ordering::Equal => false,
        (Side::Lower, _) => order != Ordering::Less,
        (Side::Upper, _) => order != Ordering::Greater,
    }
}

fn limit_text(value: &Value, limit: f64) -> String {
    if value.is_i64() { (limit as i64).to_string() } else { go_text::float_v(limit) }
}

fn is_multiple(value: &Value, factor: f64) -> bool {
    match value.as_i64() {
        Some(whole) => whole.checked_rem(factor as i64).is_some_and(|rest| rest == 0),
        None if factor < 1.0 => value.as_f64().is_some_and(|float| is_whole(1.0 / factor * float)),
        None => value.as_f64().is_some_and(|float| is_whole(float / factor)),
    }
}

fn check_items(node: &Node, path: &Path<'_>, items: &[Value], pair: Option<&Pair<'_>>) -> Outcome {
    let mut outcome = Outcome { passed: 1, ..Outcome::default() };
    if let Some(child) = node.items.as_deref() {
        for (index, item) in items.iter().enumerate() {
            let path = path.item(index);
            outcome.merge(match pair.and_then(|pair| pair.index(index)) {
                Some(pair) => check_update(child, &path, pair),
                None => check(child, &path, item),
            });
        }
    }
    let count = items.len() as u64;
    if let Some(least) = node.min_items.filter(|least| count < *least) {
        outcome.add(Fault::invalid(path.dotted(), json!(count), &format!("should have at least {least} items")));
    }
    if let Some(most) = node.max_items.filter(|most| count > *most) {
        outcome.add(Fault::too_many(path.dotted(), items.len(), most));
    }
    outcome
}

fn check_object(node: &Node, path: &Path<'_>, map: &Map<String, Value>, pair: Option<&Pair<'_>>) -> Outcome {
    let mut outcome = Outcome::default();
    let count = map.len() as u64;
    if let Some(least) = node.min_properties.filter(|least| count < *least) {
        outcome.add(Fault::invalid(path.dotted(), json!(count), &format!("should have at least {least} properties")));
    }
    if let Some(most) = node.max_properties.filter(|most| count > *most) {
        outcome.add(Fault::too_many(path.dotted(), map.len(), most));
    }
    let check_child = |child: &Node, key: &str, path: &Path<'_>, value: &Value| {
        match pair.and_then(|pair| pair.key(key)) {
            Some(pair) => check_update(child, path, pair),
            None => check(child, path, value),
        }
    };
    for (key, value) in map {
        if let Some(child) = node.properties.get(key) {
            outcome.merge(check_child(child, key, &path.field(key), value));
        } else if let Some(child) = node.additional.schema() {
            outcome.merge(check_child(child, key, &path.entry(key), value));
        }
    }
    for key in node.required.iter().filter(|key| !map.contains_key(*key)) {
        outcome.add(Fault::required(path.entry(key).dotted()));
    }
    outcome
}
