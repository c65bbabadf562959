//! Whole files become a version (control-plane 11, steps 7 and 8): synced, described by a manifest, and given their name
//! by one rename, or by an exchange where the name is taken by a damaged one.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use laya::checkpoint::{ContractRef, Manifest};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde_json::Value;

use crate::layout::{Layout, MANIFEST, make_folder, sync_folder};
use crate::part::{hash_file, remove};
use crate::run::Step;
use crate::source::{Listing, open_inside};
use crate::watch::Watch;
use crate::{Digest, TaskError, prune};

/// Mode of files of a version.
const FILE_MODE: u32 = 0o444;
/// Most digests of `parents`.
const MAX_PARENTS: usize = 8;

/// What is to be published.
pub(crate) struct Publication<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) digest: &'a Digest,
    pub(crate) manifest: &'a Manifest,
    pub(crate) watch: &'a Watch,
}

/// The manifest of a version: what was fetched, and what the source's own manifest tells beside it.
pub(crate) fn manifest(
    listing: &Listing,
    contract: Option<ContractRef>,
    told: Option<Manifest>,
) -> Manifest {
    let (probes, more) = told
        .map(|told| (told.probes, told.more))
        .unwrap_or_default();
    Manifest {
        files: listing.entries(),
        digest: listing.digest.to_string(),
        contract,
        probes,
        more,
    }
}

/// Digests that a version was made from.
pub(crate) fn parents(manifest: &Manifest) -> Vec<String> {
    let listed = manifest.more.get("parents").and_then(Value::as_array);
    let digests = listed.into_iter().flatten().filter_map(Value::as_str);
    digests
        .filter(|text| Digest::parse(text).is_ok())
        .take(MAX_PARENTS)
        .map(str::to_owned)
        .collect()
}

/// Publishes what lies in the staging folder.
pub(crate) fn publish(publication: &Publication<'_>) -> Result<(), TaskError> {
    let Publication {
        layout,
        digest,
        manifest,
        watch,
    } = publication;
    let staging = layout.staging(digest);
    let listed: BTreeSet<&str> = manifest
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    tidy(&staging, "", &listed)?;
    for path in &listed {
        watch.check()?;
        sync_file(&staging.join(path))?;
    }
    watch.passed(&Step::FilesSynced)?;

    let mut text = serde_json::to_vec_pretty(manifest).unwrap_or_default();
    text.push(b'\n');
    let path = staging.join(MANIFEST);
    files::write_whole(&path, &text, FILE_MODE)
        .map_err(|source| TaskError::io("write", path, source))?;
    for folder in folders(&listed) {
        sync_folder(&staging.join(folder))?;
    }
    sync_folder(&staging)?;
    watch.passed(&Step::ManifestSynced)?;

    put_in_place(publication, &staging)
}

/// Step 8.
fn put_in_place(publication: &Publication<'_>, staging: &Path) -> Result<(), TaskError> {
    let Publication {
        layout,
        digest,
        watch,
        ..
    } = publication;
    let target = layout.published(digest);
    let failed = |source: io::Error| TaskError::io("publish", target.clone(), source);
    if fs::symlink_metadata(&target).is_err() {
        fs::rename(staging, &target).map_err(failed)?;
        watch.passed(&Step::Renamed)?;
        sync_folder(layout.root())?;
        return watch.passed(&Step::Published);
    }
    match renameat_with(CWD, staging, CWD, &target, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        // File systems that cannot exchange. For a moment the name is free: readers try again.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            prune::discard(layout, &target, digest)?;
            watch.passed(&Step::OldMoved)?;
            fs::rename(staging, &target).map_err(failed)?;
        }
        Err(errno) => return Err(failed(errno.into())),
    }
    watch.passed(&Step::Renamed)?;
    sync_folder(layout.root())?;
    watch.passed(&Step::Published)?;
    // After an exchange the old folder is where the new one was made. Servers that run keep its files open.
    prune::discard(layout, staging, digest)?;
    watch.passed(&Step::OldTrashed)?;
    prune::empty_trash(layout, watch)
}

