//! The kinds of Kubernetes that Relay uses, described as a CRD would describe them, so that one code checks, merges and shows
//! all kinds.

use serde_json::{Map, Value, json};

use super::{CatalogError, Nature, Resource, View, resource};

/// Namespaces, events in both versions, and revisions.
pub(super) fn resources() -> Result<Vec<Resource>, CatalogError> {
    let described = [
        (namespaces(), Nature::Namespace, View::Stored),
        (core_events(), Nature::Event, View::CoreEvent),
        (revisions(), Nature::Revision, View::Stored),
        (events(), Nature::Event, View::Stored),
    ];
    described
        .iter()
        .zip(1..)
        .map(|((document, nature, view), number)| {
            resource(document, *nature, *view)
                .map_err(|source| CatalogError::Unusable { number, source })
        })
        .collect()
}

/// How a kind is called.
struct Names {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
    scope: &'static str,
}

fn document(names: &Names, description: &str, properties: Value, required: &[&str]) -> Value {
    let mut all = Map::from_iter([
        ("apiVersion".to_owned(), text("Version of this kind.")),
        ("kind".to_owned(), text("Name of this kind.")),
        ("metadata".to_owned(), json!({"type": "object"})),
    ]);
    if let Value::Object(properties) = properties {
        all.extend(properties);
    }
    let mut schema = json!({"type": "object", "description": description, "properties": all});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let subresources = match names.kind {
        "Namespace" => json!({"status": {}}),
        _ => json!({}),
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", names.plural, names.group)},
        "spec": {
            "group": names.group,
            "scope": names.scope,
            "names": {
                "kind": names.kind,
                "listKind": format!("{}List", names.kind),
                "plural": names.plural,
                "singular": names.singular,
                "shortNames": names.short,
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": subresources,
                "additionalPrinterColumns": columns(names.kind),
            }],
        },
    })
}

/// The columns that `kubectl get` shows. Those of events are made in `rest::table`: no path gives them.
fn columns(kind: &str) -> Value {
    let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    match kind {
        "Namespace" => json!([
            {"name": "Status", "type": "string", "jsonPath": ".status.phase"},
            age,
        ]),
        "ControllerRevision" => json!([
            {"name": "Controller", "type": "string", "jsonPath": ".metadata.ownerReferences[?(@.controller==true)].name"},
            {"name": "Revision", "type": "integer", "jsonPath": ".revision"},
            age,
        ]),
        _ => json!([]),
    }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

fn count(description: &str) -> Value {
    json!({"type": "integer", "format": "int32", "description": description})
}

/// An object that is kept as it is.
fn anything(description: &str) -> Value {
    json!({"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": true})
}

fn reference(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": {
            "apiVersion": text("Version of the kind."),
            "fieldPath": text("The part of the object that is meant."),
            "kind": text("Kind of the object."),
            "name": text("Name of the object."),
            "namespace": text("Namespace of the object."),
            "resourceVersion": text("The state of the object that is meant."),
            "uid": text("Which object of that name is meant."),
        },
        "x-kubernetes-map-type": "atomic",
    })
}

fn source(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": {
            "component": text("The program that the event comes from."),
            "host": text("The machine that the event comes from."),
        },
    })
}

fn series(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": {
            "count": count("How often it happened so far."),
            "lastObservedTime": time("When it happened last."),
        },
    })
}

fn namespaces() -> Value {
    let names = Names {
        group: "",
        kind: "Namespace",
        plural: "namespaces",
        singular: "namespace",
        short: &["ns"],
        scope: "Cluster",
    };
    document(
        &names,
        "A namespace keeps names of objects apart.",
        json!({
            "spec": {
                "type": "object",
                "properties": {"finalizers": {
                    "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic",
                }},
            },
            "status": {
                "type": "object",
                "properties": {
                    "phase": text("Active or Terminating."),
                    "conditions": {
                        "type": "array", "items": anything("A condition of the namespace."),
                        "x-kubernetes-list-type": "atomic",
                    },
                },
            },
        }),
        &[],
    )
}

fn revisions() -> Value {
    let names = Names {
        group: "apps",
        kind: "ControllerRevision",
        plural: "controllerrevisions",
        singular: "controllerrevision",
        short: &[],
        scope: "Namespaced",
    };
    document(
        &names,
        "A document that never changes once it is stored: a policy, a contract, the inputs of a revision.",
        json!({
            "data": anything("What was stored."),
            "revision": {
                "type": "integer", "format": "int64", "description": "Which one in its line this is.",
            },
        }),
        &["revision"],
    )
}

fn events() -> Value {
    let names = Names {
        group: "events.k8s.io",
        kind: "Event",
        plural: "events",
        singular: "event",
        short: &["ev"],
        scope: "Namespaced",
    };
    document(
        &names,
        "Something that happened to an object.",
        json!({
            "action": text("What was done or failed."),
            "deprecatedCount": count("For events of core v1."),
            "deprecatedFirstTimestamp": time("For events of core v1."),
            "deprecatedLastTimestamp": time("For events of core v1."),
            "deprecatedSource": source("For events of core v1."),
            "eventTime": time("When it happened first."),
            "note": text("What happened, in words."),
            "reason": text("Why it was done, in one word."),
            "regarding": reference("The object that it happened to."),
            "related": reference("Another object that it is about."),
            "reportingController": text("The controller that tells."),
            "reportingInstance": text("The process that tells."),
            "series": series("The event happens again and again."),
            "type": text("Normal or Warning."),
        }),
        &[],
    )
}

fn core_events() -> Value {
    let names = Names {
        group: "",
        kind: "Event",
        plural: "events",
        singular: "event",
        short: &["ev"],
        scope: "Namespaced",
    };
    document(
        &names,
        "Something that happened to an object.",
        json!({
            "action": text("What was done or failed."),
            "count": count("How often it happened."),
            "eventTime": time("When it happened first."),
            "firstTimestamp": time("When it happened first."),
            "involvedObject": reference("The object that it happened to."),
            "lastTimestamp": time("When it happened last."),
            "message": text("What happened, in words."),
            "reason": text("Why it was done, in one word."),
            "related": reference("Another object that it is about."),
            "reportingComponent": text("The controller that tells."),
            "reportingInstance": text("The process that tells."),
            "series": series("The event happens again and again."),
            "source": source("The program that tells."),
            "type": text("Normal or Warning."),
        }),
        &[],
    )
}
