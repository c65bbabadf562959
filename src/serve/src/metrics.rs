//! What `/metrics` shows (wire.md 13.6). One registry per server; labels come from closed sets and never hold text of a
//! request.

mod process;

use prometheus::{
    Encoder, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};
use service::telemetry::{BuildInfo, ProcessMetrics};

/// Seconds of requests, of waiting and of inference: from a tiny checkpoint to a deadline.
const SECONDS: [f64; 14] = [
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];
/// Rows of a pass.
const ROWS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// Tokens of a pass.
const TOKENS: [f64; 9] = [
    64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 131_072.0,
];

/// All metrics of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    /// Panics and suppressed log lines.
    pub process: ProcessMetrics,
    /// `laya_requests_total{route,status}`
    pub requests: IntCounterVec,
    /// `laya_request_seconds{route}`
    pub request_seconds: HistogramVec,
    /// `laya_queue_seconds`
    pub queue_seconds: Histogram,
    /// `laya_inference_seconds{checkpoint}`
    pub inference_seconds: HistogramVec,
    /// `laya_queue_depth`: rows that wait.
    pub queue_depth: IntGauge,
    /// `laya_in_flight`
    pub in_flight: IntGauge,
    /// `laya_pass_rows`
    pub pass_rows: Histogram,
    /// `laya_pass_tokens`
    pub pass_tokens: Histogram,
    /// `laya_tokens_total{checkpoint}`
    pub tokens: IntCounterVec,
    /// `laya_answers_total{checkpoint,type}`
    pub answers: IntCounterVec,
    /// `laya_low_confidence_total{checkpoint}`
    pub low_confidence: IntCounterVec,
    /// `laya_truncated_total{checkpoint}`
    pub truncated: IntCounterVec,
    /// `laya_truncated_tokens_total{checkpoint}`
    pub truncated_tokens: IntCounterVec,
    /// `laya_routed_total{checkpoint,branch}`
    pub routed: IntCounterVec,
    /// `laya_special_text_total`
    pub special_text: IntCounter,
    /// `laya_load_seconds{checkpoint}`
    pub load_seconds: HistogramVec,
    /// `laya_load_failures_total{reason}`
    pub load_failures: IntCounterVec,
    /// `laya_checkpoint_info{…}`
    pub checkpoint_info: IntGaugeVec,
    /// `laya_ready`
    pub ready: IntGauge,
    /// `laya_draining`
    pub draining: IntGauge,
    resources: process::Resources,
}

impl Metrics {
    /// Registers everything.
    ///
    /// # Errors
    /// When two metrics have one name, which is a bug.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let build = BuildInfo {
            component: "laya",
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("RELAY_COMMIT").unwrap_or("unknown"),
        };
        let process = ProcessMetrics::register(registry.clone(), build)?;
        let make = Make(&registry);
        Ok(Self {
            requests: make.counters(
                "laya_requests_total",
                "Requests answered.",
                &["route", "status"],
            )?,
            request_seconds: make.histograms(
                "laya_request_seconds",
                "From head to reply.",
                &["route"],
                &SECONDS,
            )?,
            queue_seconds: make.histogram(
                "laya_queue_seconds",
                "Rows waiting for their first pass.",
                &SECONDS,
            )?,
            inference_seconds: make.histograms(
                "laya_inference_seconds",
                "From leaving the queue to numbers.",
                &["checkpoint"],
                &SECONDS,
            )?,
            queue_depth: make.gauge("laya_queue_depth", "Rows that wait.")?,
            in_flight: make.gauge("laya_in_flight", "Decision requests in the server.")?,
            pass_rows: make.histogram("laya_pass_rows", "Rows of a pass.", &ROWS)?,
            pass_tokens: make.histogram("laya_pass_tokens", "Tokens of a pass.", &TOKENS)?,
            tokens: make.counters("laya_tokens_total", "Tokens read.", &["checkpoint"])?,
            answers: make.counters(
                "laya_answers_total",
                "Answers given.",
                &["checkpoint", "type"],
            )?,
            low_confidence: make.counters(
                "laya_low_confidence_total",
                "Answers that the gate flagged.",
                &["checkpoint"],
            )?,
            truncated: make.counters(
                "laya_truncated_total",
                "Pairs of state and question that lost tokens of the state.",
                &["checkpoint"],
            )?,
            truncated_tokens: make.counters(
                "laya_truncated_tokens_total",
                "Tokens of states that were dropped, the most of any question of each state.",
                &["checkpoint"],
            )?,
            routed: make.counters(
                "laya_routed_total",
                "Routes between checkpoints.",
                &["checkpoint", "branch"],
            )?,
            special_text: make.counter(
                "laya_special_text_total",
                "Special token texts in requests.",
            )?,
            load_seconds: make.histograms(
                "laya_load_seconds",
                "Loading a checkpoint.",
                &["checkpoint"],
                &SECONDS,
            )?,
            load_failures: make.counters(
                "laya_load_failures_total",
                "Loads that failed.",
                &["reason"],
            )?,
            checkpoint_info: make.gauges(
                "laya_checkpoint_info",
                "Resident checkpoints; always 1.",
                &[
                    "name",
                    "digest",
                    "contract",
                    "device",
                    "precision",
                    "verified",
                ],
            )?,
            ready: make.gauge("laya_ready", "Whether /ready says so.")?,
            draining: make.gauge("laya_draining", "Whether the server drains.")?,
            resources: process::Resources::new(&make)?,
            process,
            registry,
        })
    }

    /// The text that Prometheus reads.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        self.resources.refresh();
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "metrics cannot be written");
        }
        text
    }
}

/// Makes and registers.
struct Make<'a>(&'a Registry);

impl Make<'_> {
    fn add<C: prometheus::core::Collector + Clone + 'static>(
        &self,
        metric: C,
    ) -> prometheus::Result<C> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn counter(&self, name: &str, help: &str) -> prometheus::Result<IntCounter> {
        self.add(IntCounter::new(name, help)?)
    }

    fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        self.add(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    fn gauge(&self, name: &str, help: &str) -> prometheus::Result<IntGauge> {
        self.add(IntGauge::new(name, help)?)
    }

    fn float_gauge(&self, name: &str, help: &str) -> prometheus::Result<Gauge> {
        self.add(Gauge::new(name, help)?)
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
        self.add(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> prometheus::Result<Histogram> {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.add(Histogram::with_opts(options)?)
    }

    fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> prometheus::Result<HistogramVec> {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.add(HistogramVec::new(options, labels)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_registers_once_and_is_written() {
        let metrics = Metrics::new().unwrap();
        metrics.requests.with_label_values(&["health", "200"]).inc();
        let text = String::from_utf8(metrics.text()).unwrap();
        assert!(
            text.contains("laya_requests_total{route=\"health\",status=\"200\"} 1"),
            "{text}"
        );
        assert!(text.contains("relay_build_info{"), "{text}");
        assert!(text.contains("laya_queue_depth 0"), "{text}");
        #[cfg(target_os = "linux")]
        assert!(
            !text.contains("process_resident_memory_bytes 0\n"),
            "{text}"
        );
    }
}
