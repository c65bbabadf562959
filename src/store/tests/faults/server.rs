//! A PostgreSQL that goes away, comes back, hangs, lies or belongs to a newer program.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Event, Kept, Location, Recorded, Retention, Store, StoreError, StoreOptions};
use tokio::net::TcpListener;

use crate::engines::{Database, administer, new_database};
use crate::fixtures::{PASSED, decision, minute, report, start, tenant};
use crate::wait::until;

const PATIENCE: Duration = Duration::from_secs(30);

/// A server of its own, that may be killed.
struct Server {
    name: String,
    address: String,
}

fn script(command: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engines/postgres.sh");
    let ran = Command::new(path).args([command, name]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "postgres.sh {command}: {said}");
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

impl Server {
    fn start(name: &str) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let address = script("start", &name);
        Self { name, address }
    }

    fn kill(&self) {
        script("kill", &self.name);
    }

    fn come_back(&self) {
        assert_eq!(script("start", &self.name), self.address);
    }

    /// Stops all its processes where they are, or lets them go on.
    fn signal(&self, signal: &str) {
        script(signal, &self.name);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        script("stop", &self.name);
    }
}

async fn open(address: &str) -> Store {
    let location = Location::Postgres(address.to_owned());
    let opened = Store::open(location, StoreOptions::default()).await;
    opened.unwrap().store
}

async fn goes_up(store: &Store) {
    until("the store is up", PATIENCE, async || store.is_up()).await;
}

