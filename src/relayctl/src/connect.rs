//! A `kube::Client` for a context: through the socket of `relayd local`, its port with its token, or a kubeconfig.

use std::io;
use std::path::{Path, PathBuf};

use files::Places;
use http::{HeaderValue, Request, Response, Uri, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use tokio::net::{TcpStream, UnixStream};
use tower::BoxError;

use crate::context::Chosen;
use crate::daemon::{Endpoint, State, look};
use crate::error::CliError;
use api::exit::Exit;

/// Longest token, in bytes.
const MAX_TOKEN: u64 = 4096;
/// Namespace of a laptop's objects.
const NAMESPACE: &str = "default";

/// Nothing listens where `relayd local` would.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocalError {
    /// No daemon.
    #[error("`relayd local` is not running: nothing listens on {}{}", socket.display(), Self::detail(socket, source))]
    Absent {
        /// Where.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its port is not used.
    #[error("cannot use {}: {why}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Its port does not accept.
    #[error("cannot connect to {address}")]
    Port {
        /// Which.
        address: String,
        /// What the system said.
        source: io::Error,
    },
}

impl LocalError {
    /// What is odd about it, where something else than a daemon is missing.
    fn detail(socket: &Path, source: &io::Error) -> String {
        if is_absent(source) && !is_in_the_way(socket) {
            return String::new();
        }
        if is_in_the_way(socket) {
            ", which is no socket".to_owned()
        } else {
            format!(" ({source})")
        }
    }

    /// What helps, where starting a daemon does not.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Absent { socket, source } if source.kind() == io::ErrorKind::InvalidInput => {
                Some(format!(
                    "{} is longer than the path of a socket may be; set RELAY_HOME to a shorter folder",
                    socket.display()
                ))
            }
            Self::Absent { source, .. } if source.kind() == io::ErrorKind::NotADirectory => {
                Some("RELAY_HOME is no folder; set it to one of yours".to_owned())
            }
            Self::Absent { socket, .. } if is_in_the_way(socket) => Some(format!(
                "move {} out of the way, then `relayctl up`",
                socket.display()
            )),
            Self::Absent { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("RELAY_HOME is somebody else's; set it to a folder of yours".to_owned())
            }
            Self::Absent { .. } | Self::File { .. } | Self::Port { .. } => None,
        }
    }
}

/// Whether something that is no socket stands where it belongs.
fn is_in_the_way(socket: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(socket)
        .is_ok_and(|metadata| !metadata.file_type().is_socket() && !metadata.is_symlink())
}

/// A client and the namespace it begins with.
pub(crate) struct Connected {
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
}

/// The control plane of this machine; connects when it is first asked.
pub(crate) fn local(places: &Places) -> Connected {
    let places = places.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let places = places.clone();
        async move { ask_local(&places, request).await }
    });
    Connected {
        client: kube::Client::new(service, NAMESPACE),
        namespace: NAMESPACE.to_owned(),
    }
}

/// One request on a connection of its own: a command asks a handful of questions, and a socket costs nothing.
async fn ask_local(
    places: &Places,
    mut request: Request<Body>,
) -> Result<Response<Incoming>, BoxError> {
    let socket = places.daemon().join("sock");
    let host = HeaderValue::from_static("localhost");
    match UnixStream::connect(&socket).await {
        Ok(stream) => {
            request.headers_mut().insert(header::HOST, host);
            exchange(stream, request).await
        }
        Err(source) if is_absent(&source) => {
            let Some(port) = port(places)? else {
                return Err(LocalError::Absent { socket, source }.into());
            };
            let stream = TcpStream::connect(&port.authority)
                .await
                .map_err(|source| LocalError::Port {
                    address: port.authority.clone(),
                    source,
                })?;
            let headers = request.headers_mut();
            headers.insert(header::HOST, HeaderValue::from_str(&port.authority)?);
            headers.insert(header::AUTHORIZATION, port.authorization);
            exchange(stream, request).await
        }
        Err(source) => Err(LocalError::Absent { socket, source }.into()),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

async fn exchange<S>(stream: S, request: Request<Body>) -> Result<Response<Incoming>, BoxError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the connection; what goes wrong there is what the answer ends with.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender.send_request(request).await?)
}

/// The port that `endpoint.json` names, where there is one.
struct Port {
    authority: String,
    authorization: HeaderValue,
}

