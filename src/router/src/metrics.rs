//! What the router counts (routing.md 22). Every label comes from a closed set: words of enums, profiles and rules of
//! the policy, providers of its registry.

use api::Decision;
use decision::vocabulary::Tier;
use prometheus::{
    Counter, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts,
    Registry,
};
use routing::outcome::AttemptResult;
use routing::policy::Policy;
use routing::reason::{Fallback, Reason, WarningCode};
use routing::record::{DecisionKind, Truncated};

/// Seconds: rules take tens of microseconds, a model up to its deadline.
const ASSESS_BUCKETS: &[f64] = &[
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5,
    1.0, 5.0,
];

/// Metrics of decisions. Those of requests are [`service::http::HttpMetrics`].
#[derive(Debug, Clone)]
pub struct RouterMetrics {
    decisions: IntCounterVec,
    assess_duration: HistogramVec,
    fallbacks: IntCounterVec,
    rules_fired: IntCounterVec,
    warnings: IntCounterVec,
    escalations: IntCounterVec,
    outcomes: IntCounterVec,
    memory_hits: IntCounterVec,
    truncated: IntCounter,
    explorations: IntCounter,
    not_stored: IntCounter,
    store_up: IntGauge,
    availability: GaugeVec,
    estimated_cost: Counter,
    estimated_savings: Counter,
}

/// What a learned task was used for.
#[derive(Debug, Clone, Copy)]
enum MemoryUse {
    Route,
    Lesson,
}

impl MemoryUse {
    const ALL: [Self; 2] = [Self::Route, Self::Lesson];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Lesson => "lesson",
        }
    }
}

