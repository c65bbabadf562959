//! One server in this process: what `laya serve` does as a process in a container, on threads of its own, behind a
//! loopback listener of its own. One thread watches over it for as long as it is kept: it starts it, starts it again with
//! growing pauses as an engine would (`unless-stopped`), and stops it as it is told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serve::readiness::{Drain, Readiness};
use serve::server::{ServeError, Server};
use serve::settings::Settings;
use serve::source::Places;
use service::runtime::{Signal, Signals};
use tokio::sync::{mpsc, watch};

use api::reason::Reason;

use super::log::{Log, TAIL};
use super::memory::Memory;
use super::settings::need_bytes;
use crate::action::ServerSpec;
use crate::observed::{RunState, ServerSeen, Waiting};

/// Threads for connections; the engine has its own.
const HTTP_THREADS: usize = 2;
/// Threads that load and compute for it at once, beside the engine's.
const BLOCKING_THREADS: usize = 16;
/// Until one that ended is started again the first time; doubled each time, as Docker does.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// One that ran so long begins with the first pause again.
const STEADY: Duration = Duration::from_secs(10);
/// How often memory is looked at while there is too little.
const LOOK_AT_MEMORY: Duration = Duration::from_secs(2);
/// What the system gives a program that panicked.
const EXIT_PANIC: i32 = 101;

/// What a replica is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Serve. Another number is another life: it is stopped and started again.
    Run {
        /// Which life.
        life: u64,
        /// For the stop before it.
        grace: Duration,
    },
    /// Stop, and stay.
    Stop {
        /// Until open requests are dropped.
        grace: Duration,
    },
    /// Stop, and be forgotten.
    Remove {
        /// Until open requests are dropped.
        grace: Duration,
    },
}

impl Wish {
    const fn grace(self) -> Duration {
        match self {
            Self::Run { grace, .. } | Self::Stop { grace } | Self::Remove { grace } => grace,
        }
    }

    const fn runs(self, life: u64) -> bool {
        matches!(self, Self::Run { life: wished, .. } if wished == life)
    }
}

/// What it is started from.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) spec: ServerSpec,
    pub(super) folder: PathBuf,
    pub(super) settings: Settings,
    pub(super) hash: String,
}

/// A replica, shared by those who look at it and the thread that watches over it.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) ordinal: u32,
    recipe: Mutex<Recipe>,
    wish: watch::Sender<Wish>,
    lives: AtomicU64,
    now: Mutex<Now>,
    log: Log,
}

#[derive(Debug)]
struct Now {
    state: RunState,
    started_at: Option<Timestamp>,
    restarts: u32,
    exit_code: Option<i32>,
    url: Option<String>,
    waiting: Option<Waiting>,
    readiness: Option<Arc<Readiness>>,
}

/// How a life ended.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    code: i32,
    /// Whether it was told to.
    told: bool,
}

impl Replica {
    pub(super) fn new(ordinal: u32, recipe: Recipe) -> Self {
        let wish = Wish::Run {
            life: 0,
            grace: Duration::ZERO,
        };
        Self {
            ordinal,
            recipe: Mutex::new(recipe),
            wish: watch::Sender::new(wish),
            lives: AtomicU64::new(0),
            now: Mutex::new(Now {
                state: RunState::Created,
                started_at: None,
                restarts: 0,
                exit_code: None,
                url: None,
                waiting: None,
                readiness: None,
            }),
            log: Log::default(),
        }
    }

    /// What it is to do now.
    pub(super) fn wish(&self) -> Wish {
        *self.wish.borrow()
    }

    /// It is to run from this recipe: nothing where it does.
    pub(super) fn run(&self, recipe: Recipe) {
        let changed = self.recipe().hash != recipe.hash;
        match self.wish() {
            Wish::Run { .. } if !changed => *self.recipe() = recipe,
            _ => self.run_anew(recipe),
        }
    }

    /// It is to be stopped, if it runs, and started from this recipe.
    pub(super) fn run_anew(&self, recipe: Recipe) {
        let grace = Duration::from_secs(recipe.spec.drain_seconds.into());
        *self.recipe() = recipe;
        let life = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
        self.now().restarts = 0;
        self.wish.send_replace(Wish::Run { life, grace });
    }

