//! What one replica is taught, the others know.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ureq::http::Method;

use crate::programs::{Http, PATIENCE, teach, until, workspace};

/// Replicas know of a new dataset at the latest after this (routing.md 18).
const KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// Tasks that are taught in vain before a replica counts as late: a machine that builds something else beside this may be
/// late itself.
const TRIES: usize = 3;

/// Teaches each replica a task, and the others must answer with it.
pub(crate) fn learned_here_is_known_there(urls: &[String]) {
    let http = Http::new(PATIENCE);
    for (at, url) in urls.iter().enumerate() {
        let tries = (0..TRIES).map(|number| known_after(&http, urls, at, number));
        let mut took = Vec::new();
        let known = tries
            .inspect(|one| took.push(*one))
            .any(|one| one < KNOWN_WITHIN);
        eprintln!("taught at replica {at}, known everywhere after {took:?}");
        assert!(known, "others know late what {url} was taught: {took:?}");
    }
}

/// Teaches one replica a task and tells how long it was until all others answered with it.
fn known_after(http: &Http, urls: &[String], at: usize, number: usize) -> Duration {
    let url = &urls[at];
    // A word that no other task has, so that nothing else can answer for it.
    let word = format!("zq{}x{at}n{number}", std::process::id());
    let text = format!("Repair the {word} importer when the {word} header is missing");
    assert_ne!(source(http, url, &text), "memory", "{text}");
    let id = teach(http, url, &text, "strong", None);
    let taught = Instant::now();
    assert_eq!(
        source(http, url, &text),
        "memory",
        "at once where it was taught"
    );
    let mut took = Duration::ZERO;
    for other in urls.iter().filter(|other| *other != url) {
        took = took.max(until("the others know", || {
            let asked = taught.elapsed();
            match source(http, other, &text).as_str() {
                "memory" => Ok(asked),
                other => Err(other.to_owned()),
            }
        }));
    }
    // It answers for nothing in the load that follows.
    let task = format!("{url}/v1/memory/{id}");
    http.ask(Method::DELETE, &task, None, None).unwrap().ok();
    took
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
