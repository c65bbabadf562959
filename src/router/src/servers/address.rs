//! The base address of a Laya server: `http` or `https`, host, port, and a path in front of Laya's own.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, Scheme};

/// Where a Laya server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    encrypted: bool,
    authority: Authority,
    port: u16,
    /// Without a slash at its end; often empty.
    prefix: String,
}

/// The text is no address of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected http://host:port or https://host, without user, query or fragment")]
pub struct ServerUrlError;

impl FromStr for ServerUrl {
    type Err = ServerUrlError;

    fn from_str(text: &str) -> Result<Self, ServerUrlError> {
        let uri: Uri = text.trim().parse().map_err(|_| ServerUrlError)?;
        let encrypted = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(ServerUrlError),
        };
        let authority = uri.authority().cloned().ok_or(ServerUrlError)?;
        let strange = authority.as_str().contains('@')
            || authority.host().is_empty()
            // A port that is none is no reason for another one.
            || authority.port_u16().is_none() && authority.as_str() != authority.host()
            || uri.query().is_some()
            || text.contains('#');
        if strange || authority.port_u16() == Some(0) {
            return Err(ServerUrlError);
        }
        Ok(Self {
            encrypted,
            port: authority
                .port_u16()
                .unwrap_or(if encrypted { 443 } else { 80 }),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            authority,
        })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encrypted { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

impl ServerUrl {
    /// Whether it speaks TLS.
    pub(super) const fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// The value of the `host` header.
    pub(super) fn host_header(&self) -> &str {
        self.authority.as_str()
    }

    /// Host name or address; an IPv6 address without its brackets.
    pub(super) fn host(&self) -> &str {
        self.authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// A path of Laya as it is asked for here.
    pub(super) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// How a server is called whose configuration gives it no name: `host:port`.
    #[must_use]
    pub fn default_name(&self) -> String {
        format!("{}:{}", self.authority.host(), self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_of_servers() {
        for (text, expected) in [
            ("http://127.0.0.1:8000", Some(("127.0.0.1:8000", "/health"))),
            (
                "http://127.0.0.1:8000/",
                Some(("127.0.0.1:8000", "/health")),
            ),
            (
                " https://laya.example ",
                Some(("laya.example:443", "/health")),
            ),
            ("http://laya", Some(("laya:80", "/health"))),
            (
                "http://[::1]:8000/laya/",
                Some(("[::1]:8000", "/laya/health")),
            ),
            ("127.0.0.1:8000", None),
            ("laya", None),
            ("ftp://laya:21", None),
            ("http://user@laya:8000", None),
            ("http://laya:8000?x=1", None),
            ("http://laya:8000/#x", None),
            ("http://laya:0", None),
            ("http://laya:", None),
            ("http://laya:99999", None),
            ("http://", None),
            ("", None),
        ] {
            let url = text.parse::<ServerUrl>().ok();
            let read = url.map(|url| (url.default_name(), url.path("/health")));
            let expected = expected.map(|(name, path)| (name.to_owned(), path.to_owned()));
            assert_eq!(read, expected, "{text}");
        }
    }
}
