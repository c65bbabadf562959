//! What `/ready` and `/health` say (wire 2.4, 2.5), read leniently: a field that is missing or has another form tells
//! nothing, and nothing a server says can do more than that. Pure.

use api::reason::Reason;
use serde_json::Value;

/// Longest text of a server that is carried on, in characters.
const MAX_TEXT: usize = 512;

/// What `/health` says of the checkpoint that is meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HealthSaid {
    /// Its digest.
    pub digest: Option<String>,
    /// Digest of its contract.
    pub contract: Option<String>,
    /// Where it runs: `cpu` or `cuda`, as said.
    pub claimed: Option<String>,
    /// Falls to the CPU.
    pub fallbacks: u64,
    /// Why the last one.
    pub last_reason: Option<String>,
}

/// What `/ready` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadySaid {
    /// It takes requests.
    Yes,
    /// It does not.
    No {
        /// In a word of its own.
        reason: String,
        /// For people.
        message: String,
        /// What it knows of itself that asking again does not change; none where it may become ready by itself.
        verdict: Option<Reason>,
    },
    /// It does not know the question: a Laya before ours.
    NoSuchPath,
}

/// Reads the answer of `/ready`.
#[must_use]
pub fn read_ready(status: u16, body: &[u8]) -> ReadySaid {
    let tree: Value = serde_json::from_slice(body).unwrap_or_default();
    match status {
        200 if tree["ready"] != Value::Bool(false) => ReadySaid::Yes,
        404 | 405 => ReadySaid::NoSuchPath,
        _ => ReadySaid::No {
            reason: text(&tree["reason"]).unwrap_or_default(),
            message: text(&tree["message"])
                .unwrap_or_else(|| format!("/ready answers {status} and does not say why")),
            verdict: verdict(&tree),
        },
    }
}

/// A server that asked its own checkpoint and found it wrong does not become ready: the reasons of the condition that the
/// same finding is when we ask.
fn verdict(tree: &Value) -> Option<Reason> {
    match tree["reason"].as_str()? {
        "WrongContract" => Some(Reason::ContractMismatch),
        "ProbeFailed" => Some(match tree["finding"].as_str() {
            Some("DeadHead") => Reason::DeadHead,
            Some("MalformedAnswers") => Reason::MalformedAnswers,
            // Its engine could not compute, which says nothing of the checkpoint: the deadline decides.
            Some("NoAnswer") => return None,
            _ => Reason::WrongAnswers,
        }),
        _ => None,
    }
}

/// Reads the answer of `/health`. Which checkpoint is meant: the one with the wanted digest, else the one with the contract
/// that the server names, else the first that is loaded.
///
/// # Errors
/// When it is no answer of a Laya server; says what it is.
pub fn read_health(status: u16, body: &[u8], wanted: Option<&str>) -> Result<HealthSaid, String> {
    if status != 200 {
        return Err(format!("/health answers {status}"));
    }
    let tree: Value =
        serde_json::from_slice(body).map_err(|error| format!("/health is no JSON: {error}"))?;
    if !tree.is_object() {
        return Err("/health is no JSON object".to_owned());
    }
    let name = meant(&tree, wanted);
    let of = |field: &str| match name {
        Some(name) => &tree[field][name],
        None => &Value::Null,
    };
    let checkpoint = of("checkpoints");
    let fallbacks = of("cpu_fallbacks");
    Ok(HealthSaid {
        digest: text(&checkpoint["digest"]),
        contract: text(&checkpoint["contract"]).or_else(|| text(&tree["contract"])),
        claimed: claimed(&tree, checkpoint, of("checkpoint_devices")),
        fallbacks: fallbacks["count"].as_u64().unwrap_or(0),
        last_reason: text(&fallbacks["last_reason"]),
    })
}

