//! The hidden task `bench-laya-child`: our engine in a process of its own. It speaks what `tests/bench/laya_original.py`
//! speaks: one JSON object a line. First [`Ready`], then [`Timed`] for each line with the name of a case, and [`Ended`]
//! when its input ends.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use decision::json::Value;
use laya::{Engine, EngineOptions, Lengths, LoadOptions, Precision, predict};
use serde::{Deserialize, Serialize};

use super::cases;

/// Arguments of the child.
#[derive(Debug, Clone, Args)]
pub(crate) struct ChildOptions {
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    cases: PathBuf,
    #[arg(long)]
    precision: Precision,
    #[arg(long)]
    threads: usize,
}

/// The checkpoint is loaded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ready {
    /// Reading and packing, without starting the process and importing, milliseconds.
    pub(super) load_ms: f64,
    /// Versions, kernels, threads; for people.
    pub(super) about: String,
}

/// A case was answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Timed {
    /// From the request to its answers, milliseconds.
    pub(super) ms: f64,
    /// Processor time of all threads, milliseconds.
    pub(super) cpu_ms: f64,
    /// Tokens of all rows.
    pub(super) tokens: usize,
}

/// The last line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ended {
    /// High-water mark of the process, KiB.
    pub(super) peak_kib: u64,
}

/// Loads, then answers until the input ends.
pub(crate) fn run(options: &ChildOptions) -> Result<(), String> {
    let ChildOptions {
        dir,
        cases,
        precision,
        threads,
    } = options;
    let cases = cases::read(cases)?;
    let started = Instant::now();
    let engine = Engine::new(EngineOptions {
        threads: Some(*threads),
        ..EngineOptions::default()
    })
    .map_err(|error| error.to_string())?;
    let load = LoadOptions {
        precision: *precision,
        ..LoadOptions::default()
    };
    let checkpoint = engine.load(dir, &load).map_err(|error| error.to_string())?;
    tell(&Ready {
        load_ms: millis(started),
        about: format!(
            "{precision} on {} threads, kernels {}",
            engine.threads(),
            engine.kernels()
        ),
    })?;
    for line in std::io::stdin().lock().lines() {
        let name = line.map_err(|error| format!("cannot read the next case: {error}"))?;
        let case = cases
            .get(&name)
            .ok_or_else(|| format!("there is no case {name:?}"))?;
        let state = Value::from(case.state.as_str());
        let questions = cases::check(&case.questions)?;
        let before = cpu_ms();
        let started = Instant::now();
        let prediction = predict(&engine, &checkpoint, &state, &questions, Lengths::default())
            .map_err(|error| error.to_string())?;
        tell(&Timed {
            ms: millis(started),
            cpu_ms: cpu_ms() - before,
            tokens: std::hint::black_box(prediction).usage.input_tokens,
        })?;
    }
    tell(&Ended {
        peak_kib: status_kib("self", "VmHWM:"),
    })
}

fn tell(message: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string(message).map_err(|error| error.to_string())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(|error| format!("cannot answer: {error}"))
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// User and system time of this process in milliseconds, from ticks of 10 ms (the unit of `/proc` on Linux).
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold spaces; what follows it does not.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        * 10.0
}

/// A line of `/proc/<process>/status`, KiB; zero where there is none.
pub(super) fn status_kib(process: &str, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kib| kib.parse().ok())
        .unwrap_or(0)
}
