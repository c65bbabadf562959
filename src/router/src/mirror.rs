//! A laptop's copy of the learned tasks, in files that other programs know (training.md 2.6, routing.md 19): written after
//! each change, read when somebody else changed it; and outcomes that an older installation left in `telemetry.jsonl`.
//! The store stays the truth.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use decision::contract::Digest;
use decision::relay_contract;
use files::{Lock, PRIVATE, lock_path, make_private_folder, read_bytes, read_text, write_whole};
use routing::dataset::{
    Import, InForce, Mirror, RejectedLine, import_mirror, import_telemetry, write_file,
};
use routing::outcome::EvidenceEvent;
use serde::{Deserialize, Serialize};
use service::http::{LOCAL_TENANT, Tenant};
use service::runtime::Shutdown;
use service::telemetry::causes;
use store::{Dataset, StoreError};

use crate::dataset::{Rows, writes};
use crate::decide::Decider;

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What stands before a line that is no UTF-8: such a line is no JSON.
const NOT_TEXT: char = '\u{fffd}';
/// A file that changed less than this ago may still be written by somebody.
const SETTLES: Duration = Duration::from_secs(2);
/// Forgetting more rows than this at once, and more than half of those taught, leaves a copy behind.
const MANY: usize = 10;

/// How long another program may hold the lock.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The files of one agent folder.
#[derive(Debug)]
pub(crate) struct Files {
    training: PathBuf,
    dataset: PathBuf,
    decisions: PathBuf,
    state: PathBuf,
    lock: PathBuf,
    telemetry: PathBuf,
    /// What the files looked like when they were last taken in.
    seen: Mutex<[Option<Seen>; 2]>,
}

/// What tells one version of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    bytes: u64,
    changed: Option<SystemTime>,
}

/// What we wrote last, so that another's change can be told from ours after a restart too.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    digest: String,
    revision: u64,
}

