//! What is not ours is named and left alone.

use api::group::Kind;
use api::reason::Reason;
use backend::{Action, VolumeRole};

use crate::harness::{Run, ensure, fault_image, owner, server, task};

/// A container that somebody else made under a name that we need.
fn stranger(run: &Run, name: &str) -> String {
    run.told(&["create", "--name", name, &fault_image()])
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_19_a_stranger_with_our_name_is_named_and_untouched_and_we_go_on_when_it_is_gone() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&fault_image(), "64Mi");
    let name = run.name(&main, &spec, 0);
    let id = stranger(&run, &name);
    let refused = run.act(&main, ensure(&spec, &[0])).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::NameTaken), "{refused}");
    assert!(refused.to_string().contains(&id[..12]), "{refused}");
    let seen = run.observe(&main).await;
    assert!(seen.servers.is_empty());
    assert_eq!(seen.strangers.len(), 1);
    assert_eq!(
        (seen.strangers[0].name.as_str(), seen.strangers[0].reason),
        (name.as_str(), Reason::NameTaken)
    );
    assert!(seen.strangers[0].holder.contains(&id[..12]));

    // Nothing of what removes does so.
    let revision = spec.revision.clone();
    let ordinals = backend::Ordinals::All;
    run.done(
        &main,
        Action::DeleteServer {
            revision,
            ordinals,
            grace_seconds: 1,
        },
    )
    .await;
    let recreate = Action::RecreateServer {
        server: Box::new(spec.clone()),
        ordinal: 0,
    };
    assert!(run.act(&main, recreate).await.is_err());
    assert_eq!(
        run.told(&["inspect", "--format", "{{.Id}} {{.State.Status}}", &name]),
        format!("{id} created")
    );

    run.told(&["rm", &name]);
    run.done(&main, ensure(&spec, &[0])).await;
    run.server(&main, 0, |server| server.url.is_some()).await;
    assert!(run.observe(&main).await.strangers.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_19_tasks_volumes_and_networks_of_strangers_are_left_alone() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    let english = owner(Kind::LayaModel, "english");
    let spec = task(1, &[]);
    let name = run.instance.task(&english, &spec.key);
    stranger(&run, &name);
    for action in [
        Action::RunTask(Box::new(spec.clone())),
        Action::DeleteTask {
            task: spec.key.clone(),
        },
    ] {
        let refused = run.act(&english, action).await.unwrap_err();
        assert_eq!(refused.reason(), Some(Reason::NameTaken), "{refused}");
    }
    run.told(&["inspect", &name]);

    let models = run.instance.volume(&VolumeRole::Models);
    run.told(&["volume", "create", &models]);
    let role = VolumeRole::Models;
    for action in [
        Action::EnsureVolume {
            role: role.clone(),
            size_bytes: 0,
        },
        Action::DeleteVolume { role },
        ensure(&server(&fault_image(), "64Mi"), &[0]),
    ] {
        let refused = run.act(&main, action).await.unwrap_err();
        assert_eq!(refused.reason(), Some(Reason::NameTaken), "{refused}");
    }
    let seen = run.observe(&main).await;
    assert!(seen.volumes.is_empty());
    assert_eq!(seen.strangers[0].name, models);
    run.told(&["volume", "rm", &models]);

    run.with_models(&main).await;
    run.told(&["network", "create", &run.instance.serve_network()]);
    let refused = run
        .act(&main, ensure(&server(&fault_image(), "64Mi"), &[0]))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::NameTaken), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn another_instance_and_another_owner_see_nothing_of_ours() {
    let run = Run::new().await;
    let other = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&fault_image(), "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    assert!(other.observe(&main).await.servers.is_empty());
    let mut again = main.clone();
    again.uid = "another".to_owned();
    assert!(
        run.observe(&again).await.servers.is_empty(),
        "fault 13: not adopted"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn the_work_of_an_object_of_the_same_name_is_another_ones() {
    let run = Run::new().await;
    let nightly = owner(Kind::TrainingRun, "nightly");
    let mut before = nightly.clone();
    before.uid = "another".to_owned();
    let role = VolumeRole::Work {
        run: "nightly".to_owned(),
    };
    let ensure = Action::EnsureVolume {
        role: role.clone(),
        size_bytes: 0,
    };
    run.done(&nightly, ensure.clone()).await;
    run.done(&nightly, ensure.clone()).await;
    let refused = run.act(&before, ensure).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::NameTaken), "{refused}");
    let volume = run.instance.volume(&role);
    let delete = Action::DeleteVolume { role };
    run.done(&before, delete.clone()).await;
    run.told(&["volume", "inspect", &volume]);
    run.done(&nightly, delete).await;
}
