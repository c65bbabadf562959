//! Checkpoint folders from outside: what is refused and how it is said, what verifies, and that nothing is written
//! (wire.md 12.3, 12.4, 23 item 3). Each case damages its own copy of the tiny checkpoint.
// Helpers of a test file are outside of `#[test]` functions, where the setting for tests does not reach.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use decision::contract::Kind;
use laya::checkpoint::{
    FileEntry, LoadFailure, Manifest, Shape, checkpoint_digest, inspect, write_random,
};
use laya::{
    Checkpoint, Engine, EngineOptions, LoadError, LoadOptions, Precision, TokenRow, Verify,
};
use sha2::{Digest, Sha256};

const FILES: [&str; 5] = [
    "rl_agent_config.json",
    "model.safetensors",
    "encoder/config.json",
    "tokenizer/tokenizer.json",
    "tokenizer/tokenizer_config.json",
];

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/tiny-laya")
}

fn copy() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in FILES {
        let to = dir.path().join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, fs::read(golden().join(name)).unwrap()).unwrap();
    }
    dir
}

fn load_with(dir: &Path, options: &LoadOptions) -> Result<Checkpoint, LoadError> {
    let engine = Engine::new(EngineOptions {
        threads: Some(2),
        ..EngineOptions::default()
    })
    .unwrap();
    engine.load(
        dir,
        &LoadOptions {
            origin: Some("tiny".to_owned()),
            ..options.clone()
        },
    )
}

