//! Settings, and what is refused at start.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Router, relayd, run};

#[test]
fn what_cannot_work_is_refused_at_start_with_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let no_yaml = file("no.yaml", "spec: [");
    let misspelt = file(
        "misspelt.yaml",
        "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata: {name: p}\nspec: {profil: economy}\n",
    );
    let refused = file(
        "refused.yaml",
        "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata: {name: p}\nspec: {profile: cheap}\n",
    );
    let nameless = file(
        "nameless.yaml",
        "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\n",
    );
    let config = file("relayd.toml", "lisen = \"127.0.0.1:0\"\n");
    let no_toml = file("no.toml", "listen = \n");
    let open_tokens = file("tokens", "red red-token-0123456789\n");
    fs::set_permissions(&open_tokens, fs::Permissions::from_mode(0o644)).unwrap();
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let pipe = pipe.to_str().unwrap().to_owned();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let missing = folder.path().join("missing").to_str().unwrap().to_owned();
    for (name, arguments, code, expected) in [
        ("unknown flag", vec!["--lisen", "x"], 2, "--listen"),
        (
            "bad address",
            vec!["--listen", "localhost"],
            2,
            "listen = `localhost` (flag --listen): expected IP:PORT",
        ),
        (
            "bad format",
            vec!["--log-format", "xml"],
            2,
            "expected one of text, json",
        ),
        (
            "bad origin",
            vec!["--allow-origin", "*"],
            2,
            "allow_origin = `*`",
        ),
        (
            "no such policy",
            vec!["--policy", &missing],
            2,
            "cannot read policy",
        ),
        ("no YAML", vec!["--policy", &no_yaml], 2, "line 1"),
        (
            "no metadata",
            vec!["--policy", &nameless],
            2,
            "nameless.yaml: metadata: missing field `metadata`\n",
        ),
        (
            "misspelt policy",
            vec!["--policy", &misspelt],
            2,
            "spec.profil",
        ),
        (
            "refused policy",
            vec!["--policy", &refused],
            2,
            "spec.profile",
        ),
        (
            "unknown key",
            vec!["--config", &config],
            2,
            "unknown key `lisen`, did you mean `listen`?",
        ),
        ("no TOML", vec!["--config", &no_toml], 2, "line 1"),
        (
            "no such file",
            vec!["--config", &missing],
            2,
            "cannot read configuration file",
        ),
        (
            "open token file",
            vec!["--token-file", &open_tokens],
            2,
            "has mode 0644, expected 0600",
        ),
        (
            "no token file",
            vec!["--token-file", &missing],
            2,
            "cannot read token file",
        ),
        (
            "beyond loopback",
            vec!["--listen", "0.0.0.0:0"],
            2,
            "0.0.0.0:0 is not loopback and there is no token file",
        ),
        (
            "port taken",
            vec!["--listen", &taken],
            3,
            "hint: another program has this port; `--listen 127.0.0.1:0`",
        ),
        (
            "admin port taken",
            vec!["--listen", "127.0.0.1:0", "--admin-listen", &taken],
            3,
            "hint: another program has this port; `--admin-listen 127.0.0.1:0`",
        ),
        (
            "a pipe for a policy",
            vec!["--policy", &pipe],
            2,
            "is a pipe, not a regular file",
        ),
        (
            "a pipe for a configuration",
            vec!["--config", &pipe],
            2,
            "is a pipe, not a regular file",
        ),
        (
            "a pipe for tokens",
            vec!["--token-file", &pipe],
            2,
            "is a pipe, not a regular file",
        ),
        (
            "an endless policy",
            vec!["--policy", "/dev/zero"],
            2,
            "is a device, not a regular file",
        ),
        (
            "an endless configuration",
            vec!["--config", "/dev/zero"],
            2,
            "is a device, not a regular file",
        ),
        (
            "a nasty argument",
            vec!["--log-format", "json", "\u{1b}]0;owned\u{7}\r\n"],
            2,
            "relayd: unexpected argument '\\u{1b}]0;owned\\u{7}\\r\\n' found\nhint: usage: relayd router",
        ),
    ] {
        let mut command = relayd(&["router"]);
        let (seen, out, err) = run(command.args(&arguments).env("RELAY_HOME", folder.path()));
        assert_eq!((seen, out.as_str()), (code, ""), "{name}: {err}");
        assert!(err.contains(expected), "{name}: {err}");
        let escapes = |c: char| c.is_control() && c != '\n';
        assert!(!err.contains(escapes), "{name}: {err:?}");
    }
}

