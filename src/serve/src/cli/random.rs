//! `laya random-checkpoint`: a folder with seeded random weights, for tests and benchmarks.

use std::path::PathBuf;

use clap::Args;
use laya::checkpoint::{Shape, write_random};

use super::CliError;

/// Arguments.
#[derive(Debug, Clone, Args)]
pub(super) struct Random {
    /// The folder to write; must not exist
    dir: PathBuf,
    /// Shape by name
    #[arg(long, value_name = "SHAPE")]
    shape: String,
    /// Seed of the weights
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) fn run(arguments: &Random) -> Result<u8, CliError> {
    let Random { dir, shape, seed } = arguments;
    let names: Vec<&str> = Shape::ALL.iter().map(|shape| shape.as_str()).collect();
    let shape = Shape::from_name(shape).ok_or_else(|| {
        CliError::refused(format!(
            "unknown shape '{shape}': expected {}",
            names.join(", ")
        ))
    })?;
    write_random(dir, shape, *seed).map_err(|error| CliError::new(1, error.to_string()))?;
    println!("{}", dir.display());
    Ok(0)
}
