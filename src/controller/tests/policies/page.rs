//! The page of the metrics, written from the registry of a controller that had something to do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use api::condition::ConditionType;
use api::reason::Reason;
use controller::client::Deadlines;
use controller::faults::FaultPoints;
use controller::metrics::{ControllerMetrics, RolloutEnded, ServerGauge, WatchRestart};
use controller::probe::ProbeCounts;
use prometheus::proto::{MetricFamily, MetricType};
use service::telemetry::trace::TraceMetrics;

use crate::proxy::{Play, Proxy, Watch, watches};
use crate::sources;
use crate::world::{bad, condition, good, until};

const UPDATE: &str = "RELAY_UPDATE_DOCS";

const HEAD: &str = "\
<!-- Written by `cargo xtask docs` from the registry of a running controller; changes here are lost. -->

# Metrics of the controller

Prometheus text at `GET /metrics` of the admin port of `relayd controller`, and of `relayd local`, which has those of the
[router](metrics.md) too. Every label has a closed set of words, but `namespace` and `name` of the gauges that each LayaServer
has: they appear and disappear with the object; and `volume`, of which there is one. No uid, digest or text is ever a label.

| metric | type | labels | |
|---|---|---|---|
";

/// What can be done to objects and on engines.
const ACTIONS: &[&str] = &[
    "AddFinalizer",
    "DeleteModel",
    "DeleteRevision",
    "DeleteServer",
    "DeleteTask",
    "DeleteVolume",
    "Drain",
    "EnsureImage",
    "EnsureServer",
    "EnsureVolume",
    "PointService",
    "RecreateServer",
    "RemoveFinalizer",
    "RunTask",
    "StopServer",
    "StopTask",
    "StoreLog",
    "StoreRevision",
];

/// Which words a label of a metric has: all of them, or what they are.
fn words(metric: &str, label: &str) -> Words {
    let closed =
        |words: &[&str]| Words::Closed(words.iter().map(|word| (*word).to_owned()).collect());
    match (metric, label) {
        (_, "commit" | "component" | "version") => Words::Open("what was built"),
        (_, "kind") => Words::Open("kinds of objects"),
        ("relay_api_requests_total" | "relay_api_request_duration_seconds", "code") => {
            Words::Open("HTTP status, `timeout` or `error`")
        }
        (_, "verb") => closed(&[
            "apply", "create", "delete", "get", "list", "patch", "update", "watch",
        ]),
        (_, "condition") => Words::Closed(
            ConditionType::ALL
                .iter()
                .map(|kind| kind.as_str().to_owned())
                .collect(),
        ),
        (_, "status") => closed(&["True", "False", "Unknown"]),
        (_, "backend") => closed(&["objects", "docker", "embedded", "kubernetes"]),
        (_, "action") => closed(ACTIONS),
        ("relay_model_fetch_failures_total", "reason") => {
            Words::Open("reasons of conditions `Fetched` and `Verified`")
        }
        (
            "relay_controller_reconcile_total" | "relay_controller_reconcile_duration_seconds",
            "result",
        ) => closed(&["unchanged", "changed", "waiting", "stalled", "error"]),
        ("relay_controller_status_writes_total", "result") => {
            closed(&["written", "conflict", "refused", "error"])
        }
        (
            "relay_controller_actions_total" | "relay_controller_action_duration_seconds",
            "result",
        ) => closed(&["done", "failed"]),
        ("relay_probe_total", "result") => closed(&ProbeCounts::RESULTS),
        (_, "strategy") => closed(&["BlueGreen", "Canary", "Shadow", "Replace"]),
        (_, "outcome") => closed(&RolloutEnded::OUTCOMES),
        (_, "role") => closed(&["champion", "candidate"]),
        (_, "namespace" | "name") => Words::Open("of the LayaServer"),
        (_, "volume") => Words::Open("its name on the engine"),
        (_, "cause") => closed(&["ended", "idle", "error", "expired", "forbidden"]),
        ("relay_otel_dropped_total", "reason") => closed(&["not_delivered", "queue_full"]),
        other => panic!("{other:?} is not in the table"),
    }
}

