//! Full queues, groups with a bad write among them, and writers that wait for each other.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use store::{DatasetEdit, Kept, Location, OpenError, Store, StoreError, StoreOptions};
use uuid::Uuid;

use crate::engines::Database;
use crate::fixtures::{PASSED, decision, minute, report, tenant};
use crate::wait::until;

/// Holds the writer in the middle of a transaction until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<(bool, bool)>, Condvar)>);

impl Gate {
    fn edit(&self) -> DatasetEdit<()> {
        let gate = self.clone();
        Arc::new(move |_| {
            let (state, changed) = &*gate.0;
            // On PostgreSQL this runs on a thread of the runtime, which others need.
            tokio::task::block_in_place(|| {
                let mut state = state.lock().unwrap();
                state.0 = true;
                while !state.1 {
                    state = changed.wait(state).unwrap();
                }
            });
            (Vec::new(), ())
        })
    }

    fn is_reached(&self) -> bool {
        self.0.0.lock().unwrap().0
    }

    fn open(&self) {
        self.0.0.lock().unwrap().1 = true;
        self.0.1.notify_all();
    }
}

/// A store whose writer is held.
async fn held(database: &Database, options: StoreOptions) -> (Store, Gate) {
    let store = database.open_with(options).await;
    let gate = Gate::default();
    let (writer, edit) = (store.clone(), gate.edit());
    tokio::spawn(async move { writer.edit_dataset(&"gate".into(), edit).await });
    until("the writer is held", Duration::from_secs(5), async || {
        gate.is_reached()
    })
    .await;
    (store, gate)
}

