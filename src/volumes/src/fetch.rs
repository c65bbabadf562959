//! `fetch`: the steps of control-plane 11, in their order. Nothing is remembered between runs but what lies in the volume.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use laya::checkpoint::Manifest;

use crate::layout::{Layout, make_folder};
use crate::meaning::{self, Understood};
use crate::part::{bring, remove};
use crate::publish::{self, Publication};
use crate::request::{Existing, FetchRequest, Fetched, Source};
use crate::run::{Phase, Run, Step};
use crate::source::{self, Listing, Origin};
use crate::space::{self, Room};
use crate::watch::Watch;
use crate::{Digest, TaskError, TaskExit, prune, verify};

/// Brings a checkpoint into a volume and publishes it, or finds that it is there. Blocks for as long as that takes; ends
/// within a second of [`crate::Cancel::cancel`], except where the system itself does not return. Whatever ends it, the
/// volume is in a state that the same request goes on from, and nothing half-written has the name of a version.
///
/// # Errors
/// [`TaskError`]: what was attempted on what, with the word and the exit code of control-plane 13.
pub fn fetch(request: &FetchRequest, run: &Run) -> Result<Fetched, TaskError> {
    let watch = Watch::new(run, request.limits);
    watch.phase(Phase::Prepare, 0, 0);
    let layout = Layout::new(&request.models);
    let lock = layout.lock(&watch)?;
    layout.claim(request.store.as_deref())?;
    prune::empty_trash(&layout, &watch)?;
    watch.passed(&Step::Locked)?;
    let fetched = Fetch {
        request,
        layout: &layout,
        watch: &watch,
        notes: Vec::new(),
    }
    .run();
    drop(lock);
    fetched
}

struct Fetch<'a> {
    request: &'a FetchRequest,
    layout: &'a Layout,
    watch: &'a Arc<Watch>,
    notes: Vec<String>,
}

