//! `relay laya memory` (routing.md 14): the learned tasks of the router that is in force.

mod forget;
mod text;

use api::exchange::{MemoryPatch, MemoryResponse, MemoryTask};
use clap::{Args, Subcommand};
use ureq::http::Method;

use crate::client::{OLDER, Question, encode};
use crate::contact::Contact;
use crate::error::{CliError, Exit};
use crate::output::OutputArguments;
use crate::terminal::tell;

/// Arguments of `relay laya memory`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct MemoryArguments {
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    /// Lists the learned tasks, oldest first
    List {
        /// Only those whose labels do not fit the questions in force
        #[arg(long)]
        stale: bool,

        #[command(flatten)]
        output: OutputArguments,
    },
    /// Shows one with its labels and its lesson
    Show {
        /// Its id
        #[arg(value_name = "ID", value_parser = parse_id)]
        id: String,

        #[command(flatten)]
        output: OutputArguments,
    },
    /// Finds those that are similar to a text, closest first
    Search {
        /// The text
        #[arg(required = true, value_name = "TEXT")]
        text: Vec<String>,

        #[command(flatten)]
        output: OutputArguments,
    },
    /// Changes what one taught
    Edit {
        /// Its id
        #[arg(value_name = "ID", value_parser = parse_id)]
        id: String,

        /// The new lesson; a blank one removes it
        #[arg(long, value_name = "TEXT")]
        lesson: String,

        #[command(flatten)]
        output: OutputArguments,
    },
    /// Removes learned tasks for good
    Forget(forget::ForgetArguments),
}

const AFTER_HELP: &str = "\
Examples:
  relay laya memory list
  relay laya memory search \"fix the date parser\"
  relay laya memory edit s00012 --lesson \"The parser is in two places; change both.\"
  relay laya memory forget s00012 s00013
  relay laya memory forget --all --yes

Exit codes: 0 done, 1 other error (also: no such task, or a `no` to the question), 2 bad arguments,
4 no router answers";

/// What may help where a task is not there.
const UNKNOWN: &str = "`relay laya memory list` tells what there is";

/// An id as rows have it; a text that could be part of a path is none.
fn parse_id(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if text.is_empty() || text.len() > 64 || !text.bytes().all(fits) {
        return Err("an id looks like s00012; `relay laya memory list` tells them".to_owned());
    }
    Ok(text.to_owned())
}

/// Runs the command.
pub(super) fn run(arguments: &MemoryArguments) -> Result<Exit, CliError> {
    let contact = Contact::open()?;
    match &arguments.command {
        MemoryCommand::List { stale, output } => list(&contact, *stale, output)?,
        MemoryCommand::Show { id, output } => {
            let task = show(&contact, id)?;
            output.print(&task, |styles| text::task(&task, styles))?;
        }
        MemoryCommand::Search { text, output } => search(&contact, &text.join(" "), output)?,
        MemoryCommand::Edit { id, lesson, output } => edit(&contact, id, lesson, output)?,
        MemoryCommand::Forget(arguments) => forget::run(&contact, arguments)?,
    }
    contact.finish();
    Ok(Exit::Done)
}

fn list(contact: &Contact, stale: bool, output: &OutputArguments) -> Result<(), CliError> {
    let path = if stale {
        "/v1/memory?stale=true"
    } else {
        "/v1/memory"
    };
    let memory: MemoryResponse =
        contact
            .client
            .find(Question::get(path), "list of learned tasks", OLDER)?;
    output.print(&memory, |styles| text::list(&memory.tasks, styles))?;
    tell(&text::totals(&memory, stale));
    Ok(())
}

fn show(contact: &Contact, id: &str) -> Result<MemoryTask, CliError> {
    let path = format!("/v1/memory/{}", encode(id));
    contact
        .client
        .find(Question::get(&path), "learned task", UNKNOWN)
}

fn search(contact: &Contact, text: &str, output: &OutputArguments) -> Result<(), CliError> {
    if text.trim().is_empty() {
        return Err(CliError::usage("the text to search for is blank"));
    }
    let path = format!("/v1/memory/search?q={}", encode(text));
    let found: MemoryResponse =
        contact
            .client
            .find(Question::get(&path), "list of learned tasks", OLDER)?;
    output.print(&found, |styles| text::list(&found.tasks, styles))?;
    if found.tasks.is_empty() {
        tell("no learned task has a word of it\n");
    }
    Ok(())
}

fn edit(
    contact: &Contact,
    id: &str,
    lesson: &str,
    output: &OutputArguments,
) -> Result<(), CliError> {
    let path = format!("/v1/memory/{}", encode(id));
    let patch = MemoryPatch {
        lesson: lesson.to_owned(),
    };
    let question = Question::new(Method::PATCH, &path).json(&patch)?;
    let task: MemoryTask = contact.client.find(question, "learned task", UNKNOWN)?;
    output.print(&task, |styles| text::task(&task, styles))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_lead_to_another_route() {
        for (id, fits) in [
            ("s00012", true),
            ("r1-a_b", true),
            ("", false),
            ("search?q=x", false),
            ("../policy", false),
            ("s 1", false),
        ] {
            assert_eq!(parse_id(id).is_ok(), fits, "{id}");
        }
        assert!(parse_id(&"s".repeat(65)).is_err());
    }
}
