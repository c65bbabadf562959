//! Keeps the policy of a router that of an object: whenever another revision is accepted it is compiled and put in force,
//! between two requests. What cannot be compiled changes nothing.

use std::sync::Arc;
use std::time::Duration;

use controller::follow::{FollowedPolicy, Following, PolicyFollower};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kube::Client;
use router::servers::Servers;
use router::{ActivePolicy, PolicyInForce};
use service::runtime::{ReadyHandle, Runtime, Shutdown};
use service::telemetry::ProcessMetrics;
use tokio::sync::watch;

use crate::router_command::{Whose, breaker_rule, in_force};

/// How long a router that starts waits to hear of its policy. A laptop then goes on with the built-in one.
const FIRST_WORD: Duration = Duration::from_secs(2);

/// What follows the policy in a router.
#[derive(Debug)]
pub(crate) struct PolicyKeeper {
    pub(crate) policy: PolicyInForce,
    pub(crate) servers: Servers,
    pub(crate) whose: Whose,
    /// Said once a policy was loaded; on a laptop the built-in one is as good.
    pub(crate) ready: ReadyHandle,
    /// What a laptop without an object decides by.
    pub(crate) built_in: Arc<ActivePolicy>,
    /// The LayaServer that the policy in force names.
    pub(crate) names: watch::Sender<Option<String>>,
}

impl PolicyKeeper {
    /// Follows the policy of this name until the process drains. Returns with the first word about it, but does not wait
    /// for it for ever.
    pub(crate) async fn start(
        self,
        name: &str,
        client: Client,
        runtime: &mut Runtime,
        process: &ProcessMetrics,
    ) {
        let namespace = client.default_namespace().to_owned();
        let suppressed = process.log_suppressed.clone();
        let (follower, mut told) = PolicyFollower::new(client, namespace, name, suppressed);
        let shutdown = runtime.shutdown();
        runtime.spawn("policy of the objects", follower.run(shutdown.clone()));
        if tokio::time::timeout(FIRST_WORD, told.changed())
            .await
            .is_err()
        {
            tracing::warn!(policy = name, "nothing is known of the policy yet");
        }
        let first = told.borrow_and_update().clone();
        self.take(first).await;
        runtime.spawn("policy in force", self.run(told, shutdown));
    }

    async fn run(self, mut told: watch::Receiver<Following>, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.draining() => return,
                changed = told.changed() => if changed.is_err() {
                    // The follower ends when the process drains.
                    return shutdown.draining().await;
                },
            }
            let following = told.borrow_and_update().clone();
            self.take(following).await;
        }
    }

    async fn take(&self, following: Following) {
        let Following { policy, waits_for } = following;
        let Some(followed) = policy else {
            let waits_for = waits_for.unwrap_or_default();
            return self.without(&waits_for);
        };
        if let Some(waits_for) = waits_for {
            tracing::warn!(
                revision = followed.revision,
                waits_for,
                "the policy stays as it was"
            );
        }
        let current = self.policy.current();
        if current.policy.name == followed.name && current.policy.revision() == followed.revision {
            // Also when it says what the built-in one says, with which a router begins.
            self.ready.ready();
            self.name_server(&followed);
        } else {
            self.put_in_force(&followed).await;
        }
    }

    /// There is no policy, or none that was ever accepted.
    fn without(&self, waits_for: &str) {
        let is_built_in = Arc::ptr_eq(&self.policy.current(), &self.built_in);
        match self.whose {
            // What a start would do, so that a restart changes nothing.
            Whose::Own => {
                self.servers
                    .set_breaker_rule(breaker_rule(&self.built_in, self.whose));
                self.policy.replace(self.built_in.clone());
                self.names.send_if_modified(|name| name.take().is_some());
                self.ready.ready();
                tracing::info!(waits_for, "the built-in policy is in force");
            }
            Whose::Shared if is_built_in => {
                self.ready
                    .not_ready(format!("the policy is not loaded; waits for {waits_for}"));
            }
            // A team's router does not fall back to a policy that nobody chose.
            Whose::Shared => {
                let revision = self.policy.current().policy.revision().to_owned();
                tracing::warn!(revision, waits_for, "the policy stays as it was");
            }
        }
    }

    async fn put_in_force(&self, followed: &FollowedPolicy) {
        let (name, spec, whose) = (followed.name.clone(), followed.spec.clone(), self.whose);
        // Keyword lists take milliseconds to compile.
        let compiled = tokio::task::spawn_blocking(move || {
            let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
            ActivePolicy::of_spec(&name, &spec, today).map(|active| in_force(active, whose))
        });
        match compiled.await {
            Ok(Ok(active)) => {
                self.servers
                    .set_breaker_rule(breaker_rule(&active, self.whose));
                self.policy.replace(active.into());
                self.ready.ready();
                self.name_server(followed);
                tracing::info!(
                    policy = followed.name,
                    revision = followed.revision,
                    "another policy is in force"
                );
            }
            Ok(Err(error)) => tracing::error!(
                policy = followed.name,
                revision = followed.revision,
                %error,
                "an accepted policy does not compile here; the one before stays in force"
            ),
            Err(error) => tracing::error!(%error, "compiling a policy failed"),
        }
    }

    /// The policy is in force, and so is the LayaServer it names.
    fn name_server(&self, followed: &FollowedPolicy) {
        let reference = followed.spec.server_ref.as_ref();
        let named = reference.map(|reference| reference.name.clone());
        self.names.send_if_modified(|name| {
            let other = *name != named;
            *name = named;
            other
        });
    }
}
