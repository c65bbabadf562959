//! A router without a socket, over a store in a folder that is gone with it.

#![allow(dead_code)]

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use prometheus::Registry;
use router::servers::{BreakerRule, ServerMetrics, Servers};
use router::{ActivePolicy, PolicyInForce, RouterMetrics, RouterParts, Service};
use routing::decide::Client;
use serde_json::Value;
use service::http::{Admission, AdmissionLimits, Authority, HostRule, HttpMetrics, Origins, Stack};
use service::runtime::Readiness;
use service::telemetry::trace::Traces;
use store::{Location, Store, StoreOptions};
use tower::ServiceExt;

pub(crate) fn built_in_policy() -> Arc<ActivePolicy> {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    Arc::new(ActivePolicy::built_in(today).unwrap())
}

/// A router and what it stands on.
pub(crate) struct TestRouter {
    pub(crate) app: Router,
    pub(crate) service: Service,
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) servers: Servers,
    folder: Option<tempfile::TempDir>,
}

impl TestRouter {
    /// A router with a new store.
    pub(crate) async fn start(policy: &Arc<ActivePolicy>) -> Self {
        Self::guarded_by(policy, Authority::Open).await
    }

    /// The same, for who may call it.
    pub(crate) async fn guarded_by(policy: &Arc<ActivePolicy>, authority: Authority) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut router = Self::build(policy, folder.path(), None, authority).await;
        router.folder = Some(folder);
        router
    }

    /// A router with the store of a folder, and a laptop's files if they are named.
    pub(crate) async fn on(
        policy: &Arc<ActivePolicy>,
        folder: &Path,
        laya_files: Option<&Path>,
    ) -> Self {
        Self::build(policy, folder, laya_files, Authority::Open).await
    }

    async fn build(
        policy: &Arc<ActivePolicy>,
        folder: &Path,
        laya_files: Option<&Path>,
        authority: Authority,
    ) -> Self {
        let registry = Registry::new();
        let suppressed = prometheus::IntCounter::new("suppressed_total", "test").unwrap();
        let rule = BreakerRule {
            failures: BreakerRule::OWN_FAILURES,
            open_for: std::time::Duration::from_secs(60),
        };
        let metrics = ServerMetrics::register(&registry, suppressed).unwrap();
        let servers = Servers::new(rule, metrics);
        Self::over(policy, folder, laya_files, (servers, registry), authority).await
    }

    /// A router in front of these servers.
    pub(crate) async fn before(
        policy: &Arc<ActivePolicy>,
        folder: &Path,
        laya_files: Option<&Path>,
        servers: Servers,
        registry: Registry,
    ) -> Self {
        Self::over(
            policy,
            folder,
            laya_files,
            (servers, registry),
            Authority::Open,
        )
        .await
    }

    async fn over(
        policy: &Arc<ActivePolicy>,
        folder: &Path,
        laya_files: Option<&Path>,
        (servers, registry): (Servers, Registry),
        authority: Authority,
    ) -> Self {
        let location = Location::Sqlite(folder.join("relay.db"));
        let opened = Store::open(location, StoreOptions::default())
            .await
            .unwrap();
        let service = Service::new(RouterParts {
            policy: PolicyInForce::new(policy.clone()),
            client: Client::Own,
            store: opened.store.clone(),
            shared_store: false,
            servers: servers.clone(),
            laya_files: laya_files.map(Path::to_owned),
            metrics: RouterMetrics::register(&registry, &policy.policy).unwrap(),
            registry: registry.clone(),
            readiness: Readiness::default(),
            stack: Stack {
                metrics: HttpMetrics::register(&registry, "relay_router").unwrap(),
                task_panics: prometheus::IntCounter::new("panics_total", "test").unwrap(),
                origins: Arc::new(Origins::new(Vec::new(), HostRule::LoopbackOnly)),
                authority: Arc::new(authority),
                admission: Arc::new(Admission::new(AdmissionLimits::default())),
                traces: Traces::off(),
            },
            internal: None,
        });
        service.warm_up().await.unwrap();
        Self {
            app: service.app(),
            service,
            store: opened.store,
            registry,
            servers,
            folder: None,
        }
    }

    /// One request with a JSON body, or none.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = request.body(body).unwrap();
        let response = self.app.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes);
        let body = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(&*text));
        (status, body)
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.ask(Method::POST, path, Some(body)).await
    }
}
