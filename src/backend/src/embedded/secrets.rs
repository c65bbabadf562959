//! What a `SecretRef` names on a laptop: the file `<RELAY_HOME>/secrets/<name>/<key>`, for its user's eyes only
//! (control-plane 1.2).

use std::path::{Component, Path, PathBuf};

use api::kinds::shared::SecretRef;
use api::reason::Reason;

use crate::error::BackendError;

/// Largest secret, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// The folder of secrets.
#[derive(Debug, Clone)]
pub struct SecretFiles {
    folder: PathBuf,
}

impl SecretFiles {
    /// Those below a folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where a secret lies.
    #[must_use]
    pub fn path(&self, secret: &SecretRef) -> PathBuf {
        self.folder.join(&secret.name).join(&secret.key)
    }

    /// The secret, as its file holds it, less one final line break.
    ///
    /// # Errors
    /// `SecretMissing` where it is not there, and where others than its user may use it.
    pub fn read(&self, secret: &SecretRef) -> Result<Vec<u8>, BackendError> {
        let refused = |message: String| BackendError::Refused {
            what: format!("secret {}, key {}", secret.name, secret.key),
            reason: Reason::SecretMissing,
            message,
        };
        let path = self.path(secret);
        let plain = |part: &str| {
            let mut parts = Path::new(part).components();
            matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
        };
        if !plain(&secret.name) || !plain(&secret.key) {
            return Err(refused(
                "name and key must be plain names of files".to_owned(),
            ));
        }
        let read = files::read_bytes(&path, MAX_BYTES);
        let (mut bytes, metadata) =
            read.map_err(|error| refused(format!("cannot read {}: {error}", path.display())))?;
        if let Some(mode) = open_to_others(&metadata) {
            return Err(refused(format!(
                "{} may be used by others (mode {mode:04o}); run: chmod 600 {0}",
                path.display()
            )));
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        Ok(bytes)
    }
}

/// Its permission bits, where they give group or others anything: on a laptop no group needs them.
fn open_to_others(metadata: &std::fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let mode = metadata.mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_read_only_from_a_file_of_its_user_alone() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("hub")).unwrap();
        let path = home.path().join("hub/token");
        fs::write(&path, "abc\n").unwrap();
        let secrets = SecretFiles::new(home.path().to_owned());
        let read = |name: &str, key: &str| {
            secrets.read(&SecretRef {
                name: name.to_owned(),
                key: key.to_owned(),
            })
        };
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let error = read("hub", "token").unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(read("hub", "token").unwrap(), b"abc");
        for (name, key) in [
            ("hub", "other"),
            ("..", "token"),
            ("hub", "../hub/token"),
            ("", "x"),
        ] {
            let error = read(name, key).unwrap_err();
            assert_eq!(error.reason(), Some(Reason::SecretMissing), "{name}/{key}");
            assert!(!error.to_string().contains("abc"), "{error}");
        }
    }
}
