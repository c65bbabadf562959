//! Asks the replicas that passes want to know about: one task for all servers of a process, which starts what is due and
//! keeps what came. What is due and what an answer means is decided in `replica`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::{HeaderName, HeaderValue, Method};
use prometheus::IntCounterVec;
use tokio::sync::Notify;

use super::call::{Call, CallError, Said, ask};
use super::judge::{Judged, judge};
use super::questions::built_in;
use super::replica::{Ask, Lane, ReplicaState};
use super::seen::{Readiness, ReplicaProbe};
use super::watched::Replica;
use crate::clock::Clock;
use crate::queue::Key;

/// For `/ready` and `/health` (control-plane 7.2).
const LOOK_WITHIN: Duration = Duration::from_millis(1_500);
/// Most bytes of an answer that are read.
const MAX_BYTES: usize = 1 << 20;
/// Looks at once.
const MAX_LOOKS: usize = 32;
/// Questions at once, over all servers: models work for them.
const MAX_QUESTIONS: usize = 8;
/// Longest sleep of the task while nothing is due.
const IDLE: Duration = Duration::from_secs(60);

/// Whose replicas they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId {
    /// Which LayaServer.
    pub key: Key,
    /// Its uid: the same name created again is another one.
    pub uid: String,
}

/// `relay_probe_total`: probe questions by how they ended.
#[derive(Debug, Clone)]
pub struct ProbeCounts(pub IntCounterVec);

impl ProbeCounts {
    /// Words of the label `result`.
    pub const RESULTS: [&'static str; 3] = ["passed", "failed", "busy"];

    fn count(&self, judged: &Judged) {
        let result = match judged {
            Judged::Right(_) => "passed",
            Judged::Wrong(_) => "failed",
            Judged::Busy => "busy",
        };
        self.0.with_label_values(&[result]).inc();
    }
}

type Wake = dyn Fn(&Key) + Send + Sync;

/// Asks replicas and keeps what they say. Cheap to clone.
#[derive(Clone)]
pub struct Prober {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    counts: ProbeCounts,
    wake: Box<Wake>,
    servers: Mutex<BTreeMap<ServerId, Vec<ReplicaState>>>,
    /// The set of replicas changed.
    changed: Notify,
}

impl std::fmt::Debug for Prober {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prober").finish_non_exhaustive()
    }
}

/// A call that is due.
struct Job {
    server: ServerId,
    replica: Replica,
    ask: Ask,
    /// Whether the server says which contract it has. One that names none refuses a question that names one, though it may
    /// answer it well (`ContractUnverified`).
    names_contract: bool,
}

/// What came of it.
struct Came {
    job: Job,
    said: Result<Said, CallError>,
    took: Duration,
}

