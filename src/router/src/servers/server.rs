//! One server behind the router: its line, its slots, its breaker and what is known about it. It outlives tables, so
//! that moving a weight forgets nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use prometheus::IntGauge;
use service::telemetry::RepeatedError;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::breaker::{Breaker, BreakerRule, Ticket, Weight};
use super::connect::TlsError;
use super::metrics::ServerMetrics;
use super::revision::{Ended, Revision, UnderWay};
use super::standing::{Expected, Serves, Standing, Wording, Wrong};
use super::table::Role;
use super::upstream::{Line, Upstream};

/// Calls to one server at once: one that hangs cannot fill the router (routing.md 18).
pub const CALLS_IN_FLIGHT: usize = 32;

/// Looks in a row that must fail before a server that served counts as gone: one lost answer is no outage.
const MISSES: u32 = 2;

/// How long a server that refused what it says it serves is not believed when it says the same again.
const DOUBT: Duration = Duration::from_secs(60);

/// What makes a server this one and no other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) upstream: Upstream,
    pub(super) revision: Option<String>,
    pub(super) wording: Option<Arc<Wording>>,
    pub(super) expected: Expected,
}

struct Known {
    standing: Standing,
    misses: u32,
    /// What it said it serves when it refused it, and when that was.
    doubted: Option<(Arc<Serves>, Instant)>,
}

impl Known {
    fn doubting(&self, found: Standing, now: Instant) -> Standing {
        match (&found, &self.doubted) {
            (Standing::Serves(serves), Some((doubted, since)))
                if serves == doubted && now.saturating_duration_since(*since) < DOUBT =>
            {
                let contract = serves.contract.clone().unwrap_or_default();
                Standing::Wrong(Wrong::Refuses { contract })
            }
            _ => found,
        }
    }
}

/// One server.
pub(super) struct Server {
    identity: Identity,
    pub(super) line: Line,
    slots: Arc<Semaphore>,
    breaker: Mutex<Breaker>,
    known: RwLock<Known>,
    /// Wakes the one who looks.
    pub(super) look_again: Notify,
    open: IntGauge,
    counted: Option<Arc<Revision>>,
    metrics: ServerMetrics,
    pub(super) call_errors: RepeatedError,
    pub(super) look_errors: RepeatedError,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Why a call is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// All its slots are taken.
    Busy,
    /// Its breaker is open.
    Open,
}

impl Server {
    pub(super) fn new(
        identity: Identity,
        rule: BreakerRule,
        metrics: &ServerMetrics,
        counted: Option<Arc<Revision>>,
    ) -> Result<Self, TlsError> {
        let line = Line::new(&identity.upstream)?;
        Ok(Self {
            open: metrics.breaker_open(&identity.name),
            call_errors: metrics.repeated(),
            look_errors: metrics.repeated(),
            metrics: metrics.clone(),
            counted,
            line,
            identity,
            slots: Arc::new(Semaphore::new(CALLS_IN_FLIGHT)),
            breaker: Mutex::new(Breaker::new(rule)),
            known: RwLock::new(Known {
                standing: Standing::Unknown,
                misses: 0,
                doubted: None,
            }),
            look_again: Notify::new(),
        })
    }

    pub(super) const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn name(&self) -> &str {
        &self.identity.name
    }

    /// What is known about it.
    pub(super) fn standing(&self) -> Standing {
        self.known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .standing
            .clone()
    }

