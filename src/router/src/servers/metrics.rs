//! What is counted about servers (routing.md 22). The label `server` is the name that the configuration or a followed
//! LayaServer gives a server and goes with it; a revision is no label, its part is.

use std::time::Duration;

use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};
use service::telemetry::RepeatedError;

use super::revision::Ended;
use super::shadow::Copied;
use super::table::Role;

/// Seconds; the deadline of a decision is 5 s by default.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
];

/// Metrics of the servers behind a router. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ServerMetrics {
    breaker_open: IntGaugeVec,
    calls: IntCounterVec,
    call_duration: HistogramVec,
    copies: IntCounterVec,
    traffic_generation: IntGauge,
    log_suppressed: IntCounter,
}

fn options(name: &str, help: &str) -> Opts {
    Opts::new(format!("{}_{name}", crate::METRICS_PREFIX), help)
}

impl ServerMetrics {
    /// Registers them. `log_suppressed` counts lines that are held back.
    ///
    /// # Errors
    /// When the registry has one of these names already.
    pub fn register(registry: &Registry, log_suppressed: IntCounter) -> prometheus::Result<Self> {
        let breaker_open = IntGaugeVec::new(
            options(
                "breaker_open",
                "1 while a decision-model server is not asked, or only by one call that tries.",
            ),
            &["server"],
        )?;
        let calls = IntCounterVec::new(
            options(
                "model_calls_total",
                "Calls to decision-model servers that somebody waited for, by the server's part and how they ended.",
            ),
            &["role", "result"],
        )?;
        let duration = options(
            "model_call_duration_seconds",
            "Time of calls to decision-model servers that were answered, by the server's part.",
        );
        let duration = HistogramOpts::from(duration).buckets(BUCKETS.to_vec());
        let call_duration = HistogramVec::new(duration, &["role"])?;
        let copies = IntCounterVec::new(
            options(
                "shadow_copies_total",
                "Copies of requests for a version that wants to serve, by how its answers compare.",
            ),
            &["comparison"],
        )?;
        let traffic_generation = IntGauge::with_opts(options(
            "traffic_generation",
            "Generation of the table of servers in force, of the LayaServer that is followed; 0 without one.",
        ))?;
        registry.register(Box::new(breaker_open.clone()))?;
        registry.register(Box::new(calls.clone()))?;
        registry.register(Box::new(call_duration.clone()))?;
        registry.register(Box::new(copies.clone()))?;
        registry.register(Box::new(traffic_generation.clone()))?;
        // What is closed is there from the start, so that rates see the first event. Shadows answer nobody.
        for role in Role::ALL.into_iter().filter(|role| *role != Role::Shadow) {
            call_duration.with_label_values(&[role.as_str()]);
            for how in Ended::ALL {
                calls.with_label_values(&[role.as_str(), how.as_str()]);
            }
        }
        for copied in Copied::ALL {
            copies.with_label_values(&[copied.as_str()]);
        }
        Ok(Self {
            breaker_open,
            calls,
            call_duration,
            copies,
            traffic_generation,
            log_suppressed,
        })
    }

    pub(super) fn breaker_open(&self, server: &str) -> IntGauge {
        let gauge = self.breaker_open.with_label_values(&[server]);
        gauge.set(0);
        gauge
    }

    /// A call ended.
    pub(super) fn called(&self, role: Role, how: Ended, took: Duration) {
        let role = role.as_str();
        self.calls.with_label_values(&[role, how.as_str()]).inc();
        if how == Ended::Answered {
            let duration = self.call_duration.with_label_values(&[role]);
            duration.observe(took.as_secs_f64());
        }
    }

    /// A copy was dealt with.
    pub(super) fn copied(&self, copied: Copied) {
        self.copies.with_label_values(&[copied.as_str()]).inc();
    }

    /// Another table is in force.
    pub(super) fn traffic(&self, generation: i64) {
        self.traffic_generation.set(generation);
    }

    /// A server is gone.
    pub(super) fn forget(&self, server: &str) {
        // It was made with the server.
        let _ = self.breaker_open.remove_label_values(&[server]);
    }

    pub(super) fn repeated(&self) -> RepeatedError {
        RepeatedError::new(self.log_suppressed.clone())
    }
}
