//! What a server refused, or why there is no answer: as one line, a hint and an exit code.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::connect::LocalError;
use crate::error::CliError;
use crate::terminal::escape;
use api::exit::Exit;

/// Longest text of an answer that is no `Status`, in characters.
const MAX_TEXT: usize = 300;

/// What helps where a store is full.
pub(crate) const DELETE_SOME: &str =
    "delete objects that are not needed any more: `relayctl get relay -A` lists them";
/// What the API server adds when it stopped early.
const NOT_CHECKED: &str = "some validation rules were not checked";

/// Whether a refusal is about the room of the local store, and not about rights.
pub(crate) fn is_full_store(message: &str) -> bool {
    message.contains("the local store holds at most")
}

/// Leaves out that not everything was checked, unless that is all there is.
pub(crate) fn without_noise<T>(mut causes: Vec<T>, parts: impl Fn(&T) -> (&str, &str)) -> Vec<T> {
    let is_noise = |cause: &T| {
        let (field, message) = parts(cause);
        field == "<nil>" && message.contains(NOT_CHECKED)
    };
    if causes.iter().any(|cause| !is_noise(cause)) {
        causes.retain(|cause| !is_noise(cause));
    }
    causes
}

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// The server's `Status`.
    #[error("{}", .0["message"].as_str().unwrap_or("no reason given"))]
    Refused(Box<Value>),
    /// It could not be asked, or its answer broke off.
    #[error("{0}")]
    Unreachable(String, #[source] Option<Box<dyn Error + Send + Sync>>),
    /// No whole answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// It answers, and not as an object API does.
    #[error("{0}")]
    Strange(String),
}

/// A field that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    /// As the server names it, without a leading dot; empty where it names none.
    pub(crate) field: String,
    pub(crate) message: String,
}

impl ServerError {
    /// What `kube` made of a failed exchange.
    pub(crate) fn unsent(error: kube::Error) -> Self {
        let text = match &error {
            // Its own text begins with the name of the variant.
            kube::Error::Service(inner) => {
                if let Some(local) = inner.downcast_ref::<LocalError>() {
                    local.to_string()
                } else {
                    innermost(&**inner)
                }
            }
            other => innermost(other),
        };
        Self::Unreachable(text, Some(Box::new(error)))
    }

    pub(crate) fn broken(error: Box<dyn Error + Send + Sync>) -> Self {
        Self::Unreachable(
            format!("its answer broke off: {}", innermost(&*error)),
            Some(error),
        )
    }

    pub(crate) fn refused(code: StatusCode, body: &[u8]) -> Self {
        let tree = serde_json::from_slice::<Value>(body).ok();
        let status = tree.clone().filter(|status| status["kind"] == "Status");
        let status = status.unwrap_or_else(|| {
            // The daemon's own calls refuse with a problem of RFC 9457.
            let detail = tree.as_ref().and_then(|problem| problem["detail"].as_str());
            let text = detail.map_or_else(|| String::from_utf8_lossy(body), Into::into);
            let text: String = text.trim().chars().take(MAX_TEXT).collect();
            let message = if text.is_empty() {
                code.to_string()
            } else {
                text
            };
            serde_json::json!({
                "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
                "message": message, "reason": "", "code": code.as_u16(),
            })
        });
        Self::Refused(Box::new(status))
    }

    fn status(&self) -> Option<&Value> {
        match self {
            Self::Refused(status) => Some(status),
            _ => None,
        }
    }

