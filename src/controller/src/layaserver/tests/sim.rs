//! A model of an engine, its servers and the prober, that does what `plan` says and checks what `plan` must never do.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use api::kinds::laya_model::ModelLocation;
use api::kinds::laya_server::{ProbeLevel, TargetRole};
use api::kinds::{LayaServer, LayaServerStatus};
use api::reason::Reason;
use api::revisions::{RevisionReport, RevisionReports};
use backend::{
    BackendError, Capabilities, ImageSeen, ImageState, Observed, Ordinals, Room, RunState,
    ServerSeen, ServerSpec, Stranger, Waiting,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::{
    Action, Ages, Checked, GateView, ModelView, Observation, Planned, Promotion, fact_keys, plan,
};
use crate::clock::Now;
use crate::probe::{DeviceSaid, Questions, QuestionsFailed, Readiness, ReplicaProbe};
use crate::reconciler::{Destroys, Effect, Requeue};

pub(super) const MIB: u64 = 1 << 20;

/// How servers of a checkpoint behave.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Behaviour {
    /// Seconds until ready.
    pub(super) loads_in: u64,
    /// Seconds after its start at which it ends, with this code.
    pub(super) ends: Option<(u64, i32)>,
    /// Whether it ends for want of memory.
    pub(super) oom: bool,
    /// What is wrong with its answers, and whether that is sure.
    pub(super) lies: Option<(Reason, bool)>,
    pub(super) claims: &'static str,
    pub(super) p50: u32,
    pub(super) fallbacks: u64,
    pub(super) contract: Option<&'static str>,
    /// Whether `/health` names other weights.
    pub(super) other_weights: bool,
    /// It runs and does not answer any more, and so many questions in a row were not answered.
    pub(super) hangs: Option<u32>,
    /// It has found out this about itself, and is never ready.
    pub(super) refuses: Option<Reason>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            loads_in: 3,
            ends: None,
            oom: false,
            lies: None,
            claims: "cpu",
            p50: 40,
            fallbacks: 0,
            contract: None,
            other_weights: false,
            hangs: None,
            refuses: None,
        }
    }
}

/// A replica in the model.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) spec: ServerSpec,
    pub(super) state: RunState,
    pub(super) started: Duration,
    pub(super) started_wall: Timestamp,
    pub(super) restarts: u32,
    pub(super) exit_code: Option<i32>,
    pub(super) oom: bool,
    pub(super) port: u32,
    pub(super) tampered: Vec<String>,
    pub(super) waiting: Option<Waiting>,
    /// When a stop is over, and whether it is removed then.
    pub(super) leaves: Option<(Duration, bool)>,
    /// Since when this process asks it.
    pub(super) asked: Option<Duration>,
}

/// Where a pass is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kill {
    Never,
    /// Before its nth effect; actions first, then the status write.
    Before(usize),
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) object: LayaServer,
    pub(super) models: BTreeMap<String, ModelView>,
    pub(super) behaviours: BTreeMap<String, Behaviour>,
    pub(super) documents: BTreeMap<String, backend::RevisionInputs>,
    /// Revisions whose log is kept.
    pub(super) logs: BTreeSet<String>,
    /// Revisions whose document's name something else has.
    pub(super) taken: BTreeSet<String>,
    /// Whether no log can be kept: something else has the name.
    pub(super) keeps_no_log: bool,
    pub(super) images: BTreeMap<String, ImageState>,
    pub(super) servers: BTreeMap<(String, u32), Running>,
    pub(super) strangers: Vec<Stranger>,
    pub(super) engine: Result<(), BackendError>,
    pub(super) capabilities: Capabilities,
    pub(super) engine_bytes: Option<u64>,
    pub(super) gpu_bytes: Option<u64>,
    pub(super) gate: GateView,
    pub(super) promotions: Vec<Promotion>,
    pub(super) report: Result<(), String>,
    /// Generation of the traffic that the router has; the newest when not given.
    pub(super) router_has: Option<i64>,
    /// Errors in a hundred requests, and p95, by revision.
    pub(super) errors: BTreeMap<String, (u64, u32)>,
    pub(super) differ_percent: u64,
    pub(super) external: Option<ReplicaProbe>,
    /// Of this program, where `spec.external` names it.
    pub(super) own_address: Option<SocketAddr>,
    requests: BTreeMap<String, RevisionReport>,
    pub(super) boot: Duration,
    /// What the wall clock is off by, seconds.
    pub(super) jump: i64,
    began: Duration,
    first_seen: Option<BTreeMap<String, Option<Duration>>>,
    ports: u32,
    pub(super) writes: usize,
    pub(super) events: Vec<(String, String)>,
    pub(super) done: Vec<String>,
    pub(super) empty_seconds: u64,
}

