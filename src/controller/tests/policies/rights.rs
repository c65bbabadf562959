//! The rights that docs/relayd-controller.md names are enough, and none of them can be missing without a word.

use api::kinds::{ConditionStatus, RoutingPolicy};
use controller::client::Deadlines;
use controller::faults::FaultPoints;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::follow::Router;
use crate::sources;
use crate::world::{Running, World, bad, condition, good, message, until};

const PAGE: &str = include_str!("../../../../docs/relayd-controller.md");

/// What the page says: API group, resource, verbs.
const CONTROLLER: [(&str, &[&str], &[&str]); 4] = [
    (
        "relay.dev",
        &["routingpolicies", "layaservers"],
        &["get", "list", "watch"],
    ),
    ("relay.dev", &["routingpolicies/status"], &["get", "patch"]),
    (
        "apps",
        &["controllerrevisions"],
        &["get", "list", "watch", "create", "patch", "delete"],
    ),
    ("events.k8s.io", &["events"], &["create", "patch"]),
];
const ROUTER: [(&str, &[&str], &[&str]); 2] = [
    ("relay.dev", &["routingpolicies"], &["get", "list", "watch"]),
    ("apps", &["controllerrevisions"], &["get", "list", "watch"]),
];

type Rights = [(
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
)];

/// Gives a user of the test server these rights in the test's namespace, instead of those it had.
async fn give(world: &World, user: &str, rights: &Rights) {
    let rule = |(group, resources, verbs): &(&str, &[&str], &[&str])| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let rules: Vec<Value> = rights.iter().map(rule).collect();
    let apply = PatchParams::apply("test").force();
    let roles: Api<Role> = Api::namespaced(world.client.clone(), &world.namespace);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": user}, "rules": rules});
    roles
        .patch(user, &apply, &Patch::Apply(&role))
        .await
        .unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(world.client.clone(), &world.namespace);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    bindings
        .patch(user, &apply, &Patch::Apply(&binding))
        .await
        .unwrap();
}

/// Waits until the server knows whether a user may do a thing.
async fn until_may(
    client: &Client,
    namespace: &str,
    verb: &str,
    group: &str,
    resource: &str,
    may: bool,
) {
    use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let review = json!({"spec": {"resourceAttributes": {"namespace": namespace, "verb": verb, "group": group, "resource": resource}}});
    let review: SelfSubjectAccessReview = serde_json::from_value(review).unwrap();
    until("the right is known", || async {
        let told = reviews
            .create(&PostParams::default(), &review)
            .await
            .unwrap();
        let allowed = told.status.unwrap().allowed;
        if allowed == may { Ok(()) } else { Err(allowed) }
    })
    .await;
}

