//! Times the cases R0–R3 of wire.md 22.1 on a random checkpoint: `cargo run --release -p laya --example bench -- --shape
//! modernbert-large --precision int8`. Rows are made of token ids, so only the engine is measured.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use decision::contract::Kind;
use laya::checkpoint::{Shape, write_random};
use laya::{CpuFeatures, Engine, EngineOptions, LoadOptions, Precision, TokenRow};

struct Args {
    shape: Shape,
    precision: Precision,
    options: EngineOptions,
    repetitions: usize,
    dir: PathBuf,
    cases: Vec<String>,
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        shape: Shape::ModernBertLarge,
        precision: Precision::F32,
        options: EngineOptions::default(),
        repetitions: 15,
        dir: PathBuf::from("target/laya-bench"),
        cases: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--shape" => {
                args.shape =
                    Shape::from_name(&value).ok_or_else(|| format!("unknown shape {value}"))?
            }
            "--precision" => args.precision = value.parse().map_err(|e| format!("{e}"))?,
            "--threads" => args.options.threads = value.parse().ok(),
            "--cpu" => {
                args.options.cpu = value.parse::<CpuFeatures>().map_err(|e| e.to_string())?
            }
            "--repetitions" => {
                args.repetitions = value.parse().map_err(|e| format!("{value}: {e}"))?
            }
            "--dir" => args.dir = value.into(),
            "--case" => args.cases.push(value),
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(args)
}

/// Rows and tokens per row of each case.
const CASES: [(&str, usize, usize); 4] = [
    ("R0", 1, 120),
    ("R1", 3, 99),
    ("R2", 1, 512),
    ("R3", 18, 109),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = args()?;
    let dir = args.dir.join(args.shape.as_str());
    if !dir.exists() {
        std::fs::create_dir_all(&args.dir)?;
        write_random(&dir, args.shape, 1)?;
    }
    let engine = Engine::new(args.options)?;
    let start = Instant::now();
    let checkpoint = engine.load(
        &dir,
        &LoadOptions {
            precision: args.precision,
            ..LoadOptions::default()
        },
    )?;
    println!(
        "{} {} on {} threads, {}: loaded in {:.2} s, {} MB of weights, peak {} MB",
        args.shape.as_str(),
        args.precision,
        engine.threads(),
        engine.kernels(),
        start.elapsed().as_secs_f64(),
        checkpoint.weight_bytes() >> 20,
        peak_mb(),
    );
    for (name, rows, length) in CASES {
        if !args.cases.is_empty() && !args.cases.iter().any(|case| case == name) {
            continue;
        }
        let ids: Vec<Vec<u32>> = (0..rows)
            .map(|row| {
                (0..length)
                    .map(|t| ((row * 31 + t * 7) % 250) as u32)
                    .collect()
            })
            .collect();
        let markers = [20, 30, 40];
        let rows: Vec<TokenRow<'_>> = ids
            .iter()
            .map(|ids| TokenRow {
                ids,
                markers: &markers,
                kind: Kind::Choice,
            })
            .collect();
        let mut times: Vec<Duration> = Vec::new();
        let before = cpu_seconds();
        for _ in 0..args.repetitions + 2 {
            let start = Instant::now();
            std::hint::black_box(engine.run(&checkpoint, &rows)?);
            times.push(start.elapsed());
        }
        let cpu = (cpu_seconds() - before) / times.len() as f64 / engine.threads() as f64;
        times.drain(..2);
        times.sort();
        // Processor time per thread is what a machine of our own would need; beside neighbours the clock says more.
        println!(
            "{name}: p50 {:.1} ms, best {:.1} ms, cpu {:.1} ms",
            ms(times[times.len() / 2]),
            ms(times[0]),
            cpu * 1e3
        );
    }
    println!(
        "peak {} MB, buffers {} MB",
        peak_mb(),
        engine.buffer_bytes() >> 20
    );
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// User and system time of the process, in ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|f| f.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}

/// High-water mark of this process's memory.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|kb| kb.parse::<u64>().ok())
        .unwrap_or(0)
        >> 10
}
