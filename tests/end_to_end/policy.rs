//! A policy that is an object: edited while requests run, refused, taken up again after a kill.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::programs::{Answer, Home, Http, PATIENCE, Router, until};

const PATH: &str = "/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies";
const EDITS: u32 = 100;
/// The bar of 10,000 is measured by `tests/bench/objects_bars.py`, in a release build.
const REQUESTS: usize = 3_000;
const CLIENTS: usize = 4;

/// The object API of a laptop, over its port.
struct Objects {
    http: Http,
    base: String,
}

impl Objects {
    fn of(home: &Home) -> Self {
        let token = home.text("daemon/token").unwrap();
        let endpoint: Value =
            serde_json::from_str(&home.text("daemon/endpoint.json").unwrap()).unwrap();
        Self {
            http: Http::new(PATIENCE).with_key(&token),
            base: endpoint["url"].as_str().unwrap().to_owned(),
        }
    }

    fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let url = format!("{}{PATH}{path}", self.base);
        self.http.ask(method, &url, body, None).unwrap()
    }

    fn create(&self, spec: &Value) -> Answer {
        let object = json!({
            "apiVersion": "relay.dev/v1alpha1",
            "kind": "RoutingPolicy",
            "metadata": {"name": "default"},
            "spec": spec,
        });
        self.ask(Method::POST, "", Some(&object))
    }

    fn get(&self) -> Value {
        self.ask(Method::GET, "/default", None).ok()
    }

    /// Writes another spec over what is there; somebody else's write in between is read again, as clients do.
    fn edit(&self, spec: &Value) -> Value {
        until("the edit is stored", || {
            let mut object = self.get();
            object["spec"] = spec.clone();
            let answer = self.ask(Method::PUT, "/default", Some(&object));
            match answer.status {
                200 => Ok(answer.json()),
                _ => Err(format!("{answer:?}")),
            }
        })
    }

    /// The revision that was accepted for this generation or a later one.
    fn accepted(&self, generation: i64) -> String {
        until("the policy is accepted", || {
            let object = self.get();
            let status = &object["status"];
            match (
                status["acceptedGeneration"].as_i64(),
                status["acceptedRevision"].as_str(),
            ) {
                (Some(seen), Some(revision)) if seen >= generation => Ok(revision.to_owned()),
                _ => Err(status.to_string()),
            }
        })
    }
}

fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap()
}

fn in_force(router: &Router) -> String {
    let policy = router.get("/v1/policy").ok();
    policy["revision"].as_str().unwrap().to_owned()
}

fn until_in_force(router: &Router, revision: &str) {
    until("the revision is in force", || match in_force(router) {
        now if now == revision => Ok(()),
        now => Err(format!("{now} instead of {revision}")),
    });
}

#[test]
fn a_hundred_edits_lose_no_request_and_every_decision_names_a_revision_that_was_accepted() {
    let home = Home::new();
    let router = Router::local(&home, &["--daemon-port", "0"]);
    let objects = Objects::of(&home);
    let created = objects.create(&json!({"profile": "economy"}));
    assert_eq!(created.status, 201, "{created:?}");
    let mut revisions = BTreeSet::from([objects.accepted(1)]);
    until_in_force(&router, revisions.first().unwrap());

    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let named = Arc::new(Mutex::new(BTreeSet::new()));
    let url = format!("{}/v1/route", router.url());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (stop, answered, named, url) =
                (stop.clone(), answered.clone(), named.clone(), url.clone());
            thread::spawn(move || {
                let http = Http::new(PATIENCE);
                let mut seen = BTreeSet::new();
                let mut sent = 0;
                while !stop.load(Ordering::Relaxed) || answered.load(Ordering::Relaxed) < REQUESTS {
                    sent += 1;
                    let body =
                        json!({"request": format!("Rename field {client}-{sent} of the form")});
                    let decision = http.post(&url, &body).unwrap().ok();
                    let policy = &decision["provenance"]["policy"];
                    seen.insert(policy["revision"].as_str().unwrap().to_owned());
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                named.lock().unwrap().extend(seen);
            })
        })
        .collect();
    for edit in 0..EDITS {
        let profile = ["balanced", "quality", "critical", "economy"][edit as usize % 4];
        let stored = objects.edit(&json!({
            "profile": profile,
            "privacy": {"retentionDays": 10 + edit},
        }));
        let revision = objects.accepted(generation(&stored));
        until_in_force(&router, &revision);
        revisions.insert(revision);
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    assert!(answered.load(Ordering::Relaxed) >= REQUESTS);
    assert_eq!(revisions.len(), 1 + EDITS as usize);
    let named = named.lock().unwrap();
    let unknown: Vec<_> = named.difference(&revisions).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(named.len() > 10, "requests ran beside the edits: {named:?}");
}

