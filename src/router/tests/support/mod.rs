//! A router without a socket.

use std::sync::Arc;

use axum::Router;
use prometheus::Registry;
use router::{ActivePolicy, RouterMetrics, RouterParts};
use routing::decide::Client;
use service::http::{Admission, AdmissionLimits, Authority, HostRule, HttpMetrics, Origins, Stack};
use service::runtime::Readiness;
use service::telemetry::trace::Traces;

pub(crate) fn app(policy: &Arc<ActivePolicy>) -> Router {
    let registry = Registry::new();
    router::app(RouterParts {
        policy: policy.clone(),
        client: Client::Own,
        metrics: RouterMetrics::register(&registry, &policy.policy).unwrap(),
        readiness: Readiness::default(),
        stack: Stack {
            metrics: HttpMetrics::register(&registry, "relay_router").unwrap(),
            task_panics: prometheus::IntCounter::new("panics_total", "test").unwrap(),
            origins: Arc::new(Origins::new(Vec::new(), HostRule::LoopbackOnly)),
            authority: Arc::new(Authority::Open),
            admission: Arc::new(Admission::new(AdmissionLimits::default())),
            traces: Traces::off(),
        },
        registry,
    })
}
