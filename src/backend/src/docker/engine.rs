//! The connection to an engine: where it is, the version both sides know, and a deadline on every call. After a time-out
//! or a broken connection the next call connects and agrees on a version anew.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker};

use super::error::{CallError, chain};
use super::gpu;
use super::render::GpuRequests;
use crate::BackendError;

/// Docker list and inspect, and the agreement on a version (control-plane 7.2).
pub(super) const LOOK: Duration = Duration::from_secs(5);
/// Create, start, remove.
pub(super) const CHANGE: Duration = Duration::from_secs(30);
/// What bollard itself allows for response headers: longer than any deadline of ours, which are the ones that hold.
const BOLLARD_SECONDS: u64 = 3600;
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// What an engine says of itself when a version was agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its version.
    pub version: String,
    /// Version of the API that is spoken.
    pub api: String,
    /// How it is asked for GPUs.
    pub gpu: GpuRequests,
    /// Whether it could have one: without a sign nothing is tried.
    pub gpu_signs: bool,
    /// `linux/amd64`.
    pub platform: String,
    /// Bytes of memory it has.
    pub memory_bytes: u64,
    /// Whether it runs on the kernel this process runs on.
    pub local: bool,
}

/// A connection on which a version was agreed.
#[derive(Debug)]
pub(super) struct Live {
    pub docker: Docker,
    pub facts: Facts,
    /// When it was made: what was learned before is of another life of the engine.
    pub since: Instant,
}

/// An engine at an address.
#[derive(Debug)]
pub(super) struct Engine {
    address: String,
    live: Mutex<Option<Arc<Live>>>,
}

impl Engine {
    pub(super) const fn new(address: String) -> Self {
        Self {
            address,
            live: Mutex::new(None),
        }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The facts of the last connection, where there is one.
    pub(super) fn facts(&self) -> Option<Facts> {
        self.slot().as_ref().map(|live| live.facts.clone())
    }

    /// A connection on which a version was agreed: the one there is, or a new one.
    pub(super) async fn live(&self) -> Result<Arc<Live>, BackendError> {
        if let Some(live) = self.slot().clone() {
            return Ok(live);
        }
        let what = "connect to the container engine";
        let connected = tokio::time::timeout(LOOK, self.connect()).await;
        let live = match connected {
            Ok(Ok(live)) => Arc::new(live),
            Ok(Err(error)) => return Err(self.explain(what, error.into())),
            Err(_) => {
                return Err(BackendError::TimedOut {
                    what: what.to_owned(),
                    after: LOOK,
                });
            }
        };
        // Two that came at once both have one; the later stays.
        *self.slot() = Some(live.clone());
        Ok(live)
    }

    async fn connect(&self) -> Result<Live, Error> {
        let docker = if let Some(path) = self.address.strip_prefix("unix://") {
            Docker::connect_with_unix(path, BOLLARD_SECONDS, API_DEFAULT_VERSION)?
        } else {
            Docker::connect_with_http(&self.address, BOLLARD_SECONDS, API_DEFAULT_VERSION)?
        };
        let docker = docker.negotiate_version().await?;
        let version = docker.version().await?;
        let info = docker.info().await?;
        let podman = version
            .components
            .iter()
            .flatten()
            .any(|component| component.name.starts_with("Podman"));
        let kernel = info.kernel_version.clone().unwrap_or_default();
        let local = self.address.starts_with("unix://") && is_our_kernel(&kernel);
        Ok(Live {
            facts: Facts {
                api: docker.client_version().to_string(),
                version: version.version.unwrap_or_default(),
                gpu: if podman {
                    GpuRequests::Cdi
                } else {
                    GpuRequests::Capability
                },
                platform: format!(
                    "{}/{}",
                    version.os.unwrap_or_default(),
                    version.arch.unwrap_or_default()
                ),
                memory_bytes: u64::try_from(info.mem_total.unwrap_or_default()).unwrap_or_default(),
                gpu_signs: gpu::has_signs(&info, local && gpu::driver_here()),
                local,
            },
            docker,
            since: Instant::now(),
        })
    }

    /// One call within a deadline. `what` says what is attempted on what.
    ///
    /// The outer error is that the engine did not answer; the inner one is what it answered, for callers that know some
    /// of these answers.
    pub(super) async fn ask<T, F, Fut>(
        &self,
        what: &str,
        within: Duration,
        call: F,
    ) -> Result<Result<T, (u16, String)>, BackendError>
    where
        F: FnOnce(Docker) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let live = self.live().await?;
        let answered = tokio::time::timeout(within, call(live.docker.clone())).await;
        match answered {
            Ok(Ok(value)) => Ok(Ok(value)),
            Ok(Err(error)) => match CallError::from(error) {
                CallError::Api { status, message } => Ok(Err((status, message))),
                other => {
                    self.forget(&live);
                    Err(self.explain(what, other))
                }
            },
            Err(_) => {
                self.forget(&live);
                Err(BackendError::TimedOut {
                    what: what.to_owned(),
                    after: within,
                })
            }
        }
    }

