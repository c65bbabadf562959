//! Whether a server on the port of the router may be used as it is (training 11): judged by what it says of itself. Pure.

use decision::relay_contract;
use serde_json::Value;

use crate::facts::{short, text};

/// What a server on the port is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It answers our questions, by its own words.
    Ours,
    /// It does not say; its answers will.
    Ask,
    /// It answers other ones; why that is known.
    Other(String),
    /// It is no Laya server that is up; what it is instead.
    NoLaya(String),
    /// It is the router of a Relay, which asks a Laya server itself.
    Router,
}

/// Judges an answer of `GET /health`.
pub(super) fn judge(status: u16, health: Option<&Value>) -> Verdict {
    let Some(health) = health.filter(|health| health.is_object()) else {
        return Verdict::NoLaya(format!(
            "it answers /health with {status} and no JSON object"
        ));
    };
    // Only a router says what it serves with.
    if health.get("serving").is_some() {
        return Verdict::Router;
    }
    let is_up = (200..300).contains(&status) && (health["ok"] == true || health["status"] == "ok");
    if !is_up {
        return Verdict::NoLaya(format!(
            "it answers /health with {status} and does not say that it is up"
        ));
    }
    let ours = relay_contract();
    let (contract, shape) = (text(&health["contract"]), text(&health["shape"]));
    let same_shape = shape.is_some_and(|shape| shape == ours.shape_digest().to_string());
    if same_shape || contract.is_some_and(|contract| contract == ours.digest().to_string()) {
        return Verdict::Ours;
    }
    let ids = health["decisions"].as_array();
    let ids: Vec<_> = ids
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let missing = ours
        .questions()
        .iter()
        .find(|question| !ids.contains(&question.id.as_str()));
    match (missing, contract, ids.is_empty()) {
        // A contract of unknown shape whose questions are all ours.
        (None, _, _) => Verdict::Ours,
        (Some(missing), _, false) => Verdict::Other(format!("it does not know `{}`", missing.id)),
        (Some(_), Some(contract), true) => Verdict::Other(format!(
            "its contract is {}, ours is {}",
            short(contract),
            short(&ours.digest().to_string())
        )),
        (Some(_), None, true) => Verdict::Ask,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_row_of_the_page() {
        let ours = relay_contract();
        let (digest, shape) = (ours.digest().to_string(), ours.shape_digest().to_string());
        let ids: Vec<_> = ours
            .questions()
            .iter()
            .map(|question| question.id.as_str())
            .collect();
        let without: Vec<_> = ids.iter().filter(|id| **id != "requires_git").collect();
        let other = format!("sha256:{}", "ab".repeat(32));
        let lacks = Verdict::Other("it does not know `requires_git`".into());
        for (name, status, health, expected) in [
            (
                "our contract",
                200,
                json!({"ok": true, "contract": digest, "shape": shape}),
                Verdict::Ours,
            ),
            (
                "our shape, other wording",
                200,
                json!({"ok": true, "contract": other, "shape": shape}),
                Verdict::Ours,
            ),
            (
                "all ids",
                200,
                json!({"status": "ok", "decisions": ids}),
                Verdict::Ours,
            ),
            (
                "one id is missing",
                200,
                json!({"status": "ok", "decisions": without}),
                lacks.clone(),
            ),
            (
                "one id is missing, other contract",
                200,
                json!({"ok": true, "contract": other, "shape": other, "decisions": without}),
                lacks,
            ),
            (
                "other contract",
                200,
                json!({"ok": true, "contract": other, "shape": other}),
                Verdict::Other(format!(
                    "its contract is abababababab, ours is {}",
                    short(&digest)
                )),
            ),
            (
                "relay-laya of 1.0.3",
                200,
                json!({"status": "ok", "loaded": ["laya"], "device": "cpu"}),
                Verdict::Ask,
            ),
            (
                "empty list",
                200,
                json!({"ok": true, "decisions": []}),
                Verdict::Ask,
            ),
            (
                "not up",
                200,
                json!({"status": "starting"}),
                Verdict::NoLaya(
                    "it answers /health with 200 and does not say that it is up".into(),
                ),
            ),
            (
                "in trouble",
                503,
                json!({"status": "ok"}),
                Verdict::NoLaya(
                    "it answers /health with 503 and does not say that it is up".into(),
                ),
            ),
            (
                "a router with a model",
                200,
                json!({"ok": true, "status": "ok", "contract": digest, "shape": shape, "decisions": ids, "serving": "Ready"}),
                Verdict::Router,
            ),
            (
                "a router with rules only",
                200,
                json!({"ok": false, "status": "degraded", "decisions": ids, "serving": "RulesOnly"}),
                Verdict::Router,
            ),
            (
                "no object",
                200,
                json!("ok"),
                Verdict::NoLaya("it answers /health with 200 and no JSON object".into()),
            ),
        ] {
            assert_eq!(judge(status, Some(&health)), expected, "{name}");
        }
        assert!(matches!(judge(404, None), Verdict::NoLaya(_)));
    }
}
