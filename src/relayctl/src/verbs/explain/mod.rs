//! `relayctl explain`: from the state of an object back to what causes it, and on to what helps. Pure but for the few
//! questions it asks; a document of its own with `-o json`.

mod model;
mod serving;

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::events::{self, Happened};
use super::model::not_there;
use super::rollout::minute;
use crate::call::{Call, block_on};
use crate::conditions::{self, Condition};
use crate::duration;
use crate::error::CliError;
use crate::kinds::{self, Kind};
use crate::output::{self, CLI_VERSION};
use crate::refusal::{DELETE_SOME, is_full_store, one_line};
use crate::server::{Form, Selection, Server};
use crate::terminal::{self, Styles};
use api::exit::Exit;

/// Newest events that are shown.
const MAX_EVENTS: usize = 5;

/// Arguments of `relayctl explain`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  relayctl explain rp/default\n  relayctl explain ls/main\n  relayctl explain lm/v1 -o json\n\nWhat a field means: docs/, or `kubectl explain routingpolicy.spec`."
)]
pub(crate) struct ExplainArguments {
    /// Which object
    #[arg(value_name = "KIND/NAME")]
    object: String,
}

/// Why an object is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    api_version: &'static str,
    kind: &'static str,
    object: String,
    namespace: String,
    /// In a sentence.
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// From the state to its cause.
    because: Vec<Because>,
    /// Who has to do something before it changes.
    waits_for: String,
    /// What comes by the clock if nothing else does.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Deadline>,
    problems: Vec<Problem>,
    events: Vec<Happened>,
    /// What to do, in order.
    next: Vec<String>,
}

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Because {
    fact: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
}

impl Because {
    fn new(fact: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            fact: fact.into(),
            message: message.into(),
            since: None,
        }
    }
}

/// Something that comes by the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Deadline {
    what: String,
    at: Timestamp,
}

/// What an object's chain leads to.
#[derive(Debug, Default)]
struct Beside {
    /// LayaModel of a server's wish.
    model: Option<Value>,
    /// LayaServers beside a model.
    servers: Vec<Value>,
}

/// A field and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Problem {
    severity: String,
    path: String,
    message: String,
}

/// Explains an object.
pub(crate) fn run(call: &Call, arguments: &ExplainArguments) -> Result<Exit, CliError> {
    let (kind, name) = kinds::object(&arguments.object)?;
    block_on(Box::pin(async {
        let server = call.connect().await?;
        let found = server.find(kind, &server.namespace, &name).await;
        let Some(object) = found.map_err(|error| server.failed(error))? else {
            let line = format!("`relayctl get {}` lists those that are there", kind.plural);
            return Err(not_there(kind, &name, &server).hint(line));
        };
        let events = events::of_object(&server, kind, &object).await?;
        let beside = beside(&server, kind, &object).await?;
        let now = Timestamp::now();
        let explanation = explain(kind, &object, events, &beside, now);
        if call.format().is_table() {
            terminal::print(&explanation.render(now, call.styles()))?;
        } else {
            let document = serde_json::to_value(&explanation).map_err(|error| {
                CliError::new(Exit::Failed, format!("cannot write the answer: {error}"))
            })?;
            output::tree(&document, &call.format())?;
        }
        Ok(Exit::Done)
    }))
}

/// Asks for what the chain of an object leads to.
async fn beside(server: &Server, kind: &Kind, object: &Value) -> Result<Beside, CliError> {
    let mut beside = Beside::default();
    if kind == kinds::laya_server()
        && let Some(name) = serving::wished(object)
    {
        let found = server
            .find(kinds::laya_model(), &server.namespace, name)
            .await;
        beside.model = found.map_err(|error| server.failed(error))?;
    }
    if kind == kinds::laya_model() {
        let selection = Selection::within(&server.namespace);
        let list = server
            .list(kinds::laya_server(), &selection, Form::Objects)
            .await;
        let mut list = list.map_err(|error| server.failed(error))?;
        if let Value::Array(servers) = list["items"].take() {
            beside.servers = servers;
        }
    }
    Ok(beside)
}

