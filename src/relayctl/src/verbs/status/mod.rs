//! `relayctl status`: one screen of what runs, what decides, what is missing and what is wrong, each problem with the
//! command that fixes it. The facts are gathered first; what they mean is pure.

mod overview;
mod problems;

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::Value;

pub(crate) use self::problems::{
    Missing, engine_line, engine_problems, lost, no_model, port_problem,
};
use crate::call::Call;
use crate::daemon::calls::{self, Engine};
use crate::daemon::{self, Model, State};
use crate::error::CliError;
use crate::kinds::{self, Kind};
use crate::output;
use crate::router::Router;
use crate::server::{Form, Selection, Server};
use crate::terminal;
use crate::verbs::up;
use api::exit::Exit;

/// What was found.
#[derive(Debug, Default)]
struct Facts {
    /// Only of this machine.
    daemon: Option<State>,
    /// Why the object API does not answer.
    api: Option<Unanswered>,
    /// What models run in; nothing where it was not asked.
    engine: Option<Engine>,
    /// Why the engine's state is not known.
    engine_error: Option<String>,
    /// Whether variables of the daemon name a model.
    own_model: bool,
    /// Whether they name an address of the router.
    own_address: bool,
    /// Who has the router's own port.
    port_holder: Option<String>,
    /// Why there is no model.
    model: Option<Model>,
    /// Stores that were set aside.
    lost: Vec<Missing>,
    /// Bytes that can still be written on this machine.
    free: Option<u64>,
    /// Where that is: `RELAY_HOME`.
    home: Option<PathBuf>,
    health: Option<Value>,
    router_error: Option<String>,
    report: Option<Value>,
    in_force: Option<Value>,
    objects: Vec<(&'static Kind, Vec<Value>)>,
}

impl Facts {
    fn of_kind(&self, name: &str) -> &[Value] {
        let found = self.objects.iter().find(|(kind, _)| kind.kind == name);
        found.map_or(&[][..], |(_, objects)| &objects[..])
    }
}

/// Why an API does not answer.
#[derive(Debug)]
struct Unanswered {
    exit: Exit,
    why: String,
    hint: Option<String>,
}

/// Shows it.
pub(crate) async fn run(call: &Call) -> Result<Exit, CliError> {
    let server = call.connect().await?;
    let facts = gather(call, &server).await?;
    let now = Timestamp::now();
    let overview = overview::overview(&facts, &server.context, &server.namespace, now);
    if call.format().is_table() {
        let text = overview.render(call.styles());
        terminal::print(&call.program.speak(&text))?;
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
        if let State::Runs(endpoint) = &state {
            if let Some(url) = &endpoint.router {
                ask_router(url, &mut facts).await;
                facts.model = up::model_said(&places, endpoint);
            }
            facts.own_model = up::has_own_model(endpoint);
            facts.own_address = up::has_own_address(endpoint);
            facts.port_holder = daemon::port_holder(problems::PORT);
        }
        facts.lost = lost(&places);
        facts.free = daemon::free_bytes(&places.relay).ok();
        facts.home = Some(places.relay.clone());
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
    if server.context.is_local() && facts.api.is_none() {
        match calls::engine(server).await {
            Ok(engine) => facts.engine = Some(engine),
            Err(error) => facts.engine_error = Some(error.line().to_owned()),
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