pub(super) fn digest(model: &str) -> String {
    let byte = model.bytes().last().unwrap_or(b'0');
    format!("sha256:{}", format!("{byte:02x}").repeat(32))
}

impl World {
    /// With models v1 … v5, all ready and good, and a spec of v1 with quick times.
    pub(super) fn new(extra: &Value) -> Self {
        let mut object = json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
            "metadata": {
                "name": "main", "namespace": "space", "uid": "own-uid", "generation": 1, "resourceVersion": "40",
                "creationTimestamp": "2026-11-30T09:00:00Z",
            },
            "spec": {"modelRef": {"name": "v1"}},
        });
        merge(&mut object["spec"], extra);
        let models: BTreeMap<_, _> = (1..=5)
            .map(|number| {
                let name = format!("v{number}");
                let view = ModelView {
                    name: name.clone(),
                    ready: true,
                    reason: "Reconciled".to_owned(),
                    message: "is here".to_owned(),
                    digest: Some(digest(&name)),
                    contract: None,
                    size_bytes: 100 * MIB,
                    location: Some(ModelLocation {
                        volume: Some("relay-x-models".to_owned()),
                        ..ModelLocation::default()
                    }),
                    foreign_volume: false,
                    deleting: false,
                    verified_at: Some(Timestamp::from_second(1_795_000_000).unwrap()),
                };
                (name, view)
            })
            .collect();
        Self {
            object: serde_json::from_value(object).unwrap(),
            models,
            behaviours: BTreeMap::new(),
            documents: BTreeMap::new(),
            logs: BTreeSet::new(),
            taken: BTreeSet::new(),
            keeps_no_log: false,
            images: BTreeMap::new(),
            servers: BTreeMap::new(),
            strangers: Vec::new(),
            engine: Ok(()),
            capabilities: Capabilities {
                name: "fake",
                max_replicas: 16,
                gpu: true,
                split_traffic: true,
                training: false,
                images: true,
                pods: false,
            },
            engine_bytes: None,
            gpu_bytes: None,
            gate: GateView::None,
            promotions: Vec::new(),
            report: Ok(()),
            router_has: None,
            errors: BTreeMap::new(),
            differ_percent: 0,
            external: None,
            own_address: None,
            requests: BTreeMap::new(),
            boot: Duration::from_secs(1_000),
            jump: 0,
            began: Duration::from_secs(1_000),
            first_seen: None,
            ports: 40_000,
            writes: 0,
            events: Vec::new(),
            done: Vec::new(),
            empty_seconds: 0,
        }
    }

    /// Changes the spec, as a person does: null removes.
    pub(super) fn edit(&mut self, patch: &Value) {
        let mut spec = serde_json::to_value(&self.object.spec).unwrap();
        merge(&mut spec, patch);
        self.object.spec = serde_json::from_value(spec).unwrap();
        *self.object.metadata.generation.get_or_insert(0) += 1;
    }

    pub(super) fn behave(&mut self, model: &str, behaviour: Behaviour) {
        self.behaviours.insert(digest(model), behaviour);
    }

    fn behaviour(&self, server: &Running) -> Behaviour {
        let known = self.behaviours.get(&server.spec.inputs.digest);
        known.cloned().unwrap_or_default()
    }

    pub(super) fn now(&self) -> Now {
        let seconds = i64::try_from(self.boot.as_secs()).unwrap();
        Now {
            wall: Timestamp::from_second(1_796_000_000 + seconds + self.jump).unwrap(),
            boot: self.boot,
        }
    }

    pub(super) fn status(&self) -> LayaServerStatus {
        self.object.status.clone().unwrap_or_default()
    }

    pub(super) fn checked(&self) -> Checked {
        let uids = self.documents.keys();
        Checked {
            models: self.models.clone(),
            promotions: self.promotions.clone(),
            gate: self.gate.clone(),
            capabilities: self.capabilities.clone(),
            default_image: "laya:1".to_owned(),
            documents: self.documents.clone(),
            document_uids: uids.map(|it| (it.clone(), format!("uid-{it}"))).collect(),
            logs: self
                .logs
                .iter()
                .map(|it| (it.clone(), format!("uid-{it}-log")))
                .collect(),
            taken: self.taken.clone(),
            own_address: self.own_address,
        }
    }

    pub(super) fn observation(&mut self) -> Observation {
        let ages = self.ages();
        let traffic = self.status().traffic;
        let generation = traffic.and_then(|it| it.generation).unwrap_or(0);
        Observation {
            engine: self.engine.clone().map(|()| self.observed()),
            replicas: self.probes(),
            external: self.external.clone(),
            report: self.report.clone().map(|()| RevisionReports {
                instance: "one".to_owned(),
                server: "space/main".to_owned(),
                traffic_generation: self.router_has.unwrap_or(generation),
                revisions: self.requests.values().cloned().collect(),
            }),
            ages,
        }
    }

    fn ages(&mut self) -> Ages {
        let boot = self.boot;
        let before = self.first_seen.take();
        let now: BTreeMap<_, _> = fact_keys(&self.object)
            .into_iter()
            .map(|key| {
                let seen = match &before {
                    Some(before) => before.get(&key).copied().unwrap_or(Some(boot)),
                    None => None,
                };
                (key, seen)
            })
            .collect();
        let facts = now
            .iter()
            .filter_map(|(key, seen)| Some((key.clone(), boot.saturating_sub((*seen)?))));
        let ages = Ages {
            process: boot.saturating_sub(self.began),
            facts: facts.collect(),
        };
        self.first_seen = Some(now);
        ages
    }

    fn observed(&self) -> Observed {
        let up = self
            .servers
            .values()
            .filter(|it| it.state != RunState::Exited);
        let ours_bytes = up.map(|it| it.spec.memory_bytes()).sum();
        let images = self.images.iter().map(|(name, state)| ImageSeen {
            name: name.clone(),
            state: state.clone(),
        });
        Observed {
            servers: self.servers.iter().map(|(key, it)| seen(key, it)).collect(),
            images: images.collect(),
            strangers: self.strangers.clone(),
            room: self.engine_bytes.map(|engine_bytes| Room {
                engine_bytes,
                ours_bytes,
                available_bytes: None,
            }),
            gpu_memory_bytes: self.gpu_bytes,
            complete: true,
            ..Observed::default()
        }
    }

    fn probes(&self) -> Vec<ReplicaProbe> {
        let running = self
            .servers
            .iter()
            .filter(|(_, it)| it.state == RunState::Running);
        running.map(|(key, it)| self.probe(key, it)).collect()
    }

    fn probe(&self, (revision, ordinal): &(String, u32), server: &Running) -> ReplicaProbe {
        let behaviour = self.behaviour(server);
        let ran = (self.boot - server.started).as_secs();
        let asked = server
            .asked
            .map_or(0, |since| (self.boot - since).as_secs());
        let known = server.asked.is_some() && asked > 0;
        let ready_for = ran.saturating_sub(behaviour.loads_in);
        let loaded = known && ran >= behaviour.loads_in;
        let ready = loaded && behaviour.hangs.is_none() && behaviour.refuses.is_none();
        let readiness = if known && behaviour.hangs.is_some() {
            Readiness::Unreachable {
                message: "no whole answer within 1500 ms".to_owned(),
            }
        } else if ready {
            Readiness::Ready {
                since: server.started_wall,
                for_seconds: ready_for.min(asked),
            }
        } else if loaded && behaviour.refuses.is_some() {
            Readiness::NotReady {
                reason: "ProbeFailed".to_owned(),
                message: "its own probe".to_owned(),
                verdict: behaviour.refuses,
            }
        } else if known {
            Readiness::NotReady {
                reason: "Starting".to_owned(),
                message: "loads its model".to_owned(),
                verdict: None,
            }
        } else {
            Readiness::Unknown
        };
        let failed = behaviour
            .lies
            .filter(|_| ready)
            .map(|(reason, conclusive)| QuestionsFailed {
                reason,
                message: format!("said {}", reason.as_str()),
                conclusive,
            });
        let right = ready && failed.is_none();
        let silent = behaviour.hangs.filter(|_| known);
        let timed_out = silent.map(|_| QuestionsFailed {
            reason: Reason::ProbeTimedOut,
            message: "it takes no requests any more".to_owned(),
            conclusive: false,
        });
        ReplicaProbe {
            revision: revision.clone(),
            ordinal: *ordinal,
            url: url(server),
            readiness,
            plain: false,
            digest: ready.then(|| {
                if behaviour.other_weights {
                    digest("x")
                } else {
                    server.spec.inputs.digest.clone()
                }
            }),
            contract: behaviour.contract.filter(|_| ready).map(str::to_owned),
            device: DeviceSaid {
                claimed: (ready && !behaviour.claims.is_empty())
                    .then(|| behaviour.claims.to_owned()),
                fallbacks: behaviour.fallbacks,
                fallbacks_grew: behaviour.fallbacks > 0,
                last_reason: (behaviour.fallbacks > 0).then(|| "out of memory".to_owned()),
                p50_millis: ready.then_some(behaviour.p50),
            },
            questions: Questions {
                level: ready.then_some(ProbeLevel::Shape),
                passed_all: right,
                passed_at: right.then(|| self.now().wall),
                failures: if failed.is_some() {
                    u32::try_from(ready_for / 10).unwrap().min(9)
                } else {
                    silent.unwrap_or(0)
                },
                failed: failed.or(timed_out),
            },
        }
    }

    /// What a pass would do now.
    pub(super) fn plan(&mut self) -> Planned {
        for server in self.servers.values_mut() {
            if server.state == RunState::Running && self.engine.is_ok() {
                server.asked.get_or_insert(self.boot);
            }
        }
        let (checked, now) = (self.checked(), self.now());
        let observation = self.observation();
        let planned = plan(&self.object, &checked, &observation, &now);
        let again = plan(&self.object, &checked, &observation, &now);
        assert_eq!(planned, again, "plan is a function");
        self.check(&planned);
        planned
    }

    /// A pass; whether it did or wrote something.
    pub(super) fn pass(&mut self, kill: Kill) -> bool {
        let planned = self.plan();
        let killed = |at: usize| kill == Kill::Before(at);
        for (at, action) in planned.actions.iter().enumerate() {
            if killed(at) {
                self.restart_process();
                return true;
            }
            self.act(action);
        }
        if killed(planned.actions.len()) {
            self.restart_process();
            return true;
        }
        let changed = self.object.status.as_ref() != Some(&planned.status);
        if changed {
            self.writes += 1;
            self.object.status = Some(planned.status);
        }
        for event in planned.events {
            self.events
                .push((event.reason.as_str().to_owned(), event.note));
        }
        changed || !planned.actions.is_empty()
    }

    /// The controller begins anew: what it remembered is gone.
    pub(super) fn restart_process(&mut self) {
        self.began = self.boot;
        self.first_seen = None;
        for server in self.servers.values_mut() {
            server.asked = None;
        }
    }

    fn act(&mut self, action: &Action) {
        self.done
            .push(format!("{} {}", action.name(), action.target()));
        match action {
            Action::StoreRevision { revision, inputs } => {
                assert_eq!(&inputs.revision(), revision);
                self.documents.insert(revision.clone(), (**inputs).clone());
            }
            Action::StoreLog {
                revision, ordinal, ..
            } => {
                let key = (revision.clone(), *ordinal);
                assert!(self.servers.contains_key(&key), "it has a log");
                if !self.keeps_no_log {
                    assert!(self.logs.insert(revision.clone()), "stored once");
                }
            }
            Action::DeleteRevision { name, uid } => {
                let revision = name.trim_start_matches("ls-main-");
                let removed = match revision.strip_suffix("-log") {
                    Some(revision) => self.logs.remove(revision),
                    None => self.documents.remove(revision).is_some(),
                };
                assert!(removed && *uid == format!("uid-{revision}"), "{name} {uid}");
            }
            Action::Backend { action, .. } => self.act_on_engine(action),
        }
    }

    fn act_on_engine(&mut self, action: &backend::Action) {
        match action {
            backend::Action::EnsureImage { image, .. } => {
                let id = format!("sha256:id-of-{image}");
                let here = ImageState::Present { id: id.clone() };
                self.images.insert(image.clone(), here.clone());
                self.images.insert(id, here);
            }
            backend::Action::EnsureServer { server, ordinals } => {
                for ordinal in ordinals {
                    self.start(server, *ordinal, false);
                }
            }
            backend::Action::RecreateServer { server, ordinal } => {
                self.start(server, *ordinal, true)
            }
            backend::Action::StopServer {
                revision, ordinals, ..
            } => self.leave(revision, ordinals, false),
            backend::Action::DeleteServer {
                revision, ordinals, ..
            } => self.leave(revision, ordinals, true),
            backend::Action::PointService { .. } | backend::Action::Drain { .. } => {}
            other => panic!("a server's plan never does {other:?}"),
        }
    }

    fn start(&mut self, spec: &ServerSpec, ordinal: u32, anew: bool) {
        let key = (spec.revision.clone(), ordinal);
        let stands = self
            .servers
            .get(&key)
            .is_some_and(|it| it.state == RunState::Running);
        if stands && !anew {
            return;
        }
        self.ports += 1;
        let running = Running {
            spec: spec.clone(),
            state: RunState::Running,
            started: self.boot,
            started_wall: self.now().wall,
            restarts: 0,
            exit_code: None,
            oom: false,
            port: self.ports,
            tampered: Vec::new(),
            waiting: None,
            leaves: None,
            asked: None,
        };
        self.servers.insert(key, running);
    }

    fn leave(&mut self, revision: &str, ordinals: &Ordinals, removed: bool) {
        let until = self.boot + Duration::from_secs(2);
        for ((of, ordinal), server) in &mut self.servers {
            let meant = match ordinals {
                Ordinals::All => true,
                Ordinals::Only(some) => some.contains(ordinal),
            };
            if of == revision && meant {
                server.state = RunState::Stopping;
                server.leaves = Some((until, removed));
            }
        }
    }

    /// Time goes by.
    pub(super) fn tick(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.boot += Duration::from_secs(1);
            self.second();
        }
    }

    fn second(&mut self) {
        let (boot, wall) = (self.boot, self.now().wall);
        self.servers
            .retain(|_, it| it.leaves.is_none_or(|(at, removed)| at > boot || !removed));
        let keys: Vec<_> = self.servers.keys().cloned().collect();
        for key in keys {
            let behaviour = self.behaviour(&self.servers[&key]);
            self.ports += 1;
            let port = self.ports;
            let server = self.servers.get_mut(&key).unwrap();
            if server.leaves.is_some_and(|(at, _)| at <= boot) {
                server.state = RunState::Exited;
                server.exit_code = Some(0);
                server.leaves = None;
            }
            let ran = (boot - server.started).as_secs();
            match (server.state, behaviour.ends) {
                (RunState::Running, Some((after, code))) if ran >= after => {
                    server.state = RunState::Restarting;
                    server.exit_code = Some(code);
                    server.oom = behaviour.oom;
                    server.asked = None;
                }
                (RunState::Restarting, _) => {
                    server.state = RunState::Running;
                    server.restarts += 1;
                    server.started = boot;
                    server.started_wall = wall;
                    server.port = port;
                }
                _ => {}
            }
        }
        self.count_requests();
    }

    /// Ten requests a second.
    fn count_requests(&mut self) {
        let Some(traffic) = self.status().traffic else {
            return;
        };
        if traffic.targets.is_empty() {
            self.empty_seconds += 1;
        }
        for target in &traffic.targets {
            let revision = target.revision.clone().unwrap_or_default();
            let weight = u64::try_from(target.weight.unwrap_or(0)).unwrap();
            let (errors, p95) = self.errors.get(&revision).copied().unwrap_or((0, 50));
            let differ = self.differ_percent;
            let report = self.requests.entry(revision.clone()).or_default();
            report.revision = revision;
            report.p95_millis = Some(p95);
            if target.role == Some(TargetRole::Shadow) {
                report.comparisons += 1;
                report.disagreements = report.comparisons * differ / 100;
            } else {
                report.requests += weight.div_ceil(10);
                report.errors = report.requests * errors / 100;
            }
        }
    }

    /// Passes and time, until nothing has changed for `quiet` seconds. Fails when it does not come to rest.
    pub(super) fn settle(&mut self, quiet: u64) {
        let mut still = 0;
        for _ in 0..20_000 {
            if self.pass(Kill::Never) {
                still = 0;
            } else {
                self.tick(5);
                still += 5;
            }
            if still >= quiet {
                return;
            }
        }
        panic!("it does not come to rest: {:#?}", self.status());
    }

    /// Passes and time, until something holds.
    pub(super) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..4_000 {
            if holds(self) {
                return;
            }
            if !self.pass(Kill::Never) {
                self.tick(1);
            }
        }
        panic!("{what} does not come: {:#?}", self.status());
    }

    pub(super) fn until_state(&mut self, state: &str) {
        self.until(state, |world| world.state() == state);
    }

    /// A first version serves, and nothing is left to do.
    pub(super) fn serving(extra: &Value) -> Self {
        let mut world = Self::new(extra);
        world.settle(60);
        assert_eq!(world.champion(), "v1", "{:#?}", world.status());
        world.done.clear();
        world.events.clear();
        world
    }

    pub(super) fn state(&self) -> String {
        let rollout = self.status().rollout.and_then(|it| it.state);
        rollout.map_or_else(String::new, |state| state.as_str().to_owned())
    }

    pub(super) fn champion(&self) -> String {
        self.status()
            .champion
            .and_then(|it| it.model)
            .unwrap_or_default()
    }

    pub(super) fn candidate(&self) -> Option<String> {
        self.status().candidate.and_then(|it| it.revision)
    }

    /// Model and weight of each target, Shadow with an s.
    pub(super) fn traffic(&self) -> String {
        let status = self.status();
        let traffic = status.traffic.clone().unwrap_or_default();
        if traffic.targets.is_empty() {
            return traffic.reason.unwrap_or_default();
        }
        let told = traffic.targets.iter().map(|target| {
            let name = (1..=5)
                .map(|number| format!("v{number}"))
                .find(|name| target.digest.as_ref() == Some(&digest(name)));
            let shadow = if target.role == Some(TargetRole::Shadow) {
                "s"
            } else {
                ""
            };
            format!(
                "{}:{}{shadow}",
                name.unwrap_or_default(),
                target.weight.unwrap_or(0)
            )
        });
        told.collect::<Vec<_>>().join(" ")
    }

    /// `Ready=False/Waiting` and so on.
    pub(super) fn told(&self) -> BTreeSet<String> {
        let conditions = self.status().conditions;
        let told = conditions
            .iter()
            .map(|it| format!("{}={}/{}", it.type_, it.status.as_str(), it.reason));
        told.collect()
    }

    pub(super) fn says(&self, what: &str) -> bool {
        self.told().contains(what)
    }

    pub(super) fn message(&self, kind: &str) -> String {
        let conditions = self.status().conditions;
        let found = conditions.iter().find(|it| it.type_ == kind);
        found.map(|it| it.message.clone()).unwrap_or_default()
    }

    pub(super) fn event_names(&self) -> Vec<&str> {
        self.events.iter().map(|(name, _)| name.as_str()).collect()
    }

    pub(super) fn outcome(&self) -> String {
        let history = self.status().history;
        history
            .first()
            .and_then(|it| it.outcome.clone())
            .unwrap_or_default()
    }

    pub(super) fn of(&mut self, model: &str) -> Vec<&mut Running> {
        let digest = digest(model);
        let servers = self.servers.values_mut();
        servers
            .filter(|it| it.spec.inputs.digest == digest)
            .collect()
    }

    /// A person removes a replica.
    pub(super) fn remove_one(&mut self, model: &str) {
        let digest = digest(model);
        let mut servers = self.servers.iter();
        let of = servers.find(|(_, it)| it.spec.inputs.digest == digest);
        let key = of.expect("a replica").0.clone();
        self.servers.remove(&key);
    }

    pub(super) fn up(&self, model: &str) -> usize {
        let digest = digest(model);
        let servers = self.servers.values();
        servers
            .filter(|it| it.spec.inputs.digest == digest && it.state == RunState::Running)
            .count()
    }

    /// What must hold of every plan.
    fn check(&self, planned: &Planned) {
        let old = self.status();
        let destroys = planned
            .actions
            .iter()
            .filter(|it| it.destroys() == Destroys::Something);
        assert!(destroys.count() <= 1, "{:?}", planned.actions);
        let traffic = planned.status.traffic.clone().unwrap_or_default();
        if planned.status.traffic != old.traffic {
            assert!(
                planned.actions.is_empty(),
                "traffic and {:?}",
                planned.actions
            );
            let before = old
                .traffic
                .as_ref()
                .and_then(|it| it.generation)
                .unwrap_or(0);
            assert_eq!(traffic.generation, Some(before + 1));
        }
        let sum: i32 = traffic.targets.iter().filter_map(|it| it.weight).sum();
        assert!(
            sum == 100
                || (traffic.targets.is_empty()
                    && (traffic.reason.is_some() || self.engine.is_err())),
            "{traffic:?}"
        );
        assert!(sum == 0 || traffic.reason.is_none(), "{traffic:?}");
        assert!(old.champion.is_none() || planned.status.champion.is_some());
        let status = &planned.status;
        assert!(
            traffic.targets.len() <= 3 && status.history.len() <= 10 && status.rejected.len() <= 10
        );
        assert!(status.conditions.len() <= 16);
        for condition in &status.conditions {
            assert!(!condition.message.is_empty() && condition.message.chars().count() <= 1024);
        }
        for (at, action) in planned.actions.iter().enumerate() {
            self.check_action(action, &old);
            let earlier = planned.actions.get(..at).unwrap_or_default();
            self.check_log(action, earlier, status);
        }
        if let Requeue::After(delay) = planned.requeue {
            assert!(delay >= Duration::from_secs(1), "it would spin");
        }
    }

    /// What was taken back is not deleted before its log is kept, or that was tried.
    fn check_log(&self, action: &Action, earlier: &[Action], status: &LayaServerStatus) {
        let Some(backend::Action::DeleteServer {
            revision,
            ordinals: Ordinals::All,
            ..
        }) = action.backend_action()
        else {
            return;
        };
        let mut rejected = status.rejected.iter();
        let rejected = rejected.any(|it| it.revision.as_ref() == Some(revision));
        let stores =
            |it: &Action| matches!(it, Action::StoreLog { revision: of, .. } if of == revision);
        let kept = self.logs.contains(revision) || earlier.iter().any(stores);
        assert!(!rejected || kept, "the log of {revision} is kept first");
    }

    fn check_action(&self, action: &Action, old: &LayaServerStatus) {
        let versions = [&old.champion, &old.candidate, &old.previous];
        let named = |revision: &str| {
            let mut all = versions
                .iter()
                .filter_map(|it| it.as_ref()?.revision.as_deref());
            all.any(|it| it == revision)
        };
        match action.backend_action() {
            Some(backend::Action::DeleteServer {
                revision,
                ordinals: Ordinals::All,
                ..
            }) => assert!(!named(revision), "{revision} is needed"),
            Some(
                backend::Action::EnsureServer { server, .. }
                | backend::Action::RecreateServer { server, .. },
            ) => {
                let stored = self.documents.get(&server.revision);
                let of = self.servers.iter().filter(|it| it.0.0 == server.revision);
                let labelled = of.map(|(_, it)| &it.spec.inputs).next();
                assert_eq!(
                    stored.or(labelled),
                    Some(&server.inputs),
                    "stored first, and rendered from that"
                );
                assert!(named(&server.revision), "named first");
            }
            _ => {}
        }
    }
}

fn url(server: &Running) -> String {
    format!("http://127.0.0.1:{}", server.port)
}

fn seen((revision, ordinal): &(String, u32), server: &Running) -> ServerSeen {
    let runs = server.state == RunState::Running;
    ServerSeen {
        revision: revision.clone(),
        ordinal: *ordinal,
        state: server.state,
        started_at: Some(server.started_wall),
        restarts: server.restarts,
        exit_code: server.exit_code,
        oom_killed: server.oom,
        image_id: server.spec.image_id.clone(),
        url: runs.then(|| url(server)),
        spec_hash: None,
        hash_matches: Some(true),
        tampered: server.tampered.clone(),
        waiting: server.waiting.clone(),
        memory_bytes: server.spec.memory_bytes(),
        model: Some(server.spec.model.clone()),
        inputs: Some(server.spec.inputs.clone()),
        checkpoint: Some(server.spec.checkpoint()),
        log_tail: if runs {
            String::new()
        } else {
            "the end of its log".to_owned()
        },
    }
}

/// A JSON merge patch.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}
