//! Every route is asked for what it documents: its answer, its errors, its methods, its token, and nothing else is there.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

mod schema;
#[path = "../support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use api::problem::Slug;
use api::routes::{Access, Content, ErrorForm, Place, ROUTES, Route};
use axum::body::Body;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use service::http::{Authority, TokenFile};
use tower::ServiceExt;

use support::{TestRouter, built_in_policy};

/// One answer and what it was asked for.
struct Answered {
    route: &'static Route,
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

struct Walk {
    router: TestRouter,
    document: Value,
}

impl Walk {
    async fn start() -> Self {
        Self::of(TestRouter::start(&built_in_policy()).await).await
    }

    async fn of(router: TestRouter) -> Self {
        let (status, document) = router.get("/openapi.json").await;
        assert_eq!(status, 200);
        Self { router, document }
    }

    /// Asks a route, and checks the answer against the document.
    async fn ask(&self, id: &str, more: impl FnOnce(Asking) -> Asking) -> Answered {
        let asking = more(Asking::new(route(id)));
        let route = asking.route;
        let response = self.router.app.clone().oneshot(asking.request());
        let (head, body) = response.await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        let answered = Answered {
            route,
            status: head.status,
            headers: head.headers,
            body,
        };
        self.check(&answered);
        answered
    }

    fn check(&self, answered: &Answered) {
        let route = answered.route;
        let shown = String::from_utf8_lossy(&answered.body);
        let name = format!("{} {}", route.id, answered.status.as_u16());
        assert!(answered.headers.contains_key("x-request-id"), "{name}");
        let method = route.method.as_str().to_ascii_lowercase();
        let responses = &self.document["paths"][route.path][method]["responses"];
        let documented = &responses[answered.status.as_str()];
        assert!(documented.is_object(), "{name} is not documented: {shown}");
        let media = answered.media();
        let content = &documented["content"][media];
        assert!(content.is_object(), "{name}: {media} is not documented");
        let promised = documented["headers"].as_object().unwrap();
        for header in promised.keys() {
            assert!(answered.headers.contains_key(header), "{name}: {header}");
        }
        if media.ends_with("json") {
            let wrong = schema::problems(&self.document, &content["schema"], &answered.json());
            assert_eq!(wrong, [""; 0], "{name}: {shown}");
        }
    }
}

impl Answered {
    fn media(&self) -> &str {
        self.headers[header::CONTENT_TYPE].to_str().unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The error it is, in whichever form the route has.
    fn is(&self, slug: Slug) {
        let shown = String::from_utf8_lossy(&self.body);
        assert_eq!(
            self.status.as_u16(),
            slug.status(),
            "{}: {shown}",
            self.route.id
        );
        if self.route.errors == ErrorForm::Problem {
            let kind = self.json()["type"].clone();
            assert_eq!(
                kind,
                format!("https://relay.dev/problems/{}", slug.as_str())
            );
        }
    }

    fn is_first_answer(self) -> Value {
        let shown = String::from_utf8_lossy(&self.body);
        let wanted = self.route.answers[0];
        assert_eq!(
            self.status.as_u16(),
            wanted.status,
            "{}: {shown}",
            self.route.id
        );
        assert_eq!(
            self.media(),
            wanted.content.media_type(),
            "{}",
            self.route.id
        );
        match wanted.content {
            Content::Json(_) | Content::AnyJson => self.json(),
            Content::JsonLines | Content::Metrics => Value::from(&*shown),
        }
    }
}

fn route(id: &str) -> &'static Route {
    let mut routes = ROUTES.iter();
    routes
        .find(|route| route.id == id)
        .unwrap_or_else(|| panic!("{id}"))
}

/// A request in the making.
struct Asking {
    route: &'static Route,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Asking {
    fn new(route: &'static Route) -> Self {
        let json = ("content-type", "application/json".to_owned());
        Self {
            route,
            path: route.path.to_owned(),
            headers: route.body.map(|_| json).into_iter().collect(),
            body: Vec::new(),
        }
    }

    fn with(mut self, parameter: &str, value: &str) -> Self {
        self.path = self.path.replace(&format!("{{{parameter}}}"), value);
        self
    }

    fn query(mut self, query: &str) -> Self {
        self.path.push('?');
        self.path.push_str(query);
        self
    }

    fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    fn body(mut self, body: &Value) -> Self {
        self.body = body.to_string().into_bytes();
        self
    }

