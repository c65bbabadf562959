//! A folder of this machine (`--from-dir`). Links are refused wherever they stand: what they lead to may change after it
//! was looked at.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use laya::checkpoint::{OPTIONAL_FILES, REQUIRED_FILES};
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;

use super::{Opened, Origin};
use crate::TaskError;
use crate::layout::{MANIFEST, read_manifest};
use crate::part::hash_file;
use crate::request::SourceFile;
use crate::run::Phase;
use crate::watch::Watch;

pub(super) struct FolderOrigin {
    path: PathBuf,
}

impl FolderOrigin {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Files of its manifest, else the usual ones that it has.
    fn names(&self) -> Result<Vec<String>, TaskError> {
        let mut names: Vec<String> = match open_inside(&self.path, MANIFEST)? {
            Some(_) => {
                let manifest =
                    read_manifest(&self.path).map_err(|why| TaskError::BadCheckpoint { why })?;
                manifest.files.into_iter().map(|file| file.path).collect()
            }
            None => REQUIRED_FILES
                .iter()
                .chain(&OPTIONAL_FILES)
                .map(|name| (*name).to_owned())
                .collect(),
        };
        names.push(MANIFEST.to_owned());
        Ok(names)
    }
}

impl Origin for FolderOrigin {
    /// Hashes every file: that is what gives a plain folder its digest.
    fn list(&mut self, watch: &Arc<Watch>) -> Result<Vec<SourceFile>, TaskError> {
        match std::fs::metadata(&self.path) {
            Ok(seen) if seen.is_dir() => {}
            Ok(_) => {
                return Err(TaskError::Usage {
                    why: format!("{} is no folder", self.path.display()),
                });
            }
            Err(source) => return Err(TaskError::io("read", &self.path, source)),
        }
        let mut opened = Vec::new();
        for name in self.names()? {
            if let Some(file) = open_inside(&self.path, &name)? {
                let length = file
                    .metadata()
                    .map_err(|source| TaskError::io("read", self.path.join(&name), source))?;
                opened.push((name, file, length.len()));
            }
        }
        let total = opened.iter().map(|(_, _, length)| length).sum();
        watch.phase(Phase::Verify, 0, total);
        let mut files = Vec::new();
        for (path, mut file, _) in opened {
            watch.file(&path);
            let (sha256, size) = hash_file(&mut file, &self.path.join(&path), watch)?;
            files.push(SourceFile {
                path,
                size,
                sha256,
                asset: None,
            });
        }
        Ok(files)
    }

    fn open(
        &mut self,
        file: &SourceFile,
        from: u64,
        _: &Arc<Watch>,
    ) -> Result<Opened<'_>, TaskError> {
        let path = || self.path.join(&file.path);
        let found = open_inside(&self.path, &file.path)?;
        let mut found = found.ok_or_else(|| {
            TaskError::io("read", path(), io::Error::from(io::ErrorKind::NotFound))
        })?;
        found
            .seek(SeekFrom::Start(from))
            .map_err(|source| TaskError::io("read", path(), source))?;
        Ok(Opened::Body {
            at: from,
            reader: Box::new(found),
        })
    }
}

/// Opens a regular file by a path of parts below a folder, none of which may be a link; `None` where it does not exist.
pub(crate) fn open_inside(folder: &Path, name: &str) -> Result<Option<File>, TaskError> {
    let path = || folder.join(name);
    let refused = |why| TaskError::UnsafePath {
        path: path().display().to_string(),
        why,
    };
    let failed = |errno: Errno| match errno {
        Errno::NOENT => Ok(None),
        Errno::LOOP => Err(refused("it is a link, or lies behind one")),
        Errno::NOTDIR => Err(refused("a part of its path is a link or no folder")),
        errno => Err(TaskError::io("read", path(), errno.into())),
    };
    let folders = OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The folder itself is the caller's choice and may be reached through links.
    let mut at: OwnedFd = match open(folder, folders, Mode::empty()) {
        Ok(at) => at,
        Err(errno) => return failed(errno),
    };
    let (parents, last) = name.rsplit_once('/').unwrap_or(("", name));
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        at = match openat(&at, part, folders | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(at) => at,
            Err(errno) => return failed(errno),
        };
    }
    // Without waiting: a pipe has no writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(&at, last, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(errno) => return failed(errno),
    };
    let seen = file
        .metadata()
        .map_err(|source| TaskError::io("read", path(), source))?;
    if seen.is_file() {
        Ok(Some(file))
    } else {
        Err(refused("it is no regular file"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn fault_40_links_and_devices_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("checkpoint");
        std::fs::create_dir_all(folder.join("encoder")).unwrap();
        std::fs::write(folder.join("encoder/config.json"), "{}").unwrap();
        std::fs::write(base.path().join("secret"), "s").unwrap();
        symlink("../secret", folder.join("a")).unwrap();
        symlink("encoder", folder.join("b")).unwrap();
        symlink("/dev/zero", folder.join("c")).unwrap();
        let fifo = folder.join("d");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();

        assert!(
            open_inside(&folder, "encoder/config.json")
                .unwrap()
                .is_some()
        );
        assert!(open_inside(&folder, "nothing").unwrap().is_none());
        assert!(open_inside(&folder, "no/thing").unwrap().is_none());
        for name in ["a", "b/config.json", "c", "d", "encoder"] {
            assert!(
                matches!(
                    open_inside(&folder, name),
                    Err(TaskError::UnsafePath { .. })
                ),
                "{name}"
            );
        }
        // The folder itself may be reached through a link.
        symlink(&folder, base.path().join("link")).unwrap();
        assert!(
            open_inside(&base.path().join("link"), "encoder/config.json")
                .unwrap()
                .is_some()
        );
    }
}
