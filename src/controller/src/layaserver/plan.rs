//! What to do about a server, and what to say (control-plane 3.2). Pure.
//!
//! The rows of the table are looked at from the top. What changes facts comes first (a failed rollout, another wish), then
//! where traffic goes, then what runs, then the rollout, then what nothing needs. A row that did something ends the pass,
//! and a pass that changes traffic does nothing else.

use api::condition::ConditionType;
use api::event::EventReason;
use api::kinds::{Condition, ConditionStatus, LayaServer, LayaServerStatus};
use api::label;
use api::reason::Reason;

use super::action::Action;
use super::conditions::{self, Saying};
use super::deadline::Clocks;
use super::facts::{Facts, revision};
use super::history::MAX_TEXT;
use super::observation::{Checked, Observation};
use super::requeue;
use super::rollout::{self, Ran};
use super::traffic::{self, Changed};
use super::view::{Draft, View};
use super::wish::{self, Wished};
use super::{probed, recover, repair, restarts, sweep};
use crate::clock::Now;
use crate::conditions::{Conditions, bounded, find};
use crate::reconciler::{EventDraft, Requeue};

/// What a pass over a server is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// In order. At most one of them destroys something.
    pub actions: Vec<Action>,
    /// What is now, before the actions.
    pub status: LayaServerStatus,
    /// What people should be told once the status is written.
    pub events: Vec<EventDraft>,
    /// When to look again.
    pub requeue: Requeue,
}

/// What to do and to say about a server.
#[must_use]
pub fn plan(object: &LayaServer, checked: &Checked, seen: &Observation, now: &Now) -> Planned {
    let view = View::new(object, checked, seen, Clocks::new(now, &seen.ages));
    let mut draft = Draft::new(object.status.clone().unwrap_or_default());
    if object.metadata.deletion_timestamp.is_some() {
        return deleting(&view, draft);
    }
    let Some(wished) = rows(&view, &mut draft) else {
        return blind(&view, draft);
    };
    finish(&view, draft, &wished)
}

/// Goes through the rows; `None` where nothing was seen.
fn rows<'a>(view: &View<'a>, draft: &mut Draft) -> Option<Wished<'a>> {
    if traffic::is_suspended(view) {
        let wished = wish::settle(view, draft);
        rollout::hold(view, draft);
        if traffic::point(view, draft) == Changed::No {
            stop_everything(view, draft);
        }
        return view.observed.map(|_| wished);
    }
    if view.spec.external.is_some() {
        let wished = wish::settle(view, draft);
        rollout::hold(view, draft);
        traffic::point(view, draft);
        return Some(wished);
    }
    view.observed?;
    restarts::count(view, draft);
    restarts::damage(view, draft);
    let wished = wish::settle(view, draft);
    if ours(view, draft, &wished) == Ran::Something {
        // Facts may have changed that traffic follows from.
        traffic::point(view, draft);
    }
    Some(wished)
}

/// The rows about servers of ours, until one did something.
fn ours(view: &View<'_>, draft: &mut Draft, wished: &Wished<'_>) -> Ran {
    if recover::run(view, draft) == Ran::Something
        || rollout::settle(view, draft, wished) == Ran::Something
    {
        return Ran::Something;
    }
    if traffic::point(view, draft) == Changed::Yes {
        repair::tell_lost(view, draft);
        return Ran::Something;
    }
    if repair::run(view, draft) == Ran::Something
        || rollout::begin(view, draft, wished) == Ran::Something
        || rollout::advance(view, draft, wished) == Ran::Something
    {
        return Ran::Something;
    }
    sweep::run(view, draft)
}

/// Suspended: what runs stops, one revision a pass.
fn stop_everything(view: &View<'_>, draft: &mut Draft) {
    let Some(observed) = view.observed else {
        return;
    };
    for server in &observed.servers {
        let replicas = view.replicas(&server.revision);
        let version = api::kinds::laya_server::Version {
            revision: Some(server.revision.clone()),
            ..Default::default()
        };
        if let Some(actions) = sweep::stop(view, &version, &replicas) {
            draft.actions.extend(actions);
            return;
        }
    }
}

fn deleting(view: &View<'_>, draft: Draft) -> Planned {
    let mut conditions = old_conditions(view);
    conditions.remove(ConditionType::Reconciling);
    conditions.remove(ConditionType::Stalled);
    conditions.set(
        ConditionType::Ready,
        ConditionStatus::False,
        Reason::Deleting,
        "the object is being deleted; its servers go with it",
    );
    Planned {
        actions: Vec::new(),
        status: LayaServerStatus {
            observed_generation: view.object.metadata.generation,
            conditions: conditions.into_list(),
            ..draft.status
        },
        events: Vec::new(),
        requeue: Requeue::Never,
    }
}

/// Nothing was seen: facts stay as they are, but that a person suspends it.
fn blind(view: &View<'_>, draft: Draft) -> Planned {
    let saying = conditions::say_blind(view);
    let mut conditions = old_conditions(view);
    saying.write(&mut conditions);
    let phase = conditions::phase(view, &draft, &saying);
    Planned {
        actions: Vec::new(),
        status: LayaServerStatus {
            observed_generation: view.object.metadata.generation,
            conditions: conditions.into_list(),
            phase: Some(phase.to_owned()),
            ..draft.status
        },
        events: draft.events,
        requeue: Requeue::Waiting,
    }
}

