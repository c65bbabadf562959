//! The lines of the task protocol (control-plane 13): PROGRESS while a task works, RESULT as its last word. Control
//! characters are escaped, since the lines pass terminals.

use std::io;
use std::path::Path;

use decision::json;
use laya::checkpoint::{ContractRef, Probe};
use serde_json::{Map, Value, json as value};

use crate::{Fetched, Progress, Pruned, TaskError, TaskExit, Verified, View};

/// Longest RESULT, in bytes.
pub const MAX_RESULT_BYTES: usize = 256 << 10;
/// Longest message in it, in characters.
const MAX_MESSAGE_CHARS: usize = 2000;
/// What stands in it in place of a wording that has no room.
const OMITTED: &str = r#","decisionsOmitted":true"#;
/// Most unknown names in it.
const MAX_UNKNOWN: usize = 100;
/// Most versions in it.
const MAX_VERSIONS: usize = 400;
/// Longest word on what is wrong with a version, in characters.
const MAX_DAMAGE_CHARS: usize = 160;

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The result as JSON.
    pub result: String,
    /// The exit code.
    pub exit: TaskExit,
}

impl Outcome {
    pub(crate) const fn new(result: String, exit: TaskExit) -> Self {
        Self { result, exit }
    }
}

/// A PROGRESS line, without its end.
#[must_use]
pub fn progress_line(progress: &Progress) -> String {
    let Progress {
        phase,
        done,
        eta_seconds,
        file,
        bytes,
        total,
    } = progress;
    let mut line = Map::new();
    line.insert("phase".to_owned(), phase.as_str().into());
    line.insert("done".to_owned(), round(*done, 4).into());
    if let Some(seconds) = eta_seconds {
        line.insert("eta_s".to_owned(), round(*seconds, 1).into());
    }
    if let Some(file) = file {
        line.insert("file".to_owned(), file.as_str().into());
    }
    line.insert("bytes".to_owned(), (*bytes).into());
    if *total > 0 {
        line.insert("total".to_owned(), (*total).into());
    }
    format!("PROGRESS {}", printable(&Value::Object(line).to_string()))
}

fn round(number: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (number * scale).round() / scale
}

/// The result of a fetch as JSON: an object with `ok`. `decisions` keeps the order of its keys in this text; a reader that
/// sorts keys takes `decisionsText`, since the contract digest depends on the order. `probes` are those of the manifest.
#[must_use]
pub fn fetch_result(result: &Result<Fetched, TaskError>) -> String {
    match result {
        Ok(fetched) => {
            let Fetched {
                digest,
                path: _,
                contract,
                size_bytes,
                file_count,
                parents,
                present,
                decisions,
                probes,
                notes,
            } = fetched;
            let mut object = described(&digest.to_string(), contract.as_ref());
            object.insert("sizeBytes".to_owned(), (*size_bytes).into());
            object.insert("fileCount".to_owned(), (*file_count).into());
            object.insert("parents".to_owned(), value!(parents));
            object.insert("present".to_owned(), (*present).into());
            found(object, decisions.as_deref(), probes, notes)
        }
        Err(error) => failure(error),
    }
}

/// The result of a verify as JSON.
#[must_use]
pub fn verify_result(result: &Result<Verified, TaskError>) -> String {
    match result {
        Ok(verified) => {
            let Verified {
                digest,
                contract,
                size_bytes,
                file_count,
                decisions,
                probes,
                notes,
            } = verified;
            let mut object = described(&digest.to_string(), contract.as_ref());
            object.insert("sizeBytes".to_owned(), (*size_bytes).into());
            object.insert("fileCount".to_owned(), (*file_count).into());
            found(object, decisions.as_deref(), probes, notes)
        }
        Err(error) => failure(error),
    }
}

/// The result of a prune as JSON.
#[must_use]
pub fn prune_result(result: &Result<Pruned, TaskError>) -> String {
    match result {
        Ok(pruned) => {
            let Pruned {
                deleted,
                kept,
                freed_bytes,
                unknown,
                left,
            } = pruned;
            let digests = |list: &[crate::Digest]| -> Vec<String> {
                list.iter().map(ToString::to_string).collect()
            };
            let mut object = Map::new();
            object.insert("ok".to_owned(), true.into());
            object.insert("deleted".to_owned(), digests(deleted).into());
            object.insert("kept".to_owned(), digests(kept).into());
            object.insert("freedBytes".to_owned(), (*freed_bytes).into());
            if let Some(left) = left {
                with_view(&mut object, left);
            }
            let shown: Vec<&String> = unknown.iter().take(MAX_UNKNOWN).collect();
            object.insert("unknown".to_owned(), value!(shown));
            printable(&Value::Object(object).to_string())
        }
        Err(error) => failure(error),
    }
}

