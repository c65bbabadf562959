//! `relayctl wait`: until a condition holds, a path has a value, or an object is there or gone; and what other commands
//! wait for.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::call::{Call, block_on};
use crate::conditions::{self, Condition, Settled};
use crate::duration;
use crate::error::CliError;
use crate::kinds::{self, Kind, Targets};
use crate::output::jsonpath::{Path, plain};
use crate::output::{self, Format};
use crate::server::{Form, Selection, Server, first};
use crate::terminal;
use crate::watch::{Change, Seen, Watch};
use api::exit::Exit;

/// As long as `kubectl wait`.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is seen of an object that was not made yet.
const NOT_THERE: &str = "it is not there";

/// Arguments of `relayctl wait`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  relayctl wait rp/default --for=condition=Ready
  relayctl wait rp/default --for=condition=Accepted=False --timeout 10s
  relayctl wait rp/old --for=delete
  relayctl wait rp/default --for=jsonpath='{.status.summary.rules}'=3

Exit code 7 when it was not so in time; `--timeout 0` looks once.")]
pub(crate) struct WaitArguments {
    /// KIND NAME… or KIND/NAME…
    #[arg(required = true, value_name = "KIND/NAME")]
    targets: Vec<String>,
    /// What for: condition=TYPE[=STATUS], jsonpath=PATH[=VALUE], create or delete
    #[arg(long = "for", value_name = "WHAT", value_parser = Goal::parse)]
    goal: Goal,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Goal {
    /// A condition has a status.
    Condition { kind: String, status: String },
    /// A path leads to a value, or to anything.
    Path {
        text: String,
        path: Path,
        value: Option<String>,
    },
    /// The object is there.
    Create,
    /// The object is gone.
    Delete,
}

impl Goal {
    fn parse(text: &str) -> Result<Self, String> {
        let known = "it is condition=TYPE[=STATUS], jsonpath=PATH[=VALUE], create or delete";
        match text.split_once('=') {
            None if text == "delete" => Ok(Self::Delete),
            None if text == "create" => Ok(Self::Create),
            Some(("condition", rest)) => {
                let (kind, status) = rest.split_once('=').unwrap_or((rest, "True"));
                let is_word = |text: &str| {
                    !text.is_empty()
                        && text
                            .chars()
                            .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
                };
                if is_word(kind) && is_word(status) {
                    Ok(Self::Condition {
                        kind: kind.to_owned(),
                        status: status.to_owned(),
                    })
                } else {
                    Err(known.to_owned())
                }
            }
            Some(("jsonpath", rest)) => {
                let (path, value) = split_value(rest);
                Ok(Self::Path {
                    text: path.to_owned(),
                    path: Path::parse(path)?,
                    value: value.map(str::to_owned),
                })
            }
            _ => Err(known.to_owned()),
        }
    }

