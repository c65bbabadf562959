//! An instance of its own on the engine under test, seen through the client. Whatever it made is gone at the end, on panic
//! too.

use std::process::{Command, Output};
use std::time::Duration;

use backend::docker::Instance;

/// How often what is left is removed: what was under way when its maker ended may come later.
const ROUNDS: usize = 20;
/// Between two of them.
const ROUND: Duration = Duration::from_millis(100);

/// What the run of the tests is told.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask test`"))
}

/// Name of the image that fails on demand.
pub(crate) fn fault_image() -> String {
    variable("RELAY_FAULT_IMAGE")
}

/// Address of the engine under test.
pub(crate) fn host() -> String {
    variable("DOCKER_HOST")
}

/// Runs the client against an engine.
pub(crate) fn docker_at(host: &str, arguments: &[&str]) -> Output {
    Command::new("docker")
        .env("DOCKER_HOST", host)
        .args(arguments)
        .output()
        .unwrap()
}

/// 12 hex digits that no other run has.
pub(crate) fn random_instance() -> Instance {
    let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
    let digits: String = uuid
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(12)
        .collect();
    Instance::parse(&digits).unwrap()
}

/// What an instance has on an engine.
pub(crate) struct OnEngine {
    pub(crate) instance: Instance,
    host: String,
    images: Vec<String>,
}

impl OnEngine {
    pub(crate) fn new(host: &str, instance: &Instance) -> Self {
        Self {
            instance: instance.clone(),
            host: host.to_owned(),
            images: Vec::new(),
        }
    }

    /// Runs the client, which must succeed, and gives what it printed.
    pub(crate) fn told(&self, arguments: &[&str]) -> String {
        let output = docker_at(&self.host, arguments);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docker {arguments:?}: {err}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The fault image with these switches, as an image of its own; its id.
    pub(crate) fn faulty(&mut self, switches: &str) -> String {
        let from = fault_image();
        let made = self.told(&["create", &from]);
        let variable = format!("ENV RELAY_FAULT={switches}");
        let id = self.told(&["commit", "--change", &variable, &made]);
        self.told(&["rm", &made]);
        self.images.push(id.clone());
        id
    }

    /// Everything with the label or a name of the instance.
    pub(crate) fn left(&self) -> Vec<(&'static str, String)> {
        let label = format!("label=relay.dev/instance={}", self.instance.as_str());
        let name = format!("name={}", self.instance.prefix());
        let mut left = Vec::new();
        let lists: [(&'static str, &[&str]); 3] = [
            ("container", &["ps", "--all", "--quiet"]),
            ("volume", &["volume", "ls", "--quiet"]),
            ("network", &["network", "ls", "--quiet"]),
        ];
        for filter in [&label, &name] {
            for (kind, list) in lists {
                let mut arguments = list.to_vec();
                arguments.extend(["--filter", filter]);
                let output = docker_at(&self.host, &arguments).stdout;
                let text = String::from_utf8_lossy(&output).into_owned();
                left.extend(text.lines().map(|id| (kind, id.to_owned())));
            }
        }
        left.sort_by_key(|(kind, _)| {
            ["container", "volume", "network"]
                .iter()
                .position(|k| k == kind)
        });
        left.dedup();
        left
    }

    /// Containers and volumes without a name that the back end was to remove and did not.
    pub(crate) fn assert_nothing_runs(&self) {
        let volumes = format!("{}models", self.instance.prefix());
        let left: Vec<_> = self
            .left()
            .into_iter()
            .filter(|(kind, id)| *kind != "network" && *id != volumes)
            .collect();
        assert_eq!(left, []);
    }

    fn remove(&self, left: Vec<(&'static str, String)>) {
        for (kind, id) in left {
            let arguments: &[&str] = match kind {
                "container" => &["rm", "--force", "--volumes", &id],
                "volume" => &["volume", "rm", "--force", &id],
                _ => &["network", "rm", &id],
            };
            docker_at(&self.host, arguments);
        }
    }
}

impl Drop for OnEngine {
    fn drop(&mut self) {
        for _ in 0..ROUNDS {
            let left = self.left();
            if left.is_empty() {
                break;
            }
            self.remove(left);
            std::thread::sleep(ROUND);
        }
        for image in &self.images {
            docker_at(&self.host, &["rmi", "--force", image]);
        }
        if !std::thread::panicking() {
            assert_eq!(self.left(), [], "left on the engine");
        }
    }
}

/// Images that go with a test.
pub(crate) struct Forget(pub(crate) Vec<String>);

impl Drop for Forget {
    fn drop(&mut self) {
        for image in &self.0 {
            docker_at(&host(), &["rmi", "--force", image]);
        }
    }
}