/// The result of a look at a volume as JSON.
#[must_use]
pub fn view_result(result: &Result<View, TaskError>) -> String {
    match result {
        Ok(view) => {
            let mut object = Map::new();
            object.insert("ok".to_owned(), true.into());
            with_view(&mut object, view);
            printable(&Value::Object(object).to_string())
        }
        Err(error) => failure(error),
    }
}

/// Adds what lies in a volume: `published`, `unknown`, `freeBytes`, `totalBytes`, and how many of the first are `omitted`.
fn with_view(object: &mut Map<String, Value>, view: &View) {
    let View {
        published,
        unknown,
        free_bytes,
        total_bytes,
    } = view;
    let versions: Vec<Value> = published
        .iter()
        .take(MAX_VERSIONS)
        .map(|version| {
            let damage = version.damage.as_deref();
            let damage = damage.map(|why| cut_to(why, MAX_DAMAGE_CHARS));
            value!({
                "digest": version.digest.to_string(), "sizeBytes": version.size_bytes, "keep": version.keep,
                "damage": damage,
            })
        })
        .collect();
    let omitted = published.len() - versions.len();
    if omitted > 0 {
        object.insert("omitted".to_owned(), omitted.into());
    }
    object.insert("published".to_owned(), versions.into());
    let shown: Vec<&String> = unknown.iter().take(MAX_UNKNOWN).collect();
    object.insert("unknown".to_owned(), value!(shown));
    object.insert("freeBytes".to_owned(), (*free_bytes).into());
    object.insert("totalBytes".to_owned(), (*total_bytes).into());
}

fn described(digest: &str, contract: Option<&ContractRef>) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("ok".to_owned(), true.into());
    object.insert("digest".to_owned(), digest.into());
    if let Some(contract) = contract {
        object.insert("contract".to_owned(), contract.digest.as_str().into());
        object.insert("shape".to_owned(), contract.shape.as_str().into());
    }
    object
}

fn with_notes(object: &mut Map<String, Value>, notes: &[String]) {
    if !notes.is_empty() {
        let notes: Vec<String> = notes.iter().take(16).map(|note| cut(note)).collect();
        object.insert("notes".to_owned(), value!(notes));
    }
}

/// The whole result of a checkpoint that is there: wording and notes come first, recorded probes where they fit beside them.
fn found(
    mut object: Map<String, Value>,
    decisions: Option<&str>,
    probes: &[Probe],
    notes: &[String],
) -> String {
    let plain = object.clone();
    with_notes(&mut object, notes);
    let without = with_decisions(&object, decisions);
    if probes.is_empty() {
        return without;
    }
    object.insert("probes".to_owned(), value!(probes));
    let whole = with_decisions(&object, decisions);
    // They must not push the wording out: without it the version cannot be asked in its own words.
    let drops_wording = |text: &str| text.contains(OMITTED);
    if whole.len() <= MAX_RESULT_BYTES && drops_wording(&whole) == drops_wording(&without) {
        return whole;
    }
    let mut object = plain;
    let left_out = format!(
        "{} recorded probes are left out, since a result has at most {MAX_RESULT_BYTES} bytes: servers are asked the \
         built-in ones. Record shorter states",
        probes.len()
    );
    let notes: Vec<String> = std::iter::once(left_out)
        .chain(notes.iter().cloned())
        .collect();
    with_notes(&mut object, &notes);
    with_decisions(&object, decisions)
}

