//! Reading a JSON body: declared as JSON, bounded in length, time and depth; then 400 for what is not JSON and 422, with
//! the field's path, for JSON that is not the type.

use std::time::Duration;

use api::FieldError;
use api::document::{DocumentError, field_error, read_json, typed};
use api::problem::Slug;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use tokio::time::{Instant, timeout_at};

use super::json_depth::too_deep_at;
use crate::problem::Failure;

/// Deepest nesting of a body.
const MAX_DEPTH: usize = 64;

/// A body that is too large is still read up to this multiple of the limit, and dropped, so that a client that writes
/// before it reads gets its answer and not a reset connection.
const DISCARD_FACTOR: usize = 16;

/// How long that goes on while nothing comes: a client that waits has its answer by then.
const DISCARD_IDLE: Duration = Duration::from_secs(1);

/// Bounds of one body; a request extension overrides the default for a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// Longest body in bytes.
    pub bytes: usize,
    /// Longest time to its last byte.
    pub wait: Duration,
}

impl Default for BodyLimits {
    /// 1 MiB in 10 s (routing.md 18).
    fn default() -> Self {
        Self {
            bytes: 1 << 20,
            wait: Duration::from_secs(10),
        }
    }
}

impl BodyLimits {
    fn too_large(&self) -> Failure {
        Failure::new(
            Slug::TooLarge,
            format!("the body is longer than {} bytes", self.bytes),
        )
    }

    fn too_slow(&self) -> Failure {
        Failure::new(
            Slug::RequestTimeout,
            format!("the body did not end within {} s", self.wait.as_secs_f64()),
        )
    }
}

/// A JSON body as a value of type `T`. For an extractor of a handler.
#[derive(Debug, Clone, Copy)]
pub struct JsonBody<T>(pub T);

impl<T, S> FromRequest<S> for JsonBody<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let limits = request
            .extensions()
            .get::<BodyLimits>()
            .copied()
            .unwrap_or_default();
        let (head, body) = request.into_parts();
        check_media_type(&head.headers)?;
        let bytes = read_body(&head.headers, body, limits).await?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            Failure::new(
                Slug::MalformedJson,
                format!("the body is not UTF-8 at byte {}", error.valid_up_to()),
            )
        })?;
        parse_json(text).map(Self)
    }
}

fn check_media_type(headers: &HeaderMap) -> Result<(), Failure> {
    let refuse = |detail: String| {
        Err(Failure::new(Slug::UnsupportedMediaType, detail)
            .hint("send `content-type: application/json`"))
    };
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return refuse("the request has no content type".to_owned());
    };
    let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    if parts.next() != Some("application/json") {
        return refuse("the body is not declared as JSON".to_owned());
    }
    let foreign = |parameter: &str| {
        parameter
            .strip_prefix("charset=")
            .is_some_and(|charset| charset.trim_matches('"') != "utf-8")
    };
    if parts.any(foreign) {
        return refuse("JSON is UTF-8 here".to_owned());
    }
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => Err(
            Failure::new(Slug::UnsupportedMediaType, "compressed bodies are not read"),
        ),
        _ => Ok(()),
    }
}

/// The whole body within the limits. Dropping it half-way leaves only an unread connection.
///
/// # Errors
/// When it is too long, comes too slowly, or breaks off.
pub async fn read_body(
    headers: &HeaderMap,
    mut body: Body,
    limits: BodyLimits,
) -> Result<Bytes, Failure> {
    let deadline = Instant::now() + limits.wait;
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limits.bytes as u64) {
        // A client that asks before it sends sends nothing now; any other has begun already.
        if !headers.contains_key(header::EXPECT) {
            discard_beside(body, limits, deadline);
        }
        return Err(limits.too_large());
    }
    let mut whole = Vec::new();
    loop {
        let frame = match timeout_at(deadline, body.frame()).await {
            Ok(None) => return Ok(whole.into()),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => {
                return Err(Failure::new(
                    Slug::MalformedJson,
                    "the body ended too early",
                ));
            }
            Err(_) => return Err(limits.too_slow()),
        };
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if whole.len() + data.len() > limits.bytes {
            discard_beside(body, limits, deadline);
            return Err(limits.too_large());
        }
        whole.extend_from_slice(data);
    }
}

/// Reads and drops what a client is sending while it gets its answer. Ends by itself, at the latest at the deadline; the
/// connection is closed then.
fn discard_beside(body: Body, limits: BodyLimits, deadline: Instant) {
    tokio::spawn(discard(body, limits, deadline));
}

