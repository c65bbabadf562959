//! What a router sees of the LayaServer that its policy names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::kinds::LayaServer;
use controller::follow::{FollowedServer, FollowingServer, ServerFollower};
use controller::wording;
use decision::{Contract, RELAY_DECISIONS_JSON};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prometheus::IntCounter;
use serde_json::{Value, json};
use service::runtime::{Phase, ShutdownTrigger};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::on_both;
use crate::proxy::{Play, Proxy};
use crate::world::{PATIENCE, World, until};

on_both! {
    a_router_has_each_traffic_within_a_second;
    the_last_traffic_stays_while_the_api_is_away;
    a_server_that_is_gone_made_anew_or_counted_anew_is_followed;
    another_name_is_followed_and_none_is_nothing;
    fault_01_a_follower_without_an_api_waits_and_says_so;
    the_wording_of_a_version_is_found_under_its_digest;
}

fn servers(world: &World) -> Api<LayaServer> {
    Api::namespaced(world.client.clone(), &world.namespace)
}

async fn create(world: &World, name: &str) -> LayaServer {
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
        "metadata": {"name": name, "namespace": world.namespace},
        "spec": {"modelRef": {"name": "v1"}},
    });
    let object: LayaServer = serde_json::from_value(object).unwrap();
    let created = servers(world).create(&PostParams::default(), &object).await;
    created.unwrap()
}

/// Writes a status with this traffic, as a controller does.
async fn traffic(world: &World, name: &str, generation: i64) {
    let port = 20_000 + generation;
    let status = json!({"status": {
        "champion": {"model": "v1", "revision": "aaaaaaaaaa"},
        "traffic": {"generation": generation, "targets": [{
            "revision": "aaaaaaaaaa", "urls": [format!("http://127.0.0.1:{port}")],
            "weight": 100, "role": "Champion",
        }]},
    }});
    let written = servers(world)
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await;
    written.unwrap();
}

/// A follower and what it tells.
struct Router {
    told: watch::Receiver<FollowingServer>,
    wanted: watch::Sender<Option<String>>,
    trigger: ShutdownTrigger,
    task: tokio::task::JoinHandle<()>,
}

impl Router {
    fn follow(client: Client, world: &World, name: &str) -> Self {
        let suppressed = IntCounter::new("suppressed_total", "test").unwrap();
        let (wanted, names) = watch::channel(Some(name.to_owned()));
        let (follower, told) = ServerFollower::new(client, &world.namespace, names, suppressed);
        let (trigger, shutdown) = ShutdownTrigger::new();
        Self {
            told,
            wanted,
            trigger,
            task: tokio::spawn(follower.run(shutdown)),
        }
    }

    async fn until(
        &mut self,
        what: &str,
        is: impl Fn(&FollowingServer) -> bool,
    ) -> FollowingServer {
        let found = timeout(PATIENCE, self.told.wait_for(|following| is(following))).await;
        let found = found.ok().map(|found| found.unwrap().clone());
        found.unwrap_or_else(|| panic!("{what}: last seen {:?}", self.told.borrow()))
    }

    async fn has(&mut self, name: &str, generation: i64) -> Arc<FollowedServer> {
        let is = |following: &FollowingServer| {
            let server = following.server.as_ref();
            server.is_some_and(|server| server.name == name && server.generation == generation)
        };
        let found = self.until("the traffic arrives", is).await;
        assert_eq!(found.waits_for, None);
        found.server.unwrap()
    }

    async fn end(self) {
        self.trigger.advance(Phase::Draining);
        timeout(PATIENCE, self.task).await.unwrap().unwrap();
    }
}

async fn a_router_has_each_traffic_within_a_second(world: World) {
    let mut router = Router::follow(world.client.clone(), &world, "main");
    let absent = router
        .until("it says so", |following| following.absent)
        .await;
    assert_eq!(absent.server, None);
    assert!(absent.waits_for.unwrap().ends_with("which is not there"));
    create(&world, "main").await;
    let new = router.has("main", 0).await;
    assert!(new.traffic.targets.is_empty(), "nothing serves yet");
    let mut slowest = Duration::ZERO;
    for generation in 1..=20 {
        let began = Instant::now();
        traffic(&world, "main", generation).await;
        let seen = router.has("main", generation).await;
        slowest = slowest.max(began.elapsed());
        let url = &seen.traffic.targets[0].urls[0];
        assert_eq!(*url, format!("http://127.0.0.1:{}", 20_000 + generation));
        assert_eq!(seen.models["aaaaaaaaaa"], "v1");
    }
    println!("slowest of 20 changes until the router has it: {slowest:?}");
    assert!(
        slowest < Duration::from_secs(5),
        "{slowest:?}: the bar is 1 s, on a machine that has nothing else to do"
    );
    router.end().await;
}

