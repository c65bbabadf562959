//! Who may ask: the token, compared in constant time, and browser origins (wire.md 2.3, 2.5).

use http::{HeaderMap, HeaderValue, header};
use sha2::{Digest as _, Sha256};

use crate::settings::ApiKey;

/// What callers are compared with.
#[derive(Debug)]
pub(super) struct Guard {
    /// Digest of the header that a caller must send.
    expected: Option<[u8; 32]>,
    /// Lower case, without a slash behind.
    origins: Vec<String>,
}

/// A browser's origin that is not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Foreign;

impl Guard {
    pub(super) fn new(key: Option<&ApiKey>, origins: Vec<String>) -> Self {
        Self {
            expected: key.map(|key| Sha256::digest(key.header()).into()),
            origins,
        }
    }

    /// Whether callers need a key.
    pub(super) const fn has_key(&self) -> bool {
        self.expected.is_some()
    }

    /// Whether the caller has the key, or needs none.
    pub(super) fn trusts(&self, headers: &HeaderMap) -> bool {
        let Some(expected) = &self.expected else {
            return true;
        };
        let mut sent = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (sent.next(), sent.next()) else {
            return false;
        };
        let sent: [u8; 32] = Sha256::digest(value.as_bytes()).into();
        // Every byte is looked at, whatever the first ones are; and what is compared is a digest.
        let differences = sent
            .iter()
            .zip(expected)
            .fold(0_u8, |all, (a, b)| all | (a ^ b));
        differences == 0
    }

    /// The origin to allow in the reply; none where the caller is no browser.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Foreign> {
        let mut all = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = all.next() else {
            return Ok(None);
        };
        let text = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        if all.next().is_none() && self.origins.contains(&text) {
            return Ok(Some(origin.clone()));
        }
        Err(Foreign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(http::HeaderName, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn the_token_is_compared_byte_for_byte() {
        let key = ApiKey::new("s3cret").unwrap();
        let guard = Guard::new(Some(&key), Vec::new());
        for (sent, trusted) in [
            (&b"Bearer s3cret"[..], true),
            (b"bearer s3cret", false),
            (b"Bearer  s3cret", false),
            (b"Bearer s3cre", false),
            (b"Bearer s3cret2", false),
            (b"s3cret", false),
            (b"", false),
            (b"Bearer \xc3\xa9\xff", false),
        ] {
            let headers = headers(&[(header::AUTHORIZATION, sent)]);
            assert_eq!(guard.trusts(&headers), trusted, "{sent:?}");
        }
        assert!(!guard.trusts(&HeaderMap::new()));
        assert!(Guard::new(None, Vec::new()).trusts(&HeaderMap::new()));
    }

    #[test]
    fn only_listed_origins_pass() {
        let guard = Guard::new(None, vec!["https://a.example".to_owned()]);
        for (origin, allowed) in [
            ("https://a.example", true),
            ("https://A.example", true),
            ("http://a.example", false),
            ("https://a.example.evil", false),
            ("null", false),
            ("", false),
        ] {
            let headers = headers(&[(header::ORIGIN, origin.as_bytes())]);
            assert_eq!(guard.origin(&headers).is_ok(), allowed, "{origin}");
        }
        assert!(matches!(guard.origin(&HeaderMap::new()), Ok(None)));
    }
}
