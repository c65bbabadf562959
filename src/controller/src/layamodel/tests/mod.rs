//! A model on an engine in memory, pass by pass: the plan is pure, so a whole life takes no time.

mod random;
mod reasons;
mod states;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::kinds::laya_model::{ModelPhase, ModelRole, ModelUse};
use api::kinds::{Condition, ConditionStatus, LayaModel, LayaModelStatus};
use api::label::Task;
use backend::{Action as EngineAction, Backend, Observed as Engine, Question, TaskSpec};
use futures_util::FutureExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use testkit::backend::FakeBackend;

use super::plan::Observation;
use super::*;
use crate::conditions::find;
use crate::reconciler::{Destroys, Effect, Plan, Reconciler, Requeue, Seen};

const START: &str = "2026-11-30T10:00:00Z";

/// 64 hex digits.
fn sha(number: u8) -> String {
    format!("{number:02x}").repeat(32)
}

fn http() -> Value {
    json!({"source": {"http": {"baseUrl": "https://example.org/v1/", "files": [
        {"path": "model.safetensors", "size": 700, "sha256": sha(1)},
        {"path": "encoder/config.json", "size": 40, "sha256": sha(2)},
    ]}}})
}

fn oci() -> Value {
    json!({"source": {"oci": {"reference": format!("registry.example/laya@sha256:{}", sha(7))}}})
}

fn volume() -> Value {
    json!({
        "source": {"volume": {"name": "shared", "path": "laya/v1"}}, "manifestDigest": format!("sha256:{}", sha(9)),
    })
}

fn model(spec: &Value) -> LayaModel {
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel",
        "metadata": {
            "name": "v1", "namespace": "space", "uid": "uid-1", "generation": 1, "resourceVersion": "1",
            "creationTimestamp": START,
        },
        "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// Where a pass is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kill {
    Never,
    /// Before its nth effect; the status write is the last.
    Before(usize),
}

/// A model and the world around it.
struct Life {
    model: LayaModel,
    engine: Arc<FakeBackend>,
    now: Timestamp,
    uses: Vec<ModelUse>,
    damaged_at: Option<Timestamp>,
    shared: bool,
    leaving_twin: bool,
    documents: BTreeSet<String>,
    last_probes: Option<Document>,
    unbound_long: bool,
    surplus: bool,
    fetch_age: Option<Duration>,
    /// Reasons of events, in order.
    told: Vec<&'static str>,
    /// Names of effects, in order.
    done: Vec<&'static str>,
    /// Every reason that stood on a condition, with its type.
    said: BTreeSet<(String, String)>,
    gone: bool,
}

impl Life {
    fn new(spec: &Value) -> Self {
        Self::on(FakeBackend::docker(), spec)
    }

    fn on(engine: Arc<FakeBackend>, spec: &Value) -> Self {
        let mut life = Self {
            model: model(spec),
            engine,
            now: START.parse().unwrap(),
            uses: Vec::new(),
            damaged_at: None,
            shared: false,
            leaving_twin: false,
            documents: BTreeSet::new(),
            last_probes: None,
            unbound_long: false,
            surplus: false,
            fetch_age: None,
            told: Vec::new(),
            done: Vec::new(),
            said: BTreeSet::new(),
            gone: false,
        };
        life.tick(0);
        life
    }

    /// Time goes by.
    fn tick(&mut self, seconds: i64) {
        self.now = self
            .now
            .checked_add(SignedDuration::from_secs(seconds))
            .unwrap();
        let now = self.now;
        self.engine.time(move || now);
    }

    fn clock(&self) -> Now {
        Now {
            wall: self.now,
            boot: Duration::from_secs(1_000_000),
        }
    }