async fn a_bad_write_fails_alone(database: &Database) {
    let (store, gate) = held(database, StoreOptions::default()).await;
    let tenant = tenant("group");
    let decisions: Vec<_> = (0..20).map(|_| Arc::new(decision())).collect();
    let mut bad = None;
    for (number, decision) in decisions.iter().enumerate() {
        assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
        if number == 10 {
            let (writer, tenant) = (store.clone(), tenant.clone());
            let edit: DatasetEdit<()> = Arc::new(|_| panic!("told to"));
            bad = Some(tokio::spawn(async move {
                writer.edit_dataset(&tenant, edit).await
            }));
            tokio::task::yield_now().await;
        }
    }
    let said = report(decisions[19].id, PASSED);
    let recorded = store.record_outcome(&tenant, said, minute(1));
    let (recorded, ()) = tokio::join!(recorded, async { gate.open() });
    assert!(
        matches!(recorded, Ok(store::Recorded::New { .. })),
        "{recorded:?}"
    );
    let bad = bad.unwrap().await.unwrap();
    assert!(matches!(bad, Err(StoreError::Failed { .. })), "{bad:?}");
    for decision in &decisions {
        let stored = store.decision(&tenant, decision.id).await.unwrap();
        assert!(stored.is_some(), "{}", decision.id);
    }
    assert_eq!(
        store.changes(0).await.unwrap().events.len(),
        1,
        "nothing is told twice"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_write_fails_alone_on_sqlite() {
    a_bad_write_fails_alone(&Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
async fn a_bad_write_fails_alone_on_postgres() {
    a_bad_write_fails_alone(&Database::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_34_a_full_queue_refuses_and_forgets_nothing() {
    for (name, options) in [
        (
            "entries",
            StoreOptions {
                queue_entries: 4,
                ..StoreOptions::default()
            },
        ),
        (
            "bytes",
            StoreOptions {
                queue_bytes: 3 * 4600,
                ..StoreOptions::default()
            },
        ),
    ] {
        let database = Database::sqlite();
        let (store, gate) = held(&database, options).await;
        let tenant = tenant("full");
        let mut kept = Vec::new();
        let refused = loop {
            let decision = Arc::new(decision());
            match store.keep_decision(&tenant, decision.clone()) {
                Kept::Queued => kept.push(decision.id),
                Kept::Full => break decision.id,
            }
            assert!(kept.len() < 5, "{name}");
        };
        assert!(kept.len() >= 2, "{name}: {}", kept.len());
        gate.open();
        let room = Duration::from_secs(5);
        until("there is room again", room, async || {
            let said = report(kept[0], PASSED);
            store.record_outcome(&tenant, said, minute(1)).await.is_ok()
        })
        .await;
        for id in &kept {
            assert!(
                store.decision(&tenant, *id).await.unwrap().is_some(),
                "{name}"
            );
        }
        assert_eq!(store.decision(&tenant, refused).await, Ok(None), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_waits_no_longer_than_the_deadline() {
    let options = StoreOptions {
        deadline: Duration::from_millis(300),
        ..StoreOptions::default()
    };
    let database = Database::sqlite();
    let (store, gate) = held(&database, options).await;
    let began = Instant::now();
    let asked = store
        .record_outcome(&tenant("slow"), report(Uuid::nil(), PASSED), minute(1))
        .await;
    assert!(matches!(asked, Err(StoreError::Away { .. })), "{asked:?}");
    assert!(began.elapsed() < Duration::from_secs(2));
    gate.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_writes_what_waits_and_refuses_what_comes() {
    let database = Database::sqlite();
    let (store, gate) = held(&database, StoreOptions::default()).await;
    let tenant = tenant("close");
    let decisions: Vec<_> = (0..600).map(|_| Arc::new(decision())).collect();
    for decision in &decisions {
        assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
    }
    let closed = store.close(Duration::from_secs(10));
    let (closed, ()) = tokio::join!(closed, async {
        tokio::task::yield_now().await;
        gate.open();
    });
    assert_eq!(closed, Ok(()));
    assert_eq!(
        store.keep_decision(&tenant, decisions[0].clone()),
        Kept::Full
    );
    let asked = store
        .record_outcome(&tenant, report(Uuid::nil(), PASSED), minute(1))
        .await;
    assert!(asked.is_err());
    assert_eq!(
        store.close(Duration::from_secs(1)).await,
        Ok(()),
        "twice is fine"
    );
    assert!(store.dataset(&tenant).await.unwrap_err().retryable());
    let again = database.open().await;
    for decision in &decisions {
        assert!(
            again
                .decision(&tenant, decision.id)
                .await
                .unwrap()
                .is_some()
        );
    }
}

/// Panics when the writer lets go of the edit that holds it.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("told to");
    }
}

async fn a_store_whose_writer_panicked_is_not_up(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("bomb");
    let kept = Arc::new(decision());
    assert_eq!(store.keep_decision(&tenant, kept.clone()), Kept::Queued);
    let bomb = Bomb;
    let edit: DatasetEdit<()> = Arc::new(move |_| {
        let _held = &bomb;
        (Vec::new(), ())
    });
    // It is on disk by the time the writer panics.
    assert_eq!(store.edit_dataset(&tenant, edit).await, Ok(()));
    until("it is down", Duration::from_secs(5), async || {
        !store.is_up()
    })
    .await;
    let asked = store
        .record_outcome(&tenant, report(kept.id, PASSED), minute(1))
        .await;
    assert!(matches!(asked, Err(StoreError::Away { .. })), "{asked:?}");
    assert_eq!(
        store.keep_decision(&tenant, Arc::new(decision())),
        Kept::Full
    );
    let stored = store.decision(&tenant, kept.id).await.unwrap();
    assert!(stored.is_some(), "reads go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_writer_panicked_is_not_up_on_sqlite() {
    a_store_whose_writer_panicked_is_not_up(&Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
async fn a_store_whose_writer_panicked_is_not_up_on_postgres() {
    a_store_whose_writer_panicked_is_not_up(&Database::postgres().await).await;
}

#[tokio::test]
async fn says_why_a_place_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo")
        .args(["-m", "640"])
        .arg(&pipe)
        .status();
    assert!(made.unwrap().success());
    for (name, path) in [
        ("a folder", folder.path().to_owned()),
        ("below a file", file.join("relay.db")),
        ("a pipe", pipe.clone()),
    ] {
        let opened = Store::open(Location::Sqlite(path), StoreOptions::default()).await;
        assert!(
            matches!(opened, Err(OpenError::File { .. })),
            "{name}: {opened:?}"
        );
    }
    let mode = std::fs::metadata(&pipe).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "what is not ours is not changed");
}
