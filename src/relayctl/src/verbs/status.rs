//! `relayctl status`: one screen of what runs, what decides, what is missing and what is wrong, each problem with the
//! command that fixes it. The facts are gathered first; what they mean is pure.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::call::Call;
use crate::conditions;
use crate::context::Chosen;
use crate::daemon::{self, Model, State};
use crate::error::CliError;
use crate::kinds::{self, Kind};
use crate::output::{self, CLI_VERSION};
use crate::refusal::one_line;
use crate::router::Router;
use crate::server::{Form, Selection, Server};
use crate::terminal::{self, Styles};
use crate::verbs::{doctor, up};
use api::exit::Exit;
use files::Places;

/// Most lines of one sort on the screen; the document has all of them.
const MAX_LINES: usize = 10;

/// What was found.
#[derive(Debug, Default)]
struct Facts {
    /// Only of this machine.
    daemon: Option<State>,
    /// Why the object API does not answer.
    api: Option<Unanswered>,
    /// Why there is no model.
    model: Option<Model>,
    /// Stores that were set aside.
    lost: Vec<Missing>,
    /// Bytes that can still be written on this machine.
    free: Option<u64>,
    health: Option<Value>,
    router_error: Option<String>,
    report: Option<Value>,
    in_force: Option<Value>,
    objects: Vec<(&'static Kind, Vec<Value>)>,
}

/// Why an API does not answer.
#[derive(Debug)]
struct Unanswered {
    exit: Exit,
    why: String,
    hint: Option<String>,
}

/// One screen.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Overview {
    api_version: &'static str,
    kind: &'static str,
    context: String,
    namespace: String,
    time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon: Option<Daemon>,
    #[serde(skip_serializing_if = "Option::is_none")]
    router: Option<RouterState>,
    policies: Vec<PolicyState>,
    servers: Vec<ObjectState>,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectState {
    name: String,
    ready: String,
    reason: String,
}

/// Something that is not as it should be, and what helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Missing {
    pub(crate) what: String,
    pub(crate) fix: String,
}

impl Missing {
    fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            fix: fix.into(),
        }
    }

    /// What a router on this machine lacks.
    pub(crate) fn of(health: Option<&Value>, model: Option<&Model>, context: &Chosen) -> Vec<Self> {
        let serving = health.is_some_and(|health| health["ok"] == true);
        if health.is_none() || serving || !context.is_local() {
            return Vec::new();
        }
        let again = "relayctl down && RELAYD_CHECKPOINT=<folder of a checkpoint> relayctl up";
        vec![match model {
            Some(Model::Refused(why)) => Self::new(
                format!("no decision model: {why}; keyword rules answer, which is less exact"),
                again,
            ),
            Some(Model::Loading) => Self::new(
                "no decision model yet: it is being loaded, and keyword rules answer meanwhile",
                "wait; relayctl status tells when it serves",
            ),
            None => Self::new(
                "no decision model: keyword rules answer, which is less exact",
                again,
            ),
        }]
    }
}

