//! Paths and methods (wire.md 2.1), which are looked at before anything else.

use http::Method;

use crate::decide::Form;

/// A path that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// Liveness.
    Health,
    /// Readiness.
    Ready,
    /// Metrics.
    Metrics,
    /// Start and end of a drain.
    Drain,
    /// The document about the API.
    OpenApi,
    /// A decision.
    Decide(Form),
}

const ROUTES: [Route; 7] = [
    Route::Health,
    Route::Ready,
    Route::Metrics,
    Route::Drain,
    Route::OpenApi,
    Route::Decide(Form::Single),
    Route::Decide(Form::Batch),
];

impl Route {
    /// The path.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Health => "/health",
            Self::Ready => "/ready",
            Self::Metrics => "/metrics",
            Self::Drain => "/drain",
            Self::OpenApi => "/openapi.json",
            Self::Decide(Form::Single) => "/v1/systemone",
            Self::Decide(Form::Batch) => "/v1/systemone/batch",
        }
    }

    /// Methods that are answered.
    pub(super) const fn methods(self) -> &'static [Method] {
        match self {
            Self::Health | Self::Ready | Self::Metrics | Self::OpenApi => &[Method::GET],
            Self::Decide(_) => &[Method::POST],
            Self::Drain => &[Method::POST, Method::DELETE],
        }
    }

    /// The same as a header.
    pub(super) const fn allow(self) -> &'static str {
        match self {
            Self::Health | Self::Ready | Self::Metrics | Self::OpenApi => "GET",
            Self::Decide(_) => "POST",
            Self::Drain => "POST, DELETE",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Ready => "ready",
            Self::Metrics => "metrics",
            Self::Drain => "drain",
            Self::OpenApi => "openapi",
            Self::Decide(Form::Single) => "systemone",
            Self::Decide(Form::Batch) => "systemone_batch",
        }
    }
}

/// What a request target means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// An answered path.
    Known(Route),
    /// The same with slashes behind it.
    Slash(Route),
    /// Anything else.
    Unknown,
}

impl Path {
    /// Reads the raw path of a request. With a key, the document about the API does not exist.
    pub(super) fn read(raw: &str, with_key: bool) -> Self {
        let decoded = percent_decode(raw);
        let find = |path: &[u8]| {
            let route = ROUTES
                .into_iter()
                .find(|route| route.path().as_bytes() == path)?;
            (route != Route::OpenApi || !with_key).then_some(route)
        };
        if let Some(route) = find(&decoded) {
            return Self::Known(route);
        }
        let end = decoded
            .iter()
            .rposition(|byte| *byte != b'/')
            .map_or(0, |last| last + 1);
        match decoded.get(..end).and_then(find) {
            Some(route) if end < decoded.len() => Self::Slash(route),
            _ => Self::Unknown,
        }
    }

    /// The word in metric labels.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Known(route) | Self::Slash(route) => route.label(),
            Self::Unknown => "unknown",
        }
    }
}

/// Replaces every `%` with two hexadecimal digits behind it by that byte.
fn percent_decode(raw: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let raw = raw.as_bytes();
    let mut decoded = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        match (byte, digit(raw.get(at + 1)), digit(raw.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(16 * high + low).unwrap_or_default());
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_paths() {
        let single = Route::Decide(Form::Single);
        for (raw, path) in [
            ("/health", Path::Known(Route::Health)),
            ("/%68ealth", Path::Known(Route::Health)),
            ("/v1%2Fsystemone", Path::Known(single)),
            (
                "/v1/systemone/batch",
                Path::Known(Route::Decide(Form::Batch)),
            ),
            ("/health/", Path::Slash(Route::Health)),
            ("/v1/systemone///", Path::Slash(single)),
            ("/v1/systemone%2f", Path::Slash(single)),
            ("/", Path::Unknown),
            ("", Path::Unknown),
            ("//health", Path::Unknown),
            ("/Health", Path::Unknown),
            ("/health/x", Path::Unknown),
            ("/docs", Path::Unknown),
            ("/redoc", Path::Unknown),
            ("/%6", Path::Unknown),
            ("/health%", Path::Unknown),
        ] {
            assert_eq!(Path::read(raw, false), path, "{raw}");
        }
        assert_eq!(
            Path::read("/openapi.json", false),
            Path::Known(Route::OpenApi)
        );
        assert_eq!(Path::read("/openapi.json", true), Path::Unknown);
        assert_eq!(Path::read("/openapi.json/", true), Path::Unknown);
    }
}
