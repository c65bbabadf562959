//! What the files of a home tell that no API does: why there is no model inside, which stores were set aside, and whether the
//! disk has room.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use files::Places;

/// What is read of the end of the log.
const TAIL: u64 = 64 << 10;
/// What the daemon says of a model that does not answer, and what follows the reason.
const NOT_READY: &str = "decision model is not ready: ";
const FIELDS: &str = " server=";
/// What it says while a checkpoint is read.
const LOADING: &str = "being loaded";
/// Stores that are kept aside, by the beginning of their names.
const ASIDE: [(&str, &str); 2] = [
    ("objects.db.damaged-", "objects"),
    ("relay.db.damaged-", "decisions and learned tasks"),
];

/// What becomes of the model inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Model {
    /// It is still being read.
    Loading,
    /// It cannot be used, and why.
    Refused(String),
}

/// What the daemon said last of a model that does not answer; `from` is where its log began. An earlier daemon that ended
/// said nothing of this one.
pub(crate) fn model(log: &Path, from: u64) -> Option<Model> {
    judge_model(&tail(log, from, TAIL).ok()?)
}

fn judge_model(log: &str) -> Option<Model> {
    let mut found = None;
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once(NOT_READY) {
            let why = rest.split_once(FIELDS).map_or(rest, |(why, _)| why);
            found = Some(match why.contains(LOADING) {
                true => Model::Loading,
                false => Model::Refused(why.to_owned()),
            });
        } else if line.ends_with(" drained") || line.contains("decision model is ready") {
            found = None;
        }
    }
    found
}

/// The end of a file, from a place on and at most so long.
pub(crate) fn tail(path: &Path, from: u64, most: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(from.max(end.saturating_sub(most))))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A store that was damaged and is kept aside: what was in it is no longer served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Aside {
    pub(crate) path: PathBuf,
    /// What it held.
    pub(crate) held: &'static str,
}

/// Every one of a home, by name.
pub(crate) fn set_aside(places: &Places) -> Vec<Aside> {
    let mut found: Vec<_> = std::fs::read_dir(&places.relay)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (_, held) = ASIDE.into_iter().find(|(start, _)| {
                // A time, as `20261130T192617076Z`; not the parts of SQLite beside it.
                name.strip_prefix(start).is_some_and(|time| {
                    !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_alphanumeric())
                })
            })?;
            Some(Aside {
                path: entry.path(),
                held,
            })
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Bytes that can be written where a path is or will be.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let existing = path.ancestors().find(|path| path.exists()).unwrap_or(path);
    let found = rustix::fs::statvfs(existing)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_why_there_is_no_model() {
        let loading = "x  WARN decision model is not ready: checkpoints are being loaded; wait server=\"embedded\"\n";
        let refused = "x  WARN decision model is not ready: checkpoint 'model': '/m' is no directory server=\"embedded\"\n";
        let why = "checkpoint 'model': '/m' is no directory";
        for (log, expected) in [
            (String::new(), None),
            ("x  INFO router is listening address=1\n".to_owned(), None),
            (loading.to_owned(), Some(Model::Loading)),
            (
                format!("{loading}{refused}"),
                Some(Model::Refused(why.to_owned())),
            ),
            (format!("{refused}x  INFO drained\n"), None),
            (
                format!("{refused}x  INFO drained\n{loading}"),
                Some(Model::Loading),
            ),
        ] {
            assert_eq!(judge_model(&log), expected, "{log}");
        }
    }

    #[test]
    fn stores_that_were_set_aside_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places {
            relay: folder.path().to_owned(),
            agent: folder.path().join("agent"),
        };
        assert_eq!(set_aside(&places), []);
        for name in [
            "objects.db",
            "objects.db.damaged-20261130T192617076Z",
            "objects.db.damaged-20261130T192617076Z-wal",
            "objects.db.damaged-",
            "relay.db.damaged-18",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found: Vec<_> = set_aside(&places)
            .into_iter()
            .map(|aside| (aside.path, aside.held))
            .collect();
        assert_eq!(
            found,
            [
                (
                    folder.path().join("objects.db.damaged-20261130T192617076Z"),
                    "objects"
                ),
                (
                    folder.path().join("relay.db.damaged-18"),
                    "decisions and learned tasks"
                ),
            ]
        );
    }
}
