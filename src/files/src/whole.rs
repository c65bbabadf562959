//! Writing a file whole or not at all: a temporary file beside it, synced, then renamed over it, and the folder synced.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// How often a lock that somebody holds is tried again.
const AGAIN: Duration = Duration::from_millis(10);

/// Mode of files that only their owner may read.
pub const PRIVATE: u32 = 0o600;

/// Two writers of one process must not share a temporary file.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Makes a folder and those above it that are missing, for its owner alone (0700).
///
/// # Errors
/// When the system refuses.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Puts a file in the place of the one at `path`, if there is one. A reader sees the old or the new text, also after a
/// crash. A link at `path` is written through, so that a file kept elsewhere stays where it is.
///
/// # Errors
/// When the system refuses; the old file is as it was then.
pub fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = target
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(
        ".{}.{}-{number}.tmp",
        name.to_string_lossy(),
        std::process::id()
    ));
    let written =
        write_synced(&temporary, bytes, mode).and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        // What is left of it is of no use to anybody.
        let _ = fs::remove_file(&temporary);
        return written;
    }
    File::open(folder)?.sync_all()
}

fn write_synced(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    // Whatever the umask took away.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A lock that other processes respect; given back when dropped or when the process ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock if nobody has it.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = open_lock(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the lock as soon as nobody has it, for at most `patience`; blocks the thread meanwhile.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn take_within(path: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let began = Instant::now();
        loop {
            let taken = Self::try_take(path)?;
            if taken.is_some() || began.elapsed() >= patience {
                return Ok(taken);
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Whether somebody has it. Where nobody has, a taker of that very moment is told the opposite, so this is asked only of
    /// a lock whose holder is known by other signs.
    ///
    /// # Errors
    /// When the file cannot be looked at; one that is not there is held by nobody.
    pub fn is_held(path: &Path) -> io::Result<bool> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes who holds it, for people.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE)
        .open(path)
}

/// Where the lock of a shared file is: `.<name>.lock` beside it, since the file itself is replaced.
#[must_use]
pub fn lock_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.lock"))
}

/// Where a damaged file is kept: `<name>.damaged-<time>`, the time in seconds since 1970.
#[must_use]
pub fn set_aside_path(path: &Path, seconds: i64) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".damaged-{seconds}"));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_whole_with_its_mode_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        write_whole(&path, b"one", 0o644).unwrap();
        write_whole(&path, b"two", PRIVATE).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, PRIVATE);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn writes_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept.json");
        fs::write(&kept, "old").unwrap();
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        write_whole(&link, b"new", PRIVATE).unwrap();
        assert_eq!(fs::read(&kept).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_refused_write_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("file");
        assert!(write_whole(&path, b"x", PRIVATE).is_err());
        assert!(
            write_whole(folder.path(), b"x", PRIVATE).is_err(),
            "a folder"
        );
    }

    #[test]
    fn a_lock_is_held_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let mut held = Lock::try_take(&path).unwrap().unwrap();
        held.note("me").unwrap();
        assert!(Lock::try_take(&path).unwrap().is_none());
        let short = Duration::from_millis(30);
        assert!(Lock::take_within(&path, short).unwrap().is_none());
        let waiting = {
            let path = path.clone();
            std::thread::spawn(move || Lock::take_within(&path, Duration::from_secs(30)))
        };
        drop(held);
        assert!(waiting.join().unwrap().unwrap().is_some());
        assert!(Lock::try_take(&path).unwrap().is_some());
    }
}
