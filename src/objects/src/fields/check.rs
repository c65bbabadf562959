//! Whether a value fits a shape, as far as merging needs it: types, declared fields, keys of list items. The messages are
//! those of the API server.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map as JsonMap, Value};

use super::element::PathElement;
use super::item::element_of;
use super::shape::{Items, List, Map, Scalar, Shape, TypeId, View};
use super::text;

/// Whether list items with the same key are tolerated: in stored objects they are, in an applied configuration not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    Allowed,
    Refused,
}

/// What does not fit, each with its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Misfits(Vec<(String, String)>);

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |(path, problem): &(String, String)| {
            if path.is_empty() {
                problem.clone()
            } else {
                format!("{path}: {problem}")
            }
        };
        match self.0.as_slice() {
            [one] => f.write_str(&line(one)),
            all => {
                f.write_str("errors:")?;
                all.iter()
                    .try_for_each(|misfit| write!(f, "\n  {}", line(misfit)))
            }
        }
    }
}

/// Checks a whole object.
pub(super) fn check<'a>(
    shape: &'a Shape,
    object: &'a Value,
    duplicates: Duplicates,
) -> Result<(), Misfits> {
    let mut checker = Checker {
        shape,
        duplicates,
        path: Vec::new(),
        misfits: Misfits::default(),
    };
    checker.value(shape.root(), object);
    if checker.misfits.0.is_empty() {
        Ok(())
    } else {
        Err(checker.misfits)
    }
}

/// A step of a path; its text is needed for misfits only.
enum Step<'a> {
    Field(&'a str),
    Item(&'a List, &'a Value),
    Index(usize),
}

impl Step<'_> {
    fn element(&self) -> PathElement {
        match self {
            Self::Field(name) => PathElement::field(name),
            Self::Item(list, item) => {
                element_of(list, item).unwrap_or_else(|problem| PathElement::field(&problem))
            }
            Self::Index(at) => PathElement::Index(i64::try_from(*at).unwrap_or(i64::MAX)),
        }
    }
}

struct Checker<'a> {
    shape: &'a Shape,
    duplicates: Duplicates,
    path: Vec<Step<'a>>,
    misfits: Misfits,
}

impl<'a> Checker<'a> {
    fn fail(&mut self, problem: String) {
        let path: Vec<PathElement> = self.path.iter().map(Step::element).collect();
        self.misfits.0.push((super::path_text(&path), problem));
    }

    fn value(&mut self, type_: TypeId, value: &'a Value) {
        match (self.shape.view(type_, Some(value)), value) {
            (_, Value::Null) => {}
            (View::Map(map), Value::Object(fields)) => self.fields(map, fields),
            (View::Map(_), other) => {
                self.fail(format!("expected map, got &{{{}}}", text::plain(other)))
            }
            (View::List(list), Value::Array(items)) => self.items(list, items),
            (View::List(_), other) => {
                self.fail(format!("expected list, got &{{{}}}", text::plain(other)))
            }
            (View::Scalar(scalar), value) => {
                if let Some(problem) = scalar_problem(scalar, value) {
                    self.fail(problem);
                }
            }
            (View::Nothing, _) => self.fail("schema error: invalid atom: inlined".into()),
        }
    }

    fn fields(&mut self, map: &'a Map, fields: &'a JsonMap<String, Value>) {
        for (name, value) in fields {
            let type_ = map.field(name);
            // The text of a path is needed for misfits only, but a scalar that fits is by far the most common case.
            if let Some(type_) = type_
                && let View::Scalar(scalar) = self.shape.view(type_, Some(value))
                && (value.is_null() || scalar_problem(scalar, value).is_none())
            {
                continue;
            }
            self.path.push(Step::Field(name));
            match type_ {
                Some(type_) => self.value(type_, value),
                None => {
                    self.fail("field not declared in schema".into());
                    self.path.pop();
                    return;
                }
            }
            self.path.pop();
        }
    }

    fn items(&mut self, list: &'a List, items: &'a [Value]) {
        let mut seen = BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let step = if matches!(list.items, Items::Atomic) {
                Step::Index(at)
            } else {
                match element_of(list, item) {
                    Ok(element) => {
                        if self.duplicates == Duplicates::Refused && !seen.insert(element) {
                            let element = Step::Item(list, item).element();
                            self.fail(format!("duplicate entries for key {element}"));
                        }
                    }
                    Err(problem) => return self.fail(format!("element {at}: {problem}")),
                }
                Step::Item(list, item)
            };
            self.path.push(step);
            self.value(list.element, item);
            self.path.pop();
        }
    }
}

fn scalar_problem(scalar: Scalar, value: &Value) -> Option<String> {
    let plain = || text::plain(value);
    match (scalar, value) {
        (Scalar::Number, Value::Number(_))
        | (Scalar::Text, Value::String(_))
        | (Scalar::Flag, Value::Bool(_))
        | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Number, _) => Some(format!(
            "expected numeric (int or float), got {}",
            text::type_name(value)
        )),
        (Scalar::Text, _) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            text::typed(value)
        )),
        (Scalar::Flag, _) => Some(format!("expected boolean, got &{{{}}}", plain())),
        (Scalar::Any, _) => Some(format!("expected any scalar, got &{{{}}}", plain())),
    }
}
