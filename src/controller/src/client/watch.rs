//! The answer to a request: whole, or the stream of a watch that ends by itself when nothing comes. kube's watcher then
//! begins a new one where the old one stood, so a server that keeps the connection and says nothing costs minutes, not
//! for ever.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::Full;
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

use super::Deadlines;
use crate::metrics::{ControllerMetrics, WatchRestart};

pub(super) enum GuardedBody {
    Whole(Full<Bytes>),
    Watch(Box<Watch>),
}

pub(super) struct Watch {
    body: Body,
    deadlines: Deadlines,
    /// Runs out when nothing came for too long, or when the watch is too old.
    end: Pin<Box<Sleep>>,
    oldest: Instant,
    kind: &'static str,
    metrics: Arc<ControllerMetrics>,
}

impl GuardedBody {
    pub(super) fn watch(
        body: Body,
        deadlines: Deadlines,
        kind: &'static str,
        metrics: Arc<ControllerMetrics>,
    ) -> Self {
        let now = Instant::now();
        Self::Watch(Box::new(Watch {
            body,
            deadlines,
            end: Box::pin(sleep_until(now + deadlines.watch_idle)),
            oldest: now + deadlines.watch_age,
            kind,
            metrics,
        }))
    }
}

impl Watch {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let restart = |cause| self.metrics.watch_restarted(self.kind, cause);
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let idle = Instant::now() + self.deadlines.watch_idle;
                self.end.as_mut().reset(idle.min(self.oldest));
                Poll::Ready(Some(Ok(frame)))
            }
            // What cut it is counted where kube's watcher tells it.
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => {
                restart(WatchRestart::Ended);
                Poll::Ready(None)
            }
            Poll::Pending => {
                std::task::ready!(self.end.as_mut().poll(context));
                restart(WatchRestart::Idle);
                Poll::Ready(None)
            }
        }
    }
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Self::Whole(whole) => Pin::new(whole).poll_frame(context).map_err(|never| match never {}),
            Self::Watch(watch) => watch.poll_next(context),
        }
    }
}
