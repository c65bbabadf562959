//! What the end of a task means (control-plane 13). Pure.

use std::time::Duration;

use api::condition::ConditionType;
use api::kinds::shared::Digest;
use api::reason::Reason;
use backend::{TaskSeen, Waiting};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::contract::Wording;
use crate::clock::whole_seconds;
use crate::recorded::Recorded;

/// What a fetch or a verification found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// Checkpoint digest.
    pub(super) digest: String,
    /// Contract digest, where the checkpoint names one.
    pub(super) contract: Option<String>,
    /// Bytes of all files.
    pub(super) size_bytes: i64,
    /// Number of files.
    pub(super) file_count: i32,
    /// Checkpoints it was trained from.
    pub(super) parents: Vec<Digest>,
    /// Its wording, where it has one that can be read.
    pub(super) wording: Option<Wording>,
    /// What its manifest recorded that it must answer, where it did.
    pub(super) recorded: Option<Recorded>,
}

/// Why a task did not do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    /// In a word.
    pub(super) reason: Reason,
    /// For people.
    pub(super) message: String,
    /// What may help.
    pub(super) class: Class,
    /// How long the source asks to be left alone, where it says.
    pub(super) retry_after: Option<Duration>,
}

/// What may help after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Trying again, later each time; counted.
    Retry,
    /// Going on where it was: it was stopped from outside. Not counted.
    Resume,
    /// Trying again once: the second time only a change helps.
    Once,
    /// Trying until the attempts are used up; then only a change helps.
    UntilUsedUp,
    /// Space, looked for every five minutes.
    Space,
    /// Credentials, tried every ten minutes.
    Credentials,
    /// Only a change of the spec.
    Change,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome<T> {
    /// It did what it was for.
    Done(T),
    /// It did not.
    Failed(Failed),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Report {
    ok: bool,
    reason: Option<String>,
    message: Option<String>,
    digest: Option<String>,
    contract: Option<String>,
    size_bytes: i64,
    file_count: i32,
    parents: Vec<Digest>,
    decisions_text: Option<String>,
    probes: Value,
    retry_after_seconds: Option<u64>,
}

fn report(task: &TaskSeen) -> Option<Report> {
    Report::deserialize(task.result.as_ref()?).ok()
}

/// When a task ended, as statuses show times, where the engine knows.
#[must_use]
pub(super) fn ended_at(task: &TaskSeen) -> Option<Timestamp> {
    task.finished_at.or(task.started_at).map(whole_seconds)
}

/// How a fetch or a verification ended.
#[must_use]
pub(super) fn of_model(task: &TaskSeen) -> Outcome<Found> {
    match report(task) {
        // What it says counts more than its code: an engine that restarted does not know the code.
        Some(report) if report.ok => match report.digest {
            Some(digest) => {
                let wording = report
                    .decisions_text
                    .and_then(|text| Wording::read(&text).ok());
                let contract = report
                    .contract
                    .or_else(|| Some(wording.as_ref()?.digest.clone()));
                Outcome::Done(Found {
                    recorded: Recorded::read(&digest, &report.probes),
                    digest,
                    // A wording of another contract than the named one is none of this version.
                    wording: wording.filter(|wording| Some(&wording.digest) == contract.as_ref()),
                    contract,
                    size_bytes: report.size_bytes,
                    file_count: report.file_count,
                    parents: report.parents.into_iter().take(8).collect(),
                })
            }
            None => Outcome::Failed(Failed {
                reason: Reason::InvalidSpec,
                message:
                    "the task names no digest in its result. Use the laya image of this version"
                        .to_owned(),
                class: Class::Change,
                retry_after: None,
            }),
        },
        report => Outcome::Failed(failed(task, report.as_ref())),
    }
}

/// How a prune ended; what it deleted.
#[must_use]
pub(super) fn of_prune(task: &TaskSeen) -> Outcome<()> {
    match report(task) {
        Some(report) if report.ok => Outcome::Done(()),
        report => Outcome::Failed(failed(task, report.as_ref())),
    }
}

/// A task that the engine could not start.
#[must_use]
pub(super) fn not_started(waiting: &Waiting) -> Failed {
    let class = match waiting.reason {
        Reason::NoSpace | Reason::ReadOnlyVolume => Class::Space,
        _ => Class::Retry,
    };
    // A word of the engine that says nothing about files is told in the message.
    let is_ours = waiting.reason.may_stand_on(ConditionType::Fetched);
    Failed {
        reason: if is_ours {
            waiting.reason
        } else {
            Reason::SourceInterrupted
        },
        message: format!("the task could not be started: {}", waiting.message),
        class,
        retry_after: None,
    }
}

fn failed(task: &TaskSeen, report: Option<&Report>) -> Failed {
    let said = report.and_then(|report| Reason::by_word(report.reason.as_deref()?));
    let code = task.exit_code.unwrap_or(255);
    let (class, default) = class(code, task.oom_killed, said);
    let reason = said.unwrap_or(default);
    let message = report
        .and_then(|report| report.message.clone())
        .filter(|message| !message.is_empty())
        .unwrap_or_else(|| unexplained(task, code));
    let message = match code {
        2 => format!(
            "the task does not understand its arguments: {message}. Use the laya image of this version"
        ),
        _ => message,
    };
    Failed {
        reason,
        message,
        class,
        retry_after: report
            .and_then(|report| report.retry_after_seconds)
            .map(Duration::from_secs),
    }
}

/// What may help, and the reason where the task gave none.
const fn class(code: i32, oom: bool, said: Option<Reason>) -> (Class, Reason) {
    match said {
        Some(Reason::SourceUnauthorized) => {
            return (Class::Credentials, Reason::SourceUnauthorized);
        }
        Some(Reason::SourceNotFound) => return (Class::UntilUsedUp, Reason::SourceNotFound),
        Some(Reason::DigestMismatch) => return (Class::Once, Reason::DigestMismatch),
        Some(Reason::NoSpace | Reason::ReadOnlyVolume) => return (Class::Space, Reason::NoSpace),
        _ => {}
    }
    match code {
        2 => (Class::Change, Reason::InvalidSpec),
        3 => (Class::Change, Reason::BadCheckpoint),
        4 => (Class::Retry, Reason::OutOfMemory),
        5 => (Class::Space, Reason::NoSpace),
        137 if oom => (Class::Retry, Reason::OutOfMemory),
        75 | 137 | 143 | 255 => (Class::Resume, Reason::SourceInterrupted),
        _ => (Class::Retry, Reason::SourceInterrupted),
    }
}

/// What to say of a task that said nothing.
fn unexplained(task: &TaskSeen, code: i32) -> String {
    let last = task
        .log_tail
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty());
    let last = last.map_or_else(String::new, |line| {
        // Nothing from outside may move a terminal.
        let line: String = line
            .chars()
            .take(256)
            .flat_map(char::escape_default)
            .collect();
        format!(": {line}")
    });
    match code {
        137 if task.oom_killed => format!("the task needed more memory than its limit{last}"),
        137 | 143 => format!("the task was killed{last}"),
        255 => format!("the task ended and nobody knows how{last}"),
        code => format!("the task ended with code {code}{last}"),
    }
}