    /// It is to stop and stay.
    pub(super) fn stop(&self, grace: Duration) {
        self.wish.send_if_modified(|wish| match wish {
            Wish::Run { .. } => {
                *wish = Wish::Stop { grace };
                true
            }
            Wish::Stop { .. } | Wish::Remove { .. } => false,
        });
    }

    /// It is to go.
    pub(super) fn remove(&self, grace: Duration) {
        self.wish.send_replace(Wish::Remove { grace });
    }

    /// It turns new requests away, if this is its address.
    pub(super) fn drain(&self, url: &str) -> bool {
        let now = self.now();
        let is_it = now.url.as_deref() == Some(url.trim_end_matches('/'));
        if is_it && let Some(readiness) = &now.readiness {
            readiness.drain(Drain::Start);
        }
        is_it
    }

    /// What it was made from.
    pub(super) fn recipe(&self) -> MutexGuard<'_, Recipe> {
        self.recipe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        // Every change is one assignment: what a panic left is whole.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it holds memory, or is about to.
    pub(super) fn is_loaded(&self) -> bool {
        matches!(self.now().state, RunState::Running | RunState::Stopping)
    }

    /// Its last output.
    pub(super) fn tail(&self, limit: usize) -> String {
        self.log.tail(limit)
    }

    /// As an observation shows it.
    pub(super) fn seen(&self) -> ServerSeen {
        let recipe = self.recipe();
        let spec = &recipe.spec;
        let now = self.now();
        ServerSeen {
            revision: spec.revision.clone(),
            ordinal: self.ordinal,
            state: now.state,
            started_at: now.started_at,
            restarts: now.restarts,
            exit_code: now.exit_code,
            oom_killed: false,
            image_id: None,
            url: now.url.clone(),
            spec_hash: Some(recipe.hash.clone()),
            hash_matches: Some(true),
            tampered: Vec::new(),
            waiting: now.waiting.clone(),
            memory_bytes: spec.memory_bytes(),
            model: Some(spec.model.clone()),
            inputs: Some(spec.inputs.clone()),
            checkpoint: Some(spec.checkpoint()),
            log_tail: match now.state {
                RunState::Running => String::new(),
                _ => self.log.tail(TAIL),
            },
        }
    }

    /// Watches over it until it is removed: `gone` says whether that still holds, and forgets it then. `changed` is called
    /// after each change of what [`Replica::seen`] shows. Blocks; has a thread of its own.
    pub(super) fn watch(&self, changed: &dyn Fn(), gone: &dyn Fn(&Self) -> bool) {
        let mut wishes = self.wish.subscribe();
        let mut pause = FIRST_PAUSE;
        loop {
            let wish = *wishes.borrow_and_update();
            let life = match wish {
                Wish::Run { life, .. } => life,
                Wish::Stop { .. } => {
                    self.rest();
                    changed();
                    wait(&mut wishes, None);
                    continue;
                }
                Wish::Remove { .. } => {
                    if gone(self) {
                        return;
                    }
                    continue;
                }
            };
            let recipe = self.recipe().clone();
            if let Some(waiting) = no_room(&recipe.spec) {
                self.wait_for_room(waiting);
                changed();
                wait(&mut wishes, Some(LOOK_AT_MEMORY));
                continue;
            }
            let began = Instant::now();
            let ended = self.live(life, recipe, &mut wishes, changed);
            let again = !ended.told;
            self.end(&ended, again);
            changed();
            if again {
                if began.elapsed() >= STEADY {
                    pause = FIRST_PAUSE;
                }
                wait(&mut wishes, Some(pause));
                pause = (pause * 2).min(LONGEST_PAUSE);
                if wishes.borrow().runs(life) {
                    self.now().restarts += 1;
                }
            } else {
                pause = FIRST_PAUSE;
            }
        }
    }

    /// It was told to stop while it did not run.
    fn rest(&self) {
        let mut now = self.now();
        now.state = RunState::Exited;
        now.waiting = None;
    }

    fn wait_for_room(&self, waiting: Waiting) {
        let mut now = self.now();
        now.state = RunState::Created;
        now.waiting = Some(waiting);
    }

    fn end(&self, ended: &Ended, again: bool) {
        let mut now = self.now();
        now.state = if again {
            RunState::Restarting
        } else {
            RunState::Exited
        };
        now.exit_code = Some(ended.code);
        now.url = None;
        now.readiness = None;
    }

