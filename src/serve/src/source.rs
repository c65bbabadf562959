//! From a configured source to a folder on this machine (wire.md 3): an existing directory, or a snapshot in the local
//! Hugging Face cache. Nothing is downloaded.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a checkpoint comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// A directory or a repository.
    One(String),
    /// A folder of a directory or of a repository.
    Folder(String, String),
}

impl Source {
    /// `repo` of replies: the source as configured, `repo/folder` for pairs.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::One(repository) => repository.clone(),
            Self::Folder(repository, folder) => format!("{repository}/{folder}"),
        }
    }

    const fn parts(&self) -> (&String, Option<&String>) {
        match self {
            Self::One(repository) => (repository, None),
            Self::Folder(repository, folder) => (repository, Some(folder)),
        }
    }
}

/// Where this process looks for checkpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// `HOME`, for `~`.
    pub home: Option<PathBuf>,
    /// Cache of repositories: `HF_HUB_CACHE`, else `HF_HOME/hub`, else `~/.cache/huggingface/hub`.
    pub cache: Option<PathBuf>,
    /// `LAYA_REVISION`: a commit or a name; none: `main`.
    pub revision: Option<String>,
}

impl Places {
    /// From variables of the environment.
    #[must_use]
    pub fn from_environment(
        get: impl Fn(&str) -> Option<String>,
        revision: Option<String>,
    ) -> Self {
        let path = |name: &str| {
            get(name)
                .filter(|value| !value.trim().is_empty())
                .map(PathBuf::from)
        };
        let home = path("HOME");
        let under_home = || {
            home.as_ref()
                .map(|home| home.join(".cache/huggingface/hub"))
        };
        let cache = path("HF_HUB_CACHE")
            .or_else(|| path("HF_HOME").map(|home| home.join("hub")))
            .or_else(under_home);
        Self {
            home,
            cache,
            revision,
        }
    }
}

/// A folder with a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The folder.
    pub folder: PathBuf,
    /// Links of it may lead anywhere below this folder; none: nowhere outside.
    pub root: Option<PathBuf>,
    /// Commit, for a snapshot of the cache.
    pub commit: Option<String>,
}

/// There is no such checkpoint here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct NotHere {
    /// The source as configured.
    pub origin: String,
    /// Revision that was looked for.
    pub revision: String,
    /// The command that fetches it; none where nothing could, because the source can only be a directory.
    pub command: Option<String>,
}

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            Some(command) => write!(
                f,
                "'{}' is no directory and revision '{}' of it is not in the local cache; fetch it with: {command}",
                self.origin, self.revision
            ),
            None => write!(f, "'{}' is no directory", self.origin),
        }
    }
}

/// Commits of the published repositories that were reviewed (`LAYA_REVISION=reviewed`), as in Laya 0.4.15.
const REVIEWED: [(&str, &str); 3] = [
    (
        "convaiinnovations/laya",
        "55cf4c4ebb4ebe31b2550e8bdf3bd21b99753851",
    ),
    (
        "convaiinnovations/laya-multilingual",
        "e4e9ddf21a7b1903b7acffd8814ad4307bf63a67",
    ),
    (
        "convaiinnovations/laya-typed-decisions",
        "1a793eb568e6718f15941d08f85432581df534e3",
    ),
];

/// Finds the folder of a source.
///
/// # Errors
/// [`NotHere`], with the command that fetches it.
pub fn find(source: &Source, places: &Places) -> Result<Found, NotHere> {
    let (repository, folder) = source.parts();
    let expanded = expand_home(repository, places.home.as_deref());
    if expanded.is_dir() {
        let inner = folder.map_or_else(|| expanded.clone(), |folder| expanded.join(folder));
        if !inner.is_dir() {
            return Err(NotHere {
                origin: source.label(),
                revision: String::new(),
                command: None,
            });
        }
        let root = folder.map(|_| expanded);
        return Ok(Found {
            folder: inner,
            root,
            commit: None,
        });
    }
    let revision = revision_of(repository, places.revision.as_deref());
    let not_here = || NotHere {
        origin: source.label(),
        revision: revision.clone(),
        command: is_repository(repository)
            .then(|| format!("hf download {repository} --revision {revision}")),
    };
    if !is_repository(repository) {
        return Err(not_here());
    }
    let cache = places.cache.as_ref().ok_or_else(not_here)?;
    let root = cache.join(format!("models--{}", repository.replace('/', "--")));
    let commit = commit_of(&root, &revision).ok_or_else(not_here)?;
    let snapshot = root.join("snapshots").join(&commit);
    let inner = folder.map_or_else(|| snapshot.clone(), |folder| snapshot.join(folder));
    if !inner.is_dir() {
        return Err(not_here());
    }
    Ok(Found {
        folder: inner,
        root: Some(root),
        commit: Some(commit),
    })
}

