//! A small OCI registry on 127.0.0.1, which engines accept without TLS: any blobs and manifests, by digest and by tag, with
//! the dance for a token where one is demanded. It stores what a test gives it in process; nothing is pushed over HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::Seen;
use crate::site::{Content, Refusal, Site, SiteFault};

/// Media type of an OCI image manifest.
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of the empty configuration of an artifact.
const EMPTY_CONFIG: &str = "application/vnd.oci.empty.v1+json";
/// What the registry gives out as token.
const TOKEN: &str = "token-of-the-registry";

/// (repository, digest or tag) → media type, bytes.
type Manifests = BTreeMap<(String, String), (String, Arc<Vec<u8>>)>;

#[derive(Debug, Default)]
struct Shelf {
    blobs: BTreeMap<String, Arc<Vec<u8>>>,
    manifests: Manifests,
    login: Option<(String, String)>,
    address: Option<SocketAddr>,
}

/// A registry. Stops when it is dropped.
#[derive(Debug)]
pub struct Registry {
    site: Site,
    shelf: Arc<Mutex<Shelf>>,
}

impl Registry {
    /// Starts on a free port, empty.
    ///
    /// # Panics
    /// When the system gives no port.
    #[must_use]
    pub fn start() -> Self {
        let shelf = Arc::new(Mutex::new(Shelf::default()));
        let held = Arc::clone(&shelf);
        let site = Site::start(Arc::new(move |seen: &Seen| answer(&locked(&held), seen)));
        locked(&shelf).address = Some(site.address());
        Self { site, shelf }
    }

    /// Where it listens: `127.0.0.1:<port>`, the beginning of references.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.site.address()
    }

    /// Stores a blob; its digest.
    pub fn put_blob(&self, content: impl Into<Vec<u8>>) -> String {
        let content = content.into();
        let digest = digest_of(&content);
        locked(&self.shelf)
            .blobs
            .insert(digest.clone(), Arc::new(content));
        digest
    }

    /// Stores a manifest under its digest and under a tag where one is given; its digest.
    pub fn put_manifest(
        &self,
        repository: &str,
        tag: Option<&str>,
        media_type: &str,
        content: impl Into<Vec<u8>>,
    ) -> String {
        let content = Arc::new(content.into());
        let digest = digest_of(&content);
        let mut shelf = locked(&self.shelf);
        for name in [Some(digest.as_str()), tag].into_iter().flatten() {
            let key = (repository.to_owned(), name.to_owned());
            let value = (media_type.to_owned(), Arc::clone(&content));
            shelf.manifests.insert(key, value);
        }
        digest
    }

    /// Stores an artifact whose layers are plain files with titles; its reference by digest.
    #[must_use]
    pub fn put_artifact(&self, repository: &str, files: &[(String, Vec<u8>)]) -> String {
        let layers = files.iter().map(|(title, content)| {
            json!({
                "mediaType": "application/octet-stream", "digest": self.put_blob(content.clone()), "size": content.len(),
                "annotations": {"org.opencontainers.image.title": title},
            })
        });
        let layers: Vec<_> = layers.collect();
        self.put_layers(repository, &layers)
    }

    /// Stores an artifact with these layer descriptors, whatever they say; its reference by digest.
    #[must_use]
    pub fn put_layers(&self, repository: &str, layers: &[serde_json::Value]) -> String {
        let config = self.put_blob("{}");
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": "application/vnd.relay.checkpoint",
            "config": {"mediaType": EMPTY_CONFIG, "digest": config, "size": 2}, "layers": layers,
        });
        let digest = self.put_manifest(repository, None, OCI_MANIFEST, manifest.to_string());
        format!("{}/{repository}@{digest}", self.address())
    }

    /// Demands a token from now on, which is given out for this user and password.
    pub fn demand(&self, user: &str, password: &str) {
        locked(&self.shelf).login = Some((user.to_owned(), password.to_owned()));
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
}

fn locked(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

fn digest_of(content: &[u8]) -> String {
    use std::fmt::Write as _;
    let digest = Sha256::digest(content);
    digest.iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn answer(shelf: &Shelf, seen: &Seen) -> Result<Content, Refusal> {
    let target = seen.target().to_owned();
    let path = target.split('?').next().unwrap_or_default();
    if path == "/token" {
        return token(shelf, seen);
    }
    if shelf.login.is_some() && seen.header("authorization") != Some(&format!("Bearer {TOKEN}")) {
        let address = shelf.address.map(|address| address.to_string());
        let challenge = format!(
            r#"Bearer realm="http://{}/token",service="testkit",scope="{}""#,
            address.unwrap_or_default(),
            scope(path)
        );
        return Err(refused(
            401,
            vec![("www-authenticate", challenge)],
            "UNAUTHORIZED",
        ));
    }
    if path == "/v2/" || path == "/v2" {
        return Ok(content("application/json", Arc::new(b"{}".to_vec()), None));
    }
    let unknown = || refused(404, Vec::new(), "NAME_UNKNOWN");
    let rest = path.strip_prefix("/v2/").ok_or_else(unknown)?;
    if let Some((_, digest)) = rest.rsplit_once("/blobs/") {
        let bytes = shelf.blobs.get(digest);
        let bytes = bytes.ok_or_else(|| refused(404, Vec::new(), "BLOB_UNKNOWN"))?;
        return Ok(content(
            "application/octet-stream",
            Arc::clone(bytes),
            Some(digest.to_owned()),
        ));
    }
    let (repository, name) = rest.rsplit_once("/manifests/").ok_or_else(unknown)?;
    let key = (repository.to_owned(), name.to_owned());
    let (media_type, bytes) = shelf
        .manifests
        .get(&key)
        .ok_or_else(|| refused(404, Vec::new(), "MANIFEST_UNKNOWN"))?;
    Ok(content(
        media_type,
        Arc::clone(bytes),
        Some(digest_of(bytes)),
    ))
}

fn token(shelf: &Shelf, seen: &Seen) -> Result<Content, Refusal> {
    let login = shelf.login.as_ref().map(|(user, password)| {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        format!("Basic {pair}")
    });
    if login.is_some() && seen.header("authorization") != login.as_deref() {
        return Err(refused(401, Vec::new(), "UNAUTHORIZED"));
    }
    let body = json!({"token": TOKEN, "expires_in": 300}).to_string();
    Ok(content(
        "application/json",
        Arc::new(body.into_bytes()),
        None,
    ))
}

/// The scope a path needs.
fn scope(path: &str) -> String {
    let rest = path.trim_start_matches("/v2/");
    let repository = rest
        .split("/blobs/")
        .next()
        .and_then(|rest| rest.split("/manifests/").next())
        .unwrap_or_default();
    format!("repository:{repository}:pull")
}

fn content(media_type: &str, bytes: Arc<Vec<u8>>, digest: Option<String>) -> Content {
    let mut headers = vec![("docker-distribution-api-version", "registry/2.0".to_owned())];
    headers.extend(digest.map(|digest| ("docker-content-digest", digest)));
    Content {
        bytes,
        media_type: media_type.to_owned(),
        headers,
    }
}

fn refused(status: u16, headers: Vec<(&'static str, String)>, code: &str) -> Refusal {
    Refusal {
        status,
        headers,
        body: json!({"errors": [{"code": code, "message": code}]}).to_string(),
    }
}
