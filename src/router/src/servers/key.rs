//! The key of a server, from a file that is read again when it changes. Nothing shows it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use files::TextFile;
use http::HeaderValue;

/// Largest key file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// A key file cannot be used. Messages never show the key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It cannot be read.
    #[error("cannot read key file {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: files::ReadError,
    },
    /// Others may read or change it.
    #[error("key file {} has mode {mode:04o}, expected 0600", path.display())]
    TooOpen {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It holds nothing, or what no header can hold.
    #[error("key file {} {problem}", path.display())]
    NoKey {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
}

/// The key of a file, as it was when it was last read.
pub struct KeyFile {
    path: PathBuf,
    bearer: RwLock<HeaderValue>,
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl KeyFile {
    /// Reads the file: one line, mode 0600 (or readable by the group, as mounted secrets are).
    ///
    /// # Errors
    /// When it cannot be read, is open to others, or holds no key.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        Ok(Self {
            path: path.to_owned(),
            bearer: RwLock::new(read(path)?),
        })
    }

    /// Which file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value of the `authorization` header.
    pub(super) fn bearer(&self) -> HeaderValue {
        self.bearer
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads the file again. Whether the key is another one.
    ///
    /// # Errors
    /// Those of [`KeyFile::open`]; the key read before stays in force.
    pub(super) fn refresh(&self) -> Result<bool, KeyError> {
        let fresh = read(&self.path)?;
        let mut bearer = self.bearer.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *bearer != fresh;
        *bearer = fresh;
        Ok(changed)
    }
}

fn read(path: &Path) -> Result<HeaderValue, KeyError> {
    let TextFile { text, metadata } =
        files::read_text(path, MAX_BYTES).map_err(|source| KeyError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
    if let Some(mode) = files::exposed_mode(&metadata) {
        return Err(KeyError::TooOpen {
            path: path.to_owned(),
            mode,
        });
    }
    let no_key = |problem| KeyError::NoKey {
        path: path.to_owned(),
        problem,
    };
    // An editor ends a file with a newline; a key does not.
    let key = text.trim_end_matches(['\r', '\n']);
    if key.trim().is_empty() {
        return Err(no_key("holds no key"));
    }
    let mut bearer = HeaderValue::from_str(&format!("Bearer {key}"))
        .map_err(|_| no_key("holds what cannot stand in a header: a key is one line of text"))?;
    bearer.set_sensitive(true);
    Ok(bearer)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn reads_one_line_that_others_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for (name, text, mode, expected) in [
            ("a key", "s3cret\n", 0o600, Some("Bearer s3cret")),
            (
                "of a mounted secret",
                "s3cret",
                0o440,
                Some("Bearer s3cret"),
            ),
            (
                "with Windows' line end",
                "s3cret\r\n",
                0o600,
                Some("Bearer s3cret"),
            ),
            ("open to others", "s3cret", 0o644, None),
            ("blank", " \n", 0o600, None),
            ("two lines", "a\nb\n", 0o600, None),
        ] {
            let _ = fs::remove_file(&path);
            write(&path, text, mode);
            let read = KeyFile::open(&path).ok().map(|key| key.bearer());
            assert_eq!(
                read.as_ref().map(|value| value.to_str().unwrap()),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn a_rotated_key_is_taken_and_a_broken_file_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, "one", 0o600);
        let key = KeyFile::open(&path).unwrap();
        assert!(!key.refresh().unwrap());
        write(&path, "two", 0o600);
        assert!(key.refresh().unwrap());
        write(&path, "", 0o600);
        assert!(key.refresh().is_err());
        assert_eq!(key.bearer(), "Bearer two");
        assert!(!format!("{key:?}").contains("two"));
    }
}
