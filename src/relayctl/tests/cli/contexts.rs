//! Which control plane is talked to.

use crate::support::{Home, first};

const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: team
clusters:
  - {name: c, cluster: {server: 'https://127.0.0.1:1'}}
contexts:
  - {name: team, context: {cluster: c, user: u, namespace: relay}}
  - {name: \"odd\\e[2J\", context: {cluster: none, user: u}}
users:
  - {name: u, user: {token: t}}
";

#[test]
fn contexts_are_listed_chosen_and_kept() {
    let home = Home::new();
    let ran = home.run(&["context", "ls"]);
    assert_eq!(
        ran.out,
        "CURRENT   NAME    ADDRESS               NAMESPACE\n*         local   ~/relay/daemon/sock   default\n"
            .replace("ADDRESS               ", &format!("ADDRESS{}", " ".repeat(home.path("relay/daemon/sock").display().to_string().len() - 4)))
    );
    home.write("kubeconfig", KUBECONFIG);
    let ran = home.run(&["context", "ls", "--no-headers"]);
    assert!(
        ran.out.contains("team")
            && ran.out.contains("https://127.0.0.1:1")
            && ran.out.contains("relay\n"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);

    let ran = home.run(&["context", "use", "nobody"]);
    assert_eq!(ran.code, Some(3));
    assert_eq!(first(&ran), "relayctl: there is no context `nobody`");
    assert_eq!(home.run(&["context", "use", "team"]).code, Some(0));
    let ran = home.run(&["context", "show"]);
    assert_eq!(
        ran.out,
        "team (relayctl.toml), https://127.0.0.1:1, namespace relay\n"
    );
    let ran = home.run(&[
        "context",
        "show",
        "--context",
        "local",
        "-o",
        "jsonpath={.name} {.source}",
    ]);
    assert_eq!(ran.out, "local flag");

    // Nothing listens there.
    let ran = home.run(&["get", "rp"]);
    assert_eq!(ran.code, Some(6), "{}", ran.err);
    assert!(
        first(&ran).starts_with("relayctl: cannot reach the API of context `team`: "),
        "{}",
        ran.err
    );
}

#[test]
fn what_names_no_context_is_told_with_who_named_it() {
    let home = Home::new();
    let ran = home.run(&["get", "rp", "--context", "team"]);
    assert_eq!(ran.code, Some(3));
    assert!(
        first(&ran).starts_with("relayctl: cannot read the kubeconfig: "),
        "{}",
        ran.err
    );
    home.write("kubeconfig", KUBECONFIG);
    let ran = home.run(&["get", "rp", "--context", "nobody"]);
    assert_eq!(ran.code, Some(3));
    assert_eq!(
        first(&ran),
        "relayctl: there is no context `nobody` (named by --context)"
    );
    home.write("kubeconfig", "a: [");
    let ran = home.run(&["get", "rp", "--context", "team"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    home.write("relay/relayctl.toml", "context = 3\n");
    let ran = home.run(&["get", "rp"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        first(&ran).starts_with("relayctl: ~/relay/relayctl.toml:1: "),
        "{}",
        ran.err
    );
}

#[test]
fn a_laptop_without_a_daemon_is_told_how_to_start_one() {
    let home = Home::new();
    let ran = home.run(&["get", "rp", "-v"]);
    assert_eq!(ran.code, Some(6));
    assert_eq!(
        first(&ran),
        "relayctl: cannot reach the API of context `local`: `relayd local` is not running: nothing listens on ~/relay/daemon/sock"
    );
    assert!(ran.err.contains("caused by: "), "{}", ran.err);
    assert!(
        ran.err.contains("hint: start it with `relayctl up`"),
        "{}",
        ran.err
    );
    let ran = home.run(&["status"]);
    assert_eq!(ran.code, Some(6));
    assert_eq!(
        ran.out,
        "context   local, namespace default\nrelayd    not running\nproblem   `relayd local` is not running\n          fix: relayctl up\n"
    );
    let ran = home.run(&["doctor", "-o", "json"]);
    assert_eq!(ran.code, Some(15));
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["healthy"], false);
    let ran = home.run(&["down"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(0), "`relayd local` is not running\n")
    );
    assert!(!home.path("relay").exists(), "looking makes nothing");
}
