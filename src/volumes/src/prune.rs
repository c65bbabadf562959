//! Checkpoints go in two phases: out of the way by a rename, which happens or does not, then file by file. What died
//! between the two is finished by the next run of any task. What goes is decided by the controller.

use std::fs;
use std::io;
use std::path::Path;

use crate::layout::{Layout, make_folder, sync_folder};
use crate::part::remove;
use crate::request::{PruneRequest, Pruned};
use crate::run::{Phase, Run, Step};
use crate::watch::Watch;
use crate::{Digest, TaskError, view};

/// Deletes exactly what is named, except what `.keep` marks. What is not there counts as deleted.
///
/// # Errors
/// As [`crate::fetch`]; what was deleted before stays deleted.
pub fn prune(request: &PruneRequest, run: &Run) -> Result<Pruned, TaskError> {
    let watch = Watch::new(run, request.limits);
    let layout = Layout::new(&request.models);
    let _lock = layout.lock(&watch)?;
    layout.claim(None)?;
    watch.phase(Phase::Prune, 0, 0);
    watch.passed(&Step::Locked)?;
    for digest in &request.keep {
        mark(&layout, digest)?;
    }
    empty_trash(&layout, &watch)?;
    let mut pruned = Pruned::default();
    for digest in &request.delete {
        match delete(&layout, digest, &watch)? {
            Some(bytes) => {
                pruned.freed_bytes += bytes;
                pruned.deleted.push(digest.clone());
            }
            None => pruned.kept.push(digest.clone()),
        }
    }
    let (_, unknown) = layout
        .entries()
        .map_err(|source| TaskError::io("read", layout.root(), source))?;
    pruned.unknown = unknown;
    // What was asked for is done, whether it can be looked at or not.
    pruned.left = view(layout.root()).ok();
    Ok(pruned)
}

/// Marks a checkpoint so that no prune takes it.
fn mark(layout: &Layout, digest: &Digest) -> Result<(), TaskError> {
    let path = layout.keep_mark(digest);
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    files::write_whole(&path, b"", 0o444).map_err(|source| TaskError::io("write", path, source))
}

/// Deletes a version and its parts; its bytes, or `None` where it is marked.
pub(crate) fn delete(
    layout: &Layout,
    digest: &Digest,
    watch: &Watch,
) -> Result<Option<u64>, TaskError> {
    if layout.keep_mark(digest).exists() {
        return Ok(None);
    }
    let published = layout.published(digest);
    let bytes = size(&published);
    discard(layout, &published, digest)?;
    discard(layout, &layout.staging(digest), digest)?;
    watch.passed(&Step::Trashed)?;
    empty_trash(layout, watch)?;
    watch.passed(&Step::Emptied)?;
    Ok(Some(bytes))
}

/// Bytes of the files below a folder, as far as it can be read.
pub(crate) fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(seen) if seen.is_dir() => size(&entry.path()),
        Ok(seen) => seen.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// First phase: out of the way by a rename. Nothing where there is nothing.
pub(crate) fn discard(layout: &Layout, path: &Path, digest: &Digest) -> Result<(), TaskError> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    let trash = layout.trash();
    make_folder(&trash)?;
    // The first name that is free; the lock keeps everybody else away.
    let name = |number: u32| trash.join(format!("{}-{number}", digest.folder()));
    let target = (0..)
        .map(name)
        .find(|target| fs::symlink_metadata(target).is_err())
        .unwrap_or_else(|| name(0));
    fs::rename(path, &target).map_err(|source| TaskError::io("remove", path, source))?;
    sync_folder(layout.root())?;
    sync_folder(&trash)
}

/// Second phase, also of runs that died before it.
pub(crate) fn empty_trash(layout: &Layout, watch: &Watch) -> Result<(), TaskError> {
    let trash = layout.trash();
    let failed = |source| TaskError::io("read", &trash, source);
    let entries = match fs::read_dir(&trash) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        watch.check()?;
        remove(&entry.map_err(failed)?.path())?;
    }
    Ok(())
}