fn load(dir: &Path) -> Result<Checkpoint, LoadError> {
    load_with(dir, &LoadOptions::default())
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

fn entries(dir: &Path) -> Vec<FileEntry> {
    let entry = |name: &str| {
        let bytes = fs::read(dir.join(name)).unwrap();
        FileEntry {
            path: name.to_owned(),
            sha256: hex(&bytes),
            size: bytes.len() as u64,
        }
    };
    FILES.into_iter().map(entry).collect()
}

fn write_manifest(dir: &Path, files: Vec<FileEntry>) -> String {
    let digest = checkpoint_digest(&files);
    let manifest = Manifest {
        digest: digest.clone(),
        files,
        contract: None,
        probes: vec![],
        more: serde_json::Map::new(),
    };
    fs::write(
        dir.join("relay-manifest.json"),
        serde_json::to_vec(&manifest).unwrap(),
    )
    .unwrap();
    digest
}

fn edit_json(path: &Path, edit: impl FnOnce(&mut serde_json::Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    edit(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Header (as JSON) and data of the copy's weights.
fn weights(dir: &Path) -> (serde_json::Value, Vec<u8>) {
    let bytes = fs::read(dir.join("model.safetensors")).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (
        serde_json::from_slice(&bytes[8..8 + length]).unwrap(),
        bytes[8 + length..].to_vec(),
    )
}

fn write_weights(dir: &Path, header: &serde_json::Value, data: &[u8]) {
    let header = header.to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    fs::write(dir.join("model.safetensors"), bytes).unwrap();
}

#[test]
fn damaged_folders_are_refused_with_the_reason() {
    type Damage = fn(&Path);
    let rows: Vec<(&str, Damage, LoadFailure, &str)> = vec![
        (
            "no agent configuration",
            |d| fs::remove_file(d.join(FILES[0])).unwrap(),
            LoadFailure::BadCheckpoint,
            "Incompatible model: 'tiny' does not contain 'rl_agent_config.json'",
        ),
        (
            "no weights",
            |d| fs::remove_file(d.join(FILES[1])).unwrap(),
            LoadFailure::BadCheckpoint,
            "Incompatible model: 'model.safetensors' not found in 'tiny'",
        ),
        (
            "no tokenizer",
            |d| fs::remove_file(d.join(FILES[3])).unwrap(),
            LoadFailure::BadCheckpoint,
            "does not contain 'tokenizer/tokenizer.json'",
        ),
        (
            "missing keys",
            |d| fs::write(d.join(FILES[0]), "{}").unwrap(),
            LoadFailure::BadCheckpoint,
            "Incompatible model config for 'tiny': missing configuration keys ['encoder', 'head_layers']",
        ),
        (
            "a configuration that is no JSON",
            |d| fs::write(d.join(FILES[2]), "{").unwrap(),
            LoadFailure::BadCheckpoint,
            "Incompatible model config for 'tiny': encoder/config.json",
        ),
        (
            "a configuration of two MiB",
            |d| fs::write(d.join(FILES[2]), vec![b' '; 2 << 20]).unwrap(),
            LoadFailure::BadCheckpoint,
            "2097152 bytes, limit 1048576",
        ),
        (
            "a huge dimension",
            |d| {
                edit_json(&d.join(FILES[2]), |c| {
                    c["vocab_size"] = 1_000_000_000u64.into()
                })
            },
            LoadFailure::BadCheckpoint,
            "'vocab_size' is 1000000000",
        ),
        (
            "another shape",
            |d| edit_json(&d.join(FILES[2]), |c| c["intermediate_size"] = 208.into()),
            LoadFailure::BadCheckpoint,
            "Model architecture mismatch for 'tiny':\n  - encoder.layers.0.mlp.Wi.weight: expected (416, 128), found (384, 128)",
        ),
        (
            "more layers",
            |d| edit_json(&d.join(FILES[0]), |c| c["head_layers"] = 3.into()),
            LoadFailure::BadCheckpoint,
            "Model weights incomplete for 'tiny': missing 12 parameter tensors (e.g. ['head.layers.2.self_attn.in_proj_weight'",
        ),
        (
            "fewer layers",
            |d| edit_json(&d.join(FILES[0]), |c| c["head_layers"] = 1.into()),
            LoadFailure::BadCheckpoint,
            "head.layers.1.linear1.bias: expected no such tensor, found (512,)",
        ),
        (
            "no scorer",
            |d| {
                let (mut header, data) = weights(d);
                let table = header.as_object_mut().unwrap();
                for key in table.keys().cloned().collect::<Vec<_>>() {
                    if let Some(rest) = key.strip_prefix("scorer.") {
                        let entry = table.remove(&key).unwrap();
                        table.insert(format!("other.{rest}"), entry);
                    }
                }
                write_weights(d, &header, &data);
            },
            LoadFailure::BadCheckpoint,
            "Incompatible model weights for 'tiny': checkpoint is missing 'scorer.' parameters",
        ),
        (
            "cut weights",
            |d| {
                let bytes = fs::read(d.join(FILES[1])).unwrap();
                fs::write(d.join(FILES[1]), &bytes[..bytes.len() - 100]).unwrap();
            },
            LoadFailure::BadCheckpoint,
            "outside the",
        ),
        (
            "empty weights",
            |d| fs::write(d.join(FILES[1]), "").unwrap(),
            LoadFailure::BadCheckpoint,
            "0 bytes",
        ),
        (
            "a header longer than memory",
            |d| fs::write(d.join(FILES[1]), u64::MAX.to_le_bytes()).unwrap(),
            LoadFailure::BadCheckpoint,
            "limit 16777216",
        ),
        (
            "overlapping tensors",
            |d| {
                let (mut header, data) = weights(d);
                let first = header["act_head.0.bias"]["data_offsets"].clone();
                header["act_head.2.bias"]["data_offsets"] =
                    serde_json::json!([first[0], first[0].as_u64().unwrap() + 4]);
                write_weights(d, &header, &data);
            },
            LoadFailure::BadCheckpoint,
            "overlaps the tensor before it",
        ),
        (
            "NaN",
            |d| {
                let (header, mut data) = weights(d);
                let at = header["scorer.1.weight"]["data_offsets"][0]
                    .as_u64()
                    .unwrap() as usize;
                data[at + 10..at + 12].copy_from_slice(&0x7e00u16.to_le_bytes());
                write_weights(d, &header, &data);
            },
            LoadFailure::BadCheckpoint,
            "scorer.1.weight holds a value that is not finite",
        ),
        (
            "a tokenizer that is none",
            |d| fs::write(d.join(FILES[3]), r#"{"version":"1.0"}"#).unwrap(),
            LoadFailure::BadCheckpoint,
            "tokenizer of 'tiny': tokenizer.json:",
        ),
        (
            "a tokenizer without a mask",
            |d| {
                edit_json(&d.join(FILES[4]), |c| {
                    c["mask_token"] = serde_json::Value::Null
                })
            },
            LoadFailure::BadCheckpoint,
            "names no 'mask_token'",
        ),
        (
            "more tokens than embeddings",
            |d| {
                edit_json(&d.join(FILES[3]), |c| {
                    let more = serde_json::json!({"id": 472, "content": "[X]", "single_word": false, "lstrip": false,
                        "rstrip": false, "normalized": false, "special": true});
                    c["added_tokens"].as_array_mut().unwrap().push(more);
                });
            },
            LoadFailure::BadCheckpoint,
            "ids up to 472, but the model knows 472 tokens",
        ),
        (
            "a link out of the folder",
            |d| {
                fs::remove_file(d.join(FILES[2])).unwrap();
                std::os::unix::fs::symlink(golden().join(FILES[2]), d.join(FILES[2])).unwrap();
            },
            LoadFailure::UnsafePath,
            "the link leaves the model root",
        ),
        (
            "a folder in place of a file",
            |d| {
                fs::remove_file(d.join(FILES[1])).unwrap();
                fs::create_dir(d.join(FILES[1])).unwrap();
            },
            LoadFailure::UnsafePath,
            "not a regular file",
        ),
    ];
    for (name, damage, failure, text) in rows {
        let dir = copy();
        damage(dir.path());
        let error = load(dir.path()).expect_err(name);
        assert_eq!(error.failure(), failure, "{name}: {error}");
        assert!(error.to_string().contains(text), "{name}: {error}");
    }
}

#[test]
fn the_digest_of_a_plain_folder_is_that_of_its_manifest() {
    let dir = copy();
    let plain = load(dir.path()).unwrap();
    assert!(!plain.info().verified);
    assert!(
        plain
            .info()
            .warnings
            .iter()
            .any(|w| w.contains("served unverified"))
    );
    let digest = write_manifest(dir.path(), entries(dir.path()));
    let verified = load(dir.path()).unwrap();
    assert_eq!(
        (verified.info().verified, &verified.info().digest),
        (true, &digest)
    );
    assert_eq!(plain.info().digest, digest);
}

#[test]
fn all_that_is_given_must_agree() {
    let dir = copy();
    let digest = checkpoint_digest(&entries(dir.path()));
    let other = format!("sha256:{}", "0".repeat(64));
    let sha = |name: &str| hex(&fs::read(dir.path().join(name)).unwrap());
    let weights = vec![("model.safetensors".to_owned(), sha("model.safetensors"))];
    let options =
        |expect: Option<&str>, sha256: Vec<(String, String)>, require_verified| LoadOptions {
            expect_digest: expect.map(str::to_owned),
            sha256,
            require_verified,
            ..LoadOptions::default()
        };
    let zeros = |path: &str| vec![(path.to_owned(), "0".repeat(64))];
    let rows = [
        ("the digest", options(Some(&digest), vec![], true), None),
        (
            "another digest",
            options(Some(&other), vec![], false),
            Some(LoadFailure::DigestMismatch),
        ),
        (
            "the hash of the weights",
            options(None, weights.clone(), true),
            None,
        ),
        (
            "another hash",
            options(None, zeros("model.safetensors"), false),
            Some(LoadFailure::DigestMismatch),
        ),
        (
            "another hash of a small file",
            options(None, zeros("encoder/config.json"), false),
            Some(LoadFailure::DigestMismatch),
        ),
        (
            "a hash of nothing",
            options(None, zeros("absent.json"), false),
            Some(LoadFailure::DigestMismatch),
        ),
        (
            "a hash outside",
            options(None, zeros("../x"), false),
            Some(LoadFailure::UnsafePath),
        ),
        (
            "nothing, where something is required",
            options(None, vec![], true),
            Some(LoadFailure::Unverified),
        ),
    ];
    for (name, options, failure) in rows {
        assert_eq!(
            load_with(dir.path(), &options).err().map(|e| e.failure()),
            failure,
            "{name}"
        );
    }
    let error = load_with(
        dir.path(),
        &options(None, zeros("model.safetensors"), false),
    )
    .unwrap_err();
    let text = format!(
        "SHA-256 mismatch for model.safetensors: expected {}, got {}.",
        "0".repeat(64),
        weights[0].1
    );
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_manifest_is_held_to() {
    let full = LoadOptions {
        verify: Verify::Full,
        ..LoadOptions::default()
    };
    let dir = copy();
    write_manifest(dir.path(), entries(dir.path()));
    load_with(dir.path(), &full).unwrap();

    // Same size, other bytes: only a full check sees it.
    let path = dir.path().join("encoder/config.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace(
            "\"transformers_version\": \"5.24.0\"",
            "\"transformers_version\": \"5.24.1\"",
        ),
    )
    .unwrap();
    load(dir.path()).unwrap();
    assert_eq!(
        load_with(dir.path(), &full).unwrap_err().failure(),
        LoadFailure::DigestMismatch
    );

    fs::write(&path, format!("{text} ")).unwrap();
    assert_eq!(
        load(dir.path()).unwrap_err().failure(),
        LoadFailure::SizeMismatch
    );

    let dir = copy();
    fs::write(dir.path().join("questions.json"), "{}").unwrap();
    write_manifest(dir.path(), entries(dir.path()));
    assert!(
        load(dir.path())
            .unwrap_err()
            .to_string()
            .contains("'questions.json' is not listed")
    );

    let dir = copy();
    let mut files = entries(dir.path());
    files.push(FileEntry {
        path: "gone.txt".to_owned(),
        sha256: "0".repeat(64),
        size: 1,
    });
    write_manifest(dir.path(), files);
    assert!(
        load(dir.path())
            .unwrap_err()
            .to_string()
            .contains("'gone.txt' is listed and not there")
    );
}

#[test]
fn loading_changes_nothing_and_works_from_read_only_folders() {
    let dir = copy();
    let before = entries(dir.path());
    for name in FILES {
        let path = dir.path().join(name);
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
    }
    load(dir.path()).unwrap();
    assert_eq!(entries(dir.path()), before);
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn a_random_checkpoint_is_seeded_and_loads() {
    let base = tempfile::tempdir().unwrap();
    let make = |name: &str, seed| {
        let dir = base.path().join(name);
        write_random(&dir, Shape::Tiny, seed).unwrap();
        dir
    };
    let (one, two, three) = (make("a", 1), make("b", 1), make("c", 2));
    assert_eq!(entries(&one), entries(&two));
    assert_ne!(entries(&one), entries(&three));
    assert!(
        write_random(&one, Shape::Tiny, 1).is_err(),
        "an existing folder is left alone"
    );
    for precision in [Precision::F32, Precision::Int8] {
        let checkpoint = load_with(
            &one,
            &LoadOptions {
                precision,
                ..LoadOptions::default()
            },
        )
        .unwrap();
        assert_eq!(checkpoint.precision(), precision);
    }
}

#[test]
fn an_inspection_says_what_is_there_and_what_is_wrong() {
    let dir = copy();
    let whole = inspect(dir.path(), None).unwrap();
    assert_eq!(whole.digest, Some(checkpoint_digest(&entries(dir.path()))));
    assert_eq!(whole.tensors.len(), 62);
    assert_eq!(
        whole.problems,
        ["temperature_by_options['choice:11+'] is 0.10058280825614929, served as 0.5"]
    );

    fs::remove_file(dir.path().join("model.safetensors")).unwrap();
    edit_json(&dir.path().join("encoder/config.json"), |c| {
        c["hidden_size"] = 9000.into()
    });
    fs::write(dir.path().join("relay-manifest.json"), "{}").unwrap();
    let broken = inspect(dir.path(), None).unwrap();
    assert_eq!(
        (broken.missing.as_slice(), &broken.digest),
        (&["model.safetensors"][..], &None)
    );
    let text = broken.problems.join("\n");
    assert!(
        text.contains("'hidden_size' is 9000")
            && text.contains("relay-manifest.json: missing field"),
        "{text}"
    );
}

#[test]
fn a_pass_stays_within_its_computed_memory() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("tiny");
    write_random(&dir, Shape::Tiny, 1).unwrap();
    for precision in [Precision::F32, Precision::Int8] {
        for (rows, len) in [(1, 1), (1, 700), (40, 50), (3, 513)] {
            let engine = Engine::new(EngineOptions {
                threads: Some(3),
                ..EngineOptions::default()
            })
            .unwrap();
            let checkpoint = engine
                .load(
                    &dir,
                    &LoadOptions {
                        precision,
                        ..LoadOptions::default()
                    },
                )
                .unwrap();
            let ids: Vec<u32> = (0..len as u32).map(|i| i % 200).collect();
            let row = TokenRow {
                ids: &ids,
                markers: &[],
                kind: Kind::Noul,
            };
            engine.run(&checkpoint, &vec![row; rows]).unwrap();
            let (held, bound) = (
                engine.buffer_bytes(),
                engine.pass_bytes(&checkpoint, rows * len, len, rows),
            );
            assert!(
                held <= bound,
                "{precision} {rows} x {len}: {held} bytes held, bound {bound}"
            );
        }
    }
}
