//! Where a list goes on: the token of `continue`. It names the moment of the first page, so that all pages together are the
//! list as it was then.

use serde_json::{Value, json};

use crate::failure::Failure;

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Continuation {
    pub(super) version: u64,
    /// Namespace and name of the last object before it.
    pub(super) after: (String, String),
}

impl Continuation {
    /// As clients carry it: they must not read it.
    pub(super) fn token(&self) -> String {
        let text = json!({
            "v": "relay.dev/v1", "rv": self.version, "namespace": self.after.0, "name": self.after.1,
        });
        hex(text.to_string().as_bytes())
    }

    /// Reads a token of ours.
    pub(super) fn parse(token: &str) -> Result<Self, Failure> {
        let read = || -> Option<Self> {
            let bytes = unhex(token)?;
            let value: Value = serde_json::from_slice(&bytes).ok()?;
            if value["v"] != "relay.dev/v1" {
                return None;
            }
            Some(Self {
                version: value["rv"].as_u64()?,
                after: (
                    value["namespace"].as_str()?.to_owned(),
                    value["name"].as_str()?.to_owned(),
                ),
            })
        };
        read().ok_or_else(|| Failure::bad_request("continue key is not valid"))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text
        .chars()
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| u8::try_from(high * 16 + low).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_no_other_is() {
        let place = Continuation {
            version: 7,
            after: ("default".to_owned(), "x".to_owned()),
        };
        assert_eq!(Continuation::parse(&place.token()).unwrap(), place);
        for token in ["", "zz", "7b7d", "abc", "../x"] {
            let failure = Continuation::parse(token).unwrap_err();
            assert_eq!(failure.message, "continue key is not valid", "{token}");
        }
    }
}
