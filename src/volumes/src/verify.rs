//! `verify`: every byte of a checkpoint is hashed, and what is missing, wrong or too much is said. Nothing is written, so
//! the volume may be read-only and no lock is taken.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use laya::checkpoint::{FileEntry, Manifest, OPTIONAL_FILES, REQUIRED_FILES, checkpoint_digest};

use crate::layout::{Layout, MANIFEST, read_manifest};
use crate::meaning::{self, Understood};
use crate::part::hash_file;
use crate::request::{Verified, VerifyRequest};
use crate::run::{Phase, Run};
use crate::source::open_inside;
use crate::watch::Watch;
use crate::{Digest, TaskError};

/// Most findings of a message.
const MAX_FINDINGS: usize = 5;
/// Most names that are looked at; more is damage enough.
const MAX_NAMES: usize = 1024;

/// Hashes a published checkpoint, or with `path` a folder that is not ours, and checks its meaning.
///
/// # Errors
/// [`TaskError::Damaged`] where a published one differs from its manifest, [`TaskError::DigestMismatch`] where a folder of
/// somebody else is another checkpoint; else as [`crate::fetch`].
pub fn verify(request: &VerifyRequest, run: &Run) -> Result<Verified, TaskError> {
    let watch = Watch::new(run, request.limits);
    watch.phase(Phase::Prepare, 0, 0);
    let layout = Layout::new(&request.models);
    let verifying = Verifying {
        request,
        folder: match &request.path {
            Some(path) => layout.root().join(path),
            None => layout.published(&request.digest),
        },
        watch: &watch,
        notes: Vec::new(),
    };
    verifying.run()
}

