//! A string of code points that may hold lone surrogates, as JSON escapes and `surrogatepass` decoding produce them.

use std::fmt;

/// A JSON string: code points, lone surrogates included (wire.md 4.1).
///
/// Bytes are generalised UTF-8: a surrogate takes three bytes, and two side by side stay two code points. Equal texts
/// have equal bytes, and byte order is code point order.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(Repr);

/// `Surrogates` holds bytes only if they are not valid UTF-8, so equality of the variants is equality of texts.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Utf8(String),
    Surrogates(Vec<u8>),
}

impl Text {
    /// From generalised UTF-8. The caller vouches for the form of the bytes: valid UTF-8 apart from encoded surrogates.
    pub(super) fn from_generalised_utf8(bytes: Vec<u8>) -> Self {
        Self(match String::from_utf8(bytes) {
            Ok(text) => Repr::Utf8(text),
            Err(error) => Repr::Surrogates(error.into_bytes()),
        })
    }

    /// The text as a `str`, or nothing if it holds a lone surrogate.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Utf8(text) => Some(text),
            Repr::Surrogates(_) => None,
        }
    }

    /// The text with every lone surrogate replaced by U+FFFD, for places that can only carry UTF-8.
    #[must_use]
    pub fn to_string_lossy(&self) -> String {
        match &self.0 {
            Repr::Utf8(text) => text.clone(),
            Repr::Surrogates(_) => self
                .code_points()
                .map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
        }
    }

    /// Whether a lone surrogate is in the text.
    #[must_use]
    pub fn has_lone_surrogate(&self) -> bool {
        matches!(self.0, Repr::Surrogates(_))
    }

    /// Length in code points; a lone surrogate counts as one.
    #[must_use]
    pub fn len_code_points(&self) -> usize {
        self.as_bytes()
            .iter()
            .filter(|byte| (**byte & 0xC0) != 0x80)
            .count()
    }

    /// Whether there is no code point.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// Generalised UTF-8.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Utf8(text) => text.as_bytes(),
            Repr::Surrogates(bytes) => bytes,
        }
    }

    /// The code points in order, lone surrogates as they are.
    pub fn code_points(&self) -> impl Iterator<Item = u32> + '_ {
        CodePoints(self.as_bytes())
    }
}

/// Walks generalised UTF-8 that is known to be well formed.
struct CodePoints<'a>(&'a [u8]);

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (&first, rest) = self.0.split_first()?;
        let (trailing, mut code) = match first {
            0x00..=0x7F => (0, u32::from(first)),
            0x80..=0xDF => (1, u32::from(first & 0x1F)),
            0xE0..=0xEF => (2, u32::from(first & 0x0F)),
            0xF0..=0xFF => (3, u32::from(first & 0x07)),
        };
        let (tail, rest) = rest.split_at_checked(trailing)?;
        for byte in tail {
            code = (code << 6) | u32::from(byte & 0x3F);
        }
        self.0 = rest;
        Some(code)
    }
}

/// Appends one code point, surrogates included, as generalised UTF-8.
pub(super) fn push_code_point(bytes: &mut Vec<u8>, code: u32) {
    if let Some(character) = char::from_u32(code) {
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        // Only surrogates are no `char`: three bytes, 1110xxxx 10xxxxxx 10xxxxxx.
        let low_bits = |shift: u32| ((code >> shift) & 0x3F) as u8;
        bytes.extend_from_slice(&[0xE0 | low_bits(12), 0x80 | low_bits(6), 0x80 | low_bits(0)]);
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Repr::Utf8(text))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Repr::Utf8(text.to_owned()))
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string_lossy(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_walks_code_points() {
        let mut bytes = Vec::new();
        for code in [0x61, 0xE9, 0x20AC, 0xD83D, 0xDE00, 0x1_F600] {
            push_code_point(&mut bytes, code);
        }
        let text = Text::from_generalised_utf8(bytes);
        assert_eq!(text.len_code_points(), 6);
        assert_eq!(
            text.code_points().collect::<Vec<_>>(),
            [0x61, 0xE9, 0x20AC, 0xD83D, 0xDE00, 0x1_F600]
        );
        assert!(text.has_lone_surrogate());
        assert_eq!(text.as_str(), None);
        assert_eq!(text.to_string_lossy(), "aé€\u{FFFD}\u{FFFD}😀");
    }
}
