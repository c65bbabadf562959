//! `cargo xtask test`: what must hold before a change lands, cheapest first. `.ci/run` runs this and nothing else.

use std::process::Command;

use crate::command::{cargo, output, root, run};
use crate::deps;
use crate::faults;
use crate::image;
use crate::kubernetes;
use crate::reference;

/// What the workspace is built with for its tests.
const FEATURES: &str = "api/kinds,backend/docker,testkit/image";
/// What proptest takes its seed from.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Runs every check and stops at the first that fails.
///
/// Each is asked of the whole workspace with the same features: another selection of packages is another set of features of
/// third-party crates, and so another build of all of them.
pub(crate) fn run_all() -> Result<(), String> {
    deps::run()?;
    faults::check()?;
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(whole("clippy").args(["--all-targets", "--", "-D", "warnings"]))?;
    // The smallest program alone, so that a feature it does not name is missed.
    run(cargo().args(["check", "--locked", "-p", "relay"]))?;
    // Doc tests are part of this: `cargo test` runs them for every library. So are the files that are written from code.
    // Random histories are the same for every run of a change; another seed is given by the same variable.
    let seed = std::env::var(SEED).unwrap_or_else(|_| "2026".to_owned());
    println!("{SEED}={seed}");
    run(whole("test")
        .env(SEED, seed)
        .env_remove(reference::UPDATE)
        .arg("--no-fail-fast"))?;
    on_postgres()?;
    replicas()?;
    on_kubernetes()?;
    on_docker()
}

/// A command of cargo over all packages, with what only tests need: images, the Docker suites, the files written from kinds.
fn whole(command: &str) -> Command {
    let mut cargo = cargo();
    cargo.args([command, "--locked", "--workspace", "--features", FEATURES]);
    cargo
}

/// The tests of test programs of these names that need something to be started first.
fn with_engine(programs: &[&str]) -> Command {
    let mut cargo = whole("test");
    for program in programs {
        cargo.args(["--test", program]);
    }
    cargo.args(["--no-fail-fast", "--", "--ignored"]);
    cargo
}

/// Tests of the store that need a PostgreSQL: a server of our own is started and stopped again.
fn on_postgres() -> Result<(), String> {
    let server = || Command::new(root().join("tests/engines/postgres.sh"));
    let address = output(server().arg("start"))?;
    let tested = run(with_engine(&["conformance", "faults", "props_engines"])
        .env("RELAY_TEST_POSTGRES", address.trim()));
    let stopped = run(server().arg("stop"));
    tested.and(stopped)
}

/// Several routers on one PostgreSQL, which the test starts, kills and stops itself.
fn replicas() -> Result<(), String> {
    run(with_engine(&["replicas"]).arg("--nocapture"))
}

/// Tests that need a Kubernetes API: a server of our own is built, started and stopped again.
fn on_kubernetes() -> Result<(), String> {
    let Some(server) = kubernetes::start()? else {
        return Ok(());
    };
    // Bars take minutes and mean something in a release build only.
    let tested = run(with_engine(&["kube", "policies"])
        .args(["--skip", "bars::"])
        .env("RELAY_TEST_KUBECONFIG", &server.kubeconfig)
        .env("RELAY_TEST_KUBECTL", &server.kubectl));
    let stopped = server.stop();
    tested.and(stopped)
}

/// Tests that need a Docker Engine: the images are built, an engine of our own is started and stopped again.
fn on_docker() -> Result<(), String> {
    image::build_for_tests()?;
    let host = image::engine()?;
    // The test programs `docker` of three packages. Whole matrices and bars take too long for every change.
    let tested = run(with_engine(&["docker"])
        .args(["--skip", "whole_", "--skip", "bars::"])
        .env("DOCKER_HOST", &host)
        .env("RELAY_LAYA_IMAGE", image::LAYA_FOR_TESTS)
        .env("RELAY_FAULT_IMAGE", image::FAULT));
    let stopped = image::stop_engine();
    tested.and(stopped)
}
