//! Every byte is hashed, and what is wrong is said.

use std::fs;
use std::path::{Path, PathBuf};

use api::reason::Reason;
use volumes::{Digest, Run, Source, TaskError, Verified, VerifyRequest, fetch, verify};

use crate::support::{digest_of, folder_of, hex, http, limits, made, request, server};

const WEIGHTS: &str = "model.safetensors";

fn check(models: &Path, path: Option<PathBuf>) -> Result<Verified, TaskError> {
    let request = VerifyRequest {
        models: models.to_owned(),
        digest: made().digest.clone(),
        path,
        contract: None,
        limits: limits(),
    };
    verify(&request, &Run::quiet())
}

#[test]
fn what_is_missing_wrong_or_too_much_is_named() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let error = check(base.path(), None).unwrap_err();
    assert!(error.to_string().contains("is not there"), "{error}");

    fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap();
    let verified = check(base.path(), None).unwrap();
    assert_eq!(verified.size_bytes, made().size());
    let folder = folder_of(base.path(), &made().digest);

    let mut wrong = made().bytes(WEIGHTS);
    wrong[5] ^= 1;
    fs::remove_file(folder.join(WEIGHTS)).unwrap();
    fs::write(folder.join(WEIGHTS), wrong).unwrap();
    fs::remove_file(folder.join("encoder/config.json")).unwrap();
    fs::write(folder.join("encoder/extra"), "x").unwrap();
    let error = check(base.path(), None).unwrap_err();
    for says in [
        "model.safetensors has SHA-256",
        "encoder/config.json is missing",
        "encoder/extra is not listed",
    ] {
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(error.reason(), Some(Reason::ModelDamaged));
    assert_eq!(error.exit().code(), 3);
}

#[test]
fn a_folder_that_is_not_ours_is_hashed_in_place_and_not_written() {
    let base = tempfile::tempdir().unwrap();
    let verified = check(base.path(), Some(made().dir.clone())).unwrap();
    assert_eq!(verified.file_count, made().files.len() as u64);
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);

    // Below the root, by a relative path.
    let copy = base.path().join("local-1");
    for file in &made().files {
        let to = copy.join(&file.path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(made().dir.join(&file.path), to).unwrap();
    }
    check(base.path(), Some("local-1".into())).unwrap();
    fs::write(copy.join("rl_agent_config.json"), "{}").unwrap();
    let error = check(base.path(), Some("local-1".into())).unwrap_err();
    assert!(matches!(error, TaskError::DigestMismatch { .. }), "{error}");
}

#[test]
fn another_contract_is_said() {
    let base = tempfile::tempdir().unwrap();
    let contract = decision::relay_contract();
    let dir = base.path().join("local-2");
    for file in &made().files {
        let to = dir.join(&file.path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(made().dir.join(&file.path), to).unwrap();
    }
    fs::write(dir.join("decisions.json"), contract.export()).unwrap();
    let seen = laya::checkpoint::inspect(&dir, None).unwrap();
    let digest = Digest::parse(&seen.digest.unwrap()).unwrap();
    let asked = |contract: &str| {
        let request = VerifyRequest {
            models: base.path().to_owned(),
            digest: digest.clone(),
            path: Some("local-2".into()),
            contract: Digest::parse(contract).ok(),
            limits: limits(),
        };
        verify(&request, &Run::quiet())
    };
    let right = asked(&contract.digest().to_string()).unwrap();
    assert_eq!(
        right.contract.unwrap().digest,
        contract.digest().to_string()
    );
    assert!(right.decisions.is_some());
    let error = asked(&format!("sha256:{}", "0".repeat(64))).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ContractMismatch));
}

#[test]
fn files_that_are_right_and_mean_nothing_are_a_bad_checkpoint() {
    for (name, content) in [
        (WEIGHTS, b"12345678nonsense".as_slice()),
        ("rl_agent_config.json", b"{".as_slice()),
    ] {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("local-3");
        let mut files = made().files.clone();
        for file in &mut files {
            let to = dir.join(&file.path);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            if file.path == name {
                file.size = content.len() as u64;
                file.sha256 = hex(content);
                fs::write(to, content).unwrap();
            } else {
                fs::copy(made().dir.join(&file.path), to).unwrap();
            }
        }
        let asked = VerifyRequest {
            models: base.path().to_owned(),
            digest: digest_of(&files),
            path: Some("local-3".into()),
            contract: None,
            limits: limits(),
        };
        let error = verify(&asked, &Run::quiet()).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::BadCheckpoint), "{error}");
        // An import of the same folder is refused for the same reason.
        let models = base.path().join("models");
        let import = request(&models, Source::Folder { path: dir });
        let error = fetch(&import, &Run::quiet()).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::BadCheckpoint), "{error}");
    }
}
