//! `laya parity DIR`: compares a reduced precision with f32 on the same weights and writes the report that serving asks
//! for (wire.md 22.2).

use std::path::PathBuf;

use clap::Args;

use super::CliError;

/// Arguments.
#[derive(Debug, Clone, Args)]
pub(super) struct Parity {
    /// The checkpoint's folder
    pub(super) dir: PathBuf,
    /// The precision to compare with f32: int8
    #[arg(long)]
    pub(super) precision: String,
    /// Rows to ask, as JSON lines; without it states are made from the contract
    #[arg(long, value_name = "FILE")]
    pub(super) data: Option<PathBuf>,
    /// Where the report goes
    #[arg(long, value_name = "FILE")]
    pub(super) out: PathBuf,
}

pub(super) fn run(_arguments: &Parity) -> Result<u8, CliError> {
    Err(CliError::new(1, "parity is not measured by this build"))
}
