//! What the controller counts (control-plane 15). Labels come from closed sets: kinds, reasons of enums, verbs, codes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::reason::Reason;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
};
use service::telemetry::ProcessMetrics;

use crate::fence::Term;
use crate::probe::ProbeCounts;

/// Seconds: a pass over an unchanged object takes less than a millisecond, a whole one at most 30 s.
const PASS_BUCKETS: &[f64] = &[
    0.000_1, 0.000_5, 0.002, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 30.0,
];
/// Seconds: the debounce is 0.05, the bar for a thousand changes at once is 10.
const WAIT_BUCKETS: &[f64] = &[0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0];
/// Seconds: a start of a small model takes some, a canary hours.
const ROLLOUT_BUCKETS: &[f64] = &[
    10.0, 30.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0,
];
/// Seconds: a local write takes 2 ms; a call may take 5 s.
const CALL_BUCKETS: &[f64] = &[0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0];

/// Metrics of reconciling. Cheap to clone; one per registry.
#[derive(Debug, Clone)]
pub struct ControllerMetrics {
    /// Those of the process.
    pub process: ProcessMetrics,
    /// `relay_controller_leader`: whether this process may write.
    leader: IntGauge,
    /// `relay_controller_leader_term`.
    leader_term: IntGauge,
    /// `relay_controller_queue_depth`, by kind.
    pub queue_depth: IntGaugeVec,
    /// `relay_controller_backoff_objects`, by kind.
    pub backoff_objects: IntGaugeVec,
    /// `relay_events_dropped_total`.
    pub events_dropped: IntCounter,
    reconcile: IntCounterVec,
    reconcile_duration: HistogramVec,
    queue_wait: HistogramVec,
    actions: IntCounterVec,
    action_duration: HistogramVec,
    status_writes: IntCounterVec,
    watch_restarts: IntCounterVec,
    api_requests: IntCounterVec,
    api_request_duration: HistogramVec,
    objects: Objects,
    backend_up: IntGaugeVec,
    backend_strangers: IntGaugeVec,
    model_fetch_bytes: IntCounter,
    model_fetch_failures: IntCounterVec,
    model_volume_free: IntGaugeVec,
    probes: IntCounterVec,
    rollouts: IntCounterVec,
    rollout_duration: HistogramVec,
    servers: Servers,
}

/// A gauge of a LayaServer; it disappears with its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerGauge {
    /// `relay_server_replicas_wanted`.
    ReplicasWanted,
    /// `relay_server_replicas_ready`.
    ReplicasReady,
    /// `relay_server_device_matched`: 1 or 0, absent while that is not known.
    DeviceMatched,
    /// `relay_server_rollback_ready`: 1 or 0.
    RollbackReady,
    /// `relay_server_probe_latency_seconds`, by role.
    ProbeLatency,
    /// `relay_rollout_active`: 1 or 0.
    RolloutActive,
}

impl ServerGauge {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ReplicasWanted,
        Self::ReplicasReady,
        Self::DeviceMatched,
        Self::RollbackReady,
        Self::ProbeLatency,
        Self::RolloutActive,
    ];
}

/// A rollout that ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RolloutEnded {
    /// Its strategy.
    pub strategy: &'static str,
    /// How, in a word of [`RolloutEnded::OUTCOMES`].
    pub outcome: &'static str,
    /// How long it took.
    pub seconds: f64,
}

impl RolloutEnded {
    /// How a rollout can end: the words of `status.history[].outcome`.
    pub const OUTCOMES: [&'static str; 6] = [
        "Promoted",
        "RolledBack",
        "Rejected",
        "Superseded",
        "Withdrawn",
        "RollbackFailed",
    ];
}

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassResult {
    /// Nothing was to be done.
    Unchanged,
    /// Something was done or written.
    Changed,
    /// It waits for something else.
    Waiting,
    /// Only somebody's change helps.
    Stalled,
    /// It failed and is tried again.
    Error,
}

impl PassResult {
    /// The word of the label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Changed => "changed",
            Self::Waiting => "waiting",
            Self::Stalled => "stalled",
            Self::Error => "error",
        }
    }
}

/// How a status write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// It is there.
    Written,
    /// The object had changed.
    Conflict,
    /// The fence, a full queue or a newer wish stood in its way.
    Refused,
    /// The API did not take it.
    Error,
}

