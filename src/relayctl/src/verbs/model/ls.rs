//! `relayctl model ls`: the table of training 13. What there is no data for is `-`.

use clap::Args;
use serde_json::Value;

use crate::call::Call;
use crate::daemon::calls::{self, Engine, StoredModel};
use crate::error::CliError;
use crate::facts::{self, Laya, Model, short};
use crate::kinds::{self, Kind};
use crate::output::table::Table;
use crate::output::{self, Format};
use crate::server::{Form, Selection, Server};
use crate::terminal;
use crate::verbs::rollout::minute;
use api::exit::Exit;

/// Arguments of `relayctl model ls`.
#[derive(Debug, Args)]
#[command(after_help = "\
STATE is what the version is in a LayaServer, else how far it is. TEST is the accuracy its gate found last. What the models
volume holds beside the versions is listed below the table and left alone; `relayctl model prune` deletes files without an
object.")]
pub(crate) struct ListArguments {}

const COLUMNS: [&str; 9] = [
    "NAME", "STATE", "GATE", "TEST", "SEEN", "HELD OUT", "TASKS", "CREATED", "SIZE",
];
/// With `-o wide`.
const WIDE: [&str; 4] = ["CHECKPOINT", "CONTRACT", "READY", "REASON"];
const NONE: &str = "-";

/// Shows them.
pub(super) async fn run(call: &Call, arguments: &ListArguments) -> Result<Exit, CliError> {
    let ListArguments {} = *arguments;
    let server = call.connect().await?;
    let models = all(&server, kinds::laya_model()).await?;
    if !call.format().is_table() {
        let models = models
            .into_iter()
            .map(|model| named(model, kinds::laya_model()));
        let models = models.map(output::without_managers).collect();
        output::tree(&output::list(models), &call.format())?;
        return Ok(Exit::Done);
    }
    let servers = all(&server, kinds::laya_server()).await?;
    let beside = match server.context.is_local() {
        true => beside(call, &server, &models).await,
        false => Vec::new(),
    };
    let mut out = String::new();
    if models.is_empty() {
        call.tell(&format!(
            "no LayaModels in namespace {}; `relayctl up` makes the shipped one",
            server.namespace
        ));
    } else {
        let table = table(&models, &servers, &call.format());
        out.push_str(&table.render(call.headers(), call.styles()));
    }
    if !beside.is_empty() && !out.is_empty() {
        out.push('\n');
    }
    for line in beside {
        out.push_str(&output::visible(&format!("{line}\n")));
    }
    // The table has made its cells visible already, and styles are no part of them.
    terminal::print(&out)?;
    Ok(Exit::Done)
}

async fn all(server: &Server, kind: &'static Kind) -> Result<Vec<Value>, CliError> {
    let list = server
        .list(kind, &Selection::within(&server.namespace), Form::Objects)
        .await;
    let mut list = list.map_err(|error| server.failed(error))?;
    Ok(match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}

/// With what an API leaves out in a list.
fn named(mut object: Value, kind: &Kind) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.entry("apiVersion")
            .or_insert_with(|| kind.api_version().into());
        map.entry("kind").or_insert_with(|| kind.kind.into());
    }
    object
}

fn table(models: &[Value], servers: &[Value], format: &Format) -> Table {
    let wide = *format == Format::Wide;
    let columns: Vec<&str> = match wide {
        true => COLUMNS.iter().chain(&WIDE).copied().collect(),
        false => COLUMNS.to_vec(),
    };
    let mut table = Table::new(&columns);
    let mut rows: Vec<_> = models
        .iter()
        .map(|object| (created(object), object))
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, object) in rows {
        table.push(row(Model(object), servers, wide));
    }
    table
}

/// The shipped one first, then as they were made.
fn created(object: &Value) -> (bool, String, String) {
    let at = object["metadata"]["creationTimestamp"]
        .as_str()
        .unwrap_or_default();
    let shipped = Model(object).is_shipped();
    (!shipped, at.to_owned(), facts::name(object).to_owned())
}

