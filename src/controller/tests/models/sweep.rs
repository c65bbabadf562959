//! Children of deleted objects are removed; those of objects that the store has never known are listed and kept.

use std::time::Duration;

use api::group::Kind;
use api::label::Task;
use backend::{Action, Backend, Hint, Network, Owner, TaskArguments, TaskKey, TaskSpec};
use kube::ResourceExt;
use testkit::backend::Script;

use crate::world::{NAMESPACE, World, source, until};

fn owner(kind: Kind, name: &str, uid: &str) -> Owner {
    Owner {
        kind,
        namespace: NAMESPACE.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
    }
}

/// Something runs for an owner.
async fn child(world: &World, owner: &Owner) {
    let spec = TaskSpec {
        key: TaskKey {
            task: Task::Fetch,
            attempt: 1,
        },
        image: "laya".to_owned(),
        arguments: TaskArguments(vec!["fetch".to_owned()]),
        volumes: Vec::new(),
        network: Network::None,
        files: Vec::new(),
        secrets: Vec::new(),
        memory_bytes: 1,
        gpu: None,
        deadline_seconds: 60,
    };
    let run = Action::RunTask(Box::new(spec));
    world.engine.apply(owner, &run).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_07_orphans_go_after_two_looks_and_unknown_ones_stay() {
    let world = World::new().await;
    // Made and deleted while no controller ran, as the finalizer is set by one.
    let gone = world.create("gone", &source(1)).await;
    let here = world.create("here", &source(2)).await;
    world.delete("gone").await;
    world.until_gone("gone").await;
    world.engine.script(|_, _| Script::Runs);
    let orphan = owner(Kind::LayaModel, "gone", &gone.uid().unwrap());
    let unknown = owner(Kind::LayaServer, "other", "never-known");
    let owned = owner(Kind::LayaModel, "here", &here.uid().unwrap());
    for owner in [&orphan, &unknown, &owned] {
        child(&world, owner).await;
    }
    let running = world.start();
    until("the unknown one is listed", || async {
        let listed = world.unclaimed.list();
        if listed.len() == 1 && listed[0].owner == unknown {
            Ok(())
        } else {
            Err(listed)
        }
    })
    .await;
    assert_eq!(world.unclaimed.list()[0].children, ["task fetch 1"]);
    assert_eq!(
        world.engine.children(&orphan.uid).1.len(),
        1,
        "one look is not enough"
    );
    assert!(
        running
            .exposition()
            .contains(r#"relay_backend_strangers{backend="docker"} 1"#)
    );
    world.clock.jump(Duration::from_secs(61));
    world.engine.hint(Hint::Everything);
    until("the orphan is removed", || async {
        let (_, tasks) = world.engine.children(&orphan.uid);
        if tasks.is_empty() { Ok(()) } else { Err(tasks) }
    })
    .await;
    until("it is told", || async {
        let told = world.events().await;
        if told.contains("OrphanRemoved") {
            Ok(())
        } else {
            Err(told)
        }
    })
    .await;
    assert_eq!(world.engine.children(&unknown.uid).1.len(), 1);
    assert_eq!(world.engine.children(&owned.uid).1.len(), 1);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_of_a_namespace_that_is_not_watched_are_left_alone() {
    let world = World::new().await;
    world.engine.script(|_, _| Script::Runs);
    let unknown = owner(Kind::LayaServer, "other", "never-known");
    // Its object may well be there, where nobody of this process looks.
    let elsewhere = Owner {
        namespace: "elsewhere".to_owned(),
        ..owner(Kind::LayaServer, "another", "known-elsewhere")
    };
    for owner in [&elsewhere, &unknown] {
        child(&world, owner).await;
    }
    let running = world.start();
    until("the unknown one alone is listed", || async {
        let listed = world.unclaimed.list();
        if listed.len() == 1 && listed[0].owner == unknown {
            Ok(())
        } else {
            Err(listed)
        }
    })
    .await;
    running.end().await;
}
