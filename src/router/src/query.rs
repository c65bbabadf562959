//! Parameters of a URL, as strict as bodies: unknown and repeated ones are refused with their name.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use api::FieldError;
use jiff::{SignedDuration, Timestamp};
use service::problem::Failure;

/// The parameters of one request.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads a query string; only `known` names may stand there, each once.
    pub(crate) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, Failure> {
        let mut found = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if !known.contains(&&*name) {
                let message = if known.is_empty() {
                    "is unknown; this path takes no parameters".to_owned()
                } else {
                    format!("is unknown; there are {}", known.join(", "))
                };
                return Err(refused(&name, message));
            }
            if found.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(refused(&name, "stands there twice"));
            }
        }
        Ok(Self(found))
    }

    /// Takes out a text; an empty one counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).filter(|value| !value.is_empty())
    }

    /// Takes out a text that must be there.
    pub(crate) fn required(&mut self, name: &str) -> Result<String, Failure> {
        self.take(name)
            .ok_or_else(|| refused(name, "is missing or empty"))
    }

    /// Takes out a number within a range.
    pub(crate) fn number(
        &mut self,
        name: &str,
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, Failure> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(refused(
                name,
                format!(
                    "must be a whole number from {} to {}",
                    range.start(),
                    range.end()
                ),
            )),
        }
    }

    /// Takes out a switch.
    pub(crate) fn switch(&mut self, name: &str) -> Result<bool, Failure> {
        match self.take(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(refused(name, "must be `true` or `false`")),
        }
    }

    /// Takes out a time: RFC 3339.
    pub(crate) fn time(&mut self, name: &str) -> Result<Option<Timestamp>, Failure> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        text.parse()
            .map(Some)
            .map_err(|_| refused(name, "must be a time such as 2026-11-30T10:00:00Z"))
    }

    /// Takes out a time or an age such as `2w`, `7d`, `12h` or `30m` before `now`.
    pub(crate) fn since(
        &mut self,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Failure> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        since(&text, now).map(Some).ok_or_else(|| {
            refused(
                name,
                "must be a time such as 2026-11-30T10:00:00Z or an age such as 2w, 7d, 12h or 30m",
            )
        })
    }
}

fn since(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count: i64 = count
        .parse()
        .ok()
        .filter(|count| (0..=100_000).contains(count))?;
    let minutes = match unit {
        "w" => 7 * 24 * 60,
        "d" => 24 * 60,
        "h" => 60,
        "m" => 1,
        _ => return None,
    };
    now.checked_sub(SignedDuration::from_mins(count * minutes))
        .ok()
}

fn refused(name: &str, message: impl Into<String>) -> Failure {
    Failure::invalid(vec![FieldError::new(format!("?{name}"), message)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_it_does_not_know() {
        for (name, query, ok) in [
            ("nothing", None, true),
            ("known", Some("a=1&b=x%20y"), true),
            ("unknown", Some("c=1"), false),
            ("twice", Some("a=1&a=2"), false),
        ] {
            assert_eq!(Query::read(query, &["a", "b"]).is_ok(), ok, "{name}");
        }
        let mut query = Query::read(Some("a=501"), &["a"]).unwrap();
        assert!(query.number("a", 1..=500).is_err());
    }

    #[test]
    fn reads_times_and_ages() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-11-01T00:00:00Z", Some("2026-11-01T00:00:00Z")),
            ("2w", Some("2026-11-16T12:00:00Z")),
            ("7d", Some("2026-11-23T12:00:00Z")),
            ("12h", Some("2026-11-30T00:00:00Z")),
            ("30m", Some("2026-11-30T11:30:00Z")),
            ("0d", Some("2026-11-30T12:00:00Z")),
            ("7", None),
            ("d", None),
            ("w", None),
            ("100000w", Some("0110-05-19T12:00:00Z")),
            ("-1d", None),
            ("7é", None),
            ("99999999999d", None),
        ] {
            let expected = expected.map(|text| text.parse().unwrap());
            assert_eq!(since(text, now), expected, "{text}");
        }
    }
}
