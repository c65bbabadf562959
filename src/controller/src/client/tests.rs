use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Mutex;

use futures_util::StreamExt;
use futures_util::stream;
use http_body_util::{Full, StreamBody};
use http_body::Frame;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{PostParams, WatchParams};
use tower::service_fn;

use super::*;
use crate::metrics::WatchRestart;
use crate::metrics::tests::metrics;

const SHORT: Deadlines = Deadlines {
    call: Duration::from_millis(400),
    watch_idle: Duration::from_millis(50),
    watch_age: Duration::from_secs(1),
};

/// One answer of a server: status, `Retry-After`, body; or none at all.
#[derive(Debug, Clone, Copy)]
enum Play {
    Answer(u16, Option<&'static str>, &'static str),
    Hang,
    Cut,
}

const FOUND: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
const BUSY: &str = r#"{"kind":"Status","status":"Failure","code":429,"reason":"TooManyRequests","message":"wait"}"#;

/// A client of a server that plays this and then hangs; and how often it was asked.
fn playing(plays: &[Play]) -> (Client, Arc<Mutex<usize>>, ControllerMetrics) {
    let plays = Arc::new(Mutex::new(plays.iter().copied().collect::<VecDeque<_>>()));
    let asked = Arc::new(Mutex::new(0));
    let counted = asked.clone();
    let server = service_fn(move |_: Request<Body>| {
        *counted.lock().unwrap() += 1;
        let play = plays.lock().unwrap().pop_front().unwrap_or(Play::Hang);
        async move {
            match play {
                Play::Hang => std::future::pending().await,
                Play::Cut => Err::<_, BoxError>("connection reset".into()),
                Play::Answer(code, after, body) => {
                    let mut response = Response::builder().status(code);
                    if let Some(after) = after {
                        response = response.header("retry-after", after);
                    }
                    Ok(response.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap())
                }
            }
        }
    });
    let metrics = metrics();
    let client = guarded(Client::new(server, "space"), SHORT, metrics.clone());
    (client, asked, metrics)
}

async fn get(client: Client) -> Result<ConfigMap, kube::Error> {
    Api::<ConfigMap>::namespaced(client, "space").get("a").await
}

#[tokio::test]
async fn fault_02_what_is_busy_or_cut_is_asked_again_within_the_deadline() {
    let busy = Play::Answer(429, Some("0"), BUSY);
    let found = Play::Answer(200, None, FOUND);
    for (name, plays, works, times) in [
        ("busy once", vec![busy, found], true, 2),
        ("cut, then busy", vec![Play::Cut, busy, found], true, 3),
        ("busy for good", vec![busy, busy, busy, found], false, 3),
        ("busy for longer than we wait", vec![Play::Answer(503, Some("7"), BUSY), found], false, 1),
        ("not there", vec![Play::Answer(404, None, BUSY), found], false, 1),
    ] {
        let (client, asked, _) = playing(&plays);
        assert_eq!(get(client).await.is_ok(), works, "{name}");
        assert_eq!(*asked.lock().unwrap(), times, "{name}");
    }
}

#[tokio::test]
async fn a_create_is_never_sent_twice() {
    let (client, asked, metrics) = playing(&[Play::Answer(503, Some("0"), BUSY)]);
    let map = ConfigMap::default();
    let api = Api::<ConfigMap>::namespaced(client, "space");
    assert!(api.create(&PostParams::default(), &map).await.is_err());
    assert_eq!(*asked.lock().unwrap(), 1);
    assert_eq!(metrics.requests("create", "Other", "503"), 1);
}

#[tokio::test]
async fn a_call_that_hangs_ends_at_its_deadline_and_says_so() {
    let (client, asked, metrics) = playing(&[]);
    let began = Instant::now();
    let error = get(client).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(3));
    assert!(error.to_string().contains("no answer within 0.4 s"), "{error}");
    assert_eq!((*asked.lock().unwrap(), metrics.requests("get", "Other", "timeout")), (1, 1));
}

#[tokio::test]
async fn fault_06_a_silent_watch_is_ended_and_counted() {
    let line = r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"3"}}}"#;
    let server = service_fn(move |_: Request<Body>| async move {
        let first = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(format!("{line}\n"))))]);
        Ok::<_, BoxError>(Response::new(StreamBody::new(first.chain(stream::pending()))))
    });
    let metrics = metrics();
    let client = guarded(Client::new(server, "space"), SHORT, metrics.clone());
    let api = Api::<ConfigMap>::namespaced(client, "space");
    let events = api.watch(&WatchParams::default(), "0").await.unwrap();
    let events = tokio::time::timeout(Duration::from_secs(5), events.collect::<Vec<_>>());
    assert_eq!(events.await.expect("the watch ends by itself").len(), 1);
    assert_eq!(metrics.watch_restarts("Other", WatchRestart::Idle), 1);
}
