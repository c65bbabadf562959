//! A disk that is really full: a file system in memory of a few MiB, which takes root to mount. Elsewhere the store's own
//! bound stands in for it (`faults.rs`).

use std::path::Path;
use std::process::Command;

use objects::ObjectStoreOptions;
use serde_json::{Value, json};

use crate::support::{Home, PATIENCE, POLICIES, REVISIONS, at, open, policy};

/// A small file system, unmounted at the end.
struct Disk(tempfile::TempDir);

impl Disk {
    /// Nothing where it may not be mounted.
    fn mount(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder.path())
            .output();
        let is_mounted = done.is_ok_and(|output| output.status.success());
        is_mounted.then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).output();
    }
}

fn revision(number: usize, bytes: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": format!("r{number}")},
        "data": {"x": "x".repeat(bytes)}, "revision": 1,
    })
}

/// Fills what is left of a disk.
fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).expect("a file");
    let mut piece = 1 << 16;
    while piece > 0 {
        if file.write_all(&vec![0; piece]).is_err() {
            piece /= 2;
        }
    }
}

#[tokio::test]
async fn fault_22_on_a_full_disk_writes_are_refused_whole_reads_and_restarts_go_on() {
    let Some(disk) = Disk::mount("size=8m") else {
        eprintln!("skipped: a file system cannot be mounted here");
        return;
    };
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 2 << 20]).unwrap();
    let home = || {
        let opened = open(disk.path(), ObjectStoreOptions::default());
        assert_eq!(opened.notices, [], "a full disk is no damage");
        Home::from_opened(opened, tempfile::tempdir().unwrap())
    };
    let first = home();
    let made = first.made(POLICIES, &policy("one")).await;
    let mut stored = 0;
    // Many at once, so that the disk fills in the middle of a commit of several.
    let refused = loop {
        let some = (stored..stored + 8).map(|number| {
            let first = &first;
            async move {
                (
                    number,
                    first.post(REVISIONS, &revision(number, 100_000)).await,
                )
            }
        });
        let mut refused = None;
        for (_, (code, status)) in futures_util::future::join_all(some).await {
            match code {
                201 => stored += 1,
                _ => refused = Some((code, status)),
            }
        }
        if let Some(refused) = refused {
            break refused;
        }
        assert!(stored < 100, "the disk never was full");
    };
    assert_eq!(
        (refused.0, &refused.1["reason"]),
        (507, &json!("InsufficientStorage")),
        "{}",
        refused.1
    );
    fill(&disk.path().join("others"));
    for _ in 0..3 {
        let merge = json!({"metadata": {"labels": {"a": "x".repeat(60)}}});
        let (code, status) = first.merge(&at(POLICIES, "one"), &merge).await;
        assert!(matches!(code, 200 | 507), "{status}");
    }
    let (code, tried) = first
        .post(
            &format!("{REVISIONS}?dryRun=All"),
            &revision(9_999, 900_000),
        )
        .await;
    assert!(matches!(code, 201 | 507), "{tried}");
    let (_, list) = first.get(REVISIONS).await;
    assert_eq!(
        list["items"].as_array().map(Vec::len),
        Some(stored),
        "all or nothing"
    );
    let (code, one) = first.get(&at(POLICIES, "one")).await;
    assert_eq!(
        (code, &one["metadata"]["uid"]),
        (200, &made["metadata"]["uid"])
    );
    first.store.close(PATIENCE).await.unwrap();
    // Room for what SQLite needs to open a file at all, and no more.
    std::fs::remove_file(disk.path().join("others")).unwrap();
    let second = home();
    let (_, list) = second.get(REVISIONS).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(stored));
    second.store.close(PATIENCE).await.unwrap();
    fill(&disk.path().join("others"));
    let again = objects::ObjectStore::open(
        &disk.path().join("objects.db"),
        &disk.path().join("instance"),
        ObjectStoreOptions::default(),
    );
    match again {
        Ok(opened) => {
            assert_eq!(opened.notices, [], "a full disk is no damage");
            opened.store.close(PATIENCE).await.unwrap();
        }
        Err(error) => eprintln!("said at the start: {error}"),
    }
    let aside = std::fs::read_dir(disk.path()).unwrap();
    let aside = aside.filter(|entry| {
        entry
            .as_ref()
            .is_ok_and(|entry| entry.file_name().to_string_lossy().contains("damaged"))
    });
    assert_eq!(aside.count(), 0);
    std::fs::remove_file(disk.path().join("others")).unwrap();
    std::fs::remove_file(ballast).unwrap();
    let third = home();
    let (_, list) = third.get(REVISIONS).await;
    assert_eq!(
        list["items"].as_array().map(Vec::len),
        Some(stored),
        "nothing was lost"
    );
    assert_eq!(third.delete(&at(REVISIONS, "r0")).await.0, 200);
    third.store.close(PATIENCE).await.unwrap();
}
