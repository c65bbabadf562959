//! Changing what was learned by hand: another lesson for a task, or forgetting it (routing.md 14). Forgotten rows leave
//! the dataset; their ids are never given again.

use super::learn::{LESSON_UNITS, lesson_problem};
use super::row::Row;
use super::view::{DatasetView, Edit};
use crate::request::FieldError;
use crate::text;

/// Which learned tasks are forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forget {
    /// These ids; all of them must be learned tasks.
    Ids(Vec<String>),
    /// Everything that one session taught.
    Session(String),
    /// Everything that any session taught. Other rows stay.
    All,
}

/// Why a learned task was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// No learned task has one of these ids (`not-found`).
    #[error("no learned task {}", .ids.join(", "))]
    NoTask {
        /// Those that are none.
        ids: Vec<String>,
    },
    /// No learned task comes from this session (`not-found`).
    #[error("no task was learned in session {session}")]
    NoSession {
        /// Which.
        session: String,
    },
    /// The new lesson is refused (`invalid-request`).
    #[error(transparent)]
    Lesson(#[from] FieldError),
}

/// Gives a learned task another lesson; blank or none takes it away.
///
/// # Errors
/// When there is no such learned task, or the lesson is too long or holds a credential.
pub fn edit_lesson(
    view: &DatasetView<'_>,
    id: &str,
    lesson: Option<&str>,
) -> Result<Edit, EditError> {
    let lesson = lesson.unwrap_or_default().trim();
    let units = text::units(lesson);
    if units > LESSON_UNITS {
        let message = format!("has {units} UTF-16 units, limit {LESSON_UNITS}");
        return Err(FieldError::new("lesson", message).into());
    }
    if let Some(problem) = lesson_problem(lesson) {
        return Err(FieldError::new("lesson", problem).into());
    }
    let row = view
        .rows
        .iter()
        .find(|row| row.is_session() && row.id() == id);
    let row = row.ok_or_else(|| EditError::NoTask {
        ids: vec![id.to_owned()],
    })?;
    let mut edit = view.edit();
    edit.ids.push(id.to_owned());
    if row.lesson().unwrap_or_default() != lesson {
        edit.puts.push(row.with_lesson(Some(lesson)));
        edit.updated = 1;
    }
    Ok(edit)
}

/// Forgets learned tasks.
///
/// # Errors
/// When one of the ids, or the session, has none. Nothing is forgotten then.
pub fn forget(view: &DatasetView<'_>, what: &Forget) -> Result<Edit, EditError> {
    let learned = |wanted: &dyn Fn(&Row) -> bool| -> Vec<String> {
        let rows = view
            .rows
            .iter()
            .filter(|row| row.is_session() && wanted(row));
        rows.map(|row| row.id().to_owned()).collect()
    };
    let removes = match what {
        Forget::All => learned(&|_| true),
        Forget::Session(session) => {
            let found = learned(&|row| row.session() == Some(session));
            if found.is_empty() {
                let session = session.clone();
                return Err(EditError::NoSession { session });
            }
            found
        }
        Forget::Ids(ids) => {
            let found = learned(&|row| ids.iter().any(|id| id == row.id()));
            let missing = ids.iter().filter(|id| !found.contains(id));
            let missing: Vec<String> = missing.cloned().collect();
            if !missing.is_empty() {
                return Err(EditError::NoTask { ids: missing });
            }
            found
        }
    };
    Ok(Edit {
        ids: removes.clone(),
        removes,
        ..view.edit()
    })
}
