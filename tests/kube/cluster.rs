//! The real server of this run, which `cargo xtask test` starts and stops (`tests/engines/kubernetes.sh`), with our CRDs.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
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

/// The kubectl that belongs to the server.
pub(crate) fn kubectl(kubeconfig: &std::path::Path) -> Command {
    let mut command = Command::new(variable("RELAY_TEST_KUBECTL"));
    // Nothing of this machine: neither its configuration nor what it remembers of other servers.
    command.env_clear().env("KUBECONFIG", kubeconfig);
    command
}

/// The real server as its administrator, with our CRDs served.
pub(crate) fn real() -> Remote {
    static READY: OnceLock<()> = OnceLock::new();
    let real = Remote::of_kubeconfig("kube-apiserver", &kubeconfig());
    READY.get_or_init(|| {
        let documents: Vec<_> = api::crds::DOCUMENTS.iter().map(|(_, text)| *text).collect();
        let documents = documents.join("\n---\n");
        kubectl_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], &documents);
        let condition = "condition=Established";
        kubectl_with(&["wait", "--for", condition, "--timeout=60s", "-f", "-"], &documents);
    });
    real
}

fn kubectl_with(arguments: &[&str], input: &str) {
    let mut child = kubectl(&kubeconfig())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "kubectl {arguments:?}: {told}");
}

/// Makes a namespace; one that is there already will do.
pub(crate) fn namespace(target: &dyn Target, name: &str) {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let told = target.ask(&Ask::json("POST", "/api/v1/namespaces", &body));
    let there = matches!(told.code, 201 | 409);
    assert!(there, "{}: {told:?}", target.name());
}
