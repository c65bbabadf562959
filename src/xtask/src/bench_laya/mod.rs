//! `cargo xtask bench-laya`: times the engine on random checkpoints with the shapes of published ones, beside the
//! original where an interpreter that has it is given (wire.md 22.1), and the program `laya` over HTTP.
//!
//! Each implementation and precision is a process of its own ([`side`]) that loads, answers one request at a time and
//! is timed by its own clock. They take turns, so a slow minute of the machine hits all of them alike.

mod bars;
mod cases;
pub(crate) mod child;
mod http;
mod side;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use laya::checkpoint::{Shape, write_random};

use crate::command::{cargo, root, run as run_command};
use cases::Case;
use side::{Kind, Running};
use table::Line;

/// Arguments of `cargo xtask bench-laya`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// An interpreter that has laya 0.4.15; it runs beside ours.
    #[arg(long, value_name = "INTERPRETER")]
    python: Option<PathBuf>,
    /// Which checkpoint: `large` (ModernBERT-large), `mmbert` (mmBERT-base), `tiny`, `all` (the first two).
    #[arg(long, default_value = "all", value_parser = ["large", "mmbert", "tiny", "all"])]
    shape: String,
    /// Timed calls of each case; two more come first and are not counted.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: u32,
    /// Only these cases: R0, R1, R2, R3.
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<String>,
    /// Threads of either engine; default: the cores that are granted.
    #[arg(long)]
    threads: Option<usize>,
    /// Measure the program `laya` over HTTP instead.
    #[arg(long)]
    http: bool,
    /// With --http: how long 16 clients ask.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// Calls of each case that are not counted.
const WARM_UP: u32 = 2;
/// Before each call: the threads of whoever was asked before spin for some 8 ms of processor time (torch's do), which the
/// next one would pay for.
const SETTLE: Duration = Duration::from_millis(50);

/// Measures and prints.
///
/// # Errors
/// One sentence: a build, a checkpoint or a process that failed. A missed bar is no error.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    if cfg!(debug_assertions) {
        return again_with_optimisation();
    }
    let folder = root().join("target/bench-laya");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let threads = options
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let lines = if options.http {
        http::measure(&http::Plan {
            folder: &folder,
            seconds: options.seconds,
            python: options.python.as_deref(),
            threads,
        })?
    } else {
        engines(options, &folder, threads)?
    };
    println!("{}", table::machine(threads));
    println!();
    print!("{}", table::markdown(&lines));
    Ok(())
}

/// This program as it is built for releases, with the same arguments: numbers of a debug build mean nothing.
fn again_with_optimisation() -> Result<(), String> {
    // Both at once: their dependencies share features and are built once. `laya` is for --http.
    run_command(cargo().args([
        "build",
        "--release",
        "--package",
        "xtask",
        "--package",
        "serve",
    ]))?;
    let here =
        std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let target = here
        .ancestors()
        .nth(2)
        .ok_or_else(|| format!("{} is not in a target folder", here.display()))?;
    run_command(Command::new(target.join("release/xtask")).args(std::env::args_os().skip(1)))
}

fn engines(options: &Options, folder: &Path, threads: usize) -> Result<Vec<Line>, String> {
    let shapes: &[Shape] = match options.shape.as_str() {
        "large" => &[Shape::ModernBertLarge],
        "mmbert" => &[Shape::MmBertBase],
        "tiny" => &[Shape::Tiny],
        _ => &[Shape::ModernBertLarge, Shape::MmBertBase],
    };
    let all = cases::fitted(&checkpoint(folder, Shape::Tiny)?)?;
    let chosen: BTreeMap<String, Case> = all
        .into_iter()
        .filter(|(name, _)| options.cases.is_empty() || options.cases.contains(name))
        .collect();
    if chosen.is_empty() {
        return Err(format!(
            "no case among {:?}; there are R0, R1, R2, R3",
            options.cases
        ));
    }
    let file = folder.join("cases.json");
    cases::write(&file, &chosen)?;
    let mut lines = Vec::new();
    for &shape in shapes {
        let measured = measure(shape, options, folder, &file, &chosen, threads)?;
        lines.extend(bars::lines(&measured));
    }
    Ok(lines)
}

