//! Bodies: those of requests within their limit, those of answers whole or line by line.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use api::document::{DocumentError, read_json, read_yaml};
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;
use tokio::time::timeout;

use crate::depth::{MAX_DEPTH, is_within};
use crate::failure::Failure;

/// Most bytes of a request's body.
const MAX_BODY: usize = 3 << 20;
/// How long a body may take. Few are read at a time, and one that does not come must not hold up the others.
const PATIENCE: Duration = Duration::from_secs(15);

/// The body of an answer.
pub struct ObjectBody(Content);

enum Content {
    Whole(Option<Bytes>),
    Lines(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl std::fmt::Debug for ObjectBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match &self.0 {
            Content::Whole(_) => "Whole",
            Content::Lines(_) => "Lines",
        };
        f.debug_tuple("ObjectBody").field(&what).finish()
    }
}

impl ObjectBody {
    pub(super) const fn whole(bytes: Bytes) -> Self {
        Self(Content::Whole(Some(bytes)))
    }

    pub(super) fn lines(lines: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Content::Lines(Box::pin(lines)))
    }
}

impl Body for ObjectBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Lines(lines) => lines
                .as_mut()
                .poll_next(context)
                .map(|line| line.map(|line| Ok(Frame::data(line)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Lines(_) => SizeHint::default(),
        }
    }
}

/// Reads a request's body whole.
pub(super) async fn read<B>(body: B) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Ok(read) = timeout(PATIENCE, Limited::new(body, MAX_BODY).collect()).await else {
        return Err(Failure::body_timeout(PATIENCE));
    };
    match read {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Failure::too_large(&format!("limit is {MAX_BODY}")))
        }
        Err(error) => Err(Failure::bad_request(format!(
            "the body cannot be read: {error}"
        ))),
    }
}

/// The media type of a request's body, without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE);
    let text = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim()
}

/// Parses a body that is JSON, or YAML where that was said.
pub(super) fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Value, Failure> {
    match media_type(headers) {
        "" | "application/json" | "*/*" => json(body),
        "application/yaml" => yaml(body),
        _ => Err(Failure::unsupported_media_type(
            "application/json, application/yaml",
        )),
    }
}

fn text(body: &[u8]) -> Result<&str, Failure> {
    str::from_utf8(body).map_err(|error| {
        Failure::bad_request(format!(
            "the body is not valid UTF-8 at byte {}",
            error.valid_up_to()
        ))
    })
}

/// Parses JSON, whose objects must name each key once.
pub(super) fn json(body: &[u8]) -> Result<Value, Failure> {
    let value = read_json(text(body)?).map_err(|error| match error {
        DocumentError::Field(field) => Failure::bad_request(format!(
            "strict decoding error: duplicate field {:?}",
            field.path
        )),
        DocumentError::Syntax {
            line,
            column,
            message,
        } => Failure::bad_request(format!(
            "the body is not valid JSON: line {line}, column {column}: {message}"
        )),
        too_large @ DocumentError::TooLarge { .. } => Failure::too_large(&too_large.to_string()),
    })?;
    if !is_within(&value, MAX_DEPTH) {
        return Err(Failure::bad_request(format!(
            "the body is nested deeper than {MAX_DEPTH} levels"
        )));
    }
    Ok(value)
}

/// Parses YAML, of which JSON is a part.
pub(super) fn yaml(body: &[u8]) -> Result<Value, Failure> {
    let text = text(body)?;
    if text.trim_start().starts_with('{') {
        // What programs send; a syntax error may still be YAML's flow form.
        match json(body) {
            Ok(value) => return Ok(value),
            Err(failure) if failure.message.starts_with("strict") => return Err(failure),
            Err(_) => {}
        }
    }
    read_yaml(text).map_err(|error| match error {
        too_large @ DocumentError::TooLarge { .. } => Failure::too_large(&too_large.to_string()),
        other => Failure::bad_request(format!("error decoding YAML: {other}")),
    })
}