impl Fetch<'_> {
    fn run(self) -> Result<Fetched, TaskError> {
        // Before the source is asked, so that what is there needs no network.
        if let Some(digest) = &self.request.digest
            && let Some(manifest) = self.trusted(digest)
        {
            return self.present(digest, &manifest);
        }
        let request = self.request;
        let mut origin = source::origin(&request.source, request.credential.as_ref())?;
        let listing = Listing::new(origin.list(self.watch)?)?;
        if let Some(expected) = &request.digest
            && *expected != listing.digest
        {
            return Err(TaskError::DigestMismatch {
                what: "the checkpoint".to_owned(),
                expected: expected.to_string(),
                got: listing.digest.to_string(),
            });
        }
        let found = match request.existing {
            Existing::Trust => self.trusted(&listing.digest),
            // Only what is damaged is made anew: an exchange for nothing would lose what the manifest tells beside files.
            Existing::Repair => verify::proven(self.layout, &listing.digest, self.watch)?,
        };
        if let Some(manifest) = found {
            return self.present(&listing.digest, &manifest);
        }
        self.watch.passed(&Step::Looked)?;
        let staging = self.layout.staging(&listing.digest);
        let brought = self.bring(origin.as_mut(), &listing);
        if let Err(error) = &brought
            && is_left_for_nobody(&request.source, error.exit())
        {
            // Best effort: why it was refused is what matters, and the next fetch of it tidies up too.
            let _ = remove(&staging);
        }
        brought
    }

    /// The manifest of what is published, where it is taken as it is.
    fn trusted(&self, digest: &Digest) -> Option<Manifest> {
        match self.request.existing {
            Existing::Trust => self.layout.look(digest)?.ok(),
            Existing::Repair => None,
        }
    }

    fn present(mut self, digest: &Digest, manifest: &Manifest) -> Result<Fetched, TaskError> {
        self.watch.passed(&Step::Looked)?;
        // What an exchange left that died before it had tidied up.
        prune::discard(self.layout, &self.layout.staging(digest), digest)?;
        prune::empty_trash(self.layout, self.watch)?;
        let path = self.layout.published(digest);
        meaning::agrees(self.request.contract.as_ref(), manifest.contract.as_ref())?;
        let decisions = meaning::wording(&path);
        Ok(self.fetched(digest, path, manifest, decisions, true))
    }

    fn bring(mut self, origin: &mut dyn Origin, listing: &Listing) -> Result<Fetched, TaskError> {
        let (layout, watch) = (self.layout, self.watch);
        let staging = layout.staging(&listing.digest);
        make_folder(&staging)?;
        let good = self.mend(listing, &staging)?;
        self.make_room(listing, &staging)?;
        watch.passed(&Step::SpaceChecked)?;

        watch.phase(Phase::Fetch, here(listing, &staging), listing.size());
        for file in &listing.files {
            if !good.contains(&file.path) {
                bring(origin, file, &staging, watch)?;
            }
        }
        let told = source::read_manifest(origin, listing, watch)?;

        watch.phase(Phase::Publish, listing.size(), listing.size());
        let understood = meaning::understand(&staging, told.as_ref());
        if matches!(understood, Err(TaskError::BadCheckpoint { .. })) {
            // Whole and useless: no run will do better with it.
            remove(&staging)?;
        }
        let Understood {
            contract,
            decisions,
            notes,
        } = understood?;
        self.notes.extend(notes);
        meaning::agrees(self.request.contract.as_ref(), contract.as_ref())?;
        watch.passed(&Step::Understood)?;

        let manifest = publish::manifest(listing, contract, told);
        publish::publish(&Publication {
            layout,
            digest: &listing.digest,
            manifest: &manifest,
            watch,
        })?;
        let path = layout.published(&listing.digest);
        Ok(self.fetched(&listing.digest, path, &manifest, decisions, false))
    }

    /// Puts the good files of a version that is published already into the staging folder; their names.
    fn mend(&mut self, listing: &Listing, staging: &Path) -> Result<BTreeSet<String>, TaskError> {
        let published = self.layout.published(&listing.digest);
        match self.layout.look(&listing.digest) {
            None => return Ok(BTreeSet::new()),
            Some(Err(why)) => self.notes.push(format!("{}: {why}", listing.digest)),
            Some(Ok(_)) => {}
        }
        self.watch.phase(Phase::Verify, 0, listing.size());
        let good = publish::link_good(&published, listing, staging, self.watch)?;
        let bad: Vec<&str> = listing
            .files
            .iter()
            .map(|file| file.path.as_str())
            .filter(|path| !good.contains(*path))
            .collect();
        if !bad.is_empty() {
            self.notes
                .push(format!("fetched again: {}", bad.join(", ")));
        }
        Ok(good)
    }

    /// Step 3: there is room, after what may go went; or nothing is asked for.
    fn make_room(&self, listing: &Listing, staging: &Path) -> Result<(), TaskError> {
        let (mut staged, mut missing) = (0u64, 0u64);
        for file in &listing.files {
            match fs::symlink_metadata(staging.join(&file.path)) {
                // Blocks that were taken for it count as staged: they are not free any more.
                Ok(seen) => staged += seen.len().max(seen.blocks() * 512).min(file.size),
                Err(_) => missing += 1,
            }
        }
        let need = space::needed(listing.size(), staged, missing);
        let root = self.layout.root();
        let free = || {
            space::free(root).map_err(|source| TaskError::io("look at the space of", root, source))
        };
        let mut room: Room = free()?;
        for digest in &self.request.prunable {
            if room.holds(need) {
                break;
            }
            if *digest != listing.digest {
                prune::delete(self.layout, digest, self.watch)?;
                room = free()?;
            }
        }
        if room.holds(need) {
            return Ok(());
        }
        Err(TaskError::NoSpace {
            path: root.to_owned(),
            need_bytes: need.bytes,
            free_bytes: room.bytes,
            need_inodes: need.inodes,
            free_inodes: room.inodes,
        })
    }

    fn fetched(
        &mut self,
        digest: &Digest,
        path: PathBuf,
        manifest: &Manifest,
        decisions: Option<String>,
        present: bool,
    ) -> Fetched {
        Fetched {
            digest: digest.clone(),
            path,
            contract: manifest.contract.clone(),
            size_bytes: manifest.files.iter().map(|file| file.size).sum(),
            file_count: manifest.files.len() as u64,
            parents: publish::parents(manifest),
            present,
            decisions,
            probes: manifest.probes.clone(),
            notes: std::mem::take(&mut self.notes),
        }
    }
}

/// Whether what a fetch has staged is of no use once it ended so. Parts from elsewhere are gone on with; a copy of a folder
/// of this machine is made again in no time, and nobody may ever ask for one that was refused.
fn is_left_for_nobody(source: &Source, exit: TaskExit) -> bool {
    matches!(source, Source::Folder { .. }) && exit != TaskExit::Interrupted
}

/// Bytes of the parts that may be gone on with.
fn here(listing: &Listing, staging: &Path) -> u64 {
    let lengths = listing.files.iter().map(|file| {
        fs::symlink_metadata(staging.join(&file.path))
            .map_or(0, |seen| seen.len())
            .min(file.size)
    });
    lengths.sum()
}