    fn checked(&self) -> Checked {
        let capabilities = self.engine.capabilities().clone();
        Checked {
            wanted: wanted(&self.model.spec, &capabilities).map(Arc::new),
            uses: self.uses.clone(),
            damaged_at: self.damaged_at,
            shared: self.shared,
            leaving_twin: self.leaving_twin,
            last_of: None,
            prunable: Vec::new(),
            surplus: self.surplus,
            engine: capabilities,
            image: "laya@sha256:1".to_owned(),
            fetch_age: self.fetch_age,
            progress_due: true,
        }
    }

    fn look(&self, checked: &Checked) -> Observation {
        let Ok(wanted) = &checked.wanted else {
            return Observation {
                engine: Ok(Engine {
                    complete: true,
                    ..Engine::default()
                }),
                documents: Vec::new(),
                last_probes: self.last_probes.clone(),
                unbound_long: false,
            };
        };
        let question = Question {
            images: vec![checked.image.clone()],
            volumes: vec![wanted.role().clone()],
        };
        let owner = owner(&self.model);
        let engine = self.engine.observe(&owner, &question).now_or_never();
        Observation {
            engine: engine.unwrap_or_else(|| {
                Err(backend::BackendError::TimedOut {
                    what: "observe".to_owned(),
                    after: Duration::from_secs(5),
                })
            }),
            documents: self.documents.iter().cloned().collect(),
            last_probes: self.last_probes.clone(),
            unbound_long: self.unbound_long,
        }
    }

    fn plan(&self) -> Plan<LayaModels> {
        let checked = self.checked();
        let seen = Seen::of(self.look(&checked));
        LayaModels::plan(&self.model, &checked, &seen, &self.clock())
    }

    /// One pass as the driver makes it; whether it changed anything, and when the next one is due.
    fn pass(&mut self, kill: Kill) -> (bool, Requeue) {
        if self.gone {
            return (false, Requeue::Never);
        }
        let plan = self.plan();
        self.is_sound(&plan);
        let mut effects = 0;
        let mut destroyed = false;
        for action in &plan.actions {
            if kill == Kill::Before(effects) {
                return (true, Requeue::Waiting);
            }
            let destroys = action.destroys() == Destroys::Something;
            if destroys && std::mem::replace(&mut destroyed, true) {
                continue;
            }
            destroyed |= destroys;
            effects += 1;
            if !self.act(action) {
                return (true, Requeue::Waiting);
            }
        }
        if kill == Kill::Before(effects) || self.gone {
            return (true, Requeue::Waiting);
        }
        let status = plan.status.get().clone();
        let wrote = self.model.status.as_ref() != Some(&status);
        for condition in &status.conditions {
            self.said
                .insert((condition.type_.clone(), condition.reason.clone()));
        }
        self.model.status = Some(status);
        self.told
            .extend(plan.events.iter().map(|event| event.reason.as_str()));
        (wrote || effects > 0, plan.requeue)
    }

    /// Whether it was done.
    fn act(&mut self, action: &Action) -> bool {
        self.done.push(action.name());
        match action {
            Action::Engine { action, .. } => {
                let owner = owner(&self.model);
                return matches!(
                    self.engine.apply(&owner, action).now_or_never(),
                    Some(Ok(()))
                );
            }
            Action::StoreContract { wording } => {
                self.documents.insert(wording.document_name());
            }
            Action::StoreProbes { recorded } => {
                self.documents.insert(recorded.document_name());
            }
            Action::DeleteProbes { document } => {
                assert_eq!(self.last_probes.take().as_ref(), Some(document));
            }
            Action::AddFinalizer => {
                self.model.metadata.finalizers = Some(vec![MODEL_IN_USE.to_owned()]);
            }
            Action::RemoveFinalizer => {
                self.model.metadata.finalizers = None;
                self.gone = self.model.metadata.deletion_timestamp.is_some();
            }
            Action::DeleteModel => self.delete(),
        }
        true
    }