/// Hashes the files of a published version and puts the good ones into the staging folder, as links where the file system
/// has them; their names.
pub(crate) fn link_good(
    published: &Path,
    listing: &Listing,
    staging: &Path,
    watch: &Watch,
) -> Result<BTreeSet<String>, TaskError> {
    let mut good = BTreeSet::new();
    for file in &listing.files {
        watch.file(&file.path);
        // Links, devices and whatever else should not be there are as bad as wrong bytes.
        let Ok(Some(mut opened)) = open_inside(published, &file.path) else {
            continue;
        };
        let (from, to) = (published.join(&file.path), staging.join(&file.path));
        match hash_file(&mut opened, &from, watch) {
            Ok((sha256, size)) if sha256 == file.sha256 && size == file.size => {}
            // A disk that cannot be read is what repair is for.
            Ok(_) | Err(TaskError::Io { .. }) => continue,
            Err(error) => return Err(error),
        }
        if let Some(parent) = to.parent() {
            make_folder(parent)?;
        }
        remove(&to)?;
        if fs::hard_link(&from, &to).is_err() {
            // Hashed again where it is brought: a copy may go wrong.
            fs::copy(&from, &to).map_err(|source| TaskError::io("write", &to, source))?;
            fs::set_permissions(&to, Permissions::from_mode(0o644))
                .map_err(|source| TaskError::io("write", &to, source))?;
            continue;
        }
        good.insert(file.path.clone());
    }
    Ok(good)
}

/// Removes what a version does not list: leftovers of earlier runs.
fn tidy(staging: &Path, below: &str, listed: &BTreeSet<&str>) -> Result<(), TaskError> {
    let folder = staging.join(below);
    let failed = |source| TaskError::io("read", &folder, source);
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        let is_folder = entry.file_type().map_err(failed)?.is_dir();
        let holds_some = listed
            .iter()
            .any(|file| file.starts_with(&path) && file[path.len()..].starts_with('/'));
        if is_folder && holds_some {
            tidy(staging, &path, listed)?;
        } else if is_folder || !listed.contains(path.as_str()) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Every folder that holds a file, inner ones first.
fn folders<'a>(listed: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = listed
        .iter()
        .flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at]))
        .collect();
    all.sort_by_key(|path| std::cmp::Reverse(path.matches('/').count()));
    all.dedup();
    all
}

fn sync_file(path: &Path) -> Result<(), TaskError> {
    let failed = |source| TaskError::io("sync", path, source);
    let file = File::open(path).map_err(failed)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))
        .map_err(failed)?;
    file.sync_all().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_go_and_files_stay() {
        let base = tempfile::tempdir().unwrap();
        let at = |path: &str| base.path().join(path);
        for folder in ["a/b", "c", "model.safetensors"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in [
            "a/x",
            "a/b/y",
            "a/b/z",
            "c/x",
            "ab",
            ".relay-manifest.json.1-0.tmp",
        ] {
            fs::write(at(file), "").unwrap();
        }
        let listed = ["a/x", "a/b/y", "model.safetensors"].into_iter().collect();
        tidy(base.path(), "", &listed).unwrap();
        for (path, stays) in [
            ("a/x", true),
            ("a/b/y", true),
            ("a/b/z", false),
            ("c", false),
            ("ab", false),
            (".relay-manifest.json.1-0.tmp", false),
            // A folder where a file belongs.
            ("model.safetensors", false),
        ] {
            assert_eq!(at(path).exists(), stays, "{path}");
        }
    }

    #[test]
    fn inner_folders_come_first() {
        let listed = ["a/b/c/x", "a/b/y", "a/z", "q"].into_iter().collect();
        assert_eq!(folders(&listed), ["a/b/c", "a/b", "a"]);
    }

    #[test]
    fn parents_are_digests() {
        let digest = format!("sha256:{}", "1".repeat(64));
        let mut more = serde_json::Map::new();
        more.insert(
            "parents".to_owned(),
            serde_json::json!([digest, "local-1", 5]),
        );
        let manifest = Manifest {
            files: vec![],
            digest: String::new(),
            contract: None,
            probes: vec![],
            more,
        };
        assert_eq!(parents(&manifest), [digest]);
    }
}
