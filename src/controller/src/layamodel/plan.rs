//! What to do about a model (control-plane 2, table of states). Pure.
//!
//! Facts come first, deletions later: how a task ended is in status before the task is removed, and a status that would
//! change is written before the object's metadata are.

mod deleting;
mod running;
mod stands;
mod waiting;

use api::finalizer::MODEL_IN_USE;
use api::kinds::{LayaModel, LayaModelStatus};
use api::label;
use api::label::Task;
use backend::{BackendError, Observed, RunState, TaskSeen, VolumeSeen};
use std::time::Duration;

use super::LayaModels;
use super::contract::Wording;
use super::inputs::Checked;
use super::source::Wanted;
use super::status::{self, Stand};
use crate::clock::Now;
use crate::driver::{ACTION_DEADLINE, ENGINE_DEADLINE};
use crate::reconciler::{Destroys, Effect, EventDraft, Evidence, Plan, Requeue, Seen};
use crate::recorded::Recorded;

/// While a task runs.
pub(super) const RUNNING: Requeue = Requeue::After(Duration::from_secs(15));
/// Time that a task has to end by itself.
const GRACE_SECONDS: u32 = 10;

/// What was found of a model.
#[derive(Debug, Clone)]
pub struct Observation {
    /// What the engine shows, or why nothing is known.
    pub engine: Result<Observed, BackendError>,
    /// Documents of wordings and recorded probes that were looked for and need not be stored, by name.
    pub documents: Vec<String>,
    /// The document of its recorded probes, where it goes as the last that has them.
    pub last_probes: Option<Document>,
    /// Whether the volume has not been bound for so long that it is said.
    pub unbound_long: bool,
}

impl Evidence for Observation {}

/// A stored document that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// Its uid: nothing else of that name is removed.
    pub uid: String,
}

/// What can be done about a model.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// On the engine.
    Engine {
        /// Its name.
        backend: &'static str,
        /// What.
        action: Box<backend::Action>,
    },
    /// Stores the wording of a version.
    StoreContract {
        /// Which.
        wording: Wording,
    },
    /// Stores what a version must answer.
    StoreProbes {
        /// What.
        recorded: Recorded,
    },
    /// Removes what a version must answer, which no model has any more.
    DeleteProbes {
        /// Where that stands.
        document: Document,
    },
    /// The object stays until it is free.
    AddFinalizer,
    /// It may go.
    RemoveFinalizer,
    /// The object itself is deleted: a trained version beyond those that are kept.
    DeleteModel,
}

impl Effect for Action {
    fn backend(&self) -> &'static str {
        match self {
            Self::Engine { backend, .. } => backend,
            _ => "objects",
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Engine { action, .. } => action.name(),
            Self::StoreContract { .. } | Self::StoreProbes { .. } => "StoreRevision",
            Self::DeleteProbes { .. } => "DeleteRevision",
            Self::AddFinalizer => "AddFinalizer",
            Self::RemoveFinalizer => "RemoveFinalizer",
            Self::DeleteModel => "DeleteModel",
        }
    }

    fn destroys(&self) -> Destroys {
        match self {
            Self::Engine { action, .. } if action.destroys() => Destroys::Something,
            Self::DeleteProbes { .. } | Self::RemoveFinalizer | Self::DeleteModel => {
                Destroys::Something
            }
            _ => Destroys::Nothing,
        }
    }

    fn target(&self) -> String {
        match self {
            Self::Engine { action, .. } => action.target(),
            Self::StoreContract { wording } => format!("contract {}", wording.digest),
            Self::StoreProbes { recorded } => format!("probes of {}", recorded.checkpoint),
            Self::DeleteProbes { document } => format!("ControllerRevision {}", document.name),
            Self::AddFinalizer | Self::RemoveFinalizer => format!("finalizer {MODEL_IN_USE}"),
            Self::DeleteModel => "the object".to_owned(),
        }
    }

    fn deadline(&self) -> Duration {
        match self {
            Self::Engine { .. } => ENGINE_DEADLINE,
            _ => ACTION_DEADLINE,
        }
    }
}

