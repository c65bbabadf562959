//! A Unix socket for programs of the same user: its file is 0600, and a peer with another user id is closed.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::accept::{Accepts, Connection, Opening};

/// A socket of one user; its file goes with it.
#[derive(Debug)]
pub struct OwnSocket {
    listener: UnixListener,
    path: PathBuf,
    user: u32,
}

/// Longest path of a socket, in bytes: `sun_path` of unix(7) less its end.
const MAX_PATH: usize = 107;

/// Why a socket cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on the socket {}: {reason}", path.display())]
pub struct SocketError {
    /// Its file.
    pub path: PathBuf,
    reason: String,
}

impl OwnSocket {
    /// Listens on a path in a folder that only its user can enter. A file that an earlier process left there is removed;
    /// one that somebody answers on, and what is no socket, is not.
    ///
    /// # Errors
    /// When the path is taken, too long, or cannot be made.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        let refused = |reason: String| SocketError {
            path: path.to_owned(),
            reason,
        };
        let length = path.as_os_str().len();
        if length > MAX_PATH {
            return Err(refused(format!(
                "its path has {length} bytes, limit {MAX_PATH}"
            )));
        }
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(refused("a file that is no socket is there".to_owned()));
            }
            Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                return Err(refused("another program listens there".to_owned()));
            }
            Ok(_) => std::fs::remove_file(path).map_err(|error| refused(error.to_string()))?,
            Err(_) => {}
        }
        let told = |error: io::Error| refused(error.to_string());
        let listener = UnixListener::bind(path).map_err(told)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(told)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            user: rustix::process::geteuid().as_raw(),
        })
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // One that stays is found dead by the next start.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Accepts for OwnSocket {
    type Stream = UnixStream;
    type Opened = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.listener.accept().await?;
        Ok(stream)
    }

    fn open(&self, stream: UnixStream) -> Opening<UnixStream> {
        let is_own = stream.peer_cred().is_ok_and(|peer| peer.uid() == self.user);
        Box::pin(std::future::ready(is_own.then_some(stream)))
    }
}

impl Connection for UnixStream {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn takes_over_what_is_left_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        // A process that was killed leaves its file.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let first = OwnSocket::bind(&path).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let second = OwnSocket::bind(&path).unwrap_err().to_string();
        assert!(
            second.ends_with("another program listens there"),
            "{second}"
        );
        drop(first);
        assert!(!path.exists());
        std::fs::write(&path, "mine").unwrap();
        let third = OwnSocket::bind(&path).unwrap_err().to_string();
        assert!(third.contains("no socket"), "{third}");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        let long = folder.path().join("x".repeat(200));
        assert!(OwnSocket::bind(&long).is_err());
    }
}
