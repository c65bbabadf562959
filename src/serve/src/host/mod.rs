//! The checkpoints in memory (wire.md 3): at most so many, the least recently used goes first, several requests for one
//! that is missing share one load, and all of them go after long idleness.

mod files;
mod keeper;
mod load;
mod loaded;
mod problem;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use laya::Engine;

pub use keeper::{Fatal, keep};
pub use loaded::{Loaded, Origin, Parity};
pub use problem::{EXIT_CHECKPOINT, EXIT_CONFIGURATION, Problem};

use crate::batch::{PassLimits, PassSeen};
use crate::metrics::Metrics;
use crate::readiness::{NotReady, Readiness, Reason};
use crate::settings::{Device, Loading, Passes};
use crate::source::Places;

/// How long a failed load is not tried again by requests.
const FAILURE_HOLDS: Duration = Duration::from_secs(5);

/// A load, or why it failed, as everybody who waits for it sees it.
type Outcome = Result<Arc<Loaded>, Arc<Problem>>;

/// Holds checkpoints. Share it behind an `Arc`.
pub struct Host {
    loading: Loading,
    places: Places,
    limits: PassLimits,
    engine: Arc<Engine>,
    metrics: Metrics,
    readiness: Arc<Readiness>,
    state: Mutex<State>,
    /// One load at a time: memory while loading is file and result.
    turn: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("resident", &self.names())
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    /// Least recently used first.
    resident: Vec<(String, Arc<Loaded>)>,
    /// Names that are resident, the earliest loaded first.
    by_load: Vec<String>,
    running: HashMap<String, Shared<BoxFuture<'static, Outcome>>>,
    failed: HashMap<String, Failure>,
    used: Option<Instant>,
}

/// The last load of a name, if it failed.
#[derive(Debug, Clone)]
struct Failure {
    at: Instant,
    problem: Arc<Problem>,
    /// The files as they were.
    seen: files::Fingerprint,
}

