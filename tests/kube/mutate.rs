//! Every bound of a schema, broken once: a complete object and its schema give all objects that differ from it in one
//! place by one fault, and the places of the schema that the object never reaches.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// An object with one fault, or with a value just at a bound.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// Where and what: `spec.replicas: above its maximum`.
    pub(crate) name: String,
    pub(crate) object: Value,
}

/// What a walk over a schema and a complete object gives.
#[derive(Debug, Default)]
pub(crate) struct Mutants {
    pub(crate) all: Vec<Mutant>,
    /// Places of the schema that were reached, list items as `[]`, map values as `{}`.
    pub(crate) reached: BTreeSet<String>,
}

/// Every place of a schema, as [`Mutants::reached`] writes them.
pub(crate) fn places(schema: &Value, at: &str, into: &mut BTreeSet<String>) {
    into.insert(at.to_owned());
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        places(below, &join(at, key), into);
    }
    if schema["items"].is_object() {
        places(&schema["items"], &format!("{at}[]"), into);
    }
    if schema["additionalProperties"].is_object() {
        places(&schema["additionalProperties"], &format!("{at}{{}}"), into);
    }
}

fn join(at: &str, key: &str) -> String {
    match at {
        "" => key.to_owned(),
        at => format!("{at}.{key}"),
    }
}

/// All mutants of an object below one of its fields.
pub(crate) fn mutants(schema: &Value, object: &Value, field: &str) -> Mutants {
    let mut walk = Walk {
        object,
        found: Mutants::default(),
    };
    let below = &schema["properties"][field];
    walk.node(below, &[field.to_owned()], field, field);
    walk.found
}

struct Walk<'a> {
    object: &'a Value,
    found: Mutants,
}