impl WriteResult {
    /// The word of the label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Conflict => "conflict",
            Self::Refused => "refused",
            Self::Error => "error",
        }
    }
}

/// Why a watch began anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchRestart {
    /// The server ended it in time.
    Ended,
    /// It was silent for too long, or older than any should be.
    Idle,
    /// It was cut, or could not begin.
    Error,
    /// What it asked for is too old (410).
    Expired,
    /// It is not allowed (403).
    Forbidden,
}

impl WatchRestart {
    /// The word of the label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Idle => "idle",
            Self::Error => "error",
            Self::Expired => "expired",
            Self::Forbidden => "forbidden",
        }
    }
}

impl ControllerMetrics {
    /// Which right to write this process has, if any.
    pub fn holds(&self, term: Option<Term>) {
        self.leader.set(i64::from(term.is_some()));
        let term = term.map_or(0, |Term(number)| number);
        self.leader_term
            .set(i64::try_from(term).unwrap_or(i64::MAX));
    }

    /// Registers them with those of the process.
    ///
    /// # Errors
    /// When the registry has one of these names already.
    pub fn register(process: &ProcessMetrics) -> prometheus::Result<Self> {
        let registry = &process.registry;
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(full_name(name), help), labels)?;
            registry.register(Box::new(counters.clone()))?;
            prometheus::Result::Ok(counters)
        };
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let gauges = IntGaugeVec::new(Opts::new(full_name(name), help), labels)?;
            registry.register(Box::new(gauges.clone()))?;
            prometheus::Result::Ok(gauges)
        };
        let histograms = |name: &str, help: &str, buckets: &[f64], labels: &[&str]| {
            let opts = HistogramOpts::new(full_name(name), help).buckets(buckets.to_vec());
            let histograms = HistogramVec::new(opts, labels)?;
            registry.register(Box::new(histograms.clone()))?;
            prometheus::Result::Ok(histograms)
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(full_name(name), help)?;
            registry.register(Box::new(gauge.clone()))?;
            prometheus::Result::Ok(gauge)
        };
        let events_dropped = IntCounter::new(
            full_name("events_dropped_total"),
            "Events that were not published: too many, or the API did not take them.",
        )?;
        registry.register(Box::new(events_dropped.clone()))?;
        let model_fetch_bytes = IntCounter::new(
            full_name("model_fetch_bytes_total"),
            "Bytes of models that fetches brought, as far as their progress told.",
        )?;
        registry.register(Box::new(model_fetch_bytes.clone()))?;
        let objects = Objects::new()?;
        registry.register(Box::new(objects.clone()))?;
        let servers = Servers::new()?;
        registry.register(Box::new(servers.clone()))?;
        Ok(Self {
            process: process.clone(),
            leader: gauge(
                "controller_leader",
                "Whether this process may write: 1 or 0.",
            )?,
            leader_term: gauge(
                "controller_leader_term",
                "Term of the lease it writes under.",
            )?,
            queue_depth: gauges(
                "controller_queue_depth",
                "Objects whose pass has not begun.",
                &["kind"],
            )?,
            backoff_objects: gauges(
                "controller_backoff_objects",
                "Objects that wait after a failed pass.",
                &["kind"],
            )?,
            events_dropped,
            reconcile: counters(
                "controller_reconcile_total",
                "Passes, by how they ended.",
                &["kind", "result"],
            )?,
            reconcile_duration: histograms(
                "controller_reconcile_duration_seconds",
                "Time of a pass.",
                PASS_BUCKETS,
                &["kind", "result"],
            )?,
            queue_wait: histograms(
                "controller_queue_wait_seconds",
                "Time from a change to the begin of its pass.",
                WAIT_BUCKETS,
                &["kind"],
            )?,
            actions: counters(
                "controller_actions_total",
                "Actions, by how they ended.",
                &["backend", "action", "result"],
            )?,
            action_duration: histograms(
                "controller_action_duration_seconds",
                "Time of an action.",
                CALL_BUCKETS,
                &["backend", "action", "result"],
            )?,
            status_writes: counters(
                "controller_status_writes_total",
                "Status writes, by how they ended.",
                &["kind", "result"],
            )?,
            watch_restarts: counters(
                "controller_watch_restarts_total",
                "Watches that began anew, by why.",
                &["kind", "cause"],
            )?,
            api_requests: counters(
                "api_requests_total",
                "Requests to the object API, each try; code is the status, `timeout` or `error`.",
                &["verb", "kind", "code"],
            )?,
            api_request_duration: histograms(
                "api_request_duration_seconds",
                "Time of a request to the object API, each try; of a watch until it begins.",
                CALL_BUCKETS,
                &["verb", "kind", "code"],
            )?,
            objects,
            backend_up: gauges(
                "backend_up",
                "Whether the engine answered when it was asked last: 1 or 0.",
                &["backend"],
            )?,
            backend_strangers: gauges(
                "backend_strangers",
                "Owners that have children on the engine and that the store has never known.",
                &["backend"],
            )?,
            model_fetch_bytes,
            model_fetch_failures: counters(
                "model_fetch_failures_total",
                "Fetches of models that failed, by why.",
                &["reason"],
            )?,
            model_volume_free: gauges(
                "model_volume_free_bytes",
                "Bytes that are free in the volume of models; absent where that cannot be told.",
                &["volume"],
            )?,
            probes: counters(
                "probe_total",
                "Probe questions, by how they were answered.",
                &["result"],
            )?,
            rollouts: counters(
                "rollout_total",
                "Rollouts that ended, by how.",
                &["strategy", "outcome"],
            )?,
            rollout_duration: histograms(
                "rollout_duration_seconds",
                "Time from the begin of a rollout to its end.",
                ROLLOUT_BUCKETS,
                &["strategy", "outcome"],
            )?,
            servers,
        })
    }

    /// The engine was asked, and answered or not.
    pub fn backend_seen(&self, backend: &str, answered: bool) {
        self.backend_up
            .with_label_values(&[backend])
            .set(i64::from(answered));
    }

    /// Owners on the engine that nobody claims.
    pub fn backend_strangers(&self, backend: &str, owners: usize) {
        self.backend_strangers
            .with_label_values(&[backend])
            .set(i64::try_from(owners).unwrap_or(i64::MAX));
    }

    /// A fetch brought so many bytes more.
    pub fn model_fetched(&self, bytes: u64) {
        self.model_fetch_bytes.inc_by(bytes);
    }

    /// A fetch failed.
    pub fn model_fetch_failed(&self, reason: Reason) {
        self.model_fetch_failures
            .with_label_values(&[reason.as_str()])
            .inc();
    }

    /// Room in the volume of models; `None` where it is not known, so that no old number is taken for it.
    pub fn model_volume_seen(&self, room: Option<(&str, u64)>) {
        self.model_volume_free.reset();
        if let Some((volume, bytes)) = room {
            self.model_volume_free
                .with_label_values(&[volume])
                .set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// What probe questions are counted with.
    #[must_use]
    pub fn probe_counts(&self) -> ProbeCounts {
        ProbeCounts(self.probes.clone())
    }

    /// A rollout ended.
    pub fn rollout_ended(&self, ended: &RolloutEnded) {
        let labels = [ended.strategy, ended.outcome];
        self.rollouts.with_label_values(&labels).inc();
        self.rollout_duration
            .with_label_values(&labels)
            .observe(ended.seconds);
    }

    /// Where the gauges of servers come from when they are read: `source` gives gauge, namespace, name, role and value of
    /// each.
    pub fn measure_servers(
        &self,
        source: impl Fn(&mut dyn FnMut(ServerGauge, [&str; 3], f64)) + Send + Sync + 'static,
    ) {
        self.servers
            .sources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(source));
    }

    /// A pass ended.
    pub fn passed(&self, kind: &str, result: PassResult, took: Duration) {
        let labels = [kind, result.as_str()];
        self.reconcile.with_label_values(&labels).inc();
        self.reconcile_duration
            .with_label_values(&labels)
            .observe(took.as_secs_f64());
    }

    /// A pass began after a wait.
    pub fn waited(&self, kind: &str, wait: Duration) {
        self.queue_wait
            .with_label_values(&[kind])
            .observe(wait.as_secs_f64());
    }

    /// An action ended.
    pub fn acted(&self, backend: &str, action: &str, result: &str, took: Duration) {
        let labels = [backend, action, result];
        self.actions.with_label_values(&labels).inc();
        self.action_duration
            .with_label_values(&labels)
            .observe(took.as_secs_f64());
    }

    /// A status write ended.
    pub fn status_write(&self, kind: &str, result: WriteResult) {
        self.status_writes
            .with_label_values(&[kind, result.as_str()])
            .inc();
    }

    /// Status writes of a kind that ended so.
    #[must_use]
    pub fn status_writes(&self, kind: &str, result: WriteResult) -> u64 {
        self.status_writes
            .with_label_values(&[kind, result.as_str()])
            .get()
    }

    /// Passes of a kind that ended so.
    #[must_use]
    pub fn passes(&self, kind: &str, result: PassResult) -> u64 {
        self.reconcile
            .with_label_values(&[kind, result.as_str()])
            .get()
    }

    /// A watch began anew.
    pub fn watch_restarted(&self, kind: &str, cause: WatchRestart) {
        self.watch_restarts
            .with_label_values(&[kind, cause.as_str()])
            .inc();
    }

    /// Watches of a kind that began anew for this cause.
    #[must_use]
    pub fn watch_restarts(&self, kind: &str, cause: WatchRestart) -> u64 {
        self.watch_restarts
            .with_label_values(&[kind, cause.as_str()])
            .get()
    }

    /// A request to the API ended.
    pub fn requested(&self, verb: &str, kind: &str, code: &str, took: Duration) {
        let labels = [verb, kind, code];
        self.api_requests.with_label_values(&labels).inc();
        self.api_request_duration
            .with_label_values(&labels)
            .observe(took.as_secs_f64());
    }

    /// Requests that ended so.
    #[must_use]
    pub fn requests(&self, verb: &str, kind: &str, code: &str) -> u64 {
        self.api_requests
            .with_label_values(&[verb, kind, code])
            .get()
    }

    /// Where `relay_objects` counts when it is read: `source` gives kind, condition and status of each.
    pub fn count_objects(
        &self,
        source: impl Fn(&mut dyn FnMut(&str, &str, &str)) + Send + Sync + 'static,
    ) {
        self.objects
            .sources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(source));
    }
}