    fn code(&self) -> u64 {
        self.status()
            .and_then(|status| status["code"].as_u64())
            .unwrap_or(0)
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    pub(crate) fn is_conflict(&self) -> bool {
        self.code() == 409
    }

    /// What was watched is no longer known: list again.
    pub(crate) fn is_expired(&self) -> bool {
        self.code() == 410
    }

    /// What a server says of an object it does not store.
    pub(crate) fn is_about_input(&self) -> bool {
        matches!(self.code(), 400 | 413 | 415 | 422) || self.is_untyped()
    }

    /// An API server answers 500 to an apply with a field it does not know.
    fn is_untyped(&self) -> bool {
        let said = self.status().and_then(|status| status["message"].as_str());
        self.code() == 500
            && said.is_some_and(|message| message.contains("failed to create typed patch object"))
    }

    /// The fields that were refused, in the server's order.
    pub(crate) fn causes(&self) -> Vec<Cause> {
        let Some(status) = self.status() else {
            return Vec::new();
        };
        let message = status["message"].as_str().unwrap_or_default();
        if let Some(list) = message.split_once("strict decoding error: ") {
            return unknown_fields(list.1);
        }
        if self.is_untyped() {
            return untyped(message);
        }
        if let Some(cause) = mistyped(message) {
            return vec![cause];
        }
        let causes = status["details"]["causes"].as_array();
        let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
        let causes = causes.into_iter().flatten().map(|cause| Cause {
            field: text(cause, "field").trim_start_matches('.').to_owned(),
            message: text(cause, "message"),
        });
        without_noise(causes.collect(), |cause| (&cause.field, &cause.message))
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Unreachable(..) | Self::Strange(_) => Exit::Unreachable,
            Self::TimedOut(_) => Exit::TimedOut,
            Self::Refused(_) if self.is_about_input() => Exit::Refused,
            Self::Refused(_) => match self.code() {
                401 | 403 => Exit::Forbidden,
                404 => Exit::NotFound,
                409 => Exit::Conflict,
                // It answers well; there is no room.
                507 => Exit::Failed,
                429 | 500.. => Exit::Unreachable,
                _ => Exit::Failed,
            },
        }
    }

    /// As the error of a command.
    pub(crate) fn into_error(self, context: &str) -> CliError {
        let exit = self.exit();
        let line = match &self {
            Self::Refused(_) if self.is_conflict() => self.conflict(),
            Self::Unreachable(..) => format!("cannot reach the API of context `{context}`: {self}"),
            Self::TimedOut(_) => format!("the API of context `{context}` does not answer: {self}"),
            Self::Strange(_) => {
                format!("what answers as context `{context}` is no object API: {self}")
            }
            Self::Refused(_) => one_line(&self.to_string()),
        };
        let error = CliError::new(exit, line).caused_by(&self);
        let error = match self.hint(context) {
            Some(hint) => error.hint(hint),
            None => error,
        };
        match self {
            Self::Refused(status) => error.with_status(*status),
            _ => error,
        }
    }

    fn hint(&self, context: &str) -> Option<String> {
        if let Self::Unreachable(_, Some(source)) = self
            && let Some(kube::Error::Service(inner)) = source.downcast_ref::<kube::Error>()
            && let Some(local) = inner.downcast_ref::<LocalError>()
            && let Some(hint) = local.hint()
        {
            return Some(hint);
        }
        let local = context == crate::context::LOCAL;
        let hint = match self {
            Self::Unreachable(..) if local => {
                "start it with `relayctl up`; `relayctl doctor` looks closer"
            }
            Self::Unreachable(..) => {
                "`relayctl context show` tells where that is, `relayctl doctor` looks closer"
            }
            Self::TimedOut(_) => "`--timeout` waits longer; `relayctl doctor` looks closer",
            Self::Strange(_) => "`relayctl doctor` looks closer",
            Self::Refused(_) => match self.code() {
                403 if self.says(is_full_store) => DELETE_SOME,
                403 if self.says(|message| message.contains("because it is being terminated")) => {
                    "wait until the namespace is gone, or use another one with `-n`"
                }
                507 => "free some space; `relayctl doctor` tells how much there is",
                403 => "`relayctl doctor` lists which rights are missing",
                401 => {
                    "the credentials of this context are not accepted; `relayctl context show` tells where they are"
                }
                404 if self.lacks_kind() => {
                    "this API does not know the kind: install the CRDs of this release (`crds/`), or `relayctl up` locally"
                }
                409 if self.is_ownership() => {
                    "leave these fields out, or take them over with `--force-conflicts`"
                }
                409 => "somebody changed it meanwhile; look again and repeat",
                _ => return None,
            },
        };
        Some(hint.to_owned())
    }

    fn says(&self, wanted: impl Fn(&str) -> bool) -> bool {
        let status = self.status();
        status
            .and_then(|status| status["message"].as_str())
            .is_some_and(wanted)
    }

    /// A 404 of the path and not of the object.
    fn lacks_kind(&self) -> bool {
        self.status()
            .is_some_and(|status| status["details"]["name"].as_str().is_none_or(str::is_empty))
    }

