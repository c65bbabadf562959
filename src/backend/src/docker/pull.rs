//! Images: looked for by name or id, pulled as tasks of their own. A pull has 3,600 s, and 60 s without a byte; it can fail
//! inside an answer that began with 200, so every item of the stream is looked at.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::kinds::shared::SecretRef;
use api::reason::Reason;
use bollard::auth::DockerCredentials;
use bollard::errors::Error;
use bollard::models::{CreateImageInfo, ImageInspect};
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt;
use jiff::Timestamp;
use tokio::time::timeout;

use super::credentials::{self, for_registry};
use super::engine::{Facts, said};
use super::error::{advised, pull_reason};
use super::map::message;
use super::reference::{Reference, Remote};
use super::{Docker, Inner};
use crate::{BackendError, Hint, ImageSeen, ImageState, Owner};

/// Longest pull.
const TOTAL: Duration = Duration::from_secs(3600);
/// Longest silence in one.
const IDLE: Duration = Duration::from_secs(60);
/// Longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// Images that are remembered.
const MAX_PULLS: usize = 256;

/// A pull that runs or failed. One that succeeded is an image.
#[derive(Debug)]
struct Pull {
    state: ImageState,
    /// Those that failed in a row.
    failures: u32,
    /// It is not tried again before.
    until: Instant,
    /// Who waits for it.
    askers: HashSet<Owner>,
}

/// All pulls, by the image as it was asked for.
#[derive(Debug)]
pub(super) struct Pulls {
    pause: Duration,
    table: Mutex<BTreeMap<String, Pull>>,
}

impl Pulls {
    pub(super) const fn new(pause: Duration) -> Self {
        Self {
            pause,
            table: Mutex::new(BTreeMap::new()),
        }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Pull>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of an image that is not on the engine.
    fn state(&self, image: &str) -> ImageState {
        let table = self.table();
        table
            .get(image)
            .map_or(ImageState::Absent, |pull| pull.state.clone())
    }

    /// Whether a pull is to begin now; then it counts as running.
    fn begin(&self, image: &str, owner: &Owner) -> bool {
        let mut table = self.table();
        if table.len() >= MAX_PULLS && !table.contains_key(image) {
            // One that does not run; there are never so many that do.
            let idle = table
                .iter()
                .find(|(_, pull)| !matches!(pull.state, ImageState::Pulling { .. }))
                .map(|(image, _)| image.clone());
            if let Some(idle) = idle {
                table.remove(&idle);
            }
        }
        let pull = table.entry(image.to_owned()).or_insert_with(|| Pull {
            state: ImageState::Absent,
            failures: 0,
            until: Instant::now(),
            askers: HashSet::new(),
        });
        pull.askers.insert(owner.clone());
        let runs = matches!(pull.state, ImageState::Pulling { .. });
        if runs || Instant::now() < pull.until {
            return false;
        }
        pull.state = ImageState::Pulling { bytes: 0 };
        true
    }

    fn progress(&self, image: &str, bytes: u64) {
        if let Some(pull) = self.table().get_mut(image) {
            pull.state = ImageState::Pulling { bytes };
        }
    }

    /// It ended; who waited for it.
    fn end(&self, image: &str, failed: Option<(Reason, String)>) -> HashSet<Owner> {
        let mut table = self.table();
        let Some((reason, message)) = failed else {
            return table
                .remove(image)
                .map(|pull| pull.askers)
                .unwrap_or_default();
        };
        let Some(pull) = table.get_mut(image) else {
            return HashSet::new();
        };
        let pause = self.pause.saturating_mul(1 << pull.failures.min(16));
        pull.failures = pull.failures.saturating_add(1);
        pull.until = Instant::now() + pause.min(MAX_PAUSE);
        pull.state = ImageState::Failed {
            reason,
            message,
            at: Timestamp::now(),
        };
        std::mem::take(&mut pull.askers)
    }
}

impl Docker {
    /// An image is there, or its pull runs.
    pub(super) async fn ensure_image(
        &self,
        owner: &Owner,
        image: &str,
        pull_secrets: &[String],
    ) -> Result<(), BackendError> {
        let inner = &self.inner;
        let what = format!("bring image {image}");
        let reference = Reference::parse(image).map_err(|message| BackendError::Refused {
            what: what.clone(),
            reason: Reason::InvalidSpec,
            message,
        })?;
        if inner.find_image(image).await?.is_some() {
            return Ok(());
        }
        let Reference::Remote(remote) = reference else {
            return Err(BackendError::Refused {
                what,
                reason: Reason::ImageNotFound,
                message: "no image on the engine has this id, and an id cannot be pulled; build or load it, or name it with its registry"
                    .to_owned(),
            });
        };
        let credentials = inner.credentials(owner, &remote, pull_secrets)?;
        if inner.pulls.begin(image, owner) {
            let inner = inner.clone();
            let image = image.to_owned();
            self.spawn(async move { inner.pull(image, remote, credentials).await });
        }
        Ok(())
    }
}

impl Inner {
    pub(super) async fn find_image(
        &self,
        image: &str,
    ) -> Result<Option<ImageInspect>, BackendError> {
        let what = format!("inspect image {image}");
        self.engine
            .find(
                &what,
                |docker| async move { docker.inspect_image(image).await },
            )
            .await
    }