    /// One life: from listening to the end.
    fn live(
        &self,
        life: u64,
        recipe: Recipe,
        wishes: &mut watch::Receiver<Wish>,
        changed: &dyn Fn(),
    ) -> Ended {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(HTTP_THREADS)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("laya-http")
            .enable_all()
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return self.failed(1, &format!("cannot start threads: {error}")),
        };
        let serving = self.serve(life, recipe, wishes, changed);
        let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(serving)));
        // What still computes is not waited for: its clients are gone.
        runtime.shutdown_background();
        ended.unwrap_or_else(|_| self.failed(EXIT_PANIC, "it panicked; relayd's log says where"))
    }

    async fn serve(
        &self,
        life: u64,
        recipe: Recipe,
        wishes: &mut watch::Receiver<Wish>,
        changed: &dyn Fn(),
    ) -> Ended {
        // Nothing is downloaded and no cache of this user is looked at.
        let places = Places::from_environment(|_| None, None);
        let server = match Server::start(recipe.settings, places).await {
            // The router is told before it stops: no time is needed for others to notice.
            Ok(server) => server.with_linger(Duration::ZERO),
            Err(error) => return self.failed(error.exit_code().into(), &error.to_string()),
        };
        self.listens(&server);
        changed();
        let (signal, signals) = mpsc::channel(4);
        let (said, mut lines) = mpsc::channel(1);
        let running = server.run(Signals::from_channel(signals), move |line| {
            // One line, and room for one.
            let _ = said.try_send(line);
        });
        let mut running = std::pin::pin!(running);
        let mut deadline = None;
        let mut told = false;
        loop {
            let grace = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = &mut running => return self.ended(ended, told),
                Some(line) = lines.recv() => {
                    self.log.say(&line);
                    changed();
                }
                wish = wishes.wait_for(|wish| !wish.runs(life)), if !told => {
                    // The sender lives as long as this replica.
                    let Ok(wish) = wish.map(|wish| *wish) else { continue };
                    told = true;
                    self.now().state = RunState::Stopping;
                    changed();
                    deadline = Some(tokio::time::Instant::now() + wish.grace());
                    let _ = signal.try_send(Signal::Terminate);
                }
                () = grace => {
                    deadline = None;
                    let _ = signal.try_send(Signal::Terminate);
                }
            }
        }
    }

    fn listens(&self, server: &Server) {
        let address = server.address();
        self.log.say(&format!("listening on http://{address}"));
        let mut now = self.now();
        now.state = RunState::Running;
        now.started_at = Some(Timestamp::now());
        now.url = Some(format!("http://{address}"));
        now.waiting = None;
        now.readiness = Some(server.readiness());
    }

    fn ended(&self, ended: Result<(), ServeError>, told: bool) -> Ended {
        match ended {
            Ok(()) => Ended { code: 0, told },
            // It was stopped at once, as it was told.
            Err(error) if told => Ended {
                code: error.exit_code().into(),
                told,
            },
            Err(error) => self.failed(error.exit_code().into(), &error.to_string()),
        }
    }

    fn failed(&self, code: i32, why: &str) -> Ended {
        self.log.say(why);
        let recipe = self.recipe();
        tracing::error!(
            model = recipe.spec.model,
            revision = recipe.spec.revision,
            folder = %recipe.folder.display(),
            code,
            "the server inside ended: {why}"
        );
        Ended { code, told: false }
    }
}

/// Waits until the wish changes, or for a while.
fn wait(wishes: &mut watch::Receiver<Wish>, at_most: Option<Duration>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let Ok(runtime) = runtime else {
        // No timer to be had: look again soon, but do not spin.
        std::thread::sleep(FIRST_PAUSE);
        return;
    };
    runtime.block_on(async {
        match at_most {
            // A wish that cannot change any more is that of a replica that nobody has.
            Some(longest) => drop(tokio::time::timeout(longest, wishes.changed()).await),
            None => drop(wishes.changed().await),
        }
    });
}

/// Why there is no room for it, if there is none.
fn no_room(spec: &ServerSpec) -> Option<Waiting> {
    let available = Memory::now()?.available?;
    let need = need_bytes(spec.checkpoint_bytes);
    (available < need).then(|| Waiting {
        reason: Reason::InsufficientMemory,
        message: format!(
            "it needs {} MiB of memory and {} MiB are available; end other programs, or serve a smaller checkpoint",
            need.div_ceil(1 << 20),
            available >> 20
        ),
    })
}