fn expand_home(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(path),
    }
}

fn revision_of(repository: &str, wanted: Option<&str>) -> String {
    match wanted {
        Some("reviewed") => REVIEWED
            .iter()
            .find(|(known, _)| *known == repository)
            .map_or("reviewed", |(_, commit)| commit)
            .to_owned(),
        Some(revision) => revision.to_owned(),
        None => "main".to_owned(),
    }
}

/// `owner/name`, each part of the letters that a repository may have.
fn is_repository(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    matches!(text.split_once('/'), Some((owner, name)) if part(owner) && part(name))
}

/// The commit of a revision: itself, or what the reference file of that name says.
fn commit_of(root: &Path, revision: &str) -> Option<String> {
    let plain = |text: &str| {
        !text.is_empty()
            && !text.starts_with('.')
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    if !plain(revision) {
        return None;
    }
    if root.join("snapshots").join(revision).is_dir() {
        return Some(revision.to_owned());
    }
    /// A commit has 40 letters; a file much longer is none.
    const LONGEST: u64 = 256;
    let reference = root.join("refs").join(revision);
    let short = reference
        .metadata()
        .is_ok_and(|file| file.is_file() && file.len() <= LONGEST);
    let text = short
        .then(|| std::fs::read_to_string(reference).ok())
        .flatten()?;
    let commit = text.trim();
    plain(commit).then(|| commit.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn finds_directories_and_snapshots() {
        let base = tempfile::tempdir().unwrap();
        let at = |path: &str| base.path().join(path);
        for folder in [
            "plain/sub",
            "hub/models--o--n/snapshots/abc/sub",
            "hub/models--o--n/snapshots/def",
            "hub/models--o--n/refs",
        ] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("hub/models--o--n/refs/main"), "abc\n").unwrap();
        fs::write(at("hub/models--o--n/refs/bad"), "../../x").unwrap();
        let places = |revision: Option<&str>| Places {
            home: Some(base.path().to_owned()),
            cache: Some(at("hub")),
            revision: revision.map(str::to_owned),
        };
        let one = |text: &str| Source::One(text.to_owned());
        let pair = |text: &str| Source::Folder(text.to_owned(), "sub".to_owned());
        let plain = at("plain").display().to_string();
        type Row<'a> = (
            &'a str,
            Source,
            Option<&'a str>,
            Option<(&'a str, Option<&'a str>)>,
        );
        let rows: [Row<'_>; 9] = [
            ("directory", one(&plain), None, Some(("plain", None))),
            ("home", one("~/plain"), None, Some(("plain", None))),
            (
                "folder of a directory",
                pair("~/plain"),
                None,
                Some(("plain/sub", None)),
            ),
            (
                "main",
                one("o/n"),
                None,
                Some(("hub/models--o--n/snapshots/abc", Some("abc"))),
            ),
            (
                "folder of main",
                pair("o/n"),
                None,
                Some(("hub/models--o--n/snapshots/abc/sub", Some("abc"))),
            ),
            (
                "commit",
                one("o/n"),
                Some("def"),
                Some(("hub/models--o--n/snapshots/def", Some("def"))),
            ),
            ("commit without that folder", pair("o/n"), Some("def"), None),
            ("reference that climbs", one("o/n"), Some("bad"), None),
            ("revision that climbs", one("o/n"), Some("../refs"), None),
        ];
        for (name, source, revision, expected) in rows {
            let found = find(&source, &places(revision)).ok();
            let found = found.map(|found| (found.folder, found.commit));
            let expected = expected.map(|(folder, commit)| (at(folder), commit.map(str::to_owned)));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn says_how_to_fetch_what_can_be_fetched() {
        let missing = |source: &str| {
            find(&Source::One(source.to_owned()), &Places::default())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            missing("o/n"),
            "'o/n' is no directory and revision 'main' of it is not in the local cache; fetch it with: hf download o/n \
             --revision main"
        );
        assert_eq!(missing("/none"), "'/none' is no directory");
    }
}
