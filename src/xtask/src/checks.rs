//! `cargo xtask test`: what must hold before a change lands, cheapest first. `.ci/run` runs this and nothing else.

use std::process::Command;

use crate::command::{cargo, output, root, run};
use crate::crds;
use crate::deps;
use crate::image;
use crate::kubernetes;
use crate::reference;

/// What proptest takes its seed from.
const SEED: &str = "PROPTEST_RNG_SEED";

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
    // The Docker back end is built by nothing but programs and its own tests.
    run(cargo().args([
        "clippy",
        "--locked",
        "-p",
        "backend",
        "--features",
        "docker",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    run(cargo().args([
        "clippy",
        "--locked",
        "-p",
        "testkit",
        "--features",
        "image",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    // Schemas are built by nothing but the reference pages, the kinds by what reconciles.
    for features in ["schema", "kinds"] {
        run(cargo().args([
            "clippy",
            "--locked",
            "-p",
            "api",
            "--features",
            features,
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))?;
    }
    // Doc tests are part of this: `cargo test` runs them for every library.
    // Random histories are the same for every run of a change; another seed is given by the same variable.
    let seed = std::env::var(SEED).unwrap_or_else(|_| "2026".to_owned());
    println!("{SEED}={seed}");
    run(cargo()
        .env(SEED, seed)
        .args(["test", "--locked", "--workspace", "--no-fail-fast"]))?;
    run(cargo().args(["test", "--locked", "-p", "api", "--features", "kinds"]))?;
    run(cargo().args(["test", "--locked", "-p", "backend", "--features", "docker"]))?;
    crds::check()?;
    reference::check()?;
    on_postgres()?;
    replicas()?;
    on_kubernetes()?;
    on_docker()
}

/// Tests of the store that need a PostgreSQL: a server of our own is started and stopped again.
fn on_postgres() -> Result<(), String> {
    let server = || Command::new(root().join("tests/engines/postgres.sh"));
    let address = output(server().arg("start"))?;
    let tested = run(cargo().env("RELAY_TEST_POSTGRES", address.trim()).args([
        "test",
        "--locked",
        "-p",
        "store",
        "--tests",
        "--no-fail-fast",
        "--",
        "--ignored",
    ]));
    let stopped = run(server().arg("stop"));
    tested.and(stopped)
}

/// Several routers on one PostgreSQL, which the test starts, kills and stops itself.
fn replicas() -> Result<(), String> {
    run(cargo().args([
        "test",
        "--locked",
        "-p",
        "end-to-end",
        "--test",
        "replicas",
        "--",
        "--ignored",
        "--nocapture",
    ]))
}

/// Tests that need a Kubernetes API: a server of our own is built, started and stopped again.
fn on_kubernetes() -> Result<(), String> {
    let Some(server) = kubernetes::start()? else {
        return Ok(());
    };
    let test = |package: &str, target: &str, more: &[&str]| {
        run(cargo()
            .env("RELAY_TEST_KUBECONFIG", &server.kubeconfig)
            .env("RELAY_TEST_KUBECTL", &server.kubectl)
            .args(["test", "--locked", "-p", package, "--test", target])
            .args(["--", "--ignored"])
            .args(more))
    };
    let tested = test("end-to-end", "kube", &[])
        // Its bars take minutes and mean something in a release build only.
        .and_then(|()| test("controller", "policies", &["--skip", "bars::"]));
    let stopped = server.stop();
    tested.and(stopped)
}

/// Tests that need a Docker Engine: the images are built, an engine of our own is started and stopped again.
fn on_docker() -> Result<(), String> {
    image::build_all()?;
    let host = image::engine()?;
    let test = |more: &[&str]| {
        run(cargo()
            .env("DOCKER_HOST", &host)
            .env("RELAY_LAYA_IMAGE", image::LAYA)
            .env("RELAY_FAULT_IMAGE", image::FAULT)
            .args(["test", "--locked", "-p"])
            .args(more)
            .args(["--", "--ignored"]))
    };
    let tested = test(&["end-to-end", "--test", "docker"])
        .and_then(|()| test(&["backend", "--features", "docker", "--test", "docker"]));
    let stopped = image::stop_engine();
    tested.and(stopped)
}
