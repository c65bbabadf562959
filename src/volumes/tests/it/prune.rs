//! Deleting: exactly what is named, in two phases.

use std::fs;
use std::path::Path;

use volumes::{Digest, PruneRequest, Pruned, Run, TaskError, fetch, prune, view};

use crate::support::{DieAt, folder_of, http, limits, made, names, request, run_with, server};

fn ask(models: &Path, delete: &[Digest], keep: &[Digest]) -> PruneRequest {
    PruneRequest {
        models: models.to_owned(),
        delete: delete.to_vec(),
        keep: keep.to_vec(),
        limits: limits(),
    }
}

fn do_prune(models: &Path, delete: &[Digest], keep: &[Digest]) -> Pruned {
    prune(&ask(models, delete, keep), &Run::quiet()).unwrap()
}

fn digest(digit: char) -> Digest {
    Digest::parse(&format!("sha256:{}", digit.to_string().repeat(64))).unwrap()
}

#[test]
fn what_is_named_goes_and_everything_else_stays() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap();
    let other = base.path().join(digest('1').folder());
    fs::create_dir(&other).unwrap();
    fs::create_dir(base.path().join("local-1")).unwrap();
    fs::write(base.path().join("notes\u{1b}[2J.txt"), "mine").unwrap();
    let staging = base
        .path()
        .join(".staging")
        .join(&made().digest.hex()[..16]);
    fs::create_dir_all(&staging).unwrap();

    let pruned = do_prune(base.path(), &[made().digest.clone(), digest('9')], &[]);
    assert_eq!(pruned.deleted, [made().digest.clone(), digest('9')]);
    assert!(pruned.freed_bytes > made().size());
    assert_eq!(pruned.unknown, ["local-1", "notes\u{1b}[2J.txt"]);
    assert!(!folder_of(base.path(), &made().digest).exists());
    assert!(!staging.exists(), "its parts went too");
    assert!(other.is_dir() && base.path().join("local-1").is_dir());
    assert_eq!(names(&base.path().join(".trash")), Vec::<String>::new());
    let left = pruned.left.clone().unwrap();
    assert_eq!(left.published.len(), 1, "{left:?}");
    let line = volumes::task::prune_result(&Ok(pruned));
    assert!(!line.contains('\u{1b}'), "{line:?}");
    // It says what is left, as a look alone does.
    let read = |line: &str| -> serde_json::Value { serde_json::from_str(line).unwrap() };
    let looked = volumes::task::view_result(&Ok(left));
    for said in [read(&line), read(&looked)] {
        assert_eq!(said["ok"], true);
        let version = &said["published"][0];
        assert_eq!(version["digest"], digest('1').to_string());
        assert!(
            version["damage"]
                .as_str()
                .unwrap()
                .contains("relay-manifest.json")
        );
        assert_eq!(
            said["unknown"],
            serde_json::json!(["local-1", "notes\u{1b}[2J.txt"])
        );
        assert!(said["freeBytes"].as_u64().unwrap() > 0 && said["omitted"].is_null());
    }
}

#[test]
fn what_is_marked_stays_whoever_asks() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap();
    let own = [made().digest.clone()];
    do_prune(base.path(), &[], &own);
    let pruned = do_prune(base.path(), &own, &[]);
    assert_eq!((pruned.deleted, pruned.kept), (vec![], own.to_vec()));
    assert!(folder_of(base.path(), &made().digest).is_dir());
    let seen = view(base.path()).unwrap();
    assert!(seen.published[0].keep);
    assert_eq!(seen.published[0].digest, made().digest);
    assert_eq!(seen.published[0].damage, None);
    assert!(seen.free_bytes > 0 && seen.total_bytes >= seen.free_bytes);
}

#[test]
fn a_prune_that_dies_between_its_phases_is_finished_by_the_next_task() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let fetched = request(base.path(), http(&server));
    fetch(&fetched, &Run::quiet()).unwrap();
    // Step 0 is the lock, step 1 the rename.
    let asked = ask(base.path(), &[made().digest.clone()], &[]);
    let error = prune(&asked, &run_with(&DieAt::step(1))).unwrap_err();
    assert!(matches!(error, TaskError::Interrupted));
    assert!(!folder_of(base.path(), &made().digest).exists());
    assert_eq!(names(&base.path().join(".trash")).len(), 1);
    do_prune(base.path(), &[], &[]);
    assert_eq!(names(&base.path().join(".trash")), Vec::<String>::new());
}

#[test]
fn a_volume_that_is_not_there_is_empty() {
    let base = tempfile::tempdir().unwrap();
    let seen = view(&base.path().join("nothing")).unwrap();
    assert_eq!((seen.published, seen.unknown), (vec![], vec![]));
}
