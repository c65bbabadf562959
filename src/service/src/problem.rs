//! Error answers: a [`Problem`] of `api` on its way to the client. It says what happened; the request id is added by the
//! request-id layer, which writes the body, so that no handler has to know it.

use api::FieldError;
use api::problem::{MEDIA_TYPE, Problem, Slug};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

/// Most field errors in one document; a hostile body must not grow the answer.
const MAX_FIELD_ERRORS: usize = 32;

/// Longest text in a document, in bytes; messages quote values, and a value may be as long as the body.
const MAX_TEXT_BYTES: usize = 1000;

/// An error answer in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Boxed, since nearly every answer is none.
    problem: Box<Problem>,
    retry_after_seconds: Option<u32>,
}

impl Failure {
    /// A failure of a documented kind.
    pub fn new(slug: Slug, detail: impl Into<String>) -> Self {
        Problem::new(slug, detail).into()
    }

    /// 422 with the fields that are wrong; at most 32 are shown.
    #[must_use]
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        Problem::invalid(errors).into()
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.problem = Box::new(self.problem.hint(hint));
        self
    }

    /// Adds `Retry-After`, in seconds.
    #[must_use]
    pub const fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// What the client will read, but for the request id.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl From<Problem> for Failure {
    fn from(mut problem: Problem) -> Self {
        problem.errors.truncate(MAX_FIELD_ERRORS);
        cut(&mut problem.detail);
        for error in &mut problem.errors {
            cut(&mut error.path);
            cut(&mut error.message);
        }
        Self {
            problem: Box::new(problem),
            retry_after_seconds: None,
        }
    }
}

impl IntoResponse for Failure {
    /// Status and headers; the body follows in [`render`].
    fn into_response(self) -> Response {
        // Every slug has a status that is one.
        let status =
            StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            // What is left of the body is not read as a request.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(*self.problem);
        response
    }
}

/// Ends a text that quotes too much of what was sent.
fn cut(text: &mut String) {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
}

/// An answer in Laya's form, `{"detail": …}`, with `Retry-After` in seconds where waiting helps.
#[must_use]
pub fn detail_response(
    status: StatusCode,
    detail: &str,
    retry_after_seconds: Option<u32>,
) -> Response {
    let body = serde_json::json!({ "detail": detail }).to_string();
    let kind = HeaderValue::from_static("application/json");
    let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
    if let Some(seconds) = retry_after_seconds {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A response that carries a problem says it in Laya's form instead, in Laya's words where it has its own (wire.md 2);
/// any other response is left alone.
pub(crate) async fn as_detail(mut response: Response) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else {
        return response;
    };
    let status = response.status();
    let detail = match status {
        StatusCode::UNAUTHORIZED => "invalid or missing bearer token",
        StatusCode::METHOD_NOT_ALLOWED => "Method Not Allowed",
        StatusCode::PAYLOAD_TOO_LARGE => "request body too large",
        StatusCode::REQUEST_TIMEOUT => "request body was not received in time",
        _ => &problem.detail,
    };
    let mut laya = detail_response(status, detail, None);
    let headers = response.headers_mut();
    headers.remove(header::WWW_AUTHENTICATE);
    headers.remove(header::CONTENT_LENGTH);
    for (name, value) in headers.iter() {
        laya.headers_mut().insert(name, value.clone());
    }
    laya
}

/// Writes the body of a response that carries a problem; any other response is left alone.
pub(crate) fn render(response: &mut Response, request_id: &str) {
    let Some(mut problem) = response.extensions_mut().remove::<Problem>() else {
        return;
    };
    problem.request_id = request_id.to_owned();
    // A document of strings and numbers always serialises; should that ever change, the status still stands.
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    *response.body_mut() = Body::from(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_quotation_is_cut() {
        let failure = Failure::invalid(vec![FieldError::new("profile", "é".repeat(100_000))]);
        assert_eq!(
            failure.problem().errors[0].message,
            format!("{}…", "é".repeat(500))
        );
        assert!(failure.problem().detail.len() < 1010);
    }

    #[test]
    fn field_errors_are_bounded() {
        let errors = (0..40)
            .map(|i| FieldError::new(format!("models[{i}]"), "unknown"))
            .collect();
        assert_eq!(Failure::invalid(errors).problem().errors.len(), 32);
    }

    #[test]
    fn every_kind_has_a_status_that_is_an_error() {
        for slug in Slug::ALL {
            let status = Failure::new(*slug, "for a test").into_response().status();
            assert_eq!(status.as_u16(), slug.status(), "{slug:?}");
            assert!(
                status.is_client_error() || status.is_server_error(),
                "{slug:?}"
            );
        }
    }
}
