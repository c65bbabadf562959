//! Keeps the servers behind a router those of the LayaServer that its policy names: whenever its traffic changes, another
//! table is put in force, whole, between two requests. While the policy names none, the servers of the configuration are
//! asked.

use std::time::Duration;

use controller::follow::{FollowedServer, FollowingServer, ServerFollower};
use controller::wording;
use kube::Client;
use router::servers::{Servers, Target, Traffic, Wording};
use service::runtime::{Runtime, Shutdown};
use service::telemetry::{ProcessMetrics, causes};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::followed_table::{
    FollowedTable, Numbers, StableUrl, Wordings, foreign_contracts, table,
};

/// How long a router that starts waits to hear of its servers. It then begins without; rules answer.
const FIRST_WORD: Duration = Duration::from_secs(2);
/// How long new servers are looked at before they are asked. Traffic must have changed within a second.
const LOOK_WAIT: Duration = Duration::from_millis(500);
/// How long a table waits for a wording.
const WORDING_WAIT: Duration = Duration::from_millis(300);
/// First wait before a wording that could not be loaded is asked for again; doubled up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What follows the servers of a router.
pub(crate) struct ServerKeeper {
    pub(crate) servers: Servers,
    /// Those of the configuration, which are in force when this starts.
    pub(crate) configured: Vec<Target>,
    pub(crate) client: Client,
    pub(crate) stable: StableUrl,
    /// Whether the addresses in status are those of this life of the machine. On a laptop they are not before the
    /// controller's first complete observation: another program may have the ports by now.
    pub(crate) observed: watch::Receiver<bool>,
}

/// What should be in force.
#[derive(Debug, Clone, PartialEq)]
enum Wish {
    /// What the configuration says.
    Configured,
    /// Nothing: rules answer.
    Nothing { server: String, why: String },
    /// What the LayaServer says.
    Followed(std::sync::Arc<FollowedServer>),
}

impl Wish {
    /// What follows from what was heard; none while what was in force stays. Pure.
    fn of(following: &FollowingServer, namespace: &str, observed: bool) -> Option<Self> {
        let FollowingServer {
            wanted,
            server,
            absent,
            waits_for,
        } = following;
        let Some(wanted) = wanted else {
            return Some(Self::Configured);
        };
        match server {
            Some(server) if !observed => Some(Self::Nothing {
                server: format!("{}/{}", server.namespace, server.name),
                why: "the controller has not seen yet which of its addresses still hold".to_owned(),
            }),
            Some(server) => Some(Self::Followed(server.clone())),
            // Nothing was heard of it yet: what was in force stays.
            None if !absent => None,
            None => Some(Self::Nothing {
                server: format!("{namespace}/{wanted}"),
                why: waits_for.clone().unwrap_or_default(),
            }),
        }
    }
}

/// What is in force, and what is known for the next table.
#[derive(Debug, Default)]
struct InForce {
    wish: Option<Wish>,
    numbers: Numbers,
    wordings: Wordings,
    /// When to ask again for wordings that are missing, and how long to wait after that.
    again: Option<(Instant, Duration)>,
}

impl ServerKeeper {
    /// Follows the LayaServer that `wanted` names until the process drains. Returns with the first word about it, but
    /// does not wait for it for ever.
    pub(crate) async fn start(
        self,
        wanted: watch::Receiver<Option<String>>,
        runtime: &mut Runtime,
        process: &ProcessMetrics,
    ) {
        let namespace = self.client.default_namespace().to_owned();
        let suppressed = process.log_suppressed.clone();
        let is_wanted = wanted.borrow().is_some();
        let (follower, mut told) =
            ServerFollower::new(self.client.clone(), namespace, wanted, suppressed);
        let shutdown = runtime.shutdown();
        runtime.spawn("traffic of the objects", follower.run(shutdown.clone()));
        let mut in_force = InForce {
            wish: Some(Wish::Configured),
            ..InForce::default()
        };
        if is_wanted {
            let heard = told.wait_for(|following| following.server.is_some() || following.absent);
            if timeout(FIRST_WORD, heard).await.is_err() {
                tracing::warn!("nothing is known of the servers yet; rules answer until then");
            }
            let following = told.borrow_and_update().clone();
            self.follow(&following, &mut in_force).await;
        }
        runtime.spawn("servers in force", self.run(told, in_force, shutdown));
    }

    async fn run(
        self,
        mut told: watch::Receiver<FollowingServer>,
        mut in_force: InForce,
        shutdown: Shutdown,
    ) {
        let mut observed = self.observed.clone();
        loop {
            let again = in_force.again.map(|(at, _)| at);
            tokio::select! {
                () = shutdown.draining() => return,
                // The follower ends when the process drains.
                changed = told.changed() => if changed.is_err() {
                    return shutdown.draining().await;
                },
                () = changed(&mut observed) => {}
                () = until(again) => {}
            }
            let following = told.borrow_and_update().clone();
            self.follow(&following, &mut in_force).await;
        }
    }

