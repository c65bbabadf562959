//! Replaces whole files so that nobody ever sees half of one, also after a power cut: a temporary file in the same
//! folder, written, synced, renamed over the old one, and the folder synced (engineering.md 6).

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Tells the temporary files of one process apart.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Who may read a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The owner alone, whatever was before: keys.
    Private,
    /// As before; the owner alone where the file is new.
    Kept,
}

/// Puts `bytes` where the file at `path` is, or makes it. A link is followed, so that the file it leads to is replaced
/// and the link stays. The folder must be there.
///
/// # Errors
/// When the system refuses any of it; the old file is whole then.
pub fn replace(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let target = match std::fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let mode = match (access, std::fs::metadata(&target)) {
        (Access::Kept, Ok(metadata)) => metadata.permissions().mode() & 0o777,
        _ => 0o600,
    };
    let temporary = beside(&target, &temporary_suffix());
    let written = write_new(&temporary, bytes, mode)
        .and_then(|()| std::fs::rename(&temporary, &target))
        .and_then(|()| sync_folder(&target));
    if written.is_err() {
        // Not there any more if the rename was done.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Makes a folder that only its owner can enter, and its parents; one that is there stays as it is.
///
/// # Errors
/// When the system refuses.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Moves a file aside, under a free name that begins with its own: `<name>.<suffix>`, then `<name>.<suffix>-2` and so on.
/// Tells the new path.
///
/// # Errors
/// When the system refuses.
pub fn set_aside(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    let free = free_name(path, suffix);
    std::fs::rename(path, &free)?;
    sync_folder(&free)?;
    Ok(free)
}

/// A path beside `path` that nothing has yet: `<name>.<suffix>`, then `<name>.<suffix>-2` and so on.
#[must_use]
pub fn free_name(path: &Path, suffix: &str) -> PathBuf {
    let mut free = beside(path, &format!(".{suffix}"));
    let mut number = 2;
    while free.symlink_metadata().is_ok() {
        free = beside(path, &format!(".{suffix}-{number}"));
        number += 1;
    }
    free
}

/// A path whose name is that of `path` with something behind it.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn temporary_suffix() -> String {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!(".{}-{number}.tmp", std::process::id())
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // Left by a process of the same number that was killed.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    // The mask of the process may have taken bits away.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    match path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_keeps_what_it_should() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (name, before, access, expected) in [
            ("new and private", None, Access::Private, 0o600),
            ("new", None, Access::Kept, 0o600),
            ("others may read it", Some(0o644), Access::Kept, 0o644),
            (
                "keys that others could read",
                Some(0o644),
                Access::Private,
                0o600,
            ),
        ] {
            let _ = std::fs::remove_file(&path);
            if let Some(before) = before {
                std::fs::write(&path, "before").unwrap();
                std::fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            }
            replace(&path, name.as_bytes(), access).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), name);
            assert_eq!(mode(&path), expected, "{name}");
            assert_eq!(names(folder.path()), ["file"], "{name}");
        }
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "before").unwrap();
        symlink(&real, &link).unwrap();
        replace(&link, b"after", Access::Kept).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "after");
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        // A folder cannot be replaced by a file.
        let path = folder.path().join("folder");
        std::fs::create_dir(&path).unwrap();
        replace(&path, b"x", Access::Kept).unwrap_err();
        assert_eq!(names(folder.path()), ["folder"]);
        let missing = folder.path().join("none/file");
        replace(&missing, b"x", Access::Kept).unwrap_err();
    }

    #[test]
    fn what_is_set_aside_takes_the_place_of_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for text in ["1", "2", "3"] {
            std::fs::write(&path, text).unwrap();
            set_aside(&path, "damaged-x").unwrap();
        }
        assert_eq!(
            names(folder.path()),
            ["file.damaged-x", "file.damaged-x-2", "file.damaged-x-3"]
        );
        let third = folder.path().join("file.damaged-x-3");
        assert_eq!(std::fs::read_to_string(third).unwrap(), "3");
    }
}
