//! `cargo xtask docs`: files below `docs` that are written from code. Who knows the types and the registry writes them:
//! tests of those crates, which compare unless they are told to write.

use crate::command::{cargo, run};

/// Tells the tests to write.
pub(crate) const UPDATE: &str = "RELAY_UPDATE_DOCS";

/// The OpenAPI document and the page of the HTTP API need schemas, which nothing else does.
const HTTP: [&str; 6] = ["-p", "api", "--features", "schema", "--test", "openapi"];
/// A page per kind needs the types of the kinds.
const KINDS: [&str; 6] = ["-p", "api", "--features", "kinds", "--test", "kind_pages"];
/// The page of troubleshooting needs the list of reasons alone.
const REASONS: [&str; 4] = ["-p", "api", "--test", "troubleshooting"];
/// The page of the metrics needs a router that runs.
const METRICS: [&str; 5] = ["-p", "router", "--test", "metrics", "the_committed_page"];
/// That of the controller needs one that had something to do.
const CONTROLLER: [&str; 5] = [
    "-p",
    "controller",
    "--test",
    "policies",
    "the_committed_page",
];

/// All of them.
const PARTS: [&[&str]; 5] = [&HTTP, &KINDS, &REASONS, &METRICS, &CONTROLLER];

/// Writes them.
pub(crate) fn write() -> Result<(), String> {
    for part in PARTS {
        run(cargo()
            .env(UPDATE, "1")
            .args(["test", "--quiet"])
            .args(part))?;
    }
    Ok(())
}

/// Fails when a committed file is not what would be written.
pub(crate) fn check() -> Result<(), String> {
    for part in PARTS {
        let mut command = cargo();
        command.env_remove(UPDATE);
        run(command.args(["test", "--quiet", "--locked"]).args(part))?;
    }
    Ok(())
}
