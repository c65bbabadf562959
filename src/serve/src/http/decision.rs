//! The two decision routes (wire.md 2.3, 4.4): drain, slot, length, body, and then `decide` within the deadline.

use std::time::{Duration, Instant};

use axum::body::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};

use super::body::{self, BodyError};
use super::{Surface, reply};
use crate::decide::{Asked, Failure, Form, Reply};

const DEADLINE: HeaderName = HeaderName::from_static("x-laya-deadline-ms");
const CONTRACT: HeaderName = HeaderName::from_static("x-laya-contract");
const CHECKPOINT: HeaderName = HeaderName::from_static("x-laya-checkpoint");
const TRUNCATED: HeaderName = HeaderName::from_static("x-laya-truncated");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const INFERENCE_TIME: HeaderName = HeaderName::from_static("x-inference-time-ms");

impl Surface {
    pub(super) async fn decision(
        &self,
        form: Form,
        request: Request<Body>,
        began: Instant,
    ) -> Response<Body> {
        if self.readiness.is_drained() {
            return reply::early(request, reply::busy("server is draining"));
        }
        let Ok(_slot) = self.slots.clone().try_acquire_owned() else {
            return reply::early(request, reply::busy("server busy, try again later"));
        };
        let too_large = || reply::detail(StatusCode::PAYLOAD_TOO_LARGE, "request body too large");
        if body::is_too_large(request.headers()) {
            return reply::early(request, too_large());
        }
        let (head, content) = request.into_parts();
        let Ok(wait) = wait(&head.headers, self.request_timeout) else {
            reply::discard(content, head.headers.contains_key(http::header::EXPECT));
            return reply::detail(
                StatusCode::UNPROCESSABLE_ENTITY,
                "x-laya-deadline-ms must be a number of milliseconds",
            );
        };
        let deadline = began + wait;
        let in_time = |wait: Duration| wait.min(deadline.saturating_duration_since(Instant::now()));
        let body = match body::read(content, in_time(self.body_read_timeout)).await {
            Ok(body) => body,
            Err(BodyError::TooLarge(rest)) => {
                reply::discard(rest, false);
                return too_large();
            }
            Err(BodyError::TooSlow(rest)) => {
                reply::discard(rest, false);
                if deadline <= Instant::now() {
                    return expired();
                }
                return reply::detail(
                    StatusCode::REQUEST_TIMEOUT,
                    "request body was not received in time",
                );
            }
            Err(BodyError::Malformed) => return reply::no_http(),
            // Nobody reads this.
            Err(BodyError::Gone) => {
                return reply::detail(StatusCode::BAD_REQUEST, "request body must be valid JSON");
            }
        };
        let contract = head.headers.get(&CONTRACT).map(text);
        let asked = Asked {
            form,
            body,
            contract,
            deadline,
        };
        match tokio::time::timeout_at(deadline.into(), self.decider.decide(asked)).await {
            Ok(Ok(reply)) => answered(reply),
            Ok(Err(failure)) => refused(&failure),
            Err(_) => expired(),
        }
    }
}

/// How long a request may take.
fn wait(headers: &HeaderMap, longest: Duration) -> Result<Duration, ()> {
    let Some(asked) = headers.get(&DEADLINE) else {
        return Ok(longest);
    };
    let millis: u64 = asked
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .ok_or(())?;
    Ok(Duration::from_millis(millis).min(longest))
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).trim().to_owned()
}

fn expired() -> Response<Body> {
    reply::detail(StatusCode::GATEWAY_TIMEOUT, "deadline exceeded")
}

fn refused(failure: &Failure) -> Response<Body> {
    match failure {
        Failure::Refused(refusal) => {
            let status = StatusCode::from_u16(refusal.status.code())
                .unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
            reply::detail(status, &refusal.detail)
        }
        Failure::Contract { .. } => reply::detail(StatusCode::CONFLICT, &failure.to_string()),
        Failure::Deadline => expired(),
        Failure::Internal(cause) => {
            tracing::error!(cause, "inference failed");
            reply::detail(StatusCode::INTERNAL_SERVER_ERROR, "inference failed")
        }
    }
}

fn answered(reply: Reply) -> Response<Body> {
    let millis = format!("{:.2}", reply.inference.as_secs_f64() * 1000.0);
    let digests: Vec<&str> = reply
        .checkpoints
        .iter()
        .map(|(digest, _)| digest.as_str())
        .collect();
    let contracts: Vec<&str> = reply
        .checkpoints
        .iter()
        .map(|(_, contract)| contract.as_deref().unwrap_or("none"))
        .collect();
    let headers = [
        (SERVER_TIMING, format!("inference;dur={millis}")),
        (INFERENCE_TIME, millis),
        (CHECKPOINT, digests.join(", ")),
        (CONTRACT, contracts.join(", ")),
        (TRUNCATED, reply.truncated.to_string()),
    ];
    let mut response = reply::json(StatusCode::OK, reply.body);
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_deadline_holds() {
        let longest = Duration::from_secs(60);
        for (header, expected) in [
            (None, Ok(longest)),
            (Some("250"), Ok(Duration::from_millis(250))),
            (Some("0"), Ok(Duration::ZERO)),
            (Some("600000"), Ok(longest)),
            (Some("18446744073709551615"), Ok(longest)),
            (Some("18446744073709551616"), Err(())),
            (Some("-1"), Err(())),
            (Some("1.5"), Err(())),
            (Some(""), Err(())),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(DEADLINE, header.parse().unwrap());
            }
            assert_eq!(wait(&headers, longest), expected, "{header:?}");
        }
    }
}
