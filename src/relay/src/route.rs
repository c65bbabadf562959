//! `relay route` (routing.md 21): one request or a file of them, decided by the router if one answers and in this
//! process otherwise.

mod batch;
mod explain;
mod input;

use std::path::PathBuf;

use api::problem::Problem;
use api::{Decision, RouteRequest};
use clap::Args;
use decision::vocabulary::{Effort, Tier};
use routing::decide::{Explain, Trace};
use routing::reason::Fallback;
use routing::registry::ModelRef;
use routing::request::{Constraints, RequestSettings};
use routing::settings::LayaSettings;

use crate::client::{Asked, Client, Unanswered};
use crate::contact::{self, Contact};
use crate::error::{CliError, Exit};
use crate::local::{Local, LocalError};
use crate::output::{self, Format, json};
use crate::recent::Recent;
use crate::refused::{ProfileFrom, refused};
use crate::spool::Spool;
use crate::summary;
use crate::terminal::{ColorChoice, escape, tell};

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
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    /// When to colour
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto)]
    color: ColorChoice,
}

const AFTER_HELP: &str = "\
Examples:
  relay route \"Fix the login token expiry\"
  relay route --explain --profile economy \"Rename the author field\"
  git log -1 --format=%B | relay route -o json -
  relay route --batch requests.jsonl -o json

Environment:
  LAYA_BASE_URL   address of the router, unless `laya.baseUrl` in settings.json names one
  LAYA_API_KEY    its key, unless auth.json holds one for `laya`
  RELAY_HOME      folder of your files, instead of ~/.relay; settings are in <RELAY_HOME>/agent/settings.json

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
    let (settings, client, spool) = Contact::open()?.into_parts();
    let mut decider = Decider {
        client: Some(client),
        spool,
        answered: false,
        local: None,
        recent: Recent::new(),
        untold: None,
        keywords: settings.laya.keywords.clone(),
        settings: settings.laya,
        settings_file: settings.file,
        fallback: if arguments.no_fallback {
            OnUnreachable::Fail
        } else {
            OnUnreachable::DecideHere
        },
    };
    if let Some(path) = &arguments.batch {
        let done = batch::run(arguments, path, &mut decider);
        decider.finish();
        return done;
    }
    let text = input::text(arguments.text.as_deref().unwrap_or_default())?;
    let request = request(arguments, &decider.settings, text);
    let outcome = decider.decide(&request, profile_from(arguments), arguments.explain)?;
    print(arguments, &outcome)?;
    decider.finish();
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

