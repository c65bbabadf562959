//! One decision: prepare, judge by rules, select, count, remember. Short requests are decided where they arrive; long
//! ones on threads of their own, so that a pasted log cannot hold up the health check.

use std::sync::Arc;
use std::time::Instant;

use api::problem::Slug;
use api::{Decision, RouteRequest};
use jiff::Timestamp;
use routing::decide::{
    Client, Decided, Explain, Moment, NO_MODEL, NothingKnown, Trace, decide, prepare,
};
use serde::Serialize;
use service::http::Tenant;
use service::problem::Failure;
use tokio::sync::Semaphore;

use crate::metrics::RouterMetrics;
use crate::policy::ActivePolicy;
use crate::recent::Recent;

/// Bytes of text from which a decision takes longer than a millisecond or so.
const LONG_TEXT_BYTES: usize = 8 * 1024;

/// Everything a decision needs.
#[derive(Debug)]
pub(crate) struct Decider {
    policy: Arc<ActivePolicy>,
    client: Client,
    metrics: RouterMetrics,
    recent: Recent,
    /// One per core for long texts.
    long: Arc<Semaphore>,
}

/// One request on its way.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) request: RouteRequest,
    pub(crate) tenant: Tenant,
    pub(crate) explain: Explain,
    pub(crate) arrived: Instant,
}

impl Decider {
    pub(crate) fn new(policy: Arc<ActivePolicy>, client: Client, metrics: RouterMetrics) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            policy,
            client,
            metrics,
            recent: Recent::default(),
            long: Arc::new(Semaphore::new(cores)),
        }
    }

    /// Decides, and gives the answer's body. A dropped call may still finish a long text; nothing comes of it but its
    /// count and the memory of it.
    pub(crate) async fn decide(self: Arc<Self>, arrival: Arrival) -> Result<Vec<u8>, Failure> {
        if arrival.request.request.len() < LONG_TEXT_BYTES {
            return self.decide_now(&arrival);
        }
        let permit = self.long.clone().acquire_owned().await;
        let decider = self.clone();
        let decided =
            tokio::task::spawn_blocking(service::telemetry::trace::carry_blocking(move || {
                // Held to the end of the work, not to that of the wait for it. Never closed, so there is one.
                let _permit = permit;
                decider.decide_now(&arrival)
            }));
        match decided.await {
            Ok(decided) => decided,
            // Raised again here, where it is caught, counted and answered like any other.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Failure::new(Slug::Unavailable, "the router is stopping")),
            },
        }
    }

    fn decide_now(&self, arrival: &Arrival) -> Result<Vec<u8>, Failure> {
        let Arrival {
            request,
            tenant,
            explain,
            arrived,
        } = arrival;
        let now = Timestamp::now();
        let mut random = [0; 28];
        getrandom::fill(&mut random).map_err(|error| {
            Failure::new(
                Slug::Unavailable,
                format!("cannot get random numbers: {error}"),
            )
        })?;
        let previous = self.recent.previous(tenant, request);
        let prepared = prepare(
            request,
            &self.policy.policy,
            self.client,
            previous.as_deref(),
            now,
        )
        .map_err(Failure::invalid)?;
        let elapsed_millis = || arrived.elapsed().as_secs_f64() * 1e3;
        let moment = Moment::new(now, random, &elapsed_millis, *explain);
        let decided = decide(&prepared, NO_MODEL, &NothingKnown, moment).map_err(|none| {
            Failure::new(Slug::NoCandidate, none.to_string()).hint(
                "name providers with credentials in `providers`, or models of a tier in the policy",
            )
        })?;
        self.metrics.decided(&decided.decision);
        let Decided {
            decision,
            store,
            trace,
            corrects: _,
        } = decided;
        service::telemetry::trace::decision(decision.id);
        tracing::debug!(
            decision = %decision.id,
            tier = decision.selected.tier.as_str(),
            model = decision.selected.model.as_str(),
            source = decision.assessment.source.as_str(),
            "decided"
        );
        let body = write(&decision, trace.as_ref())?;
        if store {
            self.recent.remember(tenant, Arc::new(decision));
        }
        Ok(body)
    }
}

/// The decision, with its trace when somebody asked for it.
#[derive(Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    decision: &'a Decision,
    trace: &'a Trace,
}

fn write(decision: &Decision, trace: Option<&Trace>) -> Result<Vec<u8>, Failure> {
    let written = match trace {
        None => serde_json::to_vec(decision),
        Some(trace) => serde_json::to_vec(&Explained { decision, trace }),
    };
    written.map_err(|error| {
        tracing::error!(%error, decision = %decision.id, "a decision cannot be written as JSON");
        Failure::new(Slug::Internal, "the decision cannot be written as JSON")
    })
}
