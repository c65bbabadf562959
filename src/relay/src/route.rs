//! `relay route` (routing.md 21): one request or a file of them, decided by the router if one answers and in this
//! process otherwise.

mod batch;
mod explain;
mod input;
mod table;

use std::io::Write;
use std::time::Duration;

use api::{Decision, RouteRequest};
use clap::{Args, ValueEnum};
use decision::vocabulary::{Effort, Tier};
use routing::decide::{Explain, Trace};
use routing::reason::Fallback;
use routing::registry::ModelRef;
use routing::request::{Constraints, RequestSettings};
use routing::settings::LayaSettings;

use crate::client::{Asked, Client};
use crate::error::{CliError, Exit};
use crate::home::Home;
use crate::local::Local;
use crate::terminal::{ColorChoice, Styles, escape};

/// Arguments of `relay route`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RouteArguments {
    /// The request; `-` reads it from standard input
    #[arg(
        required_unless_present = "batch",
        conflicts_with = "batch",
        value_name = "TEXT|-"
    )]
    text: Option<std::ffi::OsString>,

    /// Decide every line of a file of JSON objects `{"request", "profile"?, "conversation_id"?}`; `-` reads standard input
    #[arg(long, value_name = "FILE|-")]
    batch: Option<std::path::PathBuf>,

    /// Cost profile: economy, balanced, quality, critical, or one of the policy
    #[arg(long)]
    profile: Option<String>,

    /// Use this model, whatever the policy says
    #[arg(long, value_name = "PROVIDER/MODEL", value_parser = parse_model)]
    model: Option<ModelRef>,

    /// Use this tier: fast, balanced, strong, frontier
    #[arg(long, value_parser = parse_word::<Tier>)]
    tier: Option<Tier>,

    /// Use this effort: minimal, low, medium, high, extra_high
    #[arg(long, value_parser = parse_word::<Effort>)]
    effort: Option<Effort>,

    /// Providers you have credentials for, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    providers: Option<Vec<String>>,

    /// Tell how the decision came about, step by step
    #[arg(long, conflicts_with = "batch")]
    explain: bool,

    /// Decide without storing the decision
    #[arg(long)]
    dry_run: bool,

    /// Fail if no router answers, instead of deciding in this process
    #[arg(long)]
    no_fallback: bool,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,

    /// When to colour
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto)]
    color: ColorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Table,
    /// The decision record
    Json,
}

const AFTER_HELP: &str = "\
Examples:
  relay route \"Fix the login token expiry\"
  relay route --explain --profile economy \"Rename the author field\"
  git log -1 --format=%B | relay route -o json -
  relay route --batch requests.jsonl -o json

Exit codes: 0 decided, 1 other error (or a bad line of a batch), 2 bad arguments or input,
3 no model can run it, 4 no router answers and --no-fallback was given";

fn parse_model(text: &str) -> Result<ModelRef, String> {
    ModelRef::parse(text).map_err(|error| error.to_string())
}

fn parse_word<T: std::str::FromStr<Err = decision::vocabulary::UnknownWord>>(
    text: &str,
) -> Result<T, String> {
    text.parse()
        .map_err(|error: decision::vocabulary::UnknownWord| error.to_string())
}

/// Runs the command.
pub(crate) fn run(arguments: &RouteArguments) -> Result<Exit, CliError> {
    let environment = |name: &str| std::env::var_os(name);
    let home = Home::find(&environment)?;
    let settings = home.settings()?;
    for note in &settings.notes {
        eprintln!("note: {}", escape(note));
    }
    let router = home.router(&settings.laya, &environment)?;
    let timeout = Duration::from_millis(u64::from(settings.laya.timeout_millis));
    let mut decider = Decider {
        client: Some(Client::new(router, timeout)),
        local: None,
        settings: settings.laya,
        fallback: if arguments.no_fallback {
            OnUnreachable::Fail
        } else {
            OnUnreachable::DecideHere
        },
    };
    if let Some(path) = &arguments.batch {
        return batch::run(arguments, path, &mut decider);
    }
    let text = input::text(arguments.text.as_deref().unwrap_or_default())?;
    let request = request(arguments, &decider.settings, text);
    let outcome = decider.decide(&request, arguments.explain)?;
    print(arguments, &outcome)?;
    Ok(Exit::Done)
}