fn row(model: Model<'_>, servers: &[Value], wide: bool) -> Vec<String> {
    let score = model.score();
    let accuracy = score
        .and_then(|score| score["accuracy"].as_str()?.parse().ok())
        .map_or(NONE.to_owned(), |accuracy| facts::percent(accuracy, 1));
    let verdict = score.and_then(|score| facts::text(&score["verdict"]));
    let at = facts::time(&model.0["metadata"]["creationTimestamp"]);
    let created = match (model.is_shipped(), at) {
        (true, _) => "shipped".to_owned(),
        (false, Some(at)) => minute(at),
        (false, None) => NONE.to_owned(),
    };
    let mut row = vec![
        model.name().to_owned(),
        state(model, servers),
        verdict.unwrap_or(NONE).to_owned(),
        accuracy,
        NONE.to_owned(),
        NONE.to_owned(),
        NONE.to_owned(),
        created,
        model.size().map_or(NONE.to_owned(), facts::bytes),
    ];
    if wide {
        let ready = crate::conditions::find(model.0, "Ready");
        let digest = model.digest();
        let status = &model.0["status"];
        let contract =
            facts::text(&status["contract"]).or(facts::text(&model.0["spec"]["contract"]));
        row.extend([
            digest.as_deref().map_or(NONE, short).to_owned(),
            contract.map_or(NONE, short).to_owned(),
            ready
                .as_ref()
                .map_or(NONE.to_owned(), |ready| ready.status.clone()),
            ready.map_or(NONE.to_owned(), |ready| ready.reason),
        ]);
    }
    row
}

/// What it is for a server, else how far it is.
fn state(model: Model<'_>, servers: &[Value]) -> String {
    if facts::is_deleting(model.0) {
        return "deleting".to_owned();
    }
    let roles = servers.iter().filter_map(|object| {
        let role = Laya(object).role_of(model.name())?;
        Some((role, facts::name(object)))
    });
    let mut roles: Vec<_> = roles.collect();
    roles.sort_unstable();
    match roles[..] {
        [(role, _)] if servers.len() == 1 => return role.to_owned(),
        [] => {}
        _ => {
            let all: Vec<_> = roles
                .iter()
                .map(|(role, server)| format!("{role} of {server}"))
                .collect();
            return all.join(", ");
        }
    }
    if model.is_ready() {
        return "ready".to_owned();
    }
    if model.is_suspended() && matches!(model.phase(), "Pending") {
        return "not fetched".to_owned();
    }
    let phase = model.phase().to_lowercase();
    match (
        model.phase(),
        model.fetch().and_then(|fetch| fetch.percent()),
        model.trouble(),
    ) {
        ("Fetching" | "Repairing", Some(percent), _) => format!("{phase} {percent} %"),
        ("Failed", _, Some(trouble)) => format!("failed: {}", trouble.reason),
        _ => phase,
    }
}

/// What the models volume holds beside the versions of objects. That it cannot be asked is said and no error.
async fn beside(call: &Call, server: &Server, models: &[Value]) -> Vec<String> {
    match calls::engine(server).await {
        Ok(engine) => {
            if let Some(why) = &engine.models_unknown {
                call.tell(&format!(
                    "note: what else the models volume holds is not known: {why}"
                ));
            }
            unnamed(&engine, models)
        }
        Err(error) => {
            call.tell(&format!(
                "note: what else the models volume holds is not known: {}",
                error.line()
            ));
            Vec::new()
        }
    }
}

