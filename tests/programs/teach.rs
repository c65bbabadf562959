//! Teaching a router a task.

use serde_json::{Value, json};

use super::Http;

/// All 18 labels of a small fix, with a tier.
pub(crate) fn labels(tier: &str) -> Value {
    json!({
        "task_type": "bug_fix", "complexity": 1, "scope": "single_file", "risk": 0, "ambiguity": 0,
        "reasoning_requirement": 1, "capability_tier": tier, "reasoning_effort": "low",
        "agent": "software-engineer", "validation_level": "unit_test", "requires_write": true,
        "requires_shell": false, "requires_tests": true, "requires_web": false, "requires_browser": false,
        "requires_database": false, "requires_git": false, "security_sensitive": false
    })
}

/// Teaches one task, as the agent does; gives its id.
pub(crate) fn teach(
    http: &Http,
    url: &str,
    text: &str,
    tier: &str,
    lesson: Option<&str>,
) -> String {
    let contract = http.get(&format!("{url}/v1/contract")).unwrap().ok();
    let mut exercise = json!({"request": text, "labels": labels(tier)});
    if let Some(lesson) = lesson {
        exercise["lesson"] = lesson.into();
    }
    let body = json!({"session": "s-1", "shape": contract["shape"], "exercises": [exercise]});
    let answer = http.post(&format!("{url}/v1/learn"), &body).unwrap().ok();
    answer["ids"][0].as_str().unwrap().to_owned()
}