enum Words {
    Closed(Vec<String>),
    Open(&'static str),
}

fn page(families: &[MetricFamily]) -> String {
    let mut out = HEAD.to_owned();
    let mut sets: BTreeMap<(String, Vec<String>), Vec<String>> = BTreeMap::new();
    for family in families {
        let name = family.name();
        let kind = match family.get_field_type() {
            MetricType::COUNTER => "counter",
            MetricType::HISTOGRAM => "histogram",
            _ => "gauge",
        };
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        let mut shown = BTreeMap::new();
        for pair in family
            .get_metric()
            .iter()
            .flat_map(|metric| metric.get_label())
        {
            let label = pair.name().to_owned();
            let said = match words(name, &label) {
                Words::Open(what) => format!("`{label}` ({what})"),
                Words::Closed(all) => {
                    assert!(
                        all.iter().any(|word| word == pair.value()),
                        "{name}{{{label}={}}}",
                        pair.value()
                    );
                    let metrics = sets.entry((label.clone(), all)).or_default();
                    if !metrics.contains(&format!("`{name}`")) {
                        metrics.push(format!("`{name}`"));
                    }
                    format!("`{label}`")
                }
            };
            shown.insert(label, said);
        }
        let labels = shown.into_values().collect::<Vec<_>>().join(", ");
        writeln!(out, "| `{name}` | {kind} | {labels} | {} |", family.help()).unwrap();
    }
    out.push_str("\n## Words of the labels\n\n");
    for ((label, all), metrics) in &sets {
        let several = sets.keys().filter(|(other, _)| other == label).count() > 1;
        let of = if several {
            format!(" of {}", metrics.join(", "))
        } else {
            String::new()
        };
        let all: Vec<_> = all.iter().map(|word| format!("`{word}`")).collect();
        writeln!(out, "- `{label}`{of}: {}", all.join(", ")).unwrap();
    }
    out
}

/// What a controller counts of a server; the suite of servers shows that it does.
fn with_a_server(metrics: &ControllerMetrics) {
    for result in ProbeCounts::RESULTS {
        metrics.probe_counts().0.with_label_values(&[result]).inc();
    }
    metrics.rollout_ended(&RolloutEnded {
        strategy: "BlueGreen",
        outcome: RolloutEnded::OUTCOMES[0],
        seconds: 60.0,
    });
    metrics.measure_servers(|gauge| {
        for which in ServerGauge::ALL {
            gauge(which, ["team", "main", "champion"], 1.0);
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_committed_page_is_current() {
    let world = sources::local().await;
    let (client, proxy) = Proxy::before(&world.client);
    proxy.play(|_, uri| {
        if watches(uri, "layaservers") {
            Play::Watch(Watch::Expired)
        } else {
            Play::Pass
        }
    });
    let running = world.start_with(client, FaultPoints::none(), Deadlines::default());
    let metrics = running.metrics.clone();
    TraceMetrics::register(&metrics.process.registry).unwrap();
    world.create("team", &good(1)).await;
    world.until_in_force("team").await;
    world.edit("team", &bad()).await;
    world
        .until("team", "it is refused", |policy| {
            condition(policy, "Stalled").is_some()
        })
        .await;
    until("a watch began anew", || async {
        let expired = metrics.watch_restarts("LayaServer", WatchRestart::Expired);
        if expired >= 1 { Ok(()) } else { Err(expired) }
    })
    .await;
    // What only a controller with an engine counts.
    metrics.backend_seen("docker", true);
    metrics.backend_strangers("docker", 0);
    metrics.model_fetch_failed(Reason::SourceBusy);
    metrics.model_volume_seen(Some(("relay-012345-models", 1)));
    with_a_server(&metrics);
    let text = page(&metrics.process.registry.gather());
    running.end().await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics-controller.md");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        committed, text,
        "docs/metrics-controller.md is old: run `cargo xtask docs`"
    );
}