fn port(places: &Places) -> Result<Option<Port>, LocalError> {
    let path = places.endpoint();
    let refused = |path: PathBuf| move |why: String| LocalError::File { path, why };
    Endpoint::read(places).map_err(|error| refused(path.clone())(error.to_string()))?;
    let State::Runs(Endpoint { url: Some(url), .. }) = look(places) else {
        return Ok(None);
    };
    let authority = loopback(&url).map_err(refused(path))?;
    let path = places.daemon().join("token");
    let token = files::read_text(&path, MAX_TOKEN)
        .map_err(|error| refused(path.clone())(error.to_string()))?;
    let mut authorization = HeaderValue::from_str(&format!("Bearer {}", token.text.trim()))
        .map_err(|_| refused(path)("it holds no token".to_owned()))?;
    authorization.set_sensitive(true);
    Ok(Some(Port {
        authority,
        authorization,
    }))
}

/// The token goes to this machine only, whatever a file says.
pub(crate) fn loopback(url: &str) -> Result<String, String> {
    let uri: Uri = url
        .parse()
        .map_err(|error| format!("`{url}` is no address: {error}"))?;
    let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"));
    let authority = authority.ok_or_else(|| format!("`{url}` is no http address"))?;
    let is_loopback = matches!(authority.host(), "127.0.0.1" | "[::1]" | "localhost");
    if is_loopback && authority.port_u16().is_some() && !authority.as_str().contains('@') {
        Ok(authority.to_string())
    } else {
        Err(format!("`{url}` is no address of this machine with a port"))
    }
}

/// A context of the kubeconfig (`KUBECONFIG`, else `~/.kube/config`).
///
/// # Errors
/// No such context, or one that cannot be used.
pub(crate) async fn cluster(chosen: &Chosen) -> Result<Connected, CliError> {
    let kubeconfig = kubeconfig()?;
    check_context(&kubeconfig, chosen)?;
    // One provider for everybody, before the first connection (engineering.md 8.5); an installed one is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = KubeConfigOptions {
        context: Some(chosen.name.clone()),
        ..KubeConfigOptions::default()
    };
    let unusable = |error: &(dyn std::error::Error + 'static)| {
        CliError::new(
            Exit::Failed,
            format!("cannot use context `{}`: {error}", chosen.name),
        )
        .caused_by(error)
    };
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| unusable(&error))?;
    // Its waits add up to minutes; a person asks again.
    config.default_retry = false;
    let namespace = config.default_namespace.clone();
    let client = kube::Client::try_from(config).map_err(|error| unusable(&error))?;
    Ok(Connected { client, namespace })
}

/// The kubeconfig as it is.
///
/// # Errors
/// It is not there or damaged.
pub(crate) fn kubeconfig() -> Result<Kubeconfig, CliError> {
    Kubeconfig::read().map_err(|error| {
        let exit = match &error {
            KubeconfigError::FindPath => Exit::NotFound,
            KubeconfigError::ReadConfig(source, _) if source.kind() == io::ErrorKind::NotFound => {
                Exit::NotFound
            }
            _ => Exit::Failed,
        };
        CliError::new(exit, format!("cannot read the kubeconfig: {error}"))
            .hint("`--context local` talks to this machine; KUBECONFIG names another file")
            .caused_by(&error)
    })
}

fn check_context(kubeconfig: &Kubeconfig, chosen: &Chosen) -> Result<(), CliError> {
    if kubeconfig
        .contexts
        .iter()
        .any(|context| context.name == chosen.name)
    {
        return Ok(());
    }
    let line = format!(
        "there is no context `{}` (named by {})",
        chosen.name,
        chosen.source.describe()
    );
    Err(CliError::new(Exit::NotFound, line).hint("`relayctl context ls` lists them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_stays_on_this_machine() {
        for (url, expected) in [
            ("http://127.0.0.1:4748", Some("127.0.0.1:4748")),
            ("http://[::1]:4748/", Some("[::1]:4748")),
            ("http://localhost:4748", Some("localhost:4748")),
            ("http://127.0.0.1", None),
            ("https://127.0.0.1:4748", None),
            ("http://127.0.0.1@evil.example:4748", None),
            ("http://evil.example:4748", None),
            ("127.0.0.1:4748", None),
            ("", None),
        ] {
            assert_eq!(loopback(url).ok().as_deref(), expected, "{url}");
        }
    }
}
