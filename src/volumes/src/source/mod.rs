//! Where checkpoints come from: something that lists its files with sizes and digests, and opens one from an offset.

mod client;
mod folder;
mod http;
mod oci;
mod reference;
mod url;

use std::io::Read;
use std::sync::Arc;

use laya::checkpoint::{FileEntry, Manifest, REQUIRED_FILES, checkpoint_digest, is_inner_path};

use crate::digest::is_hex64;
use crate::layout::MANIFEST;
use crate::request::{Credential, Source, SourceFile};
use crate::watch::Watch;
use crate::{Digest, TaskError};

pub(crate) use folder::open_inside;

/// Most files of a checkpoint.
const MAX_FILES: usize = 256;
/// Largest file (control-plane 2).
const MAX_FILE_BYTES: u64 = 1 << 40;

/// A source.
pub(crate) trait Origin {
    /// What it has. Asks the source where the request does not say it.
    fn list(&mut self, watch: &Arc<Watch>) -> Result<Vec<SourceFile>, TaskError>;

    /// The bytes of a file from an offset that is less than its size.
    fn open(
        &mut self,
        file: &SourceFile,
        from: u64,
        watch: &Arc<Watch>,
    ) -> Result<Opened<'_>, TaskError>;
}

/// What a source answers.
pub(crate) enum Opened<'a> {
    /// Bytes, from the offset that was asked for or from the beginning.
    Body {
        /// Offset of the first byte.
        at: u64,
        /// The bytes.
        reader: Box<dyn Read + 'a>,
    },
    /// The offset is none of its file's (416), whose size it may say.
    Beyond {
        /// Bytes of the file.
        size: Option<u64>,
    },
}

/// The origin of a request.
pub(crate) fn origin(
    source: &Source,
    credential: Option<&Credential>,
) -> Result<Box<dyn Origin>, TaskError> {
    Ok(match source {
        Source::Http { base_url, files } => {
            Box::new(http::HttpOrigin::new(base_url, files, credential)?)
        }
        Source::Oci { reference } => Box::new(oci::OciOrigin::new(reference, credential)?),
        Source::Folder { path } => Box::new(folder::FolderOrigin::new(path)),
    })
}

/// What is to be fetched: names that stay inside, none twice, everything that a checkpoint must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    /// Files of the checkpoint, in the order of the source.
    pub(crate) files: Vec<SourceFile>,
    /// A manifest that came along. It is no part of the checkpoint, but says what no file says: parents, recipe, probes.
    pub(crate) manifest: Option<SourceFile>,
    /// Digest of the files.
    pub(crate) digest: Digest,
}

impl Listing {
    /// Checks a list.
    pub(crate) fn new(files: Vec<SourceFile>) -> Result<Self, TaskError> {
        let mut seen = std::collections::BTreeSet::new();
        for file in &files {
            check(file)?;
            if !seen.insert(file.path.clone()) {
                return Err(unsafe_path(&file.path, "the name is listed twice"));
            }
        }
        let (manifest, files): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| file.path == MANIFEST);
        // A file where another one's folder must be.
        for file in &files {
            for (at, _) in file.path.match_indices('/') {
                if seen.contains(&file.path[..at]) {
                    return Err(unsafe_path(&file.path, "a file of the list is its folder"));
                }
            }
        }
        if files.is_empty() || files.len() > MAX_FILES {
            return Err(TaskError::BadCheckpoint {
                why: format!("{} files, expected 1 to {MAX_FILES}", files.len()),
            });
        }
        for name in REQUIRED_FILES {
            if !files.iter().any(|file| file.path == name) {
                return Err(TaskError::BadCheckpoint {
                    why: format!("the source has no '{name}', which every checkpoint needs"),
                });
            }
        }
        let entries: Vec<FileEntry> = files.iter().map(entry).collect();
        let digest = Digest::parse(&checkpoint_digest(&entries)).map_err(|error| {
            TaskError::BadCheckpoint {
                why: error.to_string(),
            }
        })?;
        Ok(Self {
            files,
            manifest: manifest.into_iter().next(),
            digest,
        })
    }

    /// Entries of the manifest that is published.
    pub(crate) fn entries(&self) -> Vec<FileEntry> {
        let mut entries: Vec<FileEntry> = self.files.iter().map(entry).collect();
        entries.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
        entries
    }

    /// Bytes of all files.
    pub(crate) fn size(&self) -> u64 {
        self.files
            .iter()
            .fold(0, |sum, file| sum.saturating_add(file.size))
    }
}

fn entry(file: &SourceFile) -> FileEntry {
    FileEntry {
        path: file.path.clone(),
        sha256: file.sha256.clone(),
        size: file.size,
    }
}

