//! What lies in a volume, for people and for `status`. A look without the lock: what changes meanwhile may be missed.

use std::io;
use std::path::Path;

use crate::Digest;
use crate::layout::Layout;
use crate::{prune, space};

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Versions, by digest.
    pub published: Vec<Published>,
    /// Names that the layout does not know; left alone.
    pub unknown: Vec<String>,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Bytes of the file system.
    pub total_bytes: u64,
}

/// A version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its digest, as its folder's name says.
    pub digest: Digest,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// Whether it is marked so that no prune takes it.
    pub keep: bool,
    /// What is wrong with it, as far as manifest and sizes tell.
    pub damage: Option<String>,
}

/// Looks at a volume; one that does not exist yet is empty.
///
/// # Errors
/// When the root cannot be read.
pub fn view(models: &Path) -> io::Result<View> {
    let layout = Layout::new(models);
    let (versions, unknown) = match layout.entries() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), Vec::new()),
        Err(error) => return Err(error),
    };
    let published = versions
        .into_iter()
        .map(|digest| Published {
            size_bytes: prune::size(&layout.published(&digest)),
            keep: layout.keep_mark(&digest).exists(),
            damage: layout.look(&digest).and_then(Result::err),
            digest,
        })
        .collect();
    let (free_bytes, total_bytes) = room(models)?;
    Ok(View {
        published,
        unknown,
        free_bytes,
        total_bytes,
    })
}

/// Free and all bytes of the file system that a volume lies on, or will lie on. Reads no directory.
///
/// # Errors
/// When the system does not say.
pub fn room(models: &Path) -> io::Result<(u64, u64)> {
    let nearest = models
        .ancestors()
        .find(|folder| folder.is_dir())
        .unwrap_or(models);
    space::totals(nearest)
}
