//! `--explain` through a router and in process.

use serde_json::Value;

use crate::programs::{Home, NOWHERE, Router, run};
use crate::records::facts;
use crate::same_result::KEEPS_TEXT;

/// Why the model did not judge is the one thing the traces may not share: the router has none, the command line asked
/// no router.
const NO_MODEL: &str = "the decision model did not answer: none is serving";
const NO_ROUTER: &str = "the decision model did not answer: no router answered";

const REQUESTS: &[&str] = &[
    "Fix the login token expiry",
    "Rename the author field",
    "Kérlek javítsd ki a mentéskor fellépő összeomlást",
    "Why does login fail for users in Brazil?",
    "obrigado",
];

#[test]
fn the_trace_is_the_same() {
    let home = Home::new().without_exploration();
    let policy = home.file("policy.yaml", KEEPS_TEXT);
    let router = Router::start(&home, &["--policy", policy.to_str().unwrap()]);
    for request in REQUESTS {
        let arguments = ["route", "--explain", "-o", "json", request];
        let document = |router: &str| {
            let ended = run(&mut home.relay(router, &arguments));
            assert_eq!(ended.code, 0, "{request}: {}", ended.err);
            serde_json::from_str::<serde_json::Value>(&ended.out).unwrap()
        };
        let (routed, own) = (document(&router.url()), document(NOWHERE));
        assert_eq!(facts(&routed["decision"]), facts(&own["decision"]));
        let (routed, own) = (&routed["trace"], &own["trace"]);
        assert!(routed["steps"].as_array().unwrap().len() > 5, "{routed}");
        let expected = routed.to_string().replace(NO_MODEL, NO_ROUTER);
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(&expected, own, "{request}");
        assert_ne!(routed, own, "each says why no model judged");
    }
}

#[test]
fn what_a_person_reads_is_the_same() {
    let home = Home::new().without_exploration();
    let router = Router::start(&home, &[]);
    for request in REQUESTS {
        let text = |router: &str| {
            let ended = run(&mut home.relay(router, &["route", "--explain", request]));
            assert_eq!(ended.code, 0, "{request}: {}", ended.err);
            let lines = ended.out.lines().filter(|line| !line.starts_with("id  "));
            lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
        };
        let routed = text(&router.url());
        assert!(routed.contains(NO_MODEL), "{routed}");
        assert_eq!(routed.replace(NO_MODEL, NO_ROUTER), text(NOWHERE));
    }
}
