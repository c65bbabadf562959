//! `/health` and `/ready` (wire.md 2.4, 2.5): what is resident, on what it runs, and whether it may be asked.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use decision::json::{Object, Value, write};
use http::{Response, StatusCode};

use super::{Surface, reply};
use crate::host::Loaded;

type Resident = (String, Arc<Loaded>);

impl Surface {
    /// The whole `/health`.
    pub(super) fn health(&self) -> String {
        let resident = self.host.all_resident();
        let mut health = Object::new();
        health.push("status", "ok");
        let names: Vec<Value> = resident
            .iter()
            .map(|(name, _)| name.as_str().into())
            .collect();
        health.push("loaded", names);
        health.push("revisions", revisions(&self.host.all_resident_by_load()));
        health.push("device", "cpu");
        health.push("device_is_preference", resident.is_empty());
        health.push("checkpoint_devices", by_name(&resident, &|_| "cpu".into()));
        let fallbacks = by_name(&resident, &|_| Value::Object(no_fallbacks()));
        health.push("cpu_fallbacks", fallbacks);
        if let Some(limit) = self.host.loading().idle_unload {
            health.push("idle_unload_seconds", limit.as_secs_f64());
            let idle = self.host.idle().unwrap_or(Duration::ZERO).as_secs_f64();
            health.push("idle_seconds", (idle * 10.0).round() / 10.0);
        }
        self.push_contract(&mut health, &resident);
        write(&Value::Object(health))
    }

    /// What is shown once a resident checkpoint names a contract.
    fn push_contract(&self, health: &mut Object, resident: &[Resident]) {
        let ordered = self.in_order(resident);
        let named = ordered.iter().find_map(|(_, loaded)| {
            let info = loaded.checkpoint().info();
            Some((info, info.contract.as_ref()?))
        });
        let Some((info, contract)) = named else {
            return;
        };
        let questions = info
            .questions
            .iter()
            .flat_map(|contract| contract.questions());
        let ids: Vec<Value> = questions
            .map(|question| question.id.as_str().into())
            .collect();
        health.push("ok", true);
        health.push("decisions", ids);
        health.push("contract", contract.digest.as_str());
        health.push("shape", contract.shape.as_str());
        health.push("checkpoints", checkpoints(resident, Probe::Hidden));
    }

    /// `/ready`; with all details only for a caller who has the key.
    pub(super) fn ready(&self, trusted: bool) -> Response<Body> {
        let mut body = Object::new();
        let problem = self.readiness.problem();
        body.push("ready", problem.is_none());
        let status = match problem {
            None => StatusCode::OK,
            Some(problem) => {
                body.push("reason", problem.reason.as_str());
                body.push("message", problem.message);
                if let Some(finding) = problem.finding {
                    body.push("finding", finding);
                }
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        if trusted {
            body.push(
                "checkpoints",
                checkpoints(&self.host.all_resident(), Probe::Shown),
            );
        }
        reply::json(status, write(&Value::Object(body)))
    }

    /// Resident checkpoints in the order of the registry.
    fn in_order(&self, resident: &[Resident]) -> Vec<Resident> {
        let registry = &self.host.loading().registry;
        let mut ordered = resident.to_vec();
        ordered.sort_by_key(|(name, _)| registry.position(name));
        ordered
    }
}

/// Whether the time of the probe is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    Shown,
    Hidden,
}

/// One entry for each checkpoint, in the order given.
fn by_name(resident: &[Resident], value: &dyn Fn(&Loaded) -> Value) -> Object {
    let one = |(name, loaded): &Resident| (name.clone(), value(loaded));
    resident.iter().map(one).collect()
}

/// The commit of each, in the order of loading.
fn revisions(by_load: &[Resident]) -> Object {
    by_name(by_load, &|loaded| loaded.commit.clone().into())
}

fn checkpoints(resident: &[Resident], probe: Probe) -> Object {
    by_name(resident, &|loaded| checkpoint(loaded, probe))
}

fn no_fallbacks() -> Object {
    let mut fallbacks = Object::new();
    fallbacks.push("count", 0);
    fallbacks.push("last_reason", Value::Null);
    fallbacks
}

fn checkpoint(loaded: &Loaded, probe: Probe) -> Value {
    let info = loaded.checkpoint().info();
    let mut device = Object::new();
    device.push("kind", "cpu");
    device.push("name", Value::Null);
    device.push("index", Value::Null);
    let mut object = Object::new();
    object.push("digest", info.digest.as_str());
    object.push("contract", loaded.contract());
    object.push("verified", info.verified);
    object.push("device", device);
    object.push("precision", loaded.checkpoint().precision().as_str());
    object.push("parity", loaded.parity.as_str());
    if probe == Probe::Shown {
        let millis = loaded.probe.as_secs_f64() * 1000.0;
        object.push("probe_ms", (millis * 10.0).round() / 10.0);
    }
    Value::Object(object)
}
