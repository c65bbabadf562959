//! Rules of ownership by table and by property. What an API server does step by step stands in `tests/fields_golden.rs`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn shape() -> Shape {
    let text = json!({"type": "string"});
    Shape::of_schema(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "a": text, "b": text, "c": text,
            "labels": {"type": "object", "additionalProperties": text},
            "nested": {"type": "object", "properties": {"x": text, "y": text}},
            "plain": {"type": "array", "items": text},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
            "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": text, "value": text, "other": text}}},
        }},
        "status": {"type": "object", "properties": {"phase": text}},
    }}))
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "relay.dev/v1", "kind": "Thing", "metadata": {"name": "n", "namespace": "d", "uid": "u"}, "spec": spec})
}

/// A configuration; one without fields does not name `spec` either.
fn config(spec: &Value) -> Value {
    let mut config = json!({"apiVersion": "relay.dev/v1", "kind": "Thing", "metadata": {"name": "n", "namespace": "d"}});
    if spec.as_object().is_some_and(|fields| !fields.is_empty()) {
        config["spec"] = spec.clone();
    }
    config
}

fn writer(manager: &str, second: u8) -> Writer<'_> {
    let time = [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:01Z",
        "2026-01-01T00:00:02Z",
        "2026-01-01T00:00:03Z",
    ];
    Writer {
        manager,
        subresource: None,
        api_version: "relay.dev/v1",
        time: time[usize::from(second)],
    }
}

fn applied(live: Option<&Value>, spec: &Value, manager: &str, second: u8) -> Value {
    apply(
        &shape(),
        live,
        &config(spec),
        &writer(manager, second),
        Force::Yes,
    )
    .expect("applied")
}

/// The set that a manager's entry of this operation holds.
fn owned(object: &Value, manager: &str, operation: Operation) -> FieldSet {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten();
    entries
        .filter(|entry| entry["manager"] == manager && entry["operation"] == operation.as_str())
        .map(|entry| FieldSet::from_fields_v1(&entry["fieldsV1"]).expect("a set"))
        .fold(FieldSet::default(), |all, set| all.union(&set))
}

/// A spec without empty containers: of those the API server itself leaves nulls behind (golden `apply-empty-containers`).
fn spec() -> impl Strategy<Value = Value> {
    let value = || prop_oneof![Just("1"), Just("2")];
    let letters = || proptest::sample::subsequence(vec!["p", "q", "r", "s"], 1..=4).prop_shuffle();
    let item = (value(), proptest::option::of(value()));
    (
        proptest::collection::btree_map(
            prop_oneof![Just("a"), Just("b"), Just("c")],
            value(),
            0..3,
        ),
        proptest::option::of(proptest::collection::btree_map(
            prop_oneof![Just("k"), Just("l")],
            value(),
            1..3,
        )),
        proptest::option::of(proptest::collection::btree_map(
            prop_oneof![Just("x"), Just("y")],
            value(),
            1..3,
        )),
        proptest::option::of(letters()),
        proptest::option::of(letters()),
        proptest::option::of((letters(), proptest::collection::vec(item, 4))),
    )
        .prop_map(|(scalars, labels, nested, tags, plain, items)| {
            let mut spec = json!(scalars);
            let mut put = |name: &str, value: Option<Value>| {
                if let Some(value) = value {
                    spec[name] = value;
                }
            };
            put("labels", labels.map(|labels| json!(labels)));
            put("nested", nested.map(|nested| json!(nested)));
            put("tags", tags.map(|tags| json!(tags)));
            put("plain", plain.map(|plain| json!(plain)));
            put(
                "items",
                items.map(|(names, values)| {
                    let item = |(name, (value, other)): (&&str, (&str, Option<&str>))| match other {
                        Some(other) => json!({"name": name, "value": value, "other": other}),
                        None => json!({"name": name, "value": value}),
                    };
                    names.iter().zip(values).map(item).collect()
                }),
            );
            spec
        })
}

