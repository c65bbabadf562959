//! Files of Relay and of its user: where they lie ([`Places`]), writing them whole or not at all ([`write_whole`]), and
//! reading those that a user names: settings, keys, policies, tokens. Such a path may lead anywhere, also to a pipe that
//! nobody writes to or to a device that never ends, so only regular files are read, and only up to a bound. What a file
//! means is its reader's business.

mod place;
mod whole;

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

pub use place::{Environment, NoHome, Places, process_start};
pub use whole::{Lock, PRIVATE, lock_path, make_private_folder, set_aside_path, write_whole};

/// What some editors put in front of UTF-8; it is no part of the text.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A file that cannot be read as text. Says why, not which: the path is the caller's to tell.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else than a file.
    #[error("is {0}, not a regular file")]
    NotRegular(&'static str),
    /// It is longer than it may be.
    #[error("has {size} bytes, limit {limit}")]
    TooLarge {
        /// Its length in bytes, as far as it was looked at.
        size: u64,
        /// The longest it may be, in bytes.
        limit: u64,
    },
    /// It is no text.
    #[error("is not valid UTF-8 at byte {at}")]
    NotText {
        /// Offset of the first bad byte.
        at: usize,
    },
}

impl ReadError {
    /// Whether there is no such file.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// A text and what the system says of the very file it was read from.
#[derive(Debug)]
pub struct TextFile {
    /// The text without a byte order mark.
    pub text: String,
    /// Owner, mode, times and so on.
    pub metadata: Metadata,
}

/// The permission bits of a file with secrets, if others than its owner may use it. Reading by its group is let through: a
/// Secret mounted for a non-root pod with `fsGroup` cannot be without it.
#[must_use]
pub fn exposed_mode(metadata: &Metadata) -> Option<u32> {
    let mode = metadata.mode() & 0o777;
    (mode & 0o037 != 0).then_some(mode)
}

/// Opens a regular file for reading. Never waits for a writer of a pipe.
///
/// # Errors
/// When it cannot be opened, or is no regular file.
pub fn open(path: &Path) -> Result<(File, Metadata), ReadError> {
    // Opening a pipe would wait for its writer; a regular file does not care for the flag.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)
        .map_err(|error| unopened(path, error))?;
    // Of what was opened, not of the path: that may lead elsewhere by now.
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(ReadError::NotRegular(kind(metadata.file_type())))
    }
}

/// Reads a regular file of at most `limit` bytes as UTF-8.
///
/// # Errors
/// When it cannot be read, is no regular file, is longer than that, or is no UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<TextFile, ReadError> {
    let (bytes, metadata) = read_bytes(path, limit)?;
    let text = String::from_utf8(bytes).map_err(|error| ReadError::NotText {
        at: error.utf8_error().valid_up_to(),
    })?;
    let text = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    Ok(TextFile { text, metadata })
}

/// Reads a regular file of at most `limit` bytes, whatever they are.
///
/// # Errors
/// When it cannot be read, is no regular file, or is longer than that.
pub fn read_bytes(path: &Path, limit: u64) -> Result<(Vec<u8>, Metadata), ReadError> {
    let (file, metadata) = open(path)?;
    let too_large = |size| Err(ReadError::TooLarge { size, limit });
    if metadata.len() > limit {
        return too_large(metadata.len());
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile, and files of the kernel say that they have no length at all.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return too_large(bytes.len() as u64);
    }
    Ok((bytes, metadata))
}

/// Sockets cannot be opened at all; that is said like the other kinds.
fn unopened(path: &Path, error: io::Error) -> ReadError {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => ReadError::NotRegular("a socket"),
        _ => ReadError::Io(error),
    }
}

fn kind(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "something else"
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        symlink("/dev/zero", path("zero")).unwrap();
        symlink(path("pipe"), path("link")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        for (name, told) in [
            ("pipe", "is a pipe, not a regular file"),
            ("link", "is a pipe, not a regular file"),
            ("zero", "is a device, not a regular file"),
            ("folder", "is a folder, not a regular file"),
            ("socket", "is a socket, not a regular file"),
        ] {
            let error = read_text(&path(name), 100).unwrap_err();
            assert_eq!(error.to_string(), told, "{name}");
            assert!(!error.is_not_found(), "{name}");
        }
        assert!(read_text(&path("none"), 100).unwrap_err().is_not_found());
    }

    #[test]
    fn secrets_are_their_owners_and_their_groups_to_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "secret").unwrap();
        for (mode, exposed) in [
            (0o600, false),
            (0o400, false),
            (0o440, false),
            (0o700, false),
            (0o640, false),
            (0o620, true),
            (0o610, true),
            (0o604, true),
            (0o602, true),
            (0o601, true),
            (0o666, true),
        ] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, permissions).unwrap();
            let metadata = std::fs::metadata(&path).unwrap();
            let expected = exposed.then_some(mode);
            assert_eq!(exposed_mode(&metadata), expected, "{mode:04o}");
        }
    }

    #[test]
    fn text_is_read_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (name, bytes, expected) in [
            ("empty", &b""[..], Ok("")),
            ("as long as it may be", b"12345678", Ok("12345678")),
            ("one byte more", b"123456789", Err("has 9 bytes, limit 8")),
            ("a byte order mark", b"\xef\xbb\xbfabc", Ok("abc")),
            ("no UTF-8", b"ab\xff", Err("is not valid UTF-8 at byte 2")),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let read = read_text(&path, 8).map(|file| file.text);
            assert_eq!(
                read.map_err(|error| error.to_string()),
                expected.map(str::to_owned).map_err(str::to_owned),
                "{name}"
            );
        }
        // Says that it has no length, and has more than eight bytes.
        let error = read_text(Path::new("/proc/self/status"), 8).unwrap_err();
        assert_eq!(error.to_string(), "has 9 bytes, limit 8");
    }
}
