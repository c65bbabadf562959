//! How the controller talks to the object API, in both worlds: each call has a deadline over all its tries, only verbs
//! that may be repeated are, a `Retry-After` is honoured as far as the deadline allows, and a watch that says nothing is
//! ended. kube's own retry must be off (`Config::default_retry = false`): it waits for minutes.

mod call;
mod retry;
mod watch;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Service};

use crate::metrics::ControllerMetrics;
use call::Call;
use watch::GuardedBody;

/// Largest answer that is read, in bytes: a page of a list has at most 500 objects, and few are above 100 kB.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Waits of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// A call with all its tries, its answer read; of a watch until it begins.
    pub call: Duration,
    /// A watch without a byte. API servers send a bookmark about every minute, the local store every 30 s.
    pub watch_idle: Duration,
    /// A watch in all; the server ends it after 290 s.
    pub watch_age: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(5),
            watch_idle: Duration::from_secs(150),
            watch_age: Duration::from_secs(300),
        }
    }
}

/// A call did not end in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no answer within {:.1} s", after.as_secs_f64())]
pub struct CallTimedOut {
    /// The deadline.
    pub after: Duration,
}

/// The client that everything here uses, around one that connects.
#[must_use]
pub fn guarded(client: Client, deadlines: Deadlines, metrics: ControllerMetrics) -> Client {
    let namespace = client.default_namespace().to_owned();
    let guarded = Guarded {
        client,
        deadlines,
        metrics: Arc::new(metrics),
    };
    Client::new(guarded, namespace)
}

#[derive(Clone)]
struct Guarded {
    client: Client,
    deadlines: Deadlines,
    metrics: Arc<ControllerMetrics>,
}

impl Service<Request<Body>> for Guarded {
    type Response = Response<GuardedBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The client inside waits for its own readiness when it sends.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { this.answer(request).await })
    }
}

impl Guarded {
    async fn answer(self, request: Request<Body>) -> Result<Response<GuardedBody>, BoxError> {
        let call = Call::of(&request);
        let deadline = Instant::now() + self.deadlines.call;
        let (parts, mut body) = request.into_parts();
        for attempt in 1.. {
            // A body that streams cannot be sent again; ours never do.
            let again = body.try_clone();
            let sent = self.once(&call, parts.clone(), body, deadline).await;
            let left = deadline.saturating_duration_since(Instant::now());
            let (Some(next), Some(wait)) = (again, retry::wait(&call, attempt, &sent, left)) else {
                return sent;
            };
            tokio::time::sleep(wait).await;
            body = next;
        }
        unreachable!("`retry::wait` ends after a few tries")
    }

    async fn once(
        &self,
        call: &Call,
        parts: Parts,
        body: Body,
        deadline: Instant,
    ) -> Result<Response<GuardedBody>, BoxError> {
        let began = Instant::now();
        let request = Request::from_parts(parts, body);
        let sent = tokio::time::timeout_at(deadline, async {
            let response = self.client.send(request).await?;
            self.read(call, response).await
        });
        let answer = sent.await.unwrap_or_else(|_| {
            let after = self.deadlines.call;
            Err(CallTimedOut { after }.into())
        });
        let code = match &answer {
            Ok(response) => response.status().as_str().to_owned(),
            Err(error) if error.is::<CallTimedOut>() => "timeout".to_owned(),
            Err(_) => "error".to_owned(),
        };
        self.metrics
            .requested(call.verb.as_str(), call.kind, &code, began.elapsed());
        answer
    }

    /// The answer whole, or a watch that is looked after.
    async fn read(
        &self,
        call: &Call,
        response: Response<Body>,
    ) -> Result<Response<GuardedBody>, BoxError> {
        let (parts, body) = response.into_parts();
        if call.is_watch() && parts.status == StatusCode::OK {
            let watch = GuardedBody::watch(body, self.deadlines, call.kind, self.metrics.clone());
            return Ok(Response::from_parts(parts, watch));
        }
        let whole: Bytes = Limited::new(body, MAX_ANSWER_BYTES).collect().await?.to_bytes();
        Ok(Response::from_parts(parts, GuardedBody::Whole(whole.into())))
    }
}

#[cfg(test)]
mod tests;