/// The manifest of a published version that is whole: every byte of its files is right, and nothing lies beside them. `None` where there is none or anything is wrong.
///
/// # Errors
/// When the task is to end.
pub(crate) fn proven(
    layout: &Layout,
    digest: &Digest,
    watch: &Watch,
) -> Result<Option<Manifest>, TaskError> {
    let Some(Ok(manifest)) = layout.look(digest) else {
        return Ok(None);
    };
    let request = VerifyRequest {
        models: layout.root().to_owned(),
        digest: digest.clone(),
        path: None,
        contract: None,
        limits: *watch.limits(),
    };
    let mut verifying = Verifying {
        folder: layout.published(digest),
        request: &request,
        watch,
        notes: Vec::new(),
    };
    match verifying.compare(&manifest) {
        Ok(()) => Ok(Some(manifest)),
        Err(TaskError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

struct Verifying<'a> {
    request: &'a VerifyRequest,
    folder: PathBuf,
    watch: &'a Watch,
    notes: Vec<String>,
}

impl Verifying<'_> {
    fn run(mut self) -> Result<Verified, TaskError> {
        if !self.folder.is_dir() {
            return Err(self.damaged(&[format!("{} is not there", self.folder.display())]));
        }
        let has_manifest = fs::symlink_metadata(self.folder.join(MANIFEST)).is_ok();
        let (files, manifest) = if has_manifest || self.request.path.is_none() {
            let manifest = read_manifest(&self.folder).map_err(|why| self.damaged(&[why]))?;
            self.is_the_one(&manifest.digest)?;
            self.compare(&manifest)?;
            (manifest.files.clone(), Some(manifest))
        } else {
            let files = self.hash_plain()?;
            self.is_the_one(&checkpoint_digest(&files))?;
            (files, None)
        };
        let Understood {
            contract,
            decisions,
            notes,
        } = meaning::understand(&self.folder, manifest.as_ref())?;
        self.notes.extend(notes);
        meaning::agrees(self.request.contract.as_ref(), contract.as_ref())?;
        Ok(Verified {
            digest: self.request.digest.clone(),
            contract,
            size_bytes: files.iter().map(|file| file.size).sum(),
            file_count: files.len() as u64,
            decisions,
            probes: manifest.map_or_else(Vec::new, |manifest| manifest.probes),
            notes: self.notes,
        })
    }

    fn is_the_one(&self, found: &str) -> Result<(), TaskError> {
        let expected = self.request.digest.to_string();
        if found == expected {
            return Ok(());
        }
        if self.request.path.is_none() {
            return Err(self.damaged(&[format!("its manifest is of {found}")]));
        }
        Err(TaskError::DigestMismatch {
            what: self.folder.display().to_string(),
            expected,
            got: found.to_owned(),
        })
    }

    /// Every file against the manifest, and what it does not list.
    fn compare(&mut self, manifest: &Manifest) -> Result<(), TaskError> {
        let total = manifest.files.iter().map(|file| file.size).sum();
        self.watch.phase(Phase::Verify, 0, total);
        let mut findings = Vec::new();
        for file in &manifest.files {
            findings.extend(self.finding(file)?);
        }
        let listed = manifest.files.iter().map(|file| file.path.as_str());
        let listed: BTreeSet<&str> = listed.chain([MANIFEST]).collect();
        let mut names = Vec::new();
        walk(&self.folder, "", &mut names);
        for name in names {
            if listed.contains(name.as_str()) {
                continue;
            }
            let usual =
                REQUIRED_FILES.contains(&name.as_str()) || OPTIONAL_FILES.contains(&name.as_str());
            let line = format!("{} is not listed", name.escape_default());
            // In a folder that is not ours only what a server would read matters.
            if usual || self.request.path.is_none() {
                findings.push(line);
            } else {
                self.notes.push(line);
            }
        }
        if findings.is_empty() {
            Ok(())
        } else {
            Err(self.damaged(&findings))
        }
    }

    /// What is wrong with a file.
    fn finding(&self, file: &FileEntry) -> Result<Option<String>, TaskError> {
        self.watch.file(&file.path);
        let path = self.folder.join(&file.path);
        let mut opened = match open_inside(&self.folder, &file.path) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Ok(Some(format!("{} is missing", file.path))),
            Err(error @ (TaskError::UnsafePath { .. } | TaskError::Io { .. })) => {
                return Ok(Some(error.to_string()));
            }
            Err(error) => return Err(error),
        };
        match hash_file(&mut opened, &path, self.watch) {
            Ok((_, size)) if size != file.size => Ok(Some(format!(
                "{} has {size} bytes instead of {}",
                file.path, file.size
            ))),
            Ok((sha256, _)) if sha256 != file.sha256 => Ok(Some(format!(
                "{} has SHA-256 {sha256} instead of {}",
                file.path, file.sha256
            ))),
            Ok(_) => Ok(None),
            // A disk that cannot be read is damage.
            Err(error @ TaskError::Io { .. }) => Ok(Some(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// The usual files of a folder without a manifest.
    fn hash_plain(&self) -> Result<Vec<FileEntry>, TaskError> {
        let mut opened = Vec::new();
        for name in REQUIRED_FILES.iter().chain(&OPTIONAL_FILES) {
            if let Some(file) = open_inside(&self.folder, name)? {
                let length = file.metadata().map_or(0, |seen| seen.len());
                opened.push((*name, file, length));
            }
        }
        let total = opened.iter().map(|(_, _, length)| length).sum();
        self.watch.phase(Phase::Verify, 0, total);
        let mut files = Vec::new();
        for (name, mut file, _) in opened {
            self.watch.file(name);
            let (sha256, size) = hash_file(&mut file, &self.folder.join(name), self.watch)?;
            files.push(FileEntry {
                path: name.to_owned(),
                sha256,
                size,
            });
        }
        Ok(files)
    }

    fn damaged(&self, findings: &[String]) -> TaskError {
        let mut why = findings[..findings.len().min(MAX_FINDINGS)].join("; ");
        if findings.len() > MAX_FINDINGS {
            why.push_str(&format!("; and {} more", findings.len() - MAX_FINDINGS));
        }
        TaskError::Damaged {
            digest: self.request.digest.to_string(),
            why,
        }
    }
}

/// Paths of everything below a folder that is no folder.
fn walk(folder: &Path, below: &str, names: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder.join(below)) else {
        return;
    };
    for entry in entries.flatten() {
        if names.len() >= MAX_NAMES {
            return;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(folder, &path, names),
            _ => names.push(path),
        }
    }
}