async fn discard(mut body: Body, limits: BodyLimits, deadline: Instant) {
    let mut left = limits.bytes.saturating_mul(DISCARD_FACTOR);
    let until = || deadline.min(Instant::now() + DISCARD_IDLE);
    while let Ok(Some(Ok(frame))) = timeout_at(until(), body.frame()).await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// A value from JSON text.
///
/// # Errors
/// `malformed-json` (400) with line and column when the text is not JSON, `invalid-request` (422) with the field's path
/// when it is not a `T`.
pub fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let start = text.trim_ascii_start();
    if start.is_empty() {
        return Err(
            Failure::new(Slug::MalformedJson, "the body is empty").hint("send a JSON object")
        );
    }
    if let Some(at) = too_deep_at(text, MAX_DEPTH) {
        let detail = format!("the body is nested deeper than {MAX_DEPTH} levels at byte {at}");
        return Err(Failure::new(Slug::MalformedJson, detail));
    }
    if !start.starts_with('{') {
        // Types that are read from a map would read a list too; a body is an object.
        serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| malformed(&error))?;
        return Err(Failure::invalid(vec![FieldError::new(
            "",
            "the body must be a JSON object",
        )]));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        match error.inner().classify() {
            Category::Data => {
                let path = error.path().to_string();
                Failure::invalid(vec![field_error(&path, &error.inner().to_string())])
            }
            _ => malformed(error.inner()),
        }
    })?;
    json.end().map_err(|error| malformed(&error))?;
    read_strictly::<T>(text)?;
    Ok(value)
}

/// Derived readers take a list for a struct at any depth, and the last of two values of a map; an object is written as
/// an object, and names each key once.
fn read_strictly<T: DeserializeOwned>(text: &str) -> Result<(), Failure> {
    let refused = |error| Failure::invalid(vec![error]);
    let tree = read_json(text).map_err(|error| match error {
        DocumentError::Field(error) => refused(error),
        other => Failure::new(Slug::MalformedJson, other.to_string()),
    })?;
    typed::<T>(tree).map(drop).map_err(refused)
}

fn malformed(error: &serde_json::Error) -> Failure {
    Failure::new(Slug::MalformedJson, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wish {
        #[allow(dead_code)]
        request: String,
        #[serde(default)]
        #[allow(dead_code)]
        limits: Vec<Limit>,
        #[serde(default)]
        #[allow(dead_code)]
        shares: std::collections::BTreeMap<String, f64>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Limit {
        #[allow(dead_code)]
        share: f64,
    }

    fn refused(text: &str) -> (u16, Vec<FieldError>) {
        let failure = parse_json::<Wish>(text).unwrap_err();
        (failure.problem().status, failure.problem().errors.clone())
    }

    #[test]
    fn text_that_is_not_json_is_malformed() {
        let deep = "[".repeat(100_000);
        for (name, text) in [
            ("empty", ""),
            ("blank", " \n\t"),
            ("cut off", r#"{"request":"a"#),
            ("two values", r#"{"request":"a"} {}"#),
            ("comma at the end", r#"{"request":"a",}"#),
            ("lone surrogate", r#"{"request":"\ud800"}"#),
            ("raw NUL", "{\"request\":\"a\0\"}"),
            (
                "number out of range",
                r#"{"request":"a","limits":[{"share":1e999}]}"#,
            ),
            ("byte order mark", "\u{feff}{\"request\":\"a\"}"),
            ("not a number", r#"{"request":NaN}"#),
            ("deep", deep.as_str()),
        ] {
            assert_eq!(refused(text), (400, Vec::new()), "{name}");
        }
    }

    #[test]
    fn json_that_is_not_the_type_names_the_field() {
        for (name, text, path, message) in [
            ("a list", r#"["a"]"#, "", "the body must be a JSON object"),
            ("a string", r#""a""#, "", "the body must be a JSON object"),
            ("missing", "{}", "request", "missing field `request`"),
            (
                "nested missing",
                r#"{"request":"a","limits":[{}]}"#,
                "limits[0].share",
                "missing field `share`",
            ),
            (
                "wrong type",
                r#"{"request":1}"#,
                "request",
                "invalid type: integer `1`, expected a string",
            ),
            (
                "null",
                r#"{"request":null}"#,
                "request",
                "invalid type: null, expected a string",
            ),
            (
                "unknown",
                r#"{"request":"a","reqest":1}"#,
                "reqest",
                "unknown field `reqest`, expected one of `request`, `limits`, `shares`",
            ),
            (
                "nested",
                r#"{"request":"a","limits":[{"share":0},{"share":"x"}]}"#,
                "limits[1].share",
                "invalid type: string \"x\", expected f64",
            ),
            (
                "nested unknown",
                r#"{"limits":[{"sh":0}]}"#,
                "limits[0].sh",
                "unknown field `sh`, expected `share`",
            ),
            (
                "twice",
                r#"{"request":"a","request":"b"}"#,
                "request",
                "duplicate field `request`",
            ),
            (
                "twice in a map",
                r#"{"request":"a","shares":{"x":1,"y":0,"x":0}}"#,
                "shares.x",
                "duplicate field `x`",
            ),
        ] {
            assert_eq!(
                refused(text),
                (422, vec![FieldError::new(path, message)]),
                "{name}"
            );
        }
    }

    #[test]
    fn media_types() {
        for (given, good) in [
            (Some("application/json"), true),
            (Some("Application/JSON; charset=UTF-8"), true),
            (Some("application/json;charset=\"utf-8\""), true),
            (Some("application/json; charset=latin1"), false),
            (Some("application/x-www-form-urlencoded"), false),
            (Some("text/plain"), false),
            (Some("application/jsonp"), false),
            (None, false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(given) = given {
                headers.insert(header::CONTENT_TYPE, given.parse().unwrap());
            }
            assert_eq!(check_media_type(&headers).is_ok(), good, "{given:?}");
        }
    }
}
