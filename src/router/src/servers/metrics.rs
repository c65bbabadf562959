//! What is counted about servers (routing.md 22). The label is the name that the configuration gives a server.

use prometheus::{IntCounter, IntGauge, IntGaugeVec, Opts, Registry};
use service::telemetry::RepeatedError;

/// Metrics of the servers behind a router. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ServerMetrics {
    breaker_open: IntGaugeVec,
    log_suppressed: IntCounter,
}

impl ServerMetrics {
    /// Registers them. `log_suppressed` counts lines that are held back.
    ///
    /// # Errors
    /// When the registry has one of these names already.
    pub fn register(registry: &Registry, log_suppressed: IntCounter) -> prometheus::Result<Self> {
        let options = Opts::new(
            format!("{}_breaker_open", crate::METRICS_PREFIX),
            "1 while a decision-model server is not asked, or only by one call that tries.",
        );
        let breaker_open = IntGaugeVec::new(options, &["server"])?;
        registry.register(Box::new(breaker_open.clone()))?;
        Ok(Self {
            breaker_open,
            log_suppressed,
        })
    }

    pub(super) fn breaker_open(&self, server: &str) -> IntGauge {
        let gauge = self.breaker_open.with_label_values(&[server]);
        gauge.set(0);
        gauge
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
