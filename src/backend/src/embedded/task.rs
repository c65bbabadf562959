//! The tasks of a model as calls of the library, one thread each: what `laya fetch`, `verify` and `prune` do in a container
//! (control-plane 13), with the same words, results and exit codes. What they say is kept in memory; what they do lies in
//! the folder of models and is gone on with by the next attempt.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::kinds::shared::SecretRef;
use api::reason::Reason;
use jiff::Timestamp;
use serde_json::{Value, json};
use volumes::{Cancel, Run};

use super::EmbeddedOptions;
use super::log::{Log, TAIL};
use super::settings::is_models;
use crate::action::{TaskKey, TaskSpec};
use crate::error::BackendError;
use crate::observed::{Progress, RunState, TaskSeen};

/// Where the words of a task say that models are.
const MODELS_INSIDE: &str = "/data/models";
/// Where they say that files are.
const FILES_INSIDE: &str = "/run/relay/";
/// Where they say that secrets are.
const SECRETS_INSIDE: &str = "/run/secrets/relay/";
/// How a task ends whose program panicked.
const EXIT_FAILED: i32 = 1;

/// A task, shared by those who look at it and the thread that runs it.
#[derive(Debug)]
pub(super) struct Task {
    key: TaskKey,
    cancel: Cancel,
    now: Mutex<Now>,
    log: Log,
}

#[derive(Debug)]
struct Now {
    started_at: Timestamp,
    ended: Option<Ended>,
    progress: Option<Progress>,
    /// It was told to end.
    stopping: bool,
    /// It is to be forgotten once it ended.
    unwanted: bool,
}

#[derive(Debug)]
struct Ended {
    at: Timestamp,
    code: i32,
    result: Value,
}