fn unnamed(engine: &Engine, models: &[Value]) -> Vec<String> {
    let known: Vec<_> = models
        .iter()
        .filter_map(|model| Model(model).digest())
        .collect();
    let volume = engine.models_volume.as_ref();
    let place = volume.map_or("the models volume", |volume| volume.name.as_str());
    let damaged = |stored: &StoredModel| {
        let damage = stored.damage.as_deref();
        damage.map_or(String::new(), |why| format!(", damaged: {why}"))
    };
    let (with, without): (Vec<_>, Vec<_>) = engine
        .models
        .iter()
        .partition(|stored| known.contains(&stored.digest));
    let mut lines: Vec<_> = without
        .into_iter()
        .map(|stored| {
            let kept = if stored.keep { ", kept on purpose" } else { "" };
            format!(
                "without an object in {place}: {} ({}){kept}{}",
                short(&stored.digest),
                facts::bytes(stored.size_bytes),
                damaged(stored)
            )
        })
        .collect();
    let with = with.into_iter().filter(|stored| stored.damage.is_some());
    lines.extend(
        with.map(|stored| format!("in {place}: {}{}", short(&stored.digest), damaged(stored))),
    );
    let folders = volume.map_or(&[][..], |volume| &volume.unknown_folders);
    if !folders.is_empty() {
        lines.push(format!(
            "unknown folders in {place}, left alone: {}",
            folders.join(", ")
        ));
    }
    let then = volume.and_then(|volume| volume.seen_at.as_deref());
    if let Some(at) = then.filter(|_| !lines.is_empty()) {
        lines.push(format!(
            "as a task saw it at {at}; `relayctl model prune --dry-run` looks again"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::Manifest;
    use crate::output::table::Headers;
    use crate::terminal::Styles;

    #[test]
    fn the_table_is_that_of_the_page() {
        let models = [
            json!({"metadata": {"name": "local-1", "creationTimestamp": "2026-11-30T09:41:12Z", "generation": 1}, "spec": {},
                "status": {"sizeBytes": 678_202_866, "scores": [{"verdict": "Passed", "accuracy": "0.941"}]}}),
            json!({"metadata": {"name": "v1", "creationTimestamp": "2026-11-29T09:41:12Z"},
                "spec": {"source": {"http": Manifest::shipped().to_source()}}, "status": {"scores": [{"accuracy": "0.938"}]}}),
            json!({"metadata": {"name": "new", "creationTimestamp": "2026-11-30T10:00:00Z"}, "spec": {},
                "status": {"phase": "Fetching", "fetch": {"bytesDone": 43, "bytesTotal": 100}}}),
            json!({"metadata": {"name": "bad", "creationTimestamp": "2026-11-30T10:01:00Z"}, "spec": {},
                "status": {"phase": "Failed", "conditions": [{"type": "Stalled", "status": "True", "reason": "DigestMismatch"}]}}),
            json!({"metadata": {"name": "later", "creationTimestamp": "2026-11-30T10:02:00Z"}, "spec": {"suspend": true}}),
        ];
        let servers = [
            json!({"metadata": {"name": "main"}, "status": {"champion": {"model": "local-1"}, "previous": {"model": "v1"}}}),
        ];
        assert_eq!(
            table(&models, &servers, &Format::Table).render(Headers::Shown, Styles::PLAIN),
            "\
NAME      STATE                    GATE     TEST     SEEN   HELD OUT   TASKS   CREATED            SIZE
v1        previous                 -        93.8 %   -      -          -       shipped            678 MB
local-1   champion                 Passed   94.1 %   -      -          -       2026-11-30 09:41   678 MB
new       fetching 43 %            -        -        -      -          -       2026-11-30 10:00   -
bad       failed: DigestMismatch   -        -        -      -          -       2026-11-30 10:01   -
later     not fetched              -        -        -      -          -       2026-11-30 10:02   -
"
        );
    }

    #[test]
    fn several_servers_are_named() {
        let model = json!({"metadata": {"name": "m"}});
        let servers = [
            json!({"metadata": {"name": "a"}, "status": {"champion": {"model": "m"}}}),
            json!({"metadata": {"name": "b"}, "status": {"candidate": {"model": "m"}}}),
        ];
        assert_eq!(
            state(Model(&model), &servers),
            "candidate of b, champion of a"
        );
    }

    #[test]
    fn what_has_no_object_is_listed() {
        let engine: Engine = serde_json::from_value(json!({"backend": "docker", "reachable": true,
            "modelsVolume": {"name": "relay-abc-models", "freeBytes": 1, "totalBytes": 2, "unknownFolders": ["old", "x\u{1b}"]},
            "models": [{"digest": "sha256:aaaaaaaaaaaaaa", "sizeBytes": 1000, "keep": true},
                {"digest": "sha256:bbbbbbbbbbbbbb", "sizeBytes": 2000, "keep": false, "damage": "config.json has 3 bytes, not 2"}]}))
        .unwrap();
        let models = [json!({"status": {"digest": "sha256:bbbbbbbbbbbbbb"}})];
        assert_eq!(
            unnamed(&engine, &models),
            [
                "without an object in relay-abc-models: aaaaaaaaaaaa (1.0 kB), kept on purpose",
                "in relay-abc-models: bbbbbbbbbbbb, damaged: config.json has 3 bytes, not 2",
                "unknown folders in relay-abc-models, left alone: old, x\u{1b}"
            ]
        );
        let mut earlier = engine;
        earlier.models_volume.as_mut().unwrap().seen_at = Some("2026-11-30T10:00:00Z".to_owned());
        let last = unnamed(&earlier, &models).pop().unwrap();
        assert!(
            last.starts_with("as a task saw it at 2026-11-30T10:00:00Z"),
            "{last}"
        );
    }
}