impl Host {
    /// Nothing is loaded yet.
    #[must_use]
    pub fn new(
        loading: Loading,
        places: Places,
        passes: &Passes,
        engine: Arc<Engine>,
        metrics: Metrics,
        readiness: Arc<Readiness>,
    ) -> Self {
        if let Device::Absent(device) = &loading.device {
            readiness.wrong_device(format!(
                "device {device} was asked for and is not here, cpu answers; set LAYA_DEVICE to cpu or auto"
            ));
        }
        let limits = PassLimits {
            tokens: passes.max_tokens.min(laya::PASS_TOKENS),
            window: passes.window,
        };
        Self {
            loading,
            places,
            limits,
            engine,
            metrics,
            readiness,
            state: Mutex::default(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// What is loaded, and how.
    #[must_use]
    pub const fn loading(&self) -> &Loading {
        &self.loading
    }

    /// Threads and buffers.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// A resident checkpoint, which counts as used now.
    #[must_use]
    pub fn resident(&self, name: &str) -> Option<Arc<Loaded>> {
        let mut state = self.lock();
        let at = state.resident.iter().position(|(known, _)| known == name)?;
        state.resident[at..].rotate_left(1);
        state.used = Some(Instant::now());
        state.resident.last().map(|(_, loaded)| Arc::clone(loaded))
    }

    /// Resident checkpoints, least recently used first.
    #[must_use]
    pub fn all_resident(&self) -> Vec<(String, Arc<Loaded>)> {
        self.lock().resident.clone()
    }

    /// The same, in the order in which they were loaded.
    #[must_use]
    pub fn all_resident_by_load(&self) -> Vec<(String, Arc<Loaded>)> {
        let state = self.lock();
        let mut resident = state.resident.clone();
        resident.sort_by_key(|(name, _)| state.by_load.iter().position(|loaded| loaded == name));
        resident
    }

    /// Names of resident checkpoints, least recently used first.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.lock()
            .resident
            .iter()
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// A checkpoint, loaded if it is not. Cancel safe: a load goes on for others.
    ///
    /// # Errors
    /// Why it cannot be loaded; a failure of a moment ago is not tried again.
    pub async fn get(self: &Arc<Self>, name: &str) -> Outcome {
        if let Some(loaded) = self.resident(name) {
            return Ok(loaded);
        }
        if let Some(failure) = self.lock().failed.get(name)
            && failure.at.elapsed() < FAILURE_HOLDS
        {
            return Err(Arc::clone(&failure.problem));
        }
        let loaded = self.load(name).await?;
        self.lock().used = Some(Instant::now());
        Ok(loaded)
    }

    /// Loads a checkpoint, or joins the load that runs.
    async fn load(self: &Arc<Self>, name: &str) -> Outcome {
        let running = {
            let mut state = self.lock();
            match state.running.get(name) {
                Some(running) => running.clone(),
                None => {
                    let load = self.start_load(name.to_owned());
                    state.running.insert(name.to_owned(), load.clone());
                    load
                }
            }
        };
        running.await
    }

    fn start_load(self: &Arc<Self>, name: String) -> Shared<BoxFuture<'static, Outcome>> {
        let host = Arc::clone(self);
        // A task of its own: a client that goes away does not end the load of others.
        let task = tokio::spawn(async move {
            let outcome = host.load_alone(&name).await;
            host.note(&name, &outcome);
            outcome
        });
        let joined = async move {
            task.await
                .unwrap_or_else(|error| Err(Arc::new(Problem::System(error.to_string()))))
        };
        joined.boxed().shared()
    }

    fn note(&self, name: &str, outcome: &Outcome) {
        let mut state = self.lock();
        state.running.remove(name);
        match outcome {
            Ok(loaded) => {
                state.failed.remove(name);
                self.readiness.recovered(name);
                if loaded.parity == Parity::Unchecked {
                    let message =
                        "its precision is served unchecked, for benchmarks only; run `laya parity`";
                    let problem = NotReady::new(Reason::LoadFailed, message.to_owned());
                    self.readiness.failed(name, problem);
                }
            }
            Err(problem) => {
                self.metrics
                    .load_failures
                    .with_label_values(&[problem.metric()])
                    .inc();
                tracing::error!(checkpoint = name, %problem, "cannot serve a checkpoint");
                self.readiness.failed(name, problem.not_ready());
                let failure = Failure {
                    at: Instant::now(),
                    problem: Arc::clone(problem),
                    seen: self.fingerprint(name),
                };
                state.failed.insert(name.to_owned(), failure);
            }
        }
    }

    fn fingerprint(&self, name: &str) -> files::Fingerprint {
        let source = self.loading.registry.source(name);
        files::fingerprint(source.and_then(|source| crate::source::find(source, &self.places).ok()))
    }

    /// Makes room for one more. The checkpoints that go live on while requests use them.
    fn make_room(&self) {
        self.make_room_in(&mut self.lock());
    }

    fn make_room_in(&self, state: &mut State) {
        while state.resident.len() >= self.loading.max_loaded && !state.resident.is_empty() {
            let (name, loaded) = state.resident.remove(0);
            self.forget(&name, &loaded);
        }
    }

    fn insert(&self, name: &str, loaded: &Arc<Loaded>) {
        let mut state = self.lock();
        state.resident.retain(|(known, _)| known != name);
        self.make_room_in(&mut state);
        state.resident.push((name.to_owned(), Arc::clone(loaded)));
        let state = &mut *state;
        let resident = |known: &String| state.resident.iter().any(|(name, _)| name == known);
        state
            .by_load
            .retain(|known| known != name && resident(known));
        state.by_load.push(name.to_owned());
        self.info(name, loaded).set(1);
    }

    fn forget(&self, name: &str, loaded: &Loaded) {
        tracing::info!(checkpoint = name, "unloaded");
        self.info(name, loaded).set(0);
        let labels = self.info_labels(name, loaded);
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        // It was made a moment ago.
        let _ = self.metrics.checkpoint_info.remove_label_values(&labels);
    }

    fn info(&self, name: &str, loaded: &Loaded) -> prometheus::IntGauge {
        let labels = self.info_labels(name, loaded);
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        self.metrics.checkpoint_info.with_label_values(&labels)
    }

    fn info_labels(&self, name: &str, loaded: &Loaded) -> [String; 6] {
        let info = loaded.checkpoint().info();
        [
            name.to_owned(),
            info.digest.clone(),
            loaded.contract().unwrap_or("none").to_owned(),
            "cpu".to_owned(),
            loaded.checkpoint().precision().to_string(),
            info.verified.to_string(),
        ]
    }

    /// How long nothing was asked; none if nothing ever was.
    #[must_use]
    pub fn idle(&self) -> Option<Duration> {
        self.lock().used.map(|used| used.elapsed())
    }

    /// Unloads everything.
    fn unload_all(&self) {
        let unloaded = std::mem::take(&mut self.lock().resident);
        for (name, loaded) in unloaded {
            self.forget(&name, &loaded);
        }
        self.engine.release_buffers();
    }

    /// Rows that wait, over all checkpoints; names that share weights count once.
    #[must_use]
    pub fn waiting_rows(&self) -> usize {
        let resident = self.all_resident();
        let first = |index: usize, loaded: &Arc<Loaded>| {
            resident[..index]
                .iter()
                .all(|(_, earlier)| !Arc::ptr_eq(earlier, loaded))
        };
        let distinct = resident
            .iter()
            .enumerate()
            .filter(|(index, (_, loaded))| first(*index, loaded));
        distinct.map(|(_, (_, loaded))| loaded.waiting_rows()).sum()
    }

    fn pass_seen(&self) -> PassSeen {
        let (rows, tokens) = (
            self.metrics.pass_rows.clone(),
            self.metrics.pass_tokens.clone(),
        );
        Arc::new(move |report| {
            rows.observe(report.rows as f64);
            tokens.observe(report.tokens as f64);
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
