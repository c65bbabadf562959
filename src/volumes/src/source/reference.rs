//! References to OCI artifacts, and what a registry asks for when it wants to know who asks.

use super::url;

/// `registry/repository[:tag]@sha256:<64 hex>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    /// Host and port.
    pub(super) registry: String,
    /// Repository, with `/`.
    pub(super) repository: String,
    /// 64 digits of the manifest's digest.
    pub(super) sha256: String,
}

impl Reference {
    /// Reads a reference. A tag is for people: the digest says what is meant.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let bad = |why: &str| {
            Err(format!(
                "'{}' is no reference: {why}",
                text.escape_default()
            ))
        };
        let Some((name, digest)) = text.split_once('@') else {
            return bad("expected registry/repository@sha256:…");
        };
        let Ok(digest) = crate::Digest::parse(digest) else {
            return bad("expected sha256: and 64 lower-case hexadecimal digits behind the @");
        };
        let Some((registry, path)) = name.split_once('/') else {
            return bad("it names no registry");
        };
        let is_host = registry == "localhost" || registry.contains('.') || registry.contains(':');
        if !is_host || !registry.bytes().all(is_host_byte) {
            return bad("it names no registry; write docker.io/… for Docker's");
        }
        let repository = match path.rsplit_once(':') {
            Some((repository, _)) => repository,
            None => path,
        };
        let is_part = |part: &str| {
            !part.is_empty()
                && part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
        };
        if repository.len() > 255 || !repository.split('/').all(is_part) {
            return bad("the repository has other characters than a-z, 0-9, '.', '_', '-' and '/'");
        }
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            sha256: digest.hex().to_owned(),
        })
    }

    /// Address of the registry's API. Registries of this machine are spoken to without TLS, as engines do.
    pub(super) fn base(&self) -> String {
        let plain = format!("http://{}/", self.registry).parse();
        let scheme = if plain.is_ok_and(|uri| url::is_loopback(&uri)) {
            "http"
        } else {
            "https"
        };
        // The one registry whose API has another name.
        let host = match self.registry.as_str() {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            other => other,
        };
        format!("{scheme}://{host}/v2/{}", self.repository)
    }
}

const fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']')
}

/// What `www-authenticate` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password, with each request.
    Basic,
    /// A token of this address.
    Bearer {
        /// Where tokens are given out.
        realm: String,
        /// For whom.
        service: Option<String>,
        /// For what.
        scope: Option<String>,
    },
}

impl Challenge {
    /// Reads the header; `None` for a scheme that we do not speak.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let value = |name: &str| {
            parameters(rest)
                .into_iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
        };
        Some(Self::Bearer {
            realm: value("realm")?,
            service: value("service"),
            scope: value("scope"),
        })
    }
}

/// `a="b, c",d=e` as pairs.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = text.trim();
    while let Some((key, after)) = rest.split_once('=') {
        let key = key.trim_start_matches([',', ' ']).trim().to_owned();
        let (value, behind) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => match quoted.split_once('"') {
                Some(found) => found,
                None => break,
            },
            None => after.split_once(',').unwrap_or((after, "")),
        };
        pairs.push((key, value.trim().to_owned()));
        rest = behind;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read() {
        let hex = "ab".repeat(32);
        for (name, registry, repository, base) in [
            ("ghcr.io/a/b", "ghcr.io", "a/b", "https://ghcr.io/v2/a/b"),
            (
                "127.0.0.1:5000/a:v1",
                "127.0.0.1:5000",
                "a",
                "http://127.0.0.1:5000/v2/a",
            ),
            (
                "localhost:5000/a",
                "localhost:5000",
                "a",
                "http://localhost:5000/v2/a",
            ),
            (
                "127.evil.example/a",
                "127.evil.example",
                "a",
                "https://127.evil.example/v2/a",
            ),
            (
                "docker.io/a/b",
                "docker.io",
                "a/b",
                "https://registry-1.docker.io/v2/a/b",
            ),
        ] {
            let read = Reference::parse(&format!("{name}@sha256:{hex}")).unwrap();
            assert_eq!(
                (
                    read.registry.as_str(),
                    read.repository.as_str(),
                    read.sha256.as_str()
                ),
                (registry, repository, hex.as_str())
            );
            assert_eq!(read.base(), base);
        }
        for bad in [
            "ghcr.io/a".to_owned(),
            "ghcr.io/a@sha256:12".to_owned(),
            format!("a@sha256:{hex}"),
            format!("library/a@sha256:{hex}"),
            format!("ghcr.io/../a@sha256:{hex}"),
            format!("ghcr.io/A@sha256:{hex}"),
            format!("ghcr.io/@sha256:{hex}"),
            format!("user@ghcr.io/a@sha256:{hex}"),
        ] {
            assert!(Reference::parse(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn challenges_are_read() {
        let bearer = Challenge::parse(
            r#"Bearer realm="https://auth.example/token",service="registry, the",scope="repository:a:pull""#,
        );
        assert_eq!(
            bearer,
            Some(Challenge::Bearer {
                realm: "https://auth.example/token".to_owned(),
                service: Some("registry, the".to_owned()),
                scope: Some("repository:a:pull".to_owned()),
            })
        );
        assert_eq!(Challenge::parse("Basic realm=x"), Some(Challenge::Basic));
        assert_eq!(Challenge::parse("Negotiate"), None);
        assert_eq!(Challenge::parse("Bearer service=x"), None);
        assert_eq!(
            Challenge::parse("bearer realm=https://a/t, service=b"),
            Some(Challenge::Bearer {
                realm: "https://a/t".to_owned(),
                service: Some("b".to_owned()),
                scope: None,
            })
        );
    }
}