/// Everything that is known of an object, put in order.
fn explain(
    kind: &Kind,
    object: &Value,
    mut events: Vec<Happened>,
    beside: &Beside,
    now: Timestamp,
) -> Explanation {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let name = text(&metadata["name"]);
    events.drain(..events.len().saturating_sub(MAX_EVENTS));
    let mut explanation = Explanation {
        api_version: CLI_VERSION,
        kind: "Explanation",
        object: kind.brief(&name),
        namespace: text(&metadata["namespace"]),
        state: String::new(),
        since: None,
        because: Vec::new(),
        waits_for: "nothing".to_owned(),
        deadline: None,
        problems: problems(object),
        events,
        next: Vec::new(),
    };
    if metadata["deletionTimestamp"].is_string() {
        explanation.deleting(metadata);
        if kind == kinds::laya_model() {
            model::explain(&mut explanation, object, &beside.servers, now);
        }
    } else if !kind.is_ours() {
        explanation.state = format!("stored; a {} has no controller of ours", kind.kind);
    } else if kind.is_only_stored(object) {
        explanation.state = "is stored; nothing acts on this kind yet".to_owned();
        explanation.waits_for = "a release of Relay whose controller acts on it".to_owned();
        explanation.next.push(format!(
            "nothing: {} is checked and kept until then",
            kind.brief(&name)
        ));
    } else {
        explanation.living(kind, object, beside, now);
    }
    explanation
}

fn problems(object: &Value) -> Vec<Problem> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let problems = object["status"]["problems"].as_array();
    problems
        .into_iter()
        .flatten()
        .map(|problem| Problem {
            severity: text(&problem["severity"]),
            path: text(&problem["path"]),
            message: text(&problem["message"]),
        })
        .collect()
}

impl Explanation {
    fn deleting(&mut self, metadata: &Value) {
        let finalizers = metadata["finalizers"].as_array();
        let names: Vec<_> = finalizers
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        self.state = "is being deleted".to_owned();
        self.since = metadata["deletionTimestamp"]
            .as_str()
            .and_then(|at| at.parse().ok());
        self.because.push(Because {
            fact: format!("finalizers: {}", names.join(", ")),
            message: "the object stays until whoever set these has cleaned up".to_owned(),
            since: None,
        });
        self.waits_for = names.join(", ");
        self.next
            .push("`relayctl status` tells whether the controller runs".to_owned());
    }

    fn living(&mut self, kind: &Kind, object: &Value, beside: &Beside, now: Timestamp) {
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        let observed = object["status"]["observedGeneration"].as_i64();
        let ready = conditions::find(object, "Ready");
        self.state = match (&ready, observed) {
            (None, None) => "was not looked at by any controller yet".to_owned(),
            (None, Some(_)) => "has no condition Ready yet".to_owned(),
            (Some(ready), _) if ready.is_true() => "is ready".to_owned(),
            (Some(ready), _) if ready.status == "Unknown" => {
                "nobody knows whether it is ready".to_owned()
            }
            (Some(_), _) => "is not ready".to_owned(),
        };
        self.since = ready.as_ref().and_then(|ready| ready.since);
        let is_current = conditions::is_current(object);
        if !is_current {
            let seen = observed.map_or("none".to_owned(), |observed| observed.to_string());
            self.because.push(Because {
                fact: format!("generation {generation} waits, status is of generation {seen}"),
                message: "what follows tells of the spec as it was".to_owned(),
                since: None,
            });
            self.waits_for = "the controller".to_owned();
            self.next.push(
                "`relayctl status` tells whether the controller runs; it looks within seconds"
                    .to_owned(),
            );
        }
        self.chain(object, ready);
        if kind.kind == "RoutingPolicy" {
            self.policy(object, generation);
        }
        if kind == kinds::laya_server() {
            serving::explain(self, object, beside.model.as_ref(), now);
        }
        if kind == kinds::laya_model() {
            model::explain(self, object, &beside.servers, now);
        }
        self.what_helps(is_current);
    }

    /// The conditions that matter, from the sign to the cause.
    fn chain(&mut self, object: &Value, ready: Option<Condition>) {
        let mut all = conditions::of(object);
        all.retain(|condition| condition.kind != "Ready" && is_abnormal(condition));
        // What only others can change is the cause of what merely goes on.
        let rank = |condition: &Condition| match condition.kind.as_str() {
            "Reconciling" => 0,
            "FieldsSupported" => 1,
            "Stalled" => 2,
            "BackendReachable" => 4,
            _ => 3,
        };
        all.sort_by_key(rank);
        let stalled = all.iter().any(|condition| condition.kind == "Stalled");
        let reconciling = all.iter().any(|condition| condition.kind == "Reconciling");
        let unreachable = all
            .iter()
            .any(|condition| condition.kind == "BackendReachable");
        if unreachable {
            self.waits_for = "the back end to answer".to_owned();
        } else if stalled {
            self.waits_for = "a change by somebody".to_owned();
        } else if reconciling || ready.as_ref().is_some_and(|ready| !ready.is_true()) {
            self.waits_for = "the controller".to_owned();
        }
        for condition in ready.into_iter().chain(all) {
            self.because.push(Because {
                fact: format!(
                    "{}={} ({})",
                    condition.kind, condition.status, condition.reason
                ),
                message: condition.message,
                since: condition.since,
            });
        }
    }

