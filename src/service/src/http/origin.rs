//! Browsers: a request with an `Origin` is refused unless that origin is listed, and a server on loopback refuses a
//! `Host` that is not loopback, because a page whose name was re-pointed to 127.0.0.1 sends no `Origin` with a GET.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use api::problem::Slug;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, header};

use crate::problem::Failure;

/// A browser origin as browsers send it: `scheme://host[:port]`, lower case, no path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// The text is no origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected scheme://host[:port] without a path, for example https://ide.example.com")]
pub struct OriginError;

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let (scheme, host) = text.split_once("://").ok_or(OriginError)?;
        let scheme_ok = scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b));
        let authority: Authority = host.parse().map_err(|_| OriginError)?;
        if !scheme_ok || authority.host().is_empty() || host.contains('@') {
            return Err(OriginError);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which `Host` headers a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRule {
    /// Loopback names and addresses only: for a server on loopback, which needs no token.
    LoopbackOnly,
    /// Any: for a server that demands a token.
    Any,
}

/// What a server lets in.
#[derive(Debug)]
pub struct Origins {
    allowed: Vec<Origin>,
    hosts: HostRule,
}

impl Origins {
    /// Lets in requests without an origin, and those from the listed ones.
    #[must_use]
    pub const fn new(allowed: Vec<Origin>, hosts: HostRule) -> Self {
        Self { allowed, hosts }
    }

    /// Whether a request may go on, for who answers refusals in a form of its own.
    #[must_use]
    pub fn allow(&self, request: &Request) -> bool {
        self.allows_origins(request.headers()) && self.allows_host(request)
    }

    fn allows_origins(&self, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(header::ORIGIN).iter();
        named.all(|origin| self.allows_origin(origin))
    }

    fn allows_origin(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| {
            self.allowed
                .iter()
                .any(|allowed| allowed.0.eq_ignore_ascii_case(origin))
        })
    }

    /// The host a request is for stands in its header, and in its target too if that is a whole URI.
    fn allows_host(&self, request: &Request) -> bool {
        let mut named = request.headers().get_all(header::HOST).iter();
        self.hosts == HostRule::Any
            || named.all(|host| host.to_str().is_ok_and(is_loopback_host))
                && request
                    .uri()
                    .authority()
                    .is_none_or(|host| is_loopback_host(host.as_str()))
    }
}

/// `localhost` (with a final dot or in front of one), or a loopback address, with any port.
fn is_loopback_host(text: &str) -> bool {
    let Ok(authority) = text.parse::<Authority>() else {
        return false;
    };
    let host = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']')
        .trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            host.eq_ignore_ascii_case("localhost")
                || host.to_ascii_lowercase().ends_with(".localhost")
        }
    }
}

pub(super) async fn check(
    State(origins): State<Arc<Origins>>,
    request: Request,
    next: Next,
) -> Response {
    if !origins.allows_origins(request.headers()) {
        return Failure::new(
            Slug::OriginRefused,
            "requests of this browser origin are refused",
        )
        .hint("start the server with --allow-origin <origin>")
        .into_response();
    }
    if !origins.allows_host(&request) {
        return Failure::new(
            Slug::OriginRefused,
            "this server listens on loopback and answers only loopback host names",
        )
        .hint("call it as 127.0.0.1 or localhost")
        .into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_origins() {
        for (text, good) in [
            ("http://localhost:3000", true),
            ("https://ide.example.com", true),
            ("chrome-extension://abcdefghijklmnop", true),
            ("http://[::1]:80", true),
            ("https://ide.example.com/", false),
            ("https://user@ide.example.com", false),
            ("ide.example.com", false),
            ("://x", false),
            ("https://", false),
            ("*", false),
            ("null", false),
        ] {
            assert_eq!(text.parse::<Origin>().is_ok(), good, "{text}");
        }
    }

    #[test]
    fn knows_loopback_hosts() {
        for (text, loopback) in [
            ("localhost", true),
            ("LOCALHOST:8737", true),
            ("localhost.:8737", true),
            ("router.localhost:8737", true),
            ("127.0.0.1:8737", true),
            ("127.8.8.8", true),
            ("[::1]:8737", true),
            ("evil.example:8737", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(is_loopback_host(text), loopback, "{text}");
        }
    }
}
