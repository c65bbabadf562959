//! How the object API is reached from other processes (control-plane 9): what stands in the daemon's folder for its
//! clients (token, certificate, kubeconfig), and who is let in. Connections are accepted by `service::http`.

mod certificate;
mod guard;
mod kubeconfig;
mod token;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;

pub use guard::{Caller, router, router_beside};
pub use kubeconfig::CONTEXT;
pub use token::Token;

/// What clients of the port need, as it stands in the daemon's folder.
#[derive(Debug)]
pub struct Door {
    folder: PathBuf,
    /// What a caller of the port must send.
    pub token: Arc<Token>,
    certificate: certificate::Certificate,
}

/// A file of the daemon's folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}: {reason}", path.display())]
pub struct DoorError {
    /// Which file.
    pub path: PathBuf,
    reason: String,
}

impl DoorError {
    fn new(path: &Path, reason: &dyn std::fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

impl Door {
    /// Reads token and certificate from the daemon's folder, and makes those that are not there.
    ///
    /// # Errors
    /// When one cannot be read or written, holds something else, or is readable by other users.
    pub fn of_folder(daemon: &Path) -> Result<Self, DoorError> {
        Ok(Self {
            token: Arc::new(Token::of_file(&daemon.join("token"))?),
            certificate: certificate::Certificate::of_folder(&daemon.join("tls"))?,
            folder: daemon.to_owned(),
        })
    }

    /// The server's side of TLS.
    ///
    /// # Errors
    /// When certificate and key do not belong together.
    pub fn tls(&self) -> Result<Arc<ServerConfig>, DoorError> {
        self.certificate.server(&self.folder.join("tls"))
    }

    /// Writes `kubeconfig` for a port of this machine, whole and readable by its user only.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_kubeconfig(&self, port: u16) -> Result<PathBuf, DoorError> {
        let path = self.folder.join("kubeconfig");
        let text = kubeconfig::text(port, self.certificate.pem(), self.token.text());
        files::write_whole(&path, text.as_bytes(), files::PRIVATE)
            .map_err(|error| DoorError::new(&path, &error))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_start_finds_what_the_first_one_made() {
        let folder = tempfile::tempdir().unwrap();
        let first = Door::of_folder(folder.path()).unwrap();
        let second = Door::of_folder(folder.path()).unwrap();
        assert_eq!(first.token.text(), second.token.text());
        assert_eq!(first.certificate.pem(), second.certificate.pem());
        first.tls().unwrap();
        let path = second.write_kubeconfig(4748).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(first.token.text()), "{text}");
    }

    #[test]
    fn a_certificate_without_its_key_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let first = Door::of_folder(folder.path()).unwrap();
        std::fs::remove_file(folder.path().join("tls/key.pem")).unwrap();
        let second = Door::of_folder(folder.path()).unwrap();
        assert_ne!(first.certificate.pem(), second.certificate.pem());
        second.tls().unwrap();
    }
}
