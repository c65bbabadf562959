//! Whether the server knows the kinds as this program does. A field the server does not know is dropped by it in
//! silence, so the published OpenAPI is compared with our own schema: at start, and again from time to time, since a CRD
//! may be updated under a running controller.

use std::collections::BTreeSet;

use api::group::Kind;
use http::Request;
use kube::Client;
use serde_json::Value;

/// Where the schema of our group is published, to every client that is authenticated.
const PATH: &str = "/openapi/v3/apis/relay.dev/v1alpha1";
/// Most fields that are named.
const MAX_NAMED: usize = 64;

/// What the server and this program know apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// Fields that the server does not know, as `spec.profiles[].risk`. It drops them.
    pub missing: BTreeSet<String>,
    /// Fields and values that only the server knows, values as `spec.device=Tpu`.
    pub unknown: BTreeSet<String>,
}

impl Difference {
    /// Whether they know the same.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.missing.is_empty() && self.unknown.is_empty()
    }

    /// Fields that an object uses, or that its status needs, and that the server drops.
    #[must_use]
    pub fn concerns(&self, object: &Value) -> Vec<&str> {
        let used = |path: &&str| path.starts_with("status.") || uses(object, path);
        self.missing.iter().map(String::as_str).filter(used).collect()
    }
}

/// Reads what is published about our group.
///
/// # Errors
/// When the API does not answer with a document.
pub async fn published(client: &Client) -> Result<Value, kube::Error> {
    let request = Request::get(PATH)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}

/// Compares the schema of a CRD of ours with what is published about its kind. A kind that is not published has every
/// field missing: its watch says the same.
#[must_use]
pub fn difference(kind: Kind, ours: &Value, published: &Value) -> Difference {
    let mut found = Difference::default();
    let theirs = schema_of(kind, published);
    for part in ["spec", "status"] {
        let path = ["properties", part];
        compare(part, at(ours, &path), at(theirs, &path), &mut found);
    }
    found
}

/// The schema of a kind in a document that names it by group, version and kind.
fn schema_of(kind: Kind, published: &Value) -> &Value {
    let schemas = &published["components"]["schemas"];
    let is_kind = |schema: &&Value| {
        let names = schema["x-kubernetes-group-version-kind"].as_array();
        names.is_some_and(|names| {
            names.iter().any(|name| {
                name["kind"] == kind.as_str()
                    && name["group"] == api::group::GROUP
                    && name["version"] == api::group::VERSION
            })
        })
    };
    let mut all = schemas.as_object().into_iter().flat_map(|all| all.values());
    all.find(is_kind).unwrap_or(&Value::Null)
}

fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, key| &value[*key])
}