    fn is_ownership(&self) -> bool {
        let causes = self
            .status()
            .and_then(|status| status["details"]["causes"].as_array());
        causes.is_some_and(|causes| {
            causes
                .iter()
                .any(|cause| cause["reason"] == "FieldManagerConflict")
        })
    }

    /// Who owns what, in one line.
    fn conflict(&self) -> String {
        if !self.is_ownership() {
            return one_line(&self.to_string());
        }
        let causes = self.causes();
        let owners: BTreeSet<_> = causes.iter().map(|cause| cause.message.as_str()).collect();
        let parts: Vec<_> = owners
            .into_iter()
            .map(|owner| {
                let fields: Vec<_> = causes
                    .iter()
                    .filter(|cause| cause.message == owner)
                    .map(|cause| cause.field.as_str())
                    .collect();
                format!("{} ({owner})", fields.join(", "))
            })
            .collect();
        one_line(&format!("others own {}", parts.join("; ")))
    }
}

/// `unknown field "spec.foo", unknown field "spec.bar"`, also with duplicate fields among them.
fn unknown_fields(list: &str) -> Vec<Cause> {
    list.split("\", ")
        .filter_map(|part| {
            let (what, field) = part.split_once('"')?;
            Some(Cause {
                field: field.trim_end_matches('"').to_owned(),
                message: what.trim().to_owned(),
            })
        })
        .collect()
}

/// `json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string`.
fn mistyped(message: &str) -> Option<Cause> {
    let (_, rest) = message.split_once("cannot unmarshal ")?;
    let (found, rest) = rest.split_once(" into Go struct field ")?;
    let (path, wanted) = rest.split_once(" of type ")?;
    // Newer servers name the outer types too: `.metadata.labels`.
    let field = match path.split_once("ObjectMeta.") {
        Some((_, field)) => format!("metadata.{}", field.trim_start_matches("metadata.")),
        None => path.split_once('.')?.1.to_owned(),
    };
    let wanted = match wanted {
        "string" => "a string",
        "bool" => "true or false",
        "int32" | "int64" => "a whole number",
        _ if wanted.starts_with("map[") => "a map of strings",
        _ if wanted.starts_with("[]") => "a list",
        _ => "an object",
    };
    Some(Cause {
        field,
        message: format!("must be {wanted}, is {found}"),
    })
}

/// `failed to create typed patch object (…): errors:\n  .spec.foo: field not declared in schema\n …`, or one error inline.
fn untyped(message: &str) -> Vec<Cause> {
    let list = message.split_once("): ").map_or(message, |(_, list)| list);
    let list = list.strip_prefix("errors:").unwrap_or(list);
    list.lines()
        .filter_map(|line| {
            let (field, message) = line.trim().strip_prefix('.')?.split_once(": ")?;
            let message = match message {
                "field not declared in schema" => "unknown field",
                // What follows are the insides of a program in Go.
                other => other.split(", got &value").next().unwrap_or(other),
            };
            Some(Cause {
                field: field.to_owned(),
                message: message.to_owned(),
            })
        })
        .collect()
}

