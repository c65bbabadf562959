//! The real server of this run, which `cargo xtask test` starts and stops (`tests/engines/kubernetes.sh`), with our CRDs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::json;

use crate::remote::Remote;
use crate::target::{Ask, Target};

fn variable(name: &str) -> PathBuf {
    std::env::var_os(name)
        .unwrap_or_else(|| panic!("{name} is not set: run `cargo xtask test`"))
        .into()
}

/// Where the administrator's kubeconfig is.
pub(crate) fn kubeconfig() -> PathBuf {
    variable("RELAY_TEST_KUBECONFIG")
}

/// The kubectl that belongs to the server, with nothing of this machine: neither its configuration nor what it remembers
/// of other servers, which it keeps in a home.
pub(crate) fn kubectl(kubeconfig: &Path, home: &Path) -> Command {
    let mut command = Command::new(variable("RELAY_TEST_KUBECTL"));
    command
        .env_clear()
        .env("HOME", home)
        .env("KUBECONFIG", kubeconfig)
        .current_dir(home);
    command
}

/// The real server as its administrator, with our CRDs served.
pub(crate) fn real() -> Remote {
    static READY: OnceLock<()> = OnceLock::new();
    let real = Remote::of_kubeconfig("kube-apiserver", &kubeconfig());
    READY.get_or_init(|| {
        let folder = crate::crds::folder();
        let folder = folder.to_str().unwrap();
        run(&["apply", "--server-side", "--force-conflicts", "-f", folder]);
        let condition = "condition=Established";
        run(&["wait", "--for", condition, "--timeout=60s", "-f", folder]);
    });
    real
}

fn run(arguments: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let mut kubectl = kubectl(&kubeconfig(), home.path());
    let output = kubectl.args(arguments).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments:?}: {told}");
}

/// Makes a namespace; one that is there already will do.
pub(crate) fn namespace(target: &dyn Target, name: &str) {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let told = target.ask(&Ask::json("POST", "/api/v1/namespaces", &body));
    let there = matches!(told.code, 201 | 409);
    assert!(there, "{}: {told:?}", target.name());
}
