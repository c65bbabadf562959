//! Who may call the object API from another process, and that long answers end when the process drains. Refusals are
//! `Status` objects, as its clients expect.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use service::http::{BodyLimits, Origins, read_body};
use service::runtime::Shutdown;
use tower::Service;

use super::token::{Sent, Token};

/// Of a request's body: as many bytes as the API takes, in 10 s.
const BODY: BodyLimits = BodyLimits {
    bytes: 3 << 20,
    wait: Duration::from_secs(10),
};

/// What a caller has to show.
#[derive(Debug, Clone)]
pub enum Caller {
    /// Nothing more: whoever reached the socket is its user.
    SameUser,
    /// The token, a `Host` of this machine, and no `Origin` that is not allowed: any program and any page of a browser
    /// reaches a port.
    Token {
        /// The token.
        token: Arc<Token>,
        /// What of browsers is let in.
        origins: Arc<Origins>,
    },
}

/// The object API for such callers, on the paths that are its own (control-plane 9). Answers that would go on for ever end
/// when the process drains.
pub fn router<S>(service: S, caller: Caller, shutdown: Shutdown) -> Router
where
    S: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    router_beside(service, caller, shutdown, Router::new())
}

/// The same, with calls of the daemon beside it on `/api/<word>`, for the same callers and with the same bounds of bodies.
pub fn router_beside<S>(service: S, caller: Caller, shutdown: Shutdown, daemon: Router) -> Router
where
    S: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    let ending = Ending {
        service,
        shutdown: Arc::new(shutdown),
    };
    Router::new()
        .route_service("/api", ending.clone())
        .route_service("/api/v1", ending.clone())
        .route_service("/api/v1/{*rest}", ending.clone())
        .route_service("/apis", ending.clone())
        .route_service("/apis/{*rest}", ending.clone())
        .route_service("/openapi/{*rest}", ending.clone())
        .route_service("/version", ending.clone())
        .route_service("/livez", ending.clone())
        .route_service("/readyz", ending)
        .merge(daemon)
        .fallback(|| async {
            refusal(
                StatusCode::NOT_FOUND,
                "NotFound",
                "the server could not find the requested resource",
            )
        })
        .layer(from_fn_with_state(caller, admit))
}

async fn admit(State(caller): State<Caller>, request: Request, next: Next) -> Response {
    let Caller::Token { token, origins } = caller else {
        return whole(request, next).await;
    };
    if !origins.allow(&request) {
        return refusal(
            StatusCode::FORBIDDEN,
            "Forbidden",
            "requests for another host, or from a browser's origin that is not allowed, are refused",
        );
    }
    match token.judge(bearer(request.headers()), Instant::now()) {
        Sent::Right => whole(request, next).await,
        Sent::Missing | Sent::Wrong => {
            let mut response = refusal(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized");
            let bearer = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, bearer);
            response
        }
        Sent::Wait(wait) => {
            let mut response = refusal(
                StatusCode::TOO_MANY_REQUESTS,
                "TooManyRequests",
                "too many wrong tokens; wait before the next attempt",
            );
            let seconds = HeaderValue::from(wait.as_secs() + 1);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
            response
        }
    }
}

/// Runs a request whose body came whole and in time: one that trickles must not hold a connection.
async fn whole(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match read_body(&head.headers, body, BODY).await {
        Ok(bytes) => next.run(Request::from_parts(head, bytes.into())).await,
        Err(failure) => match failure.into_response().status() {
            StatusCode::PAYLOAD_TOO_LARGE => refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                "Request entity too large: limit is 3145728",
            ),
            StatusCode::REQUEST_TIMEOUT => refusal(
                StatusCode::REQUEST_TIMEOUT,
                "Timeout",
                "the request's body did not end within 10 s",
            ),
            _ => refusal(
                StatusCode::BAD_REQUEST,
                "BadRequest",
                "the request's body cannot be read",
            ),
        },
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

fn refusal(code: StatusCode, reason: &'static str, message: &'static str) -> Response {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    });
    let kind = HeaderValue::from_static("application/json");
    (code, [(header::CONTENT_TYPE, kind)], status.to_string()).into_response()
}

/// A service whose answers end when the process drains.
#[derive(Debug, Clone)]
struct Ending<S> {
    service: S,
    shutdown: Arc<Shutdown>,
}

impl<S> Service<Request> for Ending<S>
where
    S: Service<Request, Error = Infallible>,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // Only a watch goes on by itself; everything else is whole within its deadline.
        let query = request.uri().query().unwrap_or_default();
        let goes_on = form_urlencoded::parse(query.as_bytes()).any(|(key, _)| key == "watch");
        let answering = self.service.call(request);
        let shutdown = self.shutdown.clone();
        Box::pin(async move {
            let response = answering.await?.into_response();
            if !goes_on {
                return Ok(response);
            }
            Ok(response.map(|body| {
                let until = async move { shutdown.draining().await };
                Body::from_stream(body.into_data_stream().take_until(Box::pin(until)))
            }))
        })
    }
}

#[cfg(test)]
mod tests;
