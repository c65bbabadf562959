//! Commands in what is told to people. They name the server, and its namespace where that is not the usual one, so that they
//! can be copied as they stand.

use api::kinds::LayaServer;
use kube::ResourceExt;

/// What `relayctl` takes where no namespace is named.
const USUAL_NAMESPACE: &str = "default";

/// `relayctl WORDS NAME`, and the namespace where it has to be said.
pub(super) fn command(server: &LayaServer, words: &str) -> String {
    in_namespace(server, &format!("{words} {}", server.name_any()))
}

/// `relayctl WORDS`, about another object of the server's namespace.
pub(super) fn in_namespace(server: &LayaServer, words: &str) -> String {
    match server.namespace() {
        Some(namespace) if namespace != USUAL_NAMESPACE => {
            format!("relayctl {words} -n {namespace}")
        }
        _ => format!("relayctl {words}"),
    }
}

/// What shows the log of a revision, also once nothing runs of it any more.
pub(super) fn logs(server: &LayaServer, revision: &str) -> String {
    format!("{} --revision {revision}", command(server, "logs"))
}

/// What lets a model serve although its gate did not.
pub(super) fn force(server: &LayaServer, model: &str) -> String {
    let command = command(server, &format!("use {model} --server"));
    format!("{command} --force --reason TEXT")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(namespace: Option<&str>) -> LayaServer {
        serde_json::from_value(json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
            "metadata": {"name": "main", "namespace": namespace}, "spec": {"modelRef": {"name": "v1"}},
        }))
        .unwrap()
    }

    #[test]
    fn a_command_names_the_server_and_a_namespace_that_is_not_the_usual_one() {
        for namespace in [None, Some("default")] {
            let server = server(namespace);
            assert_eq!(
                command(&server, "rollout retry"),
                "relayctl rollout retry main"
            );
            assert_eq!(logs(&server, "r1"), "relayctl logs main --revision r1");
            assert_eq!(
                force(&server, "v2"),
                "relayctl use v2 --server main --force --reason TEXT"
            );
        }
        let team = server(Some("team"));
        assert_eq!(
            command(&team, "rollout abort"),
            "relayctl rollout abort main -n team"
        );
        assert_eq!(
            logs(&team, "r1"),
            "relayctl logs main -n team --revision r1"
        );
        assert_eq!(
            in_namespace(&team, "gate show default"),
            "relayctl gate show default -n team"
        );
    }
}
