use std::net::SocketAddr;

use axum::routing::get;
use prometheus::IntCounter;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::runtime::ShutdownTrigger;

impl Connection for DuplexStream {}

const REQUEST: &[u8] = b"GET /fast HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn app(gate: &Arc<Notify>) -> Router {
    let gate = gate.clone();
    Router::new()
        .route("/fast", get(|| async { "fast" }))
        .route("/big", get(|| async { vec![b'x'; 1 << 20] }))
        .route("/gate", get(move || async move { gate.notified().await }))
}

/// A connection over memory with the default limits: time is paused, nothing is really waited for.
fn connected() -> (DuplexStream, JoinHandle<()>, ShutdownTrigger) {
    let (client, server) = duplex(4096);
    let (trigger, shutdown) = ShutdownTrigger::new();
    let app = app(&Arc::new(Notify::new()));
    let served = serve_connection(server, app, ConnectionLimits::default(), Arc::new(shutdown));
    (client, tokio::spawn(served), trigger)
}

async fn answer_of(client: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = String::new();
    let mut part = [0; 1024];
    while !text.ends_with("fast") {
        let read = client.read(&mut part).await.unwrap();
        assert_ne!(read, 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&part[..read]).unwrap());
    }
    text
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_is_cut_off_at_the_wait() {
    let (mut client, served, _trigger) = connected();
    let start = Instant::now();
    client.write_all(b"GET /fast HTTP/1.1\r\n").await.unwrap();
    served.await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_trickles_is_cut_off_at_the_wait() {
    let (mut client, served, _trigger) = connected();
    let start = Instant::now();
    tokio::spawn(async move {
        for byte in b"GET /fast HTTP/1.1\r\nx-padding: many bytes, one each second\r\n" {
            if client.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    served.await.unwrap();
    assert!(
        (10..=11).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_head_beyond_64_kib_is_refused() {
    for (size, status) in [(63 * 1024, "200"), (65 * 1024, "431")] {
        let server = running(ConnectionLimits::default()).await;
        let mut client = TcpStream::connect(server.address).await.unwrap();
        let padding = "x".repeat(size);
        let head = format!("GET /fast HTTP/1.1\r\nhost: localhost\r\nx-padding: {padding}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        let mut start = [0; 12];
        within(client.read_exact(&mut start)).await.unwrap();
        assert_eq!(
            start,
            format!("HTTP/1.1 {status}").as_bytes(),
            "{size} bytes"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_idle_longer_than_a_head_may_take() {
    let (mut client, served, _trigger) = connected();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        client.write_all(REQUEST).await.unwrap();
        answer_of(&mut client).await;
    }
    let start = Instant::now();
    served.await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(75));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_let_go() {
    let (mut client, served, _trigger) = connected();
    client
        .write_all(b"GET /big HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let start = Instant::now();
    served.await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_drain_closes_idle_connections_after_a_moment_for_a_last_request() {
    let (mut client, served, trigger) = connected();
    client.write_all(REQUEST).await.unwrap();
    assert!(!answer_of(&mut client).await.contains("connection: close"));
    trigger.advance(Phase::Draining);
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.write_all(REQUEST).await.unwrap();
    assert!(answer_of(&mut client).await.contains("connection: close"));
    served.await.unwrap();

    let (_idle, served, trigger) = connected();
    trigger.advance(Phase::Draining);
    let start = Instant::now();
    served.await.unwrap();
    assert_eq!(start.elapsed(), CLOSE_GRACE);
}

struct Running {
    address: SocketAddr,
    trigger: ShutdownTrigger,
    gate: Arc<Notify>,
    served: JoinHandle<()>,
}

async fn running(limits: ConnectionLimits) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (trigger, shutdown) = ShutdownTrigger::new();
    let gate = Arc::new(Notify::new());
    let errors = RepeatedError::new(IntCounter::new("suppressed_total", "test").unwrap());
    let served = tokio::spawn(serve(listener, app(&gate), limits, errors, shutdown));
    Running {
        address,
        trigger,
        gate,
        served,
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(10), future)
        .await
        .expect("nothing happened within 10 s")
}

#[tokio::test]
async fn a_drain_answers_open_requests_and_takes_no_new_connection() {
    let server = running(ConnectionLimits::default()).await;
    let mut client = TcpStream::connect(server.address).await.unwrap();
    client
        .write_all(b"GET /gate HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut fresh = TcpStream::connect(server.address).await.unwrap();
    fresh.write_all(REQUEST).await.unwrap();
    answer_of(&mut fresh).await;
    server.trigger.advance(Phase::Draining);
    within(async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!server.served.is_finished());
    server.gate.notify_one();
    let mut answer = String::new();
    within(client.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    within(server.served).await.unwrap();
}

#[tokio::test]
async fn a_stop_drops_open_requests() {
    let server = running(ConnectionLimits::default()).await;
    let mut client = TcpStream::connect(server.address).await.unwrap();
    client
        .write_all(b"GET /gate HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    server.trigger.advance(Phase::Draining);
    server.trigger.advance(Phase::Stopping);
    within(server.served).await.unwrap();
    let mut rest = Vec::new();
    let _ = within(client.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_for_a_free_one() {
    let server = running(ConnectionLimits {
        connections: 1,
        ..ConnectionLimits::default()
    })
    .await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(REQUEST).await.unwrap();
    answer_of(&mut first).await;
    let mut second = TcpStream::connect(server.address).await.unwrap();
    second.write_all(REQUEST).await.unwrap();
    let mut byte = [0];
    assert!(
        timeout(Duration::from_millis(50), second.read(&mut byte))
            .await
            .is_err()
    );
    drop(first);
    within(answer_of(&mut second)).await;
}