/// A full disk is an error, unlike a reader that has seen enough.
#[test]
fn help_that_cannot_be_written_is_an_error() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["router", "--help"],
        &["router", "--print-config"],
    ] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = relayd(arguments).stdout(full).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {err}");
        assert!(err.contains("cannot write to standard output: "), "{err}");
    }
}

#[test]
fn the_configuration_is_shown_with_the_source_of_each_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("relayd.toml");
    fs::write(
        &path,
        "log_format = \"json\"\nallow_origin = [\"https://a.example\"]\n[[servers]]\nurl = \"http://127.0.0.1:8000\"\nweight = 3\n",
    )
    .unwrap();
    let mut command = relayd(&["router", "--print-config", "--listen", "127.0.0.1:1"]);
    command
        .env("RELAYD_CONFIG", &path)
        .env("RELAYD_ADMIN_LISTEN", "127.0.0.1:2");
    let (code, out, err) = run(&mut command);
    let file = path.display();
    let expected = format!(
        "listen = \"127.0.0.1:1\"  # flag --listen\n\
         admin_listen = \"127.0.0.1:2\"  # environment RELAYD_ADMIN_LISTEN\n\
         # policy is unset\n\
         # policy_object is unset\n\
         # kubeconfig is unset\n\
         # namespace is unset\n\
         laya_url = []  # default\n\
         servers = [{{ url = \"http://127.0.0.1:8000\", weight = \"3\" }}]  # file {file}\n\
         # database_url is unset\n\
         # database_url_file is unset\n\
         # token_file is unset\n\
         # internal_token_file is unset\n\
         allow_origin = [\"https://a.example\"]  # file {file}\n\
         log_format = \"json\"  # file {file}\n\
         log_level = \"info\"  # default\n"
    );
    assert_eq!((code, out, err), (0, expected, String::new()));
}

#[test]
fn beyond_loopback_the_token_file_of_relay_home_is_used() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("router")).unwrap();
    let path = home.path().join("router/tokens");
    fs::write(&path, "red red-token-0123456789\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let mut command = relayd(&[
        "router",
        "--listen",
        "0.0.0.0:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--log-format",
        "json",
    ]);
    let mut router = Router::spawn(command.env("RELAY_HOME", home.path()));
    router.address.set_ip([127, 0, 0, 1].into());
    assert_eq!(router.get("/v1/policy").slug(), "unauthorized");
}

#[test]
fn a_policy_file_is_put_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let text = "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata: {name: thrift}\nspec:\n  profile: economy\n  tiers: [{name: fast, models: [acme/tiny]}]\n";
    fs::write(&path, text).unwrap();
    let router = Router::start(&["--policy", path.to_str().unwrap()]);
    let policy = router.get("/v1/policy").json();
    assert_eq!(
        (policy["name"].as_str(), policy["spec"]["profile"].as_str()),
        (Some("thrift"), Some("economy"))
    );
    let decision = router.route("{\"request\":\"what is a monad?\"}").json();
    assert_eq!(
        (
            &decision["profile"],
            &decision["provenance"]["policy"]["name"]
        ),
        (&"economy".into(), &"thrift".into())
    );
    assert_eq!(
        router.get("/v1/models").json()["tiers"]["fast"][0]["model"],
        "acme/tiny"
    );
}

#[test]
fn a_taken_default_admin_port_is_replaced_and_said() {
    // Somebody has it: us, or whoever had it before.
    let _held = TcpListener::bind("127.0.0.1:9737");
    let router = Router::spawn(&mut relayd(&[
        "router",
        "--listen",
        "127.0.0.1:0",
        "--log-format",
        "json",
    ]));
    assert_ne!(router.admin.port(), 9737);
    assert_eq!(router.admin("/livez").status, 200);
}

#[test]
fn the_version_needs_no_configuration() {
    let (code, out, _) = run(&mut relayd(&["--version"]));
    assert_eq!(
        (code, out),
        (0, format!("relayd {}\n", env!("CARGO_PKG_VERSION")))
    );
}
