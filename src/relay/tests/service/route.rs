//! What `relay route` tells a router of its user.

use serde_json::json;

use crate::fake_router::FakeRouter;
use crate::{Home, decision};

#[test]
fn a_router_is_told_what_the_user_set() {
    let (home, router) = (Home::new(), FakeRouter::start());
    router.answer("POST /v1/route", &decision("Fix the pager"));
    home.write(
        "settings.json",
        r#"{"laya": {"policy": "economy", "quota": {"anthropic": 0.5}, "minConfidence": 0.7, "exploration": 0,
            "telemetry": false, "memory": false, "escalateAfterFailures": 2, "toolRouting": "enforce",
            "switchPrice": false, "baseline": "a/b", "models": {"fast": ["a/c"]}}}"#,
    );
    let arguments = [
        "route",
        "--dry-run",
        "--tier",
        "strong",
        "--providers",
        "anthropic,a",
        "Fix the pager",
    ];
    let ended = home.run(&router.url(), &arguments);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{ended:?}");
    assert_eq!(
        router.asked()[0].body,
        json!({
            "request": "Fix the pager", "kind": "user", "profile": "economy", "providers": ["anthropic", "a"],
            "quota": {"anthropic": 0.5},
            "settings": {
                "min_confidence": 0.7, "escalate_after_failures": 2, "memory": false, "telemetry": false,
                "tool_routing": "enforce", "tiers": {"fast": ["a/c"]}, "exploration": 0.0, "switch_price": false,
                "baseline": "a/b",
            },
            "constraints": {"tier": "strong"}, "dry_run": true,
        })
    );
}
