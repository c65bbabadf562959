//! `x-request-id`: taken from the request when it is harmless, else a UUIDv7; on every response, and in the problem
//! document, which is rendered here.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use crate::problem;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id taken over from a client, in bytes.
const MAX_CLIENT_ID: usize = 128;

/// Id of the request that is being answered; a request extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of_client(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(X_REQUEST_ID)?.to_str().ok()?;
        let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte);
        ((1..=MAX_CLIENT_ID).contains(&text.len()) && text.bytes().all(harmless))
            .then(|| Self(text.to_owned()))
    }
}

pub(super) async fn stamp(mut request: Request, next: Next) -> Response {
    let id = RequestId::of_client(request.headers())
        .unwrap_or_else(|| RequestId(Uuid::now_v7().to_string()));
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).await;
    problem::render(&mut response, id.as_str());
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_over_harmless_ids_only() {
        let long = "x".repeat(129);
        for (name, given, taken) in [
            ("uuid", "0193d2b1-7c00-7000-8000-000000000000", true),
            ("trace id", "Root=1-67891233-abcdef012345678912345678", true),
            ("blank", "", false),
            ("space", "a b", false),
            ("markup", "<b>", false),
            ("too long", long.as_str(), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(X_REQUEST_ID, HeaderValue::from_str(given).unwrap());
            assert_eq!(RequestId::of_client(&headers).is_some(), taken, "{name}");
        }
    }
}
