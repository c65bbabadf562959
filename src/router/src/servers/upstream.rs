//! One call to a Laya server, over HTTP or inside the process: the same request, the same bytes of the answer. It bounds
//! time by a deadline and knows what went wrong; what that means is for its callers.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tower::ServiceExt;

use super::address::ServerUrl;
use super::connect::{Connection, Connections, TlsError};
use super::key::KeyFile;

/// Where a server answers. Cheap to clone; two are equal when they are the same place with the same key.
#[derive(Clone)]
pub enum Upstream {
    /// Over HTTP.
    Http {
        /// Its address.
        url: ServerUrl,
        /// Its key.
        key: Option<Arc<KeyFile>>,
    },
    /// In this process: Laya's whole surface as a service, held once.
    InProcess(Arc<Router>),
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { url, .. } => write!(f, "{url}"),
            Self::InProcess(_) => f.write_str("in this process"),
        }
    }
}

impl PartialEq for Upstream {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Http { url, key },
                Self::Http {
                    url: other,
                    key: theirs,
                },
            ) => {
                let path =
                    |key: &Option<Arc<KeyFile>>| key.as_ref().map(|key| key.path().to_owned());
                url == other && path(key) == path(theirs)
            }
            (Self::InProcess(one), Self::InProcess(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// A request to a server.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    /// Laya's path.
    pub(super) path: &'static str,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Call {
    pub(super) fn get(path: &'static str) -> Self {
        Self {
            method: Method::GET,
            path,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The deadline passed.
    #[error("no answer within the deadline")]
    Deadline,
    /// No connection, or one that ended too early.
    #[error("{0}")]
    Unreachable(#[source] io::Error),
    /// The answer is longer than is read.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// Most bytes that are read.
        limit: usize,
    },
}

/// What calls go through.
#[derive(Debug)]
pub(super) enum Line {
    Http {
        connections: Arc<Connections>,
        key: Option<Arc<KeyFile>>,
    },
    InProcess(Arc<Router>),
}

impl Line {
    pub(super) fn new(upstream: &Upstream) -> Result<Self, TlsError> {
        Ok(match upstream {
            Upstream::Http { url, key } => Self::Http {
                connections: Arc::new(Connections::new(url.clone())?),
                key: key.clone(),
            },
            Upstream::InProcess(router) => Self::InProcess(router.clone()),
        })
    }

    /// The key file, if there is one.
    pub(super) fn key(&self) -> Option<&KeyFile> {
        match self {
            Self::Http { key, .. } => key.as_deref(),
            Self::InProcess(_) => None,
        }
    }

    /// Sends a call and waits for the head of its answer. Dropping it ends the call at the server too.
    ///
    /// # Errors
    /// When there is no head by the deadline, or none can come.
    pub(super) async fn send(
        &self,
        call: &Call,
        deadline: Instant,
    ) -> Result<Response<Body>, CallError> {
        let answered = async {
            match self {
                Self::Http { connections, key } => {
                    over_http(connections, key.as_deref(), call).await
                }
                Self::InProcess(router) => Ok(in_process(router, call).await),
            }
        };
        tokio::time::timeout_at(deadline.into(), answered)
            .await
            .map_err(|_| CallError::Deadline)?
            .map_err(CallError::Unreachable)
    }

    /// The same to the end of the body, of which at most `limit` bytes are read.
    ///
    /// # Errors
    /// When the whole answer is not there by the deadline, or is too long.
    pub(super) async fn ask(
        &self,
        call: &Call,
        deadline: Instant,
        limit: usize,
    ) -> Result<Response<Bytes>, CallError> {
        let (head, body) = self.send(call, deadline).await?.into_parts();
        let whole = tokio::time::timeout_at(deadline.into(), collect(body, limit))
            .await
            .map_err(|_| CallError::Deadline)??;
        Ok(Response::from_parts(head, whole))
    }
}

async fn collect(mut body: Body, limit: usize) -> Result<Bytes, CallError> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| CallError::Unreachable(io::Error::other(error)))?;
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

async fn in_process(router: &Router, call: &Call) -> Response<Body> {
    let mut request = Request::new(Body::from(call.body.clone()));
    *request.method_mut() = call.method.clone();
    *request.uri_mut() = Uri::from_static(call.path);
    *request.headers_mut() = call.headers.clone();
    match router.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A kept connection may have been closed by the server while the request was on its way. Decisions have no side
/// effects, so such a call goes out once more, on a new one.
async fn over_http(
    connections: &Arc<Connections>,
    key: Option<&KeyFile>,
    call: &Call,
) -> io::Result<Response<Body>> {
    if let Some(kept) = connections.kept(Instant::now())
        && let Ok(response) = on(kept, connections, key, call).await
    {
        return Ok(response);
    }
    let fresh = connections.open().await?;
    on(fresh, connections, key, call).await
}

async fn on(
    mut connection: Connection,
    connections: &Arc<Connections>,
    key: Option<&KeyFile>,
    call: &Call,
) -> io::Result<Response<Body>> {
    connection.sender.ready().await.map_err(io::Error::other)?;
    let request = request(connections.url(), key, call)?;
    let response = connection
        .sender
        .send_request(request)
        .await
        .map_err(io::Error::other)?;
    Ok(response.map(|body| {
        Body::new(Returning {
            body,
            connection: Some((connection, connections.clone())),
        })
    }))
}

fn request(
    url: &ServerUrl,
    key: Option<&KeyFile>,
    call: &Call,
) -> io::Result<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::new(call.body.clone()));
    *request.method_mut() = call.method.clone();
    *request.uri_mut() = url.path(call.path).parse().map_err(io::Error::other)?;
    let headers = request.headers_mut();
    *headers = call.headers.clone();
    service::telemetry::trace::inject(headers);
    let host = HeaderValue::from_str(url.host_header()).map_err(io::Error::other)?;
    headers.insert(header::HOST, host);
    if let Some(key) = key {
        headers.insert(header::AUTHORIZATION, key.bearer());
    }
    Ok(request)
}

/// A body that gives its connection back once it was read to its end. Dropped before, it closes it.
struct Returning {
    body: Incoming,
    connection: Option<(Connection, Arc<Connections>)>,
}

impl Returning {
    fn give_back(&mut self) {
        if let Some((connection, connections)) = self.connection.take() {
            connections.keep(connection);
        }
    }
}

impl HttpBody for Returning {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            None => self.give_back(),
            Some(Ok(_)) if self.body.is_end_stream() => self.give_back(),
            Some(Ok(_)) => {}
            Some(Err(_)) => self.connection = None,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
