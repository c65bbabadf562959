//! Learned tasks and frozen datasets.

use std::sync::Arc;

use store::{Dataset, DatasetEdit, Event, RowWrite, Snapshot, Store, StoredRow};

use crate::engines::Database;
use crate::fixtures::{minute, tenant};
use crate::quota::events;

fn row(id: &str, line: &str) -> StoredRow {
    StoredRow {
        id: id.to_owned(),
        line: line.to_owned(),
    }
}

fn writes(writes: Vec<RowWrite>) -> DatasetEdit<u64> {
    Arc::new(move |dataset| (writes.clone(), dataset.revision))
}

/// Adds a session row with the next number, and answers its id.
fn append(line: String) -> DatasetEdit<String> {
    Arc::new(move |dataset| {
        let id = format!("s{:05}", dataset.highest_session_number + 1);
        (vec![RowWrite::Put(row(&id, &line))], id)
    })
}

pub(crate) async fn rows_keep_their_place_and_their_past(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("rows");
    let edit = |list| store.edit_dataset(&tenant, writes(list));
    let put = |id, line| RowWrite::Put(row(id, line));
    assert_eq!(store.dataset(&tenant).await, Ok(Dataset::default()));
    edit(vec![put("s00007", "a"), put("r00001", "b")])
        .await
        .unwrap();
    edit(vec![]).await.unwrap();
    edit(vec![put("s00007", "a2")]).await.unwrap();
    let wanted = Dataset {
        revision: 2,
        highest_session_number: 7,
        rows: vec![row("s00007", "a2"), row("r00001", "b")],
    };
    assert_eq!(store.dataset(&tenant).await, Ok(wanted));
    for line in ["a3", "a4", "a5", "a6", "a7", "a7"] {
        edit(vec![put("s00007", line)]).await.unwrap();
    }
    let versions = store.row_versions(&tenant, "s00007").await.unwrap();
    assert_eq!(versions, ["a6", "a5", "a4", "a3", "a2"]);
    edit(vec![RowWrite::Remove("s00007".to_owned())])
        .await
        .unwrap();
    let left = store.dataset(&tenant).await.unwrap();
    assert_eq!(left.rows, [row("r00001", "b")]);
    assert_eq!(
        left.highest_session_number, 7,
        "numbers are not given twice"
    );
    let versions = store.row_versions(&tenant, "s00007").await.unwrap();
    assert_eq!(versions, [""; 0], "forgetting means forgetting");
    let revision = left.revision;
    assert_eq!(events(&store, &tenant).await, [Event::Dataset { revision }]);
    let stranger = crate::fixtures::tenant("stranger");
    assert_eq!(store.dataset(&stranger).await, Ok(Dataset::default()));
}

pub(crate) async fn rows_are_found_after_others_went(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("gaps");
    let put = |id: &str, line: &str| RowWrite::Put(row(id, line));
    let remove = |id: &str| RowWrite::Remove(id.to_owned());
    for (name, edit, wanted) in [
        (
            "added",
            vec![put("a", "1"), put("b", "1"), put("c", "1"), put("d", "1")],
            &["a1", "b1", "c1", "d1"][..],
        ),
        (
            "two go, others change",
            vec![remove("a"), put("d", "2"), remove("c"), put("b", "2")],
            &["b2", "d2"],
        ),
        (
            "found where they are now",
            vec![put("d", "3"), put("b", "3")],
            &["b3", "d3"],
        ),
        (
            "one goes and comes back at the end",
            vec![remove("b"), put("b", "4"), put("b", "5"), put("e", "1")],
            &["d3", "b5", "e1"],
        ),
        (
            "one comes and goes",
            vec![put("f", "1"), remove("f"), put("e", "2")],
            &["d3", "b5", "e2"],
        ),
        ("a stranger goes", vec![remove("x")], &["d3", "b5", "e2"]),
        ("all go", vec![remove("d"), remove("e"), remove("b")], &[]),
        ("one comes", vec![put("a", "9")], &["a9"]),
    ] {
        // What the writer remembers, and what is stored.
        store.edit_dataset(&tenant, writes(edit)).await.unwrap();
        let seen: DatasetEdit<Dataset> = Arc::new(|dataset| (Vec::new(), dataset.clone()));
        let remembered = store.edit_dataset(&tenant, seen).await.unwrap();
        let stored = store.dataset(&tenant).await.unwrap();
        assert_eq!(remembered, stored, "{name}");
        let rows: Vec<_> = stored
            .rows
            .iter()
            .map(|row| format!("{}{}", row.id, row.line))
            .collect();
        assert_eq!(rows, wanted, "{name}");
    }
}

pub(crate) async fn twenty_saves_at_once_make_twenty_rows(database: &Database) {
    let stores = [database.open().await, database.open().await];
    let tenant = tenant("saves");
    let saves: Vec<_> = (0..20)
        .map(|number: usize| {
            let (store, tenant) = (stores[number % 2].clone(), tenant.clone());
            let save = append(format!("line {number}"));
            tokio::spawn(async move { store.edit_dataset(&tenant, save).await })
        })
        .collect();
    let mut ids = Vec::new();
    for save in saves {
        ids.push(save.await.unwrap().unwrap());
    }
    ids.sort();
    let wanted: Vec<_> = (1..=20).map(|number| format!("s{number:05}")).collect();
    assert_eq!(ids, wanted);
    for store in &stores {
        let dataset = store.dataset(&tenant).await.unwrap();
        assert_eq!((dataset.rows.len(), dataset.revision), (20, 20));
    }
}

pub(crate) async fn an_edit_that_panics_fails_alone(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("panic");
    let bad: DatasetEdit<()> = Arc::new(|_| panic!("told to"));
    let (bad, good) = tokio::join!(
        store.edit_dataset(&tenant, bad),
        store.edit_dataset(&tenant, append("good".to_owned()))
    );
    assert!(!bad.unwrap_err().retryable());
    assert_eq!(good, Ok("s00001".to_owned()));
    assert_eq!(store.dataset(&tenant).await.unwrap().rows.len(), 1);
}

async fn snapshot(store: &Store, tenant: &str, at: i64) -> Option<String> {
    store
        .snapshot(tenant, "sha256:1", minute(at))
        .await
        .unwrap()
}

pub(crate) async fn a_snapshot_is_kept_as_it_was(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("snapshot");
    let frozen = |body: &str| Snapshot {
        digest: "sha256:1".to_owned(),
        body: body.to_owned(),
    };
    assert_eq!(snapshot(&store, &tenant, 0).await, None);
    store
        .keep_snapshot(&tenant, frozen("first"), minute(0))
        .await
        .unwrap();
    store
        .keep_snapshot(&tenant, frozen("second"), minute(1))
        .await
        .unwrap();
    assert_eq!(
        snapshot(&store, &tenant, 120).await.as_deref(),
        Some("first")
    );
    assert_eq!(snapshot(&store, "stranger", 120).await, None);
}
