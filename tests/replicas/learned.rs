//! What one replica is taught, the others know.

use std::time::{Duration, Instant};

use serde_json::json;
use ureq::http::Method;

use crate::programs::{Http, PATIENCE, teach};

/// Replicas know of a new dataset at the latest after this (routing.md 18).
const KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// Teaches each replica a task, and the others must answer with it.
pub(crate) fn learned_here_is_known_there(urls: &[String]) {
    let http = Http::new(PATIENCE);
    for (at, url) in urls.iter().enumerate() {
        // A word that no other task has, so that nothing else can answer for it.
        let word = format!("zq{}x{at}", std::process::id());
        let text = format!("Repair the {word} importer when the {word} header is missing");
        assert_ne!(source(&http, url, &text), "memory", "{text}");
        let id = teach(&http, url, &text, "strong", None);
        let taught = Instant::now();
        assert_eq!(
            source(&http, url, &text),
            "memory",
            "at once where it was taught"
        );
        let mut took = Duration::ZERO;
        for other in urls.iter().filter(|other| *other != url) {
            loop {
                let asked = taught.elapsed();
                if source(&http, other, &text) == "memory" {
                    took = took.max(asked);
                    break;
                }
                assert!(
                    asked < KNOWN_WITHIN,
                    "{other} does not know what {url} was taught {asked:?} before"
                );
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        eprintln!("taught at replica {at}, known everywhere after {took:?}");
        // It answers for nothing in the load that follows.
        let task = format!("{url}/v1/memory/{id}");
        http.ask(Method::DELETE, &task, None, None).unwrap().ok();
    }
}

fn source(http: &Http, url: &str, text: &str) -> String {
    let body = json!({"request": text, "dry_run": true});
    let decision = http.post(&format!("{url}/v1/route"), &body).unwrap().ok();
    decision["assessment"]["source"]
        .as_str()
        .unwrap()
        .to_owned()
}
