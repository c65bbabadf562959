//! Model references: `provider/model`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::text;

/// Longest reference, in UTF-16 units (control-plane 6).
pub const MAX_UNITS: usize = 160;

/// A reference `provider/model`, split at the first slash. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelRef {
    text: Arc<str>,
    slash: usize,
}

/// Why a text is no model reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadModelRef {
    /// No slash, or nothing on one side of it.
    #[error("`{0}` is no model reference: expected `provider/model`")]
    Form(String),
    /// White space or control characters.
    #[error("model reference {0:?} has white space or control characters")]
    Characters(String),
    /// Too long.
    #[error("model reference has {units} characters, limit {MAX_UNITS}")]
    Length {
        /// Its length in UTF-16 units.
        units: usize,
    },
}

impl ModelRef {
    /// Reads `provider/model`; the model may contain slashes.
    ///
    /// # Errors
    /// When one of the two parts is empty, or the text is too long or has white space or control characters.
    pub fn parse(text: &str) -> Result<Self, BadModelRef> {
        let units = text::units(text);
        if units > MAX_UNITS {
            return Err(BadModelRef::Length { units });
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(BadModelRef::Characters(text.to_owned()));
        }
        match text.find('/') {
            Some(slash) if slash > 0 && slash + 1 < text.len() => Ok(Self {
                text: text.into(),
                slash,
            }),
            _ => Err(BadModelRef::Form(text.to_owned())),
        }
    }

    /// What precedes the first slash.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.text[..self.slash]
    }

    /// What follows the first slash.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.text[self.slash + 1..]
    }

    /// The whole reference.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelRef({})", self.text)
    }
}

impl FromStr for ModelRef {
    type Err = BadModelRef;

    fn from_str(text: &str) -> Result<Self, BadModelRef> {
        Self::parse(text)
    }
}

impl Serialize for ModelRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ModelRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ModelRef {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ModelRef".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "`provider/model`, split at the first slash.",
            "maxLength": MAX_UNITS,
            "pattern": r"^[^/\s\x00-\x20\x7f-\xa0]+/[^\s\x00-\x20\x7f-\xa0]+$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_the_first_slash() {
        for (name, text, parts) in [
            (
                "plain",
                "anthropic/claude-haiku-4-5",
                Some(("anthropic", "claude-haiku-4-5")),
            ),
            (
                "slashes in the model",
                "openrouter/meta/llama-5",
                Some(("openrouter", "meta/llama-5")),
            ),
            ("slash at the end of the model", "a/b/", Some(("a", "b/"))),
            ("no slash", "haiku", None),
            ("no provider", "/haiku", None),
            ("no model", "anthropic/", None),
            ("empty", "", None),
            ("white space", "anthropic/claude haiku", None),
            ("control character", "anthropic/claude\u{7}", None),
        ] {
            let parsed = ModelRef::parse(text).ok();
            let got = parsed.as_ref().map(|model| (model.provider(), model.id()));
            assert_eq!(got, parts, "{name}");
        }
    }

    #[test]
    fn has_a_longest_length() {
        let fits = format!("p/{}", "m".repeat(MAX_UNITS - 2));
        assert!(ModelRef::parse(&fits).is_ok());
        assert_eq!(
            ModelRef::parse(&format!("{fits}m")),
            Err(BadModelRef::Length {
                units: MAX_UNITS + 1
            })
        );
    }

    #[test]
    fn is_a_string_in_json() {
        let model: ModelRef = serde_json::from_str(r#""a/b/c""#).unwrap();
        assert_eq!(serde_json::to_string(&model).unwrap(), r#""a/b/c""#);
        assert!(serde_json::from_str::<ModelRef>(r#""a""#).is_err());
    }
}
