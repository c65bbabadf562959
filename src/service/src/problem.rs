//! Errors of our HTTP routes as `application/problem+json` (RFC 9457; slugs of routing.md 18). A [`Problem`] says what
//! happened; the request id is added by the request-id layer, which renders it, so that no handler has to know it.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};

/// Where problem types live; a slug follows.
const TYPE_PREFIX: &str = "https://relay.dev/problems/";

/// Largest number of field errors one document carries; a hostile body must not grow the answer.
const MAX_FIELD_ERRORS: usize = 32;

macro_rules! slugs {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $status:ident, $title:literal;)+) => {
        /// What kind of problem: the closed list of routing.md 18.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Slug { $($(#[$doc])* $variant,)+ }

        impl Slug {
            /// Every slug.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The last part of the problem's `type`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The HTTP status it always has.
            #[must_use]
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status),+ }
            }

            /// The short text that never varies.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }
        }
    };
}

slugs! {
    /// Well-formed JSON that is not a valid request.
    InvalidRequest = "invalid-request", UNPROCESSABLE_ENTITY, "The request is not valid";
    /// The body is not JSON.
    MalformedJson = "malformed-json", BAD_REQUEST, "The body is not well-formed JSON";
    /// No token, or one that is not known.
    Unauthorized = "unauthorized", UNAUTHORIZED, "A valid bearer token is required";
    /// A browser's origin or host that is not allowed.
    OriginRefused = "origin-refused", FORBIDDEN, "The origin is not allowed";
    /// No such path or object.
    NotFound = "not-found", NOT_FOUND, "Not found";
    /// It contradicts what is recorded.
    Conflict = "conflict", CONFLICT, "The request contradicts what is recorded";
    /// Two contracts that differ.
    ContractMismatch = "contract-mismatch", CONFLICT, "The contracts differ";
    /// The body is longer than the limit.
    TooLarge = "too-large", PAYLOAD_TOO_LARGE, "The body is too large";
    /// The body is not declared as JSON.
    UnsupportedMediaType = "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "The media type is not supported";
    /// No model may be chosen.
    NoCandidate = "no-candidate", UNPROCESSABLE_ENTITY, "No model can be chosen";
    /// Too many requests of one tenant.
    RateLimited = "rate-limited", TOO_MANY_REQUESTS, "Too many requests";
    /// Too many requests of all.
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "The server is overloaded";
    /// Something it needs is away.
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "The service is unavailable";
}

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// Where in the body, for example `constraints.tier` or `models[2].ref`; `` (empty) is the body itself.
    pub path: String,
    /// What is wrong and what is expected.
    pub message: String,
}

impl FieldError {
    /// An error at a path.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// The document as it stands in a body; also what clients read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemDocument {
    /// `https://relay.dev/problems/<slug>`, or `about:blank` where the status says it all.
    #[serde(rename = "type")]
    pub problem_type: String,
    /// Short, always the same for a type.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Value of `x-request-id`.
    pub request_id: String,
    /// Fields that are wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// An error answer in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    slug: Option<Slug>,
    status: StatusCode,
    detail: String,
    hint: Option<String>,
    errors: Vec<FieldError>,
    retry_after_seconds: Option<u32>,
}

impl Problem {
    /// A problem of a documented kind.
    pub fn new(slug: Slug, detail: impl Into<String>) -> Self {
        Self {
            slug: Some(slug),
            status: slug.status(),
            detail: detail.into(),
            hint: None,
            errors: Vec::new(),
            retry_after_seconds: None,
        }
    }

    /// A problem that has no slug of its own (405, 408, 500): `type` is `about:blank`, the title is the status' own.
    pub fn of_status(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            slug: None,
            status,
            detail: detail.into(),
            hint: None,
            errors: Vec::new(),
            retry_after_seconds: None,
        }
    }

    /// 422 with the fields that are wrong; at most 32 are shown.
    #[must_use]
    pub fn invalid(mut errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [one] if one.path.is_empty() => one.message.clone(),
            [one] => format!("`{}`: {}", one.path, one.message),
            several => format!("{} fields are not valid", several.len()),
        };
        errors.truncate(MAX_FIELD_ERRORS);
        Self {
            errors,
            ..Self::new(Slug::InvalidRequest, detail)
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds `Retry-After`, in seconds.
    #[must_use]
    pub const fn with_retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// Its HTTP status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// What happened.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The document, once the request id is known.
    #[must_use]
    pub fn document(self, request_id: &str) -> ProblemDocument {
        let (problem_type, title) = match self.slug {
            Some(slug) => (format!("{TYPE_PREFIX}{}", slug.as_str()), slug.title()),
            None => (
                "about:blank".to_owned(),
                self.status.canonical_reason().unwrap_or("Error"),
            ),
        };
        ProblemDocument {
            problem_type,
            title: title.to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            hint: self.hint,
            request_id: request_id.to_owned(),
            errors: self.errors,
        }
    }
}

impl IntoResponse for Problem {
    /// Status and headers; the body follows in [`render`].
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the body of a response that carries a [`Problem`]; any other response is left alone.
pub(crate) fn render(response: &mut Response, request_id: &str) {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else {
        return;
    };
    // A document of strings and numbers always serialises; should that ever change, the status still stands.
    let body = serde_json::to_vec(&problem.document(request_id)).unwrap_or_default();
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    *response.body_mut() = Body::from(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slug_is_unique_and_has_an_error_status() {
        let mut words: Vec<_> = Slug::ALL.iter().map(|slug| slug.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Slug::ALL.len());
        assert!(
            Slug::ALL
                .iter()
                .all(|slug| slug.status().is_client_error() || slug.status().is_server_error())
        );
    }

    #[test]
    fn a_document_has_the_documented_fields_and_no_empty_ones() {
        let document =
            Problem::new(Slug::Overloaded, "320 requests are being served").document("r-1");
        assert_eq!(
            serde_json::to_value(document).unwrap(),
            serde_json::json!({
                "type": "https://relay.dev/problems/overloaded", "title": "The server is overloaded", "status": 503,
                "detail": "320 requests are being served", "request_id": "r-1",
            })
        );
    }

    #[test]
    fn a_status_without_a_slug_is_about_blank() {
        let document =
            Problem::of_status(StatusCode::METHOD_NOT_ALLOWED, "use GET").document("r-1");
        assert_eq!(
            (document.problem_type.as_str(), document.title.as_str()),
            ("about:blank", "Method Not Allowed")
        );
    }

    #[test]
    fn field_errors_are_bounded_but_counted() {
        let errors = (0..40)
            .map(|i| FieldError::new(format!("models[{i}]"), "unknown"))
            .collect();
        let document = Problem::invalid(errors).document("r-1");
        assert_eq!(
            (document.errors.len(), document.detail.as_str()),
            (32, "40 fields are not valid")
        );
    }
}