    /// What is known of an image. Who asks for one that comes is told when it is here.
    pub(super) async fn image_seen(
        &self,
        image: &str,
        facts: &Facts,
    ) -> Result<ImageSeen, BackendError> {
        let state = match self.find_image(image).await? {
            Some(found) => present(found, facts),
            None => self.pulls.state(image),
        };
        Ok(ImageSeen {
            name: image.to_owned(),
            state,
        })
    }

    fn credentials(
        &self,
        owner: &Owner,
        remote: &Remote,
        pull_secrets: &[String],
    ) -> Result<Option<DockerCredentials>, BackendError> {
        let missing = |name: &str, why: String| BackendError::Refused {
            what: format!("pull image {}", remote.name()),
            reason: Reason::SecretMissing,
            message: format!(
                "key {} of secret {name} cannot be used: {why}",
                credentials::KEY
            ),
        };
        let mut known = Vec::new();
        for name in pull_secrets {
            let reference = SecretRef {
                name: name.clone(),
                key: credentials::KEY.to_owned(),
            };
            let content =
                (self.secrets)(&owner.namespace, &reference).map_err(|why| missing(name, why))?;
            known.extend(credentials::read(&content).map_err(|why| missing(name, why))?);
        }
        known.extend(self.credentials.iter().cloned());
        Ok(for_registry(&known, remote.registry()))
    }

    /// Pulls to the end, and keeps how it went.
    async fn pull(
        self: Arc<Self>,
        image: String,
        remote: Remote,
        credentials: Option<DockerCredentials>,
    ) {
        let pulled = timeout(TOTAL, self.drain_pull(&image, &remote, credentials)).await;
        let failed = match pulled {
            Ok(Ok(())) => None,
            Ok(Err(failed)) => Some(failed),
            Err(_) => Some((
                Reason::ImagePullInterrupted,
                format!("it was not here within {} s", TOTAL.as_secs()),
            )),
        };
        if let Some((reason, message)) = &failed {
            tracing::warn!(%image, reason = reason.as_str(), %message, "an image was not pulled");
        }
        for owner in self.pulls.end(&image, failed) {
            self.hint(Hint::Owner(owner));
        }
    }

    async fn drain_pull(
        &self,
        image: &str,
        remote: &Remote,
        credentials: Option<DockerCredentials>,
    ) -> Result<(), (Reason, String)> {
        let live = self
            .engine
            .live()
            .await
            .map_err(|error| (Reason::ImagePullInterrupted, error.to_string()))?;
        let options = CreateImageOptionsBuilder::default()
            .from_image(&remote.name())
            .tag(remote.version())
            .build();
        let mut layers = Layers::default();
        let mut stream = std::pin::pin!(live.docker.create_image(Some(options), None, credentials));
        loop {
            match timeout(IDLE, stream.next()).await {
                Err(_) => {
                    return Err((
                        Reason::ImagePullInterrupted,
                        format!("nothing came for {} s", IDLE.as_secs()),
                    ));
                }
                Ok(None) => break,
                Ok(Some(Err(error))) => return Err(why(&error)),
                Ok(Some(Ok(item))) => {
                    if layers.add(&item) {
                        self.pulls.progress(image, layers.bytes());
                    }
                }
            }
        }
        // What the stream says is one thing, what is there another.
        match self.find_image(image).await {
            Ok(Some(found)) => match present(found, &live.facts) {
                ImageState::Failed {
                    reason, message, ..
                } => Err((reason, message)),
                _ => Ok(()),
            },
            Ok(None) => Err((
                Reason::ImagePullInterrupted,
                "the engine said that it came, and has it not".to_owned(),
            )),
            Err(error) => Err((Reason::ImagePullInterrupted, error.to_string())),
        }
    }
}

/// Why a pull failed. One that the engine does not even answer was interrupted.
fn why(error: &Error) -> (Reason, String) {
    let status = match error {
        Error::DockerResponseServerError { status_code, .. } => *status_code,
        _ => 0,
    };
    let text = said(error);
    let reason = pull_reason(status, &text);
    (reason, advised(reason, message(&text)))
}

/// An image that is there; one for another platform serves nobody.
fn present(found: ImageInspect, facts: &Facts) -> ImageState {
    let (Some(os), Some(architecture)) = (
        found.os.filter(|os| !os.is_empty()),
        found.architecture.filter(|name| !name.is_empty()),
    ) else {
        return ImageState::Present {
            id: found.id.unwrap_or_default(),
        };
    };
    let platform = format!("{os}/{architecture}");
    if platform == facts.platform {
        return ImageState::Present {
            id: found.id.unwrap_or_default(),
        };
    }
    ImageState::Failed {
        reason: Reason::ImagePlatformMismatch,
        message: format!(
            "the image is for {platform} and the engine runs {}; name one for this platform",
            facts.platform
        ),
        at: Timestamp::now(),
    }
}

/// Bytes of each layer that are here.
#[derive(Debug, Default)]
struct Layers(BTreeMap<String, u64>);

/// Layers that are counted.
const MAX_LAYERS: usize = 512;

impl Layers {
    /// Whether there is more than before.
    fn add(&mut self, item: &CreateImageInfo) -> bool {
        if item.status.as_deref() != Some("Downloading") {
            return false;
        }
        let current = item
            .progress_detail
            .as_ref()
            .and_then(|detail| detail.current)
            .and_then(|current| u64::try_from(current).ok());
        let (Some(id), Some(current)) = (&item.id, current) else {
            return false;
        };
        if self.0.len() >= MAX_LAYERS && !self.0.contains_key(id) {
            return false;
        }
        self.0.insert(id.clone(), current);
        true
    }

