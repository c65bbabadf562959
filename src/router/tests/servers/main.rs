//! Decision-model servers that are slow, lying, dying or gone (faults 26, 27, 33, 34 of engineering.md 14): the router
//! answers within its deadline, asks nobody it should not ask, and keeps no call, connection or memory.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

mod asking;
mod choosing;
mod crowds;
mod embedded;
mod following;
mod knowing;
mod passing;
mod shadowing;
mod switching;

#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use api::responses::ServingState;
use prometheus::{IntCounter, Registry};
use router::servers::{BreakerRule, Deadline, ServerMetrics, Servers, Target, Upstream};
use service::runtime::ShutdownTrigger;
use testkit::FakeLaya;

/// Everything a test waits for comes within this time, or the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Servers that are looked at for as long as this lives.
struct Behind {
    servers: Servers,
    registry: Registry,
    _trigger: ShutdownTrigger,
}

impl Behind {
    /// Puts these in force and waits until each was looked at.
    async fn new(targets: Vec<Target>, failures: u32) -> Self {
        let behind = Self::unready(targets, failures);
        behind.until(|state| state != ServingState::RulesOnly).await;
        behind
    }

    fn unready(targets: Vec<Target>, failures: u32) -> Self {
        let registry = Registry::new();
        let suppressed = IntCounter::new("suppressed_total", "test").unwrap();
        let metrics = ServerMetrics::register(&registry, suppressed).unwrap();
        let rule = BreakerRule {
            failures,
            open_for: Duration::from_secs(60),
        };
        let servers = Servers::new(rule, metrics);
        servers.replace(targets).unwrap();
        let (trigger, shutdown) = ShutdownTrigger::new();
        let looked_at = servers.clone();
        let copied = servers.clone();
        let until = shutdown.clone();
        tokio::spawn(async move { copied.compare_shadows(&until).await });
        tokio::spawn(async move { looked_at.follow(&shutdown).await });
        Self {
            servers,
            registry,
            _trigger: trigger,
        }
    }

    fn state(&self) -> ServingState {
        self.servers.serving().state
    }

    async fn until(&self, wanted: impl Fn(ServingState) -> bool) {
        until("the state of serving", || wanted(self.state())).await;
    }

    /// Whether the breaker of a server is shown as open.
    fn is_open(&self, server: &str) -> bool {
        let families = self.registry.gather();
        let family = families
            .iter()
            .find(|family| family.name() == "relay_router_breaker_open")
            .expect("the metric");
        let metric = family
            .get_metric()
            .iter()
            .find(|metric| metric.get_label()[0].value() == server)
            .expect("the server");
        metric.get_gauge().get_value() > 0.5
    }

    /// The whole router over these servers.
    async fn app(&self) -> axum::Router {
        let folder = tempfile::tempdir().unwrap();
        let policy = support::built_in_policy();
        let registry = Registry::new();
        let servers = self.servers.clone();
        let router =
            support::TestRouter::before(&policy, folder.path(), None, servers, registry).await;
        // The store keeps its files open; what it writes is of no interest here.
        router.app
    }
}

fn target(name: &str, fake: &FakeLaya) -> Target {
    let upstream = Upstream::Http {
        url: fake.url().parse().unwrap(),
        key: None,
    };
    Target::new(name, upstream)
}

/// From now on, of so many milliseconds; 250 of them, or half, are kept.
fn within(millis: u64) -> Deadline {
    Deadline::of_request(Instant::now(), Duration::from_millis(millis))
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(
            begun.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
