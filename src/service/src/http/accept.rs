//! The accept loop: bounded connections, bounded waits on each, and a gentle end. When the process
//! drains, connections that wait in the backlog are still taken, answers say `connection: close`, idle connections get a
//! moment for a request that is on its way, and then only open requests go on.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::Service;

use super::head_wait::{Waits, watched};
use crate::runtime::{Phase, Shutdown};
use crate::telemetry::RepeatedError;

/// Largest request head in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Largest read or write buffer of a connection in bytes; a head must fit.
const MAX_BUFFER_BYTES: usize = 2 * MAX_HEAD_BYTES;

/// How long an idle connection stays open once the process drains: a request may be on its way.
const CLOSE_GRACE: Duration = Duration::from_millis(300);

/// Pause after an error of `accept` (out of file handles, most likely).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long the backlog must be silent before the listener is closed.
const BACKLOG_WAIT: Duration = Duration::from_millis(5);

/// Most connections taken from the backlog; the kernel keeps no more.
const MAX_BACKLOG: usize = 1024;

/// Bounds on connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Open at once; more wait in the kernel's backlog.
    pub connections: usize,
    /// From the first byte of a request's head to its last.
    pub head_wait: Duration,
    /// From one request to the next on the same connection.
    pub idle_wait: Duration,
    /// Without progress while an answer is written.
    pub write_wait: Duration,
    /// For open requests once the process drains; without it they have as long as the process has.
    pub drain_wait: Option<Duration>,
}

impl Default for ConnectionLimits {
    /// 2048 connections; 10 s for a head (routing.md 18), 75 s idle (wire.md 2.3), 10 s for a stalled write.
    fn default() -> Self {
        Self {
            connections: 2048,
            head_wait: Duration::from_secs(10),
            idle_wait: Duration::from_secs(75),
            write_wait: Duration::from_secs(10),
            drain_wait: None,
        }
    }
}

impl ConnectionLimits {
    /// Those of the admin port, which a scraper and a few probes call.
    #[must_use]
    pub fn admin() -> Self {
        Self {
            connections: 64,
            ..Self::default()
        }
    }

    const fn waits(&self) -> Waits {
        Waits {
            head: self.head_wait,
            idle: self.idle_wait,
            write: self.write_wait,
        }
    }
}

/// Where connections come from.
pub trait Accepts: Send + Sync + 'static {
    /// What the system hands over.
    type Stream: Send + 'static;
    /// What HTTP is spoken over.
    type Opened: Connection;

    /// The next connection. Cancel safe.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// What stands before HTTP, done beside other connections and within the wait for a head: nothing, a look at the
    /// peer, a handshake. `None` closes the connection without a word.
    fn open(&self, stream: Self::Stream) -> Opening<Self::Opened>;
}

/// A connection that is not open yet.
pub type Opening<T> = Pin<Box<dyn Future<Output = Option<T>> + Send>>;

impl Accepts for TcpListener {
    type Stream = TcpStream;
    type Opened = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        Ok(stream)
    }

    fn open(&self, stream: TcpStream) -> Opening<TcpStream> {
        Box::pin(std::future::ready(Some(stream)))
    }
}

/// Serves `app` until the process drains and every open request is answered, or it stops. `accept_errors` counts what
/// the system refuses to accept. Dropping it closes every connection.
pub async fn serve<L: Accepts>(
    listener: L,
    app: Router,
    limits: ConnectionLimits,
    accept_errors: RepeatedError,
    shutdown: Shutdown,
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let shutdown = Arc::new(shutdown);
    let mut connections = JoinSet::new();
    loop {
        let (stream, slot) = tokio::select! {
            biased;
            () = shutdown.draining() => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &slots, &accept_errors) => accepted,
        };
        let opening = listener.open(stream);
        let (app, shutdown) = (app.clone(), shutdown.clone());
        connections.spawn(async move {
            open_and_serve::<L>(opening, app, limits, shutdown).await;
            drop(slot);
        });
    }
    // Clients in the backlog have connected: they are served, not reset.
    for _ in 0..MAX_BACKLOG {
        let Ok(Ok(stream)) = timeout(BACKLOG_WAIT, listener.accept()).await else {
            break;
        };
        connections.spawn(open_and_serve::<L>(
            listener.open(stream),
            app.clone(),
            limits,
            shutdown.clone(),
        ));
    }
    drop(listener);
    tokio::select! {
        () = async { while connections.join_next().await.is_some() {} } => {}
        () = shutdown.stopping() => {}
        () = over(limits.drain_wait) => {}
    }
}

/// Returns after a wait; never without one.
async fn over(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// The next connection and its slot. Cancel safe.
async fn accept<L: Accepts>(
    listener: &L,
    slots: &Arc<Semaphore>,
    errors: &RepeatedError,
) -> (L::Stream, OwnedSemaphorePermit) {
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return std::future::pending().await;
        };
        match listener.accept().await {
            Ok(stream) => {
                if let Some(count) = errors.recovered() {
                    tracing::info!(count, "connections are accepted again");
                }
                return (stream, slot);
            }
            // The client went away between connect and accept.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if let Some(count) = errors.occurred() {
                    tracing::error!(%error, count, "cannot accept a connection");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn open_and_serve<L: Accepts>(
    opening: Opening<L::Opened>,
    app: Router,
    limits: ConnectionLimits,
    shutdown: Arc<Shutdown>,
) {
    if let Ok(Some(stream)) = timeout(limits.head_wait, opening).await {
        serve_connection(stream, app, limits, shutdown).await;
    }
}

/// Serves one connection, over TCP or, in tests, over anything that reads and writes.
async fn serve_connection<S>(
    stream: S,
    app: Router,
    limits: ConnectionLimits,
    shutdown: Arc<Shutdown>,
) where
    S: Connection,
{
    stream.prepare();
    let (stream, timer) = watched(stream, limits.waits());
    let closing = shutdown.clone();
    let service = service_fn(move |request| answer(app.clone(), closing.clone(), request));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(timer)
            .header_read_timeout(limits.idle_wait)
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(MAX_BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), service)
    );
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = shutdown.draining() => {}
    }
    tokio::select! {
        _ = connection.as_mut() => return,
        () = tokio::time::sleep(CLOSE_GRACE) => {}
        () = shutdown.stopping() => return,
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        _ = connection.as_mut() => {}
        () = shutdown.stopping() => {}
    }
}

async fn answer(
    mut app: Router,
    shutdown: Arc<Shutdown>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    if !names_its_host(&request) {
        return Ok(broken());
    }
    let mut response = app.call(request).await?;
    if shutdown.phase() != Phase::Running {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// HTTP/1.1 demands one `Host` (RFC 9112, 3.2), and rules about hosts rely on it.
fn names_its_host(request: &Request<Incoming>) -> bool {
    match request.headers().get_all(header::HOST).iter().count() {
        0 => request.version() < Version::HTTP_11,
        1 => true,
        _ => false,
    }
}

/// The answer to what is no HTTP, as the protocol library gives it.
fn broken() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// What a connection can be made of.
pub trait Connection: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Sets what the transport can be told.
    fn prepare(&self) {}
}

impl Connection for TcpStream {
    fn prepare(&self) {
        // Small answers must not wait for an acknowledgement. A socket that refuses is already closed.
        let _ = self.set_nodelay(true);
    }
}

#[cfg(test)]
mod tests;
