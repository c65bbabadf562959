//! The script that starts servers for tests: what was killed comes back as it was, what a dead owner left is cleaned up.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs::{Ended, Running, free_port, run, until, workspace};
use crate::remote::Remote;
use crate::target::{Ask, Target as _};

fn script(arguments: &[&str]) -> Ended {
    let mut command = Command::new(workspace().join("tests/engines/kubernetes.sh"));
    run(command.args(arguments).stdin(Stdio::null()))
}

fn told(arguments: &[&str]) -> String {
    let ended = script(arguments);
    assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
    ended.out.trim().to_owned()
}

/// A folder of a server, which is stopped with its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!(
            "relay-kubernetes-test-{}-{}",
            std::process::id(),
            free_port()
        );
        Self(std::env::temp_dir().join(name))
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn pid(&self, name: &str) -> Option<u32> {
        let text = std::fs::read_to_string(self.0.join(format!("{name}.pid"))).ok()?;
        text.trim().parse().ok()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        script(&["stop", self.text()]);
    }
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}/exe")).exists()
}

#[test]
#[ignore = "starts a kube-apiserver"]
fn a_server_that_was_killed_comes_back_with_what_it_held_and_a_stopped_one_leaves_nothing() {
    let folder = Folder::new();
    let kubeconfig = told(&["start", folder.text()]);
    let server = || Remote::of_kubeconfig("another kube-apiserver", Path::new(&kubeconfig));
    crate::cluster::namespace(&server(), "kept");
    let first = folder.pid("kube-apiserver").unwrap();
    // Started is started.
    assert_eq!(told(&["start", folder.text()]), kubeconfig);
    assert_eq!(folder.pid("kube-apiserver"), Some(first));
    told(&["kill", folder.text(), "api"]);
    assert!(!runs(first));
    told(&["kill", folder.text(), "etcd"]);
    assert_eq!(told(&["start", folder.text()]), kubeconfig);
    let kept = server().ask(&Ask::get("/api/v1/namespaces/kept"));
    assert_eq!(kept.code, 200, "{kept:?}");
    let pids = ["kube-apiserver", "etcd"].map(|name| folder.pid(name).unwrap());
    told(&["stop", folder.text()]);
    assert!(pids.iter().all(|pid| !runs(*pid)), "{pids:?}");
    assert!(!folder.0.exists());
    told(&["stop", folder.text()]);
}

#[test]
#[ignore = "starts a kube-apiserver"]
fn what_a_dead_owner_left_is_stopped_by_the_next_start() {
    let (left, next) = (Folder::new(), Folder::new());
    let mut owner = Running::spawn(Command::new("sleep").arg("600"));
    told(&["start", left.text(), &owner.0.id().to_string()]);
    let pid = left.pid("kube-apiserver").unwrap();
    owner.kill();
    told(&["start", next.text()]);
    until("the other is gone", || {
        if runs(pid) {
            Err("it runs".to_owned())
        } else {
            Ok(())
        }
    });
    assert!(!left.0.exists());
}

#[test]
fn a_machine_without_go_is_told_so_and_ci_fails() {
    let empty = tempfile::tempdir().unwrap();
    // Nothing but what the script asks for before it builds: some machines have Go among the programs of the system.
    for tool in ["cat", "cut", "dirname", "mkdir", "sha256sum", "uname"] {
        let there = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
        let there = there.iter().find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(there, empty.path().join(tool)).unwrap();
    }
    for (ci, code) in [("", 3), ("true", 1)] {
        let mut command = Command::new("/bin/bash");
        command
            .env_clear()
            .env("PATH", empty.path())
            .env("HOME", empty.path())
            .env("CI", ci)
            .arg(workspace().join("tests/engines/kubernetes.sh"))
            .arg("build")
            .stdin(Stdio::null());
        let ended = run(&mut command);
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.err.contains("NO GO TOOLCHAIN"), "{ended:?}");
    }
}
