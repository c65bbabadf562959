//! The span of a request, for the trace collector and for the log: an event inside a request carries its request id
//! and, where there is one, its trace id. Must stand inside the layer that gives requests their ids.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::trace::FutureExt;
use tracing::Instrument;
use tracing::field::{Empty, display};

use super::RequestId;
use crate::telemetry::trace::{self, Incoming, Traces};

/// Routes of probes and scrapes. They come every few seconds for ever: they get a span only when their caller traces.
const PROBES: [&str; 3] = ["/health", "/ready", "/metrics"];

pub(super) async fn follow(State(traces): State<Traces>, request: Request, next: Next) -> Response {
    let id = request.extensions().get::<RequestId>();
    let id = id.map(RequestId::as_str).unwrap_or_default();
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map(MatchedPath::as_str);
    let context = traces.begin(&Incoming {
        method: request.method(),
        route,
        headers: request.headers(),
        id,
        traced: route.is_none_or(|route| !PROBES.contains(&route))
            || request.headers().contains_key("traceparent"),
    });
    // At the highest level, so that its fields are there whatever is logged.
    let span = tracing::error_span!("request", request_id = id, trace_id = Empty);
    let Some(context) = context else {
        return next.run(request).instrument(span).await;
    };
    if let Some(trace) = trace::trace_id(&context) {
        span.record("trace_id", display(trace));
    }
    let answer = next.run(request).with_context(context.clone());
    let response = answer.instrument(span).await;
    trace::end(&context, response.status());
    response
}
