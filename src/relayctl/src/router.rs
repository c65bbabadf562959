//! What the router of this machine says of itself: whether a model serves, which policy is in force, how requests were
//! judged.

use std::time::{Duration, Instant};

use files::Places;
use http::{Request, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::connect::loopback;
use crate::daemon::{self, State};

/// It is on this machine and answers at once, or is in trouble.
const PATIENCE: Duration = Duration::from_secs(5);
const MAX_ANSWER: usize = 16 << 20;

/// How long a router may take to follow an accepted revision; it mostly has before anybody asks.
const FOLLOW: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(20);

/// Waits until the router of this machine decides by a revision of the policy that it follows, so that the next request
/// after `apply --wait` is decided by it. One that follows another policy, or does not answer, is not waited for.
pub(crate) async fn until_in_force(places: &Places, name: &str, revision: &str) {
    let State::Runs(endpoint) = daemon::look(places) else {
        return;
    };
    let Some(router) = endpoint.router.and_then(|url| Router::at(&url).ok()) else {
        return;
    };
    let ends = Instant::now() + FOLLOW;
    while let Ok(policy) = router.ask("/v1/policy").await
        && policy["name"] == name
        && policy["revision"] != revision
        && Instant::now() < ends
    {
        tokio::time::sleep(AGAIN).await;
    }
}

/// A router and how to ask it.
#[derive(Debug, Clone)]
pub(crate) struct Router {
    authority: String,
}

impl Router {
    /// At an address of `endpoint.json`.
    ///
    /// # Errors
    /// It is no address of this machine.
    pub(crate) fn at(url: &str) -> Result<Self, String> {
        loopback(url).map(|authority| Self { authority })
    }

    /// An answer, or what went wrong in words.
    pub(crate) async fn ask(&self, path: &str) -> Result<Value, String> {
        match tokio::time::timeout(PATIENCE, self.exchange(path)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {PATIENCE:?}")),
        }
    }

    async fn exchange(&self, path: &str) -> Result<Value, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let stream = TcpStream::connect(&self.authority)
            .await
            .map_err(|error| said(&error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| said(&error))?;
        tokio::spawn(async move {
            let _ = connection.await;
        });
        let request = Request::get(path)
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, "Bearer local")
            .body(Empty::<bytes::Bytes>::new())
            .map_err(|error| said(&error))?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| said(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER);
        let bytes = body
            .collect()
            .await
            .map_err(|error| said(&error))?
            .to_bytes();
        let tree: Value = serde_json::from_slice(&bytes)
            .map_err(|_| format!("it answers {status} and no JSON"))?;
        if status.is_success() {
            Ok(tree)
        } else {
            let detail = tree["detail"].as_str().unwrap_or("without a reason");
            Err(format!("it answers {status}: {detail}"))
        }
    }
}
