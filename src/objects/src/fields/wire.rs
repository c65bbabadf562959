//! FieldsV1, the JSON form of a field set: `f:name`, `k:{keys}`, `v:value` and `i:index` as names of nested objects, `.`
//! for the place itself.

use std::sync::Arc;

use serde_json::{Map, Value};
use thiserror::Error;

use super::element::PathElement;
use super::set::{FieldSet, Mark};
use super::text;

/// Why a text is not a field set.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FieldSetError {
    /// A name that is no path element.
    #[error("{name:?} is not a path element: {problem}")]
    Element {
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A value that is neither an object nor null.
    #[error("an object is expected below {below:?}")]
    NotAnObject {
        /// The name whose value it is; empty at the top.
        below: String,
    },
}

impl FieldSet {
    /// Reads FieldsV1. Path elements of an unknown kind are left out, as a later API server may write some.
    ///
    /// # Errors
    /// When a name or a value cannot be read.
    pub fn from_fields_v1(value: &Value) -> Result<Self, FieldSetError> {
        read(value, "").map(|mark| mark.below)
    }

    /// The set as FieldsV1.
    #[must_use]
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.object(false))
    }

    fn object(&self, itself: bool) -> Map<String, Value> {
        let place = itself.then(|| (".".to_owned(), Value::Object(Map::new())));
        let nodes = self.nodes().iter().map(|node| {
            let below = node.below.object(node.member && !node.below.is_empty());
            (name_of(&node.element), Value::Object(below))
        });
        // Sorted once, not with each.
        place.into_iter().chain(nodes).collect()
    }

    /// The set as the text of FieldsV1 in the order in which the API server prints a set: by path element, so that keys
    /// and values come in their own order and not in that of their letters.
    #[must_use]
    pub fn to_canonical_text(&self) -> String {
        let mut out = String::from("{");
        self.write(false, &mut out);
        out.push('}');
        out
    }

    fn write(&self, itself: bool, out: &mut String) {
        if itself {
            out.push_str("\".\":{}");
        }
        for (at, node) in self.nodes().iter().enumerate() {
            if itself || at > 0 {
                out.push(',');
            }
            out.push_str(&text::json_string(&name_of(&node.element)));
            out.push_str(":{");
            node.below.write(node.member && !node.below.is_empty(), out);
            out.push('}');
        }
    }
}

fn name_of(element: &PathElement) -> String {
    match element {
        PathElement::Field(field) => {
            let mut name = String::with_capacity(field.len() + 2);
            name.push_str("f:");
            name.push_str(field);
            name
        }
        PathElement::Key(keys) => {
            let mut name = String::with_capacity(48);
            name.push_str("k:{");
            for (at, (key, value)) in keys.iter().enumerate() {
                if at > 0 {
                    name.push(',');
                }
                text::push_json_string(key, &mut name);
                name.push(':');
                match value {
                    Value::String(text) => text::push_json_string(text, &mut name),
                    value => name.push_str(&text::json(value)),
                }
            }
            name.push('}');
            name
        }
        PathElement::Value(value) => format!("v:{}", text::json(value)),
        PathElement::Index(index) => format!("i:{index}"),
    }
}

fn read(value: &Value, name: &str) -> Result<Mark, FieldSetError> {
    let empty = Map::new();
    let object = match value {
        Value::Object(object) => object,
        Value::Null => &empty,
        _ => return Err(FieldSetError::NotAnObject { below: name.into() }),
    };
    let mut mark = Mark::default();
    for (name, value) in object {
        if name == "." {
            mark.member = true;
        } else if let Some(element) = element_of(name)? {
            mark.below.add(element, read(value, name)?);
        }
    }
    // Nothing below means that the place itself is meant.
    mark.member |= mark.below.is_empty();
    Ok(mark)
}

fn element_of(name: &str) -> Result<Option<PathElement>, FieldSetError> {
    let fail = |problem| FieldSetError::Element {
        name: name.into(),
        problem,
    };
    if name.len() < 2 {
        return Err(fail("it has fewer than 2 characters"));
    }
    if name.as_bytes()[1] != b':' {
        return Err(fail("the colon is missing"));
    }
    let rest = &name[2..];
    Ok(Some(match name.as_bytes()[0] {
        b'f' => PathElement::field(rest),
        b'v' => {
            let value = serde_json::from_str(rest).map_err(|_| fail("its value is not JSON"))?;
            PathElement::Value(Arc::new(value))
        }
        b'k' => {
            let keys: Map<String, Value> =
                serde_json::from_str(rest).map_err(|_| fail("its keys are not a JSON object"))?;
            PathElement::key(keys.into_iter().collect())
        }
        b'i' => PathElement::Index(
            rest.parse()
                .map_err(|_| fail("its index is not a number"))?,
        ),
        _ => return Ok(None),
    }))
}