    fn raw(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    fn request(self) -> Request<Body> {
        let mut request = Request::builder()
            .method(self.route.method.as_str())
            .uri(self.path);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request.body(Body::from(self.body)).unwrap()
    }
}

fn labels() -> Value {
    json!({
        "task_type": "bug_fix", "complexity": 1, "scope": "single_file", "risk": 0, "ambiguity": 0,
        "reasoning_requirement": 1, "capability_tier": "strong", "reasoning_effort": "low",
        "agent": "software-engineer", "validation_level": "unit_test", "requires_write": true,
        "requires_shell": false, "requires_tests": true, "requires_web": false, "requires_browser": false,
        "requires_database": false, "requires_git": false, "security_sensitive": false
    })
}

/// One life of a task through every route; what is answered is checked against the document as it goes.
#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_what_it_documents() {
    let walk = Walk::start().await;
    let mut walked = BTreeSet::new();
    let mut done = |id: &'static str| walked.insert(id);

    done("openapi");
    for id in ["policy", "models", "contract", "health", "ready", "metrics"] {
        walk.ask(id, |asking| asking).await.is_first_answer();
        done(id);
    }
    let contract = walk.ask("contract", |asking| asking).await.json();

    let text = json!({"request": "Fix the date parser", "conversation_id": "c-1"});
    let explained = |asking: Asking| asking.query("explain=true").body(&text);
    walk.ask("route", explained).await.is_first_answer();
    let decided = walk.ask("route", |asking| asking.body(&text)).await;
    let decision = decided.is_first_answer();
    done("route");

    let failures = json!({"decision_id": decision["id"], "failures": [{"kind": "check_failed", "tool": "cargo"}]});
    let provider = json!({"decision_id": decision["id"], "provider_error": {"status": 429, "retry_after_ms": 5}});
    for body in [&failures, &provider] {
        let answer = walk.ask("escalate", |asking| asking.body(body)).await;
        answer.is_first_answer();
    }
    done("escalate");

    let usage = json!({"input_tokens": 10, "output_tokens": 2, "cost_usd": 0.1});
    let outcome = json!({
        "decision_id": decision["id"], "attempt": 1, "result": "success", "tests_passed": true,
        "tool_failures": 0, "final": true, "usage": usage
    });
    let reported = walk.ask("outcomes", |asking| asking.body(&outcome)).await;
    reported.is_first_answer();
    let mut other = outcome.clone();
    other["result"] = "failure".into();
    let conflict = walk.ask("outcomes", |asking| asking.body(&other)).await;
    conflict.is(Slug::Conflict);
    done("outcomes");

    let mut lesson = json!({
        "session": "s-1", "shape": contract["shape"],
        "exercises": [{"request": "Fix the date parser", "labels": labels(), "lesson": "Dates come in three forms."}]
    });
    let learned = walk.ask("learn", |asking| asking.body(&lesson)).await;
    let id = learned.is_first_answer()["ids"][0]
        .as_str()
        .unwrap()
        .to_owned();
    lesson["shape"] = format!("sha256:{}", "0".repeat(64)).into();
    let foreign = walk.ask("learn", |asking| asking.body(&lesson)).await;
    foreign.is(Slug::ContractMismatch);
    done("learn");
    let remembered = walk.ask("route", |asking| asking.body(&text)).await;
    remembered.is_first_answer();

    walk.ask("memory", |asking| asking).await.is_first_answer();
    done("memory");
    let query = |asking: Asking| asking.query("q=date%20parser&limit=5");
    let found = walk.ask("memory_search", query).await.is_first_answer();
    assert_eq!(found["tasks"][0]["id"], *id);
    done("memory_search");
    let shown = walk
        .ask("memory_task", |asking| asking.with("id", &id))
        .await;
    shown.is_first_answer();
    done("memory_task");
    let patch = json!({"lesson": "Use the one date module."});
    let edit = |asking: Asking| asking.with("id", &id).body(&patch);
    walk.ask("memory_edit", edit).await.is_first_answer();
    done("memory_edit");

