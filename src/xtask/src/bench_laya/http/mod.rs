//! The program `laya` over HTTP: what a request costs beside the model, how fast it is there, and what happens when 16
//! clients ask at once. Clients are threads that block on a kept connection (closed loop, on the same cores).

mod client;
mod crowd;
mod server;

use std::path::Path;
use std::time::Instant;

use laya::checkpoint::Shape;
use serde_json::json;

use super::side::{Kind, Running};
use super::table::{Amount, Bar, Line, markdown, p50, percentile};
use crate::command::root;
use client::{Client, get, post};
use server::Server;

/// What to measure.
pub(super) struct Plan<'a> {
    /// Where checkpoints and logs go.
    pub(super) folder: &'a Path,
    /// How long the crowd asks.
    pub(super) seconds: u32,
    /// The original, for its time from start to loaded.
    pub(super) python: Option<&'a Path>,
    /// Threads of either engine.
    pub(super) threads: usize,
}

/// Requests of each measurement over one connection.
const REQUESTS: usize = 2000;
/// Starts of the tiny and of the large checkpoint.
const STARTS: (usize, usize) = (15, 3);

/// R0: the recorded case `choice_only_pretty_body` of the golden data, 120 tokens.
fn r0() -> String {
    json!({
        "state": "Hi, we were billed twice for March. Please refund the duplicate today or we will cancel our plan.",
        "questions": questions(),
    })
    .to_string()
}

fn questions() -> serde_json::Value {
    json!({"department": {
        "type": "choice", "instructions": "Which department should handle this?",
        "criteria": {"billing": "invoices, payments, refunds", "technical": "bugs, outages, system errors", "other": "everything else"},
    }})
}

/// Every line.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Vec<Line>, String> {
    let tiny = root().join("tests/golden/tiny-laya");
    let program = Program {
        threads: plan.threads,
        log: plan.folder.join("serve.log"),
    };
    let mut lines = Vec::new();
    let mut add = |measured: Vec<Line>| {
        eprint!("{}", markdown(&measured));
        lines.extend(measured);
    };

    let server = program.start(&tiny)?;
    add(single(&server)?);
    add(crowd::measure(&server, plan.seconds, &r0())?);
    add(crowd::against_batch(&server)?);
    drop(server);

    add(starts(&program, &tiny, plan)?);
    Ok(lines)
}

/// How `laya serve` is started.
struct Program {
    threads: usize,
    log: std::path::PathBuf,
}

impl Program {
    fn start(&self, dir: &Path) -> Result<Server, String> {
        Server::start(dir, self.threads, &self.log)
    }
}

/// One client, one connection.
fn single(server: &Server) -> Result<Vec<Line>, String> {
    let empty = json!({"state": "nothing to decide", "questions": {}}).to_string();
    let most = |ms| Bar::AtMost(Amount::Millis(ms));
    let rows = [
        ("tiny R0 over HTTP", post("/v1/systemone", &r0()), 2.0),
        (
            "a request without questions over HTTP",
            post("/v1/systemone", &empty),
            0.3,
        ),
        ("/health", get("/health"), 0.3),
    ];
    let mut lines = Vec::new();
    for (what, request, bar) in rows {
        let mut client = Client::connect(server.address())?;
        let mut times = Vec::with_capacity(REQUESTS);
        for number in 0..REQUESTS + REQUESTS / 10 {
            let started = Instant::now();
            let status = client
                .ask(&request)
                .map_err(|error| format!("{what}: {error}"))?;
            if status != 200 {
                return Err(format!("{what}: it answers {status}"));
            }
            if number >= REQUESTS / 10 {
                times.push(started.elapsed().as_secs_f64() * 1e3);
            }
        }
        for (name, share, bar) in [("p50", 0.5, most(bar)), ("p99", 0.99, Bar::None)] {
            lines.push(Line {
                what: format!("{what}, {name} of {REQUESTS}"),
                ours: Amount::Millis(percentile(times.iter().copied(), share)),
                original: None,
                bar,
            });
        }
    }
    Ok(lines)
}

/// From starting the program to `/ready`.
fn starts(program: &Program, tiny: &Path, plan: &Plan<'_>) -> Result<Vec<Line>, String> {
    let ready = |dir: &Path, count: usize| {
        let times = (0..count)
            .map(|_| program.start(dir).map(|server| server.ready_ms()))
            .collect::<Result<Vec<f64>, String>>()?;
        Ok::<_, String>(p50(times))
    };
    let mut lines = vec![Line {
        what: format!("start to ready, tiny, p50 of {}", STARTS.0),
        ours: Amount::Millis(ready(tiny, STARTS.0)?),
        original: None,
        bar: Bar::AtMost(Amount::Millis(50.0)),
    }];
    for shape in [Shape::ModernBertLarge, Shape::MmBertBase] {
        let dir = super::checkpoint(plan.folder, shape)?;
        let ours = ready(&dir, STARTS.1)?;
        let original = plan
            .python
            .map(|python| original_start(python, plan, &dir))
            .transpose()?;
        lines.push(Line {
            what: format!(
                "start to ready, {}, p50 of {}; original: process start to loaded, once",
                shape.as_str(),
                STARTS.1
            ),
            ours: Amount::Millis(ours),
            original: original.map(Amount::Millis),
            bar: Bar::Ratio(1.0),
        });
    }
    Ok(lines)
}

fn original_start(python: &Path, plan: &Plan<'_>, dir: &Path) -> Result<f64, String> {
    let cases = plan.folder.join("no-cases.json");
    super::cases::write(&cases, &std::collections::BTreeMap::new())?;
    let side = Running::start(Kind::OriginalF32, Some(python), dir, &cases, plan.threads)?;
    let start_ms = side.start_ms();
    side.end()?;
    Ok(start_ms)
}
