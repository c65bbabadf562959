//! How images are named. Pure.

/// An image as a spec names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// By the id of one that is on the engine: images built here have no repository digest. Never pulled.
    Id(String),
    /// In a registry.
    Remote(Remote),
}

/// An image in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Host and port, where one is named; without, the engine's default.
    pub registry: Option<String>,
    /// Repository without the registry.
    pub repository: String,
    /// Tag, where named.
    pub tag: Option<String>,
    /// `sha256:<64 hex>`, where named; it says which image, whatever the tag.
    pub digest: Option<String>,
}

const MAX_CHARS: usize = 512;

impl Reference {
    /// Reads what a spec names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}` is no name of an image: {why}");
        if text.is_empty() || text.chars().count() > MAX_CHARS {
            return Err(wrong("it has 1 to 512 characters"));
        }
        if is_digest(text) {
            return Ok(Self::Id(text.to_owned()));
        }
        if text.len() == 64 && is_hex(text) {
            return Ok(Self::Id(format!("sha256:{text}")));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) if is_digest(digest) => (rest, Some(digest.to_owned())),
            Some(_) => return Err(wrong("after @ stands sha256: and 64 hex digits")),
            None => (text, None),
        };
        // A colon before the last slash belongs to the port.
        let slash = rest.rfind('/').map_or(0, |at| at + 1);
        let (name, tag) = match rest[slash..].split_once(':') {
            Some((last, tag)) => (&rest[..slash + last.len()], Some(tag)),
            None => (rest, None),
        };
        if let Some(tag) = tag
            && !is_tag(tag)
        {
            return Err(wrong(
                "a tag has letters, digits, `_`, `.`, `-`, at most 128",
            ));
        }
        let (registry, repository) = match name.split_once('/') {
            Some((first, more)) if is_registry(first) => (Some(first.to_owned()), more),
            _ => (None, name),
        };
        if !repository.split('/').all(is_component) {
            return Err(wrong(
                "a repository has lower case letters and digits, with `.`, `_` or `-` between, in parts divided by `/`",
            ));
        }
        Ok(Self::Remote(Remote {
            registry,
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        }))
    }
}

impl Remote {
    /// Repository with its registry: `fromImage` of a pull.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.registry {
            Some(registry) => format!("{registry}/{}", self.repository),
            None => self.repository.clone(),
        }
    }

    /// `tag` of a pull: the digest, else the tag, else `latest`. Without one an engine pulls every tag there is.
    #[must_use]
    pub fn version(&self) -> &str {
        let named = self.digest.as_deref().or(self.tag.as_deref());
        named.unwrap_or("latest")
    }

    /// Under what its registry's credentials are kept.
    #[must_use]
    pub fn registry(&self) -> &str {
        self.registry.as_deref().unwrap_or("docker.io")
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:");
    hex.is_some_and(|hex| hex.len() == 64 && is_hex(hex))
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=128).contains(&tag.len())
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

/// The first part is a registry when it cannot be part of a repository: it has a dot or a port, or is `localhost`.
fn is_registry(first: &str) -> bool {
    let (host, port) = match first.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (first, None),
    };
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let good = |b: u8| b.is_ascii_alphanumeric() || b".-:[]".contains(&b);
    let named = port.map_or(host.contains('.') || host == "localhost", digits);
    named && !host.is_empty() && host.bytes().all(good)
}

fn is_component(part: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !part.is_empty()
        && part.bytes().all(|b| inner(b) || b"._-".contains(&b))
        && part.bytes().next().is_some_and(inner)
        && part.bytes().last().is_some_and(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_engines_read_them() {
        let hex = "0123456789abcdef".repeat(4);
        let digest = format!("sha256:{hex}");
        // Text, registry, repository, version of a pull.
        let cases = [
            ("laya".to_owned(), None, "laya", "latest"),
            (
                "relay-laya-native:latest".to_owned(),
                None,
                "relay-laya-native",
                "latest",
            ),
            ("library/laya:1.0".to_owned(), None, "library/laya", "1.0"),
            (
                "localhost/laya".to_owned(),
                Some("localhost"),
                "laya",
                "latest",
            ),
            (
                "127.0.0.1:5000/a/laya".to_owned(),
                Some("127.0.0.1:5000"),
                "a/laya",
                "latest",
            ),
            (
                "127.0.0.1:5000/laya:2".to_owned(),
                Some("127.0.0.1:5000"),
                "laya",
                "2",
            ),
            (
                "ghcr.io/eltonssouza/relay-laya:1-cpu-0123456789ab".to_owned(),
                Some("ghcr.io"),
                "eltonssouza/relay-laya",
                "1-cpu-0123456789ab",
            ),
            (format!("laya@{digest}"), None, "laya", digest.as_str()),
            (
                format!("r.example:443/laya:3@{digest}"),
                Some("r.example:443"),
                "laya",
                digest.as_str(),
            ),
        ];
        for (text, registry, repository, version) in cases {
            let Ok(Reference::Remote(remote)) = Reference::parse(&text) else {
                panic!("{text} is refused");
            };
            assert_eq!(remote.registry.as_deref(), registry, "{text}");
            assert_eq!(remote.repository, repository, "{text}");
            assert_eq!(remote.version(), version, "{text}");
        }
        for id in [hex.clone(), digest.clone()] {
            assert_eq!(Reference::parse(&id), Ok(Reference::Id(digest.clone())));
        }
        let bad = [
            "",
            "Laya",
            "laya:",
            "laya:-x",
            "laya@sha256:12",
            "a//b",
            "-laya",
            "laya/",
            "la ya",
            "laya:a/b",
            "127.0.0.1:5000/",
        ];
        for text in bad {
            assert!(Reference::parse(text).is_err(), "{text:?}");
        }
    }
}