async fn goes_down(store: &Store) {
    until("the store is down", PATIENCE, async || !store.is_up()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
async fn a_server_that_is_killed_and_comes_back_has_everything() {
    let server = Server::start("killed");
    let store = open(&server.address).await;
    goes_up(&store).await;
    let tenant = tenant("killed");
    let mut kept = Vec::new();
    let mut said = Vec::new();
    let mut keep = || {
        let decision = Arc::new(decision());
        assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
        kept.push(decision.id);
        decision.id
    };
    for round in 0..2 {
        // Outcomes under way while the server dies: each is recorded, or its caller was told to try again.
        let mut under_way = tokio::task::JoinSet::new();
        for _ in 0..200 {
            let (store, tenant, said) = (store.clone(), tenant.clone(), report(keep(), PASSED));
            under_way.spawn(async move {
                let began = Instant::now();
                let recorded = store.record_outcome(&tenant, said.clone(), minute(1)).await;
                assert!(
                    began.elapsed() < Duration::from_millis(2500),
                    "{:?}",
                    began.elapsed()
                );
                (said, recorded)
            });
        }
        server.kill();
        for (report, recorded) in under_way.join_all().await {
            match recorded {
                Ok(recorded) => assert!(matches!(recorded, Recorded::New { .. }), "{recorded:?}"),
                Err(error) => assert!(error.retryable(), "{error}"),
            }
            said.push(report);
        }
        goes_down(&store).await;
        for _ in 0..100 {
            keep();
        }
        let began = Instant::now();
        let refused = store
            .record_outcome(&tenant, said[0].clone(), minute(2))
            .await;
        assert!(
            matches!(refused, Err(StoreError::Away { .. })),
            "{refused:?}"
        );
        assert!(store.decision(&tenant, said[0].decision_id).await.is_err());
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "nobody waits: {:?}",
            began.elapsed()
        );
        server.come_back();
        goes_up(&store).await;
        for report in &said {
            let recorded = store
                .record_outcome(&tenant, report.clone(), minute(3))
                .await;
            let is_there = matches!(recorded, Ok(Recorded::New { .. } | Recorded::Same { .. }));
            assert!(is_there, "round {round}: {recorded:?}");
        }
    }
    for id in &kept {
        assert!(store.decision(&tenant, *id).await.unwrap().is_some());
    }
    let changes = store.changes(0).await.unwrap();
    let evidence = changes
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Evidence(_)));
    assert_eq!(evidence.count(), said.len(), "each counts once");
    store.close(PATIENCE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
async fn a_server_that_hangs_is_noticed_and_so_is_its_end() {
    let server = Server::start("hangs");
    let store = open(&server.address).await;
    goes_up(&store).await;
    let tenant = tenant("hangs");
    let decision = Arc::new(decision());
    assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
    let said = report(decision.id, PASSED);
    store
        .record_outcome(&tenant, said.clone(), minute(1))
        .await
        .unwrap();
    server.signal("freeze");
    let began = Instant::now();
    let refused = store.record_outcome(&tenant, said.clone(), minute(1)).await;
    assert!(
        matches!(refused, Err(StoreError::Away { .. })),
        "{refused:?}"
    );
    assert!(
        began.elapsed() < Duration::from_millis(2500),
        "{:?}",
        began.elapsed()
    );
    goes_down(&store).await;
    let began = Instant::now();
    let refused = store.record_outcome(&tenant, said.clone(), minute(1)).await;
    assert!(
        matches!(refused, Err(StoreError::Away { .. })),
        "{refused:?}"
    );
    assert!(
        began.elapsed() < Duration::from_millis(200),
        "{:?}",
        began.elapsed()
    );
    server.signal("thaw");
    goes_up(&store).await;
    let recorded = store.record_outcome(&tenant, said, minute(1)).await;
    assert!(
        matches!(recorded, Ok(Recorded::Same { .. })),
        "{recorded:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_accepts_and_never_answers_is_away() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let began = Instant::now();
    let store = open(&format!("postgres://relay@127.0.0.1:{port}/relay")).await;
    assert!(!store.is_up());
    let said = report(uuid::Uuid::nil(), PASSED);
    let refused = store.record_outcome(&tenant("mute"), said, minute(1)).await;
    assert!(
        matches!(refused, Err(StoreError::Away { .. })),
        "{refused:?}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    let closed = store.close(Duration::from_millis(100)).await;
    assert_eq!(closed, Ok(()), "nothing waits");
    drop(listener);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_no_reason_not_to_start() {
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let began = Instant::now();
    let store = open(&format!("postgres://relay:geheim@127.0.0.1:{port}/relay")).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert!(!store.is_up());
    let kept = store.keep_decision(&tenant("absent"), Arc::new(decision()));
    assert_eq!(kept, Kept::Queued);
    let read = store.dataset("absent").await.unwrap_err();
    assert!(read.retryable());
    assert!(!format!("{read} {read:?} {store:?}").contains("geheim"));
    let closed = store.close(Duration::from_millis(500)).await;
    assert!(closed.unwrap_err().to_string().contains("still wait: 1"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
async fn routers_that_start_at_once_bring_it_up_to_date_once() {
    let address = new_database().await;
    let (one, two, three) = tokio::join!(open(&address), open(&address), open(&address));
    let tenant = tenant("at-once");
    for store in [&one, &two, &three] {
        goes_up(store).await;
        let unknown = report(uuid::Uuid::nil(), PASSED);
        let unknown = store.record_outcome(&tenant, unknown, minute(1));
        assert_eq!(unknown.await, Ok(Recorded::UnknownDecision));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
async fn fault_37_a_newer_database_is_left_alone() {
    let address = new_database().await;
    let before = open(&address).await;
    goes_up(&before).await;
    before.close(PATIENCE).await.unwrap();
    administer(&address, "UPDATE relay_schema SET version = 4711").await;
    let store = open(&address).await;
    assert!(!store.is_up());
    administer(&address, "UPDATE relay_schema SET version = 1").await;
    goes_up(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
async fn a_server_that_takes_no_writes_is_not_up() {
    let address = new_database().await;
    let name = address.rsplit_once('/').unwrap().1;
    let store = open(&address).await;
    goes_up(&store).await;
    let set = |value| format!("ALTER DATABASE {name} SET default_transaction_read_only = {value}");
    administer(&crate::engines::server(), &set("on")).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    administer(&address, end).await;
    goes_down(&store).await;
    let tenant = tenant("read-only");
    let decision = Arc::new(decision());
    assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
    administer(&crate::engines::server(), &set("off")).await;
    goes_up(&store).await;
    until("what was held is written", PATIENCE, async || {
        store
            .decision(&tenant, decision.id)
            .await
            .unwrap()
            .is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
async fn one_process_prunes_at_a_time() {
    let address = new_database().await;
    let store = open(&address).await;
    goes_up(&store).await;
    let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls)
        .await
        .unwrap();
    let driver = tokio::spawn(connection);
    let take = format!("SELECT pg_advisory_lock({})", 0x7265_6c61_7902_i64);
    client.batch_execute(&take).await.unwrap();
    let prune = || store.prune(Retention::default(), start());
    assert_eq!(prune().await, Ok(None));
    drop(client);
    driver.await.unwrap().unwrap();
    until("the other's right ends with it", PATIENCE, async || {
        matches!(prune().await, Ok(Some(_)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
async fn another_router_in_the_middle_of_a_write_is_waited_for() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let address = database.place();
    let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls)
        .await
        .unwrap();
    let driver = tokio::spawn(connection);
    let hold = "BEGIN; UPDATE relay_counter SET value = value WHERE id = 1";
    let tenant = tenant("waits");
    let decision = Arc::new(decision());
    assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
    let said = || report(decision.id, PASSED);
    client.batch_execute(hold).await.unwrap();
    let (recorded, ()) = tokio::join!(store.record_outcome(&tenant, said(), minute(1)), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        client.batch_execute("COMMIT").await.unwrap();
    });
    assert!(matches!(recorded, Ok(Recorded::New { .. })), "{recorded:?}");
    // One that never ends is not waited for.
    client.batch_execute(hold).await.unwrap();
    let began = Instant::now();
    let recorded = store.record_outcome(&tenant, said(), minute(1)).await;
    assert!(
        matches!(recorded, Err(StoreError::Away { .. })),
        "{recorded:?}"
    );
    assert!(
        began.elapsed() < Duration::from_millis(2500),
        "{:?}",
        began.elapsed()
    );
    drop(client);
    driver.await.unwrap().unwrap();
    goes_up(&store).await;
    let recorded = store.record_outcome(&tenant, said(), minute(1)).await;
    assert!(
        matches!(recorded, Ok(Recorded::Same { .. })),
        "{recorded:?}"
    );
}