/// Name of the checkpoint that is meant.
fn meant<'a>(tree: &'a Value, wanted: Option<&str>) -> Option<&'a str> {
    let checkpoints = tree["checkpoints"].as_object();
    let with = |field: &str, value: Option<&str>| {
        let value = value?;
        let found = checkpoints?
            .iter()
            .find(|(_, checkpoint)| checkpoint[field] == value)?;
        Some(found.0.as_str())
    };
    let first_key = |tree: &'a Value| Some(tree.as_object()?.keys().next()?.as_str());
    with("digest", wanted)
        .or_else(|| with("contract", tree["contract"].as_str()))
        .or_else(|| tree["loaded"][0].as_str())
        .or_else(|| first_key(&tree["checkpoints"]))
        .or_else(|| first_key(&tree["checkpoint_devices"]))
}

/// The device that is claimed: of the checkpoint, else by its name, else of the server unless that is a preference only.
fn claimed(tree: &Value, checkpoint: &Value, by_name: &Value) -> Option<String> {
    let own = text(&checkpoint["device"]["kind"]).or_else(|| text(by_name));
    let said = own.or_else(|| {
        let preference = tree["device_is_preference"] == Value::Bool(true);
        text(&tree["device"]).filter(|_| !preference)
    })?;
    // `cuda:1` is a GPU like any other.
    let kind = said.split(':').next().unwrap_or_default();
    Some(kind.to_ascii_lowercase())
}

