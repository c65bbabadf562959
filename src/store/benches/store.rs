//! How fast the store is: `cargo bench -p store [-- <postgres address>]`. Prints numbers; judges nothing.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../tests/conformance/fixtures.rs"]
mod fixtures;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use routing::record::Decision;
use store::{
    DatasetEdit, DecisionQuery, Kept, Location, Retention, RowWrite, Store, StoreOptions, StoredRow,
};
use uuid::Uuid;

use fixtures::{PASSED, decision_at, in_conversation, report, start};

const DECISIONS: usize = 100_000;
const ROWS: usize = 10_000;
/// Outcomes under way at once.
const AT_ONCE: usize = 64;

#[tokio::main]
async fn main() {
    let server = std::env::args().find(|argument| argument.starts_with("postgres"));
    let folder = tempfile::tempdir().expect("a folder");
    let location = match server {
        Some(address) => Location::Postgres(address),
        None => Location::Sqlite(folder.path().join("relay.db")),
    };
    println!("{location:?}");
    let store = open(&location).await;
    let tenant: Arc<str> = format!("bench-{}", std::process::id()).into();
    let ids = fill(&store, &tenant).await;
    singles(&store, &tenant, &ids).await;
    dataset(&store, &tenant).await;
    reads(&store, &tenant, &ids).await;
    let began = Instant::now();
    store.close(Duration::from_secs(60)).await.expect("closed");
    println!("close: {:?}", began.elapsed());
    starts(&location).await;
    let store = open(&location).await;
    let began = Instant::now();
    let retention = Retention {
        days: 90,
        most_decisions: 50_000,
    };
    let now = start() + SignedDuration::from_hours(24 * 80);
    let pruned = store.prune(retention, now).await.expect("pruned");
    println!("prune: {pruned:?} in {:?}", began.elapsed());
}

async fn open(location: &Location) -> Store {
    let opened = Store::open(location.clone(), StoreOptions::default()).await;
    let store = opened.expect("opened").store;
    assert!(store.is_up());
    store
}

/// Decisions over some weeks, one outcome each, as fast as they go.
async fn fill(store: &Store, tenant: &Arc<str>) -> Vec<Uuid> {
    let template = in_conversation("c", start());
    let bytes = serde_json::to_string(&template).expect("JSON").len();
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..AT_ONCE {
        let (store, tenant, template) = (store.clone(), tenant.clone(), template.clone());
        tasks.spawn(async move {
            let mut ids = Vec::new();
            for number in (worker..DECISIONS).step_by(AT_ONCE) {
                let decision = like(&template, number);
                ids.push(decision.id);
                while store.keep_decision(&tenant, decision.clone()) == Kept::Full {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let body = format!(r#"{PASSED},"usage":{{"input_tokens":9000,"output_tokens":800,"cost_usd":0.01}}"#);
                let said = report(decision.id, &body);
                let at = decision.created;
                while let Err(error) = store.record_outcome(&tenant, said.clone(), at).await {
                    assert!(error.retryable(), "{error}");
                }
            }
            ids
        });
    }
    let ids = tasks.join_all().await.concat();
    let took = began.elapsed();
    println!(
        "{DECISIONS} decisions of {bytes} bytes, each with an outcome: {took:?}, {:.0} outcomes/s",
        DECISIONS as f64 / took.as_secs_f64()
    );
    ids
}

fn like(template: &Decision, number: usize) -> Arc<Decision> {
    let created = start() + SignedDuration::from_secs(i64::try_from(number).expect("small") * 60);
    let millis = u64::try_from(created.as_millisecond()).expect("after 1970");
    let mut random = [0; 10];
    random[..8].copy_from_slice(&(number as u64).to_be_bytes());
    Arc::new(Decision {
        id: uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid(),
        created,
        conversation_id: Some(format!("c{}", number % 5000)),
        ..template.clone()
    })
}

/// One outcome after another, as a single client sees it, at a pace.
async fn singles(store: &Store, tenant: &Arc<str>, ids: &[Uuid]) {
    let mut times = Vec::new();
    for id in ids.iter().take(1000) {
        let said = fixtures::report_of(*id, 2, PASSED);
        let began = Instant::now();
        store
            .record_outcome(tenant, said, start())
            .await
            .expect("recorded");
        times.push(began.elapsed());
    }
    print("one outcome alone", times);
    let mut times = Vec::new();
    for number in 0..1000 {
        let decision = Arc::new(decision_at("Fix the pager", start()));
        let began = Instant::now();
        assert_eq!(
            store.keep_decision(tenant, decision),
            Kept::Queued,
            "{number}"
        );
        times.push(began.elapsed());
    }
    print("keep_decision", times);
}

async fn dataset(store: &Store, tenant: &Arc<str>) {
    let line = format!(
        r#"{{"id":"s00001","state":{{"request":"{}"}}}}"#,
        "x".repeat(800)
    );
    let began = Instant::now();
    for chunk in (0..ROWS).collect::<Vec<_>>().chunks(200) {
        let writes: Vec<_> = chunk
            .iter()
            .map(|number| {
                RowWrite::Put(StoredRow {
                    id: format!("s{number:05}"),
                    line: line.clone(),
                })
            })
            .collect();
        let edit: DatasetEdit<()> = Arc::new(move |_| (writes.clone(), ()));
        store.edit_dataset(tenant, edit).await.expect("saved");
    }
    println!("{ROWS} rows, 200 at a time: {:?}", began.elapsed());
    let mut times = Vec::new();
    for number in 0..50 {
        let row = StoredRow {
            id: format!("s{number:05}"),
            line: format!("{line} "),
        };
        let edit: DatasetEdit<()> = Arc::new(move |_| (vec![RowWrite::Put(row.clone())], ()));
        let began = Instant::now();
        store.edit_dataset(tenant, edit).await.expect("saved");
        times.push(began.elapsed());
    }
    print("one row saved", times);
}

async fn reads(store: &Store, tenant: &Arc<str>, ids: &[Uuid]) {
    let mut times = Vec::new();
    for id in ids.iter().step_by(100) {
        let began = Instant::now();
        assert!(store.decision(tenant, *id).await.expect("read").is_some());
        times.push(began.elapsed());
    }
    print("decision", times);
    let mut times = Vec::new();
    for number in 0..1000 {
        let began = Instant::now();
        let found = store
            .last_of_conversation(tenant, &format!("c{number}"))
            .await;
        assert!(found.expect("read").is_some());
        times.push(began.elapsed());
    }
    print("last_of_conversation", times);
    let query = DecisionQuery {
        limit: 500,
        ..DecisionQuery::default()
    };
    let began = Instant::now();
    store.decisions(tenant, &query).await.expect("read");
    println!("page of 500: {:?}", began.elapsed());
    let began = Instant::now();
    store.report_rows(tenant, start()).await.expect("read");
    println!("report over all: {:?}", began.elapsed());
}

/// From nothing to a router that knows all it needs.
async fn starts(location: &Location) {
    for _ in 0..3 {
        let began = Instant::now();
        let store = open(location).await;
        let opened = began.elapsed();
        let (mut last, mut events) = (0, 0);
        loop {
            let changes = store.changes(last).await.expect("read");
            if changes.events.is_empty() {
                break;
            }
            events += changes.events.len();
            last = changes.last;
        }
        println!(
            "start: opened in {opened:?}, with {events} events in {:?}",
            began.elapsed()
        );
        store.close(Duration::from_secs(60)).await.expect("closed");
    }
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{what}: p50 {:?}, p99 {:?}, most {:?}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
