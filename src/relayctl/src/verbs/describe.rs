//! `relayctl describe`: one object with its conditions, its children and its events, for people.

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::events::{self, Happened};
use crate::call::{Call, block_on};
use crate::conditions;
use crate::duration;
use crate::error::CliError;
use crate::kinds::{self, Kind, Targets};
use crate::output::table::{Headers, Table};
use crate::output::{self, to_yaml};
use crate::server::{Form, Selection, Server};
use crate::terminal::{self, Styles, escape};
use api::exit::Exit;

/// Arguments of `relayctl describe`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  relayctl describe rp/default\n  relayctl describe rp")]
pub(crate) struct DescribeArguments {
    /// KIND [NAME…] or KIND/NAME…
    #[arg(required = true, value_name = "KIND")]
    targets: Vec<String>,
}

/// What is described.
struct Described {
    kind: &'static Kind,
    object: Value,
    children: Vec<Value>,
    events: Vec<Happened>,
}

/// Describes objects.
pub(crate) fn run(call: &Call, arguments: &DescribeArguments) -> Result<Exit, CliError> {
    let targets = kinds::targets(&arguments.targets)?;
    block_on(Box::pin(async {
        let server = call.connect().await?;
        let mut texts = Vec::new();
        for (kind, object) in objects(&server, &targets).await? {
            let described = Described {
                kind,
                children: children(&server, &object).await?,
                events: events::of_object(&server, kind, &object).await?,
                object,
            };
            texts.push(described.render(Timestamp::now(), call.styles())?);
        }
        if texts.is_empty() {
            call.tell(&format!(
                "no objects found in namespace {}",
                server.namespace
            ));
        }
        terminal::print(&texts.join("\n---\n\n"))?;
        Ok(Exit::Done)
    }))
}

async fn objects(
    server: &Server,
    targets: &Targets,
) -> Result<Vec<(&'static Kind, Value)>, CliError> {
    let mut found = Vec::new();
    match targets {
        Targets::Named(named) => {
            for (kind, name) in named {
                let got = server
                    .get(kind, &server.namespace, name, Form::Objects)
                    .await;
                found.push((*kind, got.map_err(|error| server.failed(error))?));
            }
        }
        Targets::All(kinds) => {
            for kind in kinds {
                let selection = Selection::within(&server.namespace);
                let list = server.list(kind, &selection, Form::Objects).await;
                let mut list = list.map_err(|error| server.failed(error))?;
                if let Value::Array(items) = list["items"].take() {
                    found.extend(items.into_iter().map(|item| (*kind, item)));
                }
            }
        }
    }
    Ok(found)
}