    /// Whether it is so; else what was seen instead.
    fn look(&self, object: &Value) -> Result<(), String> {
        match self {
            Self::Create => Ok(()),
            Self::Delete => Err("it is still there".to_owned()),
            Self::Condition { kind, status } => match conditions::find(object, kind) {
                None => Err(format!("it has no condition {kind}")),
                Some(condition) => holds(object, &condition, status),
            },
            Self::Path { text, path, value } => {
                let found: Vec<_> = path.find(object).into_iter().map(plain).collect();
                match (value, &found[..]) {
                    (_, []) => Err(format!("there is nothing at {text}")),
                    (None, _) => Ok(()),
                    (Some(value), [one]) if one == value => Ok(()),
                    (Some(_), _) => Err(format!("{text} is {}", found.join(" "))),
                }
            }
        }
    }
}

fn holds(object: &Value, condition: &Condition, status: &str) -> Result<(), String> {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
    if condition
        .observed_generation
        .is_some_and(|observed| observed < generation)
    {
        return Err(format!(
            "its {} speaks of an older generation",
            condition.kind
        ));
    }
    if condition.status.eq_ignore_ascii_case(status) {
        Ok(())
    } else {
        Err(format!(
            "{} is {} ({}): {}",
            condition.kind, condition.status, condition.reason, condition.message
        ))
    }
}

/// The value behind a path: after the brace where there is one, else after the first `=`.
fn split_value(text: &str) -> (&str, Option<&str>) {
    if text.starts_with('{')
        && let Some(end) = text.rfind('}')
    {
        let (path, rest) = text.split_at(end + 1);
        return match rest.strip_prefix('=') {
            Some(value) => (path, Some(value)),
            None => (text, None),
        };
    }
    match text.split_once('=') {
        Some((path, value)) => (path, Some(value)),
        None => (text, None),
    }
}

/// Waits.
pub(crate) fn run(call: &Call, arguments: &WaitArguments) -> Result<Exit, CliError> {
    let Targets::Named(named) = kinds::targets(&arguments.targets)? else {
        return Err(CliError::usage("no names were given")
            .hint("for example `relayctl wait rp/default --for=condition=Ready`"));
    };
    let patience = call.patience(PATIENCE);
    block_on(Box::pin(async {
        let server = call.connect().await?;
        for (kind, name) in &named {
            let met = until(&server, kind, name, &arguments.goal, patience).await?;
            let object = match met {
                Met::Is(object) => Some(object),
                Met::Gone => None,
                Met::NeverThere => {
                    call.tell(&format!("{} is not there", kind.full(name)));
                    continue;
                }
            };
            match call.format() {
                Format::Table | Format::Wide => {
                    let met = match arguments.goal {
                        Goal::Create => "created",
                        Goal::Delete => "deleted",
                        Goal::Condition { .. } | Goal::Path { .. } => "condition met",
                    };
                    terminal::print(&format!("{} {met}\n", kind.full(name)))?;
                }
                Format::Name => {
                    terminal::print(&format!("{}\n", kind.full(name)))?;
                }
                format => {
                    if let Some(object) = object {
                        output::tree(&output::without_managers(object), &format)?;
                    }
                }
            }
        }
        Ok(Exit::Done)
    }))
}

/// How a wait ended well.
enum Met {
    /// It is so.
    Is(Value),
    /// It was there, and is gone.
    Gone,
    /// It was to be gone, and nobody saw it.
    NeverThere,
}

/// Until it is so.
async fn until(
    server: &Server,
    kind: &Kind,
    name: &str,
    goal: &Goal,
    patience: Duration,
) -> Result<Met, CliError> {
    let namespace = server.namespace.as_str();
    let found = server
        .find(kind, namespace, name)
        .await
        .map_err(|error| server.failed(error))?;
    let mut last = match (goal, found) {
        (Goal::Delete, None) => return Ok(Met::NeverThere),
        (Goal::Create, None) => NOT_THERE.to_owned(),
        (_, None) => {
            return Err(CliError::new(
                Exit::NotFound,
                format!("there is no {} in namespace {namespace}", kind.brief(name)),
            ));
        }
        (goal, Some(object)) => match goal.look(&object) {
            Ok(()) => return Ok(Met::Is(object)),
            Err(seen) => seen,
        },
    };
    let selection = Selection::of_name(namespace, name);
    let mut watch = Watch::new(server, kind, selection, Form::Objects, Some(patience));
    while let Some(seen) = watch.next().await.map_err(|error| server.failed(error))? {
        let object = match seen {
            Seen::All(list) => first(&list),
            Seen::One(Change::Deleted, _) => None,
            Seen::One(_, object) => Some(object),
        };
        match (goal, object) {
            (Goal::Delete, None) => return Ok(Met::Gone),
            (Goal::Create, None) => {}
            (_, None) => {
                return Err(CliError::new(
                    Exit::NotFound,
                    format!("{} was deleted meanwhile", kind.brief(name)),
                ));
            }
            (goal, Some(object)) => match goal.look(&object) {
                Ok(()) => return Ok(Met::Is(object)),
                Err(seen) => last = seen,
            },
        }
    }
    Err(too_long(kind, name, patience, &last))
}

/// The error of a wait that came to nothing, with what was seen last.
pub(crate) fn too_long(kind: &Kind, name: &str, patience: Duration, last: &str) -> CliError {
    let seconds = i64::try_from(patience.as_secs()).unwrap_or(i64::MAX);
    let line = format!(
        "waited {} for {}: {last}",
        duration::human(seconds),
        kind.brief(name)
    );
    let hint = match last {
        // There is nothing to explain.
        NOT_THERE => format!("`relayctl get {}` lists those that are there", kind.plural),
        _ => format!(
            "`relayctl explain {}` tells what it waits for",
            kind.brief(name)
        ),
    };
    CliError::new(Exit::TimedOut, line).hint(hint)
}

/// Until a controller has dealt with an object as it is now.
///
/// # Errors
/// [`Exit::Refused`] where only a change helps, [`Exit::TimedOut`] where nothing came.
pub(crate) async fn until_settled(
    server: &Server,
    kind: &Kind,
    namespace: &str,
    name: &str,
    patience: Duration,
) -> Result<Value, CliError> {
    let mut last = String::new();
    let selection = Selection::of_name(namespace, name);
    let mut watch = Watch::new(server, kind, selection, Form::Objects, Some(patience));
    while let Some(seen) = watch.next().await.map_err(|error| server.failed(error))? {
        let object = match seen {
            Seen::All(list) => first(&list).unwrap_or_default(),
            Seen::One(Change::Deleted, _) => Value::Null,
            Seen::One(_, object) => object,
        };
        if object.is_null() {
            return Err(CliError::new(
                Exit::NotFound,
                format!("{} was deleted meanwhile", kind.brief(name)),
            ));
        }
        match conditions::settled(&object) {
            Settled::Ready => return Ok(output::without_managers(object)),
            Settled::Stalled(condition) => {
                let line = format!(
                    "{} is refused ({}): {}",
                    kind.brief(name),
                    condition.reason,
                    condition.message
                );
                return Err(CliError::refused(line).hint(format!(
                    "`relayctl explain {}` names the fields",
                    kind.brief(name)
                )));
            }
            Settled::Waiting(seen) => last = seen,
        }
    }
    Err(too_long(kind, name, patience, &last))
}

/// Until an object is gone; another one of the same name does not count.
///
/// # Errors
/// [`Exit::TimedOut`] with what holds it.
pub(crate) async fn until_gone(
    server: &Server,
    kind: &Kind,
    namespace: &str,
    name: &str,
    uid: &Value,
    patience: Duration,
) -> Result<(), CliError> {
    let selection = Selection::of_name(namespace, name);
    let mut watch = Watch::new(server, kind, selection, Form::Objects, Some(patience));
    let mut last = "it is still there".to_owned();
    while let Some(seen) = watch.next().await.map_err(|error| server.failed(error))? {
        let object = match seen {
            Seen::All(list) => first(&list).unwrap_or_default(),
            Seen::One(Change::Deleted, _) => Value::Null,
            Seen::One(_, object) => object,
        };
        if object.is_null() || object["metadata"]["uid"] != *uid {
            return Ok(());
        }
        if let Some(finalizers) = object["metadata"]["finalizers"].as_array() {
            let names: Vec<_> = finalizers.iter().filter_map(Value::as_str).collect();
            last = format!("finalizers hold it: {}", names.join(", "));
        }
    }
    Err(too_long(kind, name, patience, &last))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn goals_are_read() {
        for (text, good) in [
            ("condition=Ready", true),
            ("condition=Ready=False", true),
            ("condition=relay.dev/Ready=Unknown", true),
            ("delete", true),
            ("create", true),
            ("jsonpath={.a}", true),
            ("jsonpath={.a[?(@.b==\"c\")].d}=e", true),
            ("jsonpath=.a=b", true),
            ("", false),
            ("condition", false),
            ("condition=", false),
            ("condition=Ready=", false),
            ("condition=a b", false),
            ("deleted", false),
            ("jsonpath=", false),
            ("jsonpath={.a", false),
            ("delete=now", false),
        ] {
            assert_eq!(Goal::parse(text).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn goals_are_met_by_what_they_say() {
        let object = json!({"metadata": {"generation": 2, "name": "x"}, "status": {"replicas": 3, "conditions": [
            {"type": "Ready", "status": "True", "observedGeneration": 2},
            {"type": "Accepted", "status": "False", "reason": "BadPattern", "message": "m"},
            {"type": "Old", "status": "True", "observedGeneration": 1}]}});
        for (text, expected) in [
            ("condition=Ready", Ok(())),
            ("condition=ready=true", Ok(())),
            (
                "condition=Accepted",
                Err("Accepted is False (BadPattern): m"),
            ),
            ("condition=Accepted=False", Ok(())),
            (
                "condition=Old",
                Err("its Old speaks of an older generation"),
            ),
            ("condition=None", Err("it has no condition None")),
            ("jsonpath={.status.replicas}=3", Ok(())),
            ("jsonpath={.status.replicas}", Ok(())),
            (
                "jsonpath={.status.replicas}=4",
                Err("{.status.replicas} is 3"),
            ),
            (
                "jsonpath={.status.none}",
                Err("there is nothing at {.status.none}"),
            ),
            (
                "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}=True",
                Ok(()),
            ),
            ("create", Ok(())),
            ("delete", Err("it is still there")),
        ] {
            let goal = Goal::parse(text).unwrap();
            assert_eq!(
                goal.look(&object),
                expected.map_err(str::to_owned),
                "{text}"
            );
        }
    }
}