/// The files cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorError {
    #[error("cannot {what} {}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: files::ReadError,
    },
    #[error("another program holds {}", .0.display())]
    Locked(PathBuf),
    /// It is tried again a moment later.
    #[error("{} is being changed", .0.display())]
    Changing(PathBuf),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Files {
    /// Those below `<agent folder>/laya`.
    pub(crate) fn below(laya: &Path) -> Self {
        let training = laya.join("training");
        Self {
            dataset: training.join("data").join("dataset.jsonl"),
            decisions: training.join("decisions.json"),
            state: training.join("data").join(".dataset.written"),
            lock: lock_path(&training.join("data").join("dataset.jsonl")),
            telemetry: laya.join("telemetry.jsonl"),
            training,
            seen: Mutex::default(),
        }
    }

    async fn locked(&self) -> Result<Lock, MirrorError> {
        let folder = self.training.join("data");
        make_private_folder(&folder).map_err(at("make", &folder))?;
        let deadline = tokio::time::Instant::now() + LOCK_WAIT;
        loop {
            if let Some(lock) = Lock::try_take(&self.lock).map_err(at("lock", &self.lock))? {
                return Ok(lock);
            }
            if tokio::time::Instant::now() > deadline {
                return Err(MirrorError::Locked(self.lock.clone()));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn written(&self) -> Option<Written> {
        let file = read_text(&self.state, 4096).ok()?;
        serde_json::from_str(&file.text).ok()
    }

    fn seen(&self) -> [Option<Seen>; 2] {
        [&self.dataset, &self.telemetry].map(|path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some(Seen {
                bytes: metadata.len(),
                changed: metadata.modified().ok(),
            })
        })
    }

    fn changed(&self) -> bool {
        let seen = self.seen();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) != seen
    }

    /// Whether somebody changed the file a moment ago, and may not be done.
    fn is_changing(&self) -> bool {
        let changed = self.seen()[0].and_then(|seen| seen.changed);
        // A time in the future is not waited for.
        changed.is_some_and(|at| at.elapsed().is_ok_and(|age| age < SETTLES))
    }

    fn remember(&self, seen: [Option<Seen>; 2]) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

impl Decider {
    /// Takes in what others changed in the files, writes the first rows where there are none, and writes what the store
    /// has.
    pub(crate) async fn sync(&self, files: &Files) -> Result<(), MirrorError> {
        let tenant = Tenant(LOCAL_TENANT.into());
        let _lock = files.locked().await?;
        let read = self.take_in(&tenant, files).await?;
        let added = self.seed_first_rows(&tenant.0).await?;
        if added > 0 {
            tracing::info!(rows = added, "first rows of the data set written");
        }
        let ours = self.write_out(&tenant, files, read.as_deref()).await?;
        let seen = files.seen();
        self.import_telemetry(&tenant, files).await?;
        // Who wrote between our write and that look would not be noticed by it: the files are looked at again.
        let there = read_if_there(&files.dataset)?;
        if there.is_some_and(|text| Digest::of(text.as_bytes()).to_string() == ours) {
            files.remember(seen);
        }
        self.knowledge.catch_up().await?;
        self.knowledge.refresh_memory().await?;
        Ok(())
    }

    /// Gives the digest of what it read, if there was a file.
    async fn take_in(&self, tenant: &Tenant, files: &Files) -> Result<Option<String>, MirrorError> {
        let Some(text) = read_if_there(&files.dataset)? else {
            return Ok(None);
        };
        let written = files.written();
        let digest = Digest::of(text.as_bytes()).to_string();
        // A store that never had a row has lost what is written there, whoever wrote it.
        let known = self.knowledge.of(&tenant.0).memory();
        let is_new = known.is_none_or(|memory| memory.revision() == 0);
        let is_ours = |written: &Written| written.digest == digest;
        if !is_new && written.as_ref().is_some_and(is_ours) {
            return Ok(Some(digest));
        }
        if written.is_some() && !is_new && files.is_changing() {
            return Err(MirrorError::Changing(files.dataset.clone()));
        }
        let edit = move |dataset: &Dataset| {
            let rows = Rows::read(dataset);
            let in_force = InForce::of(relay_contract());
            // What the store has learned since the file was written cannot have been deleted in it.
            let nothing = HashSet::new();
            let current = written.as_ref().is_some_and(|written| {
                written.revision == dataset.revision && dataset.revision > 0
            });
            let mirror = Mirror {
                text: &text,
                written: if current { None } else { Some(&nothing) },
            };
            let import = import_mirror(&rows.view(), mirror, &in_force);
            let forgotten = import.edit.removes.len();
            let many = forgotten > MANY && forgotten * 2 > rows.learned().count();
            let before = many.then(|| write_file(rows.all()));
            (writes(&import.edit), (import, before))
        };
        let edited = self.store.edit_dataset(&tenant.0, Arc::new(edit)).await?;
        let (import, before) = edited;
        if let Some(before) = before {
            let mut name = files.dataset.file_name().unwrap_or_default().to_owned();
            name.push(format!(".before-{}", jiff::Timestamp::now().as_second()));
            let copy = files.dataset.with_file_name(name);
            put(&copy, &before)?;
            tracing::warn!(copy = %copy.display(), "many learned tasks are missing in the file and were forgotten; a copy of what there was is kept");
        }
        let Import {
            edit,
            rejected,
            lines,
            ..
        } = &import;
        tracing::info!(
            file = %files.dataset.display(),
            lines,
            added = edit.added,
            updated = edit.updated,
            forgotten = edit.removes.len(),
            rejected = rejected.len(),
            "data set file changed by another program taken in"
        );
        keep_rejected(&files.dataset, rejected)?;
        Ok(Some(digest))
    }

    /// Writes what the store has in the place of what was read. Gives the digest of the file.
    async fn write_out(
        &self,
        tenant: &Tenant,
        files: &Files,
        read: Option<&str>,
    ) -> Result<String, MirrorError> {
        let dataset = self.store.dataset(&tenant.0).await?;
        let rows = Rows::read(&dataset);
        let text = write_file(rows.all());
        let digest = Digest::of(text.as_bytes()).to_string();
        let there = read_if_there(&files.dataset)?;
        if there.as_deref() != Some(&*text) {
            let now = there.map(|there| Digest::of(there.as_bytes()).to_string());
            // Somebody saved it since it was read: that comes first.
            if now.as_deref() != read {
                return Err(MirrorError::Changing(files.dataset.clone()));
            }
            put(&files.dataset, &text)?;
        }
        let state = Written {
            digest: digest.clone(),
            revision: dataset.revision,
        };
        put(
            &files.state,
            &serde_json::to_string(&state).unwrap_or_default(),
        )?;
        let questions = relay_contract().export();
        if read_if_there(&files.decisions)?.as_deref() != Some(&*questions) {
            put(&files.decisions, &questions)?;
        }
        Ok(digest)
    }

    async fn import_telemetry(&self, tenant: &Tenant, files: &Files) -> Result<(), MirrorError> {
        let Some(text) = read_if_there(&files.telemetry)? else {
            return Ok(());
        };
        let import = import_telemetry(&text, &HashSet::new());
        let lines = import.observed.len();
        let items = import.observed.into_iter().map(|observed| {
            let event = EvidenceEvent {
                class: observed.class,
                model: observed.model,
                observation: Some(observed.observation),
                replaces: None,
                used: None,
            };
            (format!("telemetry:{}", observed.task_id), event)
        });
        let new = self
            .store
            .import_evidence(&tenant.0, items.collect())
            .await?;
        if new > 0 || !import.rejected.is_empty() {
            tracing::info!(
                file = %files.telemetry.display(),
                lines,
                new,
                rejected = import.rejected.len(),
                "outcomes of an older installation taken in"
            );
        }
        keep_rejected(&files.telemetry, &import.rejected)
    }
}

/// Keeps the files and the store together until the process drains.
pub(crate) async fn follow(decider: Arc<Decider>, files: Arc<Files>, shutdown: Shutdown) {
    let mut failed = false;
    loop {
        let ours = tokio::select! {
            () = decider.changed.notified() => true,
            () = tokio::time::sleep(LOOK_EVERY) => false,
            () = shutdown.draining() => return,
        };
        if !(ours || failed || files.changed()) {
            continue;
        }
        let (syncing, with) = (decider.clone(), files.clone());
        let runtime = tokio::runtime::Handle::current();
        // Files of megabytes are read, written and synced: not on the threads that answer.
        let synced = tokio::task::spawn_blocking(move || runtime.block_on(syncing.sync(&with)));
        match synced.await {
            // A panic was logged where it happened; the next round begins again.
            Ok(Ok(())) | Err(_) => failed = false,
            Ok(Err(error)) => {
                // Once per trouble; it is tried again every second.
                if !failed && !matches!(error, MirrorError::Changing(_)) {
                    tracing::warn!(
                        error = causes(&error),
                        "the copy of learned tasks is not current"
                    );
                }
                failed = true;
            }
        }
    }
}

fn at<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> MirrorError + 'a {
    move |source| MirrorError::File {
        what,
        path: path.to_owned(),
        source,
    }
}

/// A file of lines. One that is no text is marked, so that it is refused alone and not the file with it.
fn read_if_there(path: &Path) -> Result<Option<String>, MirrorError> {
    match read_bytes(path, MAX_BYTES) {
        Ok((bytes, _)) => Ok(Some(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => marked(error.as_bytes()),
        })),
        Err(error) if error.is_not_found() => Ok(None),
        Err(source) => Err(MirrorError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn marked(bytes: &[u8]) -> String {
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| match std::str::from_utf8(line) {
        Ok(line) => line.to_owned(),
        Err(_) => format!("{NOT_TEXT}{}", String::from_utf8_lossy(line)),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn put(path: &Path, text: &str) -> Result<(), MirrorError> {
    write_whole(path, text.as_bytes(), PRIVATE).map_err(at("write", path))
}

/// Lines that are no rows are kept beside the file, with their numbers in the log.
fn keep_rejected(path: &Path, rejected: &[RejectedLine]) -> Result<(), MirrorError> {
    if rejected.is_empty() {
        return Ok(());
    }
    for line in rejected.iter().take(10) {
        tracing::warn!(file = %path.display(), line = line.line, reason = line.reason, "line is not taken in");
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".rejected");
    let kept = path.with_file_name(name);
    let mut text = read_if_there(&kept)?.unwrap_or_default();
    let known: HashSet<&str> = text.lines().collect();
    let new: Vec<&str> = rejected
        .iter()
        .map(|line| line.text.as_str())
        .filter(|line| !known.contains(line))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let new = new.join("\n");
    text.push_str(&new);
    text.push('\n');
    put(&kept, &text)
}
