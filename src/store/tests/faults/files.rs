//! Files that cannot be used as they are.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use store::{Kept, Location, Notice, Opened, Store, StoreOptions};
use tempfile::TempDir;

use crate::fixtures::{PASSED, decision, minute, report, tenant};

/// A closed file with some decisions in it.
async fn written() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("home/relay.db");
    let store = open(&path).await.store;
    let tenant = tenant("before");
    for _ in 0..300 {
        assert_eq!(
            store.keep_decision(&tenant, Arc::new(decision())),
            Kept::Queued
        );
    }
    store.close(Duration::from_secs(10)).await.unwrap();
    (folder, path)
}

async fn open(path: &Path) -> Opened {
    let location = Location::Sqlite(path.to_owned());
    Store::open(location, StoreOptions::default())
        .await
        .unwrap()
}

async fn works(store: &Store) {
    let tenant = tenant("after");
    let decision = Arc::new(decision());
    assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
    let said = report(decision.id, PASSED);
    store
        .record_outcome(&tenant, said, minute(1))
        .await
        .unwrap();
}

/// Writes over the pages in the middle of a file.
fn scribble(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 3 * 4096].fill(0xA5);
    fs::write(path, bytes).unwrap();
}

fn cut(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn not_a_database(path: &Path) {
    fs::write(path, "decisions: none\n".repeat(1000)).unwrap();
}

fn newer(path: &Path) {
    let file = rusqlite::Connection::open(path).unwrap();
    file.pragma_update(None, "user_version", 4711).unwrap();
}

fn whole(_: &Path) {}

#[tokio::test]
async fn fault_37_a_file_that_is_not_usable_is_kept_aside() {
    type Damage = fn(&Path);
    let cases: [(&str, Damage, Option<&str>); 5] = [
        ("whole", whole, None),
        ("scribbled over", scribble, Some("damaged")),
        ("cut", cut, Some("damaged")),
        ("not a database", not_a_database, Some("damaged")),
        ("of a newer version", newer, Some("newer")),
    ];
    for (name, damage, word) in cases {
        let (_folder, path) = written().await;
        damage(&path);
        let before = fs::read(&path).unwrap();
        fs::write(path.with_extension("db-wal"), "the log").unwrap();
        let Opened { store, notices } = open(&path).await;
        works(&store).await;
        match (word, notices.as_slice()) {
            (None, []) => {}
            (
                Some(word),
                [
                    Notice::SetAside {
                        path: aside,
                        reason,
                    },
                ],
            ) => {
                let said = aside.file_name().unwrap().to_string_lossy().into_owned();
                assert!(
                    said.starts_with(&format!("relay.db.{word}-")),
                    "{name}: {said}"
                );
                assert!(!reason.is_empty(), "{name}");
                assert_eq!(fs::read(aside).unwrap(), before, "{name}: it is as it was");
                let mut log = aside.clone().into_os_string();
                log.push("-wal");
                assert!(Path::new(&log).exists(), "{name}: and so is its log");
            }
            other => panic!("{name}: {other:?}"),
        }
        drop(store);
        assert_eq!(open(&path).await.notices, [], "{name}: the new one is fine");
    }
}

#[tokio::test]
async fn two_that_find_a_damaged_file_keep_it_aside_once() {
    let (_folder, path) = written().await;
    not_a_database(&path);
    let (one, other) = tokio::join!(open(&path), open(&path));
    assert_eq!(one.notices.len() + other.notices.len(), 1);
    works(&one.store).await;
    works(&other.store).await;
}

#[tokio::test]
async fn a_file_that_is_found_damaged_later_is_read_through_at_the_next_start() {
    let (_folder, path) = written().await;
    let store = open(&path).await.store;
    works(&store).await;
    let marker = path.with_file_name("relay.db.suspect");
    fs::write(&marker, "").unwrap();
    store.close(Duration::from_secs(5)).await.unwrap();
    assert_eq!(open(&path).await.notices, [], "it was fine");
    assert!(!marker.exists());
}

#[tokio::test]
async fn only_the_owner_may_read_it() {
    let (_folder, path) = written().await;
    let store = open(&path).await.store;
    works(&store).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&path.with_extension("db-wal")), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_that_writes_is_waited_for() {
    let (_folder, path) = written().await;
    let store = open(&path).await.store;
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch("BEGIN IMMEDIATE; CREATE TABLE other_part (id BIGINT)")
        .unwrap();
    let ending = tokio::task::spawn_blocking(move || {
        std::thread::sleep(Duration::from_millis(500));
        other.execute_batch("COMMIT").unwrap();
    });
    works(&store).await;
    ending.await.unwrap();
    assert!(store.is_up());
}
