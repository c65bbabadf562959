//! An `openAPIV3Schema` becomes a tree of [`Node`]s. Every keyword is read or refused: one that the API server honours and
//! we would pass over would let through what it refuses.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::DefinitionError;
use super::format::{self, Known};
use super::node::{Additional, Bound, Kind, List, Node, Reach};
use super::pattern::Pattern;
use super::rules;
use super::structural;

/// Schemas deeper than this are refused, so that recursion has a bound.
const DEPTH_MAX: usize = 64;

/// Which part of a schema a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Field,
    Item,
    /// Below `allOf`, `anyOf`, `oneOf` or `not`.
    Branch,
}

/// Where we are while compiling.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) level: Level,
    depth: usize,
    /// The node above which old and new values cannot be told to belong together, if there is one.
    pub(super) uncorrelated: Option<String>,
}

impl Place {
    pub(super) fn root(path: &str) -> Self {
        Self { path: path.to_owned(), level: Level::Root, depth: 0, uncorrelated: None }
    }

    fn child(&self, step: &str, level: Level) -> Self {
        let level = if self.level == Level::Branch { Level::Branch } else { level };
        Self { path: format!("{}.{step}", self.path), level, depth: self.depth + 1, uncorrelated: self.uncorrelated.clone() }
    }

    /// The path of a keyword of this node.
    pub(super) fn at(&self, keyword: &str) -> String {
        format!("{}.{keyword}", self.path)
    }
}

/// Compiles a schema and all below it.
pub(super) fn compile(schema: &Value, place: &Place) -> Result<Node, DefinitionError> {
    if place.depth > DEPTH_MAX {
        return Err(malformed(&place.path, format!("nested deeper than {DEPTH_MAX} levels")));
    }
    let Value::Object(map) = schema else {
        return Err(malformed(&place.path, "must be an object".to_owned()));
    };
    let mut node = Node { kind: kind(map, place)?, ..Node::default() };
    for (keyword, value) in map {
        read_keyword(&mut node, map, keyword, value, place)?;
    }
    structural::check(&node, map, place)?;
    if let Some(raw) = map.get("x-kubernetes-validations") {
        node.rules = rules::compile(raw, &node, place)?;
    }
    node.has_rules = !node.rules.is_empty() || node.children().any(|child| child.has_rules);
    node.has_unordered = node.list != List::Atomic || node.children().any(|child| child.has_unordered);
    Ok(node)
}

fn read_keyword(
    node: &mut Node,
    map: &Map<String, Value>,
    keyword: &str,
    value: &Value,
    place: &Place,
) -> Result<(), DefinitionError> {
    let path = place.at(keyword);
    match keyword {
        // read with the node, or for people
        "type" | "x-kubernetes-int-or-string" | "x-kubernetes-validations" | "exclusiveMinimum" | "exclusiveMaximum"
        | "title" | "description" | "example" | "externalDocs" | "x-kubernetes-list-map-keys" => {}
        "nullable" => node.nullable = flag(value, &path)?,
        "default" => node.default = Some(value.clone()),
        "format" => read_format(node, text(value, &path)?, &path)?,
        "enum" => node.allowed = list(value, &path)?.clone(),
        "minimum" => node.minimum = Some(bound(value, map.get("exclusiveMinimum"), &path)?),
        "maximum" => node.maximum = Some(bound(value, map.get("exclusiveMaximum"), &path)?),
        "multipleOf" => node.multiple_of = Some(number(value, &path)?),
        "minLength" => node.min_length = Some(count(value, &path)?),
        "maxLength" => node.max_length = Some(count(value, &path)?),
        "minItems" => node.min_items = Some(count(value, &path)?),
        "maxItems" => node.max_items = Some(count(value, &path)?),
        "minProperties" => node.min_properties = Some(count(value, &path)?),
        "maxProperties" => node.max_properties = Some(count(value, &path)?),
        "pattern" => {
            let source = text(value, &path)?;
            let refused = |problem| DefinitionError::Pattern { path: path.clone(), pattern: source.to_owned(), problem };
            node.pattern = Some(Pattern::compile(source).map_err(refused)?);
        }
        "required" => node.required = texts(value, &path)?,
        "properties" => node.properties = properties(value, place)?,
        "additionalProperties" => node.additional = additional(value, map, place)?,
        "items" => node.items = Some(Box::new(items(value, map, place)?)),
        "allOf" => node.all_of = branches(value, "allOf", place)?,
        "anyOf" => node.any_of = branches(value, "anyOf", place)?,
        "oneOf" => node.one_of = branches(value, "oneOf", place)?,
        "not" => node.not = Some(Box::new(compile(value, &place.child("not", Level::Branch))?)),
        "x-kubernetes-preserve-unknown-fields" => {
            if !flag(value, &path)? {
                return Err(broken(&path, "must be true or undefined"));
            }
            node.preserves_unknown = true;
        }
        "x-kubernetes-list-type" => node.list = list_kind(text(value, &path)?, map, place)?,
        // how a map merges is a matter of field ownership; both kinds are correlated alike
        "x-kubernetes-map-type" => match text(value, &path)? {
            "atomic" | "granular" => {}
            _ => return Err(broken(&path, "must be atomic or granular")),
        },
        "uniqueItems" | "x-kubernetes-embedded-resource" if !flag(value, &path)? => {}
        _ => return Err(DefinitionError::Unsupported { path: place.path.clone(), what: format!("keyword {keyword}") }),
    }
    Ok(())
}

