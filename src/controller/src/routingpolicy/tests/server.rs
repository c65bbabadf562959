//! Whether a server answers a policy's questions.

use decision::relay_contract;
use serde_json::{Value, json};

use crate::routingpolicy::ServerView;
use crate::routingpolicy::inputs::has_other_contract;

fn server(status: &Value) -> ServerView {
    serde_json::from_value(json!({"metadata": {"name": "main"}, "status": status})).unwrap()
}

fn said(status: &str, reason: &str) -> Value {
    json!([{
        "type": "ContractMatched", "status": status, "reason": reason, "message": "m",
        "lastTransitionTime": "2026-11-30T10:00:00Z",
    }])
}

#[test]
fn a_server_has_another_contract_when_it_says_so() {
    let ours = relay_contract().digest().to_string();
    let reworded = format!("sha256:{}", "0".repeat(64));
    for (name, status, expected) in [
        ("nothing is known yet", json!({}), false),
        ("nothing serves", json!({"champion": null}), false),
        (
            "it serves ours",
            json!({"champion": {"contract": ours}}),
            false,
        ),
        (
            "it serves ours in another wording",
            json!({"champion": {"contract": reworded}}),
            false,
        ),
        ("it names none", json!({"champion": {"model": "v1"}}), false),
        (
            "it says so",
            json!({"conditions": said("False", "ContractMismatch")}),
            true,
        ),
        (
            "it says so of what it should serve, and serves ours",
            json!({"conditions": said("False", "ContractMismatch"), "champion": {"contract": ours}}),
            true,
        ),
        (
            "it does not know",
            json!({"conditions": said("Unknown", "ContractMismatch")}),
            false,
        ),
        (
            "it is false for another reason",
            json!({"conditions": said("False", "Waiting")}),
            false,
        ),
        (
            "it says that it matches",
            json!({"conditions": said("True", "Observed")}),
            false,
        ),
        (
            "of a form we do not know",
            json!({"champion": "all of them"}),
            false,
        ),
    ] {
        assert_eq!(has_other_contract(&server(&status)), expected, "{name}");
    }
}