impl Walk<'_> {
    fn node(&mut self, schema: &Value, path: &[String], shown: &str, place: &str) {
        let value = at(self.object, path).clone();
        self.found.reached.insert(place.to_owned());
        for wrong in [
            json!("text"),
            json!(7),
            json!(1.5),
            json!(true),
            json!({}),
            json!([]),
            Value::Null,
        ] {
            let kind = kind_of(&wrong);
            if kind != kind_of(&value) || kind == "number" {
                self.put(path, shown, &format!("is {wrong}"), wrong);
            }
        }
        match &value {
            Value::String(text) => self.text(schema, text, path, shown),
            Value::Number(_) => self.number(schema, path, shown),
            Value::Array(items) => self.list(schema, items, path, shown, place),
            Value::Object(fields) => self.object(schema, fields, path, shown, place),
            _ => {}
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &[String], shown: &str) {
        for other in ["", " ", "!", "a\nb", "é", "Nope"] {
            self.put(path, shown, &format!("is {other:?}"), other.into());
        }
        self.put(
            path,
            shown,
            "ends with a line break",
            format!("{text}\n").into(),
        );
        for known in schema["enum"].as_array().into_iter().flatten() {
            self.put(path, shown, &format!("is {known}"), known.clone());
        }
        if let Some(limit) = schema["maxLength"].as_u64() {
            let limit = usize::try_from(limit).unwrap();
            self.put(
                path,
                shown,
                "is as long as may be",
                "a".repeat(limit).into(),
            );
            self.put(path, shown, "is too long", "a".repeat(limit + 1).into());
            self.put(
                path,
                shown,
                "is too long, in another script",
                "ü".repeat(limit + 1).into(),
            );
        }
    }

    fn number(&mut self, schema: &Value, path: &[String], shown: &str) {
        let mut bounds = vec![i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX, i64::MIN];
        bounds.extend(
            ["minimum", "maximum"]
                .iter()
                .filter_map(|key| whole(&schema[*key])),
        );
        for bound in bounds {
            for number in [bound.saturating_sub(1), bound, bound.saturating_add(1)] {
                self.put(path, shown, &format!("is {number}"), number.into());
            }
        }
        self.put(
            path,
            shown,
            "is a whole number written as a float",
            json!(20.0),
        );
        self.put(path, shown, "is larger than any integer", json!(1e30));
    }

    fn list(&mut self, schema: &Value, items: &[Value], path: &[String], shown: &str, place: &str) {
        let Some(first) = items.first() else {
            return;
        };
        let mut twice = items.to_vec();
        twice.push(first.clone());
        self.put(path, shown, "has an item twice", twice.into());
        self.put(path, shown, "has a null", json!([null]));
        if let Some(limit) = schema["maxItems"].as_u64() {
            let limit = usize::try_from(limit).unwrap();
            let many = |count: usize| {
                (0..count)
                    .map(|index| different(first, schema, index))
                    .collect()
            };
            self.put(path, shown, "has as many items as may be", many(limit));
            self.put(path, shown, "has too many items", many(limit + 1));
        }
        for index in 0..items.len() {
            let mut below = path.to_vec();
            below.push(index.to_string());
            let shown = format!("{shown}[{index}]");
            self.node(&schema["items"], &below, &shown, &format!("{place}[]"));
        }
    }

    fn object(
        &mut self,
        schema: &Value,
        fields: &Map<String, Value>,
        path: &[String],
        shown: &str,
        place: &str,
    ) {
        let child = |key: &str| [path, &[key.to_owned()]].concat();
        self.put(&child("bogus"), shown, "has an unknown field", json!(1));
        for key in fields.keys() {
            let mut less = self.object.clone();
            let parent = at_mut(&mut less, path).as_object_mut().unwrap();
            parent.remove(key);
            self.add(&join(shown, key), "is absent", less);
        }
        let additional = &schema["additionalProperties"];
        if let (Some(limit), true) = (schema["maxProperties"].as_u64(), additional.is_object()) {
            let value = fields.values().next().cloned().unwrap_or_default();
            let many = |count: u64| {
                let entry = |index| (format!("k{index}"), value.clone());
                Value::Object((0..count).map(entry).collect())
            };
            self.put(path, shown, "has as many entries as may be", many(limit));
            self.put(path, shown, "has too many entries", many(limit + 1));
        }
        for (key, _) in fields {
            match schema["properties"].get(key) {
                Some(below) => self.node(below, &child(key), &join(shown, key), &join(place, key)),
                None if additional.is_object() => {
                    let place = format!("{place}{{}}");
                    self.node(additional, &child(key), &join(shown, key), &place);
                }
                None => panic!("{shown}.{key} is not in the schema"),
            }
        }
    }

    fn put(&mut self, path: &[String], shown: &str, what: &str, value: Value) {
        let mut object = self.object.clone();
        let (last, parents) = path.split_last().unwrap();
        match at_mut(&mut object, parents) {
            Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
            Value::Object(fields) => drop(fields.insert(last.clone(), value)),
            other => panic!("nothing is below {other}"),
        }
        self.add(shown, what, object);
    }

    fn add(&mut self, shown: &str, what: &str, object: Value) {
        let name = format!("{shown}: {what}");
        self.found.all.push(Mutant { name, object });
    }
}

fn at<'a>(tree: &'a Value, path: &[String]) -> &'a Value {
    path.iter().fold(tree, |tree, part| match tree {
        Value::Array(items) => &items[part.parse::<usize>().unwrap()],
        other => &other[part.as_str()],
    })
}

fn at_mut<'a>(tree: &'a mut Value, path: &[String]) -> &'a mut Value {
    path.iter().fold(tree, |tree, part| match tree {
        Value::Array(items) => &mut items[part.parse::<usize>().unwrap()],
        other => &mut other[part.as_str()],
    })
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// Bounds are written as floats by some.
fn whole(value: &Value) -> Option<i64> {
    #[allow(clippy::cast_possible_truncation)]
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|number| number as i64))
}

/// An item that is not the same as the others of its list: its keys, or itself, get a number.
fn different(item: &Value, schema: &Value, index: usize) -> Value {
    let mut item = item.clone();
    match &mut item {
        Value::String(text) => text.push_str(&index.to_string()),
        Value::Object(fields) => {
            for key in schema["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten()
            {
                if let Some(Value::String(text)) = fields.get_mut(key.as_str().unwrap()) {
                    text.push_str(&index.to_string());
                }
            }
        }
        _ => {}
    }
    item
}
