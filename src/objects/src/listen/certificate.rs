//! The self-signed certificate of the port: made once, for loopback names only. Its clients trust it by the kubeconfig
//! that carries it.

use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::DoorError;

const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Longest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 10;

pub(super) struct Certificate {
    pem: String,
    key: String,
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Certificate(..)")
    }
}

impl Certificate {
    /// That of a folder; where it or its key is missing, both are made.
    pub(super) fn of_folder(folder: &Path) -> Result<Self, DoorError> {
        files::make_private_folder(folder).map_err(|error| DoorError::new(folder, &error))?;
        let (pem_path, key_path) = (folder.join("cert.pem"), folder.join("key.pem"));
        let read = |path: &Path| match files::read_text(path, MAX_BYTES) {
            Ok(file) => Ok(Some(file.text)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(DoorError::new(path, &error)),
        };
        if let (Some(pem), Some(key)) = (read(&pem_path)?, read(&key_path)?) {
            let known = Self { pem, key };
            // One that was cut by a full disk serves nobody.
            if known.server(folder).is_ok() {
                return Ok(known);
            }
        }
        let names = NAMES.map(str::to_owned).to_vec();
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names)
            .map_err(|error| DoorError::new(&pem_path, &error))?;
        let made = Self {
            pem: cert.pem(),
            key: signing_key.serialize_pem(),
        };
        for (path, text) in [(&key_path, &made.key), (&pem_path, &made.pem)] {
            files::write_whole(path, text.as_bytes(), files::PRIVATE)
                .map_err(|error| DoorError::new(path, &error))?;
        }
        Ok(made)
    }

    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    pub(super) fn server(&self, folder: &Path) -> Result<Arc<ServerConfig>, DoorError> {
        let refused = |reason: String| DoorError::new(folder, &reason);
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(self.pem.as_bytes()).collect();
        let chain = chain.map_err(|error| refused(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|error| refused(error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| refused(error.to_string()))?;
        Ok(Arc::new(config))
    }
}
