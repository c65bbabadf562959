//! What is not as it should be, each with the command that helps. Pure.

use std::collections::BTreeSet;

use files::Places;
use serde::Serialize;
use serde_json::Value;

use super::Facts;
use crate::conditions::{self, Condition};
use crate::context::Chosen;
use crate::daemon::calls::Engine;
use crate::daemon::{self, Model as Said, State};
use crate::facts::{self, Laya, Model, name};
use crate::kinds::Kind;
use crate::verbs::doctor;

/// The router's own port, and the last of those it takes instead (training 11).
pub(super) const PORT: u16 = 8737;
const LAST_PORT: u16 = 8747;
/// Less than the shipped version needs, in bytes.
const SMALL_VOLUME: u64 = 1_000_000_000;

/// Something that is not as it should be, and what helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Missing {
    pub(crate) what: String,
    pub(crate) fix: String,
}

impl Missing {
    pub(crate) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            fix: fix.into(),
        }
    }
}

/// Each store that was damaged and is kept aside: what it held is gone until somebody brings it back.
pub(crate) fn lost(places: &Places) -> Vec<Missing> {
    let told = |aside: daemon::Aside| {
        let path = aside.path.display();
        let back = match aside.held {
            "objects" => "relayctl up --recover, and relayctl apply -f your files again",
            _ => "nothing brings them back by itself",
        };
        Missing::new(
            format!(
                "a damaged store of {} was set aside as {path}, and a new one is used",
                aside.held
            ),
            format!("{back}; then move {path} elsewhere"),
        )
    };
    daemon::set_aside(places).into_iter().map(told).collect()
}

/// The engine in one line.
pub(crate) fn engine_line(engine: &Engine) -> String {
    let mut line = engine.backend.clone();
    if let Some(version) = &engine.version {
        line.push_str(&format!(" {version}"));
    }
    if let Some(address) = &engine.address {
        line.push_str(&format!(" at {address}"));
    }
    if !engine.reachable {
        let why = engine.message.as_deref().or(engine.reason.as_deref());
        line.push_str(&format!(
            ", not reachable: {}",
            why.unwrap_or("it says no reason")
        ));
        return line;
    }
    if let Some(memory) = engine.memory_bytes {
        line.push_str(&format!(", memory {}", facts::bytes(memory)));
    }
    match engine.gpu {
        Some(gpu) => line.push_str(&format!(", GPU {}", facts::bytes(gpu.memory_bytes))),
        None => line.push_str(", no GPU"),
    }
    line
}

/// What is wrong with the engine and what runs on it.
pub(crate) fn engine_problems(engine: &Engine) -> Vec<Missing> {
    let mut all = Vec::new();
    if !engine.reachable && !engine.backend.is_empty() {
        let why = engine.message.as_deref().unwrap_or("it does not answer");
        let reason = engine.reason.as_deref().unwrap_or("EngineUnavailable");
        let fix = match reason {
            "EngineForbidden" => {
                "give this user the right to use the engine's socket (sudo usermod -aG docker $USER, then sign in again), or relayctl up --backend embedded"
            }
            "ObservationTimedOut" => "look at the engine's load; what runs goes on meanwhile",
            _ => {
                "start the engine (sudo systemctl start docker), or relayctl up --backend embedded; what runs goes on meanwhile"
            }
        };
        all.push(Missing::new(
            format!(
                "the engine {} is not reachable ({reason}): {why}",
                engine.backend
            ),
            fix,
        ));
    }
    for stranger in &engine.strangers {
        let holder = if stranger.holder.is_empty() {
            "somebody else"
        } else {
            &stranger.holder
        };
        let fix = if stranger.name.ends_with(&format!(":{PORT}")) {
            "relayctl adopt uses it if it is a Laya server; relayctl adopt --replace takes its place".to_owned()
        } else if stranger.reason == "PortInUse" {
            "stop that program, or wait until it ends".to_owned()
        } else {
            format!("rename or remove it: docker rename {} OTHER", stranger.name)
        };
        all.push(Missing::new(
            format!(
                "{} belongs to {holder} ({})",
                stranger.name, stranger.reason
            ),
            fix,
        ));
    }
    for unclaimed in &engine.unclaimed {
        all.push(Missing::new(
            format!(
                "{} of {}/{} in namespace {} runs on and belongs to no object",
                unclaimed.children.join(", "),
                unclaimed.kind.to_lowercase(),
                unclaimed.name,
                unclaimed.namespace
            ),
            "relayctl up --recover makes the object again",
        ));
    }
    // What was so once need not be so now.
    if let Some(volume) = &engine.models_volume
        && volume.seen_at.is_none()
        && volume.total_bytes > 0
        && volume.free_bytes < SMALL_VOLUME
    {
        all.push(Missing::new(
            format!(
                "the models volume {} is nearly full: {} of {} are free, another version needs about {}",
                volume.name,
                facts::bytes(volume.free_bytes),
                facts::bytes(volume.total_bytes),
                facts::bytes(SMALL_VOLUME)
            ),
            "relayctl model prune deletes files that no object names, relayctl model rm NAME removes a version",
        ));
    }
    all
}

