//! The checkpoint digest as a type that cannot be wrong, so that it may become part of a path.

use std::fmt;

/// `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(String);

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{}' is no digest: expected sha256: and 64 lower-case hexadecimal digits", .0.escape_default()
)]
pub struct NoDigest(String);

impl Digest {
    /// Reads `sha256:<64 hex>`.
    ///
    /// # Errors
    /// When the text is anything else.
    pub fn parse(text: &str) -> Result<Self, NoDigest> {
        text.strip_prefix("sha256:")
            .filter(|hex| is_hex64(hex))
            .map(|hex| Self(hex.to_owned()))
            .ok_or_else(|| NoDigest(text.chars().take(80).collect()))
    }

    /// From 64 digits alone.
    pub(crate) fn of_hex(hex: &str) -> Option<Self> {
        is_hex64(hex).then(|| Self(hex.to_owned()))
    }

    /// Its 64 digits.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.0
    }

    /// Name of the folder a version with this digest lies in.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("sha256-{}", self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        Self::parse(text)
    }
}

/// Whether a text is 64 lower-case hexadecimal digits.
pub(crate) fn is_hex64(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digests_are_digests() {
        let hex = "0123456789abcdef".repeat(4);
        let digest = Digest::parse(&format!("sha256:{hex}")).unwrap();
        assert_eq!(digest.to_string(), format!("sha256:{hex}"));
        assert_eq!(digest.folder(), format!("sha256-{hex}"));
        for text in [
            "",
            &hex,
            "sha256:",
            &format!("sha256:{}", &hex[1..]),
            &format!("sha256:{}", hex.to_uppercase()),
            &format!("sha256:{}/../x", &hex[5..]),
        ] {
            assert!(Digest::parse(text).is_err(), "{text}");
        }
    }
}
