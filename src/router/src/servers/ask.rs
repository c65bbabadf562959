//! One question to the decision model: all 18 questions about a request to one server, once, and to a second one where
//! time allows (routing.md 3). What comes of it is an assessment, or the reason why the rules must do.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use decision::json::{read, write_string};
use decision::{Answers, Reply};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header};
use routing::assessment::Assessment;
use routing::from_answers::from_answers;
use routing::reason::Fallback;
use routing::record::{ModelProvenance, Truncated};
use routing::text::{cut, units};

use super::breaker::Weight;
use super::deadline::Deadline;
use super::revision::Ended;
use super::server::{Admitted, Closed};
use super::standing::Serves;
use super::table::{Entry, Role, Table};
use super::upstream::{Call, CallError};
use super::{CHECKPOINT, CONTRACT, DEADLINE_MS, SYSTEM_ONE, TRUNCATED};

/// Longest text that is sent, in UTF-16 units.
pub(super) const MAX_UNITS: usize = 2000;

/// Longest answer that is read, in bytes. Answers to 18 questions have some 6 KB.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Servers asked about one request.
const MAX_TRIES: usize = 2;

/// What stands for a checkpoint whose server does not name it.
const UNKNOWN_CHECKPOINT: &str = "unknown";

/// What the decision model said.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// What the request needs.
    pub assessment: Assessment,
    /// Who answered.
    pub provenance: ModelProvenance,
    /// What it did not see.
    pub truncated: Truncated,
}

/// What a server said, with its answers as they came.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) answered: Answered,
    pub(super) answers: Answers,
    pub(super) role: Role,
}

/// The same from one call.
#[derive(Debug)]
pub(super) struct Once {
    answered: Answered,
    pub(super) answers: Answers,
}

/// Why one call gave nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("it answers {status}{}", if *.later { " and wants to be asked later" } else { "" })]
    Status { status: u16, later: bool },
    #[error("it drains")]
    Draining,
    #[error("it serves another contract than it says")]
    OtherContract,
    #[error("{problem}")]
    Answers { problem: String },
}

impl Failed {
    const fn fallback(&self) -> Fallback {
        match self {
            Self::Call(CallError::Deadline) | Self::Status { status: 504, .. } => Fallback::Timeout,
            Self::Draining
            | Self::Status { later: true, .. }
            | Self::Status { status: 429, .. } => Fallback::Busy,
            Self::Call(CallError::Unreachable(_)) | Self::Status { status: 500.., .. } => {
                Fallback::Unreachable
            }
            Self::Call(CallError::TooLong { .. }) | Self::Status { .. } | Self::Answers { .. } => {
                Fallback::InvalidAnswers
            }
            Self::OtherContract => Fallback::NoModel,
        }
    }

    const fn weight(&self) -> Weight {
        match self {
            Self::Status { status, later } => Weight::of(*status, *later),
            _ => Weight::Whole,
        }
    }

    /// How the request ended, for what is counted of it.
    const fn ended(&self) -> Ended {
        match self {
            Self::Call(CallError::Deadline) | Self::Status { status: 504, .. } => Ended::TimedOut,
            Self::Draining
            | Self::Status {
                status: 429 | 503, ..
            } => Ended::TurnedAway,
            _ => Ended::Failed,
        }
    }
}

pub(super) async fn ask(
    table: &Table,
    text: &str,
    task: &str,
    deadline: Deadline,
) -> Result<Asked, Fallback> {
    let mut why = if table.has_lost_one() {
        Fallback::Unreachable
    } else {
        Fallback::NoModel
    };
    let mut tries = 0;
    let mut asked = false;
    let order = table.order(task);
    for (at, entry) in order.iter().enumerate() {
        let Some(serves) = entry.server.serves() else {
            continue;
        };
        let now = Instant::now();
        if tries == MAX_TRIES || asked && !deadline.allows_second(now) {
            break;
        }
        if deadline.left(now).is_zero() {
            why = Fallback::Timeout;
            break;
        }
        let admitted = match entry.admit(now) {
            Ok(admitted) => admitted,
            // What a call failed of says more than that another was not made.
            Err(_) if asked => continue,
            Err(Closed::Busy) => {
                why = Fallback::Busy;
                continue;
            }
            Err(Closed::Open) => {
                why = Fallback::BreakerOpen;
                continue;
            }
        };
        let another = || order.iter().skip(at + 1).any(|next| is_usable(next, now));
        let until = if tries == 0 && another() {
            deadline.first_try_ends(now)
        } else {
            deadline.ends()
        };
        asked = true;
        match once(admitted, &serves, text, until).await {
            Ok(Once { answered, answers }) => {
                return Ok(Asked {
                    answered,
                    answers,
                    role: entry.role,
                });
            }
            Err(failed) => {
                why = failed.fallback();
                // It was never asked: a rollout costs nobody a try.
                tries += usize::from(!matches!(failed, Failed::Draining));
            }
        }
    }
    Err(why)
}

