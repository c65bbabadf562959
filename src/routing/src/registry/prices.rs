//! Prices of a model as somebody published them, with the day they were read. A missing price stays unknown.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::bounded::UsdPerMillion;

/// Prices older than this many days are reported as stale.
pub const STALE_AFTER_DAYS: i64 = 90;

/// USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Input that no cache holds.
    pub input: UsdPerMillion,
    /// Input read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<UsdPerMillion>,
    /// Input written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<UsdPerMillion>,
    /// Output, thinking included.
    pub output: UsdPerMillion,
    /// The day they were read.
    pub as_of: Date,
    /// Where they were read.
    pub source: String,
}

impl Prices {
    /// Whether they are older than 90 days on the given day.
    #[must_use]
    pub fn stale(&self, today: Date) -> bool {
        today.duration_since(self.as_of).as_hours() > STALE_AFTER_DAYS * 24
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn grow_stale_after_90_days() {
        let prices: Prices = serde_json::from_str(
            r#"{"input":1.0,"output":5.0,"as_of":"2026-01-01","source":"https://example.com"}"#,
        )
        .unwrap();
        for (name, today, stale) in [
            ("same day", date(2026, 1, 1), false),
            ("90 days", date(2026, 4, 1), false),
            ("91 days", date(2026, 4, 2), true),
            ("from the future", date(2025, 1, 1), false),
        ] {
            assert_eq!(prices.stale(today), stale, "{name}");
        }
    }

    #[test]
    fn are_complete_and_not_negative() {
        for (name, text) in [
            (
                "no output",
                r#"{"input":1,"as_of":"2026-01-01","source":"s"}"#,
            ),
            ("no day", r#"{"input":1,"output":5,"source":"s"}"#),
            (
                "negative",
                r#"{"input":-1,"output":5,"as_of":"2026-01-01","source":"s"}"#,
            ),
            (
                "other field",
                r#"{"input":1,"output":5,"as_of":"2026-01-01","source":"s","free":true}"#,
            ),
        ] {
            assert!(serde_json::from_str::<Prices>(text).is_err(), "{name}");
        }
    }
}
