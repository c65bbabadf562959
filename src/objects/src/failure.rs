//! Refusals as kube-apiserver 1.35 words them: `metav1.Status` with reason, code and details. Who reads the text is a person
//! with `kubectl`; who reads the reason is code.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::schema::Cause;
use crate::schema::go_text::quote;

/// A request that was not done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    details: Option<Map<String, Value>>,
    retry_after_seconds: Option<u32>,
}

/// What a refusal is about: group and resource (or kind), as `details` names them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

/// `routingpolicies.relay.dev "default"`.
impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = quote(self.name);
        match self.group {
            "" => write!(f, "{} {name}", self.kind),
            group => write!(f, "{}.{group} {name}", self.kind),
        }
    }
}

impl About<'_> {
    fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in [
            ("name", self.name),
            ("group", self.group),
            ("kind", self.kind),
        ] {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.into());
            }
        }
        details
    }
}

/// The text of a conflict over a resource version.
const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

impl Failure {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self {
            code,
            reason,
            message,
            details: None,
            retry_after_seconds: None,
        }
    }

    fn about(mut self, about: About<'_>) -> Self {
        self.details = Some(about.details());
        self
    }

    fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        let details = self.details.get_or_insert_default();
        details.insert("retryAfterSeconds".to_owned(), seconds.into());
        self
    }

    fn with_causes(mut self, causes: Value) -> Self {
        let details = self.details.get_or_insert_default();
        details.insert("causes".to_owned(), causes);
        self
    }

    /// 400.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into())
    }

    /// 404 for an object.
    pub(crate) fn not_found(about: About<'_>) -> Self {
        let message = format!("{about} not found");
        Self::new(404, "NotFound", message).about(about)
    }

    /// 404 for a path that names nothing we serve.
    pub(crate) fn no_such_path() -> Self {
        let mut failure = Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource".to_owned(),
        );
        failure.details = Some(Map::new());
        failure
    }

    /// 405 for a method that a path does not have.
    pub(crate) fn method_not_allowed() -> Self {
        let mut failure = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource".to_owned(),
        );
        failure.details = Some(Map::new());
        failure
    }

    /// 406.
    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(406, "NotAcceptable", message.to_owned())
    }

    /// 415.
    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 413.
    pub(crate) fn too_large(message: &str) -> Self {
        let message = format!("Request entity too large: {message}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 408 for a request whose body did not come.
    pub(crate) fn body_timeout(patience: Duration) -> Self {
        let seconds = patience.as_secs();
        let message = format!("Timeout: the body of the request did not come within {seconds} s");
        Self::new(408, "Timeout", message)
    }

    /// 409 over a name that is taken.
    pub(crate) fn already_exists(about: About<'_>) -> Self {
        let message = format!("{about} already exists");
        Self::new(409, "AlreadyExists", message).about(about)
    }

    /// 409 over a name that was made up and is taken.
    pub(crate) fn generated_name_taken(about: About<'_>) -> Self {
        let message = format!(
            "{about} already exists, the server was not able to generate a unique name for the object"
        );
        Self::new(409, "AlreadyExists", message)
            .about(about)
            .retry_after(1)
    }

    /// The same, where what has the name will be gone soon.
    pub(crate) fn while_deleting(mut self) -> Self {
        self.message = format!("object is being deleted: {}", self.message);
        self
    }

    /// 409 with a reason of its own.
    pub(crate) fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {about}: {why}");
        Self::new(409, "Conflict", message).about(about)
    }

    /// 409 over a resource version.
    pub(crate) fn modified(about: About<'_>) -> Self {
        Self::conflict(about, MODIFIED)
    }

    /// 409 of an apply: other managers own what it changes.
    pub(crate) fn apply_conflict(message: String, causes: Value) -> Self {
        Self::new(409, "Conflict", message).with_causes(causes)
    }

    /// 403.
    pub(crate) fn forbidden(about: About<'_>, why: &str) -> Self {
        let message = format!("{about} is forbidden: {why}");
        Self::new(403, "Forbidden", message).about(about)
    }

    /// 422 with the fields that are wrong. The message names each once, the causes all.
    pub(crate) fn invalid(about: About<'_>, causes: &[Cause]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for cause in causes {
            let text = format!("{}: {}", cause.field, cause.message);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let list = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("{about} is invalid: {list}");
        let causes = causes.iter().map(|cause| {
            json!({
                "reason": cause.reason.as_str(),
                "message": cause.message,
                "field": cause.field,
            })
        });
        Self::new(422, "Invalid", message)
            .about(about)
            .with_causes(causes.collect())
    }

    /// 422 for a JSON patch that does not fit the object.
    pub(crate) fn patch_rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        let mut failure = Self::new(422, "Invalid", message.to_owned());
        failure.details = Some(Map::new());
        failure
    }

    /// 410 for a list or watch from a time that is no longer known.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into())
    }

    /// 429.
    pub(crate) fn too_many_requests() -> Self {
        let message =
            "Too many requests: more writes wait for the object store than may, please try again";
        Self::new(429, "TooManyRequests", message.to_owned()).retry_after(1)
    }

    /// 500 without a reason: what Go prints of an error that is no status.
    pub(crate) fn plain(message: impl Into<String>) -> Self {
        Self::new(500, "", message.into())
    }

    /// 500.
    pub(crate) fn internal(why: &str) -> Self {
        Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {why}"),
        )
        .with_causes(json!([{ "message": why }]))
    }

    /// 503 for a store that does not answer, or was closed.
    pub(crate) fn unavailable(why: &str) -> Self {
        Self::new(
            503,
            "ServiceUnavailable",
            format!("the object store cannot be used: {why}"),
        )
        .retry_after(1)
    }

    /// 504 for a resource version that was not reached yet.
    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = json!([{
            "reason": "ResourceVersionTooLarge",
            "message": "Too large resource version",
        }]);
        Self::new(504, "Timeout", message)
            .with_causes(cause)
            .retry_after(1)
    }

    /// 507: the disk has no room. Nothing was written.
    pub(crate) fn no_space(place: &str) -> Self {
        let message = format!(
            "no space left for {place}: the disk is full or the store at its limit; nothing was written"
        );
        Self::new(507, "InsufficientStorage", message)
    }

    /// As a client gets it.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = Value::Object(details.clone());
        }
        status
    }

    /// For the header `retry-after`.
    pub(crate) const fn retry_after_seconds(&self) -> Option<u32> {
        self.retry_after_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::CauseReason;

    const ABOUT: About<'_> = About {
        group: "relay.dev",
        kind: "RoutingPolicy",
        name: "x",
    };

    #[test]
    fn several_causes_stand_in_brackets_and_each_text_once() {
        let cause = |field: &str| Cause {
            reason: CauseReason::Required,
            message: "Required value".to_owned(),
            field: field.to_owned(),
        };
        let one = Failure::invalid(ABOUT, &[cause("spec.a"), cause("spec.a")]);
        assert_eq!(
            one.message,
            "RoutingPolicy.relay.dev \"x\" is invalid: spec.a: Required value"
        );
        assert_eq!(
            one.status()["details"]["causes"].as_array().map(Vec::len),
            Some(2)
        );
        let two = Failure::invalid(ABOUT, &[cause("spec.a"), cause("spec.b")]);
        assert_eq!(
            two.message,
            "RoutingPolicy.relay.dev \"x\" is invalid: [spec.a: Required value, spec.b: Required value]"
        );
    }

    #[test]
    fn a_status_has_what_client_go_reads() {
        let status = Failure::not_found(About {
            group: "",
            kind: "namespaces",
            name: "n",
        })
        .status();
        assert_eq!(
            status,
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "namespaces \"n\" not found",
                "details": {"name": "n", "kind": "namespaces"},
            })
        );
    }
}
