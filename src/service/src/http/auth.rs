//! Bearer tokens. A token file has lines `<tenant> <token>`; it is checked when it is read and read again when it
//! changes. Tokens are kept as SHA-256 digests and compared in constant time, so neither memory dumps nor answer times
//! help to guess one.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::hint::black_box;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use api::problem::Slug;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use files::TextFile;
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use crate::problem::Failure;
use crate::runtime::Shutdown;
use crate::telemetry::RepeatedError;

/// Tenant of requests where no token is demanded.
pub const LOCAL_TENANT: &str = "local";

/// How often the file is looked at. Far below the 60 s within which a rotated token must work.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Largest token file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Shortest token, in bytes: 16 random bytes in base64 or hex are longer.
const MIN_TOKEN_BYTES: usize = 16;

/// Longest tenant name, in bytes.
const MAX_TENANT_BYTES: usize = 63;

/// Who a request is answered for; a request extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant(pub Arc<str>);

/// Who may call.
#[derive(Debug)]
pub enum Authority {
    /// Everybody who can connect: only for loopback. Any bearer is accepted.
    Open,
    /// Who has a token of the file.
    Tokens(TokenFile),
}

impl Authority {
    fn tenant(&self, headers: &HeaderMap) -> Result<Tenant, Failure> {
        match self {
            Self::Open => Ok(Tenant(LOCAL_TENANT.into())),
            Self::Tokens(file) => file.authenticate(headers),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

pub(super) async fn authenticate(
    State(authority): State<Arc<Authority>>,
    mut request: Request,
    next: Next,
) -> Response {
    match authority.tenant(request.headers()) {
        Ok(tenant) => {
            request.extensions_mut().insert(tenant);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// A token file cannot be used. Messages name lines, never tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("cannot read token file {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: files::ReadError,
    },
    /// Others may read or change it.
    #[error("token file {} has mode {mode:04o}, expected 0600", path.display())]
    TooOpen {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A line is wrong.
    #[error("token file {} line {line}: {problem}", path.display())]
    BadLine {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// It has no token at all.
    #[error("token file {} holds no token", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
}

struct Entry {
    tenant: Tenant,
    digest: [u8; 32],
}

/// What tells one version of the file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

struct Loaded {
    entries: Vec<Entry>,
    version: Version,
}

/// The tokens of a file, as they were when it was last read whole.
pub struct TokenFile {
    path: PathBuf,
    loaded: RwLock<Arc<Loaded>>,
}

impl std::fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl TokenFile {
    /// Reads the file.
    ///
    /// # Errors
    /// When it cannot be read, is open to others, or has a line that is not `<tenant> <token>`.
    pub fn open(path: &Path) -> Result<Self, TokenError> {
        let loaded = load(path)?;
        Ok(Self {
            path: path.to_owned(),
            loaded: RwLock::new(Arc::new(loaded)),
        })
    }

    /// Who sends these headers, by the bearer token in them.
    ///
    /// # Errors
    /// The problem to answer with where there is none, or one that is not in the file.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Tenant, Failure> {
        let refused = |detail: &'static str| Failure::new(Slug::Unauthorized, detail);
        let token = bearer(headers).ok_or_else(|| refused("the request has no bearer token"))?;
        let tenant = self.tenant_of(token);
        tenant.ok_or_else(|| refused("the bearer token is not known"))
    }

    /// The tenant a token belongs to. Takes the same time for every token.
    fn tenant_of(&self, token: &[u8]) -> Option<Tenant> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let loaded = self.snapshot();
        let mut found = None;
        for entry in &loaded.entries {
            if black_box(equal(&entry.digest, &digest)) {
                found = Some(&entry.tenant);
            }
        }
        found.cloned()
    }

    fn snapshot(&self) -> Arc<Loaded> {
        self.loaded
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads the file again if it changed since it was read. Whether it did.
    ///
    /// # Errors
    /// Those of [`TokenFile::open`]; the tokens read before stay in force.
    pub fn refresh(&self) -> Result<bool, TokenError> {
        let metadata = fs::metadata(&self.path).map_err(|source| TokenError::Unreadable {
            path: self.path.clone(),
            source: source.into(),
        })?;
        if Version::of(&metadata) == self.snapshot().version {
            return Ok(false);
        }
        let fresh = Arc::new(load(&self.path)?);
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(true)
    }

    /// Keeps the tokens up to date until the process drains.
    pub async fn follow(&self, errors: &RepeatedError, shutdown: &Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.draining() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            match self.refresh() {
                Ok(changed) => {
                    if let Some(count) = errors.recovered() {
                        tracing::info!(path = %self.path.display(), count, "token file is readable again");
                    }
                    if changed {
                        tracing::info!(path = %self.path.display(), "token file read again");
                    }
                }
                Err(error) => {
                    if let Some(count) = errors.occurred() {
                        tracing::error!(%error, count, "token file cannot be used; the tokens read before stay in force");
                    }
                }
            }
        }
    }
}

/// Every byte is looked at, whatever the first ones are.
fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter()
        .zip(b)
        .fold(0_u8, |differences, (a, b)| differences | (a ^ b))
        == 0
}

fn load(path: &Path) -> Result<Loaded, TokenError> {
    let TextFile { text, metadata } =
        files::read_text(path, MAX_FILE_BYTES).map_err(|source| TokenError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
    if let Some(mode) = files::exposed_mode(&metadata) {
        return Err(TokenError::TooOpen {
            path: path.to_owned(),
            mode,
        });
    }
    let entries = parse(&text).map_err(|(line, problem)| match line {
        0 => TokenError::Empty {
            path: path.to_owned(),
        },
        _ => TokenError::BadLine {
            path: path.to_owned(),
            line,
            problem,
        },
    })?;
    Ok(Loaded {
        entries,
        version: Version::of(&metadata),
    })
}

/// Entries of a token file, or the line (0: the whole file) and what is wrong with it.
fn parse(text: &str) -> Result<Vec<Entry>, (usize, &'static str)> {
    let mut entries = Vec::new();
    let mut digests = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = parse_line(line).map_err(|problem| (index + 1, problem))?;
        if !digests.insert(entry.digest) {
            return Err((index + 1, "the same token stands on an earlier line"));
        }
        entries.push(entry);
    }
    if entries.is_empty() {
        Err((0, "no token"))
    } else {
        Ok(entries)
    }
}

fn parse_line(line: &str) -> Result<Entry, &'static str> {
    let mut words = line.split_whitespace();
    let (Some(tenant), Some(token), None) = (words.next(), words.next(), words.next()) else {
        return Err("expected `<tenant> <token>`");
    };
    let tenant_ok = tenant.len() <= MAX_TENANT_BYTES
        && tenant
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !tenant_ok {
        return Err("a tenant is 1 to 63 letters, digits, `-`, `_` or `.`");
    }
    if token.len() < MIN_TOKEN_BYTES {
        return Err("a token has at least 16 characters");
    }
    Ok(Entry {
        tenant: Tenant(tenant.into()),
        digest: Sha256::digest(token.as_bytes()).into(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn tenant(authority: &Authority, header: Option<&str>) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        if let Some(value) = header {
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        }
        authority
            .tenant(&headers)
            .map(|tenant| tenant.0.to_string())
            .map_err(|failure| failure.problem().detail.clone())
    }

    #[test]
    fn reads_lines_and_names_the_bad_one() {
        for (name, text, expected) in [
            (
                "two tenants",
                "# ours\nred  0123456789abcdef\n\nblue fedcba9876543210\n",
                Ok(2),
            ),
            ("one word", "red\n", Err((1, "expected `<tenant> <token>`"))),
            (
                "three words",
                "\nred 0123456789abcdef x\n",
                Err((2, "expected `<tenant> <token>`")),
            ),
            (
                "short token",
                "red 0123456789abcde",
                Err((1, "a token has at least 16 characters")),
            ),
            (
                "odd tenant",
                "r/d 0123456789abcdef",
                Err((1, "a tenant is 1 to 63 letters, digits, `-`, `_` or `.`")),
            ),
            (
                "one token twice",
                "red 0123456789abcdef\nblue 0123456789abcdef",
                Err((2, "the same token stands on an earlier line")),
            ),
            ("nothing", "# nobody\n", Err((0, "no token"))),
        ] {
            assert_eq!(parse(text).map(|entries| entries.len()), expected, "{name}");
        }
    }

    #[test]
    fn finds_the_tenant_of_a_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        write(
            &path,
            "red 0123456789abcdef\nblue fedcba9876543210\nred aaaaaaaaaaaaaaaa\n",
            0o600,
        );
        let authority = Authority::Tokens(TokenFile::open(&path).unwrap());
        let unknown = || Err("the bearer token is not known".to_owned());
        for (name, header, expected) in [
            (
                "first",
                Some("Bearer 0123456789abcdef"),
                Ok("red".to_owned()),
            ),
            (
                "second",
                Some("Bearer fedcba9876543210"),
                Ok("blue".to_owned()),
            ),
            (
                "second of a tenant",
                Some("Bearer aaaaaaaaaaaaaaaa"),
                Ok("red".to_owned()),
            ),
            (
                "scheme in lower case",
                Some("bearer 0123456789abcdef"),
                Ok("red".to_owned()),
            ),
            ("unknown", Some("Bearer 0123456789abcdeX"), unknown()),
            ("prefix", Some("Bearer 0123456789abcde"), unknown()),
            ("empty", Some("Bearer "), unknown()),
            (
                "other scheme",
                Some("Basic 0123456789abcdef"),
                Err("the request has no bearer token".to_owned()),
            ),
            (
                "none",
                None,
                Err("the request has no bearer token".to_owned()),
            ),
        ] {
            assert_eq!(tenant(&authority, header), expected, "{name}");
        }
        assert_eq!(tenant(&Authority::Open, None), Ok(LOCAL_TENANT.to_owned()));
    }

    #[test]
    fn refuses_a_file_that_others_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        for (mode, good) in [
            (0o600, true),
            (0o400, true),
            (0o440, true),
            (0o644, false),
            (0o604, false),
            (0o620, false),
        ] {
            let _ = fs::remove_file(&path);
            write(&path, "red 0123456789abcdef\n", mode);
            assert_eq!(TokenFile::open(&path).is_ok(), good, "{mode:o}");
        }
        assert!(matches!(
            TokenFile::open(&folder.path().join("none")),
            Err(TokenError::Unreadable { .. })
        ));
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_broken_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        write(&path, "red 0123456789abcdef\n", 0o600);
        let file = TokenFile::open(&path).unwrap();
        assert!(!file.refresh().unwrap(), "nothing changed");
        write(
            &path,
            "red 0123456789abcdef\nblue fedcba9876543210\n",
            0o600,
        );
        assert!(file.refresh().unwrap());
        assert!(file.tenant_of(b"fedcba9876543210").is_some());
        write(&path, "what is this\nfile\n", 0o600);
        assert!(file.refresh().is_err());
        assert!(
            file.tenant_of(b"fedcba9876543210").is_some(),
            "the tokens read before stay in force"
        );
    }
}
