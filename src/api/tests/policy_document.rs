//! `docs/routing-policy.md` and the examples beside it: the page names every field with the default it has, and the
//! examples are what they say they are.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use api::document::read_yaml;
use api::routing_policy::{RoutingPolicy, RoutingPolicySpec};
use serde_json::Value;

const PAGE: &str = include_str!("../../../docs/routing-policy.md");
const MINIMAL: &str = include_str!("../../../docs/examples/policy-minimal.yaml");
const FULL: &str = include_str!("../../../docs/examples/policy-full.yaml");

/// Field and default of each row of the table.
fn rows() -> Vec<(&'static str, &'static str)> {
    let table = PAGE.split("## Fields of `spec`").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let field = cells[1].trim_end_matches(" °").trim_matches('`');
        (field, cells[2])
    })
    .collect()
}

/// Every field that a tree uses, as `rules[].floor.tier`; of an object that holds others only where they lie in a list or
/// where the object may be absent as a whole.
fn fields(tree: &Value, path: &str, all: &mut BTreeSet<String>) {
    match tree {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                if !value.is_object() || path.contains("[]") {
                    all.insert(path.clone());
                }
                fields(value, &path, all);
            }
        }
        Value::Array(items) => {
            for item in items {
                fields(item, &format!("{path}[]"), all);
            }
        }
        _ => {}
    }
}

#[test]
fn the_page_has_every_field_once() {
    let tree = read_yaml(FULL).unwrap();
    let mut used = BTreeSet::new();
    fields(&tree["spec"], "", &mut used);
    let listed: Vec<_> = rows()
        .into_iter()
        .map(|(field, _)| field.to_owned())
        .collect();
    let once: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len(), "a field stands there twice");
    assert_eq!(once, used);
}

/// The example uses each field there is: one that is added to the type is in no tree of the example and has no row.
#[test]
fn the_full_example_leaves_no_field_out() {
    let mut defaults = BTreeSet::new();
    fields(&RoutingPolicySpec::default().tree(), "", &mut defaults);
    let listed: BTreeSet<_> = rows()
        .into_iter()
        .map(|(field, _)| field.to_owned())
        .collect();
    assert_eq!(
        defaults.difference(&listed).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

#[test]
fn the_defaults_on_the_page_are_those_of_the_program() {
    let defaults = RoutingPolicySpec::default().tree();
    let mut compared = 0;
    for (field, told) in rows() {
        let value = defaults.pointer(&format!("/{}", field.replace('.', "/")));
        if let Some(value) = value {
            assert_eq!(told, format!("`{value}`"), "{field}");
            compared += 1;
        }
    }
    assert_eq!(compared, 16);
    // Those of items of lists.
    let items = "{apiVersion: relay.dev/v1alpha1, kind: RoutingPolicy, metadata: {name: a}, spec: {models: [{ref: a/b}], quota: [{provider: a}]}}";
    let spec = RoutingPolicy::read(items).unwrap().spec;
    let told = |wanted: &str| {
        rows()
            .into_iter()
            .find(|(field, _)| *field == wanted)
            .unwrap()
            .1
    };
    assert_eq!(
        told("models[].disabled"),
        format!("`{}`", spec.models[0].disabled)
    );
    assert_eq!(
        told("quota[].share"),
        format!("`{}`", spec.tree()["quota"][0]["share"])
    );
}

#[test]
fn the_examples_compile_without_a_warning_and_have_the_revision_on_the_page() {
    for (name, text) in [("minimal", MINIMAL), ("full", FULL)] {
        let policy = RoutingPolicy::read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let compiled = policy.compile("2026-11-30".parse().unwrap());
        let compiled = compiled.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(compiled.warnings, [], "{name}");
        if name == "minimal" {
            let told = format!("its revision `{}`", compiled.revision());
            assert!(PAGE.contains(&told), "{told}");
        }
    }
}
