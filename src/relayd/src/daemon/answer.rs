//! Bodies of the daemon's calls, and refusals as the object API says them: `Status` objects.

use axum::response::{IntoResponse, Response};
use backend::BackendError;
use http::{HeaderValue, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use service::telemetry::causes;

/// What a call answers.
pub(super) type Answer = Result<Response, Refusal>;

/// A body of JSON.
pub(super) fn json_answer(code: StatusCode, body: &Value) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (code, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}

/// Why a call was not done.
#[derive(Debug)]
pub(super) struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
    /// The field that is wrong, and what about it.
    field: Option<(String, String)>,
}

impl Refusal {
    pub(super) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            field: None,
        }
    }

    /// 422 about one field of the body.
    pub(super) fn field(path: impl Into<String>, message: impl Into<String>) -> Self {
        let (path, message) = (path.into(), message.into());
        let whole = if path.is_empty() {
            message.clone()
        } else {
            format!("{path}: {message}")
        };
        Self {
            field: Some((path, message)),
            ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", whole)
        }
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    pub(super) fn internal(error: &dyn std::error::Error) -> Self {
        let message = causes(error);
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            message.to_string(),
        )
    }
}

impl From<kube::Error> for Refusal {
    /// What the object API said is said again.
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            return Self::internal(&error);
        };
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let reason = match code {
            StatusCode::NOT_FOUND => "NotFound",
            StatusCode::CONFLICT => "Conflict",
            StatusCode::UNPROCESSABLE_ENTITY => "Invalid",
            StatusCode::BAD_REQUEST => "BadRequest",
            _ => "InternalError",
        };
        Self::new(code, reason, status.message.clone())
    }
}

impl From<BackendError> for Refusal {
    fn from(error: BackendError) -> Self {
        let message = error.to_string();
        match error {
            BackendError::Unavailable { .. } | BackendError::TimedOut { .. } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "ServiceUnavailable",
                message,
            ),
            BackendError::Forbidden { .. } => {
                Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
            }
            BackendError::Refused { .. } => Self::new(StatusCode::CONFLICT, "Conflict", message),
            BackendError::Failed { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self {
            code,
            reason,
            message,
            field,
        } = self;
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code.as_u16(),
        });
        if let Some((path, message)) = field {
            let cause = json!({"reason": "FieldValueInvalid", "message": message, "field": path});
            status["details"] = json!({"causes": [cause]});
        }
        json_answer(code, &status)
    }
}

/// A body; an empty one is an object without fields.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let malformed = |message: String| {
        Refusal::new(
            StatusCode::BAD_REQUEST,
            "BadRequest",
            format!("the body is no JSON: {message}"),
        )
    };
    let text = std::str::from_utf8(body).map_err(|error| malformed(error.to_string()))?;
    let text = if text.trim().is_empty() { "{}" } else { text };
    let tree = match api::document::read_json(text) {
        Ok(tree) => tree,
        Err(api::document::DocumentError::Field(field)) => {
            return Err(Refusal::field(field.path, field.message));
        }
        Err(other) => return Err(malformed(other.to_string())),
    };
    api::document::typed(tree).map_err(|field| Refusal::field(field.path, field.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[serde(default)]
        count: u8,
    }

    #[test]
    fn a_wrong_body_is_refused_with_the_path_of_its_field() {
        assert_eq!(parse::<Body>(b"").unwrap().count, 0);
        assert_eq!(parse::<Body>(br#"{"count": 7}"#).unwrap().count, 7);
        for (body, code, path) in [
            (&b"{"[..], 400, None),
            (b"\xff", 400, None),
            (br#"{"count": 300}"#, 422, Some("count")),
            (br#"{"more": 1}"#, 422, Some("more")),
            (br#"{"count": 1, "count": 2}"#, 422, Some("count")),
        ] {
            let refusal = parse::<Body>(body).unwrap_err();
            assert_eq!(refusal.code.as_u16(), code, "{refusal:?}");
            let field = refusal.field.map(|(path, _)| path);
            assert_eq!(field.as_deref(), path);
        }
    }
}
