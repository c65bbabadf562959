//! The programs under test, built once, each run with a home of its own and ended by its handle, on panic too. Shared by
//! the test programs of this package; none of them uses all of it.

#![allow(dead_code, unused_imports)]

mod home;
mod http;
mod laya;
mod machine;
mod process;
mod router;
mod teach;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use home::Home;
pub(crate) use http::{Answer, Http};
pub(crate) use laya::{Laya, checkpoint};
pub(crate) use machine::{Machine, is_gone};
pub(crate) use process::{Ended, Running, read, run};
pub(crate) use router::Router;
pub(crate) use teach::{labels, teach};

/// Longest wait for anything a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An address where nothing listens: refused at once, and no program of ours ever takes it.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:9";

/// Path of a program of the workspace. The first call builds all; what is built already costs a second. A folder in
/// `RELAY_TEST_PROGRAMS` holds others, as a release build.
pub(crate) fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            if let Some(built) = std::env::var_os("RELAY_TEST_PROGRAMS") {
                return workspace().join(built);
            }
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let run = |arguments: &[&str]| {
                let output = Command::new(&cargo)
                    .args(arguments)
                    .current_dir(workspace())
                    .output()
                    .unwrap();
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "cargo {arguments:?}: {told}");
                output.stdout
            };
            run(&[
                "build", "-p", "relay", "-p", "relayctl", "-p", "relayd", "-p", "serve", "--locked",
            ]);
            let metadata = run(&["metadata", "--no-deps", "--format-version", "1", "--locked"]);
            let metadata: Value = serde_json::from_slice(&metadata).unwrap();
            let target = metadata["target_directory"].as_str().unwrap();
            Path::new(target).join("debug")
        })
        .join(name)
}

/// Top folder of the repository.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Waits until a look finds something; fails with what the last look saw instead.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(
                Instant::now() < deadline,
                "not within {PATIENCE:?}: {what}; last seen: {seen}"
            ),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A port of loopback that is free now, below those that the kernel gives to clients, so that it stays so while a server
/// is away.
pub(crate) fn free_port() -> u16 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    for _ in 0..100 {
        let random = RandomState::new().build_hasher().finish() % 10_000;
        let port = 20_000 + u16::try_from(random).unwrap();
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}
