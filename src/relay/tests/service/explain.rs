//! `relay explain`.

use api::problem::{Problem, Slug};
use serde_json::{Value, json};

use crate::fake_router::FakeRouter;
use crate::{Home, assert_harmless, decision};

const ID: &str = "0193d2b1-7c4e-7a10-8f00-000000000001";

/// A decision with everything that can be told of one.
fn known() -> Value {
    let mut known = decision("Fix the login token expiry");
    known["id"] = json!(ID);
    known["parent_id"] = json!("0193d2b1-7c4e-7a10-8f00-000000000000");
    known["kind"] = json!("escalation");
    known["request"] = json!("Fix the\n\u{1b}]0;owned\u{7} login token expiry");
    known["escalations"] = json!([
        {"reason": "security_sensitive", "from": "balanced", "to": "strong"},
        {"reason": "provider_unavailable", "from": "strong", "to": "strong"},
    ]);
    known["warnings"] = json!([{"code": "price_stale", "message": "prices are old\u{7}"}]);
    known["counterfactual"] =
        json!({"baseline": "anthropic/claude-opus-5-5", "cost_usd": 2.0, "savings_usd": 1.5});
    known["selected"]["estimate"] = json!({"cost_usd": 0.5, "upper_bound": true});
    known["provenance"]["fallback"] = json!("timeout");
    known["provenance"]["memory"] =
        json!({"task": "s00012", "similarity": 0.71, "guards": ["negation"]});
    known["outcomes"] = json!([
        {
            "decision_id": ID, "attempt": 1, "result": "provider_error", "tests_passed": null, "tool_failures": 2,
            "final": false, "provider_error": {"status": 529, "message": "over\u{1b}loaded"},
            "recorded_at": "2026-11-30T10:41:00.000Z",
        },
        {
            "decision_id": ID, "attempt": 2, "result": "success", "tests_passed": true, "tool_failures": 0,
            "corrected": true, "final": true,
            "usage": {"input_tokens": 12345, "cached_input_tokens": 10000, "cache_write_tokens": 0,
                      "output_tokens": 678, "cost_usd": 0.25, "duration_ms": 31500},
            "recorded_at": "2026-11-30T10:45:00.000Z",
        },
    ]);
    known
}

#[test]
fn tells_grounds_moves_and_what_came_of_it() {
    let (home, router) = (Home::new(), FakeRouter::start());
    router.answer(&format!("GET /v1/decisions/{ID}"), &known());
    let ended = home.run(&router.url(), &["explain", ID]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{ended:?}");
    for told in [
        "strong  anthropic/claude-opus-5-5  medium   (rules, confidence 0.50)\n",
        "warning     price_stale: prices are old\\u{7}\n",
        "  text          \"Fix the \\u{1b}]0;owned\\u{7} login token expiry\"\n",
        "  kind          a move within a task, after failures\n",
        "  follows       0193d2b1-7c4e-7a10-8f00-000000000000\n",
        "  judged by     rules, because the decision model did not answer in time\n",
        "  memory        task s00012, 0.71 similar; guards: negation\n",
        "  rules         authentication\n",
        "  raises        balanced to strong (security sensitive), stays strong (provider unavailable)\n",
        "  validation    review, required\n",
        "  tools         file edits, tests\n",
        "  estimated     at most $0.50 (the price of cached input is unknown)\n",
        "  baseline      $2.00 on anthropic/claude-opus-5-5\n",
        "  savings       $1.50\n",
        "  attempt 1     2026-11-30 10:41 UTC   the provider failed, no check ran, 2 failed tool calls, \
         status 529 over\\u{1b}loaded, another attempt followed\n",
        "  attempt 2     2026-11-30 10:45 UTC   went well, corrected by the next message, checks passed, \
         12,345 tokens in (10,000 cached), 678 out, $0.25, 31.5 s\n",
        "  questions     contract ",
        "shape 69666a987e7b\n",
    ] {
        assert!(
            ended.out.contains(told),
            "`{told}` is missing in:\n{}",
            ended.out
        );
    }
    assert_harmless(&ended.out);
}

#[test]
fn json_is_the_record_with_its_outcomes() {
    let (home, router) = (Home::new(), FakeRouter::start());
    let known = known();
    router.answer(&format!("GET /v1/decisions/{ID}"), &known);
    for form in [&["-o", "json"][..], &["--json"]] {
        let ended = home.run(&router.url(), &[&["explain", ID], form].concat());
        assert_eq!(ended.code, 0, "{ended:?}");
        let shown: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(shown, known);
    }
}

#[test]
fn codes_tell_what_went_wrong() {
    let (home, router) = (Home::new(), FakeRouter::start());
    let line = format!("GET /v1/decisions/{ID}");
    let none = Problem::new(Slug::NotFound, format!("no decision {ID}"));
    let away = Problem::new(Slug::Unavailable, "the store does not answer");
    router.refuse(&line, &none);
    let ended = home.run(&router.url(), &["explain", ID]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""));
    assert!(
        ended
            .err
            .starts_with(&format!("relay: no decision {ID}\nhint: ")),
        "{}",
        ended.err
    );
    router.refuse(&line, &away);
    let ended = home.run(&router.url(), &["explain", ID]);
    assert_eq!((ended.code, ended.out.as_str()), (4, ""));
    assert!(
        ended.err.contains("cannot answer now") && ended.err.contains("the store does not answer"),
        "{}",
        ended.err
    );
    router.answer(&line, &json!({"id": ID}));
    let ended = home.run(&router.url(), &["explain", ID]);
    assert_eq!(ended.code, 4);
    assert!(
        ended.err.contains("its answer is no decision"),
        "{}",
        ended.err
    );
    let ended = home.run("http://127.0.0.1:9", &["explain", ID]);
    assert_eq!(ended.code, 4);
    assert!(
        ended.err.contains("hint: start one with `relayd router`"),
        "{}",
        ended.err
    );
    for arguments in [
        &["explain"][..],
        &["explain", "latest"],
        &["explain", ID, ID],
    ] {
        assert_eq!(home.run(&router.url(), arguments).code, 2, "{arguments:?}");
    }
    router.demand("secret-key");
    let ended = home.run(&router.url(), &["explain", ID]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("hint: its key goes into LAYA_API_KEY"),
        "{}",
        ended.err
    );
}
