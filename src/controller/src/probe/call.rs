//! One call to a server on a plain HTTP address, on a connection of its own: a server that takes no new connections is not
//! one that serves. The whole answer has one deadline and at most so many bytes.

use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Most bytes of a head, or of a body before somebody takes them.
const MAX_BUFFER_BYTES: usize = 64 * 1024;
/// Digest of the checkpoint that answered (wire 2.2).
const CHECKPOINT: &str = "x-laya-checkpoint";

/// What is asked.
#[derive(Debug, Clone)]
pub struct Call {
    /// How.
    pub method: Method,
    /// Where on the server, beginning with a slash.
    pub path: &'static str,
    /// With what besides host and content type.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// JSON, or nothing.
    pub body: Bytes,
}

impl Call {
    /// A question without a body.
    #[must_use]
    pub const fn get(path: &'static str) -> Self {
        Self {
            method: Method::GET,
            path,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }
}

/// What a server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Status.
    pub status: u16,
    /// Digest of the one checkpoint that answered, where it says so.
    pub checkpoint: Option<String>,
    /// Body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It did not come, or not whole, in time.
    #[error("no whole answer within {} ms", after.as_millis())]
    Deadline {
        /// How long it had.
        after: Duration,
    },
    /// No connection, or one that ended too early.
    #[error("{message}")]
    Unreachable {
        /// Whether nobody listens there.
        refused: bool,
        /// Why.
        message: String,
    },
    /// It is longer than is read.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// Most bytes that are read.
        limit: usize,
    },
}

impl CallError {
    fn io(error: &io::Error) -> Self {
        Self::Unreachable {
            refused: error.kind() == io::ErrorKind::ConnectionRefused,
            message: error.to_string(),
        }
    }

    fn http(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Unreachable {
            refused: false,
            message: service::telemetry::causes(error),
        }
    }
}

/// Asks the server at `url` and reads its answer, of which the body has at most `limit` bytes. Dropping it closes the
/// connection, which tells the server to stop.
///
/// # Errors
/// When there is no whole answer in time, or it is too long.
pub async fn ask(
    url: &str,
    call: &Call,
    within: Duration,
    limit: usize,
) -> Result<Said, CallError> {
    let answer = tokio::time::timeout(within, converse(url, call, limit)).await;
    answer.unwrap_or(Err(CallError::Deadline { after: within }))
}

async fn converse(url: &str, call: &Call, limit: usize) -> Result<Said, CallError> {
    let (host, authority, port) = place(url)?;
    let stream = TcpStream::connect((host.as_str(), port))
        .await
        .map_err(|error| CallError::io(&error))?;
    // Without it a request waits for the acknowledgement of its head; a connection that cannot be told so works too.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_BUFFER_BYTES);
    let (mut sender, connection) = builder
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| CallError::http(&error))?;
    let request = request(&authority, call)?;
    let mut exchange = pin!(async {
        let answer = sender.send_request(request).await;
        let (head, body) = answer
            .map_err(|error| CallError::http(&error))?
            .into_parts();
        let checkpoint = head.headers.get(CHECKPOINT);
        let checkpoint = checkpoint.and_then(|value| value.to_str().ok());
        Ok(Said {
            status: head.status.as_u16(),
            // Several are joined by commas.
            checkpoint: checkpoint
                .filter(|digests| !digests.contains(','))
                .map(str::to_owned),
            body: collect(body, limit).await?,
        })
    });
    tokio::select! {
        said = &mut exchange => return said,
        _ended = connection => {}
    }
    exchange.await
}

/// Host, `Host` header and port of an address.
fn place(url: &str) -> Result<(String, String, u16), CallError> {
    let unusable = |why: &str| CallError::Unreachable {
        refused: false,
        message: format!("{url} is no address of a server: {why}"),
    };
    let uri: Uri = url.parse().map_err(|_| unusable("it is no URL"))?;
    if uri.scheme_str() != Some("http") {
        return Err(unusable("it does not begin with http://"));
    }
    let authority = uri.authority().ok_or_else(|| unusable("it has no host"))?;
    let host = authority.host().trim_matches(['[', ']']);
    Ok((
        host.to_owned(),
        authority.to_string(),
        authority.port_u16().unwrap_or(80),
    ))
}

fn request(authority: &str, call: &Call) -> Result<Request<Full<Bytes>>, CallError> {
    let mut request = Request::new(Full::new(call.body.clone()));
    *request.method_mut() = call.method.clone();
    *request.uri_mut() = Uri::from_static(call.path);
    let headers = request.headers_mut();
    let host = HeaderValue::from_str(authority).map_err(|error| CallError::http(&error))?;
    headers.insert(header::HOST, host);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if !call.body.is_empty() {
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
    }
    headers.extend(
        call.headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    Ok(request)
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, CallError> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| CallError::http(&error))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if whole.len() + data.len() > limit {
            return Err(CallError::TooLong { limit });
        }
        whole.extend_from_slice(data);
    }
    Ok(whole.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_addresses() {
        let of = |url: &str| place(url).ok();
        let found =
            |host: &str, authority: &str, port| Some((host.to_owned(), authority.to_owned(), port));
        assert_eq!(
            of("http://127.0.0.1:8000"),
            found("127.0.0.1", "127.0.0.1:8000", 8000)
        );
        assert_eq!(of("http://[::1]:8000/"), found("::1", "[::1]:8000", 8000));
        assert_eq!(of("http://laya-main"), found("laya-main", "laya-main", 80));
        for bad in ["https://x", "x:1", "", "http://"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