fn is_usable(entry: &Entry, now: Instant) -> bool {
    entry.server.is_usable(now)
}

pub(super) async fn once(
    mut admitted: Admitted,
    serves: &Arc<Serves>,
    text: &str,
    deadline: Instant,
) -> Result<Once, Failed> {
    let call = call(serves, text, deadline);
    let server = admitted.server().clone();
    let outcome = match server.line.ask(&call, deadline, MAX_ANSWER_BYTES).await {
        Ok(response) => read_answer(&response, serves),
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(read) => {
            admitted.succeeded();
            if let Some(count) = server.call_errors.recovered() {
                tracing::info!(
                    server = server.name(),
                    count,
                    "decision model answers again"
                );
            }
            let identity = server.identity();
            let answered = Answered {
                assessment: read.assessment,
                provenance: ModelProvenance {
                    version: identity.version.clone(),
                    checkpoint: read.checkpoint,
                    server: identity.name.clone(),
                },
                truncated: Truncated {
                    request: units(text) > MAX_UNITS,
                    ..read.truncated
                },
            };
            Ok(Once {
                answered,
                answers: read.answers,
            })
        }
        Err(Failed::Draining) => {
            admitted.drained();
            Err(Failed::Draining)
        }
        Err(failed) => {
            admitted.failed(failed.ended(), failed.weight());
            if let Failed::OtherContract = failed {
                server.mistaken(serves, Instant::now());
            }
            if let Some(count) = server.call_errors.occurred() {
                tracing::warn!(
                    server = server.name(),
                    count,
                    "decision model failed: {failed}"
                );
            }
            Err(failed)
        }
    }
}

fn call(serves: &Serves, text: &str, deadline: Instant) -> Call {
    let questions = serves.wording.questions();
    let mut body = String::with_capacity(questions.len() + text.len().min(8 * MAX_UNITS) + 64);
    body.push_str(r#"{"state":{"request":"#);
    write_string(&mut body, &cut(text, MAX_UNITS));
    body.push_str(r#"},"questions":"#);
    body.push_str(questions);
    body.push('}');
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(DEADLINE_MS, millis_until(deadline));
    if let Some(contract) = &serves.contract
        && let Ok(contract) = HeaderValue::from_str(contract)
    {
        headers.insert(CONTRACT, contract);
    }
    Call {
        method: Method::POST,
        path: SYSTEM_ONE,
        headers,
        body: Bytes::from(body),
    }
}

/// Whether an answer says that the server has too much to do for now.
pub(super) fn wants_later(status: u16, headers: &HeaderMap) -> bool {
    matches!(status, 429 | 503) && headers.contains_key(header::RETRY_AFTER)
}

/// Whether an answer is that of a Laya that drains (wire.md 2.3): it refuses what is new and finishes what it has.
pub(super) fn is_draining(status: u16, body: &[u8]) -> bool {
    const SAID: &str = "server is draining";
    let said = || {
        let body = read(body).ok()?;
        let detail = body.as_object()?.get("detail")?.as_str()?;
        Some(detail == SAID)
    };
    status == 503 && said().unwrap_or(false)
}

/// What is left of a deadline as a header, whole milliseconds, at least one.
pub(super) fn millis_until(deadline: Instant) -> HeaderValue {
    let left = deadline.saturating_duration_since(Instant::now());
    HeaderValue::from(u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1))
}

struct Read {
    assessment: Assessment,
    answers: Answers,
    checkpoint: String,
    truncated: Truncated,
}

fn read_answer(response: &Response<Bytes>, serves: &Serves) -> Result<Read, Failed> {
    let status = response.status().as_u16();
    match status {
        200 => {}
        409 => return Err(Failed::OtherContract),
        _ if is_draining(status, response.body()) => return Err(Failed::Draining),
        _ => {
            let later = wants_later(status, response.headers());
            return Err(Failed::Status { status, later });
        }
    }
    let reply =
        Reply::read(serves.wording.contract().questions(), response.body()).map_err(|error| {
            Failed::Answers {
                problem: error.to_string(),
            }
        })?;
    let assessment = from_answers(&reply.answers).map_err(|error| Failed::Answers {
        problem: error.to_string(),
    })?;
    let said = |name: &HeaderName| {
        let value = response.headers().get(name)?.to_str().ok()?;
        (value.len() <= 1024).then(|| value.to_owned())
    };
    // A server in strict mode says in a header only that something was lost; then it was one token at least.
    let pairs = said(&TRUNCATED).and_then(|count| count.parse().ok());
    Ok(Read {
        assessment,
        checkpoint: said(&CHECKPOINT)
            .or_else(|| serves.checkpoint.clone())
            .unwrap_or_else(|| UNKNOWN_CHECKPOINT.to_owned()),
        truncated: Truncated {
            request: false,
            state_tokens_dropped: reply.state_tokens_dropped.max(pairs.unwrap_or(0)),
            questions: reply.truncated_questions,
        },
        answers: reply.answers,
    })
}
