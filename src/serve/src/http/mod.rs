//! Laya's HTTP surface (wire.md 2): paths and methods first, then origin, token, slot, body. Exact in status, headers and
//! bytes; what a request means is `decide`'s.

mod body;
mod decision;
mod guard;
mod openapi;
mod reply;
mod route;
mod status;

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use futures_util::FutureExt;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use tokio::sync::Semaphore;

use crate::decide::Decider;
use crate::host::Host;
use crate::metrics::Metrics;
use crate::readiness::{Drain, Readiness};
use crate::settings::Serving;
use guard::{Foreign, Guard};
use route::{Path, Route};

/// Everything that a request may need. Share it behind an `Arc`.
#[derive(Debug)]
pub struct Surface {
    guard: Guard,
    decider: Decider,
    host: Arc<Host>,
    readiness: Arc<Readiness>,
    metrics: Metrics,
    slots: Arc<Semaphore>,
    /// `host:port` where a request names none.
    address: String,
    root_path: String,
    body_read_timeout: Duration,
    request_timeout: Duration,
    max_concurrent: usize,
}

impl Surface {
    /// The surface of a server that listens on `address`.
    #[must_use]
    pub fn new(
        serving: Serving,
        address: SocketAddr,
        host: Arc<Host>,
        readiness: Arc<Readiness>,
        metrics: Metrics,
    ) -> Self {
        Self {
            guard: Guard::new(serving.api_key.as_ref(), serving.allowed_origins.clone()),
            slots: Arc::new(Semaphore::new(serving.max_concurrent)),
            address: address.to_string(),
            root_path: serving.root_path.clone(),
            body_read_timeout: serving.body_read_timeout,
            request_timeout: serving.request_timeout,
            max_concurrent: serving.max_concurrent,
            decider: Decider::new(serving, Arc::clone(&host), metrics.clone()),
            host,
            readiness,
            metrics,
        }
    }

    /// The surface as routes for the accept loop.
    pub fn router(self: Arc<Self>) -> Router {
        Router::new().fallback(move |request: Request<Body>| {
            let surface = Arc::clone(&self);
            async move { surface.answer(request).await }
        })
    }

    /// Decision requests that are being answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.max_concurrent
            .saturating_sub(self.slots.available_permits())
    }

    /// Answers a request. Cancel safe: a request whose client went away is dropped with the future.
    pub async fn answer(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        let began = Instant::now();
        let path = Path::read(request.uri().path(), self.guard.has_key());
        let label = path.label();
        let answered = AssertUnwindSafe(self.dispatch(path, request, began))
            .catch_unwind()
            .await;
        let response = answered.unwrap_or_else(|_| {
            self.metrics.process.task_panics.inc();
            reply::detail(StatusCode::INTERNAL_SERVER_ERROR, "inference failed")
        });
        let status = response.status();
        self.metrics
            .requests
            .with_label_values(&[label, status.as_str()])
            .inc();
        self.metrics
            .request_seconds
            .with_label_values(&[label])
            .observe(began.elapsed().as_secs_f64());
        response
    }

    async fn dispatch(&self, path: Path, request: Request<Body>, began: Instant) -> Response<Body> {
        let route = match path {
            Path::Unknown => {
                return reply::early(request, reply::detail(StatusCode::NOT_FOUND, "Not Found"));
            }
            Path::Slash(route) => {
                let redirect = self.redirect(&request, route);
                return reply::early(request, redirect);
            }
            Path::Known(route) => route,
        };
        if !route.methods().contains(request.method()) {
            let mut refused = reply::detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
            refused
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static(route.allow()));
            return reply::early(request, refused);
        }
        let origin = match self.guard.origin(request.headers()) {
            Ok(origin) => origin,
            Err(Foreign) => {
                let refused = reply::detail(StatusCode::FORBIDDEN, "origin not allowed");
                return reply::early(request, refused);
            }
        };
        let mut response = self.known(route, request, began).await;
        if let Some(origin) = origin {
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::VARY, HeaderValue::from_static("origin"));
        }
        response
    }

    async fn known(&self, route: Route, request: Request<Body>, began: Instant) -> Response<Body> {
        let trusted = self.guard.trusts(request.headers());
        match route {
            Route::Health if trusted => {
                reply::early(request, reply::json(StatusCode::OK, self.health()))
            }
            Route::Health => reply::early(
                request,
                reply::json(StatusCode::OK, r#"{"status":"ok"}"#.to_owned()),
            ),
            Route::Ready => {
                let ready = self.ready(trusted);
                reply::early(request, ready)
            }
            Route::OpenApi => {
                let document = openapi::document(&self.root_path);
                reply::early(request, reply::json(StatusCode::OK, document))
            }
            _ if !trusted => {
                let refused =
                    reply::detail(StatusCode::UNAUTHORIZED, "invalid or missing bearer token");
                reply::early(request, refused)
            }
            Route::Metrics => {
                let metrics = self.metrics();
                reply::early(request, metrics)
            }
            Route::Drain => {
                let drained = self.drain(request.method());
                reply::early(request, drained)
            }
            Route::Decide(form) => self.decision(form, request, began).await,
        }
    }

    fn redirect(&self, request: &Request<Body>, route: Route) -> Response<Body> {
        let host = request
            .headers()
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        let query = request.uri().query().filter(|query| !query.is_empty());
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let location = format!(
            "http://{}{}{query}",
            host.unwrap_or(&self.address),
            route.path()
        );
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        if let Ok(location) = HeaderValue::from_str(&location) {
            headers.insert(header::LOCATION, location);
        }
        response
    }

    fn metrics(&self) -> Response<Body> {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.metrics.in_flight.set(gauge(self.in_flight()));
        self.metrics
            .queue_depth
            .set(gauge(self.host.waiting_rows()));
        self.metrics
            .ready
            .set(i64::from(self.readiness.problem().is_none()));
        self.metrics
            .draining
            .set(i64::from(self.readiness.is_draining()));
        reply::text(self.metrics.text())
    }

    fn drain(&self, method: &Method) -> Response<Body> {
        let (drain, status, word) = if method == Method::DELETE {
            (Drain::End, StatusCode::OK, "false")
        } else {
            (Drain::Start, StatusCode::ACCEPTED, "true")
        };
        self.readiness.drain(drain);
        let in_flight = self.in_flight();
        reply::json(
            status,
            format!(r#"{{"draining":{word},"in_flight":{in_flight}}}"#),
        )
    }
}