/// Stored documents that an object owns.
async fn children(server: &Server, object: &Value) -> Result<Vec<Value>, CliError> {
    let Some(uid) = object["metadata"]["uid"].as_str() else {
        return Ok(Vec::new());
    };
    let namespace = object["metadata"]["namespace"]
        .as_str()
        .unwrap_or(&server.namespace);
    let kind = kinds::controller_revision();
    let list = server
        .list(kind, &Selection::within(namespace), Form::Objects)
        .await;
    let mut list = match list {
        Ok(list) => list,
        // Without the right to read them there is nothing to show of them.
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(server.failed(error)),
    };
    let Value::Array(items) = list["items"].take() else {
        return Ok(Vec::new());
    };
    let owned = |item: &Value| {
        let owners = item["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == uid))
    };
    Ok(items.into_iter().filter(owned).collect())
}

impl Described {
    fn render(&self, now: Timestamp, styles: Styles) -> Result<String, CliError> {
        let metadata = &self.object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or("<none>").to_owned();
        let mut out = String::new();
        let mut field = |name: &str, value: &str| {
            out.push_str(&format!("{:<14}{}\n", format!("{name}:"), escape(value)));
        };
        field("Name", &text(&metadata["name"]));
        field("Namespace", &text(&metadata["namespace"]));
        field("Kind", self.kind.kind);
        field("API version", &self.kind.api_version());
        field("Labels", &pairs(&metadata["labels"]));
        field("Annotations", &pairs(&metadata["annotations"]));
        field(
            "Created",
            &format!(
                "{} ({})",
                text(&metadata["creationTimestamp"]),
                age(&metadata["creationTimestamp"], now)
            ),
        );
        if metadata["deletionTimestamp"].is_string() {
            field(
                "Deleting",
                &format!("since {}", age(&metadata["deletionTimestamp"], now)),
            );
        }
        field("Generation", &metadata["generation"].to_string());
        for name in ["spec", "data"] {
            self.part(name, &self.object[name], &mut out)?;
        }
        self.part("status", &self.status(), &mut out)?;
        self.sections(now, styles, &mut out);
        Ok(out)
    }

    /// Status without what has sections of its own.
    fn status(&self) -> Value {
        let mut status = self.object["status"].clone();
        if let Some(map) = status.as_object_mut() {
            map.remove("conditions");
        }
        status
    }

    fn part(&self, name: &str, tree: &Value, out: &mut String) -> Result<(), CliError> {
        let title = format!("{}{}:", name[..1].to_uppercase(), &name[1..]);
        match tree {
            Value::Null => {}
            Value::Object(map) if map.is_empty() => out.push_str(&format!("{title:<14}{{}}\n")),
            tree => {
                out.push_str(&format!("{title}\n"));
                for line in to_yaml(tree)?.lines() {
                    out.push_str(&format!("  {}\n", escape(line)));
                }
            }
        }
        Ok(())
    }

    fn sections(&self, now: Timestamp, styles: Styles, out: &mut String) {
        let mut table = Table::new(&["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"]);
        for condition in conditions::of(&self.object) {
            let since = condition.since.map_or("<unknown>".to_owned(), |since| {
                duration::human(now.duration_since(since).as_secs())
            });
            table.push(vec![
                condition.kind,
                condition.status,
                condition.reason,
                since,
                condition.message,
            ]);
        }
        section("Conditions", &table, styles, out);
        let mut table = Table::new(&["KIND", "NAME", "REVISION", "AGE"]);
        for child in &self.children {
            let metadata = &child["metadata"];
            table.push(vec![
                kinds::controller_revision().kind.to_owned(),
                metadata["name"].as_str().unwrap_or_default().to_owned(),
                child["revision"].to_string(),
                age(&metadata["creationTimestamp"], now),
            ]);
        }
        section("Children", &table, styles, out);
        let mut table = Table::new(&["LAST SEEN", "TYPE", "REASON", "NOTE"]);
        for event in &self.events {
            table.push(vec![
                event.age(now),
                event.kind.clone(),
                event.reason.clone(),
                event.note.clone(),
            ]);
        }
        section("Events", &table, styles, out);
    }
}

fn section(title: &str, table: &Table, styles: Styles, out: &mut String) {
    let title = format!("{title}:");
    if table.is_empty() {
        out.push_str(&format!("{title:<14}<none>\n"));
        return;
    }
    out.push_str(&format!("{title}\n"));
    for line in table.render(Headers::Shown, styles).lines() {
        out.push_str(&format!("  {line}\n"));
    }
}

fn age(time: &Value, now: Timestamp) -> String {
    let time: Option<Timestamp> = time.as_str().and_then(|time| time.parse().ok());
    match time {
        Some(time) => duration::human(now.duration_since(time).as_secs()),
        None => "<unknown>".to_owned(),
    }
}

fn pairs(map: &Value) -> String {
    let entries = map.as_object();
    let pairs: Vec<_> = entries
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", output::jsonpath::plain(value)))
        .collect();
    if pairs.is_empty() {
        "<none>".to_owned()
    } else {
        pairs.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_described_with_what_belongs_to_it() {
        let described = Described {
            kind: kinds::routing_policy(),
            object: json!({"metadata": {"name": "default", "namespace": "default", "generation": 2, "labels": {"team": "core"},
                    "creationTimestamp": "2026-11-30T09:00:00Z"},
                "spec": {"profile": "quality\u{1b}"},
                "status": {"acceptedRevision": "0123456789", "conditions": [
                    {"type": "Ready", "status": "True", "reason": "Reconciled", "message": "in force", "lastTransitionTime": "2026-11-30T09:59:00Z"}]}}),
            children: vec![
                json!({"metadata": {"name": "rp-default-0123456789", "creationTimestamp": "2026-11-30T09:00:00Z"}, "revision": 1}),
            ],
            events: Vec::new(),
        };
        let now = "2026-11-30T10:00:00Z".parse().unwrap();
        let text = described.render(now, Styles::PLAIN).unwrap();
        assert_eq!(
            text,
            "Name:         default
Namespace:    default
Kind:         RoutingPolicy
API version:  relay.dev/v1alpha1
Labels:       team=core
Annotations:  <none>
Created:      2026-11-30T09:00:00Z (60m)
Generation:   2
Spec:
  profile: \"quality\\e\"
Status:
  acceptedRevision: \"0123456789\"
Conditions:
  TYPE    STATUS   REASON       SINCE   MESSAGE
  Ready   True     Reconciled   60s     in force
Children:
  KIND                 NAME                    REVISION   AGE
  ControllerRevision   rp-default-0123456789   1          60m
Events:       <none>
"
        );
    }
}
