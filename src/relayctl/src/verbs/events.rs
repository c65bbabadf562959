//! `relayctl events`: what happened, oldest first, of a namespace or of one object; and the same for `describe` and
//! `explain`.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::call::{Call, block_on};
use crate::duration;
use crate::error::CliError;
use crate::kinds::{self, Kind};
use crate::output::{self, table::Table};
use crate::server::{Form, Selection, Server};
use crate::terminal::{self, Reader};
use crate::watch::{Change, Seen, Watch};
use api::exit::Exit;

/// Arguments of `relayctl events`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  relayctl events\n  relayctl events --for rp/default --type warning\n  relayctl events -w"
)]
pub(crate) struct EventsArguments {
    /// Only those of this object
    #[arg(long = "for", value_name = "KIND/NAME")]
    object: Option<String>,
    /// Only those of this type
    #[arg(long = "type", value_enum)]
    kind: Option<EventType>,
    /// Of all namespaces
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "object"])]
    all_namespaces: bool,
    /// Go on and show each new one
    #[arg(short, long)]
    watch: bool,
}

/// What kind of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EventType {
    /// Something happened that should
    Normal,
    /// Something a person should know of
    Warning,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Happened {
    pub(crate) last_seen: Option<Timestamp>,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) reason: String,
    pub(crate) note: String,
    /// How often.
    pub(crate) count: u64,
    /// Kind and name of what it is about.
    #[serde(skip)]
    pub(crate) about: (String, String),
    #[serde(skip)]
    uid: String,
}

impl Happened {
    fn of(event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let time = |value: &Value| value.as_str().and_then(|time| time.parse().ok());
        let last_seen = [
            &event["series"]["lastObservedTime"],
            &event["eventTime"],
            &event["deprecatedLastTimestamp"],
            &event["metadata"]["creationTimestamp"],
        ]
        .into_iter()
        .find_map(time);
        let count = event["series"]["count"]
            .as_u64()
            .or_else(|| event["deprecatedCount"].as_u64())
            .unwrap_or(1);
        let regarding = &event["regarding"];
        Self {
            last_seen,
            kind: text(&event["type"]),
            reason: text(&event["reason"]),
            note: text(&event["note"]),
            count: count.max(1),
            about: (text(&regarding["kind"]), text(&regarding["name"])),
            uid: text(&regarding["uid"]),
        }
    }

    /// How long ago, and how often.
    pub(crate) fn age(&self, now: Timestamp) -> String {
        let age = match self.last_seen {
            Some(at) => duration::human(now.duration_since(at).as_secs()),
            None => "<unknown>".to_owned(),
        };
        format!("{age}{}", self.times())
    }

    /// The same in a sentence.
    pub(crate) fn ago(&self, now: Timestamp) -> String {
        match self.last_seen {
            Some(at) => format!(
                "{} ago{}",
                duration::human(now.duration_since(at).as_secs()),
                self.times()
            ),
            None => format!("at an unknown time{}", self.times()),
        }
    }

    fn times(&self) -> String {
        match self.count {
            0 | 1 => String::new(),
            count => format!(" (x{count})"),
        }
    }
}

/// The events of one object, oldest first. One of the same name that was deleted before does not count.
pub(crate) async fn of_object(
    server: &Server,
    kind: &Kind,
    object: &Value,
) -> Result<Vec<Happened>, CliError> {
    let namespace = object["metadata"]["namespace"]
        .as_str()
        .unwrap_or(&server.namespace);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let list = server
        .list(kinds::event(), &Selection::within(namespace), Form::Objects)
        .await
        .map_err(|error| server.failed(error))?;
    let mut events = read(&list);
    events.retain(|event| {
        event.about.0 == kind.kind
            && event.about.1 == name
            && (event.uid.is_empty() || event.uid == uid)
    });
    Ok(events)
}

pub(crate) fn read(list: &Value) -> Vec<Happened> {
    let items = list["items"].as_array();
    let mut events: Vec<_> = items.into_iter().flatten().map(Happened::of).collect();
    events.sort_by_key(|event| event.last_seen);
    events
}

/// As a table.
pub(crate) fn table(events: &[Happened], now: Timestamp) -> Table {
    let mut table = Table::new(&["LAST SEEN", "TYPE", "REASON", "OBJECT", "NOTE"]);
    for event in events {
        let kind = kinds::named(&event.about.0).map_or(event.about.0.to_lowercase(), |kind| {
            kind.singular.to_owned()
        });
        table.push(vec![
            event.age(now),
            event.kind.clone(),
            event.reason.clone(),
            format!("{kind}/{}", event.about.1),
            event.note.clone(),
        ]);
    }
    table
}

