//! How spans leave: a queue with a bound in front of the SDK's batches, and a blocking HTTP client on the thread the
//! SDK keeps for them. Whatever the collector does costs spans and a counter, never a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry::Context;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

use crate::telemetry::RepeatedError;

/// Most bytes of a collector's answer that are read.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// What traces cost when they cannot be delivered: `relay_otel_dropped_total{reason}`.
#[derive(Debug, Clone)]
pub struct TraceMetrics {
    pub(super) queue_full: IntCounter,
    pub(super) not_delivered: IntCounter,
}

impl TraceMetrics {
    /// Registers it.
    ///
    /// # Errors
    /// When the registry has one of this name already.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let dropped = IntCounterVec::new(
            Opts::new(
                "relay_otel_dropped_total",
                "Spans that were lost, by why: the queue was full, or the collector did not take them.",
            ),
            &["reason"],
        )?;
        registry.register(Box::new(dropped.clone()))?;
        Ok(Self {
            queue_full: dropped.with_label_values(&["queue_full"]),
            not_delivered: dropped.with_label_values(&["not_delivered"]),
        })
    }
}

/// Spans that ended and were neither delivered nor given up.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending(Arc<AtomicUsize>);

impl Pending {
    fn enter(&self, limit: usize) -> bool {
        let one_more = |waiting| (waiting < limit).then_some(waiting + 1);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .is_ok()
    }

    fn leave(&self, spans: usize) {
        self.0.fetch_sub(spans, Ordering::Relaxed);
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The bound in front of the batches. The SDK has one too, but does not say what it dropped.
#[derive(Debug)]
pub(super) struct Bounded {
    pub(super) batches: BatchSpanProcessor,
    pub(super) pending: Pending,
    /// No more than what `batches` holds.
    pub(super) limit: usize,
    pub(super) dropped: IntCounter,
}

impl SpanProcessor for Bounded {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.pending.enter(self.limit) {
            self.batches.on_end(span);
        } else {
            self.dropped.inc();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// An exporter that says what it could not deliver.
#[derive(Debug)]
pub(super) struct Counted<E> {
    pub(super) exporter: E,
    pub(super) pending: Pending,
    pub(super) not_delivered: IntCounter,
    pub(super) errors: RepeatedError,
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.exporter.export(batch).await;
        self.pending.leave(spans);
        match &sent {
            Ok(()) => {
                if let Some(failures) = self.errors.recovered() {
                    tracing::info!(failures, "the trace collector takes spans again");
                }
            }
            Err(error) => {
                self.not_delivered.inc_by(spans as u64);
                if let Some(times) = self.errors.occurred() {
                    tracing::warn!(%error, times, spans, "the trace collector did not take spans; they are lost");
                }
            }
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Posts batches. It blocks, which is right on the thread it is called on, and wrong on any other.
#[derive(Debug)]
pub(super) struct Client(ureq::Agent);

impl Client {
    /// A client whose calls take this long at most.
    pub(super) fn new(timeout: Duration) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(timeout))
            .max_redirects(0)
            .build();
        Self(ureq::Agent::new_with_config(config))
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(head, &body[..]))?;
        let (head, mut body) = answer.into_parts();
        let bytes = body.with_config().limit(MAX_ANSWER_BYTES).read_to_vec()?;
        Ok(Response::from_parts(head, bytes.into()))
    }
}
