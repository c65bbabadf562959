//! What there is: versions, groups, resources and their verbs, one by one and all in one.

use serde_json::{Value, json};

use crate::catalog::{Catalog, Nature, Resource, Scope};

/// The version of Kubernetes whose API this is.
const MINOR: &str = "35";

/// Below which root a group lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// The group without a name.
    Api,
    Apis,
}

impl Root {
    const fn has(self, group: &str) -> bool {
        group.is_empty() == matches!(self, Self::Api)
    }
}

/// `/version`.
pub(super) fn version() -> Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": format!("v1.{MINOR}.4-relay"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// `/api`.
pub(super) fn versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [],
    })
}

/// `/apis`.
pub(super) fn groups(catalog: &Catalog) -> Value {
    let named = catalog.groups();
    let named = named.iter().filter(|(group, _)| Root::Apis.has(group));
    json!({
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": named.map(|(group, version)| described(group, version)).collect::<Vec<_>>(),
    })
}

fn described(group: &str, version: &str) -> Value {
    let of = json!({"groupVersion": format!("{group}/{version}"), "version": version});
    json!({"name": group, "versions": [of], "preferredVersion": of})
}

/// `/apis/<group>`.
pub(super) fn group(catalog: &Catalog, name: &str) -> Option<Value> {
    let groups = catalog.groups();
    let (group, version) = groups.iter().find(|(group, _)| *group == name)?;
    let mut value = described(group, version);
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Some(value)
}

/// What can be done with objects of a kind.
fn verbs(resource: &Resource) -> Vec<&'static str> {
    let mut verbs = vec![
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    if resource.nature == Nature::Namespace {
        verbs.retain(|verb| *verb != "deletecollection");
    }
    verbs
}

const PART_VERBS: [&str; 3] = ["get", "patch", "update"];

/// The parts of a kind's objects: path, group, version and kind.
fn parts(resource: &Resource) -> Vec<(&'static str, &str, &str, &str)> {
    let definition = &resource.definition;
    let mut parts = Vec::new();
    if definition.has_status {
        let (group, version) = (&definition.group, &definition.version);
        parts.push((
            "status",
            group.as_str(),
            version.as_str(),
            definition.kind.as_str(),
        ));
    }
    if definition.scale.is_some() {
        parts.push(("scale", "autoscaling", "v1", "Scale"));
    }
    parts
}

/// `/api/v1` and `/apis/<group>/<version>`.
pub(super) fn resources(catalog: &Catalog, group: &str, version: &str) -> Value {
    let mut all = Vec::new();
    for resource in catalog.of_group(group, version) {
        let definition = &resource.definition;
        let namespaced = resource.scope == Scope::Namespaced;
        let mut entry = json!({
            "name": definition.plural,
            "singularName": definition.singular,
            "namespaced": namespaced,
            "kind": definition.kind,
            "verbs": verbs(resource),
        });
        if !definition.short_names.is_empty() {
            entry["shortNames"] = json!(definition.short_names);
        }
        if !definition.categories.is_empty() {
            entry["categories"] = json!(definition.categories);
        }
        all.push(entry);
        for (part, group, version, kind) in parts(resource) {
            let mut entry = json!({
                "name": format!("{}/{part}", definition.plural),
                "singularName": "",
                "namespaced": namespaced,
                "kind": kind,
                "verbs": PART_VERBS,
            });
            if part == "scale" {
                entry["group"] = group.into();
                entry["version"] = version.into();
            }
            all.push(entry);
        }
    }
    let name = match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": all,
    })
}

/// `/api` or `/apis` with everything below it.
pub(super) fn aggregated(catalog: &Catalog, root: Root) -> Value {
    let groups = catalog.groups();
    let groups = groups.iter().filter(|(group, _)| root.has(group));
    let items = groups.map(|(group, version)| {
        let resources = catalog
            .of_group(group, version)
            .map(|resource| aggregated_resource(resource));
        let metadata = match *group {
            "" => json!({"creationTimestamp": null}),
            group => json!({"name": group, "creationTimestamp": null}),
        };
        json!({
            "metadata": metadata,
            "versions": [{
                "version": version,
                "resources": resources.collect::<Vec<_>>(),
                "freshness": "Current",
            }],
        })
    });
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items.collect::<Vec<_>>(),
    })
}

fn aggregated_resource(resource: &Resource) -> Value {
    let definition = &resource.definition;
    let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let subresources: Vec<Value> = parts(resource)
        .into_iter()
        .map(|(part, group, version, of)| {
            json!({
                "subresource": part, "responseKind": kind(group, version, of), "verbs": PART_VERBS,
            })
        })
        .collect();
    let scope = match resource.scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    };
    let mut entry = json!({
        "resource": definition.plural,
        "responseKind": kind(&definition.group, &definition.version, &definition.kind),
        "scope": scope,
        "singularResource": definition.singular,
        "verbs": verbs(resource),
    });
    if !definition.short_names.is_empty() {
        entry["shortNames"] = json!(definition.short_names);
    }
    if !definition.categories.is_empty() {
        entry["categories"] = json!(definition.categories);
    }
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}