/// Each store that was damaged and is kept aside: what it held is gone until somebody brings it back.
pub(crate) fn lost(places: &Places) -> Vec<Missing> {
    let told = |aside: daemon::Aside| {
        let path = aside.path.display();
        let back = match aside.held {
            "objects" => "relayctl apply -f your files again",
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

/// Shows it.
pub(crate) async fn run(call: &Call) -> Result<Exit, CliError> {
    let server = call.connect().await?;
    let facts = gather(call, &server).await?;
    let overview = overview(&facts, &server.context, &server.namespace, Timestamp::now());
    if call.format().is_table() {
        terminal::print(&overview.render(call.styles()))?;
    } else {
        let document = serde_json::to_value(&overview).map_err(|error| {
            CliError::new(Exit::Failed, format!("cannot write the answer: {error}"))
        })?;
        output::tree(&document, &call.format())?;
    }
    // A screen was shown all the same; programs see the code.
    Ok(facts.api.map_or(Exit::Done, |unanswered| unanswered.exit))
}

async fn gather(call: &Call, server: &Server) -> Result<Facts, CliError> {
    let mut facts = Facts::default();
    if server.context.is_local() {
        let places = call.places()?;
        let state = daemon::look(&places);
        if let State::Runs(endpoint) = &state
            && let Some(url) = &endpoint.router
        {
            ask_router(url, &mut facts).await;
            facts.model = up::model_said(&places, endpoint);
        }
        facts.lost = lost(&places);
        facts.free = daemon::free_bytes(&places.relay).ok();
        facts.daemon = Some(state);
    }
    let selection = Selection::within(&server.namespace);
    for kind in kinds::own() {
        match server.list(kind, &selection, Form::Objects).await {
            Ok(mut list) => {
                if let serde_json::Value::Array(items) = list["items"].take() {
                    facts.objects.push((kind, items));
                }
            }
            Err(error) => {
                let error = server.failed(error);
                facts.api = Some(Unanswered {
                    exit: error.exit,
                    why: error.line().to_owned(),
                    hint: error.hint_text().map(str::to_owned),
                });
                break;
            }
        }
    }
    Ok(facts)
}

async fn ask_router(url: &str, facts: &mut Facts) {
    let router = match Router::at(url) {
        Ok(router) => router,
        Err(error) => {
            facts.router_error = Some(error);
            return;
        }
    };
    match router.ask("/health").await {
        Ok(health) => facts.health = Some(health),
        Err(error) => {
            facts.router_error = Some(error);
            return;
        }
    }
    facts.report = router.ask("/v1/report").await.ok();
    facts.in_force = router.ask("/v1/policy").await.ok();
}

fn overview(facts: &Facts, context: &Chosen, namespace: &str, now: Timestamp) -> Overview {
    let of_kind = |name: &str| {
        let found = facts.objects.iter().find(|(kind, _)| kind.kind == name);
        found.map_or(&[][..], |(_, objects)| &objects[..])
    };
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
        router: router(facts),
        policies: of_kind("RoutingPolicy").iter().map(policy).collect(),
        servers: of_kind("LayaServer").iter().map(object_state).collect(),
        training: of_kind("TrainingRun").iter().map(object_state).collect(),
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

fn name(object: &Value) -> String {
    text(&object["metadata"]["name"]).unwrap_or_default()
}

fn policy(object: &Value) -> PolicyState {
    let accepted = conditions::find(object, "Accepted");
    let (accepted, reason) = match accepted {
        Some(condition) if conditions::is_current(object) => (condition.status, condition.reason),
        _ => ("Unknown".to_owned(), "Waiting".to_owned()),
    };
    PolicyState {
        name: name(object),
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
            "nothing acts on this kind yet".to_owned(),
        ),
        None => ("Unknown".to_owned(), "Waiting".to_owned()),
    };
    ObjectState {
        name: name(object),
        ready,
        reason,
    }
}

fn problems(facts: &Facts, context: &Chosen) -> Vec<Missing> {
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
                "the disk of RELAY_HOME is full: {} MiB are free",
                free >> 20
            ),
            "free some space; nothing new is remembered or stored until then",
        ));
    }
    all.extend(facts.lost.iter().cloned());
    if let Some(why) = &facts.router_error {
        all.push(Missing::new(
            format!("the router does not answer: {why}"),
            "relayctl doctor",
        ));
    }
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
    for (kind, objects) in &facts.objects {
        for object in objects {
            all.extend(trouble(kind, object));
        }
    }
    all.extend(Missing::of(
        facts.health.as_ref(),
        facts.model.as_ref(),
        context,
    ));
    all
}

/// What is wrong with one object.
fn trouble(kind: &Kind, object: &Value) -> Option<Missing> {
    let brief = kind.brief(&name(object));
    let fix = format!("relayctl explain {brief}");
    if kind.is_only_stored(object) {
        return None;
    }
    if !conditions::is_current(object) {
        return Some(Missing::new(
            format!("{brief}: no controller has looked at it as it is now"),
            fix,
        ));
    }
    let stalled = conditions::find(object, "Stalled").filter(conditions::Condition::is_true);
    let condition = stalled
        .or_else(|| conditions::find(object, "Ready").filter(|ready| ready.status != "True"))?;
    Some(Missing::new(
        format!("{brief}: {} ({})", condition.message, condition.reason),
        fix,
    ))
}

