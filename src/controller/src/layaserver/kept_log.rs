//! What a revision that was taken back wrote last (control-plane 10, Reject). It is stored as a document of its own before
//! anything is deleted, and an event carries as much of its end as fits. Pure.

use api::event::MAX_NOTE_BYTES;
use backend::BackendError;
use backend::task_protocol::tail;

use super::action::Action;
use super::advice;
use super::facts::Facts;
use super::replicas::{Replica, Replicas};
use super::view::{Draft, View};
use crate::events::cut;
use crate::failure::Failure;

/// Most bytes of a note that say why, so that some are left for the command and the log.
const MAX_WHY_BYTES: usize = 500;

/// Stores the log of a revision; `None` where it is stored, or nothing is left that could have one.
pub(super) fn store(view: &View<'_>, revision: &str) -> Option<Action> {
    if view.checked.logs.contains_key(revision) {
        return None;
    }
    let replicas = view.replicas(revision);
    let replica = speaker(&replicas)?;
    Some(Action::StoreLog {
        revision: revision.to_owned(),
        ordinal: replica.ordinal(),
        seen: replica.seen.log_tail.clone(),
    })
}

/// The same for one that was taken back: what is dropped for a newer wish did nothing wrong.
pub(super) fn store_rejected(view: &View<'_>, draft: &Draft, revision: &str) -> Option<Action> {
    draft.status.rejection(revision)?;
    store(view, revision)
}

/// Whether a log that was not read is waited for: only while the engine is away, when nothing else can be done either.
pub(super) const fn comes_back(error: &BackendError) -> bool {
    matches!(error, BackendError::Unavailable { .. })
}

/// Whether a log that was not stored is given up. What only a person can change must not hold up a rejection.
pub(super) const fn is_given_up(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::NameTaken { .. } | Failure::Refused { .. } | Failure::Forbidden { .. }
    )
}

/// Removes the log of an earlier try of a revision, which is another one now.
pub(super) fn forget(view: &View<'_>, revision: &str) -> Option<Action> {
    let uid = view.checked.logs.get(revision)?;
    Some(removal(view, revision, uid))
}

/// Removes the first log of a revision that is not taken back any more.
pub(super) fn forget_forgiven(view: &View<'_>, draft: &Draft) -> Option<Action> {
    let mut logs = view.checked.logs.iter();
    let (revision, uid) = logs.find(|(revision, _)| draft.status.rejection(revision).is_none())?;
    Some(removal(view, revision, uid))
}

fn removal(view: &View<'_>, revision: &str, uid: &str) -> Action {
    let server = view.object.metadata.name.as_deref().unwrap_or_default();
    Action::DeleteRevision {
        name: api::kept_log::document_name(server, revision),
        uid: uid.to_owned(),
    }
}

/// The note of an event: why, the command that shows the log, and the end of that in whole lines as far as it fits.
pub(super) fn note(view: &View<'_>, replicas: &Replicas<'_>, revision: &str, why: &str) -> String {
    let Some(replica) = speaker(replicas) else {
        return why.to_owned();
    };
    let command = advice::logs(view.object, revision);
    written(why, &command, &replica.seen.log_tail)
}

fn written(why: &str, command: &str, log: &str) -> String {
    let why = cut(why.to_owned(), MAX_WHY_BYTES);
    if log.trim().is_empty() {
        return format!("{why}. Its log: {command}");
    }
    let head = format!("{why}. Its log ({command}) ends:\n");
    let room = MAX_NOTE_BYTES.saturating_sub(head.len());
    format!("{head}{}", tail(log, room))
}

/// The replica whose log says most: one that ended, else the first.
fn speaker<'a>(replicas: &Replicas<'a>) -> Option<Replica<'a>> {
    let mut all = replicas.iter();
    let ended = all.find(|replica| !replica.seen.log_tail.trim().is_empty());
    ended.or_else(|| replicas.iter().next()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = "relayctl logs main --revision 0123456789";

    #[test]
    fn only_what_passes_by_itself_is_waited_for() {
        use std::time::Duration;

        let (what, message) = (|| "read the log".to_owned(), || "no".to_owned());
        for (error, waits) in [
            (
                BackendError::Unavailable {
                    what: what(),
                    address: String::new(),
                    message: message(),
                },
                true,
            ),
            (
                BackendError::TimedOut {
                    what: what(),
                    after: Duration::from_secs(1),
                },
                false,
            ),
            (
                BackendError::Forbidden {
                    what: what(),
                    message: message(),
                },
                false,
            ),
            (
                BackendError::Failed {
                    what: what(),
                    message: message(),
                },
                false,
            ),
        ] {
            assert_eq!(comes_back(&error), waits, "{error}");
        }
        let resource = || "ControllerRevision ls-main-1-log".to_owned();
        let verb = "create";
        for (failure, given_up) in [
            (
                Failure::NameTaken {
                    resource: resource(),
                },
                true,
            ),
            (
                Failure::Refused {
                    verb,
                    resource: resource(),
                    message: message(),
                },
                true,
            ),
            (
                Failure::Forbidden {
                    verb,
                    resource: resource(),
                    message: message(),
                },
                true,
            ),
            (
                Failure::Unavailable {
                    verb,
                    resource: resource(),
                    message: message(),
                },
                false,
            ),
            (
                Failure::Conflict {
                    resource: resource(),
                },
                false,
            ),
        ] {
            assert_eq!(is_given_up(&failure), given_up, "{failure}");
        }
    }

    #[test]
    fn a_note_names_the_command_and_ends_with_whole_lines_of_the_log() {
        assert_eq!(
            written("it failed", COMMAND, " \n"),
            format!("it failed. Its log: {COMMAND}")
        );
        assert_eq!(
            written("it failed", COMMAND, "one\ntwo\n"),
            format!("it failed. Its log ({COMMAND}) ends:\none\ntwo")
        );
        let lines: Vec<_> = (0..200).map(|at| format!("line {at:03} é")).collect();
        for why in ["short".to_owned(), "ü".repeat(2_000)] {
            let note = written(&why, COMMAND, &lines.join("\n"));
            assert!(note.len() <= MAX_NOTE_BYTES, "{}", note.len());
            assert!(
                note.contains(COMMAND) && note.ends_with("line 199 é"),
                "{note}"
            );
            let (_, log) = note.split_once("ends:\n").unwrap();
            assert!(log.lines().count() > 10, "{log}");
            assert!(log.lines().all(|line| line.starts_with("line ")), "{log}");
        }
        let endless = written("it failed", COMMAND, &"x".repeat(5_000));
        assert_eq!(endless.len(), MAX_NOTE_BYTES);
    }
}
