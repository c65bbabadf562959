//! `/v1/systemone` and `/v1/systemone/batch`: the bytes of the caller to a server, the bytes of its answer back
//! (routing.md 18, wire.md 2.6). What the router says itself has Laya's form. Rules never stand in here, and no copies are
//! made: what is asked here is the caller's.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use service::http::{BodyLimits, RequestId, read_body};
use service::problem::detail_response;
use tokio::time::Sleep;

use super::ask::{is_draining, millis_until, wants_later};
use super::breaker::Weight;
use super::deadline::{allows_second, first_try_ends};
use super::revision::Ended;
use super::server::{Admitted, Closed};
use super::standing::Serves;
use super::table::{Entry, Table};
use super::upstream::{Call, CallError};
use super::{CHECKPOINT, CONTRACT, DEADLINE_MS, SYSTEM_ONE, SYSTEM_ONE_BATCH, Servers, TRUNCATED};

/// Deadline of a call that names none, and the longest one.
const LONGEST: Duration = Duration::from_secs(60);

/// Bounds of the body.
const LIMITS: BodyLimits = BodyLimits {
    bytes: 2 << 20,
    wait: Duration::from_secs(10),
};

/// Servers asked about one request; those that drain are not counted.
const MAX_TRIES: usize = 2;

/// Longest body of a refusal that is read, in bytes.
const MAX_REFUSAL_BYTES: u64 = 16 << 10;

/// Headers of a request that a server is told. The caller's token and everything else stays here.
const TO_SERVER: [HeaderName; 4] = [
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    CONTRACT,
    DEADLINE_MS,
];

/// Headers of an answer that the caller is told.
const TO_CALLER: [HeaderName; 8] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::RETRY_AFTER,
    HeaderName::from_static("server-timing"),
    HeaderName::from_static("x-inference-time-ms"),
    CHECKPOINT,
    CONTRACT,
    TRUNCATED,
];

const MODEL_VERSION: HeaderName = HeaderName::from_static("x-relay-model-version");
const RELAY_CONTRACT: HeaderName = HeaderName::from_static("x-relay-contract");

/// The two routes. They belong into [`service::http::Routes::detail`].
pub fn routes(servers: Servers) -> Router {
    Router::new()
        .route(
            SYSTEM_ONE,
            post(
                |State(servers): State<Servers>, request: Request| async move {
                    pass(&servers, SYSTEM_ONE, request).await
                },
            ),
        )
        .route(
            SYSTEM_ONE_BATCH,
            post(
                |State(servers): State<Servers>, request: Request| async move {
                    pass(&servers, SYSTEM_ONE_BATCH, request).await
                },
            ),
        )
        .with_state(servers)
}

async fn pass(servers: &Servers, path: &'static str, request: Request) -> Response {
    let began = Instant::now();
    let (head, body) = request.into_parts();
    let (deadline, is_ours) = deadline(&head.headers, began);
    let limits = BodyLimits {
        wait: LIMITS.wait.min(deadline.saturating_duration_since(began)),
        ..LIMITS
    };
    let body = match read_body(&head.headers, body, limits).await {
        Ok(body) => body,
        Err(_) if deadline <= Instant::now() => return expired(),
        Err(failure) => return failure.into_response(),
    };
    let mut headers = HeaderMap::new();
    for name in TO_SERVER {
        if let Some(value) = head.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    let call = Call {
        method: Method::POST,
        path,
        headers,
        body,
    };
    let id = head.extensions.get::<RequestId>();
    // What the caller said and the router does not go by is the server's to judge.
    let says_otherwise = is_ours && call.headers.contains_key(&DEADLINE_MS);
    let mut passing = Passing {
        call,
        began,
        deadline,
        is_ours,
        says_otherwise,
    };
    let id = id.map_or("", RequestId::as_str);
    let table = servers.table();
    match passing.to(&table, id).await {
        Ok(response) => response,
        Err(unanswered) if unanswered.was_asked => unanswered.refusal,
        // Nobody of the table it began with takes requests any more: what it waited for, its servers have been left for
        // others meanwhile. It was never asked, so it may have the table of now.
        Err(unanswered) => {
            let now = servers.table();
            if Arc::ptr_eq(&table, &now) {
                return unanswered.refusal;
            }
            let again = passing.to(&now, id).await;
            again.unwrap_or_else(|unanswered| unanswered.refusal)
        }
    }
}

/// The deadline of a call, and whether the router set it. A header that is no number is left to the server to refuse.
fn deadline(headers: &HeaderMap, began: Instant) -> (Instant, bool) {
    let asked = headers
        .get(&DEADLINE_MS)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_millis);
    match asked {
        Some(asked) if asked < LONGEST => (began + asked, false),
        _ => (began + LONGEST, true),
    }
}