fn set() -> impl Strategy<Value = FieldSet> {
    let element = prop_oneof![
        prop_oneof![Just("a"), Just("b"), Just("c<")].prop_map(PathElement::field),
        prop_oneof![Just(9), Just(10)].prop_map(|port| PathElement::key(vec![
            ("port".into(), json!(port)),
            ("name".into(), json!("x&"))
        ])),
        prop_oneof![Just(json!("v")), Just(json!(2)), Just(json!(10))]
            .prop_map(|value| PathElement::Value(value.into())),
        (0_i64..2).prop_map(PathElement::Index),
    ];
    let path = proptest::collection::vec(element, 1..4);
    proptest::collection::vec(path, 0..8).prop_map(FieldSet::of_paths)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_obey_the_laws_of_sets(a in set(), b in set(), c in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.difference(&a), FieldSet::default());
        prop_assert_eq!(a.union(&b).len(), a.len() + b.difference(&a).len());
        prop_assert!(a.without_subtrees(&b).difference(&a.difference(&b)).is_empty());
        for path in a.union(&b).paths() {
            prop_assert_eq!(a.contains(&path) || b.contains(&path), true);
            prop_assert_eq!(a.intersection(&b).contains(&path), a.contains(&path) && b.contains(&path));
        }
        prop_assert_eq!(FieldSet::of_paths(a.paths()), a);
    }

    #[test]
    fn what_is_printed_is_read_back(a in set()) {
        prop_assert_eq!(FieldSet::from_fields_v1(&a.to_fields_v1()), Ok(a.clone()));
        let text: Value = serde_json::from_str(&a.to_canonical_text()).expect("JSON");
        prop_assert_eq!(text, a.to_fields_v1());
    }

    #[test]
    fn applying_twice_changes_nothing(first in spec(), other in spec(), second in spec()) {
        let live = applied(None, &first, "one", 0);
        let live = applied(Some(&live), &other, "two", 1);
        let once = applied(Some(&live), &second, "one", 2);
        let twice = apply(&shape(), Some(&once), &config(&second), &writer("one", 3), Force::No);
        prop_assert_eq!(twice, Ok(once));
    }

    #[test]
    fn an_applier_owns_all_it_names_and_the_object_says_it(first in spec(), other in spec()) {
        let live = applied(None, &other, "two", 0);
        let live = applied(Some(&live), &first, "one", 1);
        let names = super::members::members(&shape(), &config(&first));
        let names = super::update::without_identity(&names);
        prop_assert_eq!(owned(&live, "one", Operation::Apply), names);
        for name in ["a", "b", "c", "plain"] {
            if !first[name].is_null() {
                prop_assert_eq!(&live["spec"][name], &first[name]);
            }
        }
        // Nobody else holds a leaf with another value.
        let again = apply(&shape(), Some(&live), &config(&first), &writer("one", 2), Force::No);
        prop_assert!(again.is_ok());
    }

    #[test]
    fn managers_of_different_fields_never_conflict(a in spec(), b in spec(), c in spec()) {
        let mut live: Option<Value> = None;
        let part = |spec: &Value, names: &[&str]| -> Value {
            let fields = spec.as_object().into_iter().flatten();
            fields.filter(|(name, _)| names.contains(&name.as_str())).map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        for (spec, second) in [(&a, 0), (&b, 1), (&c, 2)] {
            for (manager, names) in [("one", ["a", "labels", "items"]), ("two", ["b", "nested", "tags"])] {
                let config = config(&part(spec, &names));
                let next = apply(&shape(), live.as_ref(), &config, &writer(manager, second), Force::No);
                prop_assert!(next.is_ok(), "{:?}", next);
                live = next.ok();
            }
        }
    }

    #[test]
    fn leaving_fields_takes_none_that_another_manager_owns(a in spec(), b in spec()) {
        let live = applied(None, &a, "one", 0);
        let live = applied(Some(&live), &b, "two", 1);
        let held = owned(&live, "two", Operation::Apply);
        let left = applied(Some(&live), &json!({}), "one", 2);
        prop_assert_eq!(owned(&left, "two", Operation::Apply), held);
        let again = apply(&shape(), Some(&left), &config(&b), &writer("two", 3), Force::No);
        prop_assert_eq!(again, Ok(left));
    }

    #[test]
    fn what_only_one_manager_applied_goes_with_it(a in spec()) {
        let live = applied(None, &json!({"c": "keep"}), "two", 0);
        let with = applied(Some(&live), &a, "one", 1);
        let without = applied(Some(&with), &json!({}), "one", 2);
        prop_assert!(a.get("c").is_some() || without["spec"] == json!({"c": "keep"}), "{}", without);
    }

    #[test]
    fn an_update_to_the_same_changes_nothing(a in spec(), b in spec()) {
        let live = applied(None, &a, "one", 0);
        let mut old = applied(Some(&live), &b, "two", 1);
        old["metadata"]["uid"] = "u".into();
        let mut new = old.clone();
        record_update(&shape(), Some(&old), &mut new, &writer("three", 2)).expect("recorded");
        prop_assert_eq!(new, old);
    }

    #[test]
    fn an_update_owns_what_it_changes_and_nobody_else_does(a in spec(), b in spec()) {
        let mut old = applied(None, &a, "one", 0);
        old["metadata"]["uid"] = "u".into();
        let mut new = old.clone();
        new["spec"] = b.clone();
        record_update(&shape(), Some(&old), &mut new, &writer("two", 1)).expect("recorded");
        let (mine, theirs) = (owned(&new, "two", Operation::Update), owned(&new, "one", Operation::Apply));
        prop_assert!(mine.intersection(&theirs).is_empty());
        let there = super::members::members(&shape(), &config(&b));
        prop_assert!(theirs.difference(&there).is_empty(), "owned and gone: {:?}", theirs.difference(&there).paths());
    }
}

