//! Lets one process at a time change a file that several share. The lock is on a file of its own beside it, since the
//! file itself is replaced, and is gone with the process that holds it, however that ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How often a lock that somebody holds is tried.
const AGAIN: Duration = Duration::from_millis(10);

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("another process is changing it (it holds {})", .0.display())]
    Held(PathBuf),
    /// The lock file cannot be used.
    #[error("cannot use its lock {}: {source}", .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Lock {
    /// Waits at most `patience` for the lock of the file at `path`, which need not be there; its folder must.
    ///
    /// # Errors
    /// When somebody else has it for longer, or the lock file `.<name>.lock` cannot be opened.
    pub fn of(path: &Path, patience: Duration) -> Result<Self, LockError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let path = path.with_file_name(format!(".{name}.lock"));
        let refused = |source| LockError::Io {
            path: path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(refused)?;
        let began = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(Errno::WOULDBLOCK) if began.elapsed() < patience => {
                    sleep(AGAIN.min(patience));
                }
                Err(Errno::WOULDBLOCK) => return Err(LockError::Held(path)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(refused(error.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_has_it_and_its_end_frees_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let held = Lock::of(&path, Duration::ZERO).unwrap();
        let error = Lock::of(&path, Duration::from_millis(30)).unwrap_err();
        assert!(error.to_string().contains(".file.lock"), "{error}");
        // Another file has another lock.
        Lock::of(&folder.path().join("other"), Duration::ZERO).unwrap();
        let waiting = std::thread::spawn(move || Lock::of(&path, Duration::from_secs(10)).is_ok());
        drop(held);
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn a_folder_that_is_not_there_is_said() {
        let error = Lock::of(Path::new("/nowhere/file"), Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("/nowhere/.file.lock"), "{error}");
    }
}
