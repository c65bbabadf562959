//! `cargo xtask test`: what must hold before a change lands, cheapest first. `.ci/run` runs this and nothing else.

use crate::command::{cargo, run};
use crate::deps;

/// Runs every check and stops at the first that fails.
pub(crate) fn run_all() -> Result<(), String> {
    deps::run()?;
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args([
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    // Doc tests are part of this: `cargo test` runs them for every library.
    run(cargo().args(["test", "--locked", "--workspace", "--no-fail-fast"]))
}
