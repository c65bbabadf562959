//! `relay route --batch`: one JSON object a line in, one decision a line out, in order. A bad line is named and the
//! rest goes on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use decision::vocabulary::Tier;
use serde::Deserialize;

use super::{Decider, RouteArguments, profile_from, request};
use crate::error::{CliError, Exit};
use crate::output::{Format, json};
use crate::refused::ProfileFrom;
use crate::terminal::{Reader, escape, tell, written};

/// More than the longest line can have: a request of 100 000 units with every unit escaped.
const MAX_LINE: u64 = 1 << 20;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// One line of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    request: String,
    profile: Option<String>,
    conversation_id: Option<String>,
}

#[derive(Debug, Default)]
struct Summary {
    decided: usize,
    bad: usize,
    tiers: BTreeMap<Tier, usize>,
}

pub(super) fn run(
    arguments: &RouteArguments,
    path: &Path,
    decider: &mut Decider,
) -> Result<Exit, CliError> {
    let mut reader: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::new(
            File::open(path).map_err(|error| CliError::file(path, error))?,
        ))
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut summary = Summary::default();
    let mut number = 0;
    let mut output = Reader::Reads;
    while output == Reader::Reads
        && let Some(line) = next_line(&mut reader).map_err(|error| CliError::file(path, error))?
    {
        number += 1;
        let decided = line.and_then(|line| {
            // Some editors mark the file, not the line.
            let marked = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| number == 1);
            decide(arguments, decider, marked.unwrap_or(&line))
        });
        match decided {
            Ok(None) => continue,
            Ok(Some((text, tier))) => {
                summary.decided += 1;
                *summary.tiers.entry(tier).or_default() += 1;
                output = written(writeln!(out, "{text}"))?;
            }
            // What is wrong with this line is no reason to leave out the others; anything else would be wrong with
            // each of them.
            Err(error) if matches!(error.exit, Exit::Usage | Exit::NoCandidate) => {
                summary.bad += 1;
                tell(&format!("line {number}: {}\n", escape(&error.to_string())));
            }
            Err(error) => return Err(error),
        }
    }
    if output == Reader::Reads {
        output = written(out.flush())?;
    }
    if output == Reader::Left {
        tell("note: standard output was closed; what follows is not decided\n");
    }
    let tiers: Vec<_> = summary
        .tiers
        .iter()
        .map(|(tier, count)| format!("{tier} {count}"))
        .collect();
    let tiers = if tiers.is_empty() {
        String::new()
    } else {
        format!(" ({})", tiers.join(", "))
    };
    tell(&format!(
        "{} decided{tiers}, {} bad\n",
        summary.decided, summary.bad
    ));
    Ok(if summary.bad == 0 {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// The decision of one line as text, or nothing for a blank line.
fn decide(
    arguments: &RouteArguments,
    decider: &mut Decider,
    bytes: &[u8],
) -> Result<Option<(String, Tier)>, CliError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        CliError::usage(format!(
            "is not valid UTF-8 at byte {}",
            error.valid_up_to()
        ))
    })?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    // The derived reader would take a list for the fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err(CliError::usage("is no JSON object"));
    }
    let line: Line =
        serde_json::from_str(text).map_err(|error| CliError::usage(without_line(&error)))?;
    let mut request = request(arguments, &decider.settings, line.request);
    let profile = match line.profile {
        Some(_) => ProfileFrom::Request,
        None => profile_from(arguments),
    };
    request.profile = line.profile.or(request.profile);
    request.conversation_id = line.conversation_id;
    let decision = decider.decide(&request, profile, false)?.decision;
    let tier = decision.selected.tier;
    let text = match arguments.output {
        Format::Json => json(&decision)?,
        Format::Table => format!(
            "{tier:<9} {:<36} {:<8} {:<14} {}",
            escape(decision.selected.model.as_str()),
            decision.selected.thinking_level,
            decision.assessment.task.task_type,
            decision.policy.rules.join(","),
        )
        .trim_end()
        .to_owned(),
    };
    Ok(Some((text, tier)))
}

/// The parser counts lines within a line; the number people need is that of the file.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => format!("{} at column {}", &text[..at], error.column()),
        None => text,
    }
}

/// The next line without its end, `None` at the end of the file; a line over the bound is read away and refused.
fn next_line(reader: &mut dyn BufRead) -> std::io::Result<Option<Result<Vec<u8>, CliError>>> {
    let mut line = Vec::new();
    let read = reader.take(MAX_LINE + 1).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 > MAX_LINE {
        reader.skip_until(b'\n')?;
        return Ok(Some(Err(CliError::usage(format!(
            "has more than {MAX_LINE} bytes"
        )))));
    }
    Ok(Some(Ok(line)))
}
