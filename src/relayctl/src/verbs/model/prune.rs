//! `relayctl model prune`: files of versions that no object names and no server has are deleted from the models volume. What
//! would go is shown first, and nothing else goes than what was shown.

use clap::Args;
use serde_json::{Value, json};

use crate::call::{Call, DryRun, block_on};
use crate::daemon::calls::{self, Prunable, PruneDone};
use crate::error::CliError;
use crate::facts::{self, short};
use crate::output::{self, CLI_VERSION};
use crate::terminal;
use api::exit::Exit;

/// Arguments of `relayctl model prune`.
#[derive(Debug, Args)]
#[command(after_help = "\
Stays: what a LayaModel names, the champion, candidate and previous version of every LayaServer, what is marked in .keep
(`storage.onDelete: Retain`), and folders that the layout does not know. On Docker a container looks and deletes.

Examples:
  relayctl model prune --dry-run   # only shows what would go
  relayctl model prune --yes")]
pub(crate) struct PruneArguments {}

/// Shows what nothing names, asks, and deletes it.
pub(super) fn run(call: &Call, arguments: &PruneArguments) -> Result<Exit, CliError> {
    let PruneArguments {} = *arguments;
    block_on(Box::pin(async {
        let server = call.connect_to_change().await?;
        if !server.context.is_local() {
            let line = format!(
                "`model prune` is about this machine's models volume, and the context is `{}`",
                server.context.name
            );
            return Err(CliError::usage(line).hint(
                "in a cluster each version has a volume of its own, which goes with its LayaModel",
            ));
        }
        let patience = call.global.timeout;
        let found = calls::prunable(&server, patience).await?;
        let is_dry = call.dry_run() != DryRun::None;
        let is_table = call.format().is_table();
        if is_dry || found.delete.is_empty() {
            return if is_table {
                show(&list(&found))
            } else {
                tree(call, &found, &PruneDone::default(), is_dry)
            };
        }
        match shown_before(is_table, call.global.yes) {
            Shown::Answer => {
                show(&list(&found))?;
            }
            Shown::Talk => list(&found).iter().for_each(|line| call.tell(line)),
            Shown::Nowhere => {}
        }
        terminal::confirm(call.global.yes, &question(&found))?;
        let delete: Vec<String> = found.delete.iter().map(|one| one.digest.clone()).collect();
        let done = calls::prune(&server, &delete, patience).await?;
        if !is_table {
            return tree(call, &found, &done, is_dry);
        }
        show(&[ended(&delete, &done)])
    }))
}

/// Where what would go is shown before it is agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// It is the answer.
    Answer,
    /// The answer is a document that comes in the end, and somebody is asked before.
    Talk,
    /// Nobody is asked, and the document says it.
    Nowhere,
}

const fn shown_before(is_table: bool, yes: bool) -> Shown {
    match (is_table, yes) {
        (true, _) => Shown::Answer,
        (false, false) => Shown::Talk,
        (false, true) => Shown::Nowhere,
    }
}

fn show(lines: &[String]) -> Result<Exit, CliError> {
    let mut text = lines.join("\n");
    text.push('\n');
    terminal::print(&output::visible(&text))?;
    Ok(Exit::Done)
}

fn total(found: &Prunable) -> u64 {
    found.delete.iter().map(|one| one.size_bytes).sum()
}

/// What would go, and what is left alone though no object names it.
fn list(found: &Prunable) -> Vec<String> {
    let mut lines: Vec<String> = found
        .delete
        .iter()
        .map(|one| {
            format!(
                "nothing names {} ({})",
                short(&one.digest),
                facts::bytes(one.size_bytes)
            )
        })
        .collect();
    match found.delete.len() {
        0 => lines.push(
            "nothing to delete: an object names every version, or it is kept on purpose".to_owned(),
        ),
        count => lines.push(format!(
            "{}, {} in all",
            versions(count),
            facts::bytes(total(found))
        )),
    }
    if !found.unknown.is_empty() {
        lines.push(format!(
            "unknown folders, left alone: {}",
            found.unknown.join(", ")
        ));
    }
    lines
}

fn versions(count: usize) -> String {
    match count {
        1 => "1 version".to_owned(),
        count => format!("{count} versions"),
    }
}

