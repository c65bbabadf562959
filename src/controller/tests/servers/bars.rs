//! Bars of control-plane 19, measured: run in release with `--ignored --nocapture bars`. What must hold on any machine is
//! asserted: no writes; the times are printed and bounded loosely.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::kinds::LayaServer;
use controller::metrics::{PassResult, WriteResult};
use futures_util::{StreamExt, stream};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::world::{World, is_at_rest, serves, told, until_within};

/// Setting up takes longer than any other test waits.
const SETUP: Duration = Duration::from_secs(300);
/// LayaServers of the bar.
const SERVERS: usize = 200;
/// LayaModels of the bar.
const MODELS: usize = 100;
/// Seconds until each object was passed once after a start.
const BAR: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a bar"]
async fn a_start_over_two_hundred_servers_and_a_hundred_models() {
    let world = World::new().await;
    let running = world.start();
    let models = |number: usize| {
        let world = &world;
        async move { world.create_model(&format!("model-{number}")).await }
    };
    stream::iter(0..MODELS)
        .map(models)
        .buffer_unordered(8)
        .collect::<Vec<_>>()
        .await;
    let servers = |number: usize| {
        let world = &world;
        let model = format!("model-{}", number % MODELS);
        async move {
            let name = format!("server-{number}");
            world.create(&name, &model, &json!({})).await;
        }
    };
    let began = Instant::now();
    stream::iter(0..SERVERS)
        .map(servers)
        .buffer_unordered(8)
        .collect::<Vec<_>>()
        .await;
    until_within(SETUP, "all serve", || async {
        let all = ListParams::default();
        let servers = world.servers().list(&all).await.unwrap().items;
        let serving = |server: &&LayaServer| {
            let status = server.status.clone().unwrap_or_default();
            serves(&status, &server.spec.model_ref.name) && is_at_rest(&status)
        };
        let count = servers.iter().filter(serving).count();
        if count == SERVERS { Ok(()) } else { Err(count) }
    })
    .await;
    println!(
        "{SERVERS} servers from nothing to rest: {:?}",
        began.elapsed()
    );
    running.end().await;

    let before = statuses(&world).await;
    let began = Instant::now();
    let running = world.start();
    let metrics = running.metrics.clone();
    let passed = |kind: &str| {
        [
            PassResult::Unchanged,
            PassResult::Waiting,
            PassResult::Changed,
        ]
        .map(|result| metrics.passes(kind, result))
        .iter()
        .sum::<u64>()
    };
    until_within(SETUP, "all passed once", || async {
        let counts = (passed("LayaServer"), passed("LayaModel"));
        if counts.0 >= SERVERS as u64 && counts.1 >= MODELS as u64 {
            Ok(())
        } else {
            Err(counts)
        }
    })
    .await;
    let took = began.elapsed();
    println!("one pass each after a start: {took:?}, bar {BAR:?}");
    assert!(took < 4 * BAR, "{took:?}");
    // Probes come in and change nothing that is written.
    let idle = Instant::now();
    while idle.elapsed() < Duration::from_secs(20) {
        for (name, status) in statuses(&world).await {
            let was = &before[&name];
            assert_eq!(&status, was, "{name}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for kind in ["LayaServer", "LayaModel"] {
        for result in [
            WriteResult::Written,
            WriteResult::Conflict,
            WriteResult::Refused,
            WriteResult::Error,
        ] {
            assert_eq!(metrics.status_writes(kind, result), 0, "{kind} {result:?}");
        }
    }
    running.end().await;
}

/// What is said of each server.
async fn statuses(world: &World) -> BTreeMap<String, Value> {
    let all = ListParams::default();
    let servers = world.servers().list(&all).await.unwrap().items;
    let status = |server: LayaServer| {
        let status = told(&server.status.clone().unwrap_or_default());
        (server.name_any(), status)
    };
    servers.into_iter().map(status).collect()
}
