//! `cargo xtask image laya`: builds our image with a Docker Engine. The engine is the one `DOCKER_HOST` names, else one
//! of our own that `tests/engines/docker.sh` starts.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{cargo, output, root, run};

/// Static binaries need the target named, or the flag reaches procedural macros too (engineering.md 8.5).
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Where Debian keeps the certificates that go into the image.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The user of our containers.
const USER: &str = "10001:10001";

/// Name of the image that [`laya`] builds.
pub(crate) const LAYA: &str = "relay-laya-native:latest";

/// Builds the image of program `laya` and prints its name and size.
pub(crate) fn laya() -> Result<(), String> {
    let binary = static_laya()?;
    let context = root().join("target/images/laya");
    prepare(&context, &binary)?;
    let host = engine()?;
    let revision = output(
        Command::new("git")
            .current_dir(root())
            .args(["rev-parse", "HEAD"]),
    )
    .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
    run(docker(&host)
        .env("DOCKER_BUILDKIT", "0")
        .args(["build", "--quiet", "--tag", LAYA])
        .args([
            "--build-arg",
            concat!("VERSION=", env!("CARGO_PKG_VERSION")),
        ])
        .args(["--build-arg", &format!("REVISION={revision}")])
        .arg("--file")
        .arg(root().join("images/laya/Dockerfile"))
        .arg(&context))?;
    let size = output(docker(&host).args(["image", "inspect", "--format", "{{.Size}}", LAYA]))?;
    let bytes: f64 = size
        .trim()
        .parse()
        .map_err(|error| format!("no size in `{}`: {error}", size.trim()))?;
    println!("{LAYA}: {:.1} MiB", bytes / f64::from(1 << 20));
    Ok(())
}

/// Builds program `laya` without a single shared library.
fn static_laya() -> Result<PathBuf, String> {
    run(cargo()
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .args([
            "build",
            "--locked",
            "--release",
            "--target",
            TARGET,
            "-p",
            "serve",
            "--bin",
            "laya",
        ]))?;
    Ok(root().join("target").join(TARGET).join("release/laya"))
}

/// The build context that `images/laya/Dockerfile` describes.
fn prepare(context: &Path, binary: &Path) -> Result<(), String> {
    let tell = |error: std::io::Error| format!("cannot prepare {}: {error}", context.display());
    let _ = std::fs::remove_dir_all(context);
    for folder in ["root/data/models", "root/tmp"] {
        std::fs::create_dir_all(context.join(folder)).map_err(tell)?;
    }
    run(Command::new("chown")
        .args(["-R", USER])
        .arg(context.join("root/data")))?;
    run(Command::new("chmod")
        .arg("1777")
        .arg(context.join("root/tmp")))?;
    std::fs::copy(binary, context.join("laya")).map_err(tell)?;
    if !Path::new(CERTIFICATES).exists() {
        return Err(format!(
            "{CERTIFICATES} is missing: apt-get install ca-certificates"
        ));
    }
    std::fs::copy(CERTIFICATES, context.join("ca-certificates.crt")).map_err(tell)?;
    Ok(())
}

/// Address of a Docker Engine.
pub(crate) fn engine() -> Result<String, String> {
    if let Ok(host) = std::env::var("DOCKER_HOST")
        && !host.is_empty()
    {
        return Ok(host);
    }
    let started = output(Command::new(root().join("tests/engines/docker.sh")).arg("start"))?;
    Ok(started.trim().to_owned())
}

/// Stops the engine that [`engine`] started; one that `DOCKER_HOST` names is somebody else's.
pub(crate) fn stop_engine() -> Result<(), String> {
    match std::env::var("DOCKER_HOST") {
        Ok(host) if !host.is_empty() => Ok(()),
        _ => run(Command::new(root().join("tests/engines/docker.sh")).arg("stop")),
    }
}

fn docker(host: &str) -> Command {
    let mut command = Command::new("docker");
    command.env("DOCKER_HOST", host);
    command
}