#[cfg(test)]
mod tests {
    use api::label::Task;
    use backend::{RunState, TaskKey};
    use serde_json::json;

    use super::*;

    fn task(code: i32, oom_killed: bool, result: Option<Value>) -> TaskSeen {
        TaskSeen {
            key: TaskKey {
                task: Task::Fetch,
                attempt: 1,
            },
            state: RunState::Exited,
            started_at: None,
            finished_at: None,
            exit_code: Some(code),
            oom_killed,
            progress: None,
            result,
            log_tail: "one\nlast \u{1b}[31mline\n\n".to_owned(),
            waiting: None,
        }
    }

    #[test]
    fn every_code_of_the_page_has_its_meaning() {
        use Class::{Change, Resume, Retry, Space};
        for (code, oom, class, reason) in [
            (1, false, Retry, Reason::SourceInterrupted),
            (2, false, Change, Reason::InvalidSpec),
            (3, false, Change, Reason::BadCheckpoint),
            (4, false, Retry, Reason::OutOfMemory),
            (5, false, Space, Reason::NoSpace),
            (6, false, Retry, Reason::SourceInterrupted),
            (75, false, Resume, Reason::SourceInterrupted),
            (137, false, Resume, Reason::SourceInterrupted),
            (137, true, Retry, Reason::OutOfMemory),
            (143, false, Resume, Reason::SourceInterrupted),
            (255, false, Resume, Reason::SourceInterrupted),
        ] {
            let Outcome::Failed(failed) = of_model(&task(code, oom, None)) else {
                panic!("{code} is no success");
            };
            assert_eq!((failed.class, failed.reason), (class, reason), "{code}");
            assert!(failed.message.contains("last"), "{}", failed.message);
            assert!(!failed.message.contains('\u{1b}'), "{}", failed.message);
        }
    }

