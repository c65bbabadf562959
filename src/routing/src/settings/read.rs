//! Checked reading of JSON values: each function gives the value or notes what is wrong with it and where.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::address::{BadAddress, origin};
use super::{Layer, Problem};
use crate::registry::ModelRef;
use crate::tool_routing::ToolRouting;

/// Longest name of a profile.
const MOST_NAME: usize = 63;

/// Reads one settings file and collects its problems.
pub(super) struct Reader {
    pub(super) layer: Layer,
    pub(super) problems: Vec<Problem>,
    pub(super) unknown: Vec<Problem>,
}

impl Reader {
    pub(super) fn new(layer: Layer) -> Self {
        Self {
            layer,
            problems: Vec::new(),
            unknown: Vec::new(),
        }
    }

    pub(super) fn problem(&mut self, path: &str, message: String) {
        self.problems.push(Problem {
            layer: self.layer,
            path: path.to_owned(),
            message,
        });
    }

    fn expected<T>(&mut self, path: &str, expected: &str, value: &Value) -> Option<T> {
        self.problem(path, format!("expected {expected}, got {}", kind(value)));
        None
    }

    /// The same for a value of the right type, which is shown.
    fn expected_other<T>(&mut self, path: &str, expected: &str, value: &Value) -> Option<T> {
        let shown = value.as_str().map_or_else(
            || value.to_string(),
            |text| format!("`{}`", crate::text::cut(text, 60)),
        );
        self.problem(path, format!("expected {expected}, got {shown}"));
        None
    }

    /// Gives each known key of an object to `read` with its path.
    pub(super) fn object(
        &mut self,
        path: &str,
        value: &Value,
        keys: &[&str],
        mut read: impl FnMut(&mut Self, &str, &str, &Value),
    ) {
        let Some(object) = value.as_object() else {
            return self.expected(path, "an object", value).unwrap_or_default();
        };
        for (key, value) in object {
            let path = format!("{path}.{key}");
            if keys.contains(&key.as_str()) {
                read(self, key, &path, value);
            } else if path == format!("laya.{key}") {
                let message = unknown_key(key, keys);
                self.unknown.push(Problem {
                    layer: self.layer,
                    path,
                    message,
                });
            } else {
                self.problem(&path, unknown_key(key, keys));
            }
        }
    }

    /// Gives each entry of an object whose keys are provider names to `read` with its path.
    pub(super) fn map(
        &mut self,
        path: &str,
        value: &Value,
        mut read: impl FnMut(&mut Self, &str, &str, &Value),
    ) {
        let Some(object) = value.as_object() else {
            return self.expected(path, "an object", value).unwrap_or_default();
        };
        for (key, value) in object {
            let path = format!("{path}.{key}");
            if key.trim().is_empty() {
                self.problem(&path, "a provider name may not be blank".to_owned());
            } else {
                read(self, key, &path, value);
            }
        }
    }

    pub(super) fn boolean(&mut self, path: &str, value: &Value) -> Option<bool> {
        value
            .as_bool()
            .or_else(|| self.expected(path, "true or false", value))
    }

    /// A number from 0 to 1.
    pub(super) fn share(&mut self, path: &str, value: &Value) -> Option<f64> {
        let expected = "a number from 0 to 1";
        match value.as_f64() {
            None => self.expected(path, expected, value),
            Some(share) if (0.0..=1.0).contains(&share) => Some(share),
            Some(_) => self.expected_other(path, expected, value),
        }
    }

    /// A whole number of a range; `5000.0` is one.
    pub(super) fn integer(
        &mut self,
        path: &str,
        value: &Value,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let Some(number) = value.as_f64() else {
            return self.expected(path, &expected, value);
        };
        let in_range = (f64::from(*range.start())..=f64::from(*range.end())).contains(&number);
        if number.fract() == 0.0 && in_range {
            return Some(number as u32);
        }
        self.expected_other(path, &expected, value)
    }

    pub(super) fn text(&mut self, path: &str, value: &Value) -> Option<String> {
        let expected = "a text that is not blank";
        match value.as_str() {
            None => self.expected(path, expected, value),
            Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
            Some(_) => self.expected_other(path, expected, value),
        }
    }

    /// The name of a profile.
    pub(super) fn name(&mut self, path: &str, value: &Value) -> Option<String> {
        let Some(name) = value.as_str() else {
            return self.expected(path, "the name of a profile", value);
        };
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.is_empty() && name.len() <= MOST_NAME && name.chars().all(fits) {
            return Some(name.to_owned());
        }
        let form = format!(
            "the name of a profile: lower-case letters, digits and `-`, at most {MOST_NAME}"
        );
        self.expected_other(path, &form, value)
    }

    pub(super) fn url(&mut self, path: &str, value: &Value) -> Option<String> {
        let expected = "an address that begins with http:// or https://";
        let Some(url) = value.as_str() else {
            return self.expected(path, expected, value);
        };
        match origin(url) {
            Ok(_) => Some(url.to_owned()),
            // Only what cannot hold a password is shown.
            Err(BadAddress::Scheme) if !url.contains('@') => {
                self.expected_other(path, expected, value)
            }
            Err(error) => {
                self.problem(path, error.to_string());
                None
            }
        }
    }

    /// `provider/model`.
    pub(super) fn model(&mut self, path: &str, value: &Value) -> Option<ModelRef> {
        let expected = "provider/model";
        match value.as_str().map(ModelRef::parse) {
            None => self.expected(path, expected, value),
            Some(Ok(model)) => Some(model),
            Some(Err(_)) => self.expected_other(path, expected, value),
        }
    }

    /// A list of 1 to `most` models.
    pub(super) fn models(
        &mut self,
        path: &str,
        value: &Value,
        most: usize,
    ) -> Option<Vec<ModelRef>> {
        let Some(list) = value.as_array() else {
            return self.expected(path, "a list of models", value);
        };
        if list.is_empty() || list.len() > most {
            self.problem(
                path,
                format!("expected 1 to {most} models, got {}", list.len()),
            );
            return None;
        }
        let models = list
            .iter()
            .enumerate()
            .map(|(at, value)| self.model(&format!("{path}[{at}]"), value));
        models.collect::<Vec<_>>().into_iter().collect()
    }

    pub(super) fn tool_routing(&mut self, path: &str, value: &Value) -> Option<ToolRouting> {
        let expected = "advise or enforce";
        match value.as_str() {
            None => self.expected(path, expected, value),
            Some("advise") => Some(ToolRouting::Advise),
            Some("enforce") => Some(ToolRouting::Enforce),
            Some(_) => self.expected_other(path, expected, value),
        }
    }
}

/// What a value is, for a person.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The message for a key that is not there: the nearest one, else all of them.
fn unknown_key(key: &str, keys: &[&str]) -> String {
    let folded = key.to_lowercase().replace(['_', '-'], "");
    let near = |known: &&&str| {
        let known = known.to_lowercase();
        if known.starts_with(&folded) && folded.len() >= 4 {
            1
        } else {
            strsim::osa_distance(&known, &folded)
        }
    };
    match keys.iter().min_by_key(near) {
        Some(nearest) if near(&nearest) <= 2 => format!("unknown key; did you mean `{nearest}`?"),
        _ => format!("unknown key; one of {}", keys.join(", ")),
    }
}
