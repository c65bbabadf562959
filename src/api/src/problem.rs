//! Errors of our HTTP routes: `application/problem+json` (RFC 9457) with a closed list of types (routing.md 18).

use routing::request::FieldError;
use serde::{Deserialize, Serialize};

/// Media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";
/// What every `type` starts with.
pub const TYPE_PREFIX: &str = "https://relay.dev/problems/";

macro_rules! slugs {
    ($($(#[$doc:meta])* $variant:ident = $slug:literal, $status:literal, $title:literal;)+) => {
        /// What kind of error it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Slug { $($(#[$doc])* $variant,)+ }

        impl Slug {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Last part of `type`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $slug),+ }
            }

            /// HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }

            /// The same sentence for every error of the kind.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }
        }
    };
}

slugs! {
    /// The body is no JSON.
    MalformedJson = "malformed-json", 400, "The body is not valid JSON";
    /// No token, or a wrong one.
    Unauthorized = "unauthorized", 401, "A valid bearer token is required";
    /// A browser origin that is not listed.
    OriginRefused = "origin-refused", 403, "This origin is not allowed";
    /// No such route or record.
    NotFound = "not-found", 404, "Not found";
    /// The route has no such method.
    MethodNotAllowed = "method-not-allowed", 405, "This route does not have this method";
    /// The body or the head did not arrive in time.
    RequestTimeout = "request-timeout", 408, "The request did not arrive in time";
    /// Something else was recorded under the same key.
    Conflict = "conflict", 409, "This contradicts what is recorded";
    /// Questions that differ.
    ContractMismatch = "contract-mismatch", 409, "The contracts differ";
    /// The body is too large.
    TooLarge = "too-large", 413, "The body is too large";
    /// The body is said to be no JSON.
    UnsupportedMediaType = "unsupported-media-type", 415, "The body must be application/json";
    /// A field is wrong.
    InvalidRequest = "invalid-request", 422, "The request is not valid";
    /// Nothing could run the request.
    NoCandidate = "no-candidate", 422, "No model can run this request";
    /// Too many requests of one client.
    RateLimited = "rate-limited", 429, "Too many requests";
    /// A defect of ours.
    Internal = "internal", 500, "The router failed";
    /// Too many requests of all clients.
    Overloaded = "overloaded", 503, "Too many requests are waiting";
    /// Something behind the router is away.
    Unavailable = "unavailable", 503, "Not available right now";
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// `https://relay.dev/problems/<slug>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The same for every error of the type.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// What happened here.
    pub detail: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Also in the header `x-request-id`.
    pub request_id: String,
    /// Refused fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

impl Problem {
    /// A problem without hint or fields; the request id is filled in where the response is made.
    #[must_use]
    pub fn new(slug: Slug, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("{TYPE_PREFIX}{}", slug.as_str()),
            title: slug.title().to_owned(),
            status: slug.status(),
            detail: detail.into(),
            hint: None,
            request_id: String::new(),
            errors: Vec::new(),
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// `invalid-request` with its fields.
    #[must_use]
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        let detail = errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ");
        Self {
            errors,
            ..Self::new(Slug::InvalidRequest, detail)
        }
    }

    /// Last part of the type.
    #[must_use]
    pub fn slug(&self) -> &str {
        self.kind.strip_prefix(TYPE_PREFIX).unwrap_or(&self.kind)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn slugs_are_unique_and_statuses_are_errors() {
        let slugs: HashSet<_> = Slug::ALL.iter().map(|slug| slug.as_str()).collect();
        assert_eq!(slugs.len(), Slug::ALL.len());
        assert!(
            Slug::ALL
                .iter()
                .all(|slug| (400..600).contains(&slug.status()))
        );
    }

    #[test]
    fn a_problem_without_hint_or_fields_leaves_them_out() {
        let text = serde_json::to_string(&Problem::new(Slug::NotFound, "no such route")).unwrap();
        assert_eq!(
            text,
            r#"{"type":"https://relay.dev/problems/not-found","title":"Not found","status":404,"detail":"no such route","request_id":""}"#
        );
    }
}