/// The last cause of an error: those before it say that something failed, it says what.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Line breaks become spaces; what a terminal would obey becomes visible.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    escape(&words.join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(status: &Value) -> ServerError {
        ServerError::Refused(Box::new(status.clone()))
    }

    #[test]
    fn a_status_has_its_exit_code() {
        for (code, exit) in [
            (400, Exit::Refused),
            (401, Exit::Forbidden),
            (403, Exit::Forbidden),
            (404, Exit::NotFound),
            (405, Exit::Failed),
            (409, Exit::Conflict),
            (413, Exit::Refused),
            (422, Exit::Refused),
            (429, Exit::Unreachable),
            (507, Exit::Failed),
            (500, Exit::Unreachable),
            (503, Exit::Unreachable),
        ] {
            let status = json!({"kind": "Status", "message": "m", "code": code});
            assert_eq!(refused(&status).into_error("team").exit, exit, "{code}");
        }
        let late = ServerError::TimedOut(Duration::from_secs(1));
        assert_eq!(late.into_error("team").exit, Exit::TimedOut);
    }

    #[test]
    fn fields_are_found_wherever_a_server_puts_them() {
        let fields = |status: &Value| {
            let causes = refused(status).causes();
            causes
                .into_iter()
                .map(|cause| format!("{}: {}", cause.field, cause.message))
                .collect::<Vec<_>>()
        };
        let strict = json!({"code": 400, "message": "RoutingPolicy in version \"v1alpha1\" cannot be handled as a RoutingPolicy: strict decoding error: unknown field \"spec.foo\", unknown field \"spec.tiers[0].bar\""});
        assert_eq!(
            fields(&strict),
            [
                "spec.foo: unknown field",
                "spec.tiers[0].bar: unknown field"
            ]
        );
        let typed = json!({"code": 500, "message": "failed to create typed patch object (default/default; relay.dev/v1alpha1, Kind=RoutingPolicy): errors:\n  .spec.foo: field not declared in schema\n  .spec.bar: expected string, got &value.valueUnstructured{Value:1}"});
        assert_eq!(
            fields(&typed),
            ["spec.foo: unknown field", "spec.bar: expected string"]
        );
        assert_eq!(refused(&typed).into_error("x").exit, Exit::Refused);
        let one = json!({"code": 500, "message": "failed to create typed patch object (default/default; relay.dev/v1alpha1, Kind=RoutingPolicy): .spec.foo: field not declared in schema"});
        assert_eq!(fields(&one), ["spec.foo: unknown field"]);
        let mistyped = json!({"code": 400, "message": "RoutingPolicy in version \"v1alpha1\" cannot be handled as a RoutingPolicy: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"});
        assert_eq!(
            fields(&mistyped),
            ["metadata.labels: must be a string, is number"]
        );
        let noise = json!({"field": "<nil>", "message": "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"});
        let two = json!({"code": 422, "message": "x", "details": {"causes": [noise, {"field": "spec.device", "message": "bad"}]}});
        assert_eq!(fields(&two), ["spec.device: bad"]);
        let alone = json!({"code": 422, "message": "x", "details": {"causes": [noise]}});
        assert_eq!(fields(&alone).len(), 1);
        let invalid = json!({"code": 422, "message": "x is invalid", "details": {"causes": [
            {"reason": "FieldValueInvalid", "field": "spec.profile", "message": "bad"}]}});
        assert_eq!(fields(&invalid), ["spec.profile: bad"]);
    }

    #[test]
    fn a_conflict_names_fields_and_owners() {
        let status = json!({"code": 409, "message": "Apply failed with 2 conflicts", "reason": "Conflict", "details": {"causes": [
            {"reason": "FieldManagerConflict", "field": ".spec.profile", "message": "conflict with \"kubectl-edit\" using relay.dev/v1alpha1"},
            {"reason": "FieldManagerConflict", "field": ".spec.memory", "message": "conflict with \"kubectl-edit\" using relay.dev/v1alpha1"}]}});
        let error = refused(&status).into_error("team");
        assert_eq!(error.exit, Exit::Conflict);
        assert_eq!(
            error.line(),
            "others own spec.profile, spec.memory (conflict with \"kubectl-edit\" using relay.dev/v1alpha1)"
        );
        assert!(error.hint_text().unwrap().contains("--force-conflicts"));
    }

    #[test]
    fn an_answer_that_is_no_status_is_quoted_and_bounded() {
        let error = ServerError::refused(
            StatusCode::BAD_GATEWAY,
            "\u{1b}[2J<html>".repeat(100).as_bytes(),
        );
        let error = error.into_error("team");
        assert_eq!(error.exit, Exit::Unreachable);
        assert!(error.line().len() < 1000 && !error.line().contains('\u{1b}'));
    }

    #[test]
    fn a_403_is_about_rights_or_about_room() {
        let hint = |message: &str| {
            let status = json!({"kind": "Status", "message": message, "code": 403});
            let error = refused(&status).into_error("local");
            assert_eq!(error.exit, Exit::Forbidden);
            error.hint_text().unwrap().to_owned()
        };
        assert!(hint("x is forbidden: User \"a\" cannot get resource").contains("rights"));
        assert_eq!(
            hint(
                "layamodels.relay.dev \"x\" is forbidden: the local store holds at most 10000 objects"
            ),
            DELETE_SOME
        );
    }
}
