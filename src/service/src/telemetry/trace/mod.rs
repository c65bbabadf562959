//! Traces: one span for each request and each pass of a reconciler, sent as OTLP over HTTP where the environment names a collector, and the W3C trace
//! context, which is taken in and given on whether or not spans are sent. A span says what was asked of which route and
//! how it ended; no text of a request or an answer is ever part of it.

mod export;
mod names;
mod settings;
mod work;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    FutureExt, SpanKind, Status, TraceContextExt, TraceId, Tracer, TracerProvider,
};
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider,
};
use tracing::Instrument;
use uuid::Uuid;

pub use export::TraceMetrics;
pub use settings::TraceSettings;
pub use work::{Pass, Subject, within};

use crate::telemetry::{BuildInfo, RepeatedError};
use export::{Bounded, Client, Counted, Pending};

/// How long spans may take to leave at exit.
pub const FLUSH_DEADLINE: Duration = Duration::from_secs(2);

/// Longest `tracestate` that is taken over, in bytes: what the W3C asks everybody to pass on. Spans wait in a queue
/// that is bounded by their number, so each of them has a bound too.
const MAX_STATE_BYTES: usize = 512;

const STATE: &str = "tracestate";

/// Traces cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot send traces to {collector}")]
pub struct TraceError {
    /// Host and port.
    collector: String,
    /// Why.
    source: ExporterBuildError,
}

/// Where the spans of a process go. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    sent: Option<Arc<Sent>>,
}

#[derive(Debug)]
struct Sent {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    pending: Pending,
    metrics: TraceMetrics,
}

impl Traces {
    /// Nowhere; the trace context of a caller is given on all the same.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// To a collector, in batches, by a thread of their own. `errors` counts what it does not take.
    ///
    /// # Errors
    /// When the SDK refuses the settings.
    pub fn start(
        settings: &TraceSettings,
        build: BuildInfo,
        metrics: TraceMetrics,
        errors: RepeatedError,
    ) -> Result<Self, TraceError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new(settings.timeout))
            .with_endpoint(&settings.endpoint)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(settings.timeout)
            .build()
            .map_err(|source| TraceError {
                collector: settings.collector(),
                source,
            })?;
        let pending = Pending::default();
        let counted = Counted {
            exporter,
            pending: pending.clone(),
            not_delivered: metrics.not_delivered.clone(),
            errors,
        };
        let batch = BatchConfigBuilder::default()
            .with_max_queue_size(settings.queue)
            .build();
        let bounded = Bounded {
            batches: BatchSpanProcessor::builder(counted)
                .with_batch_config(batch)
                .build(),
            pending: pending.clone(),
            limit: settings.queue,
            dropped: metrics.queue_full.clone(),
        };
        let provider = SdkTracerProvider::builder()
            .with_span_processor(bounded)
            .with_resource(resource(settings, build))
            .build();
        let scope = InstrumentationScope::builder("relay")
            .with_version(build.version)
            .with_schema_url(names::CONVENTIONS)
            .build();
        tracing::info!(collector = settings.collector(), "traces are sent");
        Ok(Self {
            sent: Some(Arc::new(Sent {
                tracer: provider.tracer_with_scope(scope),
                provider,
                pending,
                metrics,
            })),
        })
    }

    /// Sends what still waits, for at most this long, and ends; spans of later requests are not sent. Blocks: call it
    /// when nothing else is left to do.
    pub fn finish(&self, deadline: Duration) {
        let Some(sent) = &self.sent else { return };
        // What comes of it is what is still there afterwards.
        let _ = sent.provider.shutdown_with_timeout(deadline);
        let lost = sent.pending.count();
        if lost > 0 {
            sent.metrics.not_delivered.inc_by(lost as u64);
            tracing::warn!(
                spans = lost,
                deadline_seconds = deadline.as_secs_f64(),
                "spans did not leave in time"
            );
        }
    }

    /// The context a request is answered in: with a span of its own, or with the caller's alone, or none.
    pub(crate) fn begin(&self, request: &Incoming<'_>) -> Option<Context> {
        let caller = extract(request.headers);
        let Some(sent) = self.sent.as_ref().filter(|_| request.traced) else {
            return caller;
        };
        let method = known_method(request.method);
        let name = match request.route {
            Some(route) => format!("{method} {route}"),
            None => method.to_owned(),
        };
        let mut attributes = vec![
            KeyValue::new(names::METHOD, method),
            KeyValue::new(names::REQUEST_ID, request.id.to_owned()),
        ];
        if let Some(route) = request.route {
            attributes.push(KeyValue::new(names::ROUTE, route.to_owned()));
        }
        let parent = caller.unwrap_or_default();
        let span = sent
            .tracer
            .span_builder(name)
            .with_kind(SpanKind::Server)
            .with_attributes(attributes)
            .start_with_context(&sent.tracer, &parent);
        Some(parent.with_span(span))
    }
}

