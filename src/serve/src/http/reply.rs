//! Replies with exact headers (wire.md 2.2), and what happens to the body of a request that is answered before it was
//! read.

use std::time::Duration;

use axum::body::Body;
use decision::json::write_string;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt;

/// Most bytes of an unread body that are taken, so that a client which writes first and reads later gets its answer
/// instead of a reset connection.
const UNREAD_BYTES: usize = 4 << 20;
/// Longest time for that.
const UNREAD_WAIT: Duration = Duration::from_secs(2);

/// A body of JSON.
pub(super) fn json(status: StatusCode, body: String) -> Response<Body> {
    with_length(status, "application/json", body.into_bytes())
}

/// `{"detail":"…"}`
pub(super) fn detail(status: StatusCode, text: &str) -> Response<Body> {
    let mut body = String::from(r#"{"detail":"#);
    write_string(&mut body, text);
    body.push('}');
    json(status, body)
}

/// 503, to be tried again in a second.
pub(super) fn busy(text: &str) -> Response<Body> {
    let mut response = detail(StatusCode::SERVICE_UNAVAILABLE, text);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Metrics.
pub(super) fn text(body: Vec<u8>) -> Response<Body> {
    with_length(
        StatusCode::OK,
        "text/plain; version=0.0.4; charset=utf-8",
        body,
    )
}

/// What the original's connection answers when a body is not framed as HTTP asks.
pub(super) fn no_http() -> Response<Body> {
    let mut response = with_length(
        StatusCode::BAD_REQUEST,
        "text/plain; charset=utf-8",
        b"Invalid HTTP request received.".to_vec(),
    );
    response
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn with_length(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Response<Body> {
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, length);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Answers without the body. A little of it is taken beside the answer, within bounds.
pub(super) fn early(request: Request<Body>, response: Response<Body>) -> Response<Body> {
    // A client that waits for `100 Continue` sends nothing if it gets an answer instead.
    let waits = request.headers().contains_key(header::EXPECT);
    discard(request.into_body(), waits);
    response
}

/// Takes what is left of a body, within bounds.
pub(super) fn discard(mut body: Body, client_waits: bool) {
    if body.is_end_stream() || client_waits {
        return;
    }
    tokio::spawn(async move {
        let take = async {
            let mut taken = 0;
            while let Some(Ok(frame)) = body.frame().await {
                taken += frame.data_ref().map_or(0, bytes::Bytes::len);
                if taken > UNREAD_BYTES {
                    return;
                }
            }
        };
        // Whatever came of it: what is left goes with the connection.
        let _ = tokio::time::timeout(UNREAD_WAIT, take).await;
    });
}