/// Requests of a controller that were forbidden.
fn forbidden(running: &Running) -> Vec<String> {
    let families = running.metrics.process.registry.gather();
    let requests = families
        .iter()
        .filter(|family| family.name() == "relay_api_requests_total");
    let metrics = requests.flat_map(|family| family.get_metric());
    metrics
        .map(|metric| {
            let labels = metric.get_label().iter();
            labels
                .map(|label| label.value())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .filter(|labels| labels.split(' ').any(|word| word == "403"))
        .collect()
}

/// The service user of the test server.
async fn user(world: &World, name: &str, rights: &Rights) -> Client {
    give(world, name, rights).await;
    let client = sources::client(&sources::shared(), name).await;
    let (group, resources, verbs) = rights.last().unwrap();
    until_may(
        &client,
        &world.namespace,
        verbs[0],
        group,
        resources[0],
        true,
    )
    .await;
    client
}

#[test]
fn the_page_names_these_rights() {
    let words: String = PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "`get`, `list`, `watch` on `routingpolicies` and `layaservers`; `get` and `patch` on `routingpolicies/status`",
        "`get`, `list`, `watch`, `create`, `patch`, `delete` on `controllerrevisions` of `apps`; `create` and `patch` on `events` of `events.k8s.io`",
        "A router needs `get`, `list`, `watch` on `routingpolicies` and `controllerrevisions`",
    ] {
        assert!(words.contains(sentence), "{sentence}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a kube-apiserver"]
async fn the_documented_rights_are_enough_for_the_whole_life_of_a_policy() {
    let world = sources::kube().await;
    let client = user(&world, "controller", &CONTROLLER).await;
    let running = world.start_with(client, FaultPoints::none(), Deadlines::default());
    let reader = user(&world, "alice", &ROUTER).await;
    let mut router = Router::follow(reader, &world);
    world.create("team", &good(0)).await;
    world.until_in_force("team").await;
    router.has(1_000).await;
    world.edit("team", &bad()).await;
    world
        .until("team", "it is refused", |policy: &RoutingPolicy| {
            condition(policy, "Accepted")
                == Some((ConditionStatus::False, "UnknownModel".to_owned()))
        })
        .await;
    until("events are there", || async {
        let events = world.events("team").await;
        let refused = events.iter().any(|(reason, _)| reason == "PolicyRefused");
        if refused { Ok(()) } else { Err(events) }
    })
    .await;
    let mended = json!({"models": null, "tiers": null});
    world.edit("team", &mended).await;
    // More than are kept, so that the oldest is deleted; also more events than are published of one object in a minute.
    for number in 1..=11 {
        world.edit("team", &good(number)).await;
        world.until_in_force("team").await;
    }
    router.has(1_011).await;
    until("the oldest is gone", || async {
        let stored = world.stored("team").await;
        if stored.len() == 10 {
            Ok(())
        } else {
            Err(stored)
        }
    })
    .await;
    world.delete("team").await;
    router
        .until("it is gone", |following| following.waits_for.is_some())
        .await;
    assert_eq!(forbidden(&running), Vec::<String>::new());
    router.end().await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a kube-apiserver"]
async fn fault_04_a_right_that_is_taken_away_is_told_and_heals_when_it_is_back() {
    let world = sources::kube().await;
    let client = user(&world, "controller", &CONTROLLER).await;
    let running = world.start_with(client.clone(), FaultPoints::none(), Deadlines::default());
    world.create("team", &good(1)).await;
    world.until_in_force("team").await;
    let mut fewer = CONTROLLER;
    fewer[2].2 = &["get", "list", "watch", "patch", "delete"];
    give(&world, "controller", &fewer).await;
    let create = |may| {
        until_may(
            &client,
            &world.namespace,
            "create",
            "apps",
            "controllerrevisions",
            may,
        )
    };
    create(false).await;
    world.edit("team", &good(2)).await;
    let stalled = world
        .until("team", "it is told", |policy| {
            condition(policy, "Stalled") == Some((ConditionStatus::True, "Forbidden".to_owned()))
        })
        .await;
    let told = message(&stalled, "Stalled");
    for part in [
        "not allowed to create ControllerRevision rp-team-",
        "\"controllerrevisions\"",
        "\"controller\"",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let tried = forbidden(&running);
    assert_eq!(
        tried,
        ["403 ControllerRevision create"],
        "nothing else is asked for in vain"
    );
    give(&world, "controller", &CONTROLLER).await;
    create(true).await;
    world.edit("team", &good(3)).await;
    let healed = world.until_in_force("team").await;
    assert_eq!(condition(&healed, "Stalled"), None);
    // A right to look is missing: nothing is decided by what was not seen, and it goes on when it is back.
    let running = {
        running.end().await;
        let mut blind = CONTROLLER;
        blind[0].1 = &["routingpolicies"];
        give(&world, "controller", &blind).await;
        until_may(
            &client,
            &world.namespace,
            "list",
            "relay.dev",
            "layaservers",
            false,
        )
        .await;
        world.start_with(client.clone(), FaultPoints::none(), Deadlines::default())
    };
    let metrics = running.metrics.clone();
    until("the watch is refused", || async {
        let refused =
            metrics.watch_restarts("LayaServer", controller::metrics::WatchRestart::Forbidden);
        if refused >= 1 { Ok(()) } else { Err(refused) }
    })
    .await;
    world.edit("team", &good(4)).await;
    assert!(
        !running.readiness.report().ready,
        "{:?}",
        running.readiness.report()
    );
    give(&world, "controller", &CONTROLLER).await;
    world.until_in_force("team").await;
    assert!(running.readiness.report().ready);
    running.end().await;
}
