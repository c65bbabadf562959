//! Opening the file: made if it is not there, kept aside if it is damaged or newer than this program, brought up to
//! date otherwise. A file that is not ours to use is never overwritten.

use std::fs::{self, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;

use super::connection::{BUSY, File, reason};
use crate::error::OpenError;
use crate::options::Notice;

/// A file up to this size is read through when it is opened.
const CHECKED_WHOLE: u64 = 8 << 20;
/// Between two looks at a lock.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// What SQLite keeps beside its file.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// What a file is expected to hold, and how one that does not is called when it is kept aside.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Statements of each step, the first being version 1. A step that was released is never changed.
    pub steps: &'static [fn() -> String],
    /// Tables that are read through at each start, however large the file is.
    pub start_tables: &'static [&'static str],
    /// What is put between the name and the time of a file of a newer version; a damaged one has `damaged`.
    pub newer_word: &'static str,
}

impl Layout {
    fn newest(&self) -> i64 {
        i64::try_from(self.steps.len()).unwrap_or(i64::MAX)
    }
}

/// Why a file cannot be used as it is.
enum Unusable {
    /// Another one takes its place.
    SetAside { word: &'static str, reason: String },
    /// Nothing helps.
    Refused(String),
}

/// Opens a file and says what a person should know about it.
///
/// # Errors
/// When file or folder cannot be made, read or written, or another process keeps it locked.
pub fn open(
    path: &Path,
    layout: &Layout,
    now: Timestamp,
) -> Result<(File, Vec<Notice>), OpenError> {
    let told = |error: io::Error| refused(path, error.to_string());
    make_place(path)?;
    // Of two processes that find a damaged file, one renames it and the other then finds a good one.
    let gate = Gate::new(path).map_err(told)?;
    let _turn = gate.enter().map_err(told)?;
    make_usable(path, layout, now)
}

/// That no other process opens a file, for as long as this is kept.
#[derive(Debug)]
pub struct SoleUse {
    _gate: Gate,
}

/// Opens a file as [`open`] does, for this process alone; nothing when another one has it and does not let go of it within
/// `patience`.
///
/// # Errors
/// When file or folder cannot be made, read or written.
pub fn open_alone(
    path: &Path,
    layout: &Layout,
    now: Timestamp,
    patience: Duration,
) -> Result<Option<(File, Vec<Notice>, SoleUse)>, OpenError> {
    let told = |error: io::Error| refused(path, error.to_string());
    make_place(path)?;
    let gate = Gate::new(path).map_err(told)?;
    if !gate.take_within(patience).map_err(told)? {
        return Ok(None);
    }
    let (file, notices) = make_usable(path, layout, now)?;
    Ok(Some((file, notices, SoleUse { _gate: gate })))
}

fn refused(path: &Path, reason: String) -> OpenError {
    OpenError::File {
        path: path.to_owned(),
        reason,
    }
}

fn make_place(path: &Path) -> Result<(), OpenError> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        // Nor are its permissions ours to change.
        return Err(refused(path, "it is not a file".to_owned()));
    }
    make_folder(path).map_err(|error| refused(path, error.to_string()))
}

/// The rest of opening, once no other process is at it.
fn make_usable(
    path: &Path,
    layout: &Layout,
    now: Timestamp,
) -> Result<(File, Vec<Notice>), OpenError> {
    let refused = |reason: String| refused(path, reason);
    let mut notices = Vec::new();
    if let Err(unusable) = inspect(path, layout) {
        notices.push(set_aside(path, unusable, now).map_err(refused)?);
    }
    match up_to_date(path, layout) {
        Ok(file) => Ok((file, notices)),
        Err(unusable) if notices.is_empty() => {
            notices.push(set_aside(path, unusable, now).map_err(refused)?);
            match up_to_date(path, layout) {
                Ok(file) => Ok((file, notices)),
                Err(Unusable::SetAside { reason, .. } | Unusable::Refused(reason)) => {
                    Err(refused(reason))
                }
            }
        }
        Err(Unusable::SetAside { reason, .. } | Unusable::Refused(reason)) => Err(refused(reason)),
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder),
        _ => Ok(()),
    }
}

/// Where processes that want to write to the same file take turns: whoever has entered is the next to write. Without it,
/// one that writes all the time takes the file again before another, which only looks now and then, finds it free.
#[derive(Debug)]
pub(super) struct Gate(fs::File);

/// The right to be next; ends when it is dropped.
pub(super) struct Turn<'a>(&'a fs::File);

