//! What one replica is taught, the others know.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ureq::http::Method;

use crate::programs::{Http, PATIENCE, teach, workspace};

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

/// Tasks of the labelled data: those that the routers were taught, and others.
pub(crate) struct Texts {
    pub(crate) taught: Vec<String>,
    pub(crate) untaught: Vec<String>,
}

/// Most tasks of one lesson (training.md 2.3).
const LESSON: usize = 60;

/// Teaches the first labelled tasks through one replica.
pub(crate) fn teach_most(url: &str) -> Texts {
    let http = Http::new(PATIENCE);
    let lines = std::fs::read_to_string(workspace().join("tests/data/requests.jsonl")).unwrap();
    let rows = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<Value> = rows.collect();
    let (mut taught, mut untaught) = (rows, Vec::new());
    untaught.extend(taught.drain(LESSON..));
    let contract = http.get(&format!("{url}/v1/contract")).unwrap().ok();
    let exercise = |row: &Value| json!({"request": row["request"], "labels": row["expected"]});
    let learn = |rows: &[Value]| {
        let exercises: Vec<_> = rows.iter().map(exercise).collect();
        let body = json!({"session": "load", "shape": contract["shape"], "exercises": exercises});
        http.post(&format!("{url}/v1/learn"), &body).unwrap()
    };
    let answer = learn(&taught);
    if answer.status == 422 {
        // A few labels contradict a rule of the policy; which ones, it says.
        let errors = answer.json()["errors"].to_string();
        let mut at = 0..;
        taught.retain(|_| !errors.contains(&format!("exercises[{}]", at.next().unwrap())));
        assert!(taught.len() > LESSON / 2, "{errors}");
        learn(&taught).ok();
    }
    let text = |row: &Value| row["request"].as_str().unwrap().to_owned();
    // The others know within a second; until then they ask a model.
    std::thread::sleep(KNOWN_WITHIN);
    Texts {
        taught: taught.iter().map(text).collect(),
        untaught: untaught.iter().map(text).collect(),
    }
}