/// What is known of a request when it begins.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    pub(crate) method: &'a Method,
    /// Pattern of the route, where one matches.
    pub(crate) route: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) id: &'a str,
    /// Whether it gets a span.
    pub(crate) traced: bool,
}

/// Id of the trace a context belongs to.
pub(crate) fn trace_id(context: &Context) -> Option<TraceId> {
    let span = context.span();
    let context = span.span_context();
    context.is_valid().then(|| context.trace_id())
}

/// Ends the span of a request with what was answered.
pub(crate) fn end(context: &Context, status: StatusCode) {
    let span = context.span();
    span.set_attribute(KeyValue::new(names::STATUS, i64::from(status.as_u16())));
    if status.is_server_error() {
        span.set_attribute(KeyValue::new(names::ERROR, status.as_str().to_owned()));
        span.set_status(Status::error(""));
    }
    span.end();
}

/// Gives the trace context of the request that is being answered to a call that is made for it: `traceparent`, and
/// `tracestate` where there is one. Nothing where there is none.
pub fn inject(headers: &mut HeaderMap) {
    Context::map_current(|context| {
        TraceContextPropagator::new().inject_context(context, &mut HeaderInjector(headers));
    });
    if headers.get(STATE).is_some_and(|state| state.is_empty()) {
        headers.remove(STATE);
    }
}

/// Says which decision the request that is being answered made or asked about.
pub fn decision(id: Uuid) {
    Context::map_current(|context| {
        let span = context.span();
        if span.is_recording() {
            span.set_attribute(KeyValue::new(names::DECISION_ID, id.to_string()));
        }
    });
}

/// A future that keeps the trace and the log fields of the request it is made for, for a task of its own.
pub fn carry<F: Future>(future: F) -> impl Future<Output = F::Output> {
    future
        .with_context(Context::current())
        .instrument(tracing::Span::current())
}

/// The same for work on another thread.
pub fn carry_blocking<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let context = Context::current();
    let span = tracing::Span::current();
    move || {
        let _attached = context.attach();
        span.in_scope(work)
    }
}

/// The caller's trace context, where it sent one that is valid.
fn extract(headers: &HeaderMap) -> Option<Context> {
    if !headers.contains_key("traceparent") {
        return None;
    }
    let propagator = TraceContextPropagator::new();
    let root = Context::new();
    let context = match headers.get(STATE) {
        Some(state) if state.len() > MAX_STATE_BYTES => {
            let mut headers = headers.clone();
            headers.remove(STATE);
            propagator.extract_with_context(&root, &HeaderExtractor(&headers))
        }
        _ => propagator.extract_with_context(&root, &HeaderExtractor(headers)),
    };
    trace_id(&context).map(|_| context)
}

/// Any other word is the caller's, and a label of a closed set in every trace store.
fn known_method(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "CONNECT" => "CONNECT",
        "OPTIONS" => "OPTIONS",
        "TRACE" => "TRACE",
        "PATCH" => "PATCH",
        _ => "_OTHER",
    }
}

/// Who sends: our defaults under what the environment says.
fn resource(settings: &TraceSettings, build: BuildInfo) -> Resource {
    let builder = Resource::builder_empty()
        .with_service_name(format!("relay-{}", build.component))
        .with_attributes([
            KeyValue::new(names::SERVICE_VERSION, build.version),
            KeyValue::new(names::SERVICE_INSTANCE, Uuid::now_v7().to_string()),
        ])
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()));
    match &settings.service_name {
        Some(name) => builder.with_service_name(name.clone()).build(),
        None => builder.build(),
    }
}
