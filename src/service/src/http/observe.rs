//! Counts and times requests: `<prefix>_requests_total{route,code}`, `<prefix>_request_duration_seconds{route}` and
//! `<prefix>_in_flight`. Routes are the patterns of the program, so their set is closed; anything else is `other`.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry};

/// Route label of a path that no route matches.
const OTHER: &str = "other";

/// Seconds. Rules answer in tens of microseconds, a model in tens of milliseconds, a deadline is 5 s.
const DURATION_BUCKETS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// Metrics of one server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HttpMetrics {
    requests: IntCounterVec,
    duration: HistogramVec,
    in_flight: IntGauge,
}

impl HttpMetrics {
    /// Registers them under a prefix, for example `relay_router`.
    ///
    /// # Errors
    /// When the registry has one of these names already.
    pub fn register(registry: &Registry, prefix: &str) -> prometheus::Result<Self> {
        let requests = IntCounterVec::new(
            Opts::new(
                format!("{prefix}_requests_total"),
                "Requests answered, by route pattern and status code.",
            ),
            &["route", "code"],
        )?;
        let duration = HistogramVec::new(
            HistogramOpts::new(
                format!("{prefix}_request_duration_seconds"),
                "Time from the request's head to the answer's, by route pattern.",
            )
            .buckets(DURATION_BUCKETS.to_vec()),
            &["route"],
        )?;
        let in_flight = IntGauge::new(
            format!("{prefix}_in_flight"),
            "Requests being answered, queued ones included.",
        )?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(duration.clone()))?;
        registry.register(Box::new(in_flight.clone()))?;
        Ok(Self {
            requests,
            duration,
            in_flight,
        })
    }
}

/// One request in flight; also counts down when the client goes away and the answer is dropped.
struct InFlight(IntGauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

pub(super) async fn observe(
    State(metrics): State<HttpMetrics>,
    request: Request,
    next: Next,
) -> Response {
    let start = Instant::now();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or(OTHER, MatchedPath::as_str);
    metrics.in_flight.inc();
    let open = InFlight(metrics.in_flight.clone());
    let response = next.run(request).await;
    drop(open);
    metrics
        .duration
        .with_label_values(&[route])
        .observe(start.elapsed().as_secs_f64());
    metrics
        .requests
        .with_label_values(&[route, response.status().as_str()])
        .inc();
    response
}