/// One pass, as far as it has come.
pub(super) struct Pass<'a> {
    pub(super) model: &'a LayaModel,
    pub(super) checked: &'a Checked,
    pub(super) wanted: &'a Wanted,
    pub(super) seen: &'a Observed,
    pub(super) observation: &'a Observation,
    pub(super) now: &'a Now,
    /// The facts as they are to be.
    pub(super) facts: LayaModelStatus,
    pub(super) actions: Vec<Action>,
    pub(super) events: Vec<EventDraft>,
}

impl<'a> Pass<'a> {
    pub(super) fn act(&mut self, action: backend::Action) {
        self.actions.push(Action::Engine {
            backend: self.checked.engine.name,
            action: Box::new(action),
        });
    }

    pub(super) fn tell(&mut self, reason: api::event::EventReason, note: impl Into<String>) {
        self.events.push(EventDraft {
            reason,
            note: note.into(),
        });
    }

    /// The volume that the files lie in.
    pub(super) fn volume(&self) -> Option<&'a VolumeSeen> {
        self.seen.volume(self.wanted.role())
    }

    /// Tasks of a word, the newest last.
    pub(super) fn tasks(&self, word: Task) -> Vec<&'a TaskSeen> {
        let mut tasks: Vec<_> = self
            .seen
            .tasks
            .iter()
            .filter(|task| task.key.task == word)
            .collect();
        tasks.sort_by_key(|task| task.key.attempt);
        tasks
    }

    /// The value of annotation `relay.dev/verify`.
    pub(super) fn nonce(&self) -> Option<&'a str> {
        annotation(self.model, label::VERIFY)
    }

    /// Whether a verification is asked for that is not done.
    pub(super) fn asks_to_verify(&self) -> bool {
        let nonce = self.nonce();
        nonce.is_some() && nonce != self.facts.verify_nonce.as_deref()
    }

    /// What was asked is done.
    pub(super) fn verification_done(&mut self) {
        if let Some(nonce) = self.nonce() {
            self.facts.verify_nonce = Some(nonce.chars().take(256).collect());
        }
    }

    /// Tells a task to end, or removes one that ended. One that ends already was told: an action more would be followed by
    /// the next pass at once, for as long as it takes.
    pub(super) fn end(&mut self, task: &TaskSeen) {
        if task.state == RunState::Stopping {
            return;
        }
        let key = task.key.clone();
        self.act(match task.state {
            RunState::Exited | RunState::Created => backend::Action::DeleteTask { task: key },
            _ => backend::Action::StopTask {
                task: key,
                grace_seconds: GRACE_SECONDS,
            },
        });
    }
}

pub(super) fn annotation<'a>(model: &'a LayaModel, key: &str) -> Option<&'a str> {
    model
        .metadata
        .annotations
        .as_ref()?
        .get(key)
        .map(String::as_str)
}

/// Whether our finalizer is on it.
pub(super) fn is_held(model: &LayaModel) -> bool {
    let held = model.metadata.finalizers.as_ref();
    held.is_some_and(|finalizers| finalizers.iter().any(|name| name == MODEL_IN_USE))
}

/// Whether people ask us to let it go.
fn is_released(model: &LayaModel) -> bool {
    annotation(model, label::RELEASE) == Some("true")
}

