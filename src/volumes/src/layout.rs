//! Names in a volume of checkpoints (control-plane 11), its lock, its owner, and what is published in it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use api::reason::Reason;
use laya::checkpoint::{MAX_MANIFEST_BYTES, Manifest};
use serde::{Deserialize, Serialize};

use crate::watch::Watch;
use crate::{Digest, TaskError};

/// Version of the layout.
const LAYOUT: u32 = 1;
/// How often a lock that somebody holds is tried again.
const AGAIN: Duration = Duration::from_millis(100);
/// Mode of folders.
const FOLDER_MODE: u32 = 0o755;
/// The file in the root of a volume that tells it from another one in its place. Whoever keeps such a volume writes it; a
/// task neither reads nor removes it.
pub const VOLUME_UID: &str = ".volume-uid";
/// The manifest of a published version.
pub(crate) const MANIFEST: &str = "relay-manifest.json";

#[derive(Debug, Serialize, Deserialize)]
struct StoreFile {
    layout: u32,
    store: String,
}

/// A volume by its root.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn published(&self, digest: &Digest) -> PathBuf {
        self.root.join(digest.folder())
    }

    pub(crate) fn staging(&self, digest: &Digest) -> PathBuf {
        self.root.join(".staging").join(&digest.hex()[..16])
    }

    pub(crate) fn trash(&self) -> PathBuf {
        self.root.join(".trash")
    }

    pub(crate) fn keep_mark(&self, digest: &Digest) -> PathBuf {
        self.root.join(".keep").join(digest.hex())
    }

    fn lock_file(&self) -> PathBuf {
        self.root.join(".lock")
    }

    fn store_file(&self) -> PathBuf {
        self.root.join(".store.json")
    }

    /// Takes the lock of the one writer.
    pub(crate) fn lock(&self, watch: &Watch) -> Result<files::Lock, TaskError> {
        make_folder(&self.root)?;
        let (path, began) = (self.lock_file(), Instant::now());
        loop {
            let taken = files::Lock::try_take(&path)
                .map_err(|source| TaskError::io("lock", path.clone(), source))?;
            if let Some(lock) = taken {
                return Ok(lock);
            }
            let waited = began.elapsed();
            if waited >= watch.limits().lock_wait {
                return Err(TaskError::Locked { path, waited });
            }
            watch.check()?;
            std::thread::sleep(AGAIN);
        }
    }

    /// Writes whose volume it is at the first use; refuses one that belongs to somebody else or to a newer program.
    pub(crate) fn claim(&self, store: Option<&str>) -> Result<(), TaskError> {
        let path = self.store_file();
        let refused = |reason, why| {
            Err(TaskError::NotOurs {
                path: path.clone(),
                why,
                reason,
            })
        };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.write_store(store.unwrap_or_default());
            }
            Err(source) => return Err(TaskError::io("read", path, source)),
        };
        let Ok(found) = serde_json::from_slice::<StoreFile>(&text) else {
            // Written whole or not at all, so this was somebody's hand; what it said is lost either way.
            return refused(
                Reason::SchemaMismatch,
                "cannot be read; remove it if the volume is this installation's own".to_owned(),
            );
        };
        if found.layout != LAYOUT {
            return refused(
                Reason::SchemaMismatch,
                format!(
                    "layout {} of the volume, this program knows {LAYOUT}; use a newer program",
                    found.layout
                ),
            );
        }
        match store {
            Some(store) if found.store.is_empty() => self.write_store(store),
            Some(store) if found.store != store => refused(
                Reason::NameTaken,
                format!(
                    "the volume belongs to store '{}', not to '{}'; use another volume, or remove this file if it is yours",
                    found.store.escape_default(),
                    store.escape_default()
                ),
            ),
            _ => Ok(()),
        }
    }

    fn write_store(&self, store: &str) -> Result<(), TaskError> {
        let path = self.store_file();
        let file = StoreFile {
            layout: LAYOUT,
            store: store.to_owned(),
        };
        let mut text = serde_json::to_vec(&file).unwrap_or_default();
        text.push(b'\n');
        files::write_whole(&path, &text, 0o644)
            .map_err(|source| TaskError::io("write", path, source))
    }

    /// The manifest of a published version whose files are all there with their sizes; else what is wrong with it, or
    /// `None` where there is nothing.
    pub(crate) fn look(&self, digest: &Digest) -> Option<Result<Manifest, String>> {
        let folder = self.published(digest);
        match fs::symlink_metadata(&folder) {
            Ok(seen) if seen.is_dir() => {}
            Ok(_) => return Some(Err("its name is taken by something else".to_owned())),
            Err(_) => return None,
        }
        Some(read_manifest(&folder).and_then(|manifest| {
            if manifest.digest != digest.to_string() {
                return Err(format!("its manifest is of {}", manifest.digest));
            }
            for file in &manifest.files {
                match fs::symlink_metadata(folder.join(&file.path)) {
                    Ok(seen) if seen.is_file() && seen.len() == file.size => {}
                    Ok(seen) if seen.is_file() => {
                        let (size, len) = (file.size, seen.len());
                        return Err(format!("{} has {len} bytes instead of {size}", file.path));
                    }
                    Ok(_) => return Err(format!("{} is no regular file", file.path)),
                    Err(error) => return Err(format!("{}: {error}", file.path)),
                }
            }
            Ok(manifest)
        }))
    }

    /// Names in the root, sorted into versions and what the layout does not know.
    pub(crate) fn entries(&self) -> io::Result<(Vec<Digest>, Vec<String>)> {
        let (mut versions, mut unknown) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.root)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            match name.strip_prefix("sha256-").and_then(Digest::of_hex) {
                Some(digest) => versions.push(digest),
                None if is_ours(&name) => {}
                None => unknown.push(name),
            }
        }
        versions.sort();
        unknown.sort();
        Ok((versions, unknown))
    }
}

/// Names of the layout, what a file system puts in its root itself, and what a crash in writing one of its files leaves.
fn is_ours(name: &str) -> bool {
    matches!(
        name,
        ".store.json" | VOLUME_UID | ".lock" | ".staging" | ".trash" | ".keep" | "lost+found"
    ) || name.starts_with("..store.json.")
        || name.starts_with("..volume-uid.")
}

/// Reads the manifest of a folder.
pub(crate) fn read_manifest(folder: &Path) -> Result<Manifest, String> {
    use io::Read as _;
    let mut bytes = Vec::new();
    File::open(folder.join(MANIFEST))
        .and_then(|file| file.take(MAX_MANIFEST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("{MANIFEST}: {error}"))?;
    if bytes.len() as u64 > MAX_MANIFEST_BYTES {
        return Err(format!("{MANIFEST}: more than {MAX_MANIFEST_BYTES} bytes"));
    }
    Manifest::parse(&bytes).map_err(|why| format!("{MANIFEST}: {why}"))
}

/// Makes a folder and those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), TaskError> {
    use std::os::unix::fs::DirBuilderExt as _;
    if path.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(path)
        .map_err(|source| TaskError::io("make", path, source))
}

/// Makes what was renamed or created in a folder last.
pub(crate) fn sync_folder(path: &Path) -> Result<(), TaskError> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| TaskError::io("sync", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_layout_are_known() {
        let cases = [
            (".store.json", true),
            ("..store.json.17-0.tmp", true),
            (".volume-uid", true),
            ("..volume-uid.17-0.tmp", true),
            (".volume-uids", false),
            ("lost+found", true),
            ("model", false),
        ];
        for (name, expected) in cases {
            assert_eq!(is_ours(name), expected, "{name}");
        }
    }
}
