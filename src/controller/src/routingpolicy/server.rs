//! What a policy needs to know of the LayaServer it names. A view of its own: a field of a server that this program does
//! not know is no reason to treat its policies otherwise.

use std::borrow::Cow;

use api::group::{API_VERSION, GROUP, Kind, VERSION};
use api::kinds::Condition;
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::{Deserialize, Deserializer};

/// A LayaServer as a policy sees it.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ServerView {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// The part of its status that matters here.
    #[serde(default, deserialize_with = "lenient")]
    pub status: ServerStatusView,
}

/// The part of a server's status that matters to a policy.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ServerStatusView {
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// What serves.
    #[serde(default)]
    pub champion: Option<ChampionView>,
}

/// What serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ChampionView {
    /// Digest of the questions it answers, where it names one.
    #[serde(default)]
    pub contract: Option<String>,
}

/// A status of a form we do not know tells us nothing.
fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ServerStatusView, D::Error> {
    let tree = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(tree).unwrap_or_default())
}

impl ServerView {
    /// Takes away what nobody here reads.
    pub fn slim(&mut self) {
        let metadata = &mut self.metadata;
        *metadata = ObjectMeta {
            name: metadata.name.take(),
            namespace: metadata.namespace.take(),
            uid: metadata.uid.take(),
            resource_version: metadata.resource_version.take(),
            ..ObjectMeta::default()
        };
        let matters = |condition: &Condition| condition.type_ == "ContractMatched";
        self.status.conditions.retain(matters);
    }
}

impl Resource for ServerView {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Kind::LayaServer.as_str().into()
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
        Kind::LayaServer.plural().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
