//! Control-plane 11, the table: a crash after each step leaves what it says, and the next run ends published.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use volumes::{CrashPoints, Existing, FetchRequest, Run, Source, Step, TaskError, fetch};

use crate::support::{
    DieAt, assert_published, folder_of, http, made, names, request, run_with, server,
};

/// Names this process as the child that is to die, and says where.
const DIE_ON: &str = "VOLUMES_TEST_DIE_ON";
const MODELS: &str = "VOLUMES_TEST_MODELS";
const URL: &str = "VOLUMES_TEST_URL";

/// Every step that a run passes, in order.
fn steps() -> Vec<Step> {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let points = DieAt::never();
    fetch(&request(base.path(), http(&server)), &run_with(&points)).unwrap();
    points.log()
}

fn staging(models: &Path) -> PathBuf {
    models.join(".staging").join(&made().digest.hex()[..16])
}

/// What the table says a crash after this step leaves.
fn assert_left(models: &Path, step: &Step) {
    let published = folder_of(models, &made().digest);
    let staging = staging(models);
    match step {
        Step::Locked | Step::Looked => {
            assert_eq!(names(&staging), Vec::<String>::new(), "{step:?}");
        }
        Step::SpaceChecked => assert_eq!(names(&staging), Vec::<String>::new()),
        Step::Received { path, .. } => {
            let part = std::fs::read(staging.join(path)).unwrap();
            assert!(!part.is_empty(), "{step:?}");
            assert!(made().bytes(path).starts_with(&part), "{step:?}");
        }
        Step::Checked { path } => {
            let whole = std::fs::read(staging.join(path)).unwrap();
            assert_eq!(whole, made().bytes(path));
        }
        Step::Understood | Step::FilesSynced => {
            for file in &made().files {
                assert!(staging.join(&file.path).is_file(), "{step:?}");
            }
        }
        Step::ManifestSynced => assert!(staging.join("relay-manifest.json").is_file()),
        Step::Renamed | Step::Published => {
            assert!(published.join("relay-manifest.json").is_file());
            assert!(!staging.exists());
            return;
        }
        Step::OldMoved | Step::OldTrashed | Step::Trashed | Step::Emptied => {
            panic!("{step:?} belongs to no first fetch")
        }
    }
    assert!(!published.exists(), "published too early, after {step:?}");
}

#[test]
fn every_step_of_the_table_is_passed_in_its_order() {
    let mut kinds: Vec<String> = steps()
        .iter()
        .map(|step| {
            format!("{step:?}")
                .split([' ', '{'])
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    kinds.dedup();
    assert_eq!(kinds[..3], ["Locked", "Looked", "SpaceChecked"]);
    assert_eq!(
        kinds[kinds.len() - 5..],
        [
            "Understood",
            "FilesSynced",
            "ManifestSynced",
            "Renamed",
            "Published"
        ]
    );
    assert!(kinds.contains(&"Received".to_owned()) && kinds.contains(&"Checked".to_owned()));
}

#[test]
fn fault_21_a_run_that_stops_after_any_step_leaves_the_tables_state_and_the_next_ends_published() {
    let server = server();
    for at in 0.. {
        let base = tempfile::tempdir().unwrap();
        let request = request(base.path(), http(&server));
        let points = DieAt::step(at);
        match fetch(&request, &run_with(&points)) {
            // There are no more steps.
            Ok(_) => {
                assert!(at >= 15, "only {at} steps");
                break;
            }
            Err(error) => assert!(matches!(error, TaskError::Interrupted), "{at}: {error}"),
        }
        // The one that killed it: how much comes at once is the network's.
        let step = points.log().pop().unwrap();
        assert_left(base.path(), &step);
        if let Step::Received { path, bytes } = &step {
            let part = staging(base.path()).join(path).metadata().unwrap();
            assert_eq!(part.len(), *bytes, "the length is what is here");
        }
        let fetched = fetch(&request, &Run::quiet()).unwrap();
        let was_there = matches!(step, Step::Renamed | Step::Published);
        assert_eq!(fetched.present, was_there, "{step:?}");
        assert_published(base.path(), made());
    }
}

/// What a step is, however much came at once.
fn key(step: &Step) -> String {
    match step {
        Step::Received { path, .. } => format!("Received {path}"),
        Step::Checked { path } => format!("Checked {path}"),
        other => format!("{other:?}"),
    }
}

/// A point at which the process is gone, with everything it holds.
struct AbortOn(String);

impl CrashPoints for AbortOn {
    fn passed(&self, step: &Step) -> Result<(), TaskError> {
        if key(step) == self.0 {
            std::process::abort();
        }
        Ok(())
    }
}

/// Runs only as the child of the test below.
#[test]
fn child_that_dies() {
    let (Ok(on), Ok(models), Ok(url)) = (
        std::env::var(DIE_ON),
        std::env::var(MODELS),
        std::env::var(URL),
    ) else {
        return;
    };
    let source = Source::Http {
        base_url: url,
        files: made().files.clone(),
    };
    let run = Run::quiet().with_points(Arc::new(AbortOn(on)));
    let _ = fetch(&request(Path::new(&models), source), &run);
}

#[test]
fn fault_21_a_process_that_is_killed_after_any_step_leaves_the_tables_state_too() {
    let server = server();
    let mut steps = steps();
    steps.dedup_by_key(|step| key(step));
    for step in &steps {
        let base = tempfile::tempdir().unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child_that_dies", "--test-threads", "1"])
            .env(DIE_ON, key(step))
            .env(MODELS, base.path())
            .env(URL, server.url())
            .output()
            .unwrap()
            .status;
        assert!(!status.success(), "it did not die after {step:?}");
        assert_left(base.path(), step);
        fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap();
        assert_published(base.path(), made());
    }
}

#[test]
fn fault_21_a_repair_that_stops_after_any_step_leaves_a_version_that_the_next_one_mends() {
    let server = server();
    let damaged = |models: &Path| {
        fetch(&request(models, http(&server)), &Run::quiet()).unwrap();
        let path = folder_of(models, &made().digest).join("model.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[1000] ^= 1;
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    };
    let repair = |models: &Path| FetchRequest {
        existing: Existing::Repair,
        ..request(models, http(&server))
    };
    let mut trashed = false;
    for at in 0.. {
        let base = tempfile::tempdir().unwrap();
        damaged(base.path());
        let points = DieAt::step(at);
        if fetch(&repair(base.path()), &run_with(&points)).is_ok() {
            break;
        }
        let step = points.log().pop().unwrap();
        trashed |= step == Step::OldTrashed;
        // There is always a folder of this name, old or new.
        let manifest = folder_of(base.path(), &made().digest).join("relay-manifest.json");
        assert!(manifest.is_file(), "no version after {step:?}");
        fetch(&repair(base.path()), &Run::quiet()).unwrap();
        assert_published(base.path(), made());
    }
    assert!(trashed, "it never exchanged");
}