/// What a router that found its port taken has to say; `holder` is who has that, as far as is known.
pub(crate) fn port_problem(
    router: Option<&str>,
    own_address: bool,
    engine: Option<&Engine>,
    holder: impl FnOnce(u16) -> Option<String>,
) -> Option<Missing> {
    let port: u16 = router?
        .trim_end_matches('/')
        .rsplit(':')
        .next()?
        .parse()
        .ok()?;
    if own_address || !(PORT + 1..=LAST_PORT).contains(&port) {
        return None;
    }
    let ending = format!(":{PORT}");
    // Then it is told as a stranger, with its name.
    let is_told = engine.is_some_and(|engine| {
        engine
            .strangers
            .iter()
            .any(|stranger| stranger.name.ends_with(&ending))
    });
    (!is_told).then(|| {
        let by = holder(PORT).map_or(String::new(), |holder| format!(" by {holder}"));
        Missing::new(
            format!("port {PORT} is taken{by}, and the router listens on {port} meanwhile"),
            "relayctl adopt uses what is there if it is a Laya server; relayctl adopt --replace takes its place",
        )
    })
}

/// Why no model answers, if none does. `own`: a variable of the daemon names one.
pub(crate) fn no_model(
    health: Option<&Value>,
    said: Option<&Said>,
    own: bool,
    models: &[Value],
    servers: &[Value],
) -> Option<Missing> {
    let health = health?;
    if health["ok"] == true {
        return None;
    }
    if own {
        return Some(own_model(said));
    }
    let rules = "keyword rules answer, which is less exact";
    let Some(laya) = servers
        .iter()
        .find(|laya| name(laya) == "main")
        .or(servers.first())
    else {
        return Some(Missing::new(
            format!("no decision model: {rules}"),
            "relayctl up",
        ));
    };
    let laya = Laya(laya);
    let brief = format!("layaserver/{}", laya.name());
    let wished = laya.wished().unwrap_or_default();
    let model = models.iter().find(|model| name(model) == wished).map(Model);
    Some(match model {
        _ if laya.is_suspended() => Missing::new(
            format!("no decision model: {brief} is suspended; {rules}"),
            format!("remove spec.suspend of {brief}: relayctl apply -f its file"),
        ),
        _ if laya.external().is_some() || laya.champion().is_some() => {
            let said = laya.condition("Ready").filter(|ready| !ready.is_true());
            let why = said.map_or("the router does not reach it".to_owned(), |ready| {
                format!("{} ({})", ready.message, ready.reason)
            });
            Missing::new(
                format!("no decision model: {brief}: {why}; {rules}"),
                format!("relayctl explain {brief}"),
            )
        }
        None => Missing::new(
            format!(
                "no decision model: {brief} names layamodel/{wished}, which is not there; {rules}"
            ),
            format!(
                "relayctl use NAME --server {}; relayctl model ls lists them",
                laya.name()
            ),
        ),
        Some(model) if model.is_suspended() && !model.is_ready() => {
            let host = model
                .host()
                .map_or(String::new(), |host| format!(" from {host}"));
            let size = model
                .size()
                .map_or("of unknown size".to_owned(), facts::bytes);
            Missing::new(
                format!("no decision model: {wished} ({size}{host}) is not fetched; {rules}"),
                format!("relayctl model fetch {wished}"),
            )
        }
        Some(model) => {
            let said = laya.condition("Ready").filter(|ready| !ready.is_true());
            let said = model.trouble().or(said);
            let why = said.map_or("it is on its way".to_owned(), |ready| {
                format!("{} ({})", ready.message, ready.reason)
            });
            Missing::new(
                format!("no decision model: {brief}: {why}; {rules}"),
                format!("relayctl explain {brief}"),
            )
        }
    })
}

/// A model that a variable names and that does not serve.
fn own_model(said: Option<&Said>) -> Missing {
    let again = "relayctl down && RELAYD_CHECKPOINT=<folder of a checkpoint> relayctl up";
    match said {
        Some(Said::Refused(why)) => Missing::new(
            format!("no decision model: {why}; keyword rules answer, which is less exact"),
            again,
        ),
        Some(Said::Loading) => Missing::new(
            "no decision model yet: it is being loaded, and keyword rules answer meanwhile",
            "wait; relayctl status tells when it serves",
        ),
        None => Missing::new(
            "no decision model: keyword rules answer, which is less exact",
            again,
        ),
    }
}

