//! An object as a watch brings it. One that this program cannot read does not end the watch: it is carried on with its
//! metadata and the place of what was not understood, so that it can be reported on that object and skipped.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object, understood or not.
#[derive(Debug, Clone)]
pub enum Watched<K> {
    /// It has the form this program knows.
    Parsed(K),
    /// It does not.
    Unparsed(Box<Unparsed>),
}

/// What is known of an object that was not understood.
#[derive(Debug, Clone)]
pub struct Unparsed {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// The field and what is wrong with it.
    pub error: String,
}

impl<'de, K: DeserializeOwned + Resource> Deserialize<'de> for Watched<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tree = Value::deserialize(deserializer)?;
        slim(&mut tree);
        match serde_path_to_error::deserialize::<_, K>(&tree) {
            Ok(object) => Ok(Self::Parsed(object)),
            Err(error) => {
                let metadata = tree.get("metadata").unwrap_or(&Value::Null);
                let metadata = ObjectMeta::deserialize(metadata).map_err(D::Error::custom)?;
                let error = format!("{}: {}", error.path(), error.inner());
                Ok(Self::Unparsed(Box::new(Unparsed { metadata, error })))
            }
        }
    }
}

/// What `kubectl apply` keeps of an object for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Field ownership and kubectl's copy are most of an object's size, and nobody here reads them.
fn slim(tree: &mut Value) {
    let Some(metadata) = tree.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    metadata.remove("managedFields");
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.remove(LAST_APPLIED);
    }
}

impl<K: Resource> Resource for Watched<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Parsed(object) => object.meta(),
            Self::Unparsed(unparsed) => &unparsed.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Parsed(object) => object.meta_mut(),
            Self::Unparsed(unparsed) => &mut unparsed.metadata,
        }
    }
}

/// Whether `newer` was written after `older`, where both have versions that say so. Resource versions of one resource
/// are comparable numbers, here and on API servers since 1.35.
pub(crate) fn is_newer(newer: &ObjectMeta, older: &ObjectMeta) -> bool {
    let version = |metadata: &ObjectMeta| {
        let text = metadata.resource_version.as_deref()?;
        text.parse::<u64>().ok()
    };
    version(newer) > version(older)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::Lease;
    use kube::core::ObjectList;
    use serde_json::json;

    use super::*;

    #[test]
    fn fault_36_an_object_that_is_not_understood_does_not_hide_the_others() {
        let list = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "metadata": {"resourceVersion": "9"},
            "items": [
                {"metadata": {"name": "good", "managedFields": [{"manager": "m", "operation": "Update"}]}, "spec": {"leaseDurationSeconds": 3}},
                {"metadata": {"name": "bad", "uid": "u1", "generation": 4}, "spec": {"leaseDurationSeconds": "soon"}},
            ],
        });
        let list: ObjectList<Watched<Lease>> = serde_json::from_value(list).unwrap();
        let Watched::Parsed(good) = &list.items[0] else {
            panic!("{:?}", list.items[0]);
        };
        assert_eq!(good.metadata.name.as_deref(), Some("good"));
        assert_eq!(good.metadata.managed_fields, None);
        let Watched::Unparsed(bad) = &list.items[1] else {
            panic!("{:?}", list.items[1]);
        };
        assert_eq!(bad.metadata.uid.as_deref(), Some("u1"));
        assert!(bad.error.starts_with("spec.leaseDurationSeconds: "), "{}", bad.error);
        assert_eq!(list.items[1].meta().generation, Some(4));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let at = |version: Option<&str>| ObjectMeta {
            resource_version: version.map(str::to_owned),
            ..ObjectMeta::default()
        };
        for (newer, older, is) in [
            (Some("10"), Some("9"), true),
            (Some("9"), Some("10"), false),
            (Some("9"), Some("9"), false),
            (Some("9"), None, true),
            (Some("x"), Some("9"), false),
        ] {
            assert_eq!(is_newer(&at(newer), &at(older)), is, "{newer:?} {older:?}");
        }
    }
}
