//! What models run in: whether it answers, its version, its GPU, room for a second server, space for versions, and what is
//! in the way.

use super::{Check, GIB, TOO_LITTLE};
use crate::daemon::calls::{self, Engine};
use crate::facts::bytes;
use crate::server::Server;
use crate::verbs::status::{Missing, engine_line, engine_problems};

/// Memory of the smallest server (control-plane 3), in bytes.
const SMALLEST_SERVER: u64 = GIB;

/// Asks the daemon. One of an older release has no engine, which is said.
pub(super) async fn check(server: &Server, checks: &mut Vec<Check>) {
    match calls::engine(server).await {
        Ok(engine) => checks.extend(judge(&engine)),
        Err(error) => checks.push(Check::warn(
            "engine",
            format!("not known: {}", error.line()),
            error.hint_text().unwrap_or("relayctl down && relayctl up"),
        )),
    }
}

/// What its answer comes to.
fn judge(engine: &Engine) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut problems = engine_problems(engine).into_iter();
    let chosen = if engine.chosen.is_empty() {
        String::new()
    } else {
        format!(", chosen by {}", engine.chosen)
    };
    let found = format!("{}{chosen}", engine_line(engine));
    if engine.reachable {
        checks.push(Check::ok("engine", found));
        checks.push(match engine.gpu {
            Some(gpu) => Check::ok("gpu", bytes(gpu.memory_bytes)),
            None => Check::ok("gpu", "none; models run on the CPU"),
        });
        checks.extend(room(engine));
        checks.extend(volume(engine));
    } else if let Some(Missing { what, fix }) = problems.next() {
        checks.push(Check::fail("engine", what, fix));
    }
    for stranger in &engine.strangers {
        let Missing { what, fix } = match problems.next() {
            Some(problem) => problem,
            None => Missing::new(&stranger.name, "look who has it"),
        };
        checks.push(Check::warn("strangers", what, fix));
    }
    for _ in &engine.unclaimed {
        if let Some(Missing { what, fix }) = problems.next() {
            checks.push(Check::warn("unclaimed", what, fix));
        }
    }
    checks
}

/// Whether a second server of the smallest size fits beside what runs (control-plane 10).
fn room(engine: &Engine) -> Option<Check> {
    let room = engine.room?;
    let limit = room.engine_bytes / 5 * 4;
    let left = limit.saturating_sub(room.ours_bytes);
    let left = room.available_bytes.map_or(left, |available| {
        left.min(available.saturating_sub(GIB / 2))
    });
    let found = format!(
        "{} of memory for another server ({} of ours run in {})",
        bytes(left),
        bytes(room.ours_bytes),
        bytes(room.engine_bytes)
    );
    Some(if left >= SMALLEST_SERVER {
        Check::ok("room", found)
    } else {
        Check::warn(
            "room",
            found,
            "a rollout stops the old server first, and rules answer meanwhile; free memory to avoid that",
        )
    })
}

/// Whether another version fits.
fn volume(engine: &Engine) -> Option<Check> {
    let Some(volume) = &engine.models_volume else {
        let why = engine.models_unknown.as_deref()?;
        return Some(Check::ok("models", format!("room is not known: {why}")));
    };
    let mut found = volume.room();
    if volume.free_bytes < GIB {
        found.push_str(&format!(", another version needs about {}", bytes(GIB)));
    }
    let fix = "relayctl model prune deletes files that no object names, relayctl model rm NAME removes a version";
    // What was so once need not be so now, so that is no failure.
    let is_now = volume.seen_at.is_none();
    Some(if is_now && volume.free_bytes < TOO_LITTLE {
        Check::fail("models", found, fix)
    } else if volume.free_bytes < GIB {
        Check::warn("models", found, fix)
    } else {
        Check::ok("models", found)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::verbs::doctor::Health;

    fn judged(tree: Value) -> Vec<(&'static str, Health)> {
        let engine: Engine = serde_json::from_value(tree).unwrap();
        judge(&engine)
            .into_iter()
            .map(|check| (check.name, check.health))
            .collect()
    }

    #[test]
    fn an_engine_is_judged_whole() {
        let good = json!({"backend": "docker", "chosen": "first up", "reachable": true, "memoryBytes": 16 * GIB,
            "room": {"engineBytes": 16 * GIB, "oursBytes": GIB}, "gpu": {"memoryBytes": 24 * GIB},
            "modelsVolume": {"name": "v", "freeBytes": 50 * GIB, "totalBytes": 100 * GIB}});
        let ok = Health::Ok;
        assert_eq!(
            judged(good),
            [("engine", ok), ("gpu", ok), ("room", ok), ("models", ok)]
        );
        let tight = json!({"backend": "docker", "reachable": true, "room": {"engineBytes": 4 * GIB, "oursBytes": 3 * GIB},
            "modelsVolume": {"name": "v", "freeBytes": 1 << 20, "totalBytes": GIB},
            "strangers": [{"name": "127.0.0.1:8737", "reason": "PortInUse", "holder": "x"}],
            "unclaimed": [{"kind": "LayaServer", "name": "main", "namespace": "default", "children": ["c"]}]});
        assert_eq!(
            judged(tight),
            [
                ("engine", ok),
                ("gpu", ok),
                ("room", Health::Warn),
                ("models", Health::Fail),
                ("strangers", Health::Warn),
                ("unclaimed", Health::Warn)
            ]
        );
        let gone = json!({"backend": "docker", "reachable": false, "reason": "EngineUnavailable", "message": "refused"});
        assert_eq!(judged(gone), [("engine", Health::Fail)]);
        assert_eq!(
            judged(json!({"backend": "embedded", "reachable": true})),
            [("engine", ok), ("gpu", ok)]
        );
    }

    #[test]
    fn room_that_was_seen_earlier_is_no_failure() {
        for (free, seen_at, expected) in [
            (1_u64 << 20, None, Health::Fail),
            (1 << 20, Some("2026-11-30T10:00:00Z"), Health::Warn),
            (50 * GIB, Some("2026-11-30T10:00:00Z"), Health::Ok),
        ] {
            let tree = json!({"reachable": true, "modelsVolume":
                {"name": "v", "freeBytes": free, "totalBytes": 100 * GIB, "seenAt": seen_at}});
            assert_eq!(judged(tree)[2], ("models", expected), "{free} {seen_at:?}");
        }
    }

    #[test]
    fn memory_of_the_machine_counts_too() {
        let engine: Engine = serde_json::from_value(
            json!({"room": {"engineBytes": 16 * GIB, "oursBytes": 0, "availableBytes": GIB}}),
        )
        .unwrap();
        let check = room(&engine).unwrap();
        assert_eq!(check.health, Health::Warn);
        assert!(
            check.found.starts_with("537 MB of memory"),
            "{}",
            check.found
        );
    }
}