struct Passing {
    call: Call,
    began: Instant,
    deadline: Instant,
    /// Whether the deadline is the router's own: one of the caller says nothing about a server.
    is_ours: bool,
    /// Whether the caller named another one all the same, which goes to the server as it is.
    says_otherwise: bool,
}

/// What an answer says about its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// It answers.
    Works,
    /// It does not.
    Failed(Ended, Weight),
    /// Nothing: the caller alone may have brought it about.
    Nothing,
}

/// What a status says about the server, weighed like that of a question of the router's own (routing.md 3). But the body
/// is a caller's here, and no caller may close a server to all others:
/// - 500 says nothing. Laya's word for anything unexpected is 500, and a body alone can provoke it (0.4.15 answers so to
///   an integer `min_confidence` that is too large for a float; wire.md 4). Five such bodies in a row would leave a whole
///   team to rules. A server that is broken answers 500 to the router's own questions too, and those count.
/// - 504 says nothing where the caller named a deadline.
/// - Refusals say that it works, as far as a server can tell.
///
/// What is left comes from a server that is gone, drains or has too much to do, or from a proxy in front of one.
fn said(status: StatusCode, later: bool, is_deadline_ours: bool) -> Said {
    match status.as_u16() {
        500 => Said::Nothing,
        504 if !is_deadline_ours => Said::Nothing,
        code @ (429 | 501..) => {
            let ended = match code {
                429 | 503 => Ended::TurnedAway,
                504 => Ended::TimedOut,
                _ => Ended::Failed,
            };
            Said::Failed(ended, Weight::of(code, later))
        }
        _ => Said::Works,
    }
}

/// What a server that did not answer leaves behind.
enum Lost {
    /// Another one may.
    Elsewhere(Response),
    /// The same, and it was never asked: it drains.
    Draining(Response),
}

/// No server of a table has answered.
struct Unanswered {
    refusal: Response,
    /// Whether one was asked that does not drain.
    was_asked: bool,
}

impl Passing {
    /// Asks the server of this request, and one other of the same contract if that is lost before it answers.
    async fn to(&mut self, table: &Table, id: &str) -> Result<Response, Unanswered> {
        let mut refusal = none_serves();
        let mut first: Option<Option<String>> = None;
        let mut tries = 0;
        let order = table.order(id);
        for (at, entry) in order.iter().enumerate() {
            let Some(serves) = entry.server.serves() else {
                continue;
            };
            let is_other = |first: &Option<String>| *first != serves.known_contract;
            if first.as_ref().is_some_and(is_other) {
                continue;
            }
            let now = Instant::now();
            if first.is_some() && !allows_second(self.began, self.deadline, now) {
                break;
            }
            let admitted = match entry.admit(now) {
                Ok(admitted) => admitted,
                Err(Closed::Busy) if first.is_none() => {
                    refusal = busy();
                    continue;
                }
                Err(Closed::Busy | Closed::Open) => continue,
            };
            first.get_or_insert_with(|| serves.known_contract.clone());
            let mut rest = order.iter().skip(at + 1);
            // Many states at once take their time on any server.
            let is_one = self.call.path == SYSTEM_ONE;
            let until = if is_one && tries == 0 && rest.any(|next| stands_in(next, &serves, now)) {
                first_try_ends(self.began, self.deadline, now)
            } else {
                self.deadline
            };
            match self.once(admitted, &serves, table, until).await {
                Ok(response) => return Ok(response),
                Err(Lost::Draining(response)) => refusal = response,
                Err(Lost::Elsewhere(response)) => {
                    refusal = response;
                    tries += 1;
                }
            }
            if tries == MAX_TRIES {
                break;
            }
        }
        Err(Unanswered {
            refusal,
            was_asked: tries > 0,
        })
    }

