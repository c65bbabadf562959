//! The screen and the document of `relayctl status`: what the facts come to. Pure.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::Facts;
use super::problems::{Missing, engine_line, problems};
use crate::conditions;
use crate::context::Chosen;
use crate::daemon::State;
use crate::facts::{self, Laya};
use crate::output::CLI_VERSION;
use crate::refusal::one_line;
use crate::terminal::Styles;
use crate::verbs::rollout::head as rollout_line;

/// Most lines of one sort on the screen; the document has all of them.
const MAX_LINES: usize = 10;

/// One screen.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    api_version: &'static str,
    kind: &'static str,
    context: String,
    namespace: String,
    time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon: Option<Daemon>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<EngineState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    router: Option<RouterState>,
    policies: Vec<PolicyState>,
    servers: Vec<ServerState>,
    training: Vec<ObjectState>,
    problems: Vec<Missing>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Daemon {
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// What models run in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct EngineState {
    backend: String,
    chosen: String,
    reachable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    models_volume: Option<VolumeState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    models_unknown: Option<String>,
    #[serde(skip)]
    line: String,
}

/// Where versions lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct VolumeState {
    name: String,
    free_bytes: u64,
    total_bytes: u64,
    unknown_folders: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_at: Option<String>,
    #[serde(skip)]
    room: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct RouterState {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    /// Decisions of the last seven days.
    decisions: u64,
    /// Part of them that rules answered, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    share_by_rules: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyState {
    name: String,
    accepted: String,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
}

/// What serves a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerState {
    #[serde(flatten)]
    object: ObjectState,
    #[serde(skip_serializing_if = "Option::is_none")]
    champion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external: Option<String>,
    /// Where a rollout that goes on stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectState {
    name: String,
    ready: String,
    reason: String,
}

