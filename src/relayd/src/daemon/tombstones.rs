//! `GET /api/tombstones/{uid}`: whether an object of this uid was deleted, for a process that reconciles without the store.
//! What runs for one that was is swept there (control-plane 1.4).

use axum::extract::{Path, State};
use http::StatusCode;
use serde_json::json;

use super::Daemon;
use super::answer::{Answer, Refusal, json_answer};
use crate::tombstones::is_uid;

pub(super) async fn tombstones(State(daemon): State<Daemon>, Path(uid): Path<String>) -> Answer {
    if !is_uid(&uid) {
        return Err(Refusal::field("uid", "expected letters, digits and -"));
    }
    let deleted = daemon.0.store.was_deleted(&uid).await;
    let deleted = deleted.map_err(|error| Refusal::internal(&error))?;
    let said = json!({"uid": uid, "deleted": deleted});
    Ok(json_answer(StatusCode::OK, &said))
}