impl Gate {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        private(&beside(path, ".lock")).map(Self)
    }

    /// Waits for the ones before, but not for ever.
    pub(super) fn enter(&self) -> io::Result<Turn<'_>> {
        if self.take_within(BUSY)? {
            return Ok(Turn(&self.0));
        }
        Err(io::Error::other(
            "another process is about to write to it and does not end",
        ))
    }

    fn take_within(&self, patience: Duration) -> io::Result<bool> {
        let until = Instant::now() + patience;
        loop {
            match self.0.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(LOOK_AGAIN);
                }
                Err(TryLockError::WouldBlock) => return Ok(false),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // It ends with the file, too.
        let _ = self.0.unlock();
    }
}

/// Opens or makes a file that nobody else may read.
fn private(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Looks whether an existing file is whole and of a version we know, as far as that takes little time.
fn inspect(path: &Path, layout: &Layout) -> Result<(), Unusable> {
    let size = match fs::metadata(path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Unusable::Refused(error.to_string())),
    };
    let suspect = beside(path, SUSPECT);
    let thorough = size <= CHECKED_WHOLE || suspect.exists();
    let file = File::connect(path).map_err(|error| unusable(&error))?;
    // Whoever is last to close a file takes its log in; this look must not change a file that is not ours to use.
    file.raw
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(|error| unusable(&error))?;
    let version = version(&file)?;
    if version > layout.newest() {
        let reason = format!(
            "it is of version {version}, this program knows {}",
            layout.newest()
        );
        let word = layout.newer_word;
        return Err(Unusable::SetAside { word, reason });
    }
    if thorough || version > 0 {
        check(&file, layout, thorough)?;
    }
    if thorough {
        let _ = fs::remove_file(suspect);
    }
    Ok(())
}

/// A file of this name asks for a whole check at the next start.
pub(super) const SUSPECT: &str = ".suspect";

/// Notes that the file gave wrong answers, so that the next start reads it through.
pub fn suspect(path: &Path) {
    let _ = private(&beside(path, SUSPECT));
}

fn version(file: &File) -> Result<i64, Unusable> {
    file.raw
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|error| unusable(&error))
}

/// Reads everything, or the tables that start-up needs.
fn check(file: &File, layout: &Layout, thorough: bool) -> Result<(), Unusable> {
    let checks: Vec<String> = if thorough {
        vec!["PRAGMA quick_check(1)".to_owned()]
    } else {
        let tables = layout.start_tables.iter();
        tables
            .map(|table| format!("PRAGMA quick_check('{table}')"))
            .collect()
    };
    for sql in checks {
        let said: String = file
            .raw
            .query_row(&sql, [], |row| row.get(0))
            .map_err(|error| unusable(&error))?;
        if said != "ok" {
            return Err(damaged("it is damaged"));
        }
    }
    Ok(())
}

fn damaged(reason: &str) -> Unusable {
    Unusable::SetAside {
        word: "damaged",
        reason: reason.to_owned(),
    }
}

fn unusable(error: &rusqlite::Error) -> Unusable {
    let reason = reason(error);
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(&reason),
        _ => Unusable::Refused(reason),
    }
}

/// Renames a file and what belongs to it.
fn set_aside(path: &Path, unusable: Unusable, now: Timestamp) -> Result<Notice, String> {
    let (word, reason) = match unusable {
        Unusable::SetAside { word, reason } => (word, reason),
        Unusable::Refused(reason) => return Err(reason),
    };
    let stamp = now.strftime("%Y%m%dT%H%M%S%3fZ");
    let mut aside = beside(path, &format!(".{word}-{stamp}"));
    let mut number = 1;
    while aside.exists() {
        number += 1;
        aside = beside(path, &format!(".{word}-{stamp}-{number}"));
    }
    let tell = |error: io::Error| format!("{reason}, and it cannot be kept aside: {error}");
    fs::rename(path, &aside).map_err(tell)?;
    for companion in COMPANIONS {
        match fs::rename(beside(path, companion), beside(&aside, companion)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(tell(error)),
            _ => {}
        }
    }
    let _ = fs::remove_file(beside(path, SUSPECT));
    Ok(Notice::SetAside {
        path: aside,
        reason,
    })
}

/// Connects, makes the file if there is none, and takes the steps it lacks.
fn up_to_date(path: &Path, layout: &Layout) -> Result<File, Unusable> {
    let made = private(path).and_then(|file| file.set_permissions(Permissions::from_mode(0o600)));
    made.map_err(|error| Unusable::Refused(error.to_string()))?;
    let told = |error: rusqlite::Error| unusable(&error);
    let file = File::connect(path).map_err(told)?;
    file.set_up().map_err(told)?;
    file.raw.execute_batch("BEGIN IMMEDIATE").map_err(told)?;
    let done = version(&file)?;
    for (step, number) in layout.steps.iter().zip(1_i64..) {
        if number > done {
            file.raw.execute_batch(&step()).map_err(told)?;
            file.raw
                .pragma_update(None, "user_version", number)
                .map_err(told)?;
        }
    }
    file.raw.execute_batch("COMMIT").map_err(told)?;
    Ok(file)
}
