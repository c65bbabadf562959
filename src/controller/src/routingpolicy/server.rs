//! What policies and models need to know of LayaServers. A view of its own: a field of a server that this program does
//! not know is no reason to treat its policies and models otherwise.

use api::kinds::{Condition, LayaServer};
use kube::core::ObjectMeta;
use serde::Deserialize;

use crate::view::View;

/// A LayaServer as policies and models see it.
pub type ServerView = View<LayaServer, ServerStatusView, ServerSpecView>;

/// The part of a server's spec that matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerSpecView {
    /// The model that it is to serve.
    #[serde(default)]
    pub model_ref: NameView,
}

/// A reference by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct NameView {
    /// The name; empty where there is none.
    #[serde(default)]
    pub name: String,
}

/// The part of a server's status that matters to policies and models.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ServerStatusView {
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// What serves.
    #[serde(default)]
    pub champion: Option<ChampionView>,
    /// What is to serve.
    #[serde(default)]
    pub candidate: Option<ChampionView>,
    /// What there is to go back to.
    #[serde(default)]
    pub previous: Option<ChampionView>,
    /// A checkpoint that a replica found damaged.
    #[serde(default)]
    pub damage: Option<DamageView>,
    /// The rollout that runs or ran last.
    #[serde(default)]
    pub rollout: Option<RolloutView>,
}

/// A rollout as far as it matters to models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct RolloutView {
    /// Where it stands.
    #[serde(default)]
    pub state: Option<String>,
}

/// A checkpoint that a replica found damaged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct DamageView {
    /// Its digest.
    #[serde(default)]
    pub digest: Option<String>,
    /// When.
    #[serde(default)]
    pub at: Option<jiff::Timestamp>,
}

/// A version that a server has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ChampionView {
    /// Digest of the questions it answers, where it names one.
    #[serde(default)]
    pub contract: Option<String>,
    /// Name of its LayaModel.
    #[serde(default)]
    pub model: Option<String>,
    /// Its checkpoint digest.
    #[serde(default)]
    pub digest: Option<String>,
}

impl ServerStatusView {
    /// Whether a rollout is not over: retention waits for it.
    #[must_use]
    pub fn rolls_out(&self) -> bool {
        let state = self
            .rollout
            .as_ref()
            .and_then(|rollout| rollout.state.as_deref());
        self.candidate.is_some() || state.is_some_and(|state| state != "Done")
    }
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
            deletion_timestamp: metadata.deletion_timestamp.take(),
            ..ObjectMeta::default()
        };
        let matters = |condition: &Condition| condition.type_ == "ContractMatched";
        self.status.conditions.retain(matters);
    }
}
