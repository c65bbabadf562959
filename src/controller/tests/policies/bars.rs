//! Bars of control-plane 19, measured: run in release with `--ignored --nocapture bars`. What must hold on any machine is
//! asserted: no writes; the times are printed and bounded loosely.

use std::time::{Duration, Instant};

use controller::metrics::{PassResult, WriteResult};
use futures_util::StreamExt;
use futures_util::stream;

use crate::world::{World, good, until_within};

/// Setting a thousand policies up takes longer than any other test waits.
const PATIENCE: Duration = Duration::from_secs(180);
/// Policies of the bar.
const POLICIES: u32 = 1_000;

mod on_local {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "a bar"]
    async fn a_start_over_a_thousand_policies() {
        super::a_start_over_a_thousand_policies(crate::sources::local().await, 5).await;
    }
}

mod on_kube {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "a bar; needs a kube-apiserver"]
    async fn a_start_over_a_thousand_policies() {
        super::a_start_over_a_thousand_policies(crate::sources::kube().await, 15).await;
    }
}

async fn a_start_over_a_thousand_policies(world: World, bar_seconds: u64) {
    let running = world.start();
    let began = Instant::now();
    let create = |number| {
        let world = &world;
        async move {
            world
                .create(&format!("policy-{number}"), &good(number))
                .await
        }
    };
    stream::iter(0..POLICIES)
        .map(create)
        .buffer_unordered(8)
        .collect::<Vec<_>>()
        .await;
    let metrics = running.metrics.clone();
    until_within(PATIENCE, "all are in force and at rest", || async {
        let rested = metrics.passes("RoutingPolicy", PassResult::Unchanged);
        if rested >= u64::from(POLICIES) {
            Ok(())
        } else {
            Err(rested)
        }
    })
    .await;
    println!(
        "{POLICIES} policies from nothing to rest: {:?}",
        began.elapsed()
    );
    running.end().await;

    let began = Instant::now();
    let running = world.start();
    let metrics = running.metrics.clone();
    until_within(PATIENCE, "all passed once", || async {
        let passed = metrics.passes("RoutingPolicy", PassResult::Unchanged);
        if passed >= u64::from(POLICIES) {
            Ok(())
        } else {
            Err(passed)
        }
    })
    .await;
    let took = began.elapsed();
    println!("{POLICIES} policies after a start: {took:?}, bar {bar_seconds} s");
    for result in [
        WriteResult::Written,
        WriteResult::Conflict,
        WriteResult::Refused,
        WriteResult::Error,
    ] {
        assert_eq!(metrics.status_writes("RoutingPolicy", result), 0);
    }
    assert!(took < Duration::from_secs(4 * bar_seconds), "{took:?}");
    let before = processor_time();
    let idle = Duration::from_secs(20);
    tokio::time::sleep(idle).await;
    let used = processor_time() - before;
    println!(
        "idle: {:.3} % of a core, {} kB resident (store and test included)",
        100.0 * used.as_secs_f64() / idle.as_secs_f64(),
        resident()
    );
    running.end().await;
}

/// Processor time of this process so far.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after = text.rsplit(')').next().unwrap();
    let fields: Vec<_> = after.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn resident() -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().to_owned()
}
