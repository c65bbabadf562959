//! Decision-model servers behind a router that is a process: settings, the pass-through over sockets, metrics.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use testkit::{FakeLaya, Says};
use tokio::runtime::Runtime;

use crate::support::{Router, ask, post, relayd, run, wait_for};

const BODY: &[u8] =
    br#"{"state":"x","questions":{"urgent":{"type":"noul","instructions":"Is it?"}}}"#;

/// A fake and what runs it.
fn fake() -> (Runtime, FakeLaya) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let fake = runtime.block_on(FakeLaya::start(Says::relay()));
    (runtime, fake)
}

#[test]
fn servers_that_cannot_work_are_refused_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let open_key = file("key", "s3cret");
    fs::set_permissions(&open_key, fs::Permissions::from_mode(0o644)).unwrap();
    let config = |name: &str, text: &str| vec!["--config".to_owned(), file(name, text)];
    let url = "url = \"http://127.0.0.1:8000\"\n";
    for (name, arguments, expected) in [
        (
            "no address",
            vec!["--laya-url".to_owned(), "127.0.0.1:8000".to_owned()],
            "laya_url = `127.0.0.1:8000` (flag --laya-url): expected http://host:port",
        ),
        (
            "unknown field",
            config(
                "a.toml",
                &format!("[[servers]]\n{url}api_key_fil = \"x\"\n"),
            ),
            "unknown key `servers[0].api_key_fil`, did you mean `api_key_file`?",
        ),
        (
            "no url",
            config("b.toml", "[[servers]]\nweight = 1\n"),
            "servers[0].url is missing (file ",
        ),
        (
            "open key file",
            config(
                "c.toml",
                &format!("[[servers]]\n{url}api_key_file = \"{open_key}\"\n"),
            ),
            "hint: chmod 600 ",
        ),
        (
            "no such key file",
            config(
                "d.toml",
                &format!("[[servers]]\n{url}api_key_file = \"/none\"\n"),
            ),
            "server http://127.0.0.1:8000: cannot read key file /none: ",
        ),
        (
            "questions of another shape",
            config(
                "e.toml",
                &format!("[[servers]]\n{url}decisions = \"{open_key}\"\n"),
            ),
            "server http://127.0.0.1:8000: the questions ",
        ),
        (
            "one name twice",
            config("f.toml", &format!("[[servers]]\n{url}[[servers]]\n{url}")),
            "two servers are called `127.0.0.1:8000`; give one another name",
        ),
        (
            "no weight",
            config("g.toml", &format!("[[servers]]\n{url}weight = 0\n")),
            "no server has a weight above 0",
        ),
        (
            "addresses and tables in one file",
            config(
                "h.toml",
                &format!("laya_url = [\"http://127.0.0.1:8001\"]\n[[servers]]\n{url}"),
            ),
            "the same file has [[servers]]; write every server there",
        ),
    ] {
        let mut command = relayd(&[
            "router",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ]);
        let (code, _, err) = run(command.args(&arguments));
        assert_eq!(code, 2, "{name}: {err}");
        assert!(err.contains(expected), "{name}: {err}");
    }
}

#[test]
fn a_server_is_asked_through_the_router() {
    let (_runtime, fake) = fake();
    let name = fake.address().to_string();
    let by_flag = Router::start(&["--laya-url", &fake.url()]);
    let arguments = [
        "router",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--log-format",
        "json",
    ];
    let by_variable = Router::spawn(relayd(&arguments).env("RELAYD_LAYA_URL", fake.url()));
    for router in [by_flag, by_variable] {
        let request = post("/v1/systemone", "application/json", BODY);
        let answer = wait_for("an answer of the model", || {
            let answer = ask(router.address, &request);
            (answer.status == 200).then_some(answer)
        });
        assert_eq!(answer.headers["x-relay-model-version"], name);
        assert_eq!(answer.headers["x-relay-contract"], "match");
        assert_eq!(answer.json()["answers"]["urgent"]["type"], "noul");
        let metrics = router.get("/metrics").body;
        let line = format!("relay_router_breaker_open{{server=\"{name}\"}} 0\n");
        assert!(metrics.contains(&line), "{metrics}");
        let counted = "relay_router_requests_total{code=\"200\",route=\"/v1/systemone\"} 1\n";
        assert!(metrics.contains(counted), "{metrics}");
    }
}

#[test]
fn what_the_router_refuses_is_said_in_layas_form() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "red red-token-0123456789\n").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let router = Router::start(&["--token-file", tokens.to_str().unwrap()]);
    let request = |method: &str, headers: &str| {
        let length = BODY.len();
        let mut request = format!(
            "{method} /v1/systemone HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n"
        )
        .into_bytes();
        request.extend_from_slice(BODY);
        ask(router.address, &request)
    };
    let token = "authorization: Bearer red-token-0123456789\r\n";
    for (name, answer, status, detail) in [
        (
            "no token",
            request("POST", ""),
            401,
            "invalid or missing bearer token",
        ),
        (
            "other method",
            request("PUT", token),
            405,
            "Method Not Allowed",
        ),
        (
            "no model",
            request("POST", token),
            503,
            "no decision model is serving",
        ),
    ] {
        assert_eq!(answer.status, status, "{name}");
        assert_eq!(
            answer.body,
            format!("{{\"detail\":\"{detail}\"}}"),
            "{name}"
        );
        assert_eq!(answer.headers["content-type"], "application/json", "{name}");
    }
}
