//! A disk without space.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use store::{Kept, Location, Store, StoreError, StoreOptions};

use crate::fixtures::{PASSED, decision, minute, report, tenant};
use crate::wait::until;

/// A small file system, taken away at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
            .arg(at)
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_22_a_full_disk_loses_nothing_that_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path()) else {
        eprintln!("SKIPPED: fault_22 needs the right to mount a tmpfs (run as root)");
        return;
    };
    let path = disk.0.join("relay.db");
    let opened = Store::open(Location::Sqlite(path), StoreOptions::default()).await;
    let store = opened.unwrap().store;
    let filler = disk.0.join("filler");
    let _ = std::fs::write(&filler, vec![1; 4 << 20]);
    let tenant = tenant("full-disk");
    let mut kept = Vec::new();
    let patience = Duration::from_secs(20);
    until("the disk is full", patience, async || {
        let decision = Arc::new(decision());
        assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
        kept.push(decision.id);
        !store.is_up()
    })
    .await;
    let said = report(kept[0], PASSED);
    let refused = store.record_outcome(&tenant, said.clone(), minute(1)).await;
    match refused {
        Err(error @ StoreError::Away { .. }) => {
            let text = error.to_string();
            assert!(text.contains("no space"), "{text}");
            assert!(text.contains("relay.db"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert!(
        store.decision(&tenant, kept[0]).await.is_ok(),
        "reading goes on"
    );
    std::fs::remove_file(filler).unwrap();
    until("it heals", patience, async || {
        store
            .record_outcome(&tenant, said.clone(), minute(1))
            .await
            .is_ok()
    })
    .await;
    assert!(store.is_up());
    for id in kept {
        assert!(store.decision(&tenant, id).await.unwrap().is_some());
    }
    store.close(patience).await.unwrap();
}
