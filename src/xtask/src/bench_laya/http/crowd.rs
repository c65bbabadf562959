//! Many clients at once: errors, fairness, memory, `/health` meanwhile, and the throughput of many single requests beside
//! that of batches (wire.md 13.3).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{Client, get, post};
use super::server::Server;
use crate::bench_laya::table::{Amount, Bar, Line, percentile};

/// As many as are admitted at once.
const CLIENTS: usize = 16;
/// Between two looks at `/health`.
const LOOK: Duration = Duration::from_millis(10);
/// How long the two sides of the comparison with batches take.
const COMPARED: Duration = Duration::from_secs(5);

/// What one client saw.
#[derive(Debug, Default)]
struct Seen {
    /// Latencies of the answers with 200, milliseconds.
    times: Vec<f64>,
    errors: u64,
}

/// Asks the same request until the time is over, with a pause before each.
fn ask(address: SocketAddr, request: &[u8], until: Instant, pause: Duration) -> Seen {
    let mut seen = Seen::default();
    let mut client = None;
    while Instant::now() < until {
        std::thread::sleep(pause);
        let started = Instant::now();
        let connected = match client.take() {
            Some(open) => Ok(open),
            None => Client::try_connect(address),
        };
        let answered = connected.and_then(|mut open| {
            let status = open.ask(request)?;
            Ok((open, status))
        });
        match answered {
            Ok((open, 200)) => {
                client = Some(open);
                seen.times.push(started.elapsed().as_secs_f64() * 1e3);
            }
            Ok((open, _)) => {
                client = Some(open);
                seen.errors += 1;
            }
            Err(_) => seen.errors += 1,
        }
    }
    seen
}

fn crowd(address: SocketAddr, requests: &[Vec<u8>], until: Instant) -> Vec<Seen> {
    std::thread::scope(|scope| {
        let clients: Vec<_> = requests
            .iter()
            .map(|request| scope.spawn(move || ask(address, request, until, Duration::ZERO)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap_or_default())
            .collect()
    })
}

/// 16 clients for that long.
pub(super) fn measure(server: &Server, seconds: u32, body: &str) -> Result<Vec<Line>, String> {
    let begun = Instant::now();
    let length = Duration::from_secs(seconds.into());
    let until = begun + length;
    let requests = vec![post("/v1/systemone", body); CLIENTS];
    let look = get("/health");
    let address = server.address();
    let (clients, health, early) = std::thread::scope(|scope| {
        let health = scope.spawn(|| ask(address, &look, until, LOOK));
        let early = scope.spawn(|| {
            std::thread::sleep(length / 6);
            server.memory_kib().0
        });
        let clients = crowd(address, &requests, until);
        (
            clients,
            health.join().unwrap_or_default(),
            early.join().unwrap_or_default(),
        )
    });
    let (late, peak) = server.memory_kib();
    let errors = clients.iter().map(|seen| seen.errors).sum::<u64>() + health.errors;
    let counts = || clients.iter().map(|seen| seen.times.len());
    let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    let all: Vec<f64> = clients
        .iter()
        .flat_map(|seen| &seen.times)
        .copied()
        .collect();
    if all.is_empty() || health.times.is_empty() {
        return Err("nothing was answered under load".to_owned());
    }
    let what = format!("{CLIENTS} clients, tiny R0, {seconds} s");
    let line = |name: &str, ours, bar| Line {
        what: format!("{what}: {name}"),
        ours,
        original: None,
        bar,
    };
    let of = |sample: &[f64], share| Amount::Millis(percentile(sample.iter().copied(), share));
    let rate = all.len() as f64 / begun.elapsed().as_secs_f64();
    Ok(vec![
        line(
            "errors",
            Amount::Count(errors),
            Bar::AtMost(Amount::Count(0)),
        ),
        line("answers a second", Amount::Count(rate as u64), Bar::None),
        line("latency p50", of(&all, 0.5), Bar::None),
        line("latency p99", of(&all, 0.99), Bar::None),
        line(
            "answers of the client with fewest, of that with most",
            Amount::Share(least as f64 / most as f64),
            Bar::None,
        ),
        line("/health p50", of(&health.times, 0.5), Bar::None),
        line("/health p99", of(&health.times, 0.99), Bar::None),
        line(
            "/health, the slowest",
            of(&health.times, 1.0),
            Bar::AtMost(Amount::Millis(10.0)),
        ),
        line("memory after a sixth", Amount::Kib(early), Bar::None),
        line(
            "memory at the end (flat: 1.05 of that)",
            Amount::Kib(late),
            Bar::AtMost(Amount::Kib(early * 105 / 100)),
        ),
        line("memory at most", Amount::Kib(peak), Bar::None),
    ])
}

/// 16 single requests at once beside one batch call with the same 16 states, over and over.
pub(super) fn against_batch(server: &Server) -> Result<Vec<Line>, String> {
    let states: Vec<String> = (0..CLIENTS)
        .map(|at| {
            format!(
                "Order {at}: billed twice for March, please refund the duplicate before Friday."
            )
        })
        .collect();
    let questions = super::questions();
    let single: Vec<Vec<u8>> = states
        .iter()
        .map(|state| {
            post(
                "/v1/systemone",
                &json!({"state": state, "questions": questions}).to_string(),
            )
        })
        .collect();
    let batch = post(
        "/v1/systemone/batch",
        &json!({"states": states, "questions": questions}).to_string(),
    );
    let rate = |requests: &[Vec<u8>], states: usize| {
        let begun = Instant::now();
        let seen = crowd(server.address(), requests, begun + COMPARED);
        let answers = seen.iter().map(|seen| seen.times.len()).sum::<usize>() * states;
        answers as f64 / begun.elapsed().as_secs_f64()
    };
    let batched = rate(&[batch], CLIENTS);
    if batched == 0.0 {
        return Err("no batch was answered".to_owned());
    }
    Ok(vec![Line {
        what: format!(
            "tiny, states a second: {CLIENTS} clients at once, of one client with batches of {CLIENTS}"
        ),
        ours: Amount::Share(rate(&single, 1) / batched),
        original: None,
        bar: Bar::AtLeast(Amount::Share(0.9)),
    }])
}
