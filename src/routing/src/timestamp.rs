//! Times as our JSON has them: RFC 3339, UTC, three decimals (routing.md, conventions). For `#[serde(with)]`.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

/// Text of a time, for example `2026-11-30T10:41:37.000Z`.
#[must_use]
pub fn format(time: Timestamp) -> String {
    let millis = time.as_millisecond();
    // Cutting to whole milliseconds keeps what is written and what is read back equal.
    let whole = Timestamp::from_millisecond(millis).unwrap_or(time);
    format!("{whole:.3}")
}

/// Writes [`format()`].
///
/// # Errors
/// Only those of the serializer.
pub fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*time))
}

/// Reads any RFC 3339 time.
///
/// # Errors
/// When the text is no RFC 3339 time.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse()
        .map_err(|_| D::Error::custom(format!("`{text}` is no RFC 3339 time")))
}

/// The same for a time that need not be there.
pub mod optional {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Time(#[serde(with = "super")] Timestamp);

    /// Writes [`format()`](super::format()), or null.
    ///
    /// # Errors
    /// Only those of the serializer.
    pub fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => super::serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads any RFC 3339 time, or null.
    ///
    /// # Errors
    /// When there is something else.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<Time>::deserialize(deserializer)?.map(|time| time.0))
    }
}
