//! One question to the decision model: all 18 questions about a request to one server, once, and to a second one where
//! time allows (routing.md 3). What comes of it is an assessment, or the reason why the rules must do.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use decision::Reply;
use decision::json::write_string;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header};
use routing::assessment::Assessment;
use routing::from_answers::from_answers;
use routing::reason::Fallback;
use routing::record::{ModelProvenance, Truncated};
use routing::text::{cut, units};

use super::breaker::Weight;
use super::deadline::Deadline;
use super::server::{Admitted, Closed};
use super::standing::Serves;
use super::table::Table;
use super::upstream::{Call, CallError};
use super::{CHECKPOINT, CONTRACT, DEADLINE_MS, SYSTEM_ONE, TRUNCATED};

/// Longest text that is sent, in UTF-16 units.
const MAX_UNITS: usize = 2000;

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

/// Why one call gave nothing.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("it answers {status}{}", if *.later { " and wants to be asked later" } else { "" })]
    Status { status: u16, later: bool },
    #[error("it serves another contract than it says")]
    OtherContract,
    #[error("{problem}")]
    Answers { problem: String },
}

impl Failed {
    const fn fallback(&self) -> Fallback {
        match self {
            Self::Call(CallError::Deadline) | Self::Status { status: 504, .. } => Fallback::Timeout,
            Self::Status { later: true, .. } | Self::Status { status: 429, .. } => Fallback::Busy,
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
}

pub(super) async fn ask(
    table: &Table,
    text: &str,
    task: &str,
    deadline: Deadline,
) -> Result<Answered, Fallback> {
    let mut why = if table.has_lost_one() {
        Fallback::Unreachable
    } else {
        Fallback::NoModel
    };
    let mut tries = 0;
    for server in table.order(task) {
        let Some(serves) = server.serves() else {
            continue;
        };
        let now = Instant::now();
        if tries == MAX_TRIES || tries > 0 && !deadline.allows_second(now) {
            break;
        }
        if deadline.left(now).is_zero() {
            why = Fallback::Timeout;
            break;
        }
        let admitted = match server.admit(now) {
            Ok(admitted) => admitted,
            // What a call failed of says more than that another was not made.
            Err(_) if tries > 0 => continue,
            Err(Closed::Busy) => {
                why = Fallback::Busy;
                continue;
            }
            Err(Closed::Open) => {
                why = Fallback::BreakerOpen;
                continue;
            }
        };
        tries += 1;
        match once(admitted, &serves, text, deadline.ends()).await {
            Ok(answered) => return Ok(answered),
            Err(failed) => why = failed.fallback(),
        }
    }
    Err(why)
}

async fn once(
    mut admitted: Admitted,
    serves: &Arc<Serves>,
    text: &str,
    deadline: Instant,
) -> Result<Answered, Failed> {
    let call = call(serves, text, deadline);
    let server = admitted.server().clone();
    let outcome = match server.line.ask(&call, deadline, MAX_ANSWER_BYTES).await {
        Ok(response) => read(&response, serves),
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
            Ok(Answered {
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
            })
        }
        Err(failed) => {
            admitted.failed(failed.weight());
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

/// What is left of a deadline as a header, whole milliseconds, at least one.
pub(super) fn millis_until(deadline: Instant) -> HeaderValue {
    let left = deadline.saturating_duration_since(Instant::now());
    HeaderValue::from(u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1))
}

struct Read {
    assessment: Assessment,
    checkpoint: String,
    truncated: Truncated,
}

fn read(response: &Response<Bytes>, serves: &Serves) -> Result<Read, Failed> {
    let status = response.status().as_u16();
    match status {
        200 => {}
        409 => return Err(Failed::OtherContract),
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
    })
}