/// A text, of bounded length and without control characters.
fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let clean = text
        .chars()
        .take(MAX_TEXT)
        .map(|c| if c.is_control() { ' ' } else { c });
    Some(clean.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn said(tree: &Value, wanted: Option<&str>) -> HealthSaid {
        read_health(200, tree.to_string().as_bytes(), wanted).unwrap()
    }

    #[test]
    fn control_plane_12_the_claimed_device_is_read_in_its_order() {
        let cases = [
            // checkpoints.<name>.device.kind where that key is there
            (
                json!({"loaded": ["m"], "device": "cpu", "checkpoint_devices": {"m": "cpu"},
                "checkpoints": {"m": {"device": {"kind": "cuda"}}}}),
                Some("cuda"),
            ),
            // else checkpoint_devices.<name>
            (
                json!({"loaded": ["m"], "device": "cuda", "checkpoint_devices": {"m": "cpu"}}),
                Some("cpu"),
            ),
            // else the string, unless it is a preference
            (
                json!({"device": "cuda:0", "device_is_preference": false}),
                Some("cuda"),
            ),
            (json!({"device": "CUDA"}), Some("cuda")),
            (
                json!({"device": "cuda", "device_is_preference": true}),
                None,
            ),
            (json!({"status": "ok"}), None),
            (json!({"device": 7, "checkpoints": [], "loaded": "x"}), None),
        ];
        for (tree, expected) in cases {
            assert_eq!(said(&tree, None).claimed.as_deref(), expected, "{tree}");
        }
    }

    #[test]
    fn the_checkpoint_that_is_meant_is_the_wanted_one() {
        let tree = json!({
            "loaded": ["other", "m"], "contract": "sha256:c",
            "checkpoints": {
                "m": {"digest": "sha256:d", "contract": "sha256:c", "device": {"kind": "cuda"}},
                "other": {"digest": "sha256:e", "contract": "sha256:f", "device": {"kind": "cpu"}},
            },
            "cpu_fallbacks": {"m": {"count": 3, "last_reason": "out of memory\u{1b}[31m"}, "other": {"count": 9}},
        });
        let wanted = said(&tree, Some("sha256:d"));
        assert_eq!(
            (wanted.digest.as_deref(), wanted.fallbacks),
            (Some("sha256:d"), 3)
        );
        assert_eq!(wanted.last_reason.as_deref(), Some("out of memory [31m"));
        let by_contract = said(&tree, Some("sha256:nobody"));
        assert_eq!(by_contract.digest.as_deref(), Some("sha256:d"));
        let mut tree = tree;
        tree["contract"].take();
        let first_loaded = said(&tree, None);
        assert_eq!(first_loaded.digest.as_deref(), Some("sha256:e"));
        assert_eq!(first_loaded.contract.as_deref(), Some("sha256:f"));
    }

    #[test]
    fn what_is_no_laya_server_is_told_apart() {
        for (status, body) in [
            (404, "{}"),
            (200, "<html>"),
            (200, "[]"),
            (200, r#"{"a":NaN}"#),
            (503, "{}"),
        ] {
            assert!(
                read_health(status, body.as_bytes(), None).is_err(),
                "{status} {body}"
            );
        }
    }

    #[test]
    fn readiness_as_wire_2_5_gives_it() {
        let no = |reason: &str, message: &str| ReadySaid::No {
            reason: reason.to_owned(),
            message: message.to_owned(),
            verdict: None,
        };
        let never = |reason: &str, verdict| ReadySaid::No {
            reason: reason.to_owned(),
            message: "m".to_owned(),
            verdict: Some(verdict),
        };
        let cases = [
            (200, r#"{"ready":true}"#, ReadySaid::Yes),
            (200, "OK", ReadySaid::Yes),
            (
                200,
                r#"{"ready":false,"reason":"Draining","message":"bye"}"#,
                no("Draining", "bye"),
            ),
            (
                503,
                r#"{"ready":false,"reason":"WrongContract","message":"m"}"#,
                never("WrongContract", Reason::ContractMismatch),
            ),
            (
                503,
                r#"{"ready":false,"reason":"ProbeFailed","message":"m"}"#,
                never("ProbeFailed", Reason::WrongAnswers),
            ),
            (
                503,
                r#"{"ready":false,"reason":"ProbeFailed","message":"m","finding":"DeadHead"}"#,
                never("ProbeFailed", Reason::DeadHead),
            ),
            (
                503,
                r#"{"ready":false,"reason":"ProbeFailed","message":"m","finding":"MalformedAnswers"}"#,
                never("ProbeFailed", Reason::MalformedAnswers),
            ),
            (
                503,
                r#"{"ready":false,"reason":"ProbeFailed","message":"m","finding":"NoAnswer"}"#,
                no("ProbeFailed", "m"),
            ),
            (
                503,
                r#"{"ready":false,"reason":"ProbeFailed","message":"m","finding":["x"]}"#,
                never("ProbeFailed", Reason::WrongAnswers),
            ),
            (
                503,
                r#"{"ready":false,"reason":"LoadFailed","message":"m","finding":"DeadHead"}"#,
                no("LoadFailed", "m"),
            ),
            (
                503,
                "upstream",
                no("", "/ready answers 503 and does not say why"),
            ),
            (404, r#"{"detail":"Not Found"}"#, ReadySaid::NoSuchPath),
            (405, "", ReadySaid::NoSuchPath),
        ];
        for (status, body, expected) in cases {
            assert_eq!(
                read_ready(status, body.as_bytes()),
                expected,
                "{status} {body}"
            );
        }
    }

    proptest! {
        #[test]
        fn fault_26_whatever_a_server_says_is_read_or_refused(body in any::<Vec<u8>>(), status in 100_u16..600) {
            let _ = read_ready(status, &body);
            let _ = read_health(status, &body, Some("sha256:d"));
        }

        #[test]
        fn fault_26_fields_of_any_form_tell_nothing_and_harm_nothing(
            field in prop::sample::select(vec!["checkpoints", "loaded", "device", "checkpoint_devices", "cpu_fallbacks", "contract"]),
            junk in prop::sample::select(vec![json!(null), json!(1e300), json!([[]]), json!({"m": []}), json!("x"), json!({"m": {"device": 1}})]),
        ) {
            let mut tree = json!({
                "status": "ok", "loaded": ["m"], "device": "cpu", "checkpoint_devices": {"m": "cpu"},
                "checkpoints": {"m": {"digest": "sha256:d", "device": {"kind": "cpu"}}}, "cpu_fallbacks": {"m": {"count": 1}},
            });
            tree[field] = junk;
            prop_assert!(read_health(200, tree.to_string().as_bytes(), Some("sha256:d")).is_ok());
        }
    }
}