fn full_name(name: &str) -> String {
    format!("relay_{name}")
}

type Source = dyn Fn(&mut dyn FnMut(&str, &str, &str)) + Send + Sync;

/// `relay_objects`: counted from the caches when it is read, so that nothing has to keep it true meanwhile.
#[derive(Clone)]
struct Objects {
    gauge: IntGaugeVec,
    sources: Arc<Mutex<Vec<Box<Source>>>>,
}

impl Objects {
    fn new() -> prometheus::Result<Self> {
        let opts = Opts::new(
            full_name("objects"),
            "Objects by kind, condition and its status.",
        );
        Ok(Self {
            gauge: IntGaugeVec::new(opts, &["kind", "condition", "status"])?,
            sources: Arc::default(),
        })
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

impl Collector for Objects {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        self.gauge.reset();
        for source in sources.iter() {
            source(&mut |kind, condition, status| {
                self.gauge
                    .with_label_values(&[kind, condition, status])
                    .inc();
            });
        }
        self.gauge.collect()
    }
}

type ServerSource = dyn Fn(&mut dyn FnMut(ServerGauge, [&str; 3], f64)) + Send + Sync;

/// Gauges of servers: computed from the caches when they are read, so that they disappear with their objects.
#[derive(Clone)]
struct Servers {
    gauges: Vec<(ServerGauge, GaugeVec)>,
    sources: Arc<Mutex<Vec<Box<ServerSource>>>>,
}

impl Servers {
    fn new() -> prometheus::Result<Self> {
        let gauge = |which, name: &str, help: &str, labels: &[&str]| {
            let gauge = GaugeVec::new(Opts::new(full_name(name), help), labels)?;
            prometheus::Result::Ok((which, gauge))
        };
        let labels = &["namespace", "name"];
        Ok(Self {
            gauges: vec![
                gauge(
                    ServerGauge::ReplicasWanted,
                    "server_replicas_wanted",
                    "Replicas that a server should have.",
                    labels,
                )?,
                gauge(
                    ServerGauge::ReplicasReady,
                    "server_replicas_ready",
                    "Replicas of the champion that are ready.",
                    labels,
                )?,
                gauge(
                    ServerGauge::DeviceMatched,
                    "server_device_matched",
                    "Whether the device that serves is the asked one: 1 or 0; absent while that is not known.",
                    labels,
                )?,
                gauge(
                    ServerGauge::RollbackReady,
                    "server_rollback_ready",
                    "Whether image and weights of the previous version are here: 1 or 0.",
                    labels,
                )?,
                gauge(
                    ServerGauge::ProbeLatency,
                    "server_probe_latency_seconds",
                    "Time of the last probe question that was answered right, of the slowest replica.",
                    &["namespace", "name", "role"],
                )?,
                gauge(
                    ServerGauge::RolloutActive,
                    "rollout_active",
                    "Whether a rollout is under way: 1 or 0.",
                    labels,
                )?,
            ],
            sources: Arc::default(),
        })
    }