/// A profile that no flag names comes from the settings.
fn profile_from(arguments: &RouteArguments) -> ProfileFrom {
    match &arguments.profile {
        Some(_) => ProfileFrom::Request,
        None => ProfileFrom::Settings,
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
    spool: Spool,
    /// Whether the router decided anything.
    answered: bool,
    local: Option<Local>,
    recent: Recent,
    settings: LayaSettings,
    settings_file: PathBuf,
    fallback: OnUnreachable,
    /// Why no router decides, until something was decided here and that was said.
    untold: Option<StepDown>,
    /// Words that do not count where a router decides, until that was said.
    keywords: Option<String>,
}

/// Why this process decides.
struct StepDown {
    /// No router, or a busy one.
    told: String,
    /// How to have one.
    advice: &'static str,
}

/// A decision and, if asked for, how it came about.
struct Outcome {
    decision: Decision,
    trace: Option<Trace>,
}

impl Decider {
    fn decide(
        &mut self,
        request: &RouteRequest,
        profile: ProfileFrom,
        explain: bool,
    ) -> Result<Outcome, CliError> {
        // What cannot be is not worth a question, and a question would say more than what is wrong.
        request
            .check()
            .map_err(|errors| refused("", &errors, &self.settings_file, profile))?;
        if let Some(client) = &self.client {
            match client.route(request, explain)? {
                Asked::Answered(answer) => {
                    let address = client.router().origin.clone();
                    self.answered = true;
                    self.tell_of_keywords(&address);
                    self.recent.routed(request, &answer.decision);
                    return Ok(Outcome {
                        decision: answer.decision,
                        trace: answer.trace,
                    });
                }
                Asked::Refused(problem) => return Err(self.obeyed(client, &problem, profile)),
                Asked::Unanswered(why) => self.step_down(why)?,
            }
        }
        let local = match &mut self.local {
            Some(local) => local,
            none => none.insert(Local::new(&self.settings)?),
        };
        let explain = if explain { Explain::Yes } else { Explain::No };
        let fallback = Some(Fallback::RouterUnreachable);
        let decided = local.decide(request, &mut self.recent, fallback, explain);
        let decided = decided.map_err(|error| self.undecided(error, profile))?;
        self.tell_of_step_down();
        Ok(Outcome {
            decision: decided.decision,
            trace: decided.trace,
        })
    }

    /// What waits for a router goes out where one answered, after everything else.
    fn finish(&self) {
        if let Some(client) = self.client.as_ref().filter(|_| self.answered) {
            contact::deliver(&self.spool, client, self.settings.telemetry);
        }
    }

    /// A router that refuses is obeyed, in the words of who asked.
    fn obeyed(&self, client: &Client, problem: &Problem, profile: ProfileFrom) -> CliError {
        if problem.slug() != "invalid-request" || problem.errors.is_empty() {
            return client.refusal(problem);
        }
        let said = "the router refused: ";
        let error = refused(said, &problem.errors, &self.settings_file, profile);
        match &problem.hint {
            Some(hint) => error.or_hint(|| hint.clone()),
            None => error,
        }
    }

    /// Why nothing was decided here. That no router was asked may be the reason: it may know more names.
    fn undecided(&self, error: LocalError, profile: ProfileFrom) -> CliError {
        let error = match error {
            LocalError::Refused(errors) => refused("", &errors, &self.settings_file, profile),
            LocalError::Other(error) => error,
        };
        match &self.untold {
            Some(StepDown { told, .. }) => {
                error.or_hint(|| format!("{told}, so only what is built in was known"))
            }
            None => error,
        }
    }

    /// Asks the router no more.
    fn step_down(&mut self, why: Unanswered) -> Result<(), CliError> {
        let Some(client) = self.client.take() else {
            return Ok(());
        };
        let address = &client.router().origin;
        if self.fallback == OnUnreachable::Fail {
            return Err(why.into_error(address));
        }
        let advice = match why {
            Unanswered::Absent(_) => ". To start one: relayd router",
            Unanswered::Stranger(_) | Unanswered::Busy(_) => "",
        };
        let told = why.describe(address);
        self.untold = Some(StepDown { told, advice });
        Ok(())
    }

    /// Says once that this process decided, now that it did.
    fn tell_of_step_down(&mut self) {
        if let Some(StepDown { told, advice }) = self.untold.take() {
            let told = escape(&told);
            tell(&format!(
                "note: {told}; decided in this process by rules{advice}\n"
            ));
        }
    }

    /// Says once that the user's words did not count.
    fn tell_of_keywords(&mut self, address: &str) {
        if let Some(path) = self.keywords.take() {
            let told = format!(
                "the words of {path} (`laya.keywords`) count only where this process decides; the router at {address} has its own"
            );
            tell(&format!("note: {}\n", escape(&told)));
        }
    }
}

fn print(arguments: &RouteArguments, outcome: &Outcome) -> Result<(), CliError> {
    let styles = arguments.color.for_stdout();
    let text = match arguments.output {
        Format::Json if arguments.explain => {
            let document =
                serde_json::json!({ "decision": outcome.decision, "trace": outcome.trace });
            format!("{document:#}\n")
        }
        Format::Json => json(&outcome.decision)? + "\n",
        Format::Table => {
            let mut text = summary::render(&outcome.decision, styles);
            if let Some(trace) = &outcome.trace {
                text.push_str(&explain::render(trace, styles));
            }
            text
        }
    };
    output::print(&text)
}