pub(super) fn overview(
    facts: &Facts,
    context: &Chosen,
    namespace: &str,
    now: Timestamp,
) -> Overview {
    Overview {
        api_version: CLI_VERSION,
        kind: "Status",
        context: context.name.clone(),
        namespace: namespace.to_owned(),
        time: now,
        daemon: facts.daemon.as_ref().map(|state| match state {
            State::Runs(endpoint) => Daemon {
                running: true,
                pid: Some(endpoint.process.pid),
                version: Some(endpoint.version.clone()),
            },
            State::Absent | State::Crashed(_) => Daemon {
                running: false,
                pid: None,
                version: None,
            },
        }),
        engine: engine(facts),
        router: router(facts),
        policies: facts.of_kind("RoutingPolicy").iter().map(policy).collect(),
        servers: facts
            .of_kind("LayaServer")
            .iter()
            .map(|object| server(object, now))
            .collect(),
        training: facts
            .of_kind("TrainingRun")
            .iter()
            .map(object_state)
            .collect(),
        problems: problems(facts, context),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn router(facts: &Facts) -> Option<RouterState> {
    let Some(State::Runs(endpoint)) = &facts.daemon else {
        return None;
    };
    let nothing = Value::Null;
    let health = facts.health.as_ref()?;
    let report = facts.report.as_ref().unwrap_or(&nothing);
    let in_force = facts.in_force.as_ref().unwrap_or(&nothing);
    let decisions = report["total"]["decisions"].as_u64().unwrap_or(0);
    let by_rules = report["by_source"]["rules"]["decisions"]
        .as_u64()
        .unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    let share = (decisions > 0).then(|| by_rules as f64 / decisions as f64);
    Some(RouterState {
        url: endpoint.router.clone().unwrap_or_default(),
        model: text(&health["model"]).filter(|_| health["ok"] == true),
        device: text(&health["device"]),
        contract: text(&health["contract"]),
        policy: text(&in_force["name"]),
        revision: text(&in_force["revision"]),
        decisions,
        share_by_rules: share,
    })
}

fn engine(facts: &Facts) -> Option<EngineState> {
    let engine = facts
        .engine
        .as_ref()
        .filter(|engine| !engine.backend.is_empty())?;
    Some(EngineState {
        backend: engine.backend.clone(),
        chosen: engine.chosen.clone(),
        reachable: engine.reachable,
        reason: engine.reason.clone(),
        version: engine.version.clone(),
        address: engine.address.clone(),
        memory_bytes: engine.memory_bytes,
        gpu_memory_bytes: engine.gpu.map(|gpu| gpu.memory_bytes),
        models_volume: engine.models_volume.as_ref().map(|volume| VolumeState {
            name: volume.name.clone(),
            free_bytes: volume.free_bytes,
            total_bytes: volume.total_bytes,
            unknown_folders: volume.unknown_folders.clone(),
            seen_at: volume.seen_at.clone(),
            room: volume.room(),
        }),
        models_unknown: engine.models_unknown.clone(),
        line: engine_line(engine),
    })
}

fn server(object: &Value, now: Timestamp) -> ServerState {
    let laya = Laya(object);
    let champion = laya.champion();
    ServerState {
        object: object_state(object),
        champion: champion.map(facts::Version::title),
        device: champion.and_then(facts::Version::device).map(str::to_owned),
        contract: champion
            .and_then(facts::Version::contract)
            .map(str::to_owned),
        candidate: laya.candidate().map(facts::Version::title),
        previous: laya.previous().map(facts::Version::title),
        external: laya.external().map(str::to_owned),
        rollout: laya.open_rollout().map(|_| rollout_line(laya, now)),
    }
}

fn policy(object: &Value) -> PolicyState {
    let accepted = conditions::find(object, "Accepted");
    let (accepted, reason) = match accepted {
        Some(condition) if conditions::is_current(object) => (condition.status, condition.reason),
        _ => ("Unknown".to_owned(), "Waiting".to_owned()),
    };
    PolicyState {
        name: facts::name(object).to_owned(),
        accepted,
        reason,
        revision: text(&object["status"]["acceptedRevision"]),
    }
}

fn object_state(object: &Value) -> ObjectState {
    let ready = conditions::find(object, "Ready");
    let (ready, reason) = match ready {
        Some(condition) => (condition.status, condition.reason),
        None if object["status"]["observedGeneration"].is_null() => (
            "Unknown".to_owned(),
            "no controller has looked at it yet".to_owned(),
        ),
        None => ("Unknown".to_owned(), "Waiting".to_owned()),
    };
    ObjectState {
        name: facts::name(object).to_owned(),
        ready,
        reason,
    }
}

impl Overview {
    pub(super) fn render(&self, styles: Styles) -> String {
        let mut out = String::new();
        let mut line = |name: &str, text: &str| {
            out.push_str(&format!(
                "{}{}\n",
                styles.bold(&format!("{name:<10}")),
                one_line(text)
            ));
        };
        line(
            "context",
            &format!("{}, namespace {}", self.context, self.namespace),
        );
        if let Some(daemon) = &self.daemon {
            let said = match (daemon.pid, &daemon.version) {
                (Some(pid), Some(version)) => format!("running, process {pid}, version {version}"),
                _ => "not running".to_owned(),
            };
            line("relayd", &said);
        }
        if let Some(engine) = &self.engine {
            line("engine", &engine.line);
            if let Some(volume) = &engine.models_volume {
                line("space", &volume.room);
            } else if let Some(why) = &engine.models_unknown {
                line("space", &format!("not known: {why}"));
            }
        }
        if let Some(router) = &self.router {
            line("router", &router.url);
            let device = router
                .device
                .as_deref()
                .map_or(String::new(), |device| format!(" on {device}"));
            let model = router
                .model
                .as_deref()
                .unwrap_or("none, keyword rules answer");
            line("model", &format!("{model}{device}"));
            if let Some(contract) = &router.contract {
                line("contract", contract);
            }
            if let (Some(policy), Some(revision)) = (&router.policy, &router.revision) {
                line("in force", &format!("policy {policy}, revision {revision}"));
            }
            let share = router.share_by_rules.map_or(String::new(), |share| {
                format!(", {:.0} % by rules", share * 100.0)
            });
            line(
                "decisions",
                &format!("{} in 7 days{share}", router.decisions),
            );
        }
        for policy in self.policies.iter().take(MAX_LINES) {
            let revision = policy.revision.as_deref().unwrap_or("none");
            line(
                "policy",
                &format!(
                    "{}: Accepted={} ({}), revision {revision}",
                    policy.name, policy.accepted, policy.reason
                ),
            );
        }
        if let Some(more) = more(&self.policies) {
            line("", &more);
        }
        for server in self.servers.iter().take(MAX_LINES) {
            line("server", &server.line());
            if let Some(rollout) = &server.rollout {
                line("rollout", rollout);
            }
        }
        if let Some(more) = more(&self.servers) {
            line("", &more);
        }
        for run in self.training.iter().take(MAX_LINES) {
            line("training", &run.line());
        }
        if let Some(more) = more(&self.training) {
            line("", &more);
        }
        if self.problems.is_empty() {
            line("problems", "none");
        }
        for problem in self.problems.iter().take(MAX_LINES) {
            line("problem", &problem.what);
            line("", &format!("fix: {}", problem.fix));
        }
        if let Some(more) = more(&self.problems) {
            line("", &format!("{more}; `relayctl status -o yaml` shows all"));
        }
        out
    }
}

/// What a bounded list leaves out.
fn more<T>(all: &[T]) -> Option<String> {
    let left = all.len().saturating_sub(MAX_LINES);
    (left > 0).then(|| format!("and {left} more"))
}

impl ObjectState {
    fn line(&self) -> String {
        format!("{}: Ready={} ({})", self.name, self.ready, self.reason)
    }
}

impl ServerState {
    fn line(&self) -> String {
        let mut line = self.object.line();
        if let Some(champion) = &self.champion {
            let device = self
                .device
                .as_deref()
                .map_or(String::new(), |device| format!(" on {device}"));
            line.push_str(&format!(", champion {champion}{device}"));
        }
        if let Some(url) = &self.external {
            line.push_str(&format!(", the server at {url}"));
        }
        if let Some(previous) = &self.previous {
            line.push_str(&format!(", previous {previous}"));
        }
        line
    }
}

#[cfg(test)]
mod tests;
