//! `laya random-checkpoint`: a folder with seeded random weights, for tests and benchmarks.

use std::path::PathBuf;

use clap::Args;
use laya::checkpoint::{Shape, write_random};

use super::CliError;

// No doc comment: clap would show it in place of the word's description.
#[derive(Debug, Clone, Args)]
pub(super) struct Random {
    /// The folder to write; must not exist
    dir: PathBuf,
    // Its help names the shapes.
    #[arg(long, value_name = "SHAPE", help = format!("Shape by name: {}", shapes()))]
    shape: String,
    /// Seed of the weights
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) fn run(arguments: &Random) -> Result<u8, CliError> {
    let Random { dir, shape, seed } = arguments;
    let shape = Shape::from_name(shape).ok_or_else(|| {
        CliError::refused(format!("unknown shape '{shape}': expected {}", shapes()))
    })?;
    write_random(dir, shape, *seed).map_err(|error| CliError::new(1, error.to_string()))?;
    println!("{}", dir.display());
    Ok(0)
}

/// The names of all shapes.
fn shapes() -> String {
    let names: Vec<&str> = Shape::ALL.iter().map(|shape| shape.as_str()).collect();
    names.join(", ")
}
