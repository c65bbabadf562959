//! A checkpoint, a volume, and what must hold of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use laya::checkpoint::{FileEntry, Shape, checkpoint_digest, write_random};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use testkit::files::FileServer;
use volumes::{
    CrashPoints, Digest, Existing, FetchRequest, Limits, Run, Source, SourceFile, Step, TaskError,
};

/// A tiny checkpoint, made once.
pub(crate) struct Made {
    _base: TempDir,
    pub(crate) dir: PathBuf,
    pub(crate) files: Vec<SourceFile>,
    pub(crate) digest: Digest,
}

impl Made {
    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.dir.join(path)).unwrap()
    }

    pub(crate) fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Titles and contents, for a registry.
    pub(crate) fn contents(&self) -> Vec<(String, Vec<u8>)> {
        self.files
            .iter()
            .map(|file| (file.path.clone(), self.bytes(&file.path)))
            .collect()
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The checkpoint of this seed.
pub(crate) fn make(seed: u64) -> Made {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("checkpoint");
    write_random(&dir, Shape::Tiny, seed).unwrap();
    let mut files = Vec::new();
    for path in laya::checkpoint::REQUIRED_FILES
        .iter()
        .chain(&laya::checkpoint::OPTIONAL_FILES)
    {
        if let Ok(bytes) = std::fs::read(dir.join(path)) {
            files.push(SourceFile {
                path: (*path).to_owned(),
                size: bytes.len() as u64,
                sha256: hex(&bytes),
                asset: None,
            });
        }
    }
    let digest = digest_of(&files);
    Made {
        _base: base,
        dir,
        files,
        digest,
    }
}

pub(crate) fn digest_of(files: &[SourceFile]) -> Digest {
    let entries: Vec<FileEntry> = files
        .iter()
        .map(|file| FileEntry {
            path: file.path.clone(),
            sha256: file.sha256.clone(),
            size: file.size,
        })
        .collect();
    Digest::parse(&checkpoint_digest(&entries)).unwrap()
}

pub(crate) fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| make(1))
}

/// A server that has the checkpoint.
pub(crate) fn server() -> FileServer {
    let server = FileServer::start();
    server.put_folder(&made().dir);
    server
}

/// Times that no test waits for in vain.
pub(crate) fn limits() -> Limits {
    Limits {
        silence: Duration::from_secs(20),
        lock_wait: Duration::from_secs(20),
        deadline: Some(Duration::from_secs(60)),
        min_bytes_per_second: 1,
    }
}

pub(crate) fn request(models: &Path, source: Source) -> FetchRequest {
    FetchRequest {
        models: models.to_owned(),
        source,
        digest: None,
        contract: None,
        existing: Existing::Trust,
        prunable: vec![],
        credential: None,
        store: None,
        limits: limits(),
    }
}

pub(crate) fn http(server: &FileServer) -> Source {
    Source::Http {
        base_url: server.url(),
        files: made().files.clone(),
    }
}

/// Names in a folder, sorted; none where there is no folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return vec![];
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn folder_of(models: &Path, digest: &Digest) -> PathBuf {
    models.join(digest.folder())
}

/// Every byte of a published checkpoint is right, nobody can write it, and nothing of the work is left.
pub(crate) fn assert_published(models: &Path, made: &Made) {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder_of(models, &made.digest);
    for file in &made.files {
        let path = folder.join(&file.path);
        assert_eq!(hex(&std::fs::read(&path).unwrap()), file.sha256, "{path:?}");
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o444, "{path:?}");
    }
    let manifest = std::fs::read(folder.join("relay-manifest.json")).unwrap();
    let manifest = laya::checkpoint::Manifest::parse(&manifest).unwrap();
    assert_eq!(manifest.digest, made.digest.to_string());
    assert_eq!(names(&models.join(".staging")), Vec::<String>::new());
    assert_eq!(names(&models.join(".trash")), Vec::<String>::new());
}

/// Dies at the n-th step, counted from 0, as a crash would.
pub(crate) struct DieAt {
    left: Mutex<Option<usize>>,
    passed: Mutex<Vec<Step>>,
}

impl DieAt {
    pub(crate) fn step(at: usize) -> Arc<Self> {
        Arc::new(Self {
            left: Mutex::new(Some(at)),
            passed: Mutex::default(),
        })
    }

    pub(crate) fn never() -> Arc<Self> {
        Arc::new(Self {
            left: Mutex::new(None),
            passed: Mutex::default(),
        })
    }

    pub(crate) fn log(&self) -> Vec<Step> {
        self.passed.lock().unwrap().clone()
    }
}

impl CrashPoints for DieAt {
    fn passed(&self, step: &Step) -> Result<(), TaskError> {
        self.passed.lock().unwrap().push(step.clone());
        match self.left.lock().unwrap().as_mut() {
            Some(0) => Err(TaskError::Interrupted),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

pub(crate) fn run_with(points: &Arc<DieAt>) -> Run {
    Run::quiet().with_points(Arc::clone(points) as Arc<dyn CrashPoints>)
}
