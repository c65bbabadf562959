//! A RoutingPolicy as far as a router looks at it: its name and the revision in force. A spec of a newer program is read
//! like any other.

use std::borrow::Cow;

use api::group::{API_VERSION, GROUP, Kind, VERSION};
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Glimpse {
    metadata: ObjectMeta,
    #[serde(default)]
    status: StatusGlimpse,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusGlimpse {
    #[serde(default)]
    accepted_revision: Option<String>,
}

impl Glimpse {
    /// The revision that routers should use.
    pub(super) fn accepted_revision(&self) -> Option<&str> {
        self.status.accepted_revision.as_deref()
    }
}

impl Resource for Glimpse {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Kind::RoutingPolicy.as_str().into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn api_version((): &()) -> Cow<'_, str> {
        API_VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        Kind::RoutingPolicy.plural().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