impl Overview {
    fn render(&self, styles: Styles) -> String {
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
        for (name, objects) in [("server", &self.servers), ("training", &self.training)] {
            for object in objects.iter().take(MAX_LINES) {
                line(
                    name,
                    &format!(
                        "{}: Ready={} ({})",
                        object.name, object.ready, object.reason
                    ),
                );
            }
            if let Some(more) = more(objects) {
                line("", &more);
            }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::context::Source;

    fn context(name: &str) -> Chosen {
        Chosen {
            name: name.to_owned(),
            source: Source::Default,
        }
    }

    fn screen(facts: &Facts, context: &Chosen) -> String {
        let now = "2026-11-30T10:00:00Z".parse().unwrap();
        overview(facts, context, "default", now).render(Styles::PLAIN)
    }

    #[test]
    fn an_empty_machine_is_told_how_to_begin() {
        let facts = Facts {
            daemon: Some(State::Absent),
            api: Some(Unanswered {
                exit: Exit::Unreachable,
                why: "cannot reach it".into(),
                hint: None,
            }),
            ..Facts::default()
        };
        assert_eq!(
            screen(&facts, &context("local")),
            "context   local, namespace default\nrelayd    not running\nproblem   `relayd local` is not running\n          fix: relayctl up\n"
        );
    }

    #[test]
    fn each_problem_has_its_command() {
        let refused = json!({"metadata": {"name": "default", "generation": 2}, "status": {"observedGeneration": 2, "acceptedRevision": "0123456789", "conditions": [
            {"type": "Accepted", "status": "False", "reason": "BadPattern", "message": "m"},
            {"type": "Stalled", "status": "True", "reason": "BadPattern", "message": "rule 0\u{1b} is empty"}]}});
        let facts = Facts {
            objects: vec![(kinds::routing_policy(), vec![refused])],
            ..Facts::default()
        };
        assert_eq!(
            screen(&facts, &context("team")),
            "context   team, namespace default\npolicy    default: Accepted=False (BadPattern), revision 0123456789\nproblem   routingpolicy/default: rule 0\\u{1b} is empty (BadPattern)\n          fix: relayctl explain routingpolicy/default\n"
        );
        let none = Facts {
            objects: vec![(kinds::routing_policy(), Vec::new())],
            ..Facts::default()
        };
        assert!(screen(&none, &context("team")).contains("fix: relayctl apply -f policy.yaml"));
    }

    #[test]
    fn problems_are_bounded_and_what_nobody_acts_on_is_none() {
        let new = |name: String| json!({"metadata": {"name": name, "generation": 1}});
        let many = |count: usize| {
            (0..count)
                .map(|at| new(format!("o{at}")))
                .collect::<Vec<_>>()
        };
        let facts = Facts {
            objects: vec![
                (kinds::named("LayaServer").unwrap(), many(12)),
                (kinds::named("LayaModel").unwrap(), many(3)),
                (kinds::routing_policy(), many(13)),
            ],
            ..Facts::default()
        };
        let text = screen(&facts, &context("team"));
        assert_eq!(text.matches("\nproblem ").count(), 10, "{text}");
        assert!(
            text.contains("and 3 more; `relayctl status -o yaml`"),
            "{text}"
        );
        assert!(!text.contains("layamodel/"), "{text}");
        assert!(
            text.contains(
                "server    o9: Ready=Unknown (nothing acts on this kind yet)\n          and 2 more"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_lost_store_a_full_disk_and_a_bad_checkpoint_are_problems() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places {
            relay: folder.path().to_owned(),
            agent: folder.path().join("agent"),
        };
        let aside = folder.path().join("objects.db.damaged-17");
        std::fs::write(&aside, "").unwrap();
        let facts = Facts {
            lost: lost(&places),
            free: Some(3 << 20),
            health: Some(json!({"ok": false})),
            model: Some(Model::Refused("'/m' is no directory".into())),
            ..Facts::default()
        };
        let text = screen(&facts, &context("local"));
        for part in [
            &format!("objects was set aside as {}", aside.display()),
            "is full: 3 MiB are free",
            "no decision model: '/m' is no directory; keyword rules answer",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
