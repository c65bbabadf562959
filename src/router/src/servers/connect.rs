//! Connections to one server over HTTP/1.1: opened within a time of their own, kept for a short while, never older than
//! a minute so that a changed address is noticed, given back once an answer was read to its end. No proxies, no
//! redirects. A dropped call closes its connection, which tells the server to stop.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::address::ServerUrl;

/// Longest time to open a connection, TLS included; the deadline of a call may be shorter.
pub(super) const CONNECT_WAIT: Duration = Duration::from_secs(2);

/// How long a connection waits for its next use. Below the keep-alive of every Laya: 75 s of ours, 5 s of the original.
const MAX_IDLE: Duration = Duration::from_secs(4);

/// How old a connection may grow: a name that points elsewhere is noticed by new connections only.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Most bytes of a head, or of a body before somebody takes them.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

/// A server whose certificate nothing could prove.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is no authority to trust.
    #[error(
        "no certificate authorities are on this machine ({problem}); set SSL_CERT_FILE to a bundle"
    )]
    NoAuthorities {
        /// What was found instead.
        problem: String,
    },
    /// The name in the address is none that a certificate can have.
    #[error("`{host}` is no name that a certificate can prove")]
    Name {
        /// The name.
        host: String,
    },
    /// The provider lacks what TLS needs.
    #[error("TLS cannot be set up")]
    Provider(#[from] rustls::Error),
}

struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    fn new(host: &str) -> Result<Self, TlsError> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name {
            host: host.to_owned(),
        })?;
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let problems: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
            return Err(TlsError::NoAuthorities {
                problem: problems.join("; "),
            });
        }
        // The provider is named, so that no process-wide default is needed and none can be the wrong one.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name,
        })
    }
}

type Sender = SendRequest<Full<Bytes>>;

struct Idle {
    sender: Sender,
    born: Instant,
    since: Instant,
}

/// A connection that is in use.
pub(super) struct Connection {
    pub(super) sender: Sender,
    born: Instant,
}

/// The connections of one server.
pub(super) struct Connections {
    url: ServerUrl,
    tls: Option<Tls>,
    /// The one used last is at the end.
    idle: Mutex<Vec<Idle>>,
}

impl Connections {
    pub(super) fn new(url: ServerUrl) -> Result<Self, TlsError> {
        let tls = url
            .is_encrypted()
            .then(|| Tls::new(url.host()))
            .transpose()?;
        Ok(Self {
            url,
            tls,
            idle: Mutex::default(),
        })
    }

    pub(super) const fn url(&self) -> &ServerUrl {
        &self.url
    }

    /// A kept connection, the one used last first.
    pub(super) fn kept(&self, now: Instant) -> Option<Connection> {
        let mut idle = self.idle();
        idle.retain(|kept| is_usable(kept, now));
        let Idle { sender, born, .. } = idle.pop()?;
        Some(Connection { sender, born })
    }

    /// A new connection. Cancel safe.
    ///
    /// # Errors
    /// When it is not open within [`CONNECT_WAIT`].
    pub(super) async fn open(&self) -> io::Result<Connection> {
        tokio::time::timeout(CONNECT_WAIT, self.handshake())
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "connecting took too long"))?
    }

    async fn handshake(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect((self.url.host(), self.url.port())).await?;
        stream.set_nodelay(true)?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_BUFFER_BYTES);
        let sender = match &self.tls {
            None => {
                let (sender, connection) = builder
                    .handshake(TokioIo::new(stream))
                    .await
                    .map_err(io::Error::other)?;
                // Ends with the sender or with the server; what goes wrong is seen by the call.
                tokio::spawn(connection);
                sender
            }
            Some(Tls { connector, name }) => {
                let stream = connector.connect(name.clone(), stream).await?;
                let (sender, connection) = builder
                    .handshake(TokioIo::new(stream))
                    .await
                    .map_err(io::Error::other)?;
                tokio::spawn(connection);
                sender
            }
        };
        Ok(Connection {
            sender,
            born: Instant::now(),
        })
    }

    /// Keeps a connection whose answer was read to its end.
    pub(super) fn keep(&self, connection: Connection) {
        let Connection { sender, born } = connection;
        let now = Instant::now();
        let kept = Idle {
            sender,
            born,
            since: now,
        };
        let mut idle = self.idle();
        idle.retain(|kept| is_usable(kept, now));
        if is_usable(&kept, now) {
            idle.push(kept);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_usable(kept: &Idle, now: Instant) -> bool {
    !kept.sender.is_closed()
        && now.saturating_duration_since(kept.since) < MAX_IDLE
        && now.saturating_duration_since(kept.born) < MAX_AGE
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections")
            .field("url", &self.url)
            .field("kept", &self.idle().len())
            .finish_non_exhaustive()
    }
}
