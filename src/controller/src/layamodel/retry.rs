//! When a fetch is tried, and what is remembered of the attempts (control-plane 2). Pure. A fact once written is written
//! the same again, so that a pass that finds a task whose end is recorded knows it.

use std::time::Duration;

use api::kinds::laya_model::{FetchError, FetchProgress, ModelFetch};
use api::reason::Reason;
use backend::TaskSeen;
use jiff::{SignedDuration, Timestamp};

use super::outcome::{Class, Failed, ended_at};
use crate::backoff::jitter;
use crate::clock::{Now, whole_seconds};
use crate::conditions::bounded;

/// Wait after the first failure.
const FIRST_SECONDS: u64 = 10;
/// Longest wait.
const LONGEST: Duration = Duration::from_secs(900);
/// Wait for space.
const SPACE: Duration = Duration::from_secs(300);
/// Wait for credentials; nobody may watch Secrets.
const CREDENTIALS: Duration = Duration::from_secs(600);
/// Code of a task that gave way to another or was ended (control-plane 13).
const GAVE_WAY: i32 = 75;
/// Longest message of an error, in characters.
const MAX_MESSAGE: usize = 1024;

/// What is to be done about the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// It begins now, with this number.
    Now(u32),
    /// It waits.
    Wait(Duration),
    /// It took too long as a whole.
    TooLate,
    /// Only a change helps.
    Never,
}

/// Where a fetch stands whose task does not run.
#[must_use]
pub(super) fn next(
    fetch: Option<&FetchProgress>,
    patience: &ModelFetch,
    now: &Now,
    age: Option<Duration>,
) -> Next {
    let Some(fetch) = fetch else {
        return Next::Now(1);
    };
    if gave_up(fetch) {
        return Next::Never;
    }
    if is_late(fetch, patience, now, age) {
        return Next::TooLate;
    }
    let attempt = attempts(fetch).saturating_add(1);
    match fetch.next_attempt_at {
        Some(at) => {
            let wait = at.duration_since(now.wall);
            // A wall clock that was set back must not hold it up for longer than any wait is.
            let longest = SignedDuration::try_from(LONGEST).unwrap_or(SignedDuration::MAX);
            match Duration::try_from(wait) {
                Ok(left) if !left.is_zero() && wait <= longest => Next::Wait(left),
                _ => Next::Now(attempt),
            }
        }
        // It ran and is gone, and nobody knows how it ended.
        None => Next::Now(attempts(fetch).max(1)),
    }
}

/// Whether only a change helps: it failed, and no next attempt is planned.
#[must_use]
pub(super) const fn gave_up(fetch: &FetchProgress) -> bool {
    fetch.last_error.is_some() && fetch.next_attempt_at.is_none()
}

/// Attempts that counted.
fn attempts(fetch: &FetchProgress) -> u32 {
    u32::try_from(fetch.attempt.unwrap_or(0)).unwrap_or(0)
}

/// Whether all attempts together have taken too long: the wall clock says so, and this process has not seen that they
/// began later (`age`).
#[must_use]
pub(super) fn is_late(
    fetch: &FetchProgress,
    patience: &ModelFetch,
    now: &Now,
    age: Option<Duration>,
) -> bool {
    let Some(started) = fetch.started_at else {
        return false;
    };
    let deadline = patience.deadline_seconds.max(1).unsigned_abs();
    let taken = now.wall.duration_since(started).as_secs();
    let deadline = u64::from(deadline);
    u64::try_from(taken).is_ok_and(|taken| taken >= deadline)
        && age.is_none_or(|age| age.as_secs() >= deadline)
}

/// Seconds that are left of the deadline, at least 1.
#[must_use]
pub(super) fn seconds_left(fetch: Option<&FetchProgress>, patience: &ModelFetch, now: &Now) -> u32 {
    let deadline = patience.deadline_seconds.max(1).unsigned_abs();
    let started = fetch.and_then(|fetch| fetch.started_at);
    let taken = started.map_or(0, |started| now.wall.duration_since(started).as_secs());
    let taken = u32::try_from(taken.max(0)).unwrap_or(u32::MAX);
    deadline.saturating_sub(taken).max(1)
}

/// What is remembered while a task runs. `progress` is whether its progress may be written now.
#[must_use]
pub(super) fn running(
    before: Option<&FetchProgress>,
    task: &TaskSeen,
    progress: bool,
    now: &Now,
) -> FetchProgress {
    let mut fetch = before.cloned().unwrap_or_default();
    fetch.attempt = i32::try_from(task.key.attempt).ok();
    if fetch.started_at.is_none() {
        fetch.started_at = Some(whole_seconds(task.started_at.unwrap_or(now.wall)));
    }
    if progress && let Some(seen) = &task.progress {
        let number = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
        fetch.bytes_done = number(seen.bytes).or(fetch.bytes_done);
        fetch.bytes_total = number(seen.total).or(fetch.bytes_total);
    }
    fetch
}

