//! Which objects were deleted, asked of the process that has the store: `GET /api/tombstones/{uid}` of `relayd local`, at the
//! address and with the token of the kubeconfig. An API server of a cluster has no such call; then nothing is known, and
//! nothing is swept.

use std::time::Duration;

use controller::Tombstones;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kube::Client;
use serde_json::Value;

/// For an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest uid: random ones have 36 letters.
const MAX_UID: usize = 64;

/// The memory of another process.
pub(crate) struct RemoteTombstones(Client);

impl RemoteTombstones {
    /// Of the process that serves these objects.
    pub(crate) const fn new(client: Client) -> Self {
        Self(client)
    }

    async fn ask(&self, uid: &str) -> Result<bool, String> {
        // Labels may say anything, and a uid is part of a path.
        if !is_uid(uid) {
            return Ok(false);
        }
        let request = http::Request::get(format!("/api/tombstones/{uid}")).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let answer = tokio::time::timeout(PATIENCE, self.0.request::<Value>(request)).await;
        match answer {
            Ok(Ok(tree)) => said(&tree),
            Ok(Err(error)) => Err(refused(&error)),
            Err(_) => Err(format!(
                "whether an object was deleted: no answer within {} s",
                PATIENCE.as_secs()
            )),
        }
    }
}

impl std::fmt::Debug for RemoteTombstones {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteTombstones").finish_non_exhaustive()
    }
}

impl Tombstones for RemoteTombstones {
    fn sweeps(&self) -> bool {
        true
    }

    fn was_deleted<'a>(&'a self, uid: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        self.ask(uid).boxed()
    }
}

/// Whether a text may be the uid of an object.
pub(crate) fn is_uid(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=MAX_UID).contains(&text.len()) && text.chars().all(plain)
}

fn said(answer: &Value) -> Result<bool, String> {
    answer["deleted"].as_bool().ok_or_else(|| {
        "what serves the objects says something else than whether one was deleted; nothing is swept"
            .to_owned()
    })
}

fn refused(error: &kube::Error) -> String {
    match error {
        // An API server knows no such path, and may not even say so.
        kube::Error::Api(status) if matches!(status.code, 403..=405) => format!(
            "what serves the objects does not remember deleted ones ({}), so children of these are not swept; `relayd local` \
             of this release does",
            status.code
        ),
        other => format!("whether an object was deleted is not known: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_said_is_yes_no_or_nothing() {
        assert_eq!(said(&json!({"uid": "a", "deleted": true})), Ok(true));
        assert_eq!(said(&json!({"uid": "a", "deleted": false})), Ok(false));
        for other in [json!({}), json!({"deleted": "yes"}), json!([])] {
            assert!(said(&other).is_err(), "{other}");
        }
    }

    #[test]
    fn what_is_no_uid_was_never_an_object() {
        for (text, good) in [
            ("0193d2b1-0000-7000-8000-000000000001", true),
            ("never-known", true),
            ("", false),
            ("..", false),
            ("a/b", false),
            ("a?b", false),
            ("ä", false),
        ] {
            assert_eq!(is_uid(text), good, "{text}");
        }
        assert!(!is_uid(&"a".repeat(65)));
    }
}
