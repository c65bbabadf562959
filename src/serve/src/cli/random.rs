//! `laya random-checkpoint`: a folder with seeded random weights, for tests, benchmarks and a first try.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use decision::relay_contract;
use laya::checkpoint::{Shape, write_random};

use super::CliError;

// No doc comment: clap would show it in place of the word's description.
#[derive(Debug, Clone, Args)]
pub(super) struct Random {
    /// The folder to write; must not exist
    dir: PathBuf,
    // Its help names the shapes.
    #[arg(long, value_name = "SHAPE", default_value = Shape::Tiny.as_str(), help = format!("Shape by name: {}", shapes()))]
    shape: String,
    /// Questions it says it was trained for; none when absent
    #[arg(long, value_name = "CONTRACT")]
    contract: Option<Questions>,
    /// Seed of the weights
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Contracts that this program knows by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Questions {
    /// Relay's own 18 questions
    Relay,
}

pub(super) fn run(arguments: &Random) -> Result<u8, CliError> {
    let Random {
        dir,
        shape,
        contract,
        seed,
    } = arguments;
    let shape = Shape::from_name(shape).ok_or_else(|| {
        CliError::refused(format!("unknown shape '{shape}': expected {}", shapes()))
    })?;
    write_random(dir, shape, *seed).map_err(|error| CliError::new(1, error.to_string()))?;
    if let Some(Questions::Relay) = contract {
        let path = dir.join("decisions.json");
        std::fs::write(&path, relay_contract().export()).map_err(|error| {
            CliError::new(1, format!("cannot write {}: {error}", path.display()))
        })?;
    }
    println!("{}", dir.display());
    Ok(0)
}

/// The names of all shapes.
fn shapes() -> String {
    let names: Vec<&str> = Shape::ALL.iter().map(|shape| shape.as_str()).collect();
    names.join(", ")
}