async fn the_last_traffic_stays_while_the_api_is_away(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    create(&world, "main").await;
    traffic(&world, "main", 1).await;
    let mut router = Router::follow(client, &world, "main");
    router.has("main", 1).await;
    proxy.play(|_, _| Play::Refuse);
    traffic(&world, "main", 2).await;
    // Whatever the watch that was open still brings, what is known is one of the two.
    let kept = router.told.borrow().server.clone().unwrap();
    assert!(kept.generation >= 1);
    proxy.heal();
    router.has("main", 2).await;
    router.end().await;
}

async fn a_server_that_is_gone_made_anew_or_counted_anew_is_followed(world: World) {
    create(&world, "main").await;
    traffic(&world, "main", 7).await;
    let mut router = Router::follow(world.client.clone(), &world, "main");
    let first = router.has("main", 7).await;
    // A status that was lost is written anew, and counts from the start.
    traffic(&world, "main", 1).await;
    router.has("main", 1).await;
    let params = DeleteParams::default();
    servers(&world).delete("main", &params).await.unwrap();
    until("it is gone", || async {
        let found = servers(&world).get_opt("main").await.unwrap();
        found.is_none().then_some(()).ok_or("it is there")
    })
    .await;
    let gone = router
        .until("it says so", |following| following.absent)
        .await;
    assert_eq!(gone.server, None, "nobody wishes its addresses any more");
    create(&world, "main").await;
    traffic(&world, "main", 3).await;
    let again = router.has("main", 3).await;
    assert_ne!(again.uid, first.uid);
    router.end().await;
}

async fn another_name_is_followed_and_none_is_nothing(world: World) {
    for (name, generation) in [("main", 4), ("next", 2)] {
        create(&world, name).await;
        traffic(&world, name, generation).await;
    }
    let mut router = Router::follow(world.client.clone(), &world, "main");
    router.has("main", 4).await;
    // What was known stays until there is something to take its place.
    let before = router.told.clone();
    router.wanted.send_replace(Some("next".to_owned()));
    router.has("next", 2).await;
    assert!(before.has_changed().unwrap());
    router.wanted.send_replace(Some("nobody".to_owned()));
    let nobody = router
        .until("there is none", |following| following.absent)
        .await;
    assert_eq!(
        (nobody.server, nobody.wanted.as_deref()),
        (None, Some("nobody"))
    );
    router.wanted.send_replace(None);
    let none = |following: &FollowingServer| *following == FollowingServer::default();
    router.until("nothing is wanted", none).await;
    router.end().await;
}

async fn fault_01_a_follower_without_an_api_waits_and_says_so(world: World) {
    let (client, proxy) = Proxy::before(&world.client);
    proxy.play(|_, _| Play::Refuse);
    create(&world, "main").await;
    traffic(&world, "main", 1).await;
    let mut router = Router::follow(client, &world, "main");
    let waits = |following: &FollowingServer| {
        let what = following.waits_for.as_deref();
        what.is_some_and(|what| what.contains("connection refused"))
    };
    let waits = router.until("it says what it waits for", waits).await;
    assert_eq!((waits.server, waits.absent), (None, false));
    proxy.heal();
    router.has("main", 1).await;
    router.end().await;
}

async fn the_wording_of_a_version_is_found_under_its_digest(world: World) {
    let text = RELAY_DECISIONS_JSON.replace("\"instructions\": \"", "\"instructions\": \"Now: ");
    let reworded = Contract::import(text.as_bytes()).unwrap();
    let digest = reworded.digest().to_string();
    let read = || wording::read(&world.client, &world.namespace, &digest);
    let missing = read().await.unwrap_err().to_string();
    assert!(
        missing.contains(&wording::document_name(&digest)),
        "{missing}"
    );
    let tree: Value = serde_json::from_str(&text).unwrap();
    for data in [wording::document_data(&text).0, tree, json!({})] {
        let is_it = data != json!({});
        let document = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": wording::document_name(&digest)}, "data": data, "revision": 1,
        });
        let document: ControllerRevision = serde_json::from_value(document).unwrap();
        let revisions = world.revisions();
        let params = PostParams::default();
        revisions.create(&params, &document).await.unwrap();
        match read().await {
            Ok(found) => assert_eq!(found.questions(), reworded.questions()),
            Err(failure) => assert!(!is_it, "{failure}"),
        }
        let name = wording::document_name(&digest);
        revisions
            .delete(&name, &DeleteParams::default())
            .await
            .unwrap();
    }
}
