//! Tables of `plan`, and properties over random histories.

mod history;
mod server;
mod table;

use std::time::Duration;

use api::kinds::{ConditionStatus, RoutingPolicy, RoutingPolicyStatus};
use serde_json::{Value, json};

use super::plan::{Action, Observation, Presence};
use super::validate::compile;
use super::{Checked, RoutingPolicies, ServerState, Verdict};
use crate::clock::Now;
use crate::reconciler::{Plan, Reconciler, Seen};

const UID: &str = "5f2c9d0e-own";

fn now() -> Now {
    Now {
        wall: "2026-11-30T10:00:00.4Z".parse().unwrap(),
        boot: Duration::from_secs(50),
    }
}

fn policy(spec: &Value, generation: i64, status: Option<RoutingPolicyStatus>) -> RoutingPolicy {
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "metadata": {
            "name": "team", "namespace": "space", "uid": UID, "generation": generation,
            "resourceVersion": "40", "creationTimestamp": "2026-11-30T09:00:00Z",
        },
        "spec": spec,
    });
    let mut policy: RoutingPolicy = serde_json::from_value(object).unwrap();
    policy.status = status;
    policy
}

fn checked(policy: &RoutingPolicy, server: ServerState) -> Checked {
    Checked {
        compiled: compile("team", &policy.spec, "2026-11-30".parse().unwrap()).into(),
        server,
    }
}

fn planned(
    policy: &RoutingPolicy,
    server: ServerState,
    observation: Observation,
) -> Plan<RoutingPolicies> {
    RoutingPolicies::plan(
        policy,
        &checked(policy, server),
        &Seen::of(observation),
        &now(),
    )
}

/// `Ready=False/Waiting` and so on, sorted.
fn told(status: &RoutingPolicyStatus) -> Vec<String> {
    let mut told: Vec<_> = status
        .conditions
        .iter()
        .map(|condition| {
            format!(
                "{}={}/{}",
                condition.type_,
                condition.status.as_str(),
                condition.reason
            )
        })
        .collect();
    told.sort();
    told
}

fn good(number: u32) -> Value {
    json!({"deadlines": {"timeoutMillis": 1_000 + number}})
}

fn revision(spec: &Value) -> String {
    super::revision_of(&serde_json::from_value(spec.clone()).unwrap())
}
