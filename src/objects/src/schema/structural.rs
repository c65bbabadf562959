//! What makes a schema structural (`apiextensions-apiserver/pkg/apiserver/schema/validation.go`), and the demands on lists.

use serde_json::{Map, Value, json};

use super::compile::{Level, Place, broken};
use super::error::DefinitionError;
use super::node::{Kind, List, Node};

/// Keywords that may not stand below a junctor.
const NOT_IN_BRANCHES: [&str; 13] = [
    "type",
    "title",
    "description",
    "default",
    "nullable",
    "additionalProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];

/// Checks a node whose children are compiled.
pub(super) fn check(node: &Node, map: &Map<String, Value>, place: &Place) -> Result<(), DefinitionError> {
    if place.level == Level::Branch {
        return check_branch(map, place);
    }
    check_kind(node, place)?;
    check_keywords_of_kind(node, map, place)?;
    check_list(node, place)?;
    for (keyword, branches) in [("allOf", &node.all_of), ("anyOf", &node.any_of), ("oneOf", &node.one_of)] {
        for (index, branch) in branches.iter().enumerate() {
            check_complete(branch, node, &place.at(&format!("{keyword}[{index}]")))?;
        }
    }
    node.not.as_deref().map_or(Ok(()), |branch| check_complete(branch, node, &place.at("not")))
}

fn check_kind(node: &Node, place: &Place) -> Result<(), DefinitionError> {
    let problem = match (place.level, node.kind) {
        (Level::Root, Kind::Object) => return Ok(()),
        (Level::Root, _) => "must be object at the root",
        (_, Kind::Any) if !node.preserves_unknown => match place.level {
            Level::Item => "must not be empty for specified array items",
            _ => "must not be empty for specified object fields",
        },
        (_, Kind::Array) if node.items.is_none() => return Err(broken(&place.at("items"), "must be specified")),
        (_, Kind::IntOrString) if node.preserves_unknown => {
            return Err(broken(
                &place.at("x-kubernetes-preserve-unknown-fields"),
                "must be false if x-kubernetes-int-or-string is true",
            ));
        }
        (_, Kind::Array) if node.preserves_unknown => {
            return Err(DefinitionError::Unsupported {
                path: place.path.clone(),
                what: "x-kubernetes-preserve-unknown-fields on a list".to_owned(),
            });
        }
        _ => return Ok(()),
    };
    Err(broken(&place.at("type"), problem))
}

/// Fields and items belong to objects and lists; elsewhere the API server would carry them along without a use.
fn check_keywords_of_kind(node: &Node, map: &Map<String, Value>, place: &Place) -> Result<(), DefinitionError> {
    let of_object = ["properties", "additionalProperties", "x-kubernetes-map-type"];
    let of_list = ["items", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"];
    let stray = |keywords: &[&'static str]| keywords.iter().find(|keyword| map.contains_key(**keyword)).copied();
    let stray = match node.kind {
        Kind::Object => stray(&of_list),
        Kind::Array => stray(&of_object),
        _ => stray(&of_object).or_else(|| stray(&of_list)),
    };
    match stray {
        Some(keyword) => Err(broken(&place.at(keyword), "does not fit the type")),
        None => Ok(()),
    }
}

fn check_list(node: &Node, place: &Place) -> Result<(), DefinitionError> {
    let Some(items) = node.items.as_deref() else { return Ok(()) };
    if node.list != List::Atomic && items.nullable {
        return Err(broken(&place.at("items.nullable"), "cannot be nullable when x-kubernetes-list-type is set or map"));
    }
    match &node.list {
        List::Atomic => Ok(()),
        List::Set if matches!(items.kind, Kind::Object | Kind::Array | Kind::Any) => Err(DefinitionError::Unsupported {
            path: place.path.clone(),
            what: "a set of objects or lists".to_owned(),
        }),
        List::Set => Ok(()),
        List::Map(keys) => keys.iter().enumerate().try_for_each(|(index, key)| {
            let problem = match items.properties.get(key) {
                _ if keys[..index].contains(key) => "must not contain duplicate entries",
                None => "entries must all be names of item properties",
                Some(field) if matches!(field.kind, Kind::Object | Kind::Array | Kind::Any) => {
                    "must be a scalar type if parent array's x-kubernetes-list-type is map"
                }
                Some(field) if field.nullable => "cannot be nullable",
                Some(field) if field.default.is_none() && !items.required.contains(key) => {
                    "must have a default or be a required property"
                }
                Some(_) => return Ok(()),
            };
            Err(broken(&place.at("x-kubernetes-list-map-keys"), &format!("{key}: {problem}")))
        }),
    }
}

/// A branch only restricts. The two branches that spell out `x-kubernetes-int-or-string` name their type.
fn check_branch(map: &Map<String, Value>, place: &Place) -> Result<(), DefinitionError> {
    let whole = Value::Object(map.clone());
    if place.path.contains(".anyOf[") && (whole == json!({"type": "integer"}) || whole == json!({"type": "string"})) {
        return Ok(());
    }
    match NOT_IN_BRANCHES.iter().find(|keyword| map.contains_key(**keyword)) {
        Some(keyword) => Err(broken(&place.at(keyword), "must be empty to be structural")),
        None => Ok(()),
    }
}

/// What a branch speaks of must be in the structure itself.
fn check_complete(branch: &Node, node: &Node, path: &str) -> Result<(), DefinitionError> {
    if branch.kind != Kind::Any && node.kind != Kind::IntOrString {
        return Err(broken(&format!("{path}.type"), "must be empty to be structural"));
    }
    for (name, field) in &branch.properties {
        let path = format!("{path}.properties[{name}]");
        match node.properties.get(name) {
            Some(below) => check_complete(field, below, &path)?,
            None => return Err(broken(&path, "must also be specified outside of the junctor")),
        }
    }
    if let Some(items) = &branch.items {
        match &node.items {
            Some(below) => check_complete(items, below, &format!("{path}.items"))?,
            None => return Err(broken(&format!("{path}.items"), "must also be specified outside of the junctor")),
        }
    }
    let junctors = branch.all_of.iter().chain(&branch.any_of).chain(&branch.one_of).chain(branch.not.as_deref());
    for junctor in junctors {
        check_complete(junctor, node, path)?;
    }
    Ok(())
}

/// `metadata` may restrict the name and the prefix of generated names, nothing else.
pub(super) fn check_metadata(schema: &Value, path: &str) -> Result<(), DefinitionError> {
    let known = ["type", "properties"];
    let names = ["name", "generateName"];
    let fits = schema.as_object().is_some_and(|map| {
        map.keys().all(|key| known.contains(&key.as_str()))
            && map.get("type") == Some(&json!("object"))
            && map
                .get("properties")
                .is_none_or(|fields| fields.as_object().is_some_and(|fields| fields.keys().all(|f| names.contains(&f.as_str()))))
    });
    if fits {
        Ok(())
    } else {
        Err(broken(
            path,
            "must be object and not specify anything other than name and generateName, but metadata is implicitly specified",
        ))
    }
}
