//! The bars of control-plane 19 for the local store: durable writes a second, and how long a change takes to a thousand
//! watches. Prints what it measured and fails below a bar: `cargo bench -p objects`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use http::Request;
use http_body_util::{BodyStream, Full};
use objects::{ObjectService, ObjectStore, ObjectStoreOptions};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tower::ServiceExt;

const POLICIES: &str = "/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies";
const WATCHES: usize = 1_000;
const CHANGES: usize = 200;

fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": name},
        "spec": {"tiers": [{"name": "fast", "models": ["anthropic/claude-haiku-4-5"]}]},
    })
}

async fn send(
    service: &ObjectService,
    method: &str,
    path: &str,
    media_type: &str,
    body: String,
) -> u16 {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(Full::<bytes::Bytes>::from(body))
        .expect("a request");
    let response = service.clone().oneshot(request).await.expect("never fails");
    response.status().as_u16()
}

/// Writes a second, by some clients at once. Each changes the status of one object.
async fn writes(service: &ObjectService, clients: usize, each: usize) -> f64 {
    for client in 0..clients {
        let body = policy(&format!("w{client}")).to_string();
        send(service, "POST", POLICIES, "application/json", body).await;
    }
    let began = Instant::now();
    let all = (0..clients).map(|client| async move {
        for round in 1..=each {
            let patch = json!({"status": {"observedGeneration": round}}).to_string();
            let path = format!("{POLICIES}/w{client}/status");
            let code = send(
                service,
                "PATCH",
                &path,
                "application/merge-patch+json",
                patch,
            )
            .await;
            assert_eq!(code, 200);
        }
    });
    join_all(all).await;
    let count = u32::try_from(clients * each).expect("few");
    f64::from(count) / began.elapsed().as_secs_f64()
}

/// From the acknowledgement of a change, and from its request, until each of a thousand watches has it.
async fn delays(service: &ObjectService) -> (Duration, Duration) {
    send(
        service,
        "POST",
        POLICIES,
        "application/json",
        policy("seen").to_string(),
    )
    .await;
    let began: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let mut tasks = Vec::new();
    for _ in 0..WATCHES {
        let request = Request::get(format!(
            "{POLICIES}?watch=1&fieldSelector=metadata.name%3Dseen"
        ))
        .body(Full::<bytes::Bytes>::default())
        .expect("a request");
        let response = service.clone().oneshot(request).await.expect("never fails");
        let mut body = BodyStream::new(response.into_body());
        let first = body.next().await.expect("what is there");
        drop(first.expect("never fails"));
        tasks.push(tokio::spawn(async move {
            let mut seen = Vec::with_capacity(CHANGES);
            while seen.len() < CHANGES {
                let frame = body.next().await.expect("goes on").expect("never fails");
                let data = frame.into_data().expect("data");
                let now = Instant::now();
                seen.extend(data.iter().filter(|byte| **byte == b'\n').map(|_| now));
            }
            seen
        }));
    }
    for round in 0..CHANGES {
        began.lock().await.push(Instant::now());
        let patch = json!({"metadata": {"labels": {"r": round.to_string()}}}).to_string();
        send(
            service,
            "PATCH",
            &format!("{POLICIES}/seen"),
            "application/merge-patch+json",
            patch,
        )
        .await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let began = began.lock().await.clone();
    let mut delays = Vec::new();
    for task in tasks {
        let seen = task.await.expect("no panic");
        delays.extend(
            seen.iter()
                .zip(&began)
                .map(|(seen, began)| seen.duration_since(*began)),
        );
    }
    delays.sort_unstable();
    (delays[delays.len() / 2], delays[delays.len() * 99 / 100])
}

/// Memory of this process, in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a size") >> 10
}

/// How much memory a thousand objects take that were written one after the other and listed by each reading thread.
async fn thousand(service: &ObjectService) -> (u64, u64) {
    let before = memory();
    for number in 0..1_000 {
        let body = policy(&format!("m{number}")).to_string();
        send(service, "POST", POLICIES, "application/json", body).await;
    }
    for _ in 0..16 {
        send(service, "GET", POLICIES, "", String::new()).await;
    }
    (before, memory())
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let folder = tempfile::tempdir_in(".").expect("a folder on a real disk");
    let path = folder.path().join("objects.db");
    let opened = ObjectStore::open(
        &path,
        &folder.path().join("instance"),
        ObjectStoreOptions::default(),
    );
    let store = opened.expect("a store").store;
    let service = store.service();
    let (memory, one, many, (median, p99)) = runtime.block_on(async {
        let memory = thousand(&service).await;
        let one = writes(&service, 1, 200).await;
        let many = writes(&service, 32, 100).await;
        let delays = delays(&service).await;
        (memory, one, many, delays)
    });
    println!("durable writes a second: {one:.0} by one client, {many:.0} by 32 clients (bar 500)");
    println!(
        "memory in MiB: {} with a new store, {} with 1,000 objects that were listed",
        memory.0, memory.1
    );
    println!(
        "from the request of a change to each of {WATCHES} watches: median {median:?}, p99 {p99:?} (bar 20 ms)"
    );
    assert!(many >= 500.0, "fewer than 500 writes a second");
    assert!(p99 <= Duration::from_millis(20), "p99 above 20 ms");
}
