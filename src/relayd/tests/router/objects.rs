//! A policy that is an object: what a router does when the object, its API or the way to it is not there.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Answer, Router, ask, connect, relayd, run, wait_for};

pub(crate) const POLICIES: &str = "/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies";

/// A `relayd local` with this home.
fn local(home: &Path) -> Router {
    let mut command = relayd(&["local", "--listen", "127.0.0.1:0"]);
    command.args(["--admin-listen", "127.0.0.1:0", "--daemon-port", "0"]);
    command.args(["--log-format", "json"]);
    Router::spawn(command.env("RELAY_HOME", home))
}

/// A router of its own that follows a policy over the port of that `relayd local`, as it would over a cluster's.
fn follower(home: &Path, policy: &str) -> Router {
    let kubeconfig = home.join("daemon/kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    Router::start(&[
        "--policy-object",
        policy,
        "--kubeconfig",
        kubeconfig,
        "--namespace",
        "default",
    ])
}

/// Where the object API of a home listens.
pub(crate) fn daemon(home: &Path) -> SocketAddr {
    let text = fs::read_to_string(home.join("daemon/endpoint.json")).unwrap();
    let endpoint: Value = serde_json::from_str(&text).unwrap();
    let url = endpoint["url"].as_str().unwrap();
    url.strip_prefix("http://").unwrap().parse().unwrap()
}

pub(crate) fn head(home: &Path, method: &str, path: &str) -> String {
    let token = fs::read_to_string(home.join("daemon/token")).unwrap();
    let token = token.trim();
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n")
}

pub(crate) fn objects(home: &Path, method: &str, path: &str, body: &str) -> Answer {
    let head = head(home, method, path);
    let length = body.len();
    let request =
        format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
    ask(daemon(home), request.as_bytes())
}

/// Creates the policy `default`, and waits until it is accepted: its revision.
fn accepted(home: &Path, spec: &Value) -> String {
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "metadata": {"name": "default"}, "spec": spec,
    });
    let created = objects(home, "POST", POLICIES, &object.to_string());
    assert_eq!(created.status, 201, "{created:?}");
    wait_for("the policy to be accepted", || {
        let policy = objects(home, "GET", &format!("{POLICIES}/default"), "").json();
        policy["status"]["acceptedRevision"]
            .as_str()
            .map(str::to_owned)
    })
}

pub(crate) fn until_ready(router: &Router) {
    wait_for("the router to be ready", || {
        (router.admin("/readyz").status == 200).then_some(())
    });
}

fn in_force(router: &Router) -> String {
    router.get("/v1/policy").json()["revision"]
        .as_str()
        .unwrap()
        .to_owned()
}

pub(crate) fn logged(router: &Router, part: &str) -> bool {
    router.log().iter().any(|line| line.contains(part))
}

#[test]
fn a_policy_that_says_what_the_built_in_one_says_makes_a_router_ready() {
    let home = tempfile::tempdir().unwrap();
    let first = local(home.path());
    let built_in = in_force(&first);
    assert_eq!(accepted(home.path(), &json!({})), built_in);
    until_ready(&first);
    let shared = follower(home.path(), "default");
    until_ready(&shared);
    drop(shared);
    drop(first);
    // Now it is accepted before the router asks for the first time.
    until_ready(&local(home.path()));
}

#[test]
fn a_policy_that_never_exists_keeps_a_shared_router_unready_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let daemon = local(home.path());
    // One user's own goes on with the built-in one.
    until_ready(&daemon);
    let mut router = follower(home.path(), "nobody");
    wait_for("it to say what it waits for", || {
        let report = router.admin("/readyz");
        assert_eq!(report.status, 503, "{report:?}");
        report
            .body
            .contains("RoutingPolicy default/nobody, which is not there")
            .then_some(())
    });
    assert_eq!(router.admin("/livez").status, 200);
    router.signal(Signal::TERM);
    assert_eq!(router.ended().code(), Some(0));
}