fn kind(map: &Map<String, Value>, place: &Place) -> Result<Kind, DefinitionError> {
    let int_or_string = match map.get("x-kubernetes-int-or-string") {
        Some(value) => flag(value, &place.at("x-kubernetes-int-or-string"))?,
        None => false,
    };
    let Some(name) = map.get("type") else {
        return Ok(if int_or_string { Kind::IntOrString } else { Kind::Any });
    };
    let path = place.at("type");
    if int_or_string {
        return Err(broken(&path, "must be empty if x-kubernetes-int-or-string is true"));
    }
    match text(name, &path)? {
        "object" => Ok(Kind::Object),
        "array" => Ok(Kind::Array),
        "string" => Ok(Kind::String),
        "integer" => Ok(Kind::Integer),
        "number" => Ok(Kind::Number),
        "boolean" => Ok(Kind::Boolean),
        other => Err(DefinitionError::Unsupported { path, what: format!("type {other:?}") }),
    }
}

fn read_format(node: &mut Node, name: &str, path: &str) -> Result<(), DefinitionError> {
    match format::known(name) {
        Known::Ignored => Ok(()),
        Known::Checked(format) if node.kind == Kind::String => {
            node.format = Some(format);
            Ok(())
        }
        Known::Checked(_) | Known::Unsupported => {
            Err(DefinitionError::Unsupported { path: path.to_owned(), what: format!("format {name:?} of this type") })
        }
    }
}

fn properties(value: &Value, place: &Place) -> Result<BTreeMap<String, Node>, DefinitionError> {
    let Value::Object(map) = value else {
        return Err(malformed(&place.at("properties"), "must be an object".to_owned()));
    };
    map.iter()
        .map(|(name, schema)| {
            let child = place.child(&format!("properties[{name}]"), Level::Field);
            if place.level == Level::Root && name == "metadata" {
                structural::check_metadata(schema, &child.path)?;
            }
            Ok((name.clone(), compile(schema, &child)?))
        })
        .collect()
}

fn additional(value: &Value, map: &Map<String, Value>, place: &Place) -> Result<Additional, DefinitionError> {
    let path = place.at("additionalProperties");
    if place.level == Level::Root {
        return Err(broken(&path, "must not be used at the root"));
    }
    let has_properties = map.get("properties").and_then(Value::as_object).is_some_and(|names| !names.is_empty());
    match value {
        Value::Bool(false) => Err(broken(&path, "cannot be set to false")),
        Value::Bool(true) => Ok(Additional::Any),
        _ if has_properties => Err(broken(&path, "additionalProperties and properties are mutual exclusive")),
        schema => {
            Ok(Additional::Schema(Box::new(compile(schema, &place.child("additionalProperties", Level::Field))?)))
        }
    }
}

fn items(value: &Value, map: &Map<String, Value>, place: &Place) -> Result<Node, DefinitionError> {
    let mut child = place.child("items", Level::Item);
    if map.get("x-kubernetes-list-type").and_then(Value::as_str) != Some("map") {
        child.uncorrelated.get_or_insert_with(|| place.path.clone());
    }
    compile(value, &child)
}

fn branches(value: &Value, keyword: &str, place: &Place) -> Result<Vec<Node>, DefinitionError> {
    list(value, &place.at(keyword))?
        .iter()
        .enumerate()
        .map(|(index, schema)| compile(schema, &place.child(&format!("{keyword}[{index}]"), Level::Branch)))
        .collect()
}

fn list_kind(name: &str, map: &Map<String, Value>, place: &Place) -> Result<List, DefinitionError> {
    let keys_path = place.at("x-kubernetes-list-map-keys");
    match name {
        "atomic" => Ok(List::Atomic),
        "set" => Ok(List::Set),
        "map" => {
            let keys = map.get("x-kubernetes-list-map-keys").map_or(Ok(Vec::new()), |keys| texts(keys, &keys_path))?;
            if keys.is_empty() {
                return Err(broken(&keys_path, "must not be empty if x-kubernetes-list-type is map"));
            }
            Ok(List::Map(keys))
        }
        _ => Err(broken(&place.at("x-kubernetes-list-type"), "must be atomic, set or map")),
    }
}

fn bound(value: &Value, exclusive: Option<&Value>, path: &str) -> Result<Bound, DefinitionError> {
    let exclusive = exclusive.map_or(Ok(false), |exclusive| flag(exclusive, path))?;
    let reach = if exclusive { Reach::Exclusive } else { Reach::Inclusive };
    Ok(Bound { limit: number(value, path)?, reach })
}

pub(super) fn malformed(path: &str, problem: String) -> DefinitionError {
    DefinitionError::Malformed { path: path.to_owned(), problem }
}

pub(super) fn broken(path: &str, problem: &str) -> DefinitionError {
    DefinitionError::NotStructural { path: path.to_owned(), problem: problem.to_owned() }
}

pub(super) fn flag(value: &Value, path: &str) -> Result<bool, DefinitionError> {
    value.as_bool().ok_or_else(|| malformed(path, "must be true or false".to_owned()))
}

pub(super) fn text<'a>(value: &'a Value, path: &str) -> Result<&'a str, DefinitionError> {
    value.as_str().ok_or_else(|| malformed(path, "must be a string".to_owned()))
}

pub(super) fn list<'a>(value: &'a Value, path: &str) -> Result<&'a Vec<Value>, DefinitionError> {
    value.as_array().ok_or_else(|| malformed(path, "must be a list".to_owned()))
}

pub(super) fn texts(value: &Value, path: &str) -> Result<Vec<String>, DefinitionError> {
    list(value, path)?.iter().map(|item| text(item, path).map(str::to_owned)).collect()
}

fn number(value: &Value, path: &str) -> Result<f64, DefinitionError> {
    value.as_f64().ok_or_else(|| malformed(path, "must be a number".to_owned()))
}

fn count(value: &Value, path: &str) -> Result<u64, DefinitionError> {
    value.as_u64().ok_or_else(|| malformed(path, "must be a whole number that is not negative".to_owned()))
}
