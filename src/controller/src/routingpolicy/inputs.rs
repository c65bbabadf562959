//! What a policy references: its LayaServer, from a cache that is complete.

use api::condition::ConditionType;
use api::kinds::{ConditionStatus, RoutingPolicy};
use api::reason::Reason;
use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};

use super::server::ServerView;
use crate::conditions::find;

/// The server that a policy names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// It names none: rules and memory answer.
    Unnamed,
    /// It is not there (yet).
    NotFound {
        /// The name.
        name: String,
    },
    /// It answers other questions than the policy's vocabulary.
    OtherContract {
        /// The name.
        name: String,
    },
    /// Nothing speaks against it.
    Fine,
}

/// Where references are looked up.
pub struct Inputs {
    servers: Store<ServerView>,
}

impl std::fmt::Debug for Inputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inputs").finish_non_exhaustive()
    }
}

impl Inputs {
    /// In this cache of servers.
    #[must_use]
    pub const fn new(servers: Store<ServerView>) -> Self {
        Self { servers }
    }

    /// The server that a policy names.
    #[must_use]
    pub fn server(&self, policy: &RoutingPolicy) -> ServerState {
        let Some(reference) = &policy.spec.server_ref else {
            return ServerState::Unnamed;
        };
        let name = reference.name.clone();
        let namespace = policy.namespace().unwrap_or_default();
        match self.servers.get(&ObjectRef::new(&name).within(&namespace)) {
            None => ServerState::NotFound { name },
            Some(server) if has_other_contract(&server) => ServerState::OtherContract { name },
            Some(_) => ServerState::Fine,
        }
    }
}

/// The server says so itself. Its champion's contract is no help: a wording of our questions has a digest of its own, and
/// what matters is their shape, which status does not name.
pub(super) fn has_other_contract(server: &ServerView) -> bool {
    find(&server.status.conditions, ConditionType::ContractMatched).is_some_and(|condition| {
        condition.status == ConditionStatus::False
            && condition.reason == Reason::ContractMismatch.as_str()
    })
}