    /// What it serves, if it may be asked.
    pub(super) fn serves(&self) -> Option<Arc<Serves>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match &known.standing {
            Standing::Serves(serves) => Some(serves.clone()),
            _ => None,
        }
    }

    /// Whether it may be asked now.
    pub(super) fn is_usable(&self, now: Instant) -> bool {
        self.serves().is_some() && self.breaker().would_admit(now)
    }

    pub(super) fn set_rule(&self, rule: BreakerRule) {
        self.breaker().set_rule(rule);
    }

    /// What is counted of its revision.
    pub(super) fn counted(&self) -> Option<&Arc<Revision>> {
        self.counted.as_ref()
    }

    /// Lets a call in, or says why not.
    pub(super) fn admit(
        self: &Arc<Self>,
        now: Instant,
        purpose: Purpose,
    ) -> Result<Admitted, Closed> {
        let slot = self
            .slots
            .clone()
            .try_acquire_owned()
            .map_err(|_| Closed::Busy)?;
        let ticket = self.breaker().admit(now).ok_or(Closed::Open)?;
        let under_way = match purpose {
            Purpose::Answer(_) => self.counted.as_ref().map(Revision::begin),
            Purpose::Copy => None,
        };
        Ok(Admitted {
            server: self.clone(),
            ticket: Some(ticket),
            purpose,
            began: now,
            under_way,
            _slot: slot,
        })
    }

    /// Takes in what a look found. What is known now, if that changed.
    pub(super) fn looked(&self, found: Standing, now: Instant) -> Option<Standing> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let found = known.doubting(found, now);
        if let Standing::Unreachable { .. } = found {
            known.misses = known.misses.saturating_add(1);
            if known.misses < MISSES && matches!(known.standing, Standing::Serves(_)) {
                return None;
            }
        } else {
            known.misses = 0;
        }
        if known.standing == found {
            return None;
        }
        known.standing = found.clone();
        drop(known);
        let mut breaker = self.breaker();
        match &found {
            Standing::Wrong(_) => breaker.hold(),
            // New, repaired, or another one than before.
            Standing::Serves(_) => breaker.close(),
            Standing::Unknown | Standing::Unreachable { .. } | Standing::NotReady { .. } => {}
        }
        self.show(&breaker);
        drop(breaker);
        Some(found)
    }

    /// It refused what it said it serves: nobody is let in until somebody has looked and found something else.
    pub(super) fn mistaken(&self, serves: &Arc<Serves>, now: Instant) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.standing = Standing::Unknown;
        known.doubted = Some((serves.clone(), now));
        drop(known);
        let mut breaker = self.breaker();
        breaker.hold();
        self.show(&breaker);
        drop(breaker);
        self.look_again.notify_one();
    }

    /// It said that it drains: nobody else goes there, and somebody looks whether it stays so. Its breaker learns nothing,
    /// since it did what it should.
    pub(super) fn drains(&self) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(known.standing, Standing::Serves(_)) {
            let message = "it drains".to_owned();
            known.standing = Standing::NotReady { message };
            drop(known);
            tracing::info!(
                server = self.name(),
                "decision model drains; others are asked"
            );
            self.look_again.notify_one();
        }
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, breaker: &Breaker) {
        self.open.set(i64::from(breaker.is_open()));
    }
}

/// What a call is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Somebody waits for the answer, by which the server played this part.
    Answer(Role),
    /// The answer is compared with one that was given.
    Copy,
}

/// A call that was let in. Dropped without an outcome, it says nothing about the server.
#[derive(Debug)]
pub(super) struct Admitted {
    server: Arc<Server>,
    ticket: Option<Ticket>,
    purpose: Purpose,
    began: Instant,
    /// Also until the last byte of a body that is handed on.
    under_way: Option<UnderWay>,
    _slot: OwnedSemaphorePermit,
}

impl Admitted {
    pub(super) const fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// It was answered as it should be.
    pub(super) fn succeeded(&mut self) {
        self.count(Ended::Answered);
        self.settle(|breaker, ticket| breaker.succeeded(ticket));
    }

    /// It failed.
    pub(super) fn failed(&mut self, how: Ended, weight: Weight) {
        let now = Instant::now();
        self.count(how);
        self.settle(|breaker, ticket| breaker.failed(ticket, weight, now));
    }

    /// The server drains and said so.
    pub(super) fn drained(&mut self) {
        self.count(Ended::TurnedAway);
        self.server.drains();
    }

    fn count(&self, how: Ended) {
        let Purpose::Answer(role) = self.purpose else {
            return;
        };
        let took = self.began.elapsed();
        self.server.metrics.called(role, how, took);
        if let Some(under_way) = &self.under_way {
            under_way.ended(how, took);
        }
    }

    fn settle(&mut self, outcome: impl FnOnce(&mut Breaker, Ticket)) {
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        let mut breaker = self.server.breaker();
        let was_open = breaker.is_open();
        outcome(&mut breaker, ticket);
        self.server.show(&breaker);
        if was_open != breaker.is_open() {
            let server = self.server.name();
            if was_open {
                tracing::info!(server, "breaker closed: the server answers again");
            } else {
                tracing::warn!(server, "breaker open: the server is not asked for a while");
            }
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let now = Instant::now();
        self.settle(|breaker, ticket| breaker.abandoned(ticket, now));
    }
}