    /// One call whose every refusal is a failure.
    pub(super) async fn call<T, F, Fut>(
        &self,
        what: &str,
        within: Duration,
        call: F,
    ) -> Result<T, BackendError>
    where
        F: FnOnce(Docker) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let answer = self.ask(what, within, call).await?;
        answer.map_err(|(status, message)| refused(what, status, message))
    }

    /// One call that looks for something: `None` where it is not there.
    pub(super) async fn find<T, F, Fut>(
        &self,
        what: &str,
        call: F,
    ) -> Result<Option<T>, BackendError>
    where
        F: FnOnce(Docker) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        match self.ask(what, LOOK, call).await? {
            Ok(found) => Ok(Some(found)),
            Err((404, _)) => Ok(None),
            Err((status, message)) => Err(refused(what, status, message)),
        }
    }

    /// The connection is not to be used again, unless another one is there already.
    pub(super) fn forget(&self, live: &Arc<Live>) {
        let mut slot = self.slot();
        if slot.as_ref().is_some_and(|known| Arc::ptr_eq(known, live)) {
            *slot = None;
        }
    }

    /// Makes an error of ours of what is no answer.
    pub(super) fn explain(&self, what: &str, error: CallError) -> BackendError {
        let what = what.to_owned();
        match error {
            CallError::Api { status, message } => refused(&what, status, message),
            CallError::Unreachable(message) => BackendError::Unavailable {
                what,
                address: self.address.clone(),
                message,
            },
            CallError::Forbidden(message) => BackendError::Forbidden {
                what,
                message: format!(
                    "{message}; let this user use {} (group `docker`), or set DOCKER_HOST to an engine of its own",
                    self.address
                ),
            },
            CallError::Garbage(message) => BackendError::Unavailable {
                what,
                address: self.address.clone(),
                message: format!("what answers there is no container engine: {message}"),
            },
        }
    }
}

/// What an answer with an error status means to callers that know nothing more of it.
pub(super) fn refused(what: &str, status: u16, message: String) -> BackendError {
    let what = what.to_owned();
    if matches!(status, 401 | 403) {
        return BackendError::Forbidden { what, message };
    }
    match super::error::start_reason(&message) {
        Some(reason) => BackendError::Refused {
            what,
            reason,
            message: super::error::advised(reason, message),
        },
        None => BackendError::Failed { what, message },
    }
}

fn is_our_kernel(kernel: &str) -> bool {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .is_ok_and(|ours| ours.trim() == kernel && !kernel.is_empty())
}

/// Where the engine is: what is given (`DOCKER_HOST`), else the default socket, else a Podman socket.
///
/// # Errors
/// Why a given address cannot be used.
pub(super) fn address(
    given: Option<&str>,
    runtime_folder: Option<&Path>,
    exists: impl Fn(&Path) -> bool,
) -> Result<String, String> {
    if let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) {
        return match given.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => Ok(given.to_owned()),
            Some(("tcp" | "http", host)) if !host.is_empty() => Ok(format!("http://{host}")),
            _ => Err(format!(
                "`{given}` is no address of a container engine that Relay can use: unix:///path, tcp://host:port \
                 (without TLS)"
            )),
        };
    }
    let podman = runtime_folder.map(|folder| folder.join("podman/podman.sock"));
    let candidates = [
        Some(PathBuf::from(DEFAULT_SOCKET)),
        podman,
        Some(PathBuf::from("/run/podman/podman.sock")),
    ];
    let found = candidates.into_iter().flatten().find(|path| exists(path));
    // None there: the default one says so, and may appear.
    let path = found.unwrap_or_else(|| PathBuf::from(DEFAULT_SOCKET));
    Ok(format!("unix://{}", path.display()))
}

/// What a stream says when it breaks, for people.
pub(super) fn said(error: &Error) -> String {
    match error {
        Error::DockerStreamError { error } => error.clone(),
        Error::DockerResponseServerError { message, .. } => message.clone(),
        other => chain(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_where_it_was_given_or_where_a_socket_is() {
        let none = |_: &Path| false;
        let only = |wanted: &'static str| move |path: &Path| path == Path::new(wanted);
        let folder = Some(Path::new("/run/user/1000"));
        assert_eq!(
            address(Some("unix:///x.sock"), folder, none).as_deref(),
            Ok("unix:///x.sock")
        );
        assert_eq!(
            address(Some("tcp://10.0.0.1:2375"), folder, none).as_deref(),
            Ok("http://10.0.0.1:2375")
        );
        assert_eq!(
            address(Some(" "), folder, only("/var/run/docker.sock")).as_deref(),
            Ok("unix:///var/run/docker.sock")
        );
        assert_eq!(
            address(None, folder, only("/run/user/1000/podman/podman.sock")).as_deref(),
            Ok("unix:///run/user/1000/podman/podman.sock")
        );
        assert_eq!(
            address(None, None, only("/run/podman/podman.sock")).as_deref(),
            Ok("unix:///run/podman/podman.sock")
        );
        assert_eq!(
            address(None, None, none).as_deref(),
            Ok("unix:///var/run/docker.sock")
        );
        for bad in ["ssh://me@there", "https://there", "unix://x", "there"] {
            assert!(address(Some(bad), None, none).is_err(), "{bad}");
        }
    }
}
