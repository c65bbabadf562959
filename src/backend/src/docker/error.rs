//! What an engine says, in words of ours. An API that gives only text is read here and nowhere else, with real messages as
//! tests.

use api::reason::Reason;
use bollard::errors::Error;

/// Why a call did not do what it was for.
#[derive(Debug)]
pub(super) enum CallError {
    /// The engine answered with this status and message.
    Api { status: u16, message: String },
    /// It is not there, or went away.
    Unreachable(String),
    /// The socket is not for this user.
    Forbidden(String),
    /// It answered with something else than its API.
    Garbage(String),
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        match error {
            Error::DockerResponseServerError {
                status_code: status,
                message,
            } => Self::Api { status, message },
            Error::DockerStreamError { error } => Self::Api {
                status: 500,
                message: error,
            },
            Error::JsonDataError { .. }
            | Error::JsonSerdeError { .. }
            | Error::APIVersionParseError {}
            | Error::StrParseError { .. } => Self::Garbage(chain(&error)),
            other if is_denied(&other) => Self::Forbidden(chain(&other)),
            other => Self::Unreachable(chain(&other)),
        }
    }
}

/// The error and its sources, each once.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

fn is_denied(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::PermissionDenied
        {
            return true;
        }
        at = error.source();
    }
    false
}

/// An engine that has no room says so, and neither where nor what to do. Not to prune it: that would take what stands by to
/// go back to.
pub(super) fn advised(reason: Reason, message: String) -> String {
    if reason != Reason::NoSpace {
        return message;
    }
    format!(
        "{message}. The disk that the engine keeps its images and containers on is full: `docker system df -v` shows what takes it, `docker image rm` removes what nothing needs"
    )
}

/// What creating or starting a container fails with (`State.Error` has the same texts).
pub(super) fn start_reason(message: &str) -> Option<Reason> {
    let text = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["no space left on device", "disk quota exceeded"]) {
        Some(Reason::NoSpace)
    } else if has(&[
        "could not select device driver",
        "nvidia-container-cli",
        "unresolvable cdi devices",
        "unknown or invalid runtime name: nvidia",
    ]) {
        Some(Reason::GpuUnavailable)
    } else if has(&["port is already allocated", "address already in use"]) {
        Some(Reason::PortInUse)
    } else if has(&["no such image", "no such object"]) {
        Some(Reason::ImageNotFound)
    } else if has(&[
        "exec format error",
        "does not match the detected host platform",
    ]) {
        Some(Reason::ImagePlatformMismatch)
    } else if has(&["is already in use by container", "name is already in use"]) {
        Some(Reason::NameTaken)
    } else {
        None
    }
}

/// What a pull fails with: the status of the answer, or a message inside a 200.
pub(super) fn pull_reason(status: u16, message: &str) -> Reason {
    let text = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    // What the registry answered is worth more than what the engine makes of it.
    let status = registry_status(&text).unwrap_or(status);
    // Names of things come first: “denied” is said of repositories that are not there, too.
    if has(&["no space left on device", "disk quota exceeded"]) {
        Reason::NoSpace
    } else if has(&[
        "no matching manifest",
        "no match for platform",
        "does not match the specified platform",
        "operating system",
        "cannot be used on this platform",
    ]) {
        Reason::ImagePlatformMismatch
    } else if matches!(status, 401 | 403) {
        Reason::ImagePullUnauthorized
    } else if matches!(status, 429 | 502..=504)
        || has(&["toomanyrequests", "too many requests", "rate limit"])
    {
        Reason::ImagePullBusy
    } else if has(&[
        "unauthorized",
        "authentication required",
        "no basic auth credentials",
        "denied:",
        "access denied",
        "incorrect username or password",
        "401 ",
        "403 forbidden",
    ]) {
        Reason::ImagePullUnauthorized
    } else if has(&[
        "manifest unknown",
        "unknown blob",
        "blob unknown",
        "not found",
        "name unknown",
        "name_unknown",
        "repository does not exist",
    ]) {
        Reason::ImageNotFound
    } else if has(&[
        "500 internal server error",
        "502 bad gateway",
        "503 service unavailable",
        "504 gateway",
        "received unexpected http status: 5",
        "unavailable",
    ]) {
        Reason::ImagePullBusy
    } else if status == 404 {
        Reason::ImageNotFound
    } else {
        Reason::ImagePullInterrupted
    }
}