/// Adds the wording in its order, as far as the line has room.
fn with_decisions(object: &Map<String, Value>, decisions: Option<&str>) -> String {
    let plain = printable(&value!(object).to_string());
    let compact = decisions
        .and_then(|text| json::read(text.as_bytes()).ok())
        .map(|value| printable(&json::write(&value)));
    let Some(compact) = compact else {
        return plain;
    };
    let open = plain.trim_end_matches('}');
    let as_text = printable(&Value::from(compact.as_str()).to_string());
    let both = format!(r#"{open},"decisions":{compact},"decisionsText":{as_text}}}"#);
    if both.len() <= MAX_RESULT_BYTES {
        return both;
    }
    let text_alone = format!(r#"{open},"decisionsText":{as_text}}}"#);
    if text_alone.len() <= MAX_RESULT_BYTES {
        return text_alone;
    }
    format!("{open}{OMITTED}}}")
}

/// The result of a task that did not do its work.
#[must_use]
pub fn failure(error: &TaskError) -> String {
    let mut object = Map::new();
    object.insert("ok".to_owned(), false.into());
    if let Some(reason) = error.reason() {
        object.insert("reason".to_owned(), reason.as_str().into());
    }
    object.insert("message".to_owned(), cut(&error.to_string()).into());
    object.insert("code".to_owned(), error.exit().code().into());
    if let Some(after) = error.retry_after() {
        object.insert("retryAfterSeconds".to_owned(), after.as_secs().into());
    }
    printable(&Value::Object(object).to_string())
}

/// How a task ends.
pub fn exit_of<T>(result: &Result<T, TaskError>) -> TaskExit {
    match result {
        Ok(_) => TaskExit::Done,
        Err(error) => error.exit(),
    }
}

/// The RESULT line, without its end.
#[must_use]
pub fn result_line(result: &str) -> String {
    format!("RESULT {result}")
}

/// Writes a result where a lost log costs nothing: whole or not at all, synced.
///
/// # Errors
/// When the system refuses.
pub fn write_result(path: &Path, result: &str) -> io::Result<()> {
    files::write_whole(path, format!("{result}\n").as_bytes(), 0o644)
}

fn cut(text: &str) -> String {
    cut_to(text, MAX_MESSAGE_CHARS)
}

fn cut_to(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most).collect();
    format!("{start}…")
}

/// JSON escapes what is below a space; the rest of what steers a terminal, and what breaks lines or turns their direction,
/// is escaped here. Such characters stand only inside strings.
fn printable(json: &str) -> String {
    use std::fmt::Write as _;
    json.chars()
        .fold(String::with_capacity(json.len()), |mut text, c| {
            let steers = matches!(c, '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            if steers {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            } else {
                text.push(c);
            }
            text
        })
}

#[cfg(test)]
mod tests {
    use laya::checkpoint::ProbeAnswer;

    use super::*;
    use crate::Digest;

    fn verified(probes: Vec<Probe>, decisions: Option<String>) -> Value {
        let digest = Digest::parse(&format!("sha256:{}", "1".repeat(64))).unwrap();
        let result = verify_result(&Ok(Verified {
            digest,
            contract: None,
            size_bytes: 1,
            file_count: 1,
            decisions,
            probes,
            notes: vec!["first".to_owned()],
        }));
        assert!(result.len() <= MAX_RESULT_BYTES, "{} bytes", result.len());
        serde_json::from_str(&result).unwrap()
    }

    fn probe(state: String) -> Probe {
        let answer = ProbeAnswer {
            label: "true".to_owned(),
            probability: 0.75,
        };
        Probe {
            state: state.into(),
            answers: [("risk".to_owned(), answer)].into(),
        }
    }

    #[test]
    fn recorded_probes_are_told_as_far_as_there_is_room() {
        let wording = r#"{"decisions":{}}"#.to_owned();
        let told = verified(vec![probe("a \u{9b} b".to_owned())], Some(wording.clone()));
        let answer = value!({"risk": {"label": "true", "probability": 0.75}});
        assert_eq!(
            told["probes"],
            value!([{"state": "a \u{9b} b", "answers": answer}])
        );
        assert_eq!(told["decisionsText"], wording);
        assert_eq!(told["notes"], value!(["first"]));
        assert_eq!(verified(vec![], None).get("probes"), None);

        let long = verified(vec![probe("x".repeat(MAX_RESULT_BYTES))], Some(wording));
        assert_eq!(long.get("probes"), None);
        assert_eq!(long["decisionsText"], r#"{"decisions":{}}"#);
        let note = long["notes"][0].as_str().unwrap();
        assert!(note.starts_with("1 recorded probes are left out"), "{note}");
        assert_eq!(long["notes"][1], "first");
        // The wording comes before them: it alone decides whether the version can be asked at all.
        let words = format!(r#"{{"decisions":"{}"}}"#, "y".repeat(200 << 10));
        let both = verified(vec![probe("x".repeat(100 << 10))], Some(words.clone()));
        assert_eq!(both.get("probes"), None);
        assert_eq!(both["decisionsText"], words);
    }
}