/// What is remembered of a task that failed.
#[must_use]
pub(super) fn failed(
    before: Option<&FetchProgress>,
    task: &TaskSeen,
    failed: &Failed,
    patience: &ModelFetch,
    uid: &str,
    now: &Now,
) -> FetchProgress {
    let number = task.key.attempt;
    let mut fetch = running(before, task, true, now);
    let known = before.and_then(|fetch| fetch.last_error.as_ref());
    let at = ended_at(task).unwrap_or_else(|| {
        // The engine does not know. What is recorded of this attempt stays as it is.
        let same = known.filter(|error| {
            before.is_some_and(|fetch| attempts(fetch) == number)
                && error.reason.as_deref() == Some(failed.reason.as_str())
        });
        same.and_then(|error| error.at)
            .unwrap_or_else(|| whole_seconds(now.wall))
    });
    let is_second = before.is_some_and(|fetch| {
        let of_another = attempts(fetch) < number || known.and_then(|error| error.at) != Some(at);
        let given_up = gave_up(fetch);
        let same =
            known.is_some_and(|error| error.reason.as_deref() == Some(failed.reason.as_str()));
        same && (of_another || given_up)
    });
    let used_up = i32::try_from(number).unwrap_or(i32::MAX) >= patience.max_attempts;
    let pause = pause(number, uid);
    let wait = match failed.class {
        Class::Change => None,
        Class::Once if is_second => None,
        Class::Retry | Class::Once | Class::UntilUsedUp if used_up => None,
        Class::Retry | Class::Once | Class::UntilUsedUp => Some(pause),
        Class::Resume => Some(pause.min(Duration::from_secs(2 * FIRST_SECONDS))),
        Class::Space => Some(SPACE),
        Class::Credentials => Some(CREDENTIALS),
    };
    let asked = failed.retry_after.unwrap_or_default().min(LONGEST);
    let wait = wait.map(|wait| wait.max(asked));
    match failed.class {
        Class::Resume => {
            fetch.attempt = i32::try_from(number.saturating_sub(1)).ok();
            if is_put_off(&fetch, task, patience, at, now) {
                fetch.started_at = None;
            }
        }
        // Waiting for people is no part of the deadline.
        Class::Space | Class::Credentials => {
            fetch.attempt = Some(0);
            fetch.started_at = None;
        }
        _ => {}
    }
    fetch.next_attempt_at = wait.and_then(|wait| later(at, wait));
    fetch.last_error = Some(error(failed.reason, &failed.message, at));
    fetch
}

/// Whether an attempt gave way: to another fetch that has the volume, or to whoever ended it. Waiting for those is no part of
/// the deadline. One that was ended because all attempts took too long is not put off, unless nothing ever came.
fn is_put_off(
    fetch: &FetchProgress,
    task: &TaskSeen,
    patience: &ModelFetch,
    ended: Timestamp,
    now: &Now,
) -> bool {
    let ended = Now {
        wall: ended,
        boot: now.boot,
    };
    task.exit_code == Some(GAVE_WAY)
        && (fetch.bytes_done.unwrap_or(0) == 0 || !is_late(fetch, patience, &ended, None))
}

/// What is remembered when all attempts together took too long.
#[must_use]
pub(super) fn too_late(
    before: Option<&FetchProgress>,
    patience: &ModelFetch,
    now: &Now,
) -> FetchProgress {
    let mut fetch = before.cloned().unwrap_or_default();
    let last = fetch
        .last_error
        .as_ref()
        .and_then(|error| error.message.clone())
        .map_or_else(String::new, |message| {
            format!("; the last attempt: {message}")
        });
    let message = format!("not done within {} s{last}", patience.deadline_seconds);
    fetch.next_attempt_at = None;
    fetch.last_error = Some(error(
        Reason::FetchDeadlineExceeded,
        &message,
        whole_seconds(now.wall),
    ));
    fetch
}

/// An error as statuses show it.
#[must_use]
pub(super) fn error(reason: Reason, message: &str, at: Timestamp) -> FetchError {
    FetchError {
        reason: Some(reason.as_str().to_owned()),
        message: Some(bounded(message.to_owned(), MAX_MESSAGE)),
        at: Some(at),
    }
}

/// 10 s·2ⁿ⁻¹ for the nth attempt, ± 20 %, at most 15 minutes, in whole seconds.
fn pause(attempt: u32, uid: &str) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let plain = Duration::from_secs(FIRST_SECONDS << doublings).min(LONGEST);
    let spread = plain.mul_f64(jitter(0, uid, attempt)).min(LONGEST);
    Duration::from_secs(spread.as_secs())
}

fn later(at: Timestamp, wait: Duration) -> Option<Timestamp> {
    let wait = SignedDuration::try_from(wait).ok()?;
    at.checked_add(wait).ok()
}
