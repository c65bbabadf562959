//! `cargo xtask`: every check of the workspace and the generators. Parses and dispatches, nothing else.

mod bench_laya;
mod checks;
mod command;
mod crds;
mod deps;
mod faults;
mod image;
mod kubernetes;
mod load;
mod overhead;
mod quality;
mod reference;
mod shell;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks and generators of the Relay workspace.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Every check: format, clippy, tests, doc tests, dependency order, generated files.
    Test,
    /// Writes the OpenAPI document and the reference pages of the HTTP API, the kinds, the reasons and the metrics below
    /// `docs`.
    #[command(alias = "openapi")]
    Docs {
        /// Compare with what is committed instead; fails when something is old.
        #[arg(long)]
        check: bool,
    },
    /// Writes the CRDs of the five kinds to `crds`.
    Crds {
        /// Compare with what is committed instead; fails when something is old.
        #[arg(long)]
        check: bool,
    },
    /// Writes `docs/faults.md`: which tests inject which fault.
    Faults {
        /// Compare with what is committed instead; fails when it is old or a fault has no test.
        #[arg(long)]
        check: bool,
    },
    /// Proves that no crate depends on one below it in design.md section 1.
    Deps,
    /// Builds a container image with a Docker Engine.
    Image {
        /// Which: `laya` or `fault`.
        name: String,
    },
    /// Builds all container images.
    Images {
        /// As `cargo xtask test` does: quickly, and laya under the tag `for-tests`.
        #[arg(long)]
        for_tests: bool,
    },
    /// Writes shell completions and manual pages below a folder.
    Shell {
        /// Where.
        #[arg(default_value = "target/shell")]
        folder: PathBuf,
    },
    /// Puts a constant load on a router's `/v1/route` and prints latencies; fails when a request does.
    Load {
        /// For example http://127.0.0.1:8737/v1/route
        url: String,
        /// File with the body of each request, for other paths than `/v1/route`.
        #[arg(long)]
        body: Option<PathBuf>,
        /// Requests a second.
        #[arg(long, default_value_t = 1000)]
        rate: u32,
        /// How long.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
        /// Kept connections.
        #[arg(long, default_value_t = 16)]
        connections: usize,
    },
    /// Asks a Laya server directly and through a router in turn, and prints what the router adds to `/v1/systemone`.
    Overhead {
        /// For example 127.0.0.1:8000
        server: SocketAddr,
        /// For example 127.0.0.1:8737
        router: SocketAddr,
        /// Requests on each side.
        #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
        requests: u32,
    },
    /// Times the native engine R0 to R3, beside laya 0.4.15 where an interpreter has it, and `laya serve` over HTTP.
    BenchLaya(bench_laya::Options),
    /// One engine under measurement; started by `bench-laya`.
    #[command(hide = true)]
    BenchLayaChild(bench_laya::child::ChildOptions),
    /// Agreement of the keyword rules with labelled requests, by language, tier and type.
    Quality {
        /// Labelled requests, one JSON object a line.
        #[arg(default_value = "tests/data/requests.jsonl")]
        file: PathBuf,
        /// Print each request whose tier missed.
        #[arg(long)]
        wrong: bool,
    },
}

fn main() -> ExitCode {
    let Arguments { task } = Arguments::parse();
    let result = match task {
        Task::Test => checks::run_all(),
        Task::Faults { check: true } => faults::check(),
        Task::Faults { check: false } => faults::write(),
        Task::Docs { check: true } => reference::check(),
        Task::Docs { check: false } => reference::write(),
        Task::Crds { check: true } => crds::check(),
        Task::Crds { check: false } => crds::write(),
        Task::Deps => deps::run(),
        Task::Image { name } => image::build(&name),
        Task::Images { for_tests: false } => image::build_all(),
        Task::Images { for_tests: true } => image::build_for_tests(),
        Task::Shell { folder } => shell::run(&command::root().join(folder)),
        Task::Load {
            url,
            body,
            rate,
            seconds,
            connections,
        } => load::print(&url, body.as_deref(), rate, seconds, connections),
        Task::Overhead {
            server,
            router,
            requests,
        } => overhead::print(server, router, requests as usize),
        Task::BenchLaya(options) => bench_laya::run(&options),
        Task::BenchLayaChild(options) => bench_laya::child::run(&options),
        Task::Quality { file, wrong } => quality::run(&command::root().join(file), wrong),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