impl Prober {
    /// Asks nobody yet. `wake` is called with a server whenever something that a pass decides by has changed; it must not
    /// wait.
    pub fn new(
        clock: Arc<dyn Clock>,
        counts: ProbeCounts,
        wake: impl Fn(&Key) + Send + Sync + 'static,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                counts,
                wake: Box::new(wake),
                servers: Mutex::default(),
                changed: Notify::new(),
            }),
        }
    }

    /// These replicas of a server are asked from now on, and no others. What is known of one that is asked already stays.
    pub fn watch(&self, server: &ServerId, replicas: Vec<Replica>) {
        let now = self.shared.clock.now().boot;
        let mut servers = self.shared.lock();
        let mut known = servers.remove(server).unwrap_or_default();
        let mut watched: Vec<ReplicaState> = Vec::with_capacity(replicas.len());
        for replica in replicas {
            let at = known
                .iter()
                .position(|state| state.replica.is_same(&replica));
            watched.push(match at {
                Some(at) => {
                    let mut state = known.swap_remove(at);
                    state.rewatch(replica, now);
                    state
                }
                None => ReplicaState::new(replica, now),
            });
        }
        give_turns(&mut watched);
        if !watched.is_empty() {
            servers.insert(server.clone(), watched);
        }
        drop(servers);
        self.shared.changed.notify_one();
    }

    /// What is known of the replicas of a server, without waiting.
    #[must_use]
    pub fn seen(&self, server: &ServerId) -> Vec<ReplicaProbe> {
        let now = self.shared.clock.now().boot;
        let mut servers = self.shared.lock();
        let states = servers.get_mut(server).map(Vec::as_mut_slice);
        let states = states.unwrap_or_default().iter_mut();
        states.map(|state| state.told(now)).collect()
    }

    /// Time of the last right answer of a replica of a revision; the slowest of them.
    #[must_use]
    pub fn latency(&self, server: &ServerId, revision: &str) -> Option<Duration> {
        let servers = self.shared.lock();
        let states = servers.get(server)?.iter();
        states
            .filter(|state| state.replica.revision == revision)
            .filter_map(ReplicaState::last_latency)
            .max()
    }

    /// No replica of a server is asked any more.
    pub fn forget(&self, uid: &str) {
        self.shared.lock().retain(|server, _| server.uid != uid);
    }

    /// Asks for ever. Cancel safe: what was under way is asked again by the next one that runs.
    pub async fn run(&self) {
        let mut looks = FuturesUnordered::new();
        let mut questions = FuturesUnordered::new();
        loop {
            let now = self.shared.clock.now().boot;
            for job in self.shared.due(Lane::Looks, MAX_LOOKS - looks.len(), now) {
                looks.push(self.shared.perform(job));
            }
            let free = MAX_QUESTIONS - questions.len();
            for job in self.shared.due(Lane::Questions, free, now) {
                questions.push(self.shared.perform(job));
            }
            let full = (looks.len() == MAX_LOOKS, questions.len() == MAX_QUESTIONS);
            let pause = self.shared.pause(full, now);
            tokio::select! {
                Some(came) = looks.next() => self.shared.finish(&came),
                Some(came) = questions.next() => self.shared.finish(&came),
                () = self.shared.changed.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

/// Replicas of a revision are asked in turn, by number.
fn give_turns(states: &mut [ReplicaState]) {
    states.sort_by(|a, b| {
        let place = |state: &ReplicaState| (state.replica.revision.clone(), state.replica.ordinal);
        place(a).cmp(&place(b))
    });
    for revision in states.chunk_by_mut(|a, b| a.replica.revision == b.replica.revision) {
        let of = u32::try_from(revision.len()).unwrap_or(u32::MAX);
        for (place, state) in (0..).zip(revision) {
            state.take_turn(place, of);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServerId, Vec<ReplicaState>>> {
        // Each change is whole before anything that could panic.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At most `most` calls of a lane that are due.
    fn due(&self, lane: Lane, most: usize, now: Duration) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (server, states) in self.lock().iter_mut() {
            for state in states {
                if jobs.len() == most {
                    return jobs;
                }
                jobs.extend(state.take(lane, now).map(|ask| Job {
                    server: server.clone(),
                    replica: state.replica.clone(),
                    ask,
                    names_contract: state.names_contract(),
                }));
            }
        }
        jobs
    }

    /// How long nothing is due. What is due while its lane is full waits for an answer, not for time.
    fn pause(&self, full: (bool, bool), now: Duration) -> Duration {
        if full.0 || full.1 {
            return Duration::from_secs(1);
        }
        let servers = self.lock();
        let states = servers.values().flatten();
        let next = states.filter_map(ReplicaState::next_due).min();
        next.map_or(IDLE, |next| next.saturating_sub(now).min(IDLE))
    }

    async fn perform(&self, job: Job) -> Came {
        let (call, within) = call(&job);
        let began = Instant::now();
        let said = ask(&job.replica.url, &call, within, MAX_BYTES).await;
        Came {
            job,
            said,
            took: began.elapsed(),
        }
    }

    fn finish(&self, came: &Came) {
        let Came { job, said, took } = came;
        let now = self.clock.now();
        if let (Ask::Question(at), Some(set)) = (job.ask, &job.replica.questions) {
            self.counts
                .count(&judge(set, said, job.replica.recorded.get(at)));
        }
        let matters = {
            let mut servers = self.lock();
            let states = servers.get_mut(&job.server).map(Vec::as_mut_slice);
            let mut states = states.unwrap_or_default().iter_mut();
            // It may not be watched any more, or at another address.
            let Some(state) = states.find(|state| state.replica.is_same(&job.replica)) else {
                return;
            };
            if job.ask.lane() == Lane::Questions && !state.replica.asks_the_same(&job.replica) {
                return state.outdated();
            }
            let before = what_matters(state.shown(now.boot));
            state.answered(job.ask, said, *took, &now);
            before != what_matters(state.shown(now.boot))
        };
        if matters {
            (self.wake)(&job.server.key);
        }
    }
}

/// A probe without what changes from answer to answer and decides nothing.
fn what_matters(mut probe: ReplicaProbe) -> ReplicaProbe {
    match &mut probe.readiness {
        Readiness::Ready { for_seconds, .. } => *for_seconds = 0,
        Readiness::Unreachable { message } | Readiness::NotReady { message, .. } => message.clear(),
        Readiness::Unknown => {}
    }
    probe.questions.passed_at = None;
    if probe.device.claimed.as_deref() != Some("cuda") {
        probe.device.p50_millis = None;
    }
    if let Some(failed) = &mut probe.questions.failed {
        failed.message.clear();
    }
    probe
}

fn call(job: &Job) -> (Call, Duration) {
    let Job { replica, ask, .. } = job;
    let set = || replica.questions.as_ref();
    let body = match ask {
        Ask::Ready => return (Call::get("/ready"), LOOK_WITHIN),
        Ask::Health => return (Call::get("/health"), LOOK_WITHIN),
        Ask::Question(at) => set().map(|set| match replica.recorded.get(*at) {
            Some(recorded) => set.body(&recorded.state.to_string()),
            None => set.body(&built_in(*at)),
        }),
        Ask::Latency(_) => set().map(|set| set.short_body()),
    };
    let mut headers = vec![(
        HeaderName::from_static("x-laya-deadline-ms"),
        HeaderValue::from(u64::try_from(replica.timeout.as_millis()).unwrap_or(u64::MAX)),
    )];
    if job.names_contract
        && let Some(contract) = &replica.contract
        && let Ok(contract) = HeaderValue::from_str(contract)
    {
        headers.push((HeaderName::from_static("x-laya-contract"), contract));
    }
    let call = Call {
        method: Method::POST,
        path: "/v1/systemone",
        headers,
        body: Bytes::from(body.unwrap_or_default()),
    };
    (call, replica.timeout)
}

#[cfg(test)]
mod tests;
