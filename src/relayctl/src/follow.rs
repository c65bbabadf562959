//! One object, watched until something is so, with what happens meanwhile said as it comes.

use std::time::Duration;

use serde_json::Value;

use crate::call::Call;
use crate::error::CliError;
use crate::kinds::Kind;
use crate::server::{Form, Selection, Server, first};
use crate::terminal::Progress;
use crate::verbs::too_long;
use crate::watch::{Change, Seen, Watch};
use api::exit::Exit;

/// What is thought of an object as it is now.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// It is so.
    Done(T),
    /// It will not be so.
    Failed(CliError),
    /// Not yet: what is told of it.
    Waits(Line),
}

/// What is told meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line that stays.
    Stays(String),
    /// One that the next replaces on a terminal, as a number that grows.
    Moves(String),
}

impl Line {
    fn text(&self) -> &str {
        match self {
            Self::Stays(text) | Self::Moves(text) => text,
        }
    }
}

/// Watches until it is so, will not be so, or the time is over.
///
/// # Errors
/// What the judgement says; [`Exit::NotFound`] when the object is deleted; [`Exit::TimedOut`] with the last line.
pub(crate) async fn follow<T>(
    call: &Call,
    server: &Server,
    kind: &Kind,
    name: &str,
    patience: Duration,
    mut judge: impl FnMut(&Value) -> Step<T>,
) -> Result<T, CliError> {
    let selection = Selection::of_name(&server.namespace, name);
    let mut watch = Watch::new(server, kind, selection, Form::Objects, Some(patience));
    let mut progress = Progress::new();
    let mut last = "nothing was seen of it yet".to_owned();
    while let Some(seen) = watch.next().await.map_err(|error| server.failed(error))? {
        let object = match seen {
            Seen::All(list) => first(&list),
            Seen::One(Change::Deleted, _) => None,
            Seen::One(_, object) => Some(object),
        };
        let Some(object) = object else {
            let line = format!("{} was deleted meanwhile", kind.brief(name));
            return Err(CliError::new(Exit::NotFound, line));
        };
        match judge(&object) {
            Step::Done(found) => return Ok(found),
            Step::Failed(error) => return Err(error),
            Step::Waits(line) => {
                match &line {
                    Line::Stays(text) => progress.say(&call.program.speak(text)),
                    Line::Moves(text) => progress.show(&call.program.speak(text)),
                }
                line.text().clone_into(&mut last);
            }
        }
    }
    Err(too_long(kind, name, patience, &last))
}