#[test]
fn fault_01_a_router_waits_for_an_api_server_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(
        &kubeconfig,
        kubeconfig_of("https://127.0.0.1:9", "insecure-skip-tls-verify: true"),
    )
    .unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let mut router = Router::start(&["--policy-object", "team", "--kubeconfig", kubeconfig]);
    let report = router.admin("/readyz");
    assert_eq!(report.status, 503, "{report:?}");
    assert!(report.body.contains("the object API"), "{report:?}");
    assert_eq!(router.admin("/livez").status, 200);
    assert!(logged(
        &router,
        "cannot watch the policy; the last one stays in force"
    ));
    // A try that fails is not an error of its own, and no cause is told twice.
    for line in router.log() {
        assert!(!line.contains("\"level\":\"ERROR\""), "{line}");
        assert!(line.matches("Connection refused").count() <= 1, "{line}");
    }
    let began = Instant::now();
    router.signal(Signal::TERM);
    assert_eq!(router.ended().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn fault_38_open_watches_do_not_hold_up_the_end() {
    let home = tempfile::tempdir().unwrap();
    let mut router = local(home.path());
    let mut streams = Vec::new();
    for _ in 0..5 {
        let mut stream = connect(daemon(home.path()));
        let head = head(home.path(), "GET", &format!("{POLICIES}?watch=true"));
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        streams.push(stream);
    }
    let began = Instant::now();
    router.signal(Signal::TERM);
    assert_eq!(router.ended().code(), Some(0), "{:?}", router.log());
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

fn kubeconfig_of(server: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: '{server}', {more}}}}}]\nusers: [{{name: u, user: {{token: x}}}}]\n"
    )
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_one_line_and_a_mistake_of_settings() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let missing = folder.path().join("missing").to_str().unwrap().to_owned();
    let tls = "insecure-skip-tls-verify: true";
    let other = kubeconfig_of("https://127.0.0.1:9", tls).replace("cluster: c,", "cluster: other,");
    for (name, path, expected) in [
        (
            "missing",
            missing,
            "No such file or directory (os error 2)\n",
        ),
        ("no YAML", file("bad", "a: ["), "line 1"),
        (
            "no context",
            file("empty", "apiVersion: v1\nkind: Config\n"),
            "current context",
        ),
        ("an unknown cluster", file("other", &other), "other"),
        (
            "no address",
            file("url", &kubeconfig_of("not a url", tls)),
            "cluster url",
        ),
        (
            "a certificate that is none",
            file(
                "ca",
                &kubeconfig_of("https://127.0.0.1:9", "certificate-authority-data: '%%%'"),
            ),
            "base64",
        ),
    ] {
        for program in [
            &["controller"][..],
            &[
                "router",
                "--policy-object",
                "team",
                "--listen",
                "127.0.0.1:0",
            ],
        ] {
            let mut command = relayd(program);
            command.args(["--admin-listen", "127.0.0.1:0", "--kubeconfig", &path]);
            let (code, out, err) = run(&mut command);
            assert_eq!((code, out.as_str()), (2, ""), "{name}: {err}");
            assert!(
                err.starts_with("relayd: cannot use kubeconfig ") && err.contains(&path),
                "{name}: {err}"
            );
            assert!(err.contains(expected), "{name}: {err}");
            assert_eq!(err.lines().count(), 1, "{name}: {err}");
            assert!(err.matches("os error").count() <= 1, "{name}: {err}");
        }
    }
}

#[test]
fn a_daemon_that_cannot_listen_is_told_with_its_exit_code() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("x".repeat(120));
    for (name, home, port, expected) in [
        (
            "port taken",
            folder.path(),
            port.as_str(),
            "hint: another program has this port; `--daemon-port 0`",
        ),
        (
            "path too long",
            deep.as_path(),
            "0",
            "bytes, limit 107\nhint: set RELAY_HOME",
        ),
    ] {
        let mut command = relayd(&[
            "local",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ]);
        command
            .args(["--log-level", "error", "--daemon-port", port])
            .env("RELAY_HOME", home);
        let (code, out, err) = run(&mut command);
        assert_eq!((code, out.as_str()), (3, ""), "{name}: {err}");
        assert!(err.contains(expected), "{name}: {err}");
    }
}