    fn set(&self, which: ServerGauge, [namespace, name, role]: [&str; 3], value: f64) {
        let found = self.gauges.iter().find(|(known, _)| *known == which);
        let Some((_, gauge)) = found else { return };
        match which {
            ServerGauge::ProbeLatency => gauge.with_label_values(&[namespace, name, role]),
            _ => gauge.with_label_values(&[namespace, name]),
        }
        .set(value);
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").finish_non_exhaustive()
    }
}

impl Collector for Servers {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges
            .iter()
            .flat_map(|(_, gauge)| gauge.desc())
            .collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, gauge) in &self.gauges {
            gauge.reset();
        }
        for source in sources.iter() {
            source(&mut |which, labels, value| self.set(which, labels, value));
        }
        self.gauges
            .iter()
            .flat_map(|(_, gauge)| gauge.collect())
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use prometheus::{Registry, TextEncoder};
    use service::telemetry::BuildInfo;

    use super::*;

    /// Metrics in a registry of their own.
    pub(crate) fn metrics() -> ControllerMetrics {
        let build = BuildInfo {
            component: "controller",
            version: "0",
            commit: "unknown",
        };
        let process = ProcessMetrics::register(Registry::new(), build).unwrap();
        ControllerMetrics::register(&process).unwrap()
    }