/// Shows events.
pub(crate) fn run(call: &Call, arguments: &EventsArguments) -> Result<Exit, CliError> {
    let object = arguments.object.as_deref().map(kinds::object).transpose()?;
    let wanted = |event: &Happened| {
        let kind = match arguments.kind {
            None => true,
            Some(EventType::Normal) => event.kind == "Normal",
            Some(EventType::Warning) => event.kind == "Warning",
        };
        kind && object
            .as_ref()
            .is_none_or(|(kind, name)| event.about.0 == kind.kind && event.about.1 == *name)
    };
    block_on(Box::pin(async {
        let server = call.connect().await?;
        let selection = Selection {
            namespace: (!arguments.all_namespaces).then(|| server.namespace.clone()),
            ..Selection::default()
        };
        if arguments.watch {
            return follow(call, &server, selection, &wanted).await;
        }
        let list = server
            .list(kinds::event(), &selection, Form::Objects)
            .await
            .map_err(|error| server.failed(error))?;
        if call.format().is_table() {
            let mut events = read(&list);
            events.retain(wanted);
            if events.is_empty() {
                call.tell("no events found");
            } else {
                let table = table(&events, Timestamp::now());
                terminal::print(&table.render(call.headers(), call.styles()))?;
            }
        } else {
            let items = list["items"].as_array().cloned().unwrap_or_default();
            let kept = items.into_iter().filter(|item| wanted(&Happened::of(item)));
            output::tree(
                &output::list(kept.map(output::without_managers).collect()),
                &call.format(),
            )?;
        }
        Ok(Exit::Done)
    }))
}

async fn follow(
    call: &Call,
    server: &Server,
    selection: Selection,
    wanted: &dyn Fn(&Happened) -> bool,
) -> Result<Exit, CliError> {
    let mut watch = Watch::new(
        server,
        kinds::event(),
        selection,
        Form::Objects,
        call.global.timeout,
    );
    let mut headers = call.headers();
    while let Some(seen) = watch.next().await.map_err(|error| server.failed(error))? {
        let mut items = match seen {
            Seen::All(list) => list["items"].as_array().cloned().unwrap_or_default(),
            Seen::One(Change::Deleted, _) => continue,
            Seen::One(_, event) => vec![event],
        };
        items.retain(|item| wanted(&Happened::of(item)));
        items.sort_by_key(|item| Happened::of(item).last_seen);
        if items.is_empty() {
            continue;
        }
        let reader = if call.format().is_table() {
            let events: Vec<_> = items.iter().map(Happened::of).collect();
            let text = table(&events, Timestamp::now()).render(headers, call.styles());
            headers = crate::output::table::Headers::Hidden;
            terminal::print(&text)?
        } else {
            let mut reader = Reader::Reads;
            for item in items {
                if reader == Reader::Reads {
                    reader = output::tree(&output::without_managers(item), &call.format())?;
                }
            }
            reader
        };
        if reader == Reader::Left {
            break;
        }
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::table::Headers;
    use crate::terminal::Styles;

    #[test]
    fn events_are_oldest_first_with_their_counts() {
        let event = |time: &str, reason: &str, series: Value| {
            json!({"type": "Normal", "reason": reason, "note": "n\u{1b}", "eventTime": time, "series": series,
                "regarding": {"kind": "RoutingPolicy", "name": "default", "uid": "u"}})
        };
        let list = json!({"items": [
            event("2026-11-30T10:00:30.000000Z", "Second", Value::Null),
            event("2026-11-30T09:00:00.000000Z", "First", json!({"count": 3, "lastObservedTime": "2026-11-30T10:00:00.000000Z"}))]});
        let events = read(&list);
        let now = "2026-11-30T10:01:00Z".parse().unwrap();
        assert_eq!(
            table(&events, now).render(Headers::Shown, Styles::PLAIN),
            "LAST SEEN   TYPE     REASON   OBJECT                  NOTE\n\
             60s (x3)    Normal   First    routingpolicy/default   n\\u{1b}\n\
             30s         Normal   Second   routingpolicy/default   n\\u{1b}\n"
        );
    }
}
