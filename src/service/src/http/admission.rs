//! The bound on open requests: so many at once, so many more waiting a short while, the rest is told to come again.

use std::sync::Arc;
use std::time::Duration;

use api::problem::Slug;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use crate::problem::Failure;

/// Seconds in `Retry-After` of an overload.
const RETRY_AFTER_SECONDS: u32 = 1;

/// How many requests may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Being answered at once.
    pub in_flight: usize,
    /// Waiting for their turn.
    pub queued: usize,
    /// Longest wait for a turn; a client with a deadline is better served by an early refusal.
    pub queue_wait: Duration,
}

impl Default for AdmissionLimits {
    /// 256 in flight and 64 queued (routing.md 18), for at most 2 s.
    fn default() -> Self {
        Self {
            in_flight: 256,
            queued: 64,
            queue_wait: Duration::from_secs(2),
        }
    }
}

/// The slots of one server.
#[derive(Debug)]
pub struct Admission {
    limits: AdmissionLimits,
    /// In flight or queued.
    open: Semaphore,
    running: Semaphore,
}

impl Admission {
    /// Free slots for these limits.
    #[must_use]
    pub fn new(limits: AdmissionLimits) -> Self {
        Self {
            limits,
            open: Semaphore::new(limits.in_flight + limits.queued),
            running: Semaphore::new(limits.in_flight),
        }
    }

    fn refusal(&self) -> Failure {
        let AdmissionLimits {
            in_flight, queued, ..
        } = self.limits;
        Failure::new(
            Slug::Overloaded,
            format!("{in_flight} requests are being answered and at most {queued} may wait"),
        )
        .retry_after(RETRY_AFTER_SECONDS)
    }
}

/// Slots are held until the answer's head is ready and given back when the client goes away.
pub(super) async fn admit(
    State(admission): State<Arc<Admission>>,
    request: Request,
    next: Next,
) -> Response {
    let Ok(_open) = admission.open.try_acquire() else {
        return admission.refusal().into_response();
    };
    match tokio::time::timeout(admission.limits.queue_wait, admission.running.acquire()).await {
        Ok(Ok(_running)) => next.run(request).await,
        Ok(Err(_)) | Err(_) => admission.refusal().into_response(),
    }
}