pub(super) fn plan(
    model: &LayaModel,
    checked: &Checked,
    seen: &Seen<Observation>,
    now: &Now,
) -> Plan<LayaModels> {
    let goes = model.metadata.deletion_timestamp.is_some();
    let wish = if is_released(model) {
        Hold::Release
    } else if goes {
        Hold::AsItIs
    } else {
        Hold::Keep
    };
    let engine = &seen.get().engine;
    let ended = match (engine, &checked.wanted) {
        (Ok(observed), Ok(wanted)) if observed.complete => {
            let pass = Pass {
                model,
                checked,
                wanted,
                seen: observed,
                observation: seen.get(),
                now,
                facts: status::facts(model),
                actions: Vec::new(),
                events: Vec::new(),
            };
            if goes {
                deleting::plan(pass, wish == Hold::Release)
            } else {
                living(pass)
            }
        }
        (Ok(observed), Err(problem)) if observed.complete && !goes => {
            let stand = stands::invalid(problem);
            Ended::says(
                model,
                checked,
                status::facts(model),
                stand,
                now,
                Requeue::Stalled,
            )
        }
        _ if goes => deleting::blind(model, checked, engine, now, wish == Hold::Release),
        _ => Ended {
            status: status::unreachable(model, checked, engine, now),
            actions: Vec::new(),
            events: Vec::new(),
            requeue: Requeue::Waiting,
            release: false,
        },
    };
    let differs = model.status.as_ref() != Some(&ended.status);
    let release = ended.release || wish == Hold::Release;
    let mut actions = ended.actions;
    // A change of the metadata would make the status write of the same pass a conflict.
    if release && is_held(model) {
        actions = if differs {
            Vec::new()
        } else {
            vec![last(goes, seen.get())]
        };
    } else if wish == Hold::Keep && !is_held(model) {
        actions = if differs {
            Vec::new()
        } else {
            vec![Action::AddFinalizer]
        };
    }
    Plan {
        actions,
        status: seen.status(ended.status),
        events: ended.events,
        requeue: ended.requeue,
    }
}

/// The last thing that is done about a model: once its probes are gone it may go too.
fn last(goes: bool, observation: &Observation) -> Action {
    match &observation.last_probes {
        Some(document) if goes => Action::DeleteProbes {
            document: document.clone(),
        },
        _ => Action::RemoveFinalizer,
    }
}

/// What becomes of our finalizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    Keep,
    AsItIs,
    Release,
}

/// How a pass ends.
pub(super) struct Ended {
    pub(super) status: LayaModelStatus,
    pub(super) actions: Vec<Action>,
    pub(super) events: Vec<EventDraft>,
    pub(super) requeue: Requeue,
    /// Nothing holds the object any more.
    pub(super) release: bool,
}

impl Ended {
    fn says(
        model: &LayaModel,
        checked: &Checked,
        facts: LayaModelStatus,
        stand: Stand,
        now: &Now,
        requeue: Requeue,
    ) -> Self {
        Self {
            status: status::settle(model, checked, facts, stand, now),
            actions: Vec::new(),
            events: Vec::new(),
            requeue,
            release: false,
        }
    }
}

impl Pass<'_> {
    pub(super) fn end_with(self, stand: Stand, requeue: Requeue) -> Ended {
        Ended {
            actions: self.actions,
            events: self.events,
            ..Ended::says(
                self.model,
                self.checked,
                self.facts,
                stand,
                self.now,
                requeue,
            )
        }
    }
}

/// A model that is not being deleted: tasks first, then the volume, then what is to be done.
fn living(mut pass: Pass<'_>) -> Ended {
    // What an earlier wish left is removed first, or its end would be taken for one of the new wish.
    let begins_anew = waiting::begins_anew(&pass);
    let stale = pass.seen.tasks.iter().find(|task| {
        begins_anew || task.key.task == Task::Fetch && waiting::failed_before(&pass, task)
    });
    if let Some(task) = stale {
        pass.end(task);
        return Ended {
            status: status::facts(pass.model),
            actions: pass.actions,
            events: Vec::new(),
            requeue: Requeue::Waiting,
            release: false,
        };
    }
    if begins_anew {
        pass.facts.fetch = None;
    }
    let fetches = pass.tasks(Task::Fetch);
    let verifications = pass.tasks(Task::Verify);
    if waiting::is_lost(&pass) {
        return waiting::lost(pass);
    }
    if let Some((task, older)) = fetches.split_last() {
        if let Some(older) = older.first() {
            pass.end(older);
        }
        return running::fetch(pass, task);
    }
    if let Some((task, older)) = verifications.split_last() {
        if let Some(older) = older.first() {
            pass.end(older);
        }
        return running::verification(pass, task);
    }
    if let Some(task) = pass.tasks(Task::Prune).first() {
        // Of a deletion before this object: the same name, and a uid of its own, so it cannot be ours.
        pass.end(task);
    }
    waiting::next(pass)
}