    async fn follow(&self, following: &FollowingServer, in_force: &mut InForce) {
        let observed = *self.observed.borrow();
        let Some(wish) = Wish::of(following, self.client.default_namespace(), observed) else {
            return;
        };
        let is_due = in_force.again.is_some_and(|(at, _)| at <= Instant::now());
        if in_force.wish.as_ref() == Some(&wish) && !is_due {
            return;
        }
        let done = match &wish {
            Wish::Configured => {
                in_force.again = None;
                self.servers.replace(self.configured.clone())
            }
            Wish::Nothing { server, why } => {
                in_force.again = None;
                tracing::warn!(server, why, "no decision model is asked, rules answer");
                let nothing = Traffic {
                    server: server.clone(),
                    ..Traffic::default()
                };
                self.servers
                    .switch(Vec::new(), nothing, Duration::ZERO)
                    .await
            }
            Wish::Followed(server) => self.put(server, in_force).await,
        };
        match done {
            Ok(()) => {
                self.say_what_is_not_asked(in_force.wish.as_ref(), &wish);
                in_force.wish = Some(wish);
            }
            Err(error) => tracing::error!(
                error = causes(&error),
                "a table of servers cannot be put in force; the one before stays"
            ),
        }
    }

    async fn put(
        &self,
        server: &FollowedServer,
        in_force: &mut InForce,
    ) -> Result<(), router::servers::TableError> {
        let missing = self.load_wordings(server, &mut in_force.wordings).await;
        let wait = in_force.again.map_or(FIRST_WAIT, |(_, wait)| wait);
        in_force.again = missing.then(|| (Instant::now() + wait, (wait * 2).min(LONGEST_WAIT)));
        let FollowedTable {
            targets,
            traffic,
            numbers,
            problems,
        } = table(server, &in_force.numbers, &in_force.wordings, self.stable);
        for problem in problems {
            tracing::warn!(server = traffic.server, "traffic: {problem}");
        }
        let (generation, asked) = (traffic.generation, targets.len());
        self.servers.switch(targets, traffic, LOOK_WAIT).await?;
        in_force.numbers = numbers;
        tracing::info!(server = server.name, generation, asked, "servers in force");
        Ok(())
    }

    /// Loads the wordings that are not known yet, and forgets those that nobody needs. Whether one is missing.
    async fn load_wordings(&self, server: &FollowedServer, known: &mut Wordings) -> bool {
        let needed = foreign_contracts(server);
        known.retain(|contract, _| needed.contains(contract));
        let mut missing = false;
        for contract in needed {
            if known.contains_key(&contract) {
                continue;
            }
            let read = wording::read(&self.client, &server.namespace, &contract);
            match timeout(WORDING_WAIT, read).await {
                Ok(Ok(found)) => {
                    known.insert(contract, Wording::new(found).into());
                }
                Ok(Err(failure)) => {
                    missing = true;
                    tracing::warn!(contract, error = %failure, "the wording of a version cannot be loaded; it is not asked until then");
                }
                Err(_) => {
                    missing = true;
                    tracing::warn!(
                        contract,
                        "the wording of a version takes long to load; it is not asked until then"
                    );
                }
            }
        }
        missing
    }

    /// A configuration that names servers and a policy that names a LayaServer contradict each other.
    fn say_what_is_not_asked(&self, before: Option<&Wish>, now: &Wish) {
        let was_configured = matches!(before, Some(Wish::Configured));
        let is_configured = matches!(now, Wish::Configured);
        if self.configured.is_empty() || was_configured == is_configured {
            return;
        }
        if is_configured {
            tracing::info!(
                "the policy names no LayaServer; the servers of the configuration are asked"
            );
        } else {
            let names: Vec<_> = self.configured.iter().map(|target| &*target.name).collect();
            tracing::warn!(
                not_asked = names.join(", "),
                "the policy names a LayaServer, so the servers of the configuration are not asked; remove one of the two"
            );
        }
    }
}

/// Waits for a change; for ever when none can come any more.
async fn changed(flag: &mut watch::Receiver<bool>) {
    if flag.changed().await.is_err() {
        std::future::pending().await
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_should_be_in_force_follows_from_what_was_heard() {
        let known = Arc::new(FollowedServer {
            namespace: "ns".to_owned(),
            name: "main".to_owned(),
            uid: "u".to_owned(),
            generation: 3,
            traffic: api::kinds::laya_server::Traffic::default(),
            champion: None,
            models: std::collections::BTreeMap::new(),
            copied_millionths: 0,
            drain_seconds: 0,
        });
        let heard =
            |wanted: Option<&str>, server: Option<&Arc<FollowedServer>>, absent| FollowingServer {
                wanted: wanted.map(str::to_owned),
                server: server.cloned(),
                absent,
                waits_for: Some("it".to_owned()),
            };
        let word = |wish: Option<Wish>| match wish {
            None => "as before",
            Some(Wish::Configured) => "configured",
            Some(Wish::Nothing { .. }) => "nothing",
            Some(Wish::Followed(_)) => "followed",
        };
        for (name, following, observed, expected) in [
            (
                "no policy names one",
                heard(None, None, false),
                true,
                "configured",
            ),
            (
                "nothing was heard yet",
                heard(Some("main"), None, false),
                true,
                "as before",
            ),
            (
                "it is not there",
                heard(Some("main"), None, true),
                true,
                "nothing",
            ),
            (
                "it is there",
                heard(Some("main"), Some(&known), false),
                true,
                "followed",
            ),
            (
                "another is wanted and unheard of",
                heard(Some("next"), Some(&known), false),
                true,
                "followed",
            ),
            (
                "addresses of an earlier life",
                heard(Some("main"), Some(&known), false),
                false,
                "nothing",
            ),
            (
                "nothing to observe",
                heard(None, None, false),
                false,
                "configured",
            ),
        ] {
            assert_eq!(
                word(Wish::of(&following, "ns", observed)),
                expected,
                "{name}"
            );
        }
    }
}
