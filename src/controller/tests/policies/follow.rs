//! What a router sees of a policy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use controller::follow::{FollowedPolicy, Following, PolicyFollower};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use prometheus::IntCounter;
use serde_json::json;
use service::runtime::{Phase, ShutdownTrigger};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::on_both;
use crate::proxy::{Play, Proxy};
use crate::world::{PATIENCE, World, bad, condition, good, revision, until};

on_both! {
    a_router_has_each_accepted_revision_within_a_second;
    a_router_keeps_its_policy_while_the_api_is_away_or_the_policy_is_gone;
    a_document_that_does_not_hold_what_its_name_says_is_not_used;
    a_policy_made_anew_and_an_edit_back_are_followed;
}

/// A follower of the policy `team`.
pub(crate) struct Router {
    pub(crate) told: watch::Receiver<Following>,
    trigger: ShutdownTrigger,
    task: tokio::task::JoinHandle<()>,
}

impl Router {
    pub(crate) fn follow(client: Client, world: &World) -> Self {
        let suppressed = IntCounter::new("suppressed_total", "test").unwrap();
        let (follower, told) = PolicyFollower::new(client, &world.namespace, "team", suppressed);
        let (trigger, shutdown) = ShutdownTrigger::new();
        Self {
            told,
            trigger,
            task: tokio::spawn(follower.run(shutdown)),
        }
    }

    pub(crate) async fn until(&mut self, what: &str, is: impl Fn(&Following) -> bool) -> Following {
        let found = timeout(PATIENCE, self.told.wait_for(|following| is(following))).await;
        let found = found.ok().map(|found| found.unwrap().clone());
        found.unwrap_or_else(|| panic!("{what}: last seen {:?}", self.told.borrow()))
    }

    pub(crate) async fn has(&mut self, millis: u32) -> Arc<FollowedPolicy> {
        let is = |following: &Following| {
            let policy = following.policy.as_ref();
            policy.is_some_and(|policy| policy.spec.deadlines.timeout_millis == millis)
        };
        self.until("the revision arrives", is).await.policy.unwrap()
    }

    pub(crate) async fn end(self) {
        self.trigger.advance(Phase::Draining);
        timeout(PATIENCE, self.task).await.unwrap().unwrap();
    }
}

async fn a_router_has_each_accepted_revision_within_a_second(world: World) {
    let running = world.start();
    let mut router = Router::follow(world.client.clone(), &world);
    router
        .until("it says what it waits for", |following| {
            following
                .waits_for
                .as_deref()
                .is_some_and(|what| what.ends_with("which is not there"))
        })
        .await;
    world.create("team", &good(0)).await;
    router.has(1_000).await;
    let mut slowest = Duration::ZERO;
    for number in 1..=20 {
        let began = Instant::now();
        world.edit("team", &good(number)).await;
        let policy = router.has(1_000 + number).await;
        slowest = slowest.max(began.elapsed());
        if number == 20 {
            assert_eq!(
                Some(policy.revision.clone()),
                revision(&world.until_in_force("team").await)
            );
        }
    }
    assert!(
        slowest < Duration::from_secs(5),
        "{slowest:?}: the bar is 1 s, on a machine that has nothing else to do"
    );
    println!("slowest of 20 edits until the router has it: {slowest:?}");
    world.edit("team", &bad()).await;
    world
        .until("team", "it is refused", |policy| {
            condition(policy, "Stalled").is_some()
        })
        .await;
    assert_eq!(
        router
            .told
            .borrow()
            .policy
            .as_ref()
            .unwrap()
            .spec
            .deadlines
            .timeout_millis,
        1_020
    );
    router.end().await;
    running.end().await;
}

async fn a_router_keeps_its_policy_while_the_api_is_away_or_the_policy_is_gone(world: World) {
    let running = world.start();
    let (client, proxy) = Proxy::before(&world.client);
    world.create("team", &good(1)).await;
    world.until_in_force("team").await;
    let mut router = Router::follow(client, &world);
    router.has(1_001).await;
    // The document of the next revision cannot be read.
    proxy.play(|_, uri| {
        if uri.contains("rp-team-") {
            Play::Refuse
        } else {
            Play::Pass
        }
    });
    world.edit("team", &good(2)).await;
    let waits = router
        .until("it says what it waits for", |following| {
            following
                .waits_for
                .as_deref()
                .is_some_and(|what| what.contains("connection refused"))
        })
        .await;
    assert_eq!(
        waits.policy.unwrap().spec.deadlines.timeout_millis,
        1_001,
        "the last one stays"
    );
    proxy.heal();
    router.has(1_002).await;
    world.delete("team").await;
    let gone = router
        .until("it says so", |following| following.waits_for.is_some())
        .await;
    assert_eq!(gone.policy, None, "nobody wishes it any more");
    world.create("team", &good(3)).await;
    router.has(1_003).await;
    router.end().await;
    running.end().await;
}

async fn a_document_that_does_not_hold_what_its_name_says_is_not_used(world: World) {
    let policy = world.create("team", &good(1)).await;
    let forged = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {"name": "rp-team-0123456789"}, "data": policy.spec.tree(), "revision": 1,
    });
    let forged: ControllerRevision = serde_json::from_value(forged).unwrap();
    world
        .revisions()
        .create(&PostParams::default(), &forged)
        .await
        .unwrap();
    let status = Patch::Merge(json!({"status": {"acceptedRevision": "0123456789"}}));
    world
        .policies()
        .patch_status("team", &PatchParams::default(), &status)
        .await
        .unwrap();
    let mut router = Router::follow(world.client.clone(), &world);
    let waits = router
        .until("it says why", |following| {
            following
                .waits_for
                .as_deref()
                .is_some_and(|what| what.contains("does not hold what its name says"))
        })
        .await;
    assert_eq!(waits.policy, None);
    let running = world.start();
    router.has(1_001).await;
    until("the forged one is no longer in force", || async {
        let policy = world.policy("team").await;
        if revision(&policy).as_deref() == Some("0123456789") {
            Err(policy.status)
        } else {
            Ok(())
        }
    })
    .await;
    router.end().await;
    running.end().await;
}

async fn a_policy_made_anew_and_an_edit_back_are_followed(world: World) {
    let running = world.start();
    world.create("team", &good(1)).await;
    let first = world.until_in_force("team").await;
    let mut router = Router::follow(world.client.clone(), &world);
    router.has(1_001).await;
    // Back to an earlier revision, whose document is there already.
    world.edit("team", &good(2)).await;
    router.has(1_002).await;
    world.edit("team", &good(1)).await;
    let back = router.has(1_001).await;
    assert_eq!(Some(back.revision.clone()), revision(&first));
    // Gone and made anew with what it said before: nothing is waited for then, whoever has the uid.
    world.delete("team").await;
    let gone = router
        .until("it says so", |following| following.waits_for.is_some())
        .await;
    assert_eq!(gone.policy, None, "nobody wishes it any more");
    let again = world.create("team", &good(1)).await;
    assert_ne!(again.metadata.uid, first.metadata.uid);
    let same = router
        .until("nothing is waited for", |following| {
            following.waits_for.is_none()
        })
        .await;
    assert_eq!(same.policy, Some(back));
    world.edit("team", &good(3)).await;
    router.has(1_003).await;
    router.end().await;
    running.end().await;
}
