//! A router without a socket.

use std::sync::Arc;

use axum::Router;
use prometheus::Registry;
use router::servers::{BreakerRule, ServerMetrics, Servers};
use router::{ActivePolicy, RouterMetrics, RouterParts};
use routing::decide::Client;
use service::http::{Admission, AdmissionLimits, Authority, HostRule, HttpMetrics, Origins, Stack};
use service::runtime::Readiness;

pub(crate) fn app(policy: &Arc<ActivePolicy>) -> Router {
    let registry = Registry::new();
    let suppressed = prometheus::IntCounter::new("suppressed_total", "test").unwrap();
    let rule = BreakerRule {
        failures: BreakerRule::OWN_FAILURES,
        open_for: std::time::Duration::from_secs(60),
    };
    let metrics = ServerMetrics::register(&registry, suppressed).unwrap();
    router::app(RouterParts {
        policy: policy.clone(),
        client: Client::Own,
        servers: Servers::new(rule, metrics),
        metrics: RouterMetrics::register(&registry, &policy.policy).unwrap(),
        readiness: Readiness::default(),
        stack: Stack {
            metrics: HttpMetrics::register(&registry, "relay_router").unwrap(),
            task_panics: prometheus::IntCounter::new("panics_total", "test").unwrap(),
            origins: Arc::new(Origins::new(Vec::new(), HostRule::LoopbackOnly)),
            authority: Arc::new(Authority::Open),
            admission: Arc::new(Admission::new(AdmissionLimits::default())),
        },
        registry,
    })
}
