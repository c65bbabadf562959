//! `kube::Client` over the store: what reconcilers and `relayctl` use.

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Namespace, ObjectReference};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams,
};
use kube::core::PartialObjectMeta;
use kube::runtime::events::{Event as News, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Event as Due, finalizer};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::time::timeout;

use crate::support::{Home, PATIENCE, policy};

fn kind() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("relay.dev", "v1alpha1", "RoutingPolicy"),
        "routingpolicies",
    )
}

fn policies(client: Client) -> Api<DynamicObject> {
    Api::default_namespaced_with(client, &kind())
}

fn object(name: &str) -> DynamicObject {
    serde_json::from_value(policy(name)).unwrap()
}

#[tokio::test]
async fn objects_are_made_read_changed_and_removed() {
    let home = Home::new();
    let api = policies(home.client());
    let made = api
        .create(&PostParams::default(), &object("one"))
        .await
        .unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    let mut changed = api.get("one").await.unwrap();
    changed.labels_mut().insert("a".to_owned(), "b".to_owned());
    api.replace("one", &PostParams::default(), &changed)
        .await
        .unwrap();
    let stale = api
        .replace("one", &PostParams::default(), &made)
        .await
        .unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.is_conflict()));
    let listed = api
        .list(&ListParams::default().labels("a=b"))
        .await
        .unwrap();
    assert_eq!(listed.items.len(), 1);
    let known = api.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(known.items[0].name_any(), "one");
    let status = json!({"status": {"observedGeneration": 1}});
    let told = api
        .patch_status("one", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    assert_eq!(told.data["status"]["observedGeneration"], 1);
    let gone = api.delete("one", &DeleteParams::default()).await.unwrap();
    assert!(gone.is_right());
    assert!(api.get_opt("one").await.unwrap().is_none());
    let missing = api.get("one").await.unwrap_err();
    assert!(matches!(missing, kube::Error::Api(status) if status.is_not_found()));
}

#[tokio::test]
async fn kinds_of_kubernetes_have_their_types() {
    let home = Home::new();
    let namespaces: Api<Namespace> = Api::all(home.client());
    assert_eq!(
        namespaces
            .get("default")
            .await
            .unwrap()
            .status
            .unwrap()
            .phase
            .as_deref(),
        Some("Active")
    );
    let revisions: Api<ControllerRevision> = Api::default_namespaced(home.client());
    let revision =
        serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"x": 1}, "revision": 4}))
            .unwrap();
    let made = revisions
        .create(&PostParams::default(), &revision)
        .await
        .unwrap();
    assert_eq!(made.revision, 4);
    let version = home.client().apiserver_version().await.unwrap();
    assert_eq!(
        (version.major.as_str(), version.minor.as_str()),
        ("1", "35")
    );
}

#[tokio::test]
async fn apply_is_typed_and_a_conflict_is_one() {
    let home = Home::new();
    let api = policies(home.client());
    let patch = Patch::Apply(object("one"));
    api.patch("one", &PatchParams::apply("relayctl"), &patch)
        .await
        .unwrap();
    let mut other = object("one");
    other.data["spec"]["serverRef"]["name"] = "other".into();
    let refused = api
        .patch("one", &PatchParams::apply("argo"), &Patch::Apply(&other))
        .await
        .unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.is_conflict()));
    let forced = api
        .patch(
            "one",
            &PatchParams::apply("argo").force(),
            &Patch::Apply(&other),
        )
        .await
        .unwrap();
    assert_eq!(forced.data["spec"]["serverRef"]["name"], "other");
}

#[tokio::test]
async fn watcher_and_reflector_keep_up() {
    let home = Home::new();
    let api = policies(home.client());
    for strategy in [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ] {
        let writer = reflector::store::Writer::<DynamicObject>::new(kind());
        let store = writer.as_reader();
        let stream = watcher(api.clone(), strategy)
            .default_backoff()
            .reflect_to(writer);
        let following = tokio::spawn(
            stream
                .applied_objects()
                .for_each(|_| std::future::ready(())),
        );
        timeout(PATIENCE, store.wait_until_ready())
            .await
            .unwrap()
            .unwrap();
        api.create(&PostParams::default(), &object("one"))
            .await
            .unwrap();
        let until = |wanted: usize| {
            let store = store.clone();
            timeout(PATIENCE, async move {
                while store.len() != wanted {
                    tokio::task::yield_now().await;
                }
            })
        };
        until(1).await.unwrap();
        api.delete("one", &DeleteParams::default()).await.unwrap();
        until(0).await.unwrap();
        following.abort();
    }
    let metadata: Api<PartialObjectMeta<DynamicObject>> =
        Api::default_namespaced_with(home.client(), &kind());
    api.create(&PostParams::default(), &object("two"))
        .await
        .unwrap();
    let mut seen = std::pin::pin!(watcher(metadata, watcher::Config::default()).applied_objects());
    let first = timeout(PATIENCE, seen.try_next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(first.name_any(), "two");
}

#[derive(Debug, thiserror::Error)]
#[error("not yet")]
struct NotYet;

#[tokio::test]
async fn the_finalizer_helper_holds_and_lets_go() {
    let home = Home::new();
    let api = policies(home.client());
    api.create(&PostParams::default(), &object("one"))
        .await
        .unwrap();
    let pass = |api: Api<DynamicObject>| async move {
        let object = std::sync::Arc::new(api.get("one").await.unwrap());
        finalizer(&api, "relay.dev/model-in-use", object, |due| async move {
            let cleaned = matches!(due, Due::Cleanup(_));
            Ok::<_, NotYet>(kube::runtime::controller::Action::requeue(
                std::time::Duration::from_secs(u64::from(cleaned)),
            ))
        })
        .await
    };
    pass(api.clone()).await.unwrap();
    assert_eq!(
        api.get("one").await.unwrap().finalizers(),
        ["relay.dev/model-in-use"]
    );
    assert!(
        api.delete("one", &DeleteParams::default())
            .await
            .unwrap()
            .is_left()
    );
    pass(api.clone()).await.unwrap();
    assert!(api.get_opt("one").await.unwrap().is_none());
}

#[tokio::test]
async fn the_recorder_publishes_events_and_counts_them() {
    let home = Home::new();
    let api = policies(home.client());
    let made = api
        .create(&PostParams::default(), &object("one"))
        .await
        .unwrap();
    let reporter = Reporter {
        controller: "relay.dev/controller".to_owned(),
        instance: Some("laptop".to_owned()),
    };
    let recorder = Recorder::new(home.client(), reporter);
    let regarding: ObjectReference = made.object_ref(&kind());
    let news = News {
        type_: EventType::Normal,
        reason: "PolicyAccepted".to_owned(),
        note: Some("accepted".to_owned()),
        action: "Accept".to_owned(),
        secondary: None,
    };
    for _ in 0..3 {
        recorder.publish(&news, &regarding).await.unwrap();
    }
    let (_, events) = home
        .get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Done")
        .await;
    let items = events["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{events}");
    assert_eq!(items[0]["reason"], "PolicyAccepted");
    assert_eq!(items[0]["series"]["count"], 3);
}