    let frozen = walk.ask("snapshot_freeze", |asking| asking).await;
    let digest = frozen.is_first_answer()["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    done("snapshot_freeze");
    let file = walk
        .ask("snapshot", |asking| asking.with("digest", &digest))
        .await;
    file.is_first_answer();
    done("snapshot");

    let query = |asking: Asking| asking.query("conversation_id=c-1&limit=1");
    let page = walk.ask("decisions", query).await.is_first_answer();
    assert!(page["next_cursor"].is_string(), "{page}");
    done("decisions");
    let one = decision["id"].as_str().unwrap();
    let stored = walk.ask("decision", |asking| asking.with("id", one)).await;
    stored.is_first_answer();
    done("decision");
    let query = |asking: Asking| asking.query("since=1d");
    walk.ask("report", query).await.is_first_answer();
    done("report");

    let forget = |asking: Asking| asking.with("id", &id);
    walk.ask("memory_forget", forget).await.is_first_answer();
    done("memory_forget");
    let query = |asking: Asking| asking.query("all=true");
    walk.ask("memory_forget_many", query)
        .await
        .is_first_answer();
    done("memory_forget_many");

    // No model is there; what one answers is Laya's, and tested with servers.
    for id in ["systemone", "systemone_batch"] {
        let ask = json!({"state": "x", "questions": {}});
        let answer = walk.ask(id, |asking| asking.body(&ask)).await;
        answer.is(Slug::Unavailable);
        done(id);
    }
    let documented: BTreeSet<&str> = ROUTES.iter().map(|route| route.id).collect();
    assert_eq!(walked, documented, "each route is walked");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_refuses_as_documented() {
    let walk = Walk::start().await;
    let unknown = "0193d2b1-0000-7000-8000-000000000001";
    for route in ROUTES {
        let id = route.id;
        let problems = route.problems();
        let origin = ("origin", "https://evil.example");
        let asked = |asking: Asking| asking.with("id", unknown).with("digest", unknown);
        let foreign = |asking: Asking| asked(asking).header(origin.0, origin.1);
        walk.ask(id, foreign).await.is(Slug::OriginRefused);
        if route.parameters.iter().any(|one| one.place == Place::Query) {
            let query = |asking: Asking| asked(asking).query("nonsense=1").raw(b"{}");
            walk.ask(id, query).await.is(Slug::InvalidRequest);
        }
        if route.errors == ErrorForm::Problem && route.body.is_some() {
            let form = |asking: Asking| asked(asking).header("content-type", "text/plain");
            walk.ask(id, form).await.is(Slug::UnsupportedMediaType);
            for (body, slug) in [
                (&b"{"[..], Slug::MalformedJson),
                (br#"{"nonsense":1}"#, Slug::InvalidRequest),
            ] {
                let sent = |asking: Asking| asked(asking).raw(body);
                walk.ask(id, sent).await.is(slug);
            }
        }
        if let Some(body) = route.body {
            let long = vec![b' '; body.limit + 1];
            let sent = |asking: Asking| asked(asking).raw(&long);
            walk.ask(id, sent).await.is(Slug::TooLarge);
        }
        let in_path = route.parameters.iter().find(|one| one.place == Place::Path);
        if let (Some(_), None) = (in_path, route.body) {
            let digest = format!("sha256:{}", "0".repeat(64));
            let gone = |asking: Asking| asking.with("id", unknown).with("digest", &digest);
            walk.ask(id, gone).await.is(Slug::NotFound);
            assert!(problems.contains(&Slug::NotFound), "{id}");
        }
    }
    let outcome = json!({"decision_id": unknown, "attempt": 1, "result": "success", "final": true});
    let failures = json!({"decision_id": unknown, "failures": []});
    let patch = json!({"lesson": "x"});
    for (id, body) in [
        ("outcomes", &outcome),
        ("escalate", &failures),
        ("memory_edit", &patch),
    ] {
        let asked = |asking: Asking| asking.with("id", "s00001").body(body);
        walk.ask(id, asked).await.is(Slug::NotFound);
    }
    let nobody = json!({"request": "x", "providers": ["nobody"]});
    let none = walk.ask("route", |asking| asking.body(&nobody)).await;
    none.is(Slug::NoCandidate);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_have_the_documented_methods_and_there_are_no_others() {
    let walk = Walk::start().await;
    let mut methods: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for route in ROUTES {
        methods
            .entry(route.path)
            .or_default()
            .insert(route.method.as_str());
    }
    for (path, documented) in &methods {
        let request = Request::builder()
            .method("PUT")
            .uri(path.replace(['{', '}'], ""));
        let response = walk.router.app.clone();
        let response = response.oneshot(request.body(Body::empty()).unwrap()).await;
        let response = response.unwrap();
        assert_eq!(response.status(), 405, "{path}");
        let allowed = response.headers()[header::ALLOW].to_str().unwrap();
        let allowed: BTreeSet<&str> = allowed.split(',').filter(|one| *one != "HEAD").collect();
        assert_eq!(&allowed, documented, "{path}");
    }
    let there = schema::paths_of(&walk.router.app);
    let documented: BTreeSet<String> = methods.keys().map(|path| (*path).to_owned()).collect();
    assert_eq!(there, documented);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_asked_for_where_the_document_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, "team 0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let authority = Authority::Tokens(TokenFile::open(&file).unwrap());
    let router = TestRouter::guarded_by(&built_in_policy(), authority).await;
    let walk = Walk::of(router).await;
    for route in ROUTES {
        let answered = walk.ask(route.id, |asking| asking).await;
        match route.access {
            Access::Open => assert_eq!(answered.status, 200, "{}", route.id),
            Access::Token | Access::Slot => answered.is(Slug::Unauthorized),
        }
        let method = route.method.as_str().to_ascii_lowercase();
        let security = &walk.document["paths"][route.path][method]["security"];
        let asked = security.as_array().is_some_and(|list| !list.is_empty());
        assert_eq!(asked, route.access != Access::Open, "{}", route.id);
    }
}
