//! The files of a checkpoint folder: names, how they are opened (no link may leave the model root, sizes are bounded
//! before a byte is read) and how their digests are taken. Nothing is ever written.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::LoadError;

/// Files that every checkpoint has.
pub const REQUIRED: [&str; 5] = [
    "rl_agent_config.json",
    "model.safetensors",
    "encoder/config.json",
    "tokenizer/tokenizer.json",
    "tokenizer/tokenizer_config.json",
];
/// Files that it may have; they count for the digest of a plain folder.
pub const OPTIONAL: [&str; 5] = [
    "decisions.json",
    "questions.json",
    "train_report.json",
    "train-keys.txt",
    "laya_trainer_meta.json",
];
/// The manifest, which lists every file but itself.
pub(crate) const MANIFEST: &str = "relay-manifest.json";

/// Largest configuration file.
pub(crate) const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// Largest `tokenizer.json`.
pub(crate) const MAX_TOKENIZER_BYTES: u64 = 128 << 20;
/// Deepest nesting of a configuration.
const MAX_LEVELS: usize = 64;

/// An existing folder and the root that its links may not leave.
pub(crate) struct Folder {
    path: PathBuf,
    root: PathBuf,
    /// The source as configured, for messages.
    pub(crate) origin: String,
}

impl Folder {
    /// Resolves `dir`. With `root`, links may lead anywhere below that folder (a Hugging Face cache keeps its blobs
    /// beside its snapshots); without, nowhere outside `dir`.
    pub(crate) fn open(dir: &Path, root: Option<&Path>, origin: &str) -> Result<Self, LoadError> {
        let resolve = |path: &Path| {
            path.canonicalize().map_err(|source| LoadError::Read {
                path: path.to_owned(),
                source,
            })
        };
        let path = resolve(dir)?;
        let root = root.map_or_else(|| Ok(path.clone()), resolve)?;
        if !path.starts_with(&root) {
            return Err(LoadError::UnsafePath {
                path,
                why: "the folder lies outside the model root",
            });
        }
        Ok(Self {
            path,
            root,
            origin: origin.to_owned(),
        })
    }

    /// Opens a file, or none if it does not exist; also returns its length.
    pub(crate) fn file(&self, name: &str) -> Result<Option<(File, u64)>, LoadError> {
        let path = self.path.join(name);
        let resolved = match path.canonicalize() {
            Ok(resolved) => resolved,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LoadError::Read { path, source }),
        };
        if !resolved.starts_with(&self.root) {
            return Err(LoadError::UnsafePath {
                path,
                why: "the link leaves the model root",
            });
        }
        // Not by opening it: that would wait for a writer if it were a pipe.
        let kind = resolved.metadata().map_err(|source| LoadError::Read {
            path: path.clone(),
            source,
        })?;
        if !kind.is_file() {
            return Err(LoadError::UnsafePath {
                path,
                why: "not a regular file",
            });
        }
        let opened =
            File::open(&resolved).and_then(|file| file.metadata().map(|m| (file, m.len())));
        opened
            .map(Some)
            .map_err(|source| LoadError::Read { path, source })
    }

    /// The whole of a file of at most `limit` bytes, or none if it does not exist.
    pub(crate) fn bytes(
        &self,
        name: &'static str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, LoadError> {
        let Some((file, length)) = self.file(name)? else {
            return Ok(None);
        };
        if length > limit {
            return Err(self.config(name, format!("{length} bytes, limit {limit}")));
        }
        let mut bytes = Vec::with_capacity(length as usize);
        // One byte more shows a file that grew.
        let read = file.take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|source| LoadError::Read {
            path: self.path.join(name),
            source,
        })?;
        if bytes.len() as u64 > limit {
            return Err(self.config(name, format!("more than {limit} bytes")));
        }
        Ok(Some(bytes))
    }

    /// A required file.
    pub(crate) fn required(&self, name: &'static str, limit: u64) -> Result<Vec<u8>, LoadError> {
        self.bytes(name, limit)?.ok_or_else(|| LoadError::NoFile {
            origin: self.origin.clone(),
            file: name,
        })
    }

    pub(crate) fn config(&self, file: &'static str, why: String) -> LoadError {
        LoadError::Config {
            origin: self.origin.clone(),
            file,
            why,
        }
    }

    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// SHA-256 and length of a file, read in pieces.
    pub(crate) fn hash(&self, name: &str) -> Result<Option<(String, u64)>, LoadError> {
        let Some((mut file, _)) = self.file(name)? else {
            return Ok(None);
        };
        let mut hasher = Sha256::new();
        let mut piece = vec![0u8; 1 << 18];
        let mut length = 0;
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(Some((hex(&hasher.finalize()), length))),
                Ok(n) => {
                    hasher.update(&piece[..n]);
                    length += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(LoadError::Read {
                        path: self.path_of(name),
                        source,
                    });
                }
            }
        }
    }
}

/// A configuration as a JSON object of at most 64 levels.
pub(crate) fn table(bytes: &[u8]) -> Result<decision::json::Object, String> {
    let (mut depth, mut text, mut escaped) = (0usize, false, false);
    for byte in bytes {
        match (text, *byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => text = !text,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_LEVELS {
            return Err(format!("nested deeper than {MAX_LEVELS} levels"));
        }
    }
    match decision::json::read(bytes) {
        Ok(decision::json::Value::Object(object)) => Ok(object),
        Ok(_) => Err("not a JSON object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// SHA-256 in lower-case hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_below_the_root() {
        let base = tempfile::tempdir().unwrap();
        let (blobs, snapshot) = (base.path().join("blobs"), base.path().join("snap"));
        std::fs::create_dir_all(&blobs).unwrap();
        std::fs::create_dir_all(snapshot.join("encoder")).unwrap();
        std::fs::write(blobs.join("x"), "{}").unwrap();
        std::os::unix::fs::symlink("../../blobs/x", snapshot.join("encoder/config.json")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", snapshot.join("model.safetensors")).unwrap();

        let narrow = Folder::open(&snapshot, None, "s").unwrap();
        assert!(matches!(
            narrow.file("encoder/config.json"),
            Err(LoadError::UnsafePath { .. })
        ));
        let wide = Folder::open(&snapshot, Some(base.path()), "s").unwrap();
        assert_eq!(
            wide.bytes("encoder/config.json", 10).unwrap().unwrap(),
            b"{}"
        );
        assert!(matches!(
            wide.file("model.safetensors"),
            Err(LoadError::UnsafePath { .. })
        ));
        assert!(wide.file("nothing").unwrap().is_none());
        assert!(matches!(
            Folder::open(base.path(), Some(&blobs), "s"),
            Err(LoadError::UnsafePath { .. })
        ));
        let fifo_like = Folder::open(base.path(), None, "s").unwrap();
        assert!(matches!(
            fifo_like.file("blobs"),
            Err(LoadError::UnsafePath {
                why: "not a regular file",
                ..
            })
        ));
    }

    #[test]
    fn configurations_are_bounded() {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("decisions.json"), vec![b' '; 11]).unwrap();
        let folder = Folder::open(base.path(), None, "s").unwrap();
        let error = folder.bytes("decisions.json", 10).unwrap_err();
        assert!(error.to_string().contains("11 bytes, limit 10"), "{error}");
        assert!(
            table(format!("{}1{}", "{\"a\":[".repeat(40), "]}".repeat(40)).as_bytes())
                .unwrap_err()
                .contains("64 levels")
        );
        assert!(table(b"{\"a\":\"[[[[\\\"[[\"}").is_ok());
        assert!(table(b"[]").is_err());
    }
}
