//! A process that is killed while it writes at full speed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Kept, Location, Store, StoreOptions};
use uuid::Uuid;

use crate::engines::{Database, new_database};
use crate::fixtures::{PASSED, decision, minute, report};

/// Tells the test binary that it is the process to be killed, and where to write.
const PLACE: &str = "RELAY_STORE_TEST_VICTIM";
const TENANT: &str = "victim";

/// Writes outcomes until it is killed; prints the decision of each that was acknowledged.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part of the fault_38 tests, which start it"]
async fn victim() {
    let Ok(place) = std::env::var(PLACE) else {
        return;
    };
    let location = if place.starts_with("postgres") {
        Location::Postgres(place)
    } else {
        Location::Sqlite(place.into())
    };
    let opened = Store::open(location, StoreOptions::default()).await;
    let store = opened.unwrap().store;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let store = store.clone();
        writers.spawn(async move {
            let tenant: Arc<str> = TENANT.into();
            loop {
                let decision = Arc::new(decision());
                assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
                let said = report(decision.id, PASSED);
                store
                    .record_outcome(&tenant, said, minute(1))
                    .await
                    .unwrap();
                let mut out = std::io::stdout().lock();
                writeln!(out, "acknowledged {}", decision.id).unwrap();
            }
        });
    }
    writers.join_all().await;
}

async fn every_acknowledged_outcome_is_there(place: &str, database: &Database) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::victim", "--ignored", "--nocapture"])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged: Vec<Uuid> = Vec::new();
    let mut first = None;
    for line in out.lines() {
        // The last line may be cut.
        let line = line.unwrap();
        let id: Option<Uuid> = line
            .split("acknowledged ")
            .nth(1)
            .and_then(|id| id.parse().ok());
        acknowledged.extend(id);
        let began = *first.get_or_insert_with(Instant::now);
        if acknowledged.len() >= 500 && began.elapsed() > Duration::from_secs(1) {
            // SIGKILL; again and again until the pipe is empty does no harm.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= 500, "{}", acknowledged.len());
    let store = database.open().await;
    for id in &acknowledged {
        let stored = store.decision(TENANT, *id).await.unwrap();
        let outcomes = stored.map(|stored| stored.outcomes.len());
        assert_eq!(outcomes, Some(1), "{id} of {}", acknowledged.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_38_killed_on_sqlite() {
    let database = Database::sqlite();
    let place = database.place();
    every_acknowledged_outcome_is_there(&place, &database).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
async fn fault_38_killed_on_postgres() {
    let database = Database::at(Location::Postgres(new_database().await));
    let place = database.place();
    every_acknowledged_outcome_is_there(&place, &database).await;
}