    #[test]
    fn objects_are_counted_when_they_are_read() {
        let metrics = metrics();
        let statuses = Arc::new(Mutex::new(vec!["True", "True", "False"]));
        let counted = statuses.clone();
        metrics.count_objects(move |count| {
            for status in counted.lock().unwrap().iter() {
                count("RoutingPolicy", "Ready", status);
            }
        });
        let text = || {
            let encoder = TextEncoder::new();
            encoder
                .encode_to_string(&metrics.process.registry.gather())
                .unwrap()
        };
        let line = |status: &str, count: u32| {
            format!(
                r#"relay_objects{{condition="Ready",kind="RoutingPolicy",status="{status}"}} {count}"#
            )
        };
        assert!(text().contains(&line("True", 2)) && text().contains(&line("False", 1)));
        statuses.lock().unwrap().retain(|status| *status == "True");
        assert!(text().contains(&line("True", 2)));
        assert!(
            !text().contains(r#"status="False""#),
            "it went with its object"
        );
    }

    #[test]
    fn room_that_is_not_known_any_more_is_not_told() {
        let metrics = metrics();
        let text = || {
            let encoder = TextEncoder::new();
            encoder
                .encode_to_string(&metrics.process.registry.gather())
                .unwrap()
        };
        metrics.model_volume_seen(Some(("relay-abc-models", 7)));
        let line = r#"relay_model_volume_free_bytes{volume="relay-abc-models"} 7"#;
        assert!(text().contains(line));
        metrics.model_volume_seen(None);
        assert!(!text().contains("relay_model_volume_free_bytes{"));
    }

    #[test]
    fn the_right_to_write_and_its_term_are_gauges() {
        let metrics = metrics();
        let gauges = || (metrics.leader.get(), metrics.leader_term.get());
        assert_eq!(gauges(), (0, 0));
        metrics.holds(Some(Term(7)));
        assert_eq!(gauges(), (1, 7));
        metrics.holds(None);
        assert_eq!(gauges(), (0, 0));
    }
}