    async fn once(
        &mut self,
        mut admitted: Admitted,
        serves: &Serves,
        table: &Table,
        until: Instant,
    ) -> Result<Response, Lost> {
        if !self.says_otherwise {
            let left = millis_until(until);
            self.call.headers.insert(DEADLINE_MS, left);
        }
        let server = admitted.server().clone();
        // Cut short for the sake of another server, or by the caller, being late says nothing.
        let is_late = self.is_ours && until == self.deadline;
        let response = match server.line.send(&self.call, until).await {
            Ok(response) => response,
            Err(CallError::Deadline) => {
                if is_late {
                    admitted.failed(Ended::TimedOut, Weight::Whole);
                }
                return Err(Lost::Elsewhere(expired()));
            }
            Err(error) => {
                admitted.failed(Ended::Failed, Weight::Whole);
                if let Some(count) = server.call_errors.occurred() {
                    tracing::warn!(
                        server = server.name(),
                        count,
                        "decision model failed: {error}"
                    );
                }
                return Err(Lost::Elsewhere(none_serves()));
            }
        };
        let (response, drains) = known_drain(response, until).await;
        let status = response.status();
        // Too much to do, or too late for the time it had: another one may do better.
        let elsewhere = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        let later = wants_later(status.as_u16(), response.headers());
        match said(status, later, is_late && !self.says_otherwise) {
            _ if drains => admitted.drained(),
            Said::Works => admitted.succeeded(),
            Said::Failed(ended, weight) => admitted.failed(ended, weight),
            Said::Nothing => {}
        }
        let in_force = table.in_force();
        let is_match = serves.known_contract.is_some() && serves.known_contract == in_force;
        let version = server.identity().version.clone();
        let answer = told(response, &version, is_match, admitted, self.deadline);
        if drains {
            Err(Lost::Draining(answer))
        } else if elsewhere {
            Err(Lost::Elsewhere(answer))
        } else {
            Ok(answer)
        }
    }
}

/// Whether a server may be asked when the one that serves this is lost.
fn stands_in(entry: &Entry, serves: &Serves, now: Instant) -> bool {
    let other = entry.server.serves();
    other.is_some_and(|other| other.known_contract == serves.known_contract)
        && entry.server.is_usable(now)
}

/// An answer, and whether it is that of a server that drains, for which a short body must be read.
async fn known_drain(
    response: http::Response<Body>,
    deadline: Instant,
) -> (http::Response<Body>, bool) {
    let length = response.body().size_hint().upper();
    let is_short = length.is_some_and(|length| length <= MAX_REFUSAL_BYTES);
    if response.status() != StatusCode::SERVICE_UNAVAILABLE || !is_short {
        return (response, false);
    }
    let (head, body) = response.into_parts();
    let body = Limited::new(
        body,
        usize::try_from(MAX_REFUSAL_BYTES).unwrap_or(usize::MAX),
    );
    let whole = tokio::time::timeout_at(deadline.into(), body.collect()).await;
    // Half a refusal is one all the same.
    let whole = whole.ok().and_then(Result::ok);
    let whole = whole.map(|whole| whole.to_bytes()).unwrap_or_default();
    let drains = is_draining(head.status.as_u16(), &whole);
    let mut response = http::Response::from_parts(head, Body::from(whole.clone()));
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    (response, drains)
}

/// The answer as the caller gets it. The slot of the call is held until its last byte.
fn told(
    response: http::Response<Body>,
    version: &str,
    is_match: bool,
    admitted: Admitted,
    deadline: Instant,
) -> Response {
    let (head, body) = response.into_parts();
    let mut answer = Response::new(Body::new(Held {
        body,
        until: Box::pin(tokio::time::sleep_until(deadline.into())),
        _admitted: admitted,
    }));
    *answer.status_mut() = head.status;
    let headers = answer.headers_mut();
    for name in TO_CALLER {
        if let Some(value) = head.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    if let Ok(version) = HeaderValue::from_str(version) {
        headers.insert(MODEL_VERSION, version);
    }
    let word = if is_match { "match" } else { "foreign" };
    headers.insert(RELAY_CONTRACT, HeaderValue::from_static(word));
    answer
}

fn expired() -> Response {
    detail_response(StatusCode::GATEWAY_TIMEOUT, "deadline exceeded", None)
}

fn none_serves() -> Response {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    detail_response(status, "no decision model is serving", Some(1))
}

fn busy() -> Response {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    detail_response(status, "server busy, try again later", Some(1))
}

/// A body with its deadline and its slot.
struct Held {
    body: Body,
    until: Pin<Box<Sleep>>,
    _admitted: Admitted,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = pin!(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        match self.until.as_mut().poll(context) {
            Poll::Ready(()) => {
                let late = io::Error::new(io::ErrorKind::TimedOut, "deadline exceeded");
                Poll::Ready(Some(Err(axum::Error::new(late))))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_may_ask_for_less_time() {
        let began = Instant::now();
        for (header, millis, is_ours) in [
            (None, 60_000, true),
            (Some("250"), 250, false),
            (Some(" 250 "), 250, false),
            (Some("60000"), 60_000, true),
            (Some("600000"), 60_000, true),
            (Some("0"), 0, false),
            (Some("soon"), 60_000, true),
            (Some("-1"), 60_000, true),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(DEADLINE_MS, header.parse().unwrap());
            }
            let expected = (began + Duration::from_millis(millis), is_ours);
            assert_eq!(deadline(&headers, began), expected, "{header:?}");
        }
    }
}
