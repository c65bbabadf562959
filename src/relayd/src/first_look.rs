//! When the addresses in status are those of this life of the machine (control-plane 10): ports of servers are chosen anew
//! at each start, and until every one that has traffic was seen where its status says, another program may have it. Until
//! then the router's table stays empty, and rules answer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::group::Kind;
use api::kinds::LayaServer;
use backend::{Backend, Observed, Owner, Question, RunState};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use service::runtime::Shutdown;
use tokio::sync::watch;

/// After the first look that did not show all in place; doubled up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Looks until it holds, and says so once. Ends when the process drains.
pub(crate) async fn run(
    client: Client,
    backend: Arc<dyn Backend>,
    holds: watch::Sender<bool>,
    shutdown: Shutdown,
) {
    let look = async {
        let mut pause = FIRST_PAUSE;
        while !all_in_place(&client, &*backend).await {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    };
    tokio::select! {
        () = shutdown.draining() => return,
        () = look => {}
    }
    tracing::info!("the addresses of all servers are those of this engine now");
    holds.send_replace(true);
    // Its end would be the end of the process.
    shutdown.draining().await;
}

async fn all_in_place(client: &Client, backend: &dyn Backend) -> bool {
    let servers: Api<LayaServer> = Api::all(client.clone());
    let Ok(list) = servers.list(&ListParams::default()).await else {
        return false;
    };
    for server in list {
        if urls(&server).next().is_none() {
            continue;
        }
        let owner = Owner {
            kind: Kind::LayaServer,
            namespace: server.namespace().unwrap_or_default(),
            name: server.name_any(),
            uid: server.uid().unwrap_or_default(),
        };
        match backend.observe(&owner, &Question::default()).await {
            Ok(seen) if is_in_place(&server, &seen) => {}
            Ok(_) | Err(_) => return false,
        }
    }
    true
}

/// Whether every address that has traffic is one of a server of ours that runs. Pure.
fn is_in_place(server: &LayaServer, seen: &Observed) -> bool {
    let running: BTreeSet<&str> = seen
        .servers
        .iter()
        .filter(|replica| replica.state == RunState::Running)
        .filter_map(|replica| replica.url.as_deref())
        .collect();
    seen.complete && urls(server).all(|url| running.contains(url.trim_end_matches('/')))
}

/// Addresses with traffic; that of an external server is a person's word and never moves.
fn urls(server: &LayaServer) -> impl Iterator<Item = &str> {
    let external = server.spec.external.as_ref();
    let external = external.map(|external| external.url.trim_end_matches('/'));
    let traffic = server
        .status
        .as_ref()
        .and_then(|status| status.traffic.as_ref());
    traffic
        .into_iter()
        .flat_map(|traffic| &traffic.targets)
        .flat_map(|target| &target.urls)
        .map(String::as_str)
        .filter(move |url| Some(url.trim_end_matches('/')) != external)
}

#[cfg(test)]
mod tests {
    use backend::ServerSeen;
    use serde_json::json;

    use super::*;

    fn server(external: Option<&str>, urls: &[&str]) -> LayaServer {
        let mut spec = json!({"modelRef": {"name": "m"}});
        if let Some(url) = external {
            spec["external"] = json!({"url": url});
        }
        serde_json::from_value(json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer", "metadata": {"name": "main"}, "spec": spec,
            "status": {"traffic": {"generation": 1, "targets": [{"urls": urls, "weight": 100}]}},
        }))
        .unwrap()
    }

    fn replica(state: RunState, url: Option<&str>) -> ServerSeen {
        ServerSeen {
            revision: "r".to_owned(),
            ordinal: 0,
            state,
            started_at: None,
            restarts: 0,
            exit_code: None,
            oom_killed: false,
            image_id: None,
            url: url.map(str::to_owned),
            spec_hash: None,
            hash_matches: None,
            tampered: Vec::new(),
            waiting: None,
            memory_bytes: 0,
            model: None,
            inputs: None,
            checkpoint: None,
            log_tail: String::new(),
        }
    }

    #[test]
    fn addresses_hold_once_a_server_of_ours_runs_at_each() {
        let (old, new) = ("http://127.0.0.1:1", "http://127.0.0.1:2");
        let running = |url| replica(RunState::Running, Some(url));
        for (name, server, replicas, complete, expected) in [
            ("nothing has traffic", server(None, &[]), vec![], true, true),
            ("an earlier life", server(None, &[old]), vec![], true, false),
            (
                "another port",
                server(None, &[old]),
                vec![running(new)],
                true,
                false,
            ),
            (
                "in place",
                server(None, &[new]),
                vec![running(new)],
                true,
                true,
            ),
            (
                "half seen",
                server(None, &[new]),
                vec![running(new)],
                false,
                false,
            ),
            (
                "stopped",
                server(None, &[new]),
                vec![replica(RunState::Exited, Some(new))],
                true,
                false,
            ),
            (
                "one of two",
                server(None, &[old, new]),
                vec![running(new)],
                true,
                false,
            ),
            (
                "external",
                server(Some("http://127.0.0.1:1/"), &[old]),
                vec![],
                true,
                true,
            ),
        ] {
            let seen = Observed {
                servers: replicas,
                complete,
                ..Observed::default()
            };
            assert_eq!(is_in_place(&server, &seen), expected, "{name}");
        }
    }
}