/// The status in “error parsing HTTP 404 response body”, which is said of answers without a body that can be read.
fn registry_status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("error parsing http ")?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_of_the_engine_is_told_with_its_place_and_what_to_do() {
        let told = advised(Reason::NoSpace, "write x: no space left".to_owned());
        assert!(
            told.starts_with("write x: no space left. ")
                && told.contains("docker system df")
                && !told.contains("prune"),
            "{told}"
        );
        assert_eq!(advised(Reason::PortInUse, "x".to_owned()), "x");
    }

    #[test]
    fn start_errors_of_engines() {
        let cases = [
            (
                r#"could not select device driver "" with capabilities: [[gpu]]"#,
                Some(Reason::GpuUnavailable),
            ),
            (
                "OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:545: container init caused: Running hook #0:: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
                Some(Reason::GpuUnavailable),
            ),
            (
                "driver failed programming external connectivity on endpoint x (8c): Bind for 127.0.0.1:8000 failed: port is already allocated",
                Some(Reason::PortInUse),
            ),
            (
                "driver failed programming external connectivity on endpoint x: Error starting userland proxy: listen tcp4 127.0.0.1:8000: bind: address already in use",
                Some(Reason::PortInUse),
            ),
            (
                "mkdir /var/lib/docker/overlay2/8e-init: no space left on device",
                Some(Reason::NoSpace),
            ),
            ("No such image: nowhere:latest", Some(Reason::ImageNotFound)),
            (
                "standard_init_linux.go:219: exec user process caused: exec format error",
                Some(Reason::ImagePlatformMismatch),
            ),
            (
                r#"Conflict. The container name "/relay-012345-main-aabbccddee-0" is already in use by container "5f". You have to remove (or rename) that container to be able to reuse that name."#,
                Some(Reason::NameTaken),
            ),
            ("cannot join network of a non running container", None),
        ];
        for (message, expected) in cases {
            assert_eq!(start_reason(message), expected, "{message}");
        }
    }

    #[test]
    fn pull_errors_of_engines() {
        let cases = [
            (
                500,
                "Head \"http://127.0.0.1:5000/v2/laya/manifests/1\": unauthorized: authentication required",
                Reason::ImagePullUnauthorized,
            ),
            (
                500,
                "Get http://127.0.0.1:5000/v2/laya/manifests/1: no basic auth credentials",
                Reason::ImagePullUnauthorized,
            ),
            (
                404,
                "pull access denied for nobody/nothing, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
                Reason::ImagePullUnauthorized,
            ),
            (
                404,
                "manifest for 127.0.0.1:5000/laya:9 not found: manifest unknown: manifest unknown",
                Reason::ImageNotFound,
            ),
            (
                500,
                "toomanyrequests: You have reached your pull rate limit.",
                Reason::ImagePullBusy,
            ),
            (
                500,
                "received unexpected HTTP status: 503 Service Unavailable",
                Reason::ImagePullBusy,
            ),
            (
                404,
                "no matching manifest for linux/amd64 in the manifest list entries",
                Reason::ImagePlatformMismatch,
            ),
            (
                500,
                "image operating system \"windows\" cannot be used on this platform",
                Reason::ImagePlatformMismatch,
            ),
            (
                0,
                "error pulling image configuration: download failed after attempts=1: unknown blob",
                Reason::ImageNotFound,
            ),
            (
                0,
                "error pulling image configuration: download failed after attempts=6: unexpected EOF",
                Reason::ImagePullInterrupted,
            ),
            (500, "unexpected EOF", Reason::ImagePullInterrupted),
            (
                500,
                "Get \"http://127.0.0.1:5000/v2/\": dial tcp 127.0.0.1:5000: connect: connection refused",
                Reason::ImagePullInterrupted,
            ),
            (
                500,
                "write /var/lib/docker/tmp/GetImageBlob1: no space left on device",
                Reason::NoSpace,
            ),
            (
                500,
                "error parsing HTTP 404 response body: unexpected end of JSON input: \"\"",
                Reason::ImageNotFound,
            ),
            (
                500,
                "error parsing HTTP 429 response body: invalid character 's' looking for beginning of value: \"slow down\"",
                Reason::ImagePullBusy,
            ),
            (
                500,
                "error parsing HTTP 403 response body: no error details found in HTTP response body: \"{}\"",
                Reason::ImagePullUnauthorized,
            ),
            (429, "", Reason::ImagePullBusy),
            (404, "", Reason::ImageNotFound),
        ];
        for (status, message, expected) in cases {
            assert_eq!(pull_reason(status, message), expected, "{message}");
        }
    }
}
