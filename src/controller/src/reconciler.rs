//! What a kind must say to be reconciled. The driver calls these in order; a kind decides in `validate` and `plan`, which
//! are pure, and touches the world in `observe` and `act`.
//!
//! Status can be made of what was seen only: [`Observed`] comes from [`Seen`], and `Seen` from [`Evidence`]. An action is
//! no evidence, so a status that claims an effect before it was seen does not compile:
//!
//! ```compile_fail
//! use controller::reconciler::{Observed, Seen};
//! struct Start;
//! let started: Observed<&str> = Seen::of(Start).status("running");
//! ```

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use api::event::EventReason;
use api::group::Kind;
use api::kinds::Condition;
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::Now;
use crate::driver::ACTION_DEADLINE;
use crate::failure::Failure;

/// What a kind does in the steps of a pass.
pub trait Reconciler: Debug + Send + Sync + Sized + 'static {
    /// The kind.
    const KIND: Kind;
    /// Its type.
    type Object: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static;
    /// Its status, whole: what is absent in it is removed from the object.
    type Status: Clone + Debug + PartialEq + Serialize + Send + Sync + 'static;
    /// The object and what it references, checked.
    type Checked: Send + Sync;
    /// What was found in the world.
    type Observation: Evidence + Send + Sync;
    /// What can be done.
    type Action: Effect + Send + Sync;

    /// The status that the object has.
    fn status(object: &Self::Object) -> Option<&Self::Status>;

    /// Conditions of a status.
    fn conditions(status: &Self::Status) -> &[Condition];

    /// The object and what it references, from caches that are complete, checked. Does not wait.
    fn check(&self, object: &Self::Object, now: &Now) -> Self::Checked;

    /// Looks at the world.
    fn observe(
        &self,
        object: &Self::Object,
        checked: &Self::Checked,
    ) -> impl Future<Output = Result<Self::Observation, Failure>> + Send;

    /// What to do and to say. Pure: reads no clock, waits for nothing, remembers nothing.
    fn plan(
        object: &Self::Object,
        checked: &Self::Checked,
        seen: &Seen<Self::Observation>,
        now: &Now,
    ) -> Plan<Self>;

    /// Does one thing, within its deadline.
    fn act(
        &self,
        object: &Self::Object,
        action: &Self::Action,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// What to say when only somebody's change helps against a failure ([`Failure::reason`] is there). Pure.
    fn failed(object: &Self::Object, failure: &Seen<Failure>, now: &Now) -> Observed<Self::Status>;

    /// What people should be told of such a failure once its status is written. Pure.
    fn failed_events(_object: &Self::Object, _failure: &Failure) -> Vec<EventDraft> {
        Vec::new()
    }

    /// The object is gone; what was remembered of it can go.
    fn forget(&self, uid: &str);
}

/// Marks what is seen, as opposed to what is wished or done.
pub trait Evidence {}

/// Evidence that a pass has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<O>(O);

impl<O: Evidence> Seen<O> {
    /// Was seen.
    pub const fn of(evidence: O) -> Self {
        Self(evidence)
    }

    /// What was seen.
    pub const fn get(&self) -> &O {
        &self.0
    }

    /// A status that rests on it.
    pub const fn status<S>(&self, status: S) -> Observed<S> {
        Observed(status)
    }
}

/// A status that rests on evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed<S>(S);

impl<S> Observed<S> {
    /// The status.
    pub const fn get(&self) -> &S {
        &self.0
    }
}

/// What a pass is to do.
#[derive(Debug)]
pub struct Plan<R: Reconciler> {
    /// In order. At most one of them destroys something.
    pub actions: Vec<R::Action>,
    /// What is now, before the actions.
    pub status: Observed<R::Status>,
    /// What people should be told once the status is written.
    pub events: Vec<EventDraft>,
    /// When to look again.
    pub requeue: Requeue,
}

/// What an action is called, and what it does to the world.
pub trait Effect: Debug {
    /// Where it acts: the label `backend`.
    fn backend(&self) -> &'static str;
    /// What it is called: the label `action`.
    fn name(&self) -> &'static str;
    /// Whether it destroys something.
    fn destroys(&self) -> Destroys;
    /// On what, for errors.
    fn target(&self) -> String;
    /// How long it may take.
    fn deadline(&self) -> Duration {
        ACTION_DEADLINE
    }
}

/// Whether an action destroys something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destroys {
    /// It can be repeated or taken back.
    Nothing,
    /// What it removes does not come back by itself.
    Something,
}

/// An event to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDraft {
    /// Which; it has its action and whether it is a warning.
    pub reason: EventReason,
    /// One or two sentences; cut at 1 kB.
    pub note: String,
}

/// When an object is looked at again, unless it changes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// Nothing is going on: 5 min ± 20 %.
    Steady,
    /// It waits for something else: 30 s.
    Waiting,
    /// Only a change helps: 10 min.
    Stalled,
    /// After this.
    After(Duration),
    /// Only when it changes.
    Never,
}

impl Requeue {
    /// The time until then; `spread` is a factor around 1 that keeps many objects apart.
    #[must_use]
    pub fn delay(self, spread: f64) -> Option<Duration> {
        match self {
            Self::Steady => Some(Duration::from_secs(300).mul_f64(spread)),
            Self::Waiting => Some(Duration::from_secs(30)),
            Self::Stalled => Some(Duration::from_secs(600).mul_f64(spread)),
            Self::After(delay) => Some(delay),
            Self::Never => None,
        }
    }
}