fn question(found: &Prunable) -> String {
    format!(
        "delete the files of {} ({})",
        versions(found.delete.len()),
        facts::bytes(total(found))
    )
}

/// What was deleted, and how many of those that were agreed to are there still.
fn ended(asked: &[String], done: &PruneDone) -> String {
    let gone = versions(done.deleted.len());
    let left = asked.len().saturating_sub(done.deleted.len());
    let kept = match left {
        0 => String::new(),
        left => format!(
            "; {} stayed, named or marked to be kept since",
            versions(left)
        ),
    };
    format!(
        "deleted {gone}, {} freed{kept}",
        facts::bytes(done.freed_bytes)
    )
}

fn tree(call: &Call, found: &Prunable, done: &PruneDone, is_dry: bool) -> Result<Exit, CliError> {
    output::tree(&document(found, done, is_dry), &call.format())?;
    Ok(Exit::Done)
}

fn document(found: &Prunable, done: &PruneDone, is_dry: bool) -> Value {
    let unnamed = found
        .delete
        .iter()
        .map(|one| json!({"digest": one.digest, "sizeBytes": one.size_bytes}));
    let kept = found
        .keep
        .iter()
        .map(|one| json!({"digest": one.digest, "sizeBytes": one.size_bytes, "why": one.why}));
    json!({
        "apiVersion": CLI_VERSION,
        "kind": "ModelPrune",
        "dryRun": is_dry,
        "unnamed": unnamed.collect::<Vec<_>>(),
        "kept": kept.collect::<Vec<_>>(),
        "unknownFolders": found.unknown,
        "deleted": done.deleted,
        "freedBytes": done.freed_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Prunable {
        serde_json::from_value(json!({"ok": true, "dryRun": true,
            "delete": [{"digest": "sha256:aaaaaaaaaaaaaaaa", "sizeBytes": 678_000_000}, {"digest": "sha256:bbbbbbbbbbbbbbbb", "sizeBytes": 1_000}],
            "keep": [{"digest": "sha256:cccc", "sizeBytes": 5, "why": "LayaModel default/v1"}],
            "unknown": ["local-1"], "freeBytes": 1, "totalBytes": 2}))
        .unwrap()
    }

    #[test]
    fn what_would_go_is_said_before_it_is_asked_for() {
        let found = found();
        assert_eq!(
            list(&found),
            [
                "nothing names aaaaaaaaaaaa (678 MB)",
                "nothing names bbbbbbbbbbbb (1.0 kB)",
                "2 versions, 678 MB in all",
                "unknown folders, left alone: local-1",
            ]
        );
        assert_eq!(question(&found), "delete the files of 2 versions (678 MB)");
        assert!(list(&Prunable::default())[0].starts_with("nothing to delete"));
    }

    #[test]
    fn nobody_agrees_to_what_was_not_shown() {
        for (is_table, yes, expected) in [
            (true, false, Shown::Answer),
            (true, true, Shown::Answer),
            (false, false, Shown::Talk),
            (false, true, Shown::Nowhere),
        ] {
            assert_eq!(shown_before(is_table, yes), expected, "{is_table} {yes}");
        }
    }

    #[test]
    fn what_was_named_meanwhile_is_said() {
        let asked = ["sha256:a", "sha256:b"].map(str::to_owned);
        let done = |deleted: &[&str]| PruneDone {
            deleted: deleted.iter().map(|&digest| digest.to_owned()).collect(),
            freed_bytes: 1_000,
        };
        assert_eq!(
            ended(&asked, &done(&["sha256:a", "sha256:b"])),
            "deleted 2 versions, 1.0 kB freed"
        );
        assert_eq!(
            ended(&asked, &done(&["sha256:a"])),
            "deleted 1 version, 1.0 kB freed; 1 version stayed, named or marked to be kept since"
        );
    }

    #[test]
    fn the_document_has_all_of_it() {
        let document = document(&found(), &PruneDone::default(), true);
        assert_eq!(document["kind"], "ModelPrune");
        assert_eq!(document["unnamed"][1]["sizeBytes"], 1_000);
        assert_eq!(document["kept"][0]["why"], "LayaModel default/v1");
        assert_eq!(document["deleted"], json!([]));
    }
}
