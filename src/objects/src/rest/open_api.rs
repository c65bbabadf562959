//! `/openapi/v3`: what `kubectl explain` prints, what `kubectl apply` looks for before it relies on the server's checks, and
//! what the controller compares its own kinds with.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::catalog::{Catalog, Resource, Scope};

/// The schema of metadata.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Where a group's version is below `/openapi/v3`.
fn place(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

/// `/openapi/v3`.
pub(super) fn index(catalog: &Catalog) -> Value {
    let groups = catalog.groups();
    let paths = groups.iter().map(|(group, version)| {
        let place = place(group, version);
        let text = document(catalog, group, version).to_string();
        let digest: String = Sha256::digest(text.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        let url = format!("/openapi/v3/{place}?hash={digest}");
        (place, json!({"serverRelativeURL": url}))
    });
    json!({"paths": paths.collect::<Map<_, _>>()})
}

/// The document of a group's version.
pub(super) fn document(catalog: &Catalog, group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::from_iter([(OBJECT_META.to_owned(), object_meta())]);
    for resource in catalog.of_group(group, version) {
        schemas.insert(schema_name(resource), schema(resource));
        add_paths(&mut paths, resource);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Relay", "version": "v1.35.4-relay"},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// `dev.relay.v1alpha1.RoutingPolicy`.
fn schema_name(resource: &Resource) -> String {
    let definition = &resource.definition;
    let mut parts: Vec<&str> = match definition.group.as_str() {
        "" => vec!["core", "api", "k8s", "io"],
        group => group.split('.').collect(),
    };
    parts.reverse();
    format!(
        "{}.{}.{}",
        parts.join("."),
        definition.version,
        definition.kind
    )
}

fn group_version_kind(resource: &Resource) -> Value {
    let definition = &resource.definition;
    json!({
        "group": definition.group, "version": definition.version, "kind": definition.kind,
    })
}

fn schema(resource: &Resource) -> Value {
    let mut schema = resource.definition.open_api.clone();
    let field = |description: &str| json!({"type": "string", "description": description});
    schema["properties"]["apiVersion"] = field("Version of this kind.");
    schema["properties"]["kind"] = field("Name of this kind.");
    schema["properties"]["metadata"] = json!({
        "description": "Standard object's metadata.",
        "allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}],
    });
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(resource)]);
    schema
}

fn parameter(name: &str, type_: &str, description: &str) -> Value {
    json!({
        "name": name, "in": "query", "description": description,
        "schema": {"type": type_, "uniqueItems": true},
    })
}

fn operation(resource: &Resource, action: &str) -> Value {
    let mut parameters = Vec::new();
    match action {
        "post" | "put" | "patch" => {
            parameters.push(parameter("dryRun", "string", "All: nothing is stored."));
            parameters.push(parameter(
                "fieldManager",
                "string",
                "Who owns what is written.",
            ));
            parameters.push(parameter(
                "fieldValidation",
                "string",
                "Unknown fields are always errors.",
            ));
            if action == "patch" {
                parameters.push(parameter(
                    "force",
                    "boolean",
                    "Fields of other managers are taken over.",
                ));
            }
        }
        "delete" => parameters.push(parameter("dryRun", "string", "All: nothing is deleted.")),
        "list" => {
            for name in [
                "labelSelector",
                "fieldSelector",
                "continue",
                "resourceVersion",
            ] {
                parameters.push(parameter(name, "string", "As everywhere in Kubernetes."));
            }
            parameters.push(parameter("limit", "integer", "Most objects of an answer."));
            parameters.push(parameter("watch", "boolean", "Follow what happens."));
        }
        _ => {}
    }
    let reference = format!("#/components/schemas/{}", schema_name(resource));
    let content = json!({"application/json": {"schema": {"$ref": reference}}});
    json!({
        "operationId": format!("{action}{}", resource.definition.kind),
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": group_version_kind(resource),
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": content}},
    })
}

fn add_paths(paths: &mut Map<String, Value>, resource: &Resource) {
    let definition = &resource.definition;
    let root = format!("/{}", place(&definition.group, &definition.version));
    let all = match resource.scope {
        Scope::Cluster => format!("{root}/{}", definition.plural),
        Scope::Namespaced => format!("{root}/namespaces/{{namespace}}/{}", definition.plural),
    };
    let one = format!("{all}/{{name}}");
    let some = |actions: &[(&str, &str)]| {
        let made = actions
            .iter()
            .map(|(method, action)| ((*method).to_owned(), operation(resource, action)));
        Value::Object(made.collect())
    };
    let changes = [("get", "get"), ("put", "put"), ("patch", "patch")];
    if definition.has_status {
        paths.insert(format!("{one}/status"), some(&changes));
    }
    paths.insert(all, some(&[("get", "list"), ("post", "post")]));
    let mut whole = changes.to_vec();
    whole.push(("delete", "delete"));
    paths.insert(one, some(&whole));
}

fn object_meta() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let time = |description: &str| json!({"type": "string", "format": "date-time", "description": description});
    let texts = |description: &str| {
        json!({
            "type": "object", "description": description,
            "additionalProperties": {"type": "string", "default": ""},
        })
    };
    json!({
        "description": "ObjectMeta is metadata that all persisted resources must have.",
        "type": "object",
        "properties": {
            "annotations": texts("Arbitrary metadata, set by tools."),
            "creationTimestamp": time("When the object was made."),
            "deletionGracePeriodSeconds": {"type": "integer", "format": "int64", "description": "Always 0."},
            "deletionTimestamp": time("When its end was asked for."),
            "finalizers": {
                "type": "array", "description": "Must be empty before the object goes.",
                "items": {"type": "string", "default": ""},
                "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
            },
            "generateName": text("What a generated name begins with."),
            "generation": {"type": "integer", "format": "int64", "description": "Counts changes of the wish."},
            "labels": texts("By what objects are selected."),
            "managedFields": {
                "type": "array", "description": "Who owns which fields.", "items": {"type": "object"},
                "x-kubernetes-list-type": "atomic",
            },
            "name": text("Unique within a namespace."),
            "namespace": text("Where the name is unique."),
            "ownerReferences": {
                "type": "array", "description": "On what objects it depends.", "items": {"type": "object"},
                "x-kubernetes-list-map-keys": ["uid"], "x-kubernetes-list-type": "map",
                "x-kubernetes-patch-merge-key": "uid", "x-kubernetes-patch-strategy": "merge",
            },
            "resourceVersion": text("The state of the object."),
            "selfLink": text("No longer filled."),
            "uid": text("Which object of that name it is."),
        },
    })
}