fn check(file: &SourceFile) -> Result<(), TaskError> {
    if !is_inner_path(&file.path) {
        return Err(unsafe_path(
            &file.path,
            "a name inside a checkpoint has up to eight parts of letters, digits, '.', '_' and '-', none of which begins with '.' or '-'",
        ));
    }
    let bad = |why: String| Err(TaskError::BadCheckpoint { why });
    if file.size == 0 || file.size > MAX_FILE_BYTES {
        return bad(format!(
            "{} has {} bytes, expected 1 to {MAX_FILE_BYTES}",
            file.path, file.size
        ));
    }
    if !is_hex64(&file.sha256) {
        return bad(format!(
            "sha256 of {} is no 64 lower-case hexadecimal digits",
            file.path
        ));
    }
    Ok(())
}

fn unsafe_path(path: &str, why: &'static str) -> TaskError {
    TaskError::UnsafePath {
        path: path.chars().take(300).collect(),
        why,
    }
}

/// The manifest that came along, if it is about these files.
pub(crate) fn read_manifest(
    origin: &mut dyn Origin,
    listing: &Listing,
    watch: &Arc<Watch>,
) -> Result<Option<Manifest>, TaskError> {
    use sha2::Digest as _;
    let Some(file) = &listing.manifest else {
        return Ok(None);
    };
    let bad = |why: String| TaskError::BadCheckpoint {
        why: format!("{MANIFEST} of the source: {why}"),
    };
    if file.size > laya::checkpoint::MAX_MANIFEST_BYTES {
        return Err(bad(format!("{} bytes", file.size)));
    }
    let mut bytes = Vec::new();
    if let Opened::Body { reader, .. } = origin.open(file, 0, watch)? {
        let read = reader.take(file.size + 1).read_to_end(&mut bytes);
        watch.hang_up();
        read.map_err(|error| {
            TaskError::source(crate::SourceFault::Interrupted, MANIFEST, error.to_string())
        })?;
    }
    let got = laya::checkpoint::hex(&sha2::Sha256::digest(&bytes));
    if got != file.sha256 {
        return Err(TaskError::DigestMismatch {
            what: MANIFEST.to_owned(),
            expected: file.sha256.clone(),
            got,
        });
    }
    let manifest = Manifest::parse(&bytes).map_err(bad)?;
    if manifest.digest != listing.digest.to_string() {
        return Err(bad(format!(
            "it is of {}, the files make {}",
            manifest.digest, listing.digest
        )));
    }
    Ok(Some(manifest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> SourceFile {
        SourceFile {
            path: path.to_owned(),
            size: 1,
            sha256: "a".repeat(64),
            asset: None,
        }
    }

    fn whole() -> Vec<SourceFile> {
        REQUIRED_FILES.iter().map(|path| file(path)).collect()
    }

    fn with(path: &str) -> Result<Listing, TaskError> {
        let mut files = whole();
        files.push(file(path));
        Listing::new(files)
    }

    #[test]
    fn fault_40_names_that_lead_out_are_refused() {
        let long = "a/".repeat(130);
        for path in [
            "../x",
            "/etc/passwd",
            "a/../../b",
            ".lock",
            "a/.hidden",
            "a//b",
            "a\\b",
            "a\nb",
            "-rf",
            "a/b/c/d/e/f/g/h/i",
            "",
            &long,
            "model.safetensors",
            "model.safetensors/x",
        ] {
            assert!(
                matches!(with(path), Err(TaskError::UnsafePath { .. })),
                "{path:?}"
            );
        }
        assert!(with("extra/file.json").is_ok());
    }

    #[test]
    fn what_no_checkpoint_is_made_of_is_refused() {
        let refused = |files| matches!(Listing::new(files), Err(TaskError::BadCheckpoint { .. }));
        assert!(refused(vec![]));
        assert!(refused(whole().split_off(1)));
        for change in [
            |f: &mut SourceFile| f.size = 0,
            |f: &mut SourceFile| f.size = MAX_FILE_BYTES + 1,
            |f: &mut SourceFile| f.sha256 = "A".repeat(64),
        ] {
            let mut files = whole();
            change(&mut files[0]);
            assert!(refused(files));
        }
    }

    #[test]
    fn a_manifest_that_comes_along_does_not_count() {
        let listing = with(MANIFEST).unwrap();
        assert_eq!(listing.digest, Listing::new(whole()).unwrap().digest);
        assert_eq!(listing.manifest, Some(file(MANIFEST)));
        assert_eq!(listing.files.len(), whole().len());
        assert_eq!(listing.size(), whole().len() as u64);
    }
}