fn old_conditions(view: &View<'_>) -> Conditions {
    Conditions::of(before(view), view.object.metadata.generation, view.now())
}

fn before<'a>(view: &View<'a>) -> &'a [Condition] {
    let status = view.object.status.as_ref();
    status.map_or(&[], |status| status.conditions.as_slice())
}

/// Everything that follows from the facts and from what was seen.
fn finish(view: &View<'_>, mut draft: Draft, wished: &Wished<'_>) -> Planned {
    let saying = conditions::say(view, &draft, wished);
    renew(view, &mut draft, &saying);
    tell_changes(view, &mut draft, &saying);
    let message = draft.waits.as_ref().map(|because| because.message.clone());
    if draft.status.state().is_some() {
        draft.rollout().message = message.map(|message| bounded(message, MAX_TEXT));
    }
    let mut conditions = old_conditions(view);
    saying.write(&mut conditions);
    let phase = conditions::phase(view, &draft, &saying);
    numbers(view, &mut draft);
    let requeue = requeue::after(view, &draft);
    let url = traffic::url(&draft);
    Planned {
        actions: draft.actions,
        status: LayaServerStatus {
            observed_generation: view.object.metadata.generation,
            conditions: conditions.into_list(),
            phase: Some(phase.to_owned()),
            url,
            ..draft.status
        },
        events: draft.events,
        requeue,
    }
}

/// Replicas that there are, and that answer.
fn numbers(view: &View<'_>, draft: &mut Draft) {
    if view.observed.is_some() {
        conditions::count_ready(view, &mut draft.status.champion);
        conditions::count_ready(view, &mut draft.status.candidate);
        conditions::count_ready(view, &mut draft.status.previous);
    }
    let champion = draft.status.champion.as_ref();
    let replicas = view.replicas_of(champion);
    let external = i32::from(view.spec.external.is_some() && traffic::url(draft).is_some());
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let (there, ready) = if view.spec.external.is_some() {
        (external, external)
    } else {
        (
            count(replicas.iter().filter(|it| !it.is_down()).count()),
            count(replicas.maybe_ready()),
        )
    };
    let selector = revision(champion)
        .filter(|_| view.checked.capabilities.pods)
        .map(|it| {
            let uid = view.object.metadata.uid.as_deref().unwrap_or_default();
            format!("{}={uid},{}={it}", label::UID, label::REVISION)
        });
    draft.status.replicas = Some(there);
    draft.status.ready_replicas = Some(ready);
    draft.status.selector = selector;
}

/// What is shown of device and answers of the champion is that of Probing until one of the conditions changes.
fn renew(view: &View<'_>, draft: &mut Draft, saying: &Saying) {
    if view.spec.external.is_some() {
        // What is said then is about another server.
        return;
    }
    let Some(mut champion) = draft.status.champion.clone() else {
        return;
    };
    let old = |kind| find(before(view), kind).map(|condition| condition.status);
    let changed = |kind| conditions::renews(old(kind), saying.get(kind));
    let probed_changed = changed(ConditionType::Probed);
    let device_changed = changed(ConditionType::DeviceMatched);
    let replicas = view.replicas_of(Some(&champion));
    let asked = replicas.iter().any(|replica| {
        replica
            .probe
            .is_some_and(|probe| probe.questions.passed_at.is_some())
    });
    if probed_changed || device_changed || (champion.probe.is_none() && asked) {
        probed::record(view, &mut champion, &replicas);
        let wrong = saying
            .get(ConditionType::Probed)
            .is_some_and(|said| said.status == ConditionStatus::False);
        if let Some(probe) = champion.probe.as_mut().filter(|_| wrong) {
            // Forgotten, so that a new process does not take it for right before it asked.
            probe.passed_at = None;
        }
        draft.status.champion = Some(champion);
    }
}

/// The event of a condition that is false for this reason, where it has one.
pub(super) const fn event_of(reason: Reason) -> Option<EventReason> {
    match reason {
        Reason::CrashLoop => Some(EventReason::CrashLoop),
        Reason::OutOfMemory => Some(EventReason::OutOfMemory),
        Reason::PortInUse => Some(EventReason::PortInUse),
        Reason::NameTaken => Some(EventReason::NameTaken),
        Reason::DeviceMismatch
        | Reason::DeviceSuspect
        | Reason::GpuLost
        | Reason::GpuUnavailable => Some(EventReason::DeviceMismatch),
        Reason::CpuFallback => Some(EventReason::CpuFallback),
        Reason::ProbeTimedOut
        | Reason::WrongAnswers
        | Reason::DeadHead
        | Reason::MalformedAnswers
        | Reason::ContractMismatch
        | Reason::QuestionsUnknown => Some(EventReason::ProbeFailed),
        _ => None,
    }
}

/// Events of conditions that became false, or false for another reason.
fn tell_changes(view: &View<'_>, draft: &mut Draft, saying: &Saying) {
    for kind in [
        ConditionType::Available,
        ConditionType::ContractMatched,
        ConditionType::Probed,
        ConditionType::DeviceMatched,
        ConditionType::RolledOut,
    ] {
        let Some(said) = saying.get(kind) else {
            continue;
        };
        let Some(event) = event_of(said.because.reason) else {
            continue;
        };
        let same =
            find(before(view), kind).is_some_and(|old| old.reason == said.because.reason.as_str());
        if said.status == ConditionStatus::False && !same {
            draft.tell(event, said.because.message.clone());
        }
    }
}
