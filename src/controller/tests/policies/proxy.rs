//! A layer in front of an object source that does what a good one does not: refuses, hangs, cuts, lies, repeats.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::Client;
use kube::client::Body;
use tower::{BoxError, Service};

/// What becomes of a request.
#[derive(Debug, Clone)]
pub(crate) enum Play {
    /// It goes through.
    Pass,
    /// No connection.
    Refuse,
    /// No answer.
    Hang,
    /// This answer; seconds of `Retry-After`, if any.
    Answer(u16, Option<u32>),
    /// It goes through, and this is replaced in what comes back.
    Replace(String, String),
    /// A watch that has this after its first events.
    Watch(Watch),
    /// Done twice: what a client does whose first answer was lost.
    Before(Arc<Mutex<Option<Request<Vec<u8>>>>>),
}

/// What is wrong with a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Nothing ever comes.
    Silent,
    /// It ends with 410.
    Expired,
    /// Each event comes twice, and each pair of events in the wrong order.
    Disordered,
}

type Rule = dyn Fn(&Method, &str) -> Play + Send + Sync;

/// The rule in force; may be changed while clients use it.
#[derive(Clone)]
pub(crate) struct Proxy {
    client: Client,
    rule: Arc<Mutex<Arc<Rule>>>,
}

/// Whether a request is the watch of a plural.
pub(crate) fn watches(uri: &str, plural: &str) -> bool {
    uri.contains(&format!("/{plural}?")) && uri.contains("watch=true")
}

impl Proxy {
    /// A client that lets everything through, and what changes that.
    pub(crate) fn before(client: &Client) -> (Client, Self) {
        let proxy = Self {
            client: client.clone(),
            rule: Arc::new(Mutex::new(Arc::new(|_: &Method, _: &str| Play::Pass))),
        };
        (Client::new(proxy.clone(), client.default_namespace()), proxy)
    }

    /// From now on.
    pub(crate) fn play(&self, rule: impl Fn(&Method, &str) -> Play + Send + Sync + 'static) {
        *self.rule.lock().unwrap() = Arc::new(rule);
    }

    pub(crate) fn heal(&self) {
        self.play(|_, _| Play::Pass);
    }
}

type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

fn whole(text: String) -> AnswerBody {
    Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync()
}

impl Service<Request<Body>> for Proxy {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let rule = this.rule.lock().unwrap().clone();
            let play = rule(request.method(), &request.uri().to_string());
            let send = |request| async {
                let response = this.client.send(request).await?;
                Ok::<_, BoxError>(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
            };
            match play {
                Play::Pass => send(request).await,
                Play::Refuse => Err("connection refused".into()),
                Play::Hang => std::future::pending().await,
                Play::Answer(code, after) => {
                    let text = format!(
                        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","code":{code},"reason":"Played","message":"as the test plays it"}}"#
                    );
                    let mut response = Response::builder().status(code);
                    if let Some(after) = after {
                        response = response.header("retry-after", after.to_string());
                    }
                    Ok(response.body(whole(text))?)
                }
                Play::Replace(from, to) => {
                    let (parts, body) = send(request).await?.into_parts();
                    let replaced = body.into_data_stream().map(move |chunk| {
                        let chunk = chunk?;
                        let text = String::from_utf8_lossy(&chunk).replace(&from, &to);
                        Ok(Frame::data(Bytes::from(text)))
                    });
                    Ok(Response::from_parts(parts, StreamBody::new(replaced).boxed_unsync()))
                }
                Play::Watch(watch) => {
                    let (parts, body) = send(request).await?.into_parts();
                    Ok(Response::from_parts(parts, watch.play(body)))
                }
                Play::Before(other) => {
                    let first = other.lock().unwrap().take();
                    if let Some(first) = first {
                        let done: Result<serde_json::Value, _> = this.client.request(first).await;
                        done.unwrap();
                    }
                    send(request).await
                }
            }
        })
    }
}

impl Watch {
    fn play(self, body: AnswerBody) -> AnswerBody {
        match self {
            Self::Silent => StreamBody::new(stream::pending()).boxed_unsync(),
            Self::Expired => {
                let gone = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}"#;
                whole(format!("{gone}\n"))
            }
            Self::Disordered => {
                // A source sends whole lines; two of them make a pair, or one alone when no other comes soon.
                let lines = body.into_data_stream().ready_chunks(2).map(|chunks| {
                    let mut text = Vec::new();
                    for chunk in chunks.into_iter().rev() {
                        let chunk = chunk?;
                        text.extend_from_slice(&chunk);
                        text.extend_from_slice(&chunk);
                    }
                    Ok::<_, BoxError>(Frame::data(Bytes::from(text)))
                });
                StreamBody::new(lines).boxed_unsync()
            }
        }
    }
}
