//! `relayctl diff`: what `apply` would change, by a dry run of the server; exit code 15 when anything.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use similar::TextDiff;

use super::apply::{self, Placed, comparable};
use crate::call::{Call, block_on};
use crate::error::CliError;
use crate::input;
use crate::output::{to_yaml, visible};
use crate::server::{Force, Write};
use crate::terminal::{self, Styles};
use api::exit::Exit;

/// Lines around a change.
const CONTEXT: usize = 3;

/// Arguments of `relayctl diff`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  relayctl diff -f policy.yaml\n\nExit code 15 when something would change."
)]
pub(crate) struct DiffArguments {
    /// A file of YAML or JSON, a folder, or `-`; repeatable
    #[arg(short, long = "filename", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// As if fields that others own were taken over
    #[arg(long)]
    force_conflicts: bool,
}

/// Compares files with what is.
pub(crate) fn run(call: &Call, arguments: &DiffArguments) -> Result<Exit, CliError> {
    let inputs = input::objects(&arguments.files)?;
    let force = if arguments.force_conflicts {
        Force::Yes
    } else {
        Force::No
    };
    block_on(Box::pin(async {
        let server = call.connect().await?;
        let mut exit = Exit::Done;
        for Placed { input, namespace } in apply::place(call, &server, inputs)? {
            let before = server
                .find(input.kind, &namespace, &input.name)
                .await
                .map_err(|error| server.failed(error).attempting(input.title()))?;
            let after = server
                .apply(
                    input.kind,
                    &namespace,
                    &input.name,
                    &input.object,
                    Write::DryRun,
                    force,
                )
                .await
                .map_err(|error| apply::refused(&server, &input, error))?
                .object;
            let before = before.as_ref().map(comparable);
            let name = input.kind.full(&input.name);
            let text = unified(&name, before.as_ref(), &comparable(&after), call.styles())?;
            if !text.is_empty() {
                exit = Exit::Differences;
                terminal::print(&text)?;
            }
        }
        Ok(exit)
    }))
}

/// Two trees as a unified diff of their YAML; nothing when they are the same.
///
/// # Errors
/// A tree that has no YAML form.
pub(crate) fn unified(
    name: &str,
    before: Option<&Value>,
    after: &Value,
    styles: Styles,
) -> Result<String, CliError> {
    let old = before.map_or(Ok(String::new()), to_yaml)?;
    let new = to_yaml(after)?;
    if old == new {
        return Ok(String::new());
    }
    let from = before.map_or("/dev/null".to_owned(), |_| format!("live/{name}"));
    let diff = TextDiff::from_lines(&old, &new);
    let text = diff
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&from, &format!("file/{name}"))
        .to_string();
    Ok(text
        .lines()
        .map(|line| {
            let line = visible(line);
            let styled = match line.as_bytes().first() {
                _ if line.starts_with("+++") || line.starts_with("---") => styles.bold(&line),
                Some(b'+') => styles.green(&line),
                Some(b'-') => styles.red(&line),
                _ => line,
            };
            format!("{styled}\n")
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shows_what_changes_around_its_place() {
        let before = json!({"spec": {"a": 1, "b": 2, "c": 3}});
        let after = json!({"spec": {"a": 1, "b": "\u{1b}", "c": 3}});
        let text = unified("rp/x", Some(&before), &after, Styles::PLAIN).unwrap();
        assert_eq!(
            text,
            "--- live/rp/x\n+++ file/rp/x\n@@ -1,4 +1,4 @@\n spec:\n   a: 1\n-  b: 2\n+  b: \"\\e\"\n   c: 3\n"
        );
        assert_eq!(
            unified("x", Some(&after), &after, Styles::PLAIN).unwrap(),
            ""
        );
        assert!(
            unified("x", None, &after, Styles::PLAIN)
                .unwrap()
                .starts_with("--- /dev/null\n")
        );
    }
}