/// Everything that is wrong, the cause before what comes of it; of several with one fix the first.
pub(super) fn problems(facts: &Facts, context: &Chosen) -> Vec<Missing> {
    let mut all = machine(facts);
    let policies = facts
        .objects
        .iter()
        .find(|(kind, _)| kind.kind == "RoutingPolicy");
    if policies.is_some_and(|(_, policies)| policies.is_empty()) {
        let fix = if context.is_local() {
            "relayctl up"
        } else {
            "relayctl apply -f policy.yaml"
        };
        all.push(Missing::new(
            "there is no RoutingPolicy; routers use the built-in one",
            fix,
        ));
    }
    if context.is_local() {
        all.extend(no_model(
            facts.health.as_ref(),
            facts.model.as_ref(),
            facts.own_model,
            facts.of_kind("LayaModel"),
            facts.of_kind("LayaServer"),
        ));
    }
    for (kind, objects) in &facts.objects {
        for object in objects {
            all.extend(trouble(kind, object));
        }
    }
    let mut seen = BTreeSet::new();
    all.retain(|problem| seen.insert(problem.fix.clone()) || problem.fix == "relayctl up");
    all
}

/// What is wrong with this machine and what runs on it.
fn machine(facts: &Facts) -> Vec<Missing> {
    let mut all = Vec::new();
    match &facts.daemon {
        Some(State::Absent) => {
            all.push(Missing::new("`relayd local` is not running", "relayctl up"))
        }
        Some(State::Crashed(how)) => {
            all.push(Missing::new(
                format!("`relayd local` ended without cleaning up: {how}"),
                "relayctl up",
            ));
        }
        Some(State::Runs(_)) | None => {}
    }
    let runs = matches!(&facts.daemon, Some(State::Runs(_)) | None);
    if let Some(unanswered) = facts.api.as_ref().filter(|_| runs) {
        all.push(Missing::new(
            &unanswered.why,
            unanswered.hint.as_deref().unwrap_or("relayctl doctor"),
        ));
    }
    if let Some(free) = facts.free.filter(|free| *free < doctor::TOO_LITTLE) {
        all.push(Missing::new(
            format!(
                "the disk of RELAY_HOME{} is full: {} MiB are free, {} MiB are needed",
                facts
                    .home
                    .as_ref()
                    .map_or(String::new(), |home| format!(" ({})", home.display())),
                free >> 20,
                doctor::TOO_LITTLE.div_ceil(1 << 20)
            ),
            "free some space there; nothing new is remembered or stored until then",
        ));
    }
    all.extend(facts.lost.iter().cloned());
    if let Some(why) = &facts.router_error {
        all.push(Missing::new(
            format!("the router does not answer: {why}"),
            "relayctl doctor",
        ));
    }
    if let Some(why) = &facts.engine_error {
        all.push(Missing::new(
            format!("what models run in is not known: {why}"),
            "relayctl down && relayctl up",
        ));
    }
    if let Some(engine) = &facts.engine {
        all.extend(engine_problems(engine));
    }
    if let Some(State::Runs(endpoint)) = &facts.daemon {
        let router = endpoint.router.as_deref();
        all.extend(port_problem(
            router,
            facts.own_address,
            facts.engine.as_ref(),
            |_| facts.port_holder.clone(),
        ));
    }
    all
}

/// What is wrong with one object.
fn trouble(kind: &Kind, object: &Value) -> Option<Missing> {
    let brief = kind.brief(name(object));
    if kind.is_only_stored(object) {
        return None;
    }
    if !conditions::is_current(object) {
        return Some(Missing::new(
            format!("{brief}: no controller has looked at it as it is now"),
            format!("relayctl explain {brief}"),
        ));
    }
    let stalled = conditions::find(object, "Stalled").filter(conditions::Condition::is_true);
    let condition = stalled
        .or_else(|| conditions::find(object, "Ready").filter(|ready| ready.status != "True"))?;
    // Somebody wants it so.
    if condition.reason == "Suspended" {
        return None;
    }
    Some(Missing::new(
        format!("{brief}: {} ({})", condition.message, condition.reason),
        fix(kind, object, &condition),
    ))
}

/// The command that helps with one condition; where none does by itself, the one that tells more.
fn fix(kind: &Kind, object: &Value, condition: &Condition) -> String {
    let it = name(object);
    match (kind.kind, condition.reason.as_str()) {
        ("LayaServer", "Rejected") => {
            format!("relayctl rollout retry {it}, or relayctl use NAME --server {it}")
        }
        ("LayaServer", "CrashLoop" | "OutOfMemory" | "RollbackFailed") => {
            format!("relayctl logs {it}")
        }
        ("LayaServer", "ModelNotReady") => match Laya(object).wished() {
            Some(model) => format!("relayctl explain lm/{model}"),
            None => format!("relayctl explain ls/{it}"),
        },
        ("LayaModel", "ModelDamaged" | "DigestMismatch") => format!("relayctl model verify {it}"),
        ("LayaModel", "ContractUnverified") => {
            format!("relayctl model import {it} --decisions FILE")
        }
        ("LayaModel", "SourceInterrupted" | "FetchDeadlineExceeded" | "SourceBusy") => {
            format!("relayctl model fetch {it}")
        }
        _ => format!("relayctl explain {}", kind.brief(it)),
    }
}

#[cfg(test)]
mod tests;