    /// What a router does meanwhile.
    fn policy(&mut self, object: &Value, generation: i64) {
        let status = &object["status"];
        let message = match (
            status["acceptedRevision"].as_str(),
            status["acceptedGeneration"].as_i64(),
        ) {
            (Some(revision), Some(accepted)) if accepted < generation => {
                format!(
                    "revision {revision} of generation {accepted} stays in force until this one is accepted"
                )
            }
            (Some(revision), _) => format!("revision {revision} is in force"),
            (None, _) => "no revision was accepted yet; routers use the built-in policy".to_owned(),
        };
        self.because.push(Because {
            fact: "in force".to_owned(),
            message,
            since: None,
        });
    }

    fn what_helps(&mut self, is_current: bool) {
        let errors = self
            .problems
            .iter()
            .filter(|problem| problem.severity != "Warning")
            .count();
        let warnings = self.problems.len() - errors;
        let is_full = |link: &Because| is_full_store(&link.message);
        if self.because.iter().any(is_full) {
            self.next.push(DELETE_SOME.to_owned());
        } else if errors > 0 && is_current {
            self.next.push(format!(
                "correct {}, then `relayctl apply -f FILE`; `relayctl validate -f FILE` tells beforehand",
                fields(&self.problems, |problem| problem.severity != "Warning")
            ));
        } else if self.waits_for == "a change by somebody" && self.next.is_empty() {
            self.next.push(
                "change the spec as the message says, then `relayctl apply -f FILE`".to_owned(),
            );
        } else if self.waits_for == "the back end to answer" {
            self.next
                .push("`relayctl doctor` looks at the back end".to_owned());
        }
        if warnings > 0 {
            self.next.push(format!(
                "look at {}: a warning, nothing is stopped by it",
                fields(&self.problems, |problem| problem.severity == "Warning")
            ));
        }
        if self.next.is_empty() {
            self.next.push("nothing".to_owned());
        }
    }

    fn render(&self, now: Timestamp, styles: Styles) -> String {
        let ago = |since: Option<Timestamp>| {
            since.map_or(String::new(), |since| {
                format!(
                    ", since {}",
                    duration::human(now.duration_since(since).as_secs())
                )
            })
        };
        let mut out = format!(
            "{} {}{}\n",
            styles.bold(&one_line(&self.object)),
            one_line(&self.state),
            ago(self.since)
        );
        let mut said: Vec<&str> = Vec::new();
        for link in &self.because {
            out.push_str(&format!("  {}{}", one_line(&link.fact), ago(link.since)));
            // Conditions of one cause have one message, or one that leads to the others.
            let is_news = !link.message.is_empty()
                && !said
                    .iter()
                    .any(|before| before.contains(link.message.as_str()));
            if is_news {
                out.push_str(&format!(": {}", one_line(&link.message)));
                said.push(&link.message);
            }
            out.push('\n');
        }
        for problem in &self.problems {
            out.push_str(&format!(
                "  {} {}: {}\n",
                one_line(&problem.severity.to_lowercase()),
                one_line(&problem.path),
                one_line(&problem.message)
            ));
        }
        out.push_str(&format!("waits for: {}\n", one_line(&self.waits_for)));
        if let Some(deadline) = &self.deadline {
            let left = deadline.at.duration_since(now).as_secs();
            out.push_str(&format!(
                "deadline: {} at {}, in {}\n",
                one_line(&deadline.what),
                minute(deadline.at),
                duration::human(left)
            ));
        }
        if !self.events.is_empty() {
            out.push_str("events:\n");
            for event in &self.events {
                out.push_str(&format!(
                    "  {}  {}  {}: {}\n",
                    event.ago(now),
                    one_line(&event.kind),
                    one_line(&event.reason),
                    one_line(&event.note)
                ));
            }
        }
        for next in &self.next {
            out.push_str(&format!("next: {}\n", one_line(next)));
        }
        out
    }
}

/// False where true is good, and the two whose truth is abnormal.
fn is_abnormal(condition: &Condition) -> bool {
    match condition.kind.as_str() {
        "Reconciling" | "Stalled" => condition.is_true(),
        _ => !condition.is_true(),
    }
}

fn fields(problems: &[Problem], wanted: impl Fn(&Problem) -> bool) -> String {
    let paths: Vec<_> = problems
        .iter()
        .filter(|problem| wanted(problem))
        .map(|problem| problem.path.as_str())
        .collect();
    match paths.len() {
        0..=3 => paths.join(", "),
        more => format!("{} and {} more", paths[..3].join(", "), more - 3),
    }
}

#[cfg(test)]
mod tests;
