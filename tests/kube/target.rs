//! Something that answers Kubernetes requests, and what it is asked.

use serde_json::Value;

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    /// With the query.
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    /// Empty: none is sent.
    pub(crate) body: Vec<u8>,
}

impl Ask {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET",
            path: path.into(),
            content_type: "",
            body: Vec::new(),
        }
    }

    pub(crate) fn json(method: &'static str, path: impl Into<String>, body: &Value) -> Self {
        Self {
            method,
            path: path.into(),
            content_type: "application/json",
            body: serde_json::to_vec(body).unwrap(),
        }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

/// A server of the Kubernetes API, in this process or elsewhere.
pub(crate) trait Target {
    /// How failures name it.
    fn name(&self) -> &'static str;

    /// Sends a request, which must be answered.
    fn ask(&self, ask: &Ask) -> Told;
}

/// Text of an answer as JSON; a text that is none stays one.
pub(crate) fn body_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}
