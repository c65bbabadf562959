use std::time::Duration;

use futures_util::FutureExt;
use http::{Request as HttpRequest, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use tokio::sync::Semaphore;
use tower::{BoxError, service_fn};

use super::*;
use crate::clock::SystemClock;
use crate::metrics::tests::metrics;

/// What a server was sent: path with query, and body.
type Sent = Arc<Mutex<Vec<(String, Value)>>>;

/// A server that answers each write with what it was sent, once a permit is there.
fn server(permits: Arc<Semaphore>) -> (Client, Sent) {
    let sent = Sent::default();
    let seen = sent.clone();
    let service = service_fn(move |request: HttpRequest<Body>| {
        let (permits, seen) = (permits.clone(), seen.clone());
        async move {
            let uri = request.uri().to_string();
            let body = request.into_body().collect().await?.to_bytes();
            seen.lock()
                .unwrap()
                .push((uri, serde_json::from_slice(&body)?));
            permits.acquire().await?.forget();
            Ok::<_, BoxError>(Response::new(Full::new(body)))
        }
    });
    (Client::new(service, "space"), sent)
}

fn wish(name: &str, number: u32) -> Wish {
    Wish {
        kind: Kind::RoutingPolicy,
        key: Key {
            namespace: "space".to_owned(),
            name: name.to_owned(),
        },
        resource_version: "41".to_owned(),
        status: json!({"acceptedRevision": number.to_string()}),
    }
}

fn writer(client: Client, fence: Fence) -> (StatusWriter, StatusWriting, ControllerMetrics) {
    let metrics = metrics();
    let (writer, writing) = StatusWriter::new(client, fence, FaultPoints::none(), metrics.clone());
    (writer, writing, metrics)
}

#[tokio::test]
async fn a_status_is_applied_whole_with_the_version_it_rests_on() {
    let (client, sent) = server(Arc::new(Semaphore::new(9)));
    let (writer, writing, metrics) = writer(client, Fence::only_instance());
    let running = tokio::spawn(writing.run());
    writer.write(wish("team", 1)).await.unwrap();
    writer.close();
    running.await.unwrap();
    assert_eq!(writer.write(wish("team", 2)).await, Err(WriteError::Closed));
    let (uri, body) = sent.lock().unwrap()[0].clone();
    assert!(
        uri.starts_with("/apis/relay.dev/v1alpha1/namespaces/space/routingpolicies/team/status?"),
        "{uri}"
    );
    assert!(
        uri.contains("force=true") && uri.contains("fieldManager=relay-controller"),
        "{uri}"
    );
    let expected = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "metadata": {"name": "team", "namespace": "space", "resourceVersion": "41"},
        "status": {"acceptedRevision": "1"},
    });
    assert_eq!(body, expected);
    assert_eq!(
        metrics.status_writes("RoutingPolicy", WriteResult::Written),
        1
    );
}

#[tokio::test]
async fn the_newest_wish_of_an_object_takes_the_place_of_one_that_waits() {
    let permits = Arc::new(Semaphore::new(0));
    let (client, sent) = server(permits.clone());
    let (writer, writing, metrics) = writer(client, Fence::only_instance());
    let running = tokio::spawn(writing.run());
    let mut busy: Vec<_> = (0..AT_ONCE)
        .map(|at| writer.write(wish(&format!("busy-{at}"), 0)).boxed())
        .collect();
    let first = tokio::spawn({
        let writer = writer.clone();
        async move { writer.write(wish("team", 1)).await }
    });
    for write in &mut busy {
        assert!(write.now_or_never().is_none());
    }
    while writer.shared.lock().wishes.len() != 1 || sent.lock().unwrap().len() != AT_ONCE {
        tokio::task::yield_now().await;
    }
    let second = tokio::spawn({
        let writer = writer.clone();
        async move { writer.write(wish("team", 2)).await }
    });
    assert_eq!(first.await.unwrap(), Err(WriteError::Superseded));
    permits.add_permits(99);
    assert_eq!(
        second.await.unwrap().unwrap()["status"]["acceptedRevision"],
        "2"
    );
    assert_eq!(
        metrics.status_writes("RoutingPolicy", WriteResult::Refused),
        1
    );
    running.abort();
}

#[tokio::test]
async fn fault_10_without_the_right_nothing_is_sent() {
    let (client, sent) = server(Arc::new(Semaphore::new(9)));
    let (fence, keeper) = Fence::lease(Arc::new(SystemClock));
    let (writer, writing, metrics) = writer(client, fence);
    let running = tokio::spawn(writing.run());
    assert_eq!(
        writer.write(wish("team", 1)).await,
        Err(WriteError::Fenced(FenceError::NotHeld))
    );
    keeper.renewed(
        crate::fence::Term(3),
        crate::clock::Clock::now(&SystemClock).boot,
    );
    writer.write(wish("team", 2)).await.unwrap();
    keeper.lost();
    assert!(writer.write(wish("team", 3)).await.is_err());
    assert_eq!(sent.lock().unwrap().len(), 1);
    assert_eq!(
        metrics.status_writes("RoutingPolicy", WriteResult::Refused),
        2
    );
    running.abort();
}

#[tokio::test]
async fn more_objects_than_the_queue_takes_are_refused() {
    let (client, _) = server(Arc::new(Semaphore::new(0)));
    let (writer, _writing, metrics) = writer(client, Fence::only_instance());
    let mut waiting: Vec<_> = (0..MAX_WAITING)
        .map(|at| writer.write(wish(&format!("p{at}"), 0)).boxed())
        .collect();
    for write in &mut waiting {
        assert!(write.now_or_never().is_none());
    }
    assert_eq!(
        writer.write(wish("one-more", 0)).await,
        Err(WriteError::QueueFull)
    );
    assert_eq!(
        metrics.status_writes("RoutingPolicy", WriteResult::Refused),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn fault_01_a_write_that_is_not_answered_ends_after_five_seconds_and_others_go_on() {
    let permits = Arc::new(Semaphore::new(0));
    let (client, _) = server(permits.clone());
    let (writer, writing, metrics) = writer(client, Fence::only_instance());
    let running = tokio::spawn(writing.run());
    let began = tokio::time::Instant::now();
    let error = writer.write(wish("team", 1)).await.unwrap_err();
    assert!(
        error.to_string().ends_with("no answer within 5 s"),
        "{error}"
    );
    assert_eq!(began.elapsed().as_secs(), WRITE_DEADLINE.as_secs());
    permits.add_permits(1);
    tokio::time::advance(Duration::from_millis(1)).await;
    writer.write(wish("team", 2)).await.unwrap();
    assert_eq!(
        metrics.status_writes("RoutingPolicy", WriteResult::Error),
        1
    );
    running.abort();
}