#[test]
fn sets_are_printed_in_the_order_of_the_api_server() {
    let rows = [
        (
            json!({"f:spec": {"f:b": {}, "f:a": {".": {}, "f:x": {}}}}),
            r#"{"f:spec":{"f:a":{".":{},"f:x":{}},"f:b":{}}}"#,
        ),
        (
            json!({"f:l": {"k:{\"port\":10}": {}, "k:{\"port\":9}": {}}}),
            r#"{"f:l":{"k:{\"port\":9}":{},"k:{\"port\":10}":{}}}"#,
        ),
        (
            json!({"f:l": {"v:10": {}, "v:9": {}, "v:\"a\"": {}, "i:0": {}}}),
            r#"{"f:l":{"v:9":{},"v:10":{},"v:\"a\"":{},"i:0":{}}}"#,
        ),
        (
            json!({"f:a": {"x:later": {}}, "f:b": null}),
            r#"{"f:a":{},"f:b":{}}"#,
        ),
    ];
    for (fields, wanted) in rows {
        let set = FieldSet::from_fields_v1(&fields).expect("a set");
        assert_eq!(set.to_canonical_text(), wanted);
    }
}

#[test]
fn what_is_no_set_is_refused() {
    for fields in [
        json!([]),
        json!({"f": {}}),
        json!({"fspec": {}}),
        json!({"k:{": {}}),
        json!({"v:x": {}}),
        json!({"i:x": {}}),
        json!({"f:a": 1}),
    ] {
        assert!(FieldSet::from_fields_v1(&fields).is_err(), "{fields}");
    }
}

#[test]
fn a_parent_takes_away_itself_or_its_subtree() {
    let set = |fields| FieldSet::from_fields_v1(&fields).expect("a set");
    let all = set(json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
    let parent = set(json!({"f:a": {}}));
    assert_eq!(
        all.difference(&parent),
        set(json!({"f:a": {"f:b": {}}, "f:c": {}}))
    );
    assert_eq!(all.without_subtrees(&parent), set(json!({"f:c": {}})));
}

#[test]
fn entries_follow_a_field_that_became_atomic() {
    let atomic = Shape::of_schema(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "nested": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "string"}}}}}}}),
    );
    let live = applied(None, &json!({"nested": {"x": "1"}}), "one", 0);
    let next = apply(
        &atomic,
        Some(&live),
        &config(&json!({"nested": {"x": "1"}})),
        &writer("two", 1),
        Force::No,
    );
    let next = next.expect("applied");
    let whole = FieldSet::from_fields_v1(&json!({"f:spec": {"f:nested": {}}})).expect("a set");
    assert_eq!(owned(&next, "one", Operation::Apply), whole);
    assert_eq!(owned(&next, "two", Operation::Apply), whole);
}

#[test]
fn the_oldest_updates_are_merged_when_there_are_more_than_ten() {
    let mut live = object(&json!({}));
    for at in 0..14 {
        let old = live.clone();
        live["spec"]["labels"][format!("k{at}")] = "v".into();
        let manager = format!("m{at:02}");
        let old = Some(&old).filter(|_| at > 0);
        record_update(&shape(), old, &mut live, &writer(&manager, 0)).expect("recorded");
    }
    let entries = live["metadata"]["managedFields"]
        .as_array()
        .expect("entries");
    assert_eq!(entries.len(), 10);
    let ancient = owned(&live, "ancient-changes", Operation::Update);
    assert_eq!(
        ancient.paths().len(),
        2 + 5,
        "{}",
        ancient.to_canonical_text()
    );
}

#[test]
fn kinds_without_a_schema_own_by_field_and_lists_as_a_whole() {
    let shape = Shape::untyped().with_whole_field("data");
    let config = json!({"apiVersion": "relay.dev/v1", "kind": "Thing", "metadata": {"name": "n", "labels": {"l": "1"}},
        "data": {"deep": {"x": 1}}, "other": {"deep": {"x": 1}, "list": [{"y": 2}]}});
    let made = apply(&shape, None, &config, &writer("one", 0), Force::No).expect("applied");
    let wanted = json!({"f:metadata": {"f:labels": {"f:l": {}}}, "f:data": {},
        "f:other": {".": {}, "f:deep": {".": {}, "f:x": {}}, "f:list": {}}});
    assert_eq!(made["metadata"]["managedFields"][0]["fieldsV1"], wanted);
}

#[test]
fn a_writer_needs_a_time_and_an_object_metadata() {
    let late = Writer {
        time: "yesterday",
        ..writer("one", 0)
    };
    let refused = apply(&shape(), None, &config(&json!({})), &late, Force::No);
    assert!(
        matches!(refused, Err(ApplyError::Caller(FieldsError::Time { .. }))),
        "{refused:?}"
    );
    let mut bare = json!({"spec": {}});
    let refused = record_update(&shape(), None, &mut bare, &writer("one", 0));
    assert_eq!(refused, Err(FieldsError::NoMetadata));
}
