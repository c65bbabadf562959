//! `cargo xtask crds`: the files below `crds`, which a test of crate `api` writes or compares, since it knows the types.

use crate::command::{cargo, run};
use crate::reference::UPDATE;

const TEST: [&str; 8] = [
    "test",
    "--quiet",
    "-p",
    "api",
    "--features",
    "kinds",
    "--test",
    "crds",
];

/// Writes them.
pub(crate) fn write() -> Result<(), String> {
    run(cargo().env(UPDATE, "1").args(TEST))
}

/// Fails when a committed file is not what would be written.
pub(crate) fn check() -> Result<(), String> {
    run(cargo().env_remove(UPDATE).args(TEST).arg("--locked"))
}
