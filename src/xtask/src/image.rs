//! `cargo xtask image NAME` and `cargo xtask images`: build our images with a Docker Engine. The engine is the one
//! `DOCKER_HOST` names, else one of our own that `tests/engines/docker.sh` starts.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{cargo, output, root, run};

/// Static binaries need the target named, or the flag reaches procedural macros too (engineering.md 8.5).
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Where Debian keeps the certificates that go into the image.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The user of our containers.
const USER: &str = "10001:10001";

/// Name of the image of program `laya`.
pub(crate) const LAYA: &str = "relay-laya-native:latest";
/// Name of the same program as tests run it: built in a third of the time, and never taken for the other.
pub(crate) const LAYA_FOR_TESTS: &str = "relay-laya-native:for-tests";
/// Name of the image that fails as it is told.
pub(crate) const FAULT: &str = "relay-fault:latest";

/// An image of ours: a static binary and next to nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Image {
    /// Its folder below `images`, and the word on the command line.
    name: &'static str,
    tag: &'static str,
    /// What cargo is asked for.
    package: &'static str,
    binary: &'static str,
    features: &'static [&'static str],
    profile: &'static str,
    /// Whether it speaks to servers on the Internet.
    certificates: bool,
}

/// All of them.
pub(crate) const IMAGES: [Image; 2] = [
    Image {
        name: "laya",
        tag: LAYA,
        package: "serve",
        binary: "laya",
        features: &[],
        profile: "release",
        certificates: true,
    },
    Image {
        name: "fault",
        tag: FAULT,
        package: "testkit",
        binary: "fault-laya",
        features: &["--no-default-features", "--features", "image"],
        profile: "quick",
        certificates: false,
    },
];

/// Builds the image of this name.
pub(crate) fn build(name: &str) -> Result<(), String> {
    match IMAGES.iter().find(|image| image.name == name) {
        Some(image) => image.build(),
        None => {
            let names: Vec<&str> = IMAGES.iter().map(|image| image.name).collect();
            Err(format!(
                "there is no image `{name}`; there are {}",
                names.join(" and ")
            ))
        }
    }
}

/// Builds all images.
pub(crate) fn build_all() -> Result<(), String> {
    IMAGES.iter().try_for_each(Image::build)
}

/// Builds all images for tests: one profile, so that what they have in common is built once.
pub(crate) fn build_for_tests() -> Result<(), String> {
    IMAGES.iter().try_for_each(|image| {
        let tag = if image.tag == LAYA {
            LAYA_FOR_TESTS
        } else {
            image.tag
        };
        let quick = Image {
            profile: "quick",
            tag,
            ..*image
        };
        quick.build()
    })
}

impl Image {
    /// Builds it and prints its name and size.
    fn build(&self) -> Result<(), String> {
        let binary = self.static_binary()?;
        let context = target().join("images").join(self.name);
        self.prepare(&context, &binary)?;
        let host = engine()?;
        let revision = output(
            Command::new("git")
                .current_dir(root())
                .args(["rev-parse", "HEAD"]),
        )
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
        run(docker(&host)
            .env("DOCKER_BUILDKIT", "0")
            .args(["build", "--quiet", "--tag", self.tag])
            .args([
                "--build-arg",
                concat!("VERSION=", env!("CARGO_PKG_VERSION")),
            ])
            .args(["--build-arg", &format!("REVISION={revision}")])
            .arg("--file")
            .arg(root().join("images").join(self.name).join("Dockerfile"))
            .arg(&context))?;
        let size =
            output(docker(&host).args(["image", "inspect", "--format", "{{.Size}}", self.tag]))?;
        let bytes: f64 = size
            .trim()
            .parse()
            .map_err(|error| format!("no size in `{}`: {error}", size.trim()))?;
        println!("{}: {:.1} MiB", self.tag, bytes / f64::from(1 << 20));
        Ok(())
    }

    /// Builds its program without a single shared library.
    fn static_binary(&self) -> Result<PathBuf, String> {
        run(cargo()
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .args(["build", "--locked", "--profile", self.profile])
            .args(["--target", TARGET, "-p", self.package])
            .args(self.features)
            .args(["--bin", self.binary]))?;
        let folder = target().join(TARGET).join(self.profile);
        Ok(folder.join(self.binary))
    }

    /// The build context that its Dockerfile describes.
    fn prepare(&self, context: &Path, binary: &Path) -> Result<(), String> {
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
        if !self.certificates {
            return Ok(());
        }
        if !Path::new(CERTIFICATES).exists() {
            return Err(format!(
                "{CERTIFICATES} is missing: apt-get install ca-certificates"
            ));
        }
        std::fs::copy(CERTIFICATES, context.join("ca-certificates.crt")).map_err(tell)?;
        Ok(())
    }
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
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