/// What one shape showed.
struct Measured {
    shape: Shape,
    sides: BTreeMap<Kind, SideResult>,
}

/// What one process showed.
struct SideResult {
    /// Reading and packing the checkpoint, milliseconds.
    load_ms: f64,
    /// From starting the process to a loaded checkpoint, milliseconds.
    start_ms: f64,
    /// High-water mark of memory over loading and all cases, KiB.
    peak_kib: u64,
    /// Middle time of each case, milliseconds.
    p50_ms: BTreeMap<String, f64>,
}

fn measure(
    shape: Shape,
    options: &Options,
    folder: &Path,
    file: &Path,
    cases: &BTreeMap<String, Case>,
    threads: usize,
) -> Result<Measured, String> {
    let dir = checkpoint(folder, shape)?;
    let name = shape.as_str();
    // The tiny shape's rows end at 256 tokens.
    let cases = cases
        .iter()
        .filter(|(case, _)| shape != Shape::Tiny || *case != "R2");
    let mut running = Vec::new();
    for &kind in Kind::all(options.python.is_some()) {
        let side = Running::start(kind, options.python.as_deref(), &dir, file, threads)?;
        eprintln!(
            "{name} {}: {}, loaded in {:.0} ms",
            kind.name(),
            side.ready().about,
            side.ready().load_ms
        );
        running.push((side, BTreeMap::new()));
    }
    for (case, Case { tokens, .. }) in cases {
        let mut times = vec![Vec::new(); running.len()];
        for round in 0..options.repetitions + WARM_UP {
            for ((side, _), times) in running.iter_mut().zip(&mut times) {
                std::thread::sleep(SETTLE);
                let timed = side.ask(case)?;
                if timed.tokens != *tokens {
                    return Err(format!(
                        "{name} {} read {} tokens in {case}, {tokens} were meant",
                        side.kind().name(),
                        timed.tokens
                    ));
                }
                if round >= WARM_UP {
                    times.push(timed);
                }
            }
        }
        for ((side, p50s), times) in running.iter_mut().zip(times) {
            let middle = table::p50(times.iter().map(|timed| timed.ms));
            let best = times.iter().map(|t| t.ms).fold(f64::INFINITY, f64::min);
            let cpu = table::p50(times.iter().map(|timed| timed.cpu_ms)) / threads as f64;
            // Processor time per thread far below the clock's says that neighbours were in the way.
            eprintln!(
                "{name} {} {case}: {tokens} tokens, p50 {middle:.1} ms, best {best:.1} ms, processor {cpu:.0} ms a thread",
                side.kind().name()
            );
            p50s.insert(case.clone(), middle);
        }
    }
    let mut sides = BTreeMap::new();
    for (side, p50_ms) in running {
        let (kind, load_ms, start_ms) = (side.kind(), side.ready().load_ms, side.start_ms());
        let peak_kib = side.end()?;
        eprintln!("{name} {}: peak {} MB", kind.name(), peak_kib >> 10);
        sides.insert(
            kind,
            SideResult {
                load_ms,
                start_ms,
                peak_kib,
                p50_ms,
            },
        );
    }
    Ok(Measured { shape, sides })
}

/// The random checkpoint of a shape, written once, and read once so that the first to load it is not the one that
/// waits for the disk.
fn checkpoint(folder: &Path, shape: Shape) -> Result<PathBuf, String> {
    let dir = folder.join(shape.as_str());
    if !dir.join("complete").exists() {
        // What is left of a run that was interrupted while writing.
        drop(std::fs::remove_dir_all(&dir));
        write_random(&dir, shape, 1).map_err(|error| error.to_string())?;
        std::fs::write(dir.join("complete"), "")
            .map_err(|error| format!("cannot mark {}: {error}", dir.display()))?;
    }
    let weights = dir.join("model.safetensors");
    let read = std::fs::File::open(&weights)
        .and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
    read.map_err(|error| format!("cannot read {}: {error}", weights.display()))?;
    Ok(dir)
}
