//! The document that keeps the end of the log of a revision that was taken back (control-plane 10, Reject): what wrote it
//! is deleted, and why it failed can still be read. An `apps/v1` ControllerRevision, as all stored documents.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the document holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptLog {
    /// The last lines, control characters escaped.
    pub log: String,
}

impl KeptLog {
    /// Reads `data` of a document; `None` where it holds something else.
    #[must_use]
    pub fn read(data: &Value) -> Option<Self> {
        Self::deserialize(data).ok()
    }
}

/// Name of the document that keeps the log of a revision of a LayaServer.
#[must_use]
pub fn document_name(server: &str, revision: &str) -> String {
    format!("ls-{server}-{revision}-log")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_log_is_read_as_one() {
        assert_eq!(
            document_name("main", "0123456789"),
            "ls-main-0123456789-log"
        );
        let log = KeptLog {
            log: "the end".to_owned(),
        };
        let data = serde_json::to_value(&log).unwrap();
        assert_eq!(KeptLog::read(&data), Some(log));
        for other in [
            json!(null),
            json!("the end"),
            json!({"log": 1}),
            json!({"log": "", "ownerUid": "u"}),
            json!({}),
        ] {
            assert_eq!(KeptLog::read(&other), None, "{other}");
        }
    }
}
