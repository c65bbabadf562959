//! What a policy needs to know of the LayaServer it names. A view of its own: a field of a server that this program does
//! not know is no reason to treat its policies otherwise.

use api::kinds::{Condition, LayaServer};
use kube::core::ObjectMeta;
use serde::Deserialize;

use crate::view::View;

/// A LayaServer as a policy sees it.
pub type ServerView = View<LayaServer, ServerStatusView>;

/// The part of a server's status that matters to a policy.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ServerStatusView {
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<Condition>,
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
