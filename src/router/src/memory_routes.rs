//! Learned tasks over HTTP: list, search, show, edit a lesson, forget (routing.md 14, 18).

use std::sync::Arc;

use api::exchange::{ForgetResponse, MemoryPatch, MemoryResponse, MemoryTask};
use api::problem::Slug;
use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use decision::relay_contract;
use routing::dataset::{EditError, Forget, InForce, Row, edit_lesson, forget};
use service::http::{JsonBody, Tenant, json_response};
use service::problem::Failure;

use crate::dataset::Rows;
use crate::decide::Decider;
use crate::query::Query;

/// Most tasks of a search.
const MOST_FOUND: usize = 100;
/// Tasks of a search when nobody asked for another number.
const FOUND: usize = 20;
const LIST_HINT: &str = "`relay laya memory list` shows them all";

pub(crate) async fn list(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let mut query = Query::read(query.as_deref(), &["stale"])?;
    let only_stale = query.switch("stale")?;
    let rows = decider.rows(&tenant).await?;
    let tasks = rows.learned().map(|row| task(row, None));
    let tasks: Vec<_> = tasks.filter(|task| task.stale || !only_stale).collect();
    Ok(json_response(&response(&rows, tasks)))
}

pub(crate) async fn search(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let mut query = Query::read(query.as_deref(), &["q", "limit"])?;
    let text = query.required("q")?;
    let limit = query.number("limit", 1..=MOST_FOUND)?.unwrap_or(FOUND);
    let rows = decider.rows(&tenant).await?;
    let known = decider.knowledge.of(&tenant.0);
    let Some(memory) = known.memory() else {
        return Ok(json_response(&response(&rows, Vec::new())));
    };
    let found = memory.index().search(&text, limit);
    let tasks = found.iter().filter_map(|found| {
        let row = rows.by_id(&found.task.id)?;
        Some(task(row, Some(found.similarity)))
    });
    let tasks = tasks.collect();
    Ok(json_response(&response(&rows, tasks)))
}

pub(crate) async fn show(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let rows = decider.rows(&tenant).await?;
    let row = rows.by_id(&id).filter(|row| row.is_session());
    let row = row.ok_or_else(|| unknown(&id))?;
    Ok(json_response(&task(row, None)))
}

pub(crate) async fn edit(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    Path(id): Path<String>,
    JsonBody(patch): JsonBody<MemoryPatch>,
) -> Result<Response, Failure> {
    let wanted = id.clone();
    let edited = decider
        .edit_rows(&tenant, move |view| {
            edit_lesson(view, &wanted, Some(&patch.lesson))
        })
        .await?;
    edited.map_err(refused)?;
    let rows = decider.rows(&tenant).await?;
    let row = rows.by_id(&id).ok_or_else(|| unknown(&id))?;
    Ok(json_response(&task(row, None)))
}

pub(crate) async fn remove(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let forget = Forget::Ids(vec![id]);
    remove_all(&decider, &tenant, forget).await
}

/// `DELETE /v1/memory?session=…` or `?all=true`.
pub(crate) async fn remove_many(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let mut query = Query::read(query.as_deref(), &["session", "all"])?;
    let all = query.switch("all")?;
    let forget = match (query.take("session"), all) {
        (Some(session), false) => Forget::Session(session),
        (None, true) => Forget::All,
        _ => {
            return Err(Failure::invalid(vec![api::FieldError::new(
                "?session",
                "expected `session=<id>` or `all=true`, and one of them",
            )]));
        }
    };
    remove_all(&decider, &tenant, forget).await
}

async fn remove_all(decider: &Decider, tenant: &Tenant, what: Forget) -> Result<Response, Failure> {
    let edited = decider
        .edit_rows(tenant, move |view| forget(view, &what))
        .await?;
    let edit = edited.map_err(refused)?;
    Ok(json_response(&ForgetResponse {
        forgotten: edit.removes,
        // No model is trained here yet; the training runs will name theirs.
        trained_models: Vec::new(),
    }))
}

fn task(row: &Row, similarity: Option<f64>) -> MemoryTask {
    let in_force = InForce::of(relay_contract());
    let labels = decision::json::write(&row.expected().clone().into());
    MemoryTask {
        id: row.id().to_owned(),
        request: row.request().to_owned(),
        lesson: row.lesson().map(str::to_owned),
        created: row.created(),
        labels: serde_json::from_str(&labels).unwrap_or_default(),
        stale: row.standing(&in_force).is_stale(),
        session: row.session().map(str::to_owned),
        split: row.split().map(|split| split.as_str().to_owned()),
        similarity,
    }
}

fn response(rows: &Rows, tasks: Vec<MemoryTask>) -> MemoryResponse {
    let in_force = InForce::of(relay_contract());
    let stale = rows
        .learned()
        .filter(|row| row.standing(&in_force).is_stale());
    MemoryResponse {
        tasks,
        total: rows.learned().count(),
        stale: stale.count(),
        revision: rows.revision,
    }
}

fn unknown(id: &str) -> Failure {
    Failure::new(Slug::NotFound, format!("there is no learned task {id}")).hint(LIST_HINT)
}

fn refused(error: EditError) -> Failure {
    match error {
        EditError::NoTask { .. } | EditError::NoSession { .. } => {
            Failure::new(Slug::NotFound, error.to_string()).hint(LIST_HINT)
        }
        EditError::Lesson(error) => Failure::invalid(vec![error]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_date_has_none() {
        for (name, row, created) in [
            (
                "dated",
                r#"{"id": "s1", "state": {"request": "Fix it"}, "expected": {}, "source": "session", "created": "2026-11-30T10:41:00Z"}"#,
                serde_json::json!("2026-11-30T10:41:00.000Z"),
            ),
            (
                "not dated",
                r#"{"id": "s1", "state": {"request": "Fix it"}, "expected": {}, "source": "session"}"#,
                serde_json::Value::Null,
            ),
        ] {
            let shown = task(&Row::read(row).unwrap(), None);
            let written = serde_json::to_value(&shown).unwrap();
            assert_eq!(written["created"], created, "{name}");
            let read: MemoryTask = serde_json::from_value(written).unwrap();
            assert_eq!(read, shown, "{name}");
        }
    }
}