    /// What must hold of every plan.
    fn is_sound(&self, plan: &Plan<LayaModels>) {
        let status = plan.status.get();
        let ready = find(&status.conditions, api::condition::ConditionType::Ready)
            .expect("Ready is stated");
        let unchanged = self.model.status.as_ref() == Some(status);
        assert!(unchanged || ready.observed_generation == self.model.metadata.generation);
        for condition in &status.conditions {
            let kind = api::condition::ConditionType::by_word(&condition.type_).unwrap();
            let reason = api::reason::Reason::by_word(&condition.reason).unwrap();
            assert!(reason.may_stand_on(kind), "{reason} on {kind}");
        }
        let stalled = self.condition_of(status, "Stalled").is_some();
        let working = self.condition_of(status, "Reconciling").is_some();
        assert!(!(stalled && working), "{status:#?}");
        if !self.uses.is_empty() {
            for action in &plan.actions {
                let takes = matches!(action, Action::Engine { action, .. } if match action.as_ref() {
                    EngineAction::DeleteVolume { .. } => true,
                    EngineAction::RunTask(spec) => spec.key.task == Task::Prune,
                    _ => false,
                });
                assert!(!takes, "what a server has is removed: {action:?}");
            }
        }
    }

    /// Passes until nothing more is to be done at this time.
    fn settle(&mut self) -> Requeue {
        for _ in 0..50 {
            let (changed, requeue) = self.pass(Kill::Never);
            if !changed {
                return requeue;
            }
        }
        panic!("it does not settle: {:#?}", self.model.status);
    }

    /// Lets time go by until the next pass is due, and settles.
    fn go_on(&mut self) -> Requeue {
        let requeue = self.settle();
        let wait = requeue.delay(1.0).unwrap_or_default();
        self.tick(i64::try_from(wait.as_secs()).unwrap() + 1);
        self.settle()
    }

    fn delete(&mut self) {
        self.model.metadata.deletion_timestamp = Some(Time(self.now));
        // Nothing holds it: the API removes it at once.
        self.gone = self.model.metadata.finalizers.is_none();
    }

    fn annotate(&mut self, key: &str, value: &str) {
        let annotations = self.model.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value.to_owned());
    }

    fn edit(&mut self, change: impl FnOnce(&mut api::kinds::LayaModelSpec)) {
        change(&mut self.model.spec);
        let generation = self.model.metadata.generation.unwrap_or(0);
        self.model.metadata.generation = Some(generation + 1);
    }

    fn used_by(&mut self, server: Option<&str>) {
        self.uses = server
            .map(|server| ModelUse {
                server: Some(server.to_owned()),
                role: Some(ModelRole::Champion),
            })
            .into_iter()
            .collect();
    }

    fn status(&self) -> &LayaModelStatus {
        self.model.status.as_ref().expect("it has a status")
    }

    fn phase(&self) -> ModelPhase {
        self.status().phase.expect("it has a phase")
    }

    fn condition_of<'a>(&self, status: &'a LayaModelStatus, kind: &str) -> Option<&'a Condition> {
        status
            .conditions
            .iter()
            .find(|condition| condition.type_ == kind)
    }

    /// Status and reason of a condition.
    fn says(&self, kind: &str) -> Option<(ConditionStatus, &str)> {
        let condition = self.condition_of(self.status(), kind)?;
        Some((condition.status, &condition.reason))
    }

    fn message(&self, kind: &str) -> &str {
        let found = self.condition_of(self.status(), kind);
        found.map_or("", |condition| &condition.message)
    }

    /// Tasks that were asked for, in order.
    fn tasks(&self) -> Vec<TaskSpec> {
        let applied = self.engine.applied();
        let tasks = applied.into_iter().filter_map(|(_, action)| match action {
            EngineAction::RunTask(spec) => Some(*spec),
            _ => None,
        });
        tasks.collect()
    }

    fn is_published(&self) -> bool {
        self.says("Ready") == Some((ConditionStatus::True, "Reconciled"))
    }
}
