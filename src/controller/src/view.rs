//! An object as far as somebody looks at it. A view reads the parts it names and nothing else, so that a field this
//! program does not know, in a part it does not need, is no reason to treat the object otherwise.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// A part of an object that nobody looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Unread {}

/// An object of kind `K` with what is read of its status and its spec. A part of a form that its type does not know is
/// as if it were absent; a type that must tell the two apart reads its fields leniently itself.
#[derive(Deserialize)]
#[serde(bound(deserialize = "S: DeserializeOwned + Default, P: DeserializeOwned + Default"))]
pub struct View<K, S, P = Unread> {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What is read of its spec.
    #[serde(default, deserialize_with = "lenient")]
    pub spec: P,
    /// What is read of its status.
    #[serde(default, deserialize_with = "lenient")]
    pub status: S,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let tree = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(tree).unwrap_or_default())
}

impl<K, S: Clone, P: Clone> Clone for View<K, S, P> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            spec: self.spec.clone(),
            status: self.status.clone(),
            kind: PhantomData,
        }
    }
}

impl<K, S: fmt::Debug, P: fmt::Debug> fmt::Debug for View<K, S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("metadata", &self.metadata)
            .field("spec", &self.spec)
            .field("status", &self.status)
            .finish()
    }
}

impl<K, S: Default, P: Default> Default for View<K, S, P> {
    fn default() -> Self {
        Self {
            metadata: ObjectMeta::default(),
            spec: P::default(),
            status: S::default(),
            kind: PhantomData,
        }
    }
}

impl<K, S, P> Resource for View<K, S, P>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn api_version((): &()) -> Cow<'_, str> {
        K::api_version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use api::group::{API_VERSION, Kind};
    use api::kinds::{LayaServer, RoutingPolicy};
    use serde_json::json;

    use super::*;

    #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
    struct Number {
        #[serde(default)]
        number: Option<i64>,
    }

    type Seen = View<LayaServer, Number, Number>;

    #[test]
    fn a_view_is_of_its_kind() {
        assert_eq!(Seen::kind(&()), Kind::LayaServer.as_str());
        assert_eq!(Seen::plural(&()), Kind::LayaServer.plural());
        assert_eq!(Seen::api_version(&()), API_VERSION);
        let other = View::<RoutingPolicy, Unread>::kind(&());
        assert_eq!(other, Kind::RoutingPolicy.as_str());
    }

    #[test]
    fn what_is_not_read_or_not_understood_is_no_reason_to_refuse_an_object() {
        for (name, status, expected) in [
            ("read", json!({"number": 7, "more": [1]}), Some(7)),
            ("absent", json!(null), None),
            ("of another form", json!({"number": "seven"}), None),
        ] {
            let object = json!({"metadata": {"name": "a"}, "spec": {"new": {}}, "status": status});
            let seen: Seen = serde_json::from_value(object).unwrap();
            assert_eq!(seen.status.number, expected, "{name}");
            assert_eq!(seen.meta().name.as_deref(), Some("a"), "{name}");
        }
        let bare: Seen = serde_json::from_value(json!({"metadata": {}})).unwrap();
        assert_eq!(bare.status, Number::default());
    }
}
