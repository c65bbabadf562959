//! Control-plane 11, the table: a crash after each step leaves what it says, and the next run ends published.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use volumes::{CrashPoints, Existing, FetchRequest, Run, Source, Step, TaskError, fetch};

use crate::support::{
    DieAt, assert_published, folder_of, http, made, names, request, run_with, server,
};

/// Names this process as the child that is to die, and says where.
const DIE_AT: &str = "VOLUMES_TEST_DIE_AT";
const MODELS: &str = "VOLUMES_TEST_MODELS";
const URL: &str = "VOLUMES_TEST_URL";

/// Every step that a run passes, in order.
fn steps() -> Vec<Step> {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let points = DieAt::never();
    fetch(&request(base.path(), http(&server)), &run_with(&points)).unwrap();
    points.passed()
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
        Step::Received { path, bytes } => {
            let part = staging.join(path).metadata().unwrap();
            assert_eq!(part.len(), *bytes, "the length is what is here");
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
    for (at, step) in steps().iter().enumerate() {
        let base = tempfile::tempdir().unwrap();
        let request = request(base.path(), http(&server));
        let points = DieAt::step(at);
        let error = fetch(&request, &run_with(&points)).unwrap_err();
        assert!(matches!(error, TaskError::Interrupted), "{step:?}: {error}");
        assert_eq!(points.passed().last(), Some(step));
        assert_left(base.path(), step);
        let fetched = fetch(&request, &Run::quiet()).unwrap();
        let was_there = matches!(step, Step::Renamed | Step::Published);
        assert_eq!(fetched.present, was_there, "{step:?}");
        assert_published(base.path(), made());
    }
}

/// A point at which the process is gone, with everything it holds.
struct Abort(Arc<DieAt>);

impl CrashPoints for Abort {
    fn passed(&self, step: &Step) -> Result<(), TaskError> {
        if self.0.passed(step).is_err() {
            std::process::abort();
        }
        Ok(())
    }
}

/// Runs only as the child of the test below.
#[test]
fn child_that_dies() {
    let (Ok(at), Ok(models), Ok(url)) = (
        std::env::var(DIE_AT),
        std::env::var(MODELS),
        std::env::var(URL),
    ) else {
        return;
    };
    let source = Source::Http {
        base_url: url,
        files: made().files.clone(),
    };
    let points = Arc::new(Abort(DieAt::step(at.parse().unwrap())));
    let run = Run::quiet().with_points(points);
    let _ = fetch(&request(Path::new(&models), source), &run);
}

#[test]
fn fault_21_a_process_that_is_killed_after_any_step_leaves_the_tables_state_too() {
    let server = server();
    let steps = steps();
    // One of each kind, and the first and last bytes of each file.
    let chosen = steps.iter().enumerate().filter(|(at, step)| {
        !matches!(step, Step::Received { .. })
            || !matches!(steps.get(at + 1), Some(Step::Received { .. }))
    });
    for (at, step) in chosen {
        let base = tempfile::tempdir().unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child_that_dies", "--test-threads", "1"])
            .env(DIE_AT, at.to_string())
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
    let steps = {
        let base = tempfile::tempdir().unwrap();
        damaged(base.path());
        let points = DieAt::never();
        fetch(&repair(base.path()), &run_with(&points)).unwrap();
        points.passed()
    };
    assert!(steps.contains(&Step::OldTrashed), "{steps:?}");
    for (at, step) in steps.iter().enumerate() {
        let base = tempfile::tempdir().unwrap();
        damaged(base.path());
        fetch(&repair(base.path()), &run_with(&DieAt::step(at))).unwrap_err();
        // There is always a folder of this name, old or new.
        let manifest = folder_of(base.path(), &made().digest).join("relay-manifest.json");
        assert!(manifest.is_file(), "no version after {step:?}");
        fetch(&repair(base.path()), &Run::quiet()).unwrap();
        assert_published(base.path(), made());
    }
}
