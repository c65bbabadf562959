//! `relay laya memory forget`: what will be lost is looked up and asked about before anything is.

use api::exchange::{ForgetResponse, MemoryResponse};
use clap::Args;
use ureq::http::Method;

use super::{UNKNOWN, parse_id, show, text};
use crate::client::{OLDER, Question, encode};
use crate::confirm;
use crate::contact::Contact;
use crate::error::{CliError, Exit};
use crate::output::{OutputArguments, one_line};

/// Arguments of `relay laya memory forget`.
#[derive(Debug, Args)]
pub(super) struct ForgetArguments {
    /// Ids of the tasks
    #[arg(
        required_unless_present_any = ["session", "all"],
        conflicts_with_all = ["session", "all"],
        value_name = "ID",
        value_parser = parse_id
    )]
    ids: Vec<String>,

    /// Every task of a session
    #[arg(long, value_name = "SESSION ID", conflicts_with = "all")]
    session: Option<String>,

    /// Everything
    #[arg(long)]
    all: bool,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(contact: &Contact, arguments: &ForgetArguments) -> Result<(), CliError> {
    if !arguments.yes && !confirm::can_ask() {
        return Err(CliError::usage(
            "forgetting cannot be taken back, and nobody is here to be asked",
        )
        .hint("`--yes` forgets without a question"));
    }
    // Also with `--yes`: a task that is not there stops it before any other is gone.
    let question = question(contact, arguments)?;
    let Some(question) = question else {
        let none = ForgetResponse {
            forgotten: Vec::new(),
            trained_models: Vec::new(),
        };
        return arguments
            .output
            .print(&none, |_| "there is nothing to forget\n".to_owned());
    };
    if !arguments.yes && !confirm::ask(&question)? {
        return Err(CliError::new(Exit::Failed, "nothing was forgotten"));
    }
    let forgotten = forget(contact, arguments)?;
    arguments
        .output
        .print(&forgotten, |_| text::forgotten(&forgotten))
}

/// What is about to be lost, as a question; `None` where that is nothing.
fn question(contact: &Contact, arguments: &ForgetArguments) -> Result<Option<String>, CliError> {
    let number = |count: usize| match count {
        1 => "1 learned task".to_owned(),
        count => format!("{count} learned tasks"),
    };
    if !arguments.ids.is_empty() {
        let mut first = None;
        for id in &arguments.ids {
            let task = show(contact, id)?;
            first.get_or_insert(task.request);
        }
        let request = one_line(&first.unwrap_or_default(), 60);
        return Ok(Some(match arguments.ids.as_slice() {
            [id] => format!("Forget {id} (\"{request}\")?"),
            ids => format!("Forget {}: {}?", number(ids.len()), ids.join(", ")),
        }));
    }
    let memory: MemoryResponse =
        contact
            .client
            .find(Question::get("/v1/memory"), "list of learned tasks", OLDER)?;
    let (count, of) = match &arguments.session {
        Some(session) => {
            let of_session = |task: &&_| session_of(task) == Some(session.as_str());
            let count = memory.tasks.iter().filter(of_session).count();
            (count, format!(" of session {session}"))
        }
        None => (memory.total, ", all there are".to_owned()),
    };
    Ok((count > 0).then(|| format!("Forget {}{of}?", number(count))))
}

fn session_of(task: &api::exchange::MemoryTask) -> Option<&str> {
    task.session.as_deref()
}

fn forget(contact: &Contact, arguments: &ForgetArguments) -> Result<ForgetResponse, CliError> {
    let delete = |path: &str| -> Result<ForgetResponse, CliError> {
        let question = Question::new(Method::DELETE, path);
        contact
            .client
            .find(question, "list of what was forgotten", UNKNOWN)
    };
    if let Some(session) = &arguments.session {
        return delete(&format!("/v1/memory?session={}", encode(session)));
    }
    if arguments.all {
        return delete("/v1/memory?all=true");
    }
    let mut all = ForgetResponse {
        forgotten: Vec::new(),
        trained_models: Vec::new(),
    };
    for id in &arguments.ids {
        let one = match delete(&format!("/v1/memory/{}", encode(id))) {
            Ok(one) => one,
            Err(error) if all.forgotten.is_empty() => return Err(error),
            Err(error) => {
                let gone = all.forgotten.join(", ");
                return Err(CliError::new(
                    error.exit,
                    format!("{error}; forgotten before that: {gone}"),
                ));
            }
        };
        all.forgotten.extend(one.forgotten);
        for model in one.trained_models {
            if !all.trained_models.contains(&model) {
                all.trained_models.push(model);
            }
        }
    }
    Ok(all)
}
