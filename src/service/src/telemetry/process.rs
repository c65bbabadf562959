//! Metrics that every program has, whatever it does.

use prometheus::{IntCounter, IntGaugeVec, Opts, Registry};

/// What `relay_build_info` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildInfo {
    /// The program's part, for example `router`.
    pub component: &'static str,
    /// Version of Relay.
    pub version: &'static str,
    /// Source revision, or `unknown`.
    pub commit: &'static str,
}

/// Metrics of the process. Cheap to clone; one per registry.
#[derive(Debug, Clone)]
pub struct ProcessMetrics {
    /// Where everything is registered and read from.
    pub registry: Registry,
    /// `relay_task_panics_total`.
    pub task_panics: IntCounter,
    /// `relay_log_suppressed_total`.
    pub log_suppressed: IntCounter,
}

impl ProcessMetrics {
    /// Registers them.
    ///
    /// # Errors
    /// When the registry has one of these names already.
    pub fn register(registry: Registry, build: BuildInfo) -> prometheus::Result<Self> {
        let info = IntGaugeVec::new(
            Opts::new("relay_build_info", "What is running; always 1."),
            &["component", "version", "commit"],
        )?;
        info.with_label_values(&[build.component, build.version, build.commit])
            .set(1);
        registry.register(Box::new(info))?;
        let counter = |name, help| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            prometheus::Result::Ok(counter)
        };
        Ok(Self {
            task_panics: counter(
                "relay_task_panics_total",
                "Tasks and request handlers that panicked.",
            )?,
            log_suppressed: counter(
                "relay_log_suppressed_total",
                "Repeated errors that were counted, not logged.",
            )?,
            registry,
        })
    }
}