    #[test]
    fn the_reason_of_the_result_decides() {
        use Class::{Change, Credentials, Once, Retry, Space, UntilUsedUp};
        for (code, word, class) in [
            (6, "SourceUnauthorized", Credentials),
            (6, "SourceNotFound", UntilUsedUp),
            (6, "SourceBusy", Retry),
            (6, "SourceInterrupted", Retry),
            (5, "NoSpace", Space),
            (5, "ReadOnlyVolume", Space),
            (3, "DigestMismatch", Once),
            (3, "SizeMismatch", Change),
            (3, "ContractMismatch", Change),
            (3, "UnsafePath", Change),
            (3, "BadCheckpoint", Change),
        ] {
            let result = json!({"ok": false, "reason": word, "message": "because"});
            let Outcome::Failed(failed) = of_model(&task(code, false, Some(result))) else {
                panic!("{word} is no success");
            };
            assert_eq!((failed.class, failed.reason.as_str()), (class, word));
            assert_eq!(failed.message, "because");
            assert_eq!(failed.retry_after, None);
        }
        let result = json!({"ok": false, "reason": "SourceBusy", "retryAfterSeconds": 120});
        let Outcome::Failed(failed) = of_model(&task(6, false, Some(result))) else {
            panic!("a busy source is no success");
        };
        assert_eq!(failed.retry_after, Some(Duration::from_secs(120)));
    }

    #[test]
    fn a_result_counts_more_than_a_code_that_is_not_known() {
        let digest = format!("sha256:{}", "1".repeat(64));
        let probes =
            json!([{"state": "x", "answers": {"risk": {"label": "true", "probability": 0.5}}}]);
        let result = json!({
            "ok": true, "digest": digest, "sizeBytes": 5, "fileCount": 2, "parents": [], "probes": probes,
        });
        let Outcome::Done(found) = of_model(&task(255, false, Some(result))) else {
            panic!("it did it");
        };
        let recorded = found.recorded.unwrap();
        assert_eq!((&recorded.checkpoint, recorded.probes.len()), (&digest, 1));
        assert_eq!(
            (found.digest, found.size_bytes, found.file_count),
            (digest.clone(), 5, 2)
        );
        // What cannot be read of them takes nothing from the rest.
        let odd = json!({"ok": true, "digest": digest, "probes": "none"});
        let Outcome::Done(found) = of_model(&task(0, false, Some(odd))) else {
            panic!("it did it");
        };
        assert_eq!((found.digest, found.recorded), (digest, None));
        assert!(matches!(
            of_model(&task(0, false, Some(json!({"ok": true})))),
            Outcome::Failed(Failed {
                class: Class::Change,
                ..
            })
        ));
    }
}
