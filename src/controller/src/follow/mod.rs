//! What a router follows. Its RoutingPolicy: whenever another revision comes into force it is loaded from its stored
//! document, checked against its name, and handed on. The LayaServer that the policy names: whenever its traffic changes
//! ([`ServerFollower`]). While the API is away the last ones stay. A router never reads a policy's spec, so an edit that
//! is refused changes nothing here.

mod one;
mod server;
mod traffic;

use std::sync::Arc;
use std::time::Duration;

use api::kinds::RoutingPolicy;
use api::routing_policy::RoutingPolicySpec;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::runtime::watcher;
use kube::{Api, Client};
use prometheus::IntCounter;
use serde::Deserialize;
use service::runtime::Shutdown;
use service::telemetry::{RepeatedError, causes};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::failure::Failure;
use crate::routingpolicy::{document_name, document_spec, revision_of};
use crate::view::View;

use one::{Said, answers, watch_one};
pub use server::{FollowingServer, ServerFollower};
pub use traffic::{FollowedChampion, FollowedServer};

/// A policy as far as a router looks at it: the revision in force. A spec of a newer program is read like any other.
type Glimpse = View<RoutingPolicy, StatusGlimpse>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusGlimpse {
    #[serde(default)]
    accepted_revision: Option<String>,
}

/// First wait before a document that could not be loaded is asked for again; doubled up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A revision in force.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowedPolicy {
    /// Name of the policy.
    pub name: String,
    /// The revision: ten hex digits, as decisions name it.
    pub revision: String,
    /// What it says.
    pub spec: RoutingPolicySpec,
}

/// What a follower has and what it waits for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Following {
    /// The last revision that was loaded of a policy that is there, or was when the API last answered.
    pub policy: Option<Arc<FollowedPolicy>>,
    /// What it waits for; `None` while the revision in force is the loaded one.
    pub waits_for: Option<String>,
}

/// Follows one policy.
pub struct PolicyFollower {
    client: Client,
    namespace: String,
    name: String,
    following: watch::Sender<Following>,
    errors: RepeatedError,
}

impl std::fmt::Debug for PolicyFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolicyFollower")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl PolicyFollower {
    /// A follower of this policy and where it tells what it has. `client` should be [`crate::client::guarded`];
    /// `suppressed` counts errors that are not logged.
    #[must_use]
    pub fn new(
        client: Client,
        namespace: impl Into<String>,
        name: impl Into<String>,
        suppressed: IntCounter,
    ) -> (Self, watch::Receiver<Following>) {
        let (namespace, name) = (namespace.into(), name.into());
        let (following, told) = watch::channel(Following {
            policy: None,
            waits_for: Some(format!("an answer about RoutingPolicy {namespace}/{name}")),
        });
        let follower = Self {
            client,
            namespace,
            name,
            following,
            errors: RepeatedError::new(suppressed),
        };
        (follower, told)
    }

    /// Follows until the process drains. Cancel safe.
    pub async fn run(self, shutdown: Shutdown) {
        tokio::select! {
            () = shutdown.draining() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(&self) {
        let api = Api::<Glimpse>::namespaced(self.client.clone(), &self.namespace);
        let mut words = watch_one(api, &self.name);
        // The load under way, if any: a newer revision replaces it.
        let mut load: Option<BoxFuture<'_, FollowedPolicy>> = None;
        loop {
            let loaded = async {
                match &mut load {
                    Some(load) => load.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                said = words.next() => match said {
                    None => return,
                    Some(Said::Lost(error)) => self.lost(&error),
                    Some(Said::Absent) => {
                        load = None;
                        self.absent();
                    }
                    Some(Said::Is(policy)) => {
                        answers(&self.errors);
                        load = self.wanted(&policy).map(|wanted| -> BoxFuture<'_, _> { Box::pin(self.load(wanted)) });
                    }
                },
                policy = loaded => {
                    load = None;
                    self.has(policy);
                }
            }
        }
    }

    /// The revision to load, if it is another one than that at hand.
    fn wanted(&self, policy: &Glimpse) -> Option<String> {
        let Some(revision) = policy.status.accepted_revision.as_deref() else {
            let (namespace, name) = (&self.namespace, &self.name);
            self.waits(format!(
                "RoutingPolicy {namespace}/{name} to have an accepted revision"
            ));
            return None;
        };
        let has = self
            .following
            .borrow()
            .policy
            .as_ref()
            .is_some_and(|policy| policy.revision == revision);
        if has {
            self.following
                .send_if_modified(|following| following.waits_for.take().is_some());
            return None;
        }
        Some(revision.to_owned())
    }

    /// Loads a revision, however often it must be asked for.
    async fn load(&self, revision: String) -> FollowedPolicy {
        let mut wait = FIRST_WAIT;
        loop {
            match self.read(&revision).await {
                Ok(policy) => return policy,
                Err(failure) => {
                    self.waits(format!("revision {revision}: {failure}"));
                    if let Some(count) = self.errors.occurred() {
                        tracing::warn!(revision, count, error = %failure, "cannot load the policy in force");
                    }
                }
            }
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    async fn read(&self, revision: &str) -> Result<FollowedPolicy, Failure> {
        let name = document_name(&self.name, revision);
        let api = Api::<ControllerRevision>::namespaced(self.client.clone(), &self.namespace);
        let what = || format!("ControllerRevision {}/{name}", self.namespace);
        let document = api.get(&name).await;
        let document = document.map_err(|error| Failure::of("get", what(), &error))?;
        let damaged = |message: &str| Failure::Refused {
            verb: "get",
            resource: what(),
            message: message.to_owned(),
        };
        let spec = document_spec(&document)
            .ok_or_else(|| damaged("it holds no policy that this program can read"))?;
        if revision_of(&spec) != revision {
            return Err(damaged("it does not hold what its name says"));
        }
        Ok(FollowedPolicy {
            name: self.name.clone(),
            revision: revision.to_owned(),
            spec,
        })
    }

    fn has(&self, policy: FollowedPolicy) {
        let revision = &policy.revision;
        tracing::info!(policy = self.name, revision, "policy in force");
        answers(&self.errors);
        self.following.send_replace(Following {
            policy: Some(Arc::new(policy)),
            waits_for: None,
        });
    }

    /// There is none: what was loaded of one is nobody's wish any more.
    fn absent(&self) {
        let (namespace, name) = (&self.namespace, &self.name);
        let absent = Following {
            policy: None,
            waits_for: Some(format!(
                "RoutingPolicy {namespace}/{name}, which is not there"
            )),
        };
        self.following.send_if_modified(|following| {
            let other = *following != absent;
            *following = absent;
            other
        });
    }

    fn waits(&self, what: String) {
        self.following.send_if_modified(|following| {
            let other = following.waits_for.as_ref() != Some(&what);
            following.waits_for = Some(what);
            other
        });
    }

    fn lost(&self, error: &watcher::Error) {
        self.waits(format!("the object API: {}", causes(error)));
        if let Some(count) = self.errors.occurred() {
            let policy = &self.name;
            tracing::warn!(
                policy,
                count,
                error = causes(error),
                "cannot watch the policy; the last one stays in force"
            );
        }
    }
}