/// The request that the arguments and the user's settings stand for.
fn request(arguments: &RouteArguments, laya: &LayaSettings, text: String) -> RouteRequest {
    RouteRequest {
        profile: arguments.profile.clone().or_else(|| laya.profile.clone()),
        providers: arguments.providers.clone(),
        quota: laya.quota.clone(),
        settings: RequestSettings {
            min_confidence: laya.min_confidence,
            escalate_after_failures: laya.escalate_after_failures,
            memory: laya.memory,
            telemetry: laya.telemetry,
            tool_routing: laya.tool_routing,
            tiers: laya.tiers.clone(),
            exploration: laya.exploration,
            switch_price: laya.switch_price,
            baseline: laya.baseline.clone(),
        },
        constraints: Constraints {
            model: arguments.model.clone(),
            tier: arguments.tier,
            effort: arguments.effort,
            ..Constraints::default()
        },
        dry_run: arguments.dry_run,
        ..RouteRequest::new(text)
    }
}

/// What happens when no router answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnUnreachable {
    DecideHere,
    Fail,
}

/// The router while it answers, this process afterwards.
struct Decider {
    client: Option<Client>,
    local: Option<Local>,
    settings: LayaSettings,
    fallback: OnUnreachable,
}

/// A decision and, if asked for, how it came about.
struct Outcome {
    decision: Decision,
    trace: Option<Trace>,
}

impl Decider {
    fn decide(&mut self, request: &RouteRequest, explain: bool) -> Result<Outcome, CliError> {
        if let Some(client) = &self.client {
            match client.route(request, explain)? {
                Asked::Decided(answer) => {
                    return Ok(Outcome {
                        decision: answer.decision,
                        trace: answer.trace,
                    });
                }
                Asked::Unreachable(why) => self.step_down(&why)?,
            }
        }
        let local = match &mut self.local {
            Some(local) => local,
            none => none.insert(Local::new(&self.settings)?),
        };
        let explain = if explain { Explain::Yes } else { Explain::No };
        let decided = local.decide(request, Some(Fallback::RouterUnreachable), explain)?;
        Ok(Outcome {
            decision: decided.decision,
            trace: decided.trace,
        })
    }

    /// Says once that no router answers, and asks it no more.
    fn step_down(&mut self, why: &str) -> Result<(), CliError> {
        let Some(client) = self.client.take() else {
            return Ok(());
        };
        let told = format!("no router at {} ({why})", client.address());
        if self.fallback == OnUnreachable::Fail {
            return Err(
                CliError::new(Exit::Unreachable, told).hint("start one with `relayd router`")
            );
        }
        eprintln!(
            "note: {}; decided in this process by rules. To start one: relayd router",
            escape(&told)
        );
        Ok(())
    }
}

fn print(arguments: &RouteArguments, outcome: &Outcome) -> Result<(), CliError> {
    let styles = Styles::for_stdout(arguments.color);
    let text = match arguments.output {
        Output::Json if arguments.explain => {
            let document =
                serde_json::json!({ "decision": outcome.decision, "trace": outcome.trace });
            format!("{document:#}\n")
        }
        Output::Json => json(&outcome.decision)? + "\n",
        Output::Table => {
            let mut text = table::render(&outcome.decision, styles);
            if let Some(trace) = &outcome.trace {
                text.push_str(&explain::render(trace, styles));
            }
            text
        }
    };
    write_out(&text)
}

fn json(decision: &Decision) -> Result<String, CliError> {
    serde_json::to_string(decision).map_err(|error| {
        CliError::new(
            Exit::Failed,
            format!("cannot write the decision as JSON: {error}"),
        )
    })
}

fn write_out(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| {
        CliError::new(
            Exit::Failed,
            format!("cannot write to standard output: {error}"),
        )
    })
}