#[test]
fn an_edit_that_is_refused_changes_nothing_in_service_and_says_why() {
    let home = Home::new();
    let router = Router::local(&home, &["--daemon-port", "0"]);
    let objects = Objects::of(&home);
    let good = json!({"tiers": [{"name": "fast", "models": ["anthropic/claude-haiku-4-5"]}]});
    objects.create(&good);
    let revision = objects.accepted(1);
    until_in_force(&router, &revision);
    // What the schema forbids is not even stored.
    let refused = {
        let mut object = objects.get();
        object["spec"]["exploration"] = json!("1.5");
        objects.ask(Method::PUT, "/default", Some(&object))
    };
    assert_eq!(refused.status, 422, "{refused:?}");
    let status = refused.json();
    assert_eq!(status["details"]["causes"][0]["field"], "spec.exploration");
    // What only compiling finds is stored and not put in force.
    let bad = json!({
        "tiers": [{"name": "fast", "models": ["example/unheard-of"]}],
        "models": [{"ref": "anthropic/claude-haiku-4-5"}],
    });
    let stored = objects.edit(&bad);
    let object = until("the policy is judged", || {
        let object = objects.get();
        if object["status"]["observedGeneration"] == stored["metadata"]["generation"] {
            Ok(object)
        } else {
            Err(object["status"].to_string())
        }
    });
    assert_eq!(object["status"]["acceptedRevision"], revision.as_str());
    let problems = object["status"]["problems"].as_array().unwrap();
    assert!(
        problems
            .iter()
            .any(|problem| problem["path"].as_str().unwrap().contains("tiers")),
        "{problems:?}"
    );
    let accepted = object["status"]["conditions"].as_array().unwrap();
    let accepted = accepted
        .iter()
        .find(|condition| condition["type"] == "Accepted")
        .unwrap();
    assert_eq!(
        (&accepted["status"], &accepted["reason"]),
        (&json!("False"), &json!("UnknownModel"))
    );
    assert_eq!(in_force(&router), revision);
    let stored = objects.edit(&good);
    assert_eq!(objects.accepted(generation(&stored)), revision);
}

#[test]
fn after_a_kill_the_first_decision_is_made_by_the_policy_that_was_accepted() {
    let home = Home::new();
    let mut router = Router::local(&home, &["--daemon-port", "0"]);
    let objects = Objects::of(&home);
    objects.create(&json!({"profile": "critical"}));
    let revision = objects.accepted(1);
    until_in_force(&router, &revision);
    router.kill();
    let router = Router::local(&home, &["--daemon-port", "0"]);
    let decision = router
        .post("/v1/route", &json!({"request": "Rename the author field"}))
        .ok();
    assert_eq!(
        decision["provenance"]["policy"]["revision"],
        revision.as_str()
    );
    assert_eq!(
        Objects::of(&home).get()["status"]["acceptedRevision"],
        revision.as_str()
    );
}

#[test]
fn without_the_object_the_built_in_policy_decides_before_and_after_a_restart() {
    let home = Home::new();
    let mut router = Router::local(&home, &["--daemon-port", "0"]);
    let built_in = in_force(&router);
    let objects = Objects::of(&home);
    objects.create(&json!({"profile": "critical"}));
    let revision = objects.accepted(1);
    assert_ne!(revision, built_in);
    until_in_force(&router, &revision);
    let gone = objects.ask(Method::DELETE, "/default", None);
    assert_eq!(gone.status, 200, "{gone:?}");
    until_in_force(&router, &built_in);
    router.terminate();
    assert!(router.ended().success());
    let router = Router::local(&home, &["--daemon-port", "0"]);
    assert_eq!(in_force(&router), built_in);
}

#[test]
fn fault_37_a_damaged_file_of_objects_is_kept_aside_and_said() {
    let home = Home::new();
    let mut router = Router::local(&home, &["--daemon-port", "0"]);
    Objects::of(&home).create(&json!({"profile": "critical"}));
    let id = home.text("instance").unwrap();
    router.terminate();
    assert!(router.ended().success());
    let file = home.path().join("objects.db");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2 + 100]).unwrap();
    let router = Router::local(&home, &["--daemon-port", "0"]);
    assert!(
        router.log().contains("objects.db.damaged-"),
        "{}",
        router.log()
    );
    let names = std::fs::read_dir(home.path()).unwrap();
    let kept = names.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("objects.db.damaged-")
    });
    assert!(kept.count() >= 1);
    assert_eq!(home.text("instance").unwrap(), id);
    assert_eq!(
        Objects::of(&home).ask(Method::GET, "/default", None).status,
        404
    );
    // Decisions go on by the built-in policy.
    router
        .post("/v1/route", &json!({"request": "Rename the author field"}))
        .ok();
}