fn compare(path: &str, ours: &Value, theirs: &Value, found: &mut Difference) {
    if theirs.is_null() && !ours.is_null() {
        return name(&mut found.missing, path.to_owned());
    }
    if theirs["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    let (mine, other) = (&ours["properties"], &theirs["properties"]);
    let fields = |value: &Value| -> BTreeSet<String> {
        let object = value.as_object().into_iter();
        object.flat_map(|fields| fields.keys().cloned()).collect()
    };
    for field in fields(mine).union(&fields(other)) {
        let below = format!("{path}.{field}");
        match (mine.get(field), other.get(field)) {
            (Some(ours), theirs) => compare(&below, ours, theirs.unwrap_or(&Value::Null), found),
            (None, _) => name(&mut found.unknown, below),
        }
    }
    for (list, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if ours[list].is_object() {
            compare(&format!("{path}{suffix}"), &ours[list], &theirs[list], found);
        }
    }
    let words = |value: &Value| -> BTreeSet<String> {
        let words = value["enum"].as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    // A status may say more words than we do; only what people write must be understood.
    if path.starts_with("spec") && ours["enum"].is_array() {
        for word in words(theirs).difference(&words(ours)) {
            name(&mut found.unknown, format!("{path}={word}"));
        }
    }
}

fn name(list: &mut BTreeSet<String>, path: String) {
    if list.len() < MAX_NAMED {
        list.insert(path);
    }
}

/// Whether an object has something at a path; `[]` and `{}` are any entry.
fn uses(object: &Value, path: &str) -> bool {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let plain = first.trim_end_matches("[]").trim_end_matches("{}");
    let value = &object[plain];
    let below = |value: &Value| !value.is_null() && (rest.is_empty() || uses(value, rest));
    match value {
        Value::Array(entries) if first.ends_with("[]") => entries.iter().any(below),
        Value::Object(entries) if first.ends_with("{}") => entries.values().any(below),
        value => below(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn published(spec: &Value, status: &Value) -> Value {
        json!({"components": {"schemas": {
            "dev.relay.v1alpha1.RoutingPolicyList": {"x-kubernetes-group-version-kind": [{"group": "relay.dev", "version": "v1alpha1", "kind": "RoutingPolicyList"}]},
            "dev.relay.v1alpha1.RoutingPolicy": {
                "x-kubernetes-group-version-kind": [{"group": "relay.dev", "version": "v1alpha1", "kind": "RoutingPolicy"}],
                "properties": {"spec": spec, "status": status},
            },
        }}})
    }

    fn paths(list: &BTreeSet<String>) -> Vec<&str> {
        list.iter().map(String::as_str).collect()
    }

    #[test]
    fn fault_36_fields_and_words_that_one_side_lacks_are_named() {
        let spec = json!({"properties": {
            "profile": {"type": "string"},
            "mode": {"enum": ["Advise", "Enforce"]},
            "tiers": {"items": {"properties": {"name": {}, "models": {"items": {}}}}},
        }});
        let status = json!({"properties": {"acceptedRevision": {}}});
        let ours = json!({"properties": {"spec": spec, "status": status}});
        let same = difference(Kind::RoutingPolicy, &ours, &published(&spec, &status));
        assert!(same.is_none(), "{same:?}");

        let older = json!({"properties": {"profile": {"type": "string"}, "tiers": {"items": {"properties": {"name": {}}}}}});
        let found = difference(Kind::RoutingPolicy, &ours, &published(&older, &json!({"properties": {}})));
        assert_eq!(paths(&found.missing), ["spec.mode", "spec.tiers[].models", "status.acceptedRevision"]);

        let newer = json!({"properties": {
            "profile": {"type": "string"}, "budget": {},
            "mode": {"enum": ["Advise", "Enforce", "Suggest"]},
            "tiers": {"items": {"properties": {"name": {}, "models": {"items": {}}, "weight": {}}}},
        }});
        let found = difference(Kind::RoutingPolicy, &ours, &published(&newer, &status));
        assert_eq!(paths(&found.unknown), ["spec.budget", "spec.mode=Suggest", "spec.tiers[].weight"]);

        let absent = difference(Kind::RoutingPolicy, &ours, &json!({}));
        assert_eq!(paths(&absent.missing), ["spec", "status"]);
    }

    #[test]
    fn fault_36_only_objects_that_use_a_dropped_field_are_concerned() {
        let missing = ["spec.mode", "spec.tiers[].models"].map(str::to_owned);
        let spec = Difference {
            missing: missing.into(),
            unknown: BTreeSet::new(),
        };
        for (object, concerned) in [
            (json!({"spec": {"profile": "x"}}), vec![]),
            (json!({"spec": {"mode": "Advise"}}), vec!["spec.mode"]),
            (json!({"spec": {"tiers": [{"name": "fast"}, {"models": ["a/b"]}]}}), vec!["spec.tiers[].models"]),
        ] {
            assert_eq!(spec.concerns(&object), concerned, "{object}");
        }
        let status = Difference {
            missing: ["status.acceptedRevision".to_owned()].into(),
            unknown: BTreeSet::new(),
        };
        assert_eq!(status.concerns(&json!({})), ["status.acceptedRevision"]);
    }
}
