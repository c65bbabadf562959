//! Canonical forms and digests of a question set (routing.md 1.3).

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::{Criteria, Question};
use crate::json::{Value, write};

/// A SHA-256 digest, written `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{got}` is no digest: expected `sha256:` and 64 lower-case hexadecimal digits")]
pub struct DigestError {
    /// The text that was given.
    pub got: String,
}

impl Digest {
    /// Digest of bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// 64 hexadecimal digits without the prefix.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The first 12 hexadecimal digits, for people.
    #[must_use]
    pub fn short(&self) -> String {
        self.0
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("sha256:{}", self.hex()))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let error = || DigestError {
            got: text.to_owned(),
        };
        let hex = text.strip_prefix("sha256:").ok_or_else(error)?.as_bytes();
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        if hex.len() != 64 {
            return Err(error());
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.as_chunks::<2>().0) {
            *byte = digit(pair[0])
                .zip(digit(pair[1]))
                .map(|(high, low)| high << 4 | low)
                .ok_or_else(error)?;
        }
        Ok(Self(bytes))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

pub(super) fn of_wording(questions: &[Question]) -> Digest {
    Digest::of(wording_form(questions).as_bytes())
}

pub(super) fn of_shape(questions: &[Question]) -> Digest {
    Digest::of(shape_form(questions).as_bytes())
}

/// `[id, kind, instructions, criteria]` per question; the noul texts always true first, `[]` where there are none.
pub(super) fn wording_form(questions: &[Question]) -> String {
    canonical(questions, |question| {
        let pair =
            |id: &str, text: &Option<String>| Value::List(vec![id.into(), text.clone().into()]);
        let criteria = match &question.criteria {
            Criteria::Choice(options) => options
                .iter()
                .map(|option| pair(&option.id, &option.text))
                .collect(),
            Criteria::Score(levels) => levels.iter().map(|level| level.as_str().into()).collect(),
            Criteria::Noul(None) => Vec::new(),
            Criteria::Noul(Some(texts)) => vec![
                pair("true", &texts.when_true),
                pair("false", &texts.when_false),
            ],
        };
        vec![question.instructions.as_str().into(), Value::List(criteria)]
    })
}

/// `[id, "choice", [options]]`, `[id, "score", levels]`, `[id, "noul"]`.
pub(super) fn shape_form(questions: &[Question]) -> String {
    canonical(questions, |question| match &question.criteria {
        Criteria::Choice(options) => {
            vec![Value::List(
                options
                    .iter()
                    .map(|option| option.id.as_str().into())
                    .collect(),
            )]
        }
        // At most `MAX_OPTIONS` levels: the cast is exact.
        Criteria::Score(levels) => vec![Value::from(levels.len() as i64)],
        Criteria::Noul(_) => Vec::new(),
    })
}

fn canonical(questions: &[Question], rest: impl Fn(&Question) -> Vec<Value>) -> String {
    let list = questions.iter().map(|question| {
        let mut element = vec![question.id.as_str().into(), question.kind().as_str().into()];
        element.extend(rest(question));
        Value::List(element)
    });
    write(&Value::List(list.collect()))
}