impl Task {
    pub(super) fn new(key: TaskKey) -> Self {
        Self {
            key,
            cancel: Cancel::new(),
            now: Mutex::new(Now {
                started_at: Timestamp::now(),
                ended: None,
                progress: None,
                stopping: false,
                unwanted: false,
            }),
            log: Log::default(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        // Every change is one assignment: what a panic left is whole.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It ends soon, and keeps what it has done.
    pub(super) fn stop(&self) {
        self.now().stopping = true;
        self.cancel.cancel();
    }

    /// It ends soon and is forgotten then: whether it has ended already.
    pub(super) fn is_over_or_goes(&self) -> bool {
        let mut now = self.now();
        now.unwanted = true;
        if now.ended.is_none() {
            now.stopping = true;
            self.cancel.cancel();
        }
        now.ended.is_some()
    }

    /// Whether it has ended and nobody wants to know how.
    pub(super) fn is_unwanted(&self) -> bool {
        let now = self.now();
        now.unwanted && now.ended.is_some()
    }

    /// Whether it runs.
    pub(super) fn runs(&self) -> bool {
        self.now().ended.is_none()
    }

    /// Its last output.
    pub(super) fn tail(&self, limit: usize) -> String {
        self.log.tail(limit)
    }

    /// As an observation shows it.
    pub(super) fn seen(&self) -> TaskSeen {
        let now = self.now();
        let ended = now.ended.as_ref();
        TaskSeen {
            key: self.key.clone(),
            state: match ended {
                Some(_) => RunState::Exited,
                None if now.stopping => RunState::Stopping,
                None => RunState::Running,
            },
            started_at: Some(now.started_at),
            finished_at: ended.map(|ended| ended.at),
            exit_code: ended.map(|ended| ended.code),
            oom_killed: false,
            progress: now.progress.clone(),
            result: ended.map(|ended| ended.result.clone()),
            log_tail: match ended {
                Some(_) => self.log.tail(TAIL),
                None => String::new(),
            },
            waiting: None,
        }
    }

    /// Does its work. Blocks; has a thread of its own. `changed` is called after each change of what [`Task::seen`] shows.
    pub(super) fn run(
        self: &Arc<Self>,
        work: &volumes::Task,
        changed: &Arc<dyn Fn() + Send + Sync>,
    ) {
        let (heard, hint) = (self.clone(), changed.clone());
        let progress = move |progress: &volumes::Progress| {
            heard.log.say(&volumes::task::progress_line(progress));
            heard.now().progress = Some(seen(progress));
            hint();
        };
        let run = Run::new(self.cancel.clone(), Arc::new(progress));
        let outcome = catch_unwind(AssertUnwindSafe(|| work.run(&run)));
        let (code, result) = match outcome {
            Ok(outcome) => {
                self.log.say(&volumes::task::result_line(&outcome.result));
                let result = serde_json::from_str(&outcome.result).unwrap_or(Value::Null);
                (outcome.exit.code().into(), result)
            }
            Err(_) => {
                let message = "it panicked; relayd's log says where";
                self.log.say(message);
                let result = json!({"ok": false, "message": message, "code": EXIT_FAILED});
                (EXIT_FAILED, result)
            }
        };
        self.now().ended = Some(Ended {
            at: Timestamp::now(),
            code,
            result,
        });
        changed();
    }
}

fn seen(progress: &volumes::Progress) -> Progress {
    Progress {
        phase: progress.phase.as_str().to_owned(),
        done: progress.done,
        eta_s: progress.eta_seconds,
        file: progress.file.clone(),
        bytes: Some(progress.bytes),
        total: (progress.total > 0).then_some(progress.total),
    }
}

/// The work that a spec asks for, with the paths of this machine in the place of those inside a container. Files that it
/// is given are read from memory by way of a private folder, and are gone from there when this returns.
///
/// # Errors
/// `TrainingUnsupported` for what this engine does not run, `SecretMissing`, `InvalidSpec`.
pub(super) fn work(
    options: &EmbeddedOptions,
    spec: &TaskSpec,
) -> Result<volumes::Task, BackendError> {
    use api::label::Task as Word;
    let refused = |reason: Reason, message: String| BackendError::Refused {
        what: format!("task {}", spec.key),
        reason,
        message,
    };
    if !matches!(spec.key.task, Word::Fetch | Word::Verify | Word::Prune) {
        return Err(refused(
            Reason::TrainingUnsupported,
            "the embedded engine fetches, verifies and prunes models and nothing more; `relayctl up --backend docker` runs \
             the rest"
                .to_owned(),
        ));
    }
    if let Some((volume, _)) = spec.volumes.iter().find(|(volume, _)| !is_models(volume)) {
        let message = format!("spec.source.volume.name: there is no {volume:?} in this process");
        return Err(refused(Reason::InvalidSpec, message));
    }
    for (secret, _) in &spec.secrets {
        options.secrets.read(secret)?;
    }
    let files = Files::write(&options.scratch, spec).map_err(|error| BackendError::Failed {
        what: format!("task {}", spec.key),
        message: format!("cannot write below {}: {error}", options.scratch.display()),
    })?;
    let mut words: Vec<_> = spec
        .arguments
        .0
        .iter()
        .map(|word| outside(word, options, &files, &spec.secrets))
        .collect();
    if spec.key.task == Word::Fetch && !words.iter().any(|word| word.as_str() == "--store") {
        words.extend(["--store".to_owned(), options.store.clone()]);
    }
    volumes::Task::parse(&words).map_err(|error| refused(Reason::InvalidSpec, error.to_string()))
}

/// A word with the path of this machine, where it is one of a container.
fn outside(
    word: &str,
    options: &EmbeddedOptions,
    files: &Files,
    secrets: &[(SecretRef, String)],
) -> String {
    let path = if word == MODELS_INSIDE {
        options.models.clone()
    } else if let Some(name) = word.strip_prefix(FILES_INSIDE) {
        files.path(name)
    } else if let Some(name) = word.strip_prefix(SECRETS_INSIDE)
        && let Some((secret, _)) = secrets.iter().find(|(_, file)| file == name)
    {
        options.secrets.path(secret)
    } else {
        return word.to_owned();
    };
    path.to_string_lossy().into_owned()
}

/// Files of one task, for as long as its words are read.
struct Files {
    folder: PathBuf,
}

impl Files {
    fn write(scratch: &Path, spec: &TaskSpec) -> std::io::Result<Self> {
        // Random by its address in time and its key: two tasks that are read at once have folders of their own.
        let nanos = Timestamp::now().as_nanosecond();
        let name = format!("{}-{}-{nanos}", spec.key.task.as_str(), spec.key.attempt);
        let files = Self {
            folder: scratch.join(name),
        };
        if spec.files.is_empty() {
            return Ok(files);
        }
        files::make_private_folder(&files.folder)?;
        for file in &spec.files {
            files::write_whole(&files.path(&file.name), &file.content, files::PRIVATE)?;
        }
        Ok(files)
    }

    /// Names come from reconcilers, which name files and no paths.
    fn path(&self, name: &str) -> PathBuf {
        let plain = Path::new(name).file_name().unwrap_or_default();
        self.folder.join(plain)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // One that stays holds a list of files, and no secret.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
