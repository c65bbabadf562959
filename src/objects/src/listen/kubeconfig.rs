//! The kubeconfig for `kubectl`: one context, over TLS, since kubectl sends a token over nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// Name of its context, cluster and user.
pub const CONTEXT: &str = "relay-local";

/// The file, as JSON, which is YAML too and leaves no doubt about quotes.
pub(super) fn text(port: u16, certificate: &str, token: &str) -> String {
    let file = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{
            "name": CONTEXT,
            "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority-data": STANDARD.encode(certificate),
            },
        }],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [{
            "name": CONTEXT,
            "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"},
        }],
    });
    format!("{file:#}\n")
}
