//! Replicas: made as rendered, adopted, repaired, stopped and removed.

use api::group::Kind;
use backend::{Action, Backend, Child, Hint, Ordinals, RunState};
use futures_util::StreamExt;

use crate::harness::{Run, answers, ensure, fault_image, host, owner, server, status};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn a_replica_is_made_as_rendered_serves_and_goes() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&fault_image(), "64Mi");
    run.done(&main, ensure(&spec, &[0, 1])).await;
    // Done already: the same again.
    run.done(&main, ensure(&spec, &[0, 1])).await;
    let seen = run.server(&main, 0, |server| server.url.is_some()).await;
    assert_eq!(
        (seen.state, seen.hash_matches, seen.tampered.as_slice()),
        (RunState::Running, Some(true), &[][..]),
    );
    assert_eq!(seen.inputs.as_ref(), Some(&spec.inputs));
    assert_eq!(seen.model.as_deref(), Some("english"));
    assert_eq!(seen.memory_bytes, 64 << 20);
    assert!(seen.spec_hash.is_some() && seen.started_at.is_some());
    answers(seen.url.as_deref().unwrap(), "/ready").await;

    let observed = run.observe(&main).await;
    assert_eq!(observed.servers.len(), 2);
    assert!(observed.complete);
    assert_eq!(observed.volumes.len(), 1);
    let room = observed.room.unwrap();
    assert_eq!(room.ours_bytes, 128 << 20);
    assert!(room.engine_bytes > 1 << 30 && room.available_bytes.is_some());
    assert_eq!(
        run.docker.owners().await.unwrap(),
        std::slice::from_ref(&main)
    );

    let child = Child::Server {
        revision: spec.revision.clone(),
        ordinal: 0,
    };
    let log = run.docker.logs(&main, &child, 4096).await.unwrap();
    assert!(log.contains("listening on"), "{log}");

    let stop = Action::StopServer {
        revision: spec.revision.clone(),
        ordinals: Ordinals::Only(vec![1]),
        grace_seconds: 10,
    };
    run.done(&main, stop).await;
    let stopped = run
        .server(&main, 1, |server| server.state == RunState::Exited)
        .await;
    assert_eq!((stopped.exit_code, stopped.url), (Some(0), None));
    assert!(
        stopped.log_tail.contains("draining"),
        "{}",
        stopped.log_tail
    );
    assert_eq!(run.observe(&main).await.servers.len(), 2, "it is kept");

    let delete = Action::DeleteServer {
        revision: spec.revision.clone(),
        ordinals: Ordinals::All,
        grace_seconds: 10,
    };
    run.done(&main, delete.clone()).await;
    run.until(&main, |seen| seen.servers.is_empty().then_some(()))
        .await;
    run.done(&main, delete).await;
    run.assert_nothing_runs();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn hardening_holds_on_the_live_container() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&fault_image(), "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    let name = run.name(&main, &spec, 0);
    let format = "{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} \
                  {{.HostConfig.PidsLimit}} {{.HostConfig.Memory}} {{.HostConfig.Privileged}} \
                  {{(index .Mounts 0).RW}} {{.HostConfig.RestartPolicy.Name}} {{.Config.StopTimeout}}";
    let told = run.told(&["inspect", "--format", format, &name]);
    assert_eq!(
        told,
        "10001:10001 true [ALL] [no-new-privileges] 512 67108864 false false unless-stopped 11"
    );
    let seen = run.server(&main, 0, |server| server.url.is_some()).await;
    assert!(seen.url.unwrap().starts_with("http://127.0.0.1:"));
    let network = format!("{}serve", run.instance.prefix());
    let options = run.told(&["network", "inspect", "--format", "{{.Options}}", &network]);
    assert!(
        options.contains("enable_ip_masquerade:false") && options.contains("enable_icc:false"),
        "{options}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn another_process_adopts_what_runs_and_finds_the_new_port_after_a_restart() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&fault_image(), "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    let before = run.server(&main, 0, |server| server.url.is_some()).await;
    let name = run.name(&main, &spec, 0);
    let id = run.told(&["inspect", "--format", "{{.Id}}", &name]);

    let other = Run::again(&host(), &run.instance, |options| options).await;
    other.done(&main, ensure(&spec, &[0])).await;
    assert_eq!(
        run.told(&["inspect", "--format", "{{.Id}}", &name]),
        id,
        "the same container"
    );
    let adopted = other.server(&main, 0, |server| server.url.is_some()).await;
    assert_eq!(adopted, before);

    // Something else takes the old port meanwhile, so that it must change.
    run.told(&["stop", "--time", "5", &name]);
    let port = before
        .url
        .as_deref()
        .unwrap()
        .rsplit_once(':')
        .unwrap()
        .1
        .to_owned();
    let taken = std::net::TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    other.done(&main, ensure(&spec, &[0])).await;
    let after = other.server(&main, 0, |server| server.url.is_some()).await;
    drop(taken);
    assert_ne!(after.url, before.url);
    answers(after.url.as_deref().unwrap(), "/ready").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn a_drained_server_takes_no_more() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&fault_image(), "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    let seen = run.server(&main, 0, |server| server.url.is_some()).await;
    let url = seen.url.unwrap();
    answers(&url, "/ready").await;
    run.done(&main, Action::Drain { url: url.clone() }).await;
    assert_eq!(status(&url, "/ready"), 503);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_14_a_tampered_replica_is_seen_and_made_anew() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&fault_image(), "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    let name = run.name(&main, &spec, 0);
    let id = run.told(&["inspect", "--format", "{{.Id}}", &name]);
    run.told(&[
        "update",
        "--memory",
        "128m",
        "--memory-swap",
        "256m",
        "--restart",
        "always",
        &name,
    ]);
    run.told(&["network", "connect", "bridge", &name]);
    let seen = run
        .server(&main, 0, |server| !server.tampered.is_empty())
        .await;
    assert_eq!(seen.tampered, ["memory", "network", "restartPolicy"]);
    run.done(&main, ensure(&spec, &[0])).await;
    let repaired = run
        .server(&main, 0, |server| {
            server.state == RunState::Running && server.tampered.is_empty() && server.url.is_some()
        })
        .await;
    assert_eq!(repaired.memory_bytes, 64 << 20);
    assert_ne!(run.told(&["inspect", "--format", "{{.Id}}", &name]), id);

    // Stopped and removed by hand: there again.
    run.told(&["rm", "--force", &name]);
    run.done(&main, ensure(&spec, &[0])).await;
    run.server(&main, 0, |server| server.state == RunState::Running)
        .await;
    let recreate = Action::RecreateServer {
        server: Box::new(spec.clone()),
        ordinal: 0,
    };
    let id = run.told(&["inspect", "--format", "{{.Id}}", &name]);
    run.done(&main, recreate).await;
    run.until(&main, |_| {
        let now = crate::harness::docker_at(&host(), &["inspect", "--format", "{{.Id}}", &name]);
        let now = String::from_utf8_lossy(&now.stdout).trim().to_owned();
        (!now.is_empty() && now != id).then_some(())
    })
    .await;
    run.server(&main, 0, |server| server.state == RunState::Running)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_14_a_lost_volume_is_not_made_anew_in_silence() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    let spec = server(&fault_image(), "64Mi");
    let refused = run.act(&main, ensure(&spec, &[0])).await.unwrap_err();
    assert_eq!(
        refused.reason(),
        Some(api::reason::Reason::VolumeLost),
        "{refused}"
    );
    run.with_models(&main).await;
    let first = run.observe(&main).await.volumes.remove(0);
    run.told(&["volume", "rm", &first.name]);
    run.with_models(&main).await;
    let second = run.observe(&main).await.volumes.remove(0);
    assert_eq!(first.name, second.name);
    assert_ne!(first.uid, second.uid, "another volume");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn changes_are_hinted() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let mut changes = run.docker.changes();
    let spec = server(&fault_image(), "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    let hinted = tokio::time::timeout(crate::harness::PATIENCE, async {
        while let Some(hint) = changes.next().await {
            if hint == Hint::Owner(main.clone()) {
                return;
            }
        }
    });
    hinted.await.unwrap();
}
