//! Fault 19: somebody else's container has the name that the next replica needs.

use serde_json::json;

use crate::instance::fault_image;
use crate::parts::objects::until;
use crate::parts::status::{champion, message, serves, told};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the Docker Engine and the images that `cargo xtask test` makes"]
async fn fault_19_a_stranger_with_the_next_name_is_named_and_untouched_until_it_goes() {
    let world = World::new().await;
    let running = world.start();
    let before = world.serving("main", "v1").await;
    let revision = champion(&before);
    let first = world.container("main", &revision);
    let next = format!("{}1", first.name.strip_suffix('0').unwrap());
    let stranger = world
        .on()
        .told(&["create", "--name", &next, &fault_image()]);
    let seen = world.watch("main");
    world.edit("main", &json!({"replicas": 2})).await;
    let status = world
        .until("main", "the stranger is named", |status| {
            let mut conditions = status.conditions.iter();
            conditions.any(|it| it.reason == "NameTaken" && it.message.contains(&stranger[..12]))
        })
        .await;
    assert_eq!(champion(&status), revision);
    let said: Vec<_> = status
        .conditions
        .iter()
        .filter(|it| it.reason == "NameTaken")
        .map(|it| (it.type_.as_str(), message(&status, &it.type_)))
        .collect();
    println!("{said:?}");
    assert!(
        said.iter().all(|(_, said)| said.contains(&next)),
        "{said:?}"
    );
    let state = ["inspect", "--format", "{{.Id}} {{.State.Status}}", &next];
    assert_eq!(world.on().told(&state), format!("{stranger} created"));
    assert_eq!(world.containers("main"), std::slice::from_ref(&first));

    world.on().told(&["rm", &next]);
    until("there are two", || async {
        let status = world.status("main").await;
        let traffic = status.traffic.clone().unwrap_or_default();
        let urls = traffic
            .targets
            .first()
            .map_or(0, |target| target.urls.len());
        if urls == 2 && serves(&status, "v1") {
            Ok(())
        } else {
            Err(told(&status))
        }
    })
    .await;
    assert_eq!(world.containers("main").len(), 2);
    assert!(world.containers("main").contains(&first), "untouched");
    seen.assert_whole();
    running.end().await;
}
