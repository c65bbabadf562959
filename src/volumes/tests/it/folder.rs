//! A folder of this machine as source.

use std::fs;
use std::path::Path;

use volumes::task::{fetch_result, verify_result};
use volumes::{
    Digest, Existing, FetchRequest, Run, Source, TaskError, VerifyRequest, fetch, verify,
};

use crate::support::{assert_published, folder_of, limits, made, names, request};

fn copy(to: &Path) {
    for file in &made().files {
        let path = to.join(&file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(made().dir.join(&file.path), path).unwrap();
    }
}

fn source(path: &Path) -> Source {
    Source::Folder {
        path: path.to_owned(),
    }
}

#[test]
fn a_plain_folder_gets_its_digest_and_is_published() {
    let base = tempfile::tempdir().unwrap();
    let (from, models) = (base.path().join("from"), base.path().join("models"));
    copy(&from);
    fs::write(from.join("README.md"), "not of the checkpoint").unwrap();
    let wanted = request(&models, source(&from));
    let fetched = fetch(&wanted, &Run::quiet()).unwrap();
    assert_eq!(fetched.digest, made().digest);
    assert_published(&models, made());
    assert!(fetch(&wanted, &Run::quiet()).unwrap().present);
    // A published version is a folder with a manifest, and so a source as well.
    let second = base.path().join("second");
    let again = request(&second, source(&fetched.path));
    fetch(&again, &Run::quiet()).unwrap();
    assert_published(&second, made());
}

#[test]
fn what_a_manifest_tells_beside_its_files_is_kept() {
    let base = tempfile::tempdir().unwrap();
    let (from, models) = (base.path().join("from"), base.path().join("models"));
    copy(&from);
    let parent = format!("sha256:{}", "7".repeat(64));
    let files: Vec<serde_json::Value> = made()
        .files
        .iter()
        .map(|f| serde_json::json!({"path": f.path, "sha256": f.sha256, "size": f.size}))
        .collect();
    let manifest = serde_json::json!({
        "files": files, "digest": made().digest.to_string(), "parents": [parent], "recipe": {"epochs": 4},
        "probes": [{"state": {"request": "x"}, "answers": {"a": {"label": "true", "probability": 0.5}}}],
    });
    fs::write(from.join("relay-manifest.json"), manifest.to_string()).unwrap();
    let fetched = fetch(&request(&models, source(&from)), &Run::quiet()).unwrap();
    assert_eq!(fetched.parents, [parent]);
    let told = |result: &str| -> serde_json::Value {
        let result: serde_json::Value = serde_json::from_str(result).unwrap();
        result["probes"].clone()
    };
    let probes = told(&fetch_result(&Ok(fetched.clone())));
    assert_eq!(probes, manifest["probes"], "what the controller asks by");
    // The same where it is there already, and where it is hashed.
    let again = fetch(&request(&models, source(&from)), &Run::quiet()).unwrap();
    assert!(again.present);
    assert_eq!(told(&fetch_result(&Ok(again))), probes);
    let looked = VerifyRequest {
        models: models.clone(),
        digest: made().digest.clone(),
        path: None,
        contract: None,
        limits: limits(),
    };
    let verified = verify(&looked, &Run::quiet()).unwrap();
    assert_eq!(told(&verify_result(&Ok(verified))), probes);
    let text = fs::read(fetched.path.join("relay-manifest.json")).unwrap();
    let read: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(read["recipe"]["epochs"], 4);
    assert_eq!(read["probes"][0]["answers"]["a"]["label"], "true");
}

#[test]
fn fault_40_a_folder_with_links_is_refused() {
    let base = tempfile::tempdir().unwrap();
    for link in ["model.safetensors", "encoder"] {
        let from = base.path().join(format!("from-{link}"));
        copy(&from);
        let kept = base.path().join(format!("kept-{link}"));
        fs::rename(from.join(link), &kept).unwrap();
        std::os::unix::fs::symlink(&kept, from.join(link)).unwrap();
        let models = base.path().join("models");
        let error = fetch(&request(&models, source(&from)), &Run::quiet()).unwrap_err();
        assert!(matches!(error, TaskError::UnsafePath { .. }), "{error}");
        assert_eq!(names(&models), [".lock", ".store.json"]);
    }
}

#[test]
fn a_folder_that_is_no_checkpoint_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let models = base.path().join("models");
    let error = fetch(&request(&models, source(base.path())), &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::BadCheckpoint { .. }), "{error}");
    let missing = base.path().join("missing");
    let error = fetch(&request(&models, source(&missing)), &Run::quiet()).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn good_files_of_a_folder_mend_what_was_damaged_since() {
    let base = tempfile::tempdir().unwrap();
    let (from, models) = (base.path().join("from"), base.path().join("models"));
    copy(&from);
    let wanted = FetchRequest {
        existing: Existing::Repair,
        ..request(&models, source(&from))
    };
    fetch(&wanted, &Run::quiet()).unwrap();
    // As long as before, so that sizes tell nothing.
    let weights = folder_of(&models, &made().digest).join("model.safetensors");
    let mut wrong = made().bytes("model.safetensors");
    wrong[77] ^= 1;
    fs::remove_file(&weights).unwrap();
    fs::write(&weights, &wrong).unwrap();
    let fetched = fetch(&wanted, &Run::quiet()).unwrap();
    assert!(!fetched.present);
    assert_published(&models, made());
    assert!(fetch(&wanted, &Run::quiet()).unwrap().present);
}

#[test]
fn a_folder_that_is_refused_leaves_no_copy() {
    let base = tempfile::tempdir().unwrap();
    let (from, models) = (base.path().join("from"), base.path().join("models"));
    copy(&from);
    // Whole files that mean nothing: found when all are copied.
    let config = from.join("encoder/config.json");
    fs::remove_file(&config).unwrap();
    fs::write(&config, "{}").unwrap();
    let error = fetch(&request(&models, source(&from)), &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::BadCheckpoint { .. }), "{error}");
    assert_eq!(names(&models.join(".staging")), Vec::<String>::new());

    // Another checkpoint than the one that is asked for is refused before anything is copied.
    let other = Digest::parse(&format!("sha256:{}", "7".repeat(64))).unwrap();
    let asked = FetchRequest {
        digest: Some(other),
        existing: Existing::Repair,
        ..request(&models, source(&made().dir))
    };
    let error = fetch(&asked, &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::DigestMismatch { .. }), "{error}");
    assert_eq!(names(&models.join(".staging")), Vec::<String>::new());
}
