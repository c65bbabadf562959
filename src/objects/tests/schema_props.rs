//! Properties of `objects::schema` over the real CRDs: nothing panics, and defaulting, pruning and validating agree.

use std::sync::LazyLock;

use objects::schema::Definition;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

struct Kind {
    definition: Definition,
    /// Objects that use every field.
    bases: Vec<Value>,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.definition.kind)
    }
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    api::crds::DOCUMENTS
        .iter()
        .map(|(kind, text)| {
            let crd = api::document::read_yaml(text).unwrap_or_else(|error| panic!("{kind}: {error}"));
            let definition = Definition::compile(&crd).unwrap_or_else(|error| panic!("{kind}: {error}"));
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/schema");
            let bases = std::fs::read_to_string(format!("{folder}/{}.bases.json", definition.plural)).unwrap();
            let bases: Map<String, Value> = serde_json::from_str(&bases).unwrap();
            Kind { definition, bases: bases.into_iter().map(|(_, base)| base).collect() }
        })
        .collect()
});

fn kind() -> impl Strategy<Value = &'static Kind> {
    (0..KINDS.len()).prop_map(|index| &KINDS[index])
}

/// Words that schemas know, and some they do not.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec![
            "spec", "status", "metadata", "name", "source", "http", "files", "path", "size", "rollout", "canary", "steps",
            "weight", "checks", "heldOut", "shipped", "tiers", "models", "profile", "conditions", "type", "promote",
            "mode", "replicas", "pod", "nodeSelector", "kind", "apiVersion", "unknown", "",
        ])
        .prop_map(str::to_owned),
        "[a-zA-Z_/.-]{0,6}",
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-20i64..20).prop_map(Value::from),
        any::<f64>().prop_filter("JSON has finite numbers only", |n| n.is_finite()).prop_map(|n| json!(n)),
        any::<String>().prop_map(Value::from),
        select(vec!["Canary", "BlueGreen", "Accuracy", "0.5", "x", "a/b", "2026-11-30T17:00:00Z"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(word(), inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// All places of a value, as pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// A good object with a few parts replaced, added or removed.
fn disturbed() -> impl Strategy<Value = (&'static Kind, Value, Value)> {
    let edit = (any::<Index>(), proptest::option::of((word(), json())), json());
    (kind(), any::<Index>(), proptest::collection::vec(edit, 0..4)).prop_map(|(kind, base, edits)| {
        let base = base.get(kind.bases.as_slice()).clone();
        let mut object = base.clone();
        for (place, added, replacement) in edits {
            let mut all = Vec::new();
            places(&object["spec"], "/spec", &mut all);
            let part = object.pointer_mut(place.get(all.as_slice()).as_str()).unwrap();
            match (part, added) {
                (Value::Object(map), Some((key, value))) => {
                    map.insert(key, value);
                }
                (Value::Object(map), None) if map.len() > 1 => {
                    let key = map.keys().next().unwrap().clone();
                    map.remove(&key);
                }
                (part, _) => *part = replacement,
            }
        }
        (kind, base, object)
    })
}

/// Removes a path that `unknown_fields` named.
fn prune(object: &mut Value, path: &str) {
    let pointer = path.replace('[', ".").replace(']', "").replace('.', "/");
    let (parent, key) = pointer.rsplit_once('/').map_or(("", pointer.as_str()), |(parent, key)| (parent, key));
    let parent = if parent.is_empty() { object } else { object.pointer_mut(&format!("/{parent}")).unwrap() };
    parent.as_object_mut().unwrap().remove(key);
}

fn has_odd_key(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| key.contains(['.', '/', '[', '~']) || has_odd_key(value)),
        Value::Array(items) => items.iter().any(has_odd_key),
        _ => false,
    }
}

proptest! {
    #[test]
    fn nothing_panics_on_any_json(kind in kind(), mut object in json(), old in json()) {
        let definition = &kind.definition;
        let _ = definition.unknown_fields(&object);
        for old in [None, Some(&old)] {
            let _ = definition.validate(&object, old);
        }
        if object.is_object() {
            object["kind"] = json!(definition.kind);
            object["apiVersion"] = json!(format!("{}/{}", definition.group, definition.version));
            let _ = definition.validate(&object, None);
            let _ = definition.validate(&object, Some(&old));
            let _ = definition.validate_status(Vec::new(), &object, &old);
        }
        definition.default(&mut object);
    }

    #[test]
    fn nothing_panics_on_a_disturbed_object((kind, base, object) in disturbed()) {
        let definition = &kind.definition;
        let _ = definition.validate(&object, Some(&base));
        let _ = definition.validate(&base, Some(&object));
        let _ = definition.validate_status(Vec::new(), &object, &base);
    }

    #[test]
    fn defaulting_twice_is_defaulting_once((kind, _, mut object) in disturbed()) {
        kind.definition.default(&mut object);
        let once = object.clone();
        kind.definition.default(&mut object);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn a_valid_object_stays_valid_when_it_is_defaulted((kind, _, mut object) in disturbed()) {
        prop_assume!(kind.definition.validate(&object, None).is_empty());
        kind.definition.default(&mut object);
        prop_assert_eq!(kind.definition.validate(&object, None), []);
    }

    #[test]
    fn an_object_without_its_unknown_fields_has_none((kind, _, mut object) in disturbed()) {
        prop_assume!(!has_odd_key(&object));
        for path in kind.definition.unknown_fields(&object) {
            prune(&mut object, &path);
        }
        prop_assert_eq!(kind.definition.unknown_fields(&object), Vec::<String>::new());
    }

    #[test]
    fn an_update_that_changes_nothing_is_never_refused_for_its_values((kind, _, mut object) in disturbed()) {
        kind.definition.default(&mut object);
        // what a rule cannot evaluate is refused even then, and branches are not excused; our schemas have none
        let causes = kind.definition.validate(&object, Some(&object));
        let of_rules = |message: &str| message.contains("evaluating rule:") || message.contains("signature for rule:");
        let of_scale = |field: &str| field.starts_with('.');
        let known = kind.definition.unknown_fields(&object).is_empty();
        prop_assume!(known && object.get("kind").is_some());
        prop_assert!(
            causes.iter().all(|c| of_rules(&c.message) || of_scale(&c.field)),
            "{:?}",
            causes
        );
    }
}

#[test]
fn the_bases_are_valid_as_they_are_and_defaulted() {
    for kind in KINDS.iter() {
        for base in &kind.bases {
            let mut object = base.clone();
            kind.definition.default(&mut object);
            assert_eq!(kind.definition.validate(&object, None), [], "{object}");
            assert_eq!(kind.definition.unknown_fields(&object), Vec::<String>::new());
        }
    }
}