    fn bytes(&self) -> u64 {
        self.0.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use api::group::Kind;
    use bollard::models::ProgressDetail;

    use super::*;
    use crate::docker::render::GpuRequests;

    fn owner() -> Owner {
        Owner {
            kind: Kind::LayaServer,
            namespace: "default".to_owned(),
            name: "main".to_owned(),
            uid: "u".to_owned(),
        }
    }

    #[test]
    fn a_failed_pull_waits_longer_each_time_and_is_told_to_who_asked() {
        let pulls = Pulls::new(Duration::from_secs(5));
        assert_eq!(pulls.state("a"), ImageState::Absent);
        assert!(pulls.begin("a", &owner()));
        assert!(!pulls.begin("a", &owner()), "it runs");
        pulls.progress("a", 7);
        assert_eq!(pulls.state("a"), ImageState::Pulling { bytes: 7 });
        let failed = Some((Reason::ImagePullBusy, "429".to_owned()));
        assert_eq!(pulls.end("a", failed.clone()).len(), 1);
        assert!(matches!(
            pulls.state("a"),
            ImageState::Failed {
                reason: Reason::ImagePullBusy,
                ..
            }
        ));
        assert!(!pulls.begin("a", &owner()), "it waits");
        let pause = |pulls: &Pulls| {
            let table = pulls.table();
            table["a"]
                .until
                .saturating_duration_since(Instant::now())
                .as_secs_f64()
                .ceil()
        };
        assert_eq!(pause(&pulls), 5.0);
        pulls.end("a", failed.clone());
        assert_eq!(pause(&pulls), 10.0);
        for _ in 0..40 {
            pulls.end("a", failed.clone());
        }
        assert_eq!(pause(&pulls), 300.0);
        assert!(
            !pulls.begin("a", &owner()),
            "it waits, and is asked for again"
        );
        assert_eq!(pulls.end("a", None).len(), 1);
        assert_eq!(pulls.state("a"), ImageState::Absent, "the engine has it");
    }

    #[test]
    fn pulls_are_bounded() {
        let pulls = Pulls::new(Duration::ZERO);
        for number in 0..2 * MAX_PULLS {
            let image = number.to_string();
            assert!(pulls.begin(&image, &owner()));
            pulls.end(&image, Some((Reason::ImageNotFound, String::new())));
        }
        assert!(pulls.table().len() <= MAX_PULLS);
    }

    #[test]
    fn bytes_are_those_of_all_layers() {
        let item = |id: &str, status: &str, current| CreateImageInfo {
            id: Some(id.to_owned()),
            status: Some(status.to_owned()),
            progress_detail: Some(ProgressDetail {
                current: Some(current),
                total: None,
            }),
            ..CreateImageInfo::default()
        };
        let mut layers = Layers::default();
        assert!(layers.add(&item("a", "Downloading", 5)));
        assert!(layers.add(&item("b", "Downloading", 2)));
        assert!(layers.add(&item("a", "Downloading", 9)));
        assert!(!layers.add(&item("a", "Extracting", 100)));
        assert_eq!(layers.bytes(), 11);
    }

    #[test]
    fn an_image_for_another_platform_is_none() {
        let facts = Facts {
            version: String::new(),
            api: String::new(),
            gpu: GpuRequests::Capability,
            gpu_signs: false,
            platform: "linux/amd64".to_owned(),
            memory_bytes: 0,
            local: true,
        };
        let image = |architecture: &str| ImageInspect {
            id: Some("sha256:1".to_owned()),
            os: Some("linux".to_owned()),
            architecture: Some(architecture.to_owned()),
            ..ImageInspect::default()
        };
        let id = "sha256:1".to_owned();
        assert_eq!(
            present(image("amd64"), &facts),
            ImageState::Present { id: id.clone() }
        );
        assert_eq!(present(image(""), &facts), ImageState::Present { id });
        assert!(matches!(
            present(image("arm64"), &facts),
            ImageState::Failed {
                reason: Reason::ImagePlatformMismatch,
                ..
            }
        ));
    }
}
