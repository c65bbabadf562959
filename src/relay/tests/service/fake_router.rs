//! A router that answers what a test tells it to and remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::problem::{Problem, Slug};
use serde_json::{Value, json};

/// What it was asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// Method and path, for example `GET /v1/memory?stale=true`.
    pub(crate) line: String,
    pub(crate) key: Option<String>,
    /// `Null` without a body.
    pub(crate) body: Value,
}

/// What it answers.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Json(u16, String),
    /// Nothing for so long.
    Hang(Duration),
}

#[derive(Default)]
struct State {
    replies: BTreeMap<String, Reply>,
    asked: Vec<Asked>,
    /// Any key is fine where this is `None`.
    key: Option<String>,
}

pub(crate) struct FakeRouter {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    over: Arc<AtomicBool>,
}

impl FakeRouter {
    /// One that is healthy and has a policy, and nothing else.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let over = Arc::new(AtomicBool::new(false));
        let (shared, end) = (state.clone(), over.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let shared = shared.clone();
                std::thread::spawn(move || serve(&stream, &shared));
            }
        });
        let router = Self {
            address,
            state,
            over,
        };
        router.answer("GET /health", &health());
        router.answer("GET /v1/policy", &policy());
        router
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it answers to one line, from now on.
    pub(crate) fn reply(&self, line: &str, reply: Reply) {
        let mut state = self.state.lock().unwrap();
        state.replies.insert(line.to_owned(), reply);
    }

    pub(crate) fn answer(&self, line: &str, body: &Value) {
        self.reply(line, Reply::Json(200, body.to_string()));
    }

    pub(crate) fn refuse(&self, line: &str, problem: &Problem) {
        let body = serde_json::to_string(problem).unwrap();
        self.reply(line, Reply::Json(problem.status, body));
    }

    /// From now on it takes this key alone.
    pub(crate) fn demand(&self, key: &str) {
        self.state.lock().unwrap().key = Some(key.to_owned());
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

impl Drop for FakeRouter {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: &TcpStream, state: &Mutex<State>) {
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader) {
        let reply = {
            let mut state = state.lock().unwrap();
            state.asked.push(asked.clone());
            let open = asked.line == "GET /health";
            let wrong = state.key.is_some() && state.key != asked.key;
            if wrong && !open {
                problem(Slug::Unauthorized, "the bearer token is not known")
            } else {
                let reply = state.replies.get(&asked.line).cloned();
                reply.unwrap_or_else(|| problem(Slug::NotFound, "no such route"))
            }
        };
        let (status, body) = match reply {
            Reply::Json(status, body) => (status, body),
            Reply::Hang(time) => {
                std::thread::sleep(time);
                return;
            }
        };
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut writer = stream;
        if writer.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn problem(slug: Slug, detail: &str) -> Reply {
    let body = serde_json::to_string(&Problem::new(slug, detail)).unwrap();
    Reply::Json(slug.status(), body)
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let line = line.trim_end().strip_suffix(" HTTP/1.1")?.to_owned();
    let (mut length, mut key) = (0, None);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "authorization" => key = value.strip_prefix("Bearer ").map(str::to_owned),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&body).unwrap()
    };
    Some(Asked { line, key, body })
}

pub(crate) fn health() -> Value {
    let contract = decision::relay_contract();
    let ids: Vec<_> = contract
        .questions()
        .iter()
        .map(|question| &question.id)
        .collect();
    json!({
        "ok": false, "status": "degraded", "model": null, "decisions": ids,
        "contract": contract.digest().to_string(), "shape": contract.shape_digest().to_string(),
        "device": null, "serving": "rules_only",
    })
}

fn policy() -> Value {
    json!({
        "name": "team", "revision": "0123456789", "digest": "sha256:0", "accepted": true, "profile": "balanced",
        "spec": {}, "warnings": [],
    })
}
