//! A file server on a loopback port that breaks as it is told: cuts streams, sends wrong bytes, is slow or silent, ignores
//! ranges, redirects, refuses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Seen;
use crate::site::{Content, Refusal, Site, SiteFault};

#[derive(Debug, Default)]
struct Shelf {
    files: BTreeMap<String, Arc<Vec<u8>>>,
    token: Option<String>,
}

/// A file server. Stops when it is dropped.
#[derive(Debug)]
pub struct FileServer {
    site: Site,
    shelf: Arc<Mutex<Shelf>>,
}

impl FileServer {
    /// Starts on a free port without any file.
    ///
    /// # Panics
    /// When the system gives no port.
    #[must_use]
    pub fn start() -> Self {
        let shelf = Arc::new(Mutex::new(Shelf::default()));
        let held = Arc::clone(&shelf);
        let site = Site::start(Arc::new(move |seen: &Seen| answer(&locked(&held), seen)));
        Self { site, shelf }
    }

    /// Has this content at a path without a slash at its beginning.
    pub fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        let content = Arc::new(content.into());
        locked(&self.shelf).files.insert(path.to_owned(), content);
    }

    /// Has every file of a folder, read now.
    ///
    /// # Panics
    /// When a file cannot be read.
    pub fn put_folder(&self, folder: &Path) {
        for path in files_below(folder) {
            let content = std::fs::read(folder.join(&path))
                .unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
            self.put(&path, content);
        }
    }

    /// Demands this bearer token from now on.
    pub fn demand(&self, token: &str) {
        locked(&self.shelf).token = Some(token.to_owned());
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.site.address()
    }

    /// Its base address, with a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.address())
    }

    /// From now on every request whose target holds `part` fails like this.
    pub fn fail(&self, part: &str, fault: SiteFault) {
        self.site.fail(part, fault);
    }

    /// The next request whose target holds `part` fails like this; more of them queue up.
    pub fn fail_next(&self, part: &str, fault: SiteFault) {
        self.site.fail_next(part, fault);
    }

    /// Nothing fails any more.
    pub fn heal(&self) {
        self.site.heal();
    }

    /// Requests so far, in order.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.site.seen()
    }

    /// Forgets them.
    pub fn forget(&self) {
        self.site.forget();
    }
}

fn locked(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(shelf: &Shelf, seen: &Seen) -> Result<Content, Refusal> {
    let refused = |status| Refusal {
        status,
        headers: Vec::new(),
        body: String::new(),
    };
    if let Some(token) = &shelf.token
        && seen.header("authorization") != Some(&format!("Bearer {token}"))
    {
        return Err(refused(401));
    }
    let path = seen.target().split('?').next().unwrap_or_default();
    let bytes = shelf.files.get(path.trim_start_matches('/'));
    let bytes = bytes.ok_or_else(|| refused(404))?;
    Ok(Content {
        bytes: Arc::clone(bytes),
        media_type: "application/octet-stream".to_owned(),
        headers: Vec::new(),
    })
}

/// Paths of all files below a folder, with `/`, in order.
pub(crate) fn files_below(folder: &Path) -> Vec<String> {
    fn walk(folder: &Path, below: &str, paths: &mut Vec<String>) {
        let entries = std::fs::read_dir(folder.join(below))
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if below.is_empty() {
                name
            } else {
                format!("{below}/{name}")
            };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                walk(folder, &path, paths);
            } else {
                paths.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    walk(folder, "", &mut paths);
    paths.sort();
    paths
}
