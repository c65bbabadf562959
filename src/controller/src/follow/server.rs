//! Follows one LayaServer for a router, by the name that the policy in force gives: whenever its traffic changes it is
//! handed on. While the API is away the last one stays; one that is deleted is gone.

use std::sync::Arc;

use futures_util::StreamExt;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use prometheus::IntCounter;
use service::runtime::Shutdown;
use service::telemetry::{RepeatedError, causes};
use tokio::sync::watch;

use super::one::{Said, answers, watch_one};
use super::traffic::{FollowedServer, Glimpse, Order};

/// What a follower has and what it waits for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FollowingServer {
    /// The LayaServer that is followed; none where the policy names none.
    pub wanted: Option<String>,
    /// The last that is known of one that is there, or was when the API last answered. Of another name than wanted until
    /// that one is heard of.
    pub server: Option<Arc<FollowedServer>>,
    /// Whether the API said that there is none of the name.
    pub absent: bool,
    /// What it waits for; `None` while what it has is current.
    pub waits_for: Option<String>,
}

/// Follows the LayaServer of a name that may change.
pub struct ServerFollower {
    client: Client,
    namespace: String,
    wanted: watch::Receiver<Option<String>>,
    following: watch::Sender<FollowingServer>,
    errors: RepeatedError,
}

impl std::fmt::Debug for ServerFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerFollower")
            .field("namespace", &self.namespace)
            .field("wanted", &*self.wanted.borrow())
            .finish_non_exhaustive()
    }
}

impl ServerFollower {
    /// A follower of the server that `wanted` names, now and whenever it names another one, and where it tells what it
    /// has. `client` should be [`crate::client::guarded`]; `suppressed` counts errors that are not logged.
    #[must_use]
    pub fn new(
        client: Client,
        namespace: impl Into<String>,
        wanted: watch::Receiver<Option<String>>,
        suppressed: IntCounter,
    ) -> (Self, watch::Receiver<FollowingServer>) {
        let (following, told) = watch::channel(FollowingServer::default());
        let follower = Self {
            client,
            namespace: namespace.into(),
            wanted,
            following,
            errors: RepeatedError::new(suppressed),
        };
        (follower, told)
    }

    /// Follows until the process drains. Cancel safe.
    pub async fn run(self, shutdown: Shutdown) {
        tokio::select! {
            () = shutdown.draining() => {}
            () = self.follow_wanted() => {}
        }
    }

    async fn follow_wanted(&self) {
        let mut wanted = self.wanted.clone();
        loop {
            let name = wanted.borrow_and_update().clone();
            tokio::select! {
                () = self.follow(name) => {}
                changed = wanted.changed() => if changed.is_err() {
                    // Nobody can want another one any more.
                    let name = wanted.borrow().clone();
                    return self.follow(name).await;
                },
            }
        }
    }

    /// Follows the server of a name for ever.
    async fn follow(&self, name: Option<String>) {
        let Some(name) = name else {
            self.tell(FollowingServer::default());
            return std::future::pending().await;
        };
        let namespace = &self.namespace;
        self.following.send_modify(|following| {
            following.wanted = Some(name.clone());
            following.absent = false;
            following.waits_for = Some(format!("an answer about LayaServer {namespace}/{name}"));
        });
        let api = Api::<Glimpse>::namespaced(self.client.clone(), namespace);
        let mut words = watch_one(api, &name);
        let mut version = None;
        while let Some(said) = words.next().await {
            match said {
                Said::Lost(error) => self.lost(&name, &error),
                Said::Absent => self.absent(&name),
                Said::Is(seen) => {
                    answers(&self.errors);
                    let now = seen.resource_version();
                    let order = Order::of(version.as_deref(), now.as_deref());
                    version = now;
                    self.saw(&seen, order);
                }
            }
        }
    }

    fn saw(&self, seen: &Glimpse, order: Order) {
        let server = match FollowedServer::read(seen) {
            Ok(server) => server,
            Err(problem) => {
                let name = seen.name_any();
                let (namespace, server) = (&self.namespace, &name);
                tracing::warn!(
                    server,
                    problem,
                    "its traffic cannot be read; the last one stays"
                );
                return self.waits(format!(
                    "LayaServer {namespace}/{server} to have a traffic that this program can read: {problem}"
                ));
            }
        };
        self.following.send_if_modified(|following| {
            let waited = following.waits_for.take().is_some();
            following.absent = false;
            let before = following.server.as_ref();
            if before.is_some_and(|before| !before.gives_way_to(&server, order)) {
                return waited;
            }
            tracing::debug!(
                server = server.name,
                generation = server.generation,
                targets = server.traffic.targets.len(),
                reason = server.traffic.reason.as_deref(),
                "traffic of the LayaServer"
            );
            following.server = Some(Arc::new(server));
            true
        });
    }

    /// There is none: where it sent requests is nobody's wish any more.
    fn absent(&self, name: &str) {
        answers(&self.errors);
        let namespace = &self.namespace;
        self.tell(FollowingServer {
            wanted: Some(name.to_owned()),
            server: None,
            absent: true,
            waits_for: Some(format!("LayaServer {namespace}/{name}, which is not there")),
        });
    }

    fn tell(&self, now: FollowingServer) {
        self.following.send_if_modified(|following| {
            let other = *following != now;
            *following = now;
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

    fn lost(&self, name: &str, error: &watcher::Error) {
        self.waits(format!("the object API: {}", causes(error)));
        if let Some(count) = self.errors.occurred() {
            tracing::warn!(
                server = name,
                count,
                error = causes(error),
                "cannot watch the LayaServer; its last traffic stays"
            );
        }
    }
}
