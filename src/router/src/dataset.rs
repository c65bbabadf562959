//! The rows of a tenant and how they change: learning, freezing a snapshot, the first rows (training.md 2, 12). What a
//! change means is `routing::dataset`'s; here it meets the store, and memory follows before the answer goes out.

use std::collections::HashMap;
use std::sync::Arc;

use api::FieldError;
use api::problem::Slug;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use decision::relay_contract;
use jiff::Timestamp;
use routing::dataset::{
    DatasetView, Edit, InForce, LearnAnswer, LearnBody, LearnRefusal, Row, TrainingAnswer,
    first_use, learn, rules_of, snapshot,
};
use service::http::{JsonBody, Tenant, json_bytes, json_response};
use service::problem::Failure;
use store::{Dataset, RowWrite, StoreError, StoredRow};

use crate::beside::beside;
use crate::decide::Decider;
use crate::escalate::away;

/// Rows of one revision.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) revision: u64,
    highest_session_number: u64,
    rows: Vec<Row>,
    by_id: HashMap<String, usize>,
}

impl Rows {
    /// Reads what the store has. A line that cannot be read was never written by us; it is left where it is.
    pub(crate) fn read(dataset: &Dataset) -> Self {
        let rows = dataset.rows.iter().filter_map(|stored| {
            Row::read(&stored.line)
                .inspect_err(
                    |error| tracing::warn!(row = stored.id, %error, "a stored row cannot be read"),
                )
                .ok()
        });
        Self::of(dataset, rows.collect())
    }

    /// Rows in the place of those of a dataset.
    fn of(dataset: &Dataset, rows: Vec<Row>) -> Self {
        let ids = rows.iter().map(|row| row.id().to_owned());
        Self {
            revision: dataset.revision,
            highest_session_number: dataset.highest_session_number,
            by_id: ids.enumerate().map(|(at, id)| (id, at)).collect(),
            rows,
        }
    }

    pub(crate) fn view(&self) -> DatasetView<'_> {
        DatasetView {
            rows: &self.rows,
            highest_session_number: self.highest_session_number,
        }
    }

    pub(crate) fn by_id(&self, id: &str) -> Option<&Row> {
        self.rows.get(*self.by_id.get(id)?)
    }

    pub(crate) fn all(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn learned(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_session())
    }
}

/// What the store is to write for an edit.
pub(crate) fn writes(edit: &Edit) -> Vec<RowWrite> {
    let removes = edit.removes.iter().cloned().map(RowWrite::Remove);
    let puts = edit.puts.iter().map(|row| RowWrite::Put(stored(row)));
    removes.chain(puts).collect()
}

impl Decider {
    /// Changes the tenant's rows in one transaction; once this returns, memory knows.
    pub(crate) async fn edit_rows<E: Send + 'static>(
        &self,
        tenant: &Tenant,
        change: impl Fn(&DatasetView<'_>) -> Result<Edit, E> + Send + Sync + 'static,
    ) -> Result<Result<Edit, E>, Failure> {
        let edited = self.store.edit_dataset(
            &tenant.0,
            Arc::new(move |dataset: &Dataset| {
                let rows = Rows::read(dataset);
                match change(&rows.view()) {
                    Ok(edit) => (writes(&edit), Ok(edit)),
                    Err(error) => (Vec::new(), Err(error)),
                }
            }),
        );
        let edited = edited.await.map_err(|error| away(&error))?;
        if edited.as_ref().is_ok_and(|edit| !edit.is_empty()) {
            self.learned(tenant).await;
        }
        Ok(edited)
    }

    /// What was written takes part in memory from the next request on; should the store go away now, from its return on.
    async fn learned(&self, tenant: &Tenant) {
        if let Err(error) = self.knowledge.rebuild_memory(&tenant.0).await {
            tracing::debug!(%error, "learned tasks are read again later");
        }
        self.changed.notify_one();
    }

    /// Writes the first rows of a tenant that has none; says how many.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn seed_first_rows(&self, tenant: &Arc<str>) -> Result<usize, StoreError> {
        let edit = move |dataset: &Dataset| {
            let first = first_rows(dataset);
            (writes(&first), first.added)
        };
        self.store.edit_dataset(tenant, Arc::new(edit)).await
    }

    /// The tenant's rows as they are now, read where that holds nobody up.
    pub(crate) async fn rows(&self, tenant: &Tenant) -> Result<Rows, Failure> {
        let dataset = self.store.dataset(&tenant.0).await;
        let dataset = dataset.map_err(|error| away(&error))?;
        beside(move || Rows::read(&dataset)).await
    }
}

