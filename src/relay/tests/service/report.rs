//! `relay report`.

use serde_json::{Value, json};

use crate::Home;
use crate::fake_router::FakeRouter;

fn report(decisions: u64) -> Value {
    let group = json!({"decisions": decisions, "judged": 0, "successes": 0});
    json!({
        "since": "2026-11-23T14:00:00.000Z", "until": "2026-11-30T14:00:00.000Z", "total": group,
        "by_tier": {"fast": group}, "by_source": {"rules": group}, "escalations": 0, "provider_moves": 0,
        "explorations": 0,
        "cost": {"estimated": 0.5, "baseline": 2.0, "savings": 1.5, "unknown": 0, "reported": 0.0},
        "assumptions": ["the baseline would have needed the same tokens"],
    })
}

#[test]
fn shows_a_week_unless_another_span_is_named() {
    let (home, router) = (Home::new(), FakeRouter::start());
    router.answer("GET /v1/report?since=7d", &report(3));
    router.answer(
        "GET /v1/report?since=2026-11-01T00%3A00%3A00.000Z",
        &report(0),
    );
    let ended = home.run(&router.url(), &["report"]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{ended:?}");
    for told in [
        "  all                     3         0    -\n",
        "    fast                  3         0    -\n",
        "cost        $0.50 estimated, $2.00 on the baseline: $1.50 saved (75%)\n",
        "  - the baseline would have needed the same tokens\n",
    ] {
        assert!(
            ended.out.contains(told),
            "`{told}` is missing in:\n{}",
            ended.out
        );
    }
    let ended = home.run(&router.url(), &["report", "--since", "2026-11-01"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.starts_with("No decisions from "), "{}", ended.out);
    let ended = home.run(&router.url(), &["report", "-o", "json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&ended.out).unwrap(),
        report(3)
    );
    let ended = home.run(&router.url(), &["report", "--since", "yesterday"]);
    assert_eq!((ended.code, ended.out.as_str()), (2, ""));
    assert!(ended.err.contains("7d"), "{}", ended.err);
}