impl RouterMetrics {
    /// Registers them; the availability of providers is that of the policy.
    ///
    /// # Errors
    /// When the registry has one of these names already.
    pub fn register(registry: &Registry, policy: &Policy) -> prometheus::Result<Self> {
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(full_name(name), help), labels)?;
            registry.register(Box::new(counters.clone()))?;
            prometheus::Result::Ok(counters)
        };
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(full_name(name), help)?;
            registry.register(Box::new(counter.clone()))?;
            prometheus::Result::Ok(counter)
        };
        let dollars = |name: &str, help: &str| {
            let counter = Counter::with_opts(Opts::new(full_name(name), help))?;
            registry.register(Box::new(counter.clone()))?;
            prometheus::Result::Ok(counter)
        };
        let metrics = Self {
            decisions: counters(
                "decisions_total",
                "Decisions, by who judged the request, what was chosen and how it relates to the one before.",
                &["source", "tier", "profile", "follow_up"],
            )?,
            assess_duration: assess_duration(registry)?,
            fallbacks: counters(
                "fallbacks_total",
                "Decisions the model did not judge, by why.",
                &["reason"],
            )?,
            rules_fired: counters(
                "rules_fired_total",
                "Decisions a deterministic rule fired on.",
                &["rule"],
            )?,
            warnings: counters("warnings_total", "Warnings in decisions.", &["code"])?,
            escalations: counters(
                "escalations_total",
                "Tiers raised by policy, and tasks moved while they ran, by why.",
                &["reason"],
            )?,
            outcomes: counters(
                "outcomes_total",
                "Outcomes recorded, by tier of the model and how the attempt ended.",
                &["tier", "result"],
            )?,
            memory_hits: counters(
                "memory_hits_total",
                "Learned tasks that answered for a request, or whose lesson was shown.",
                &["use"],
            )?,
            truncated: counter(
                "truncated_total",
                "Decisions whose model did not see the whole request.",
            )?,
            explorations: counter(
                "explorations_total",
                "Decisions taken to learn about a model.",
            )?,
            not_stored: counter(
                "decisions_not_stored_total",
                "Decisions let go because too many waited for the store.",
            )?,
            store_up: store_up(registry)?,
            availability: availability(registry, policy)?,
            estimated_cost: dollars(
                "estimated_cost_usd_total",
                "Estimated cost of what was chosen, where known.",
            )?,
            estimated_savings: dollars(
                "estimated_savings_usd_total",
                "Estimated cost of the baseline less that of the chosen, where known and positive.",
            )?,
        };
        // A series that exists from the start is a series whose first event is seen by `rate()`.
        for reason in Fallback::ALL {
            metrics.fallbacks.with_label_values(&[reason.as_str()]);
        }
        for code in WarningCode::ALL {
            metrics.warnings.with_label_values(&[code.as_str()]);
        }
        for reason in Reason::ALL {
            metrics.escalations.with_label_values(&[reason.as_str()]);
        }
        for tier in Tier::ALL {
            for result in AttemptResult::ALL {
                let labels = [tier.as_str(), result.as_str()];
                metrics.outcomes.with_label_values(&labels);
            }
        }
        for purpose in MemoryUse::ALL {
            metrics.memory_hits.with_label_values(&[purpose.as_str()]);
        }
        Ok(metrics)
    }

    /// Counts a move of a task that runs: its own reason, cost and choice; how its task was judged was counted before.
    pub(crate) fn moved(&self, decision: &Decision) {
        let labels = [
            decision.assessment.source.as_str(),
            decision.selected.tier.as_str(),
            decision.profile.as_str(),
            decision.follow_up.as_str(),
        ];
        self.decisions.with_label_values(&labels).inc();
        self.estimated(decision);
        for warning in &decision.warnings {
            let labels = [warning.code.as_str()];
            self.warnings.with_label_values(&labels).inc();
        }
        if let Some(raise) = decision.escalations.last() {
            let labels = [raise.reason.as_str()];
            self.escalations.with_label_values(&labels).inc();
        }
    }

    /// Counts an outcome that was recorded for the first time.
    pub(crate) fn outcome(&self, tier: Tier, result: AttemptResult) {
        let labels = [tier.as_str(), result.as_str()];
        self.outcomes.with_label_values(&labels).inc();
    }

    /// Counts a request that a learned task answered for.
    pub(crate) fn routed_by_memory(&self) {
        let labels = [MemoryUse::Route.as_str()];
        self.memory_hits.with_label_values(&labels).inc();
    }

    /// Counts lessons shown.
    pub(crate) fn lessons(&self, shown: usize) {
        let labels = [MemoryUse::Lesson.as_str()];
        self.memory_hits
            .with_label_values(&labels)
            .inc_by(shown as u64);
    }

    /// Counts a decision that the store had no room for.
    pub(crate) fn not_stored(&self) {
        self.not_stored.inc();
    }

    /// Shows whether the store answers.
    pub(crate) fn store_is_up(&self, up: bool) {
        self.store_up.set(i64::from(up));
    }

    /// Shows what is left of a provider.
    pub(crate) fn provider_availability(&self, provider: &str, share: f64) {
        self.availability.with_label_values(&[provider]).set(share);
    }

    /// A provider that the policy in force does not know.
    pub(crate) fn forget_provider(&self, provider: &str) {
        // Not shown yet is as good.
        let _ = self.availability.remove_label_values(&[provider]);
    }

    /// Counts one decision.
    pub(crate) fn decided(&self, decision: &Decision) {
        let source = decision.assessment.source.as_str();
        let tier = decision.selected.tier.as_str();
        let labels = [
            source,
            tier,
            decision.profile.as_str(),
            decision.follow_up.as_str(),
        ];
        self.decisions.with_label_values(&labels).inc();
        let seconds = decision.provenance.timings_ms.assess / 1e3;
        self.assess_duration
            .with_label_values(&[source])
            .observe(seconds);
        if let Some(reason) = decision.provenance.fallback {
            self.fallbacks.with_label_values(&[reason.as_str()]).inc();
        }
        for rule in &decision.policy.rules {
            self.rules_fired.with_label_values(&[rule.as_str()]).inc();
        }
        // A decision repeats the moves of its task before it, and one during a task the policy's raises too. Each was
        // counted where it was made.
        if decision.kind == DecisionKind::User {
            let raises = decision.escalations.iter();
            for raise in raises.filter(|raise| !raise.reason.is_of_running_task()) {
                let labels = [raise.reason.as_str()];
                self.escalations.with_label_values(&labels).inc();
            }
        }
        if decision.selected.explored {
            self.explorations.inc();
        }
        if decision.provenance.truncated != Truncated::default() {
            self.truncated.inc();
        }
        for warning in &decision.warnings {
            self.warnings
                .with_label_values(&[warning.code.as_str()])
                .inc();
        }
        self.estimated(decision);
    }

    fn estimated(&self, decision: &Decision) {
        if let Some(cost) = decision.selected.estimate.cost_usd {
            self.estimated_cost.inc_by(cost.get());
        }
        if let Some(savings) = decision
            .counterfactual
            .as_ref()
            .and_then(|other| other.savings_usd)
        {
            self.estimated_savings.inc_by(savings.max(0.0));
        }
    }
}

fn full_name(name: &str) -> String {
    format!("{}_{name}", crate::METRICS_PREFIX)
}

fn assess_duration(registry: &Registry) -> prometheus::Result<HistogramVec> {
    let options = HistogramOpts::new(
        full_name("assess_duration_seconds"),
        "Time from the request's arrival to its assessment, by who made it.",
    )
    .buckets(ASSESS_BUCKETS.to_vec());
    let duration = HistogramVec::new(options, &["source"])?;
    registry.register(Box::new(duration.clone()))?;
    Ok(duration)
}

/// What is left of each provider's plan, at first what the policy says. Where tenants share a router, the least of them.
fn availability(registry: &Registry, policy: &Policy) -> prometheus::Result<GaugeVec> {
    let options = Opts::new(
        full_name("provider_availability"),
        "Share of a provider's plan that is left, 0 to 1; the least of all tenants.",
    );
    let gauges = GaugeVec::new(options, &["provider"])?;
    for entry in policy.registry.entries() {
        let provider = entry.model.provider();
        let share = policy
            .source
            .quota
            .get(provider)
            .map_or(1.0, |quota| quota.share);
        gauges.with_label_values(&[provider]).set(share);
    }
    registry.register(Box::new(gauges.clone()))?;
    Ok(gauges)
}

fn store_up(registry: &Registry) -> prometheus::Result<IntGauge> {
    let gauge = IntGauge::new(full_name("store_up"), "Whether the store answers.")?;
    registry.register(Box::new(gauge.clone()))?;
    Ok(gauge)
}