/// The rows to begin with, for a tenant that never had any; nothing for others, also where all were taken away.
fn first_rows(dataset: &Dataset) -> Edit {
    if dataset.revision > 0 || !dataset.rows.is_empty() {
        return Edit::default();
    }
    let nothing = Rows::of(dataset, Vec::new());
    first_use(&nothing.view(), &InForce::of(relay_contract()))
}

fn stored(row: &Row) -> StoredRow {
    StoredRow {
        id: row.id().to_owned(),
        line: row.line().to_owned(),
    }
}

/// `POST /v1/learn`.
pub(crate) async fn learn_route(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    JsonBody(body): JsonBody<LearnBody>,
) -> Result<Response, Failure> {
    let now = Timestamp::now();
    let wishes_training = body.train.unwrap_or(true);
    let policy = decider.policy.current();
    let learned = Arc::new(move |dataset: &Dataset| {
        let in_force = InForce::of(relay_contract());
        // The first learned task of a tenant finds the rows that give words their weight.
        let first = first_rows(dataset);
        let rows = if first.is_empty() {
            Rows::read(dataset)
        } else {
            Rows::of(dataset, first.puts.clone())
        };
        match learn(
            &rows.view(),
            &body,
            now,
            &in_force,
            rules_of(&policy.policy),
        ) {
            Ok(edit) => {
                let training = training(wishes_training);
                let answer = LearnAnswer::of(&edit, rows.all(), &in_force, training);
                let mut all = writes(&first);
                all.extend(writes(&edit));
                (all, Ok(answer))
            }
            Err(refusal) => (Vec::new(), Err(refusal)),
        }
    });
    let learned = decider.store.edit_dataset(&tenant.0, learned).await;
    match learned.map_err(|error| away(&error))? {
        Ok(answer) => {
            decider.learned(&tenant).await;
            Ok(json_response(&answer))
        }
        Err(LearnRefusal::Invalid(errors)) => Err(Failure::invalid(errors)),
        Err(refusal @ LearnRefusal::ContractMismatch { .. }) => Err(Failure::new(
            Slug::ContractMismatch,
            refusal.to_string(),
        )
        .hint("ask `/v1/contract` for the questions in force and label the tasks under them")),
    }
}

/// Training runs are the control plane's; a router alone keeps the rows for them.
fn training(wished: bool) -> TrainingAnswer {
    let reason = if wished {
        "no control plane is connected; the tasks are kept for the next training"
    } else {
        "not asked for"
    };
    TrainingAnswer {
        run: None,
        reason: Some(reason.to_owned()),
    }
}

/// `POST /v1/dataset/snapshots`.
pub(crate) async fn freeze(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
) -> Result<Response, Failure> {
    let rows = decider.rows(&tenant).await?;
    let in_force = InForce::of(relay_contract());
    let frozen = beside(move || snapshot(rows.all(), &in_force, rows.revision)).await?;
    let now = Timestamp::now();
    for file in [&frozen.file, &frozen.held_out] {
        let kept = store::Snapshot {
            digest: file.digest.to_string(),
            body: file.jsonl.clone(),
        };
        let kept = decider.store.keep_snapshot(&tenant.0, kept, now).await;
        kept.map_err(|error| away(&error))?;
    }
    Ok(json_response(&frozen))
}

/// `GET /v1/dataset/snapshots/{digest}`: the frozen file as it was.
pub(crate) async fn frozen(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    Path(digest): Path<String>,
) -> Result<Response, Failure> {
    if digest.parse::<decision::contract::Digest>().is_err() {
        let message = "expected `sha256:` and 64 hex digits";
        return Err(Failure::invalid(vec![FieldError::new("digest", message)]));
    }
    let found = decider.store.snapshot(&tenant.0, &digest, Timestamp::now());
    match found.await.map_err(|error| away(&error))? {
        Some(body) => {
            let mut response = json_bytes(body.into_bytes());
            let kind = http::HeaderValue::from_static("application/jsonl");
            response
                .headers_mut()
                .insert(http::header::CONTENT_TYPE, kind);
            Ok(response)
        }
        None => Err(
            Failure::new(Slug::NotFound, format!("there is no snapshot {digest}")).hint(
                "snapshots are kept for 30 days after they were last read; freeze the rows again",
            ),
        ),
    }
}
