//! What is wrong with an object, as the causes of a 422 `Status` say it.

use serde::Serialize;
use serde_json::Value;

use super::go_text;

/// Why a field was refused: `reason` of a `StatusCause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum CauseReason {
    /// A value that is referred to does not exist.
    #[serde(rename = "FieldValueNotFound")]
    NotFound,
    /// A required field is missing.
    #[serde(rename = "FieldValueRequired")]
    Required,
    /// A value appears twice where it must be unique.
    #[serde(rename = "FieldValueDuplicate")]
    Duplicate,
    /// A value is malformed, out of bounds, or refused by a rule.
    #[serde(rename = "FieldValueInvalid")]
    Invalid,
    /// A value is none of an enumeration's.
    #[serde(rename = "FieldValueNotSupported")]
    NotSupported,
    /// A value is not allowed here.
    #[serde(rename = "FieldValueForbidden")]
    Forbidden,
    /// A string is too long.
    #[serde(rename = "FieldValueTooLong")]
    TooLong,
    /// A list or map has too many entries.
    #[serde(rename = "FieldValueTooMany")]
    TooMany,
    /// A value is of another type than the field.
    #[serde(rename = "FieldValueTypeInvalid")]
    TypeInvalid,
}

impl CauseReason {
    /// The word of the API, `FieldValueRequired` for instance.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// What the message of such a cause begins with.
    const fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Cause {
    /// What kind of fault it is.
    pub reason: CauseReason,
    /// The fault in words, the value included where it is short: `Unsupported value: "x": supported values: "a", "b"`.
    pub message: String,
    /// Path of the field, `spec.tiers[0].name`; `<nil>` where it is the object as a whole.
    pub field: String,
}

/// The field of a cause that names none.
pub(super) const NO_FIELD: &str = "<nil>";

impl Cause {
    /// A cause that shows the value it is about. `detail` may be empty.
    pub(crate) fn with_value(reason: CauseReason, field: String, value: &Value, detail: &str) -> Self {
        let shown = go_text::bad_value(value);
        let message = match detail {
            "" => format!("{}: {shown}", reason.words()),
            _ => format!("{}: {shown}: {detail}", reason.words()),
        };
        Self { reason, message, field }
    }

    /// A cause that does not show the value. `detail` may be empty.
    pub(crate) fn without_value(reason: CauseReason, field: String, detail: &str) -> Self {
        let message = match detail {
            "" => reason.words().to_owned(),
            _ => format!("{}: {detail}", reason.words()),
        };
        Self { reason, message, field }
    }

    /// The API server does not run CEL rules over an object with such a fault (`hasBlockingErr`).
    #[must_use]
    pub const fn blocks_rules(&self) -> bool {
        matches!(
            self.reason,
            CauseReason::NotSupported
                | CauseReason::Required
                | CauseReason::TooLong
                | CauseReason::TooMany
                | CauseReason::TypeInvalid
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cause_serialises_as_a_status_cause() {
        let cause = Cause::with_value(CauseReason::Invalid, "spec.n".to_owned(), &json!(0), "must be greater");
        assert_eq!(
            serde_json::to_value(&cause).unwrap(),
            json!({"reason": "FieldValueInvalid", "message": "Invalid value: 0: must be greater", "field": "spec.n"})
        );
    }

    #[test]
    fn the_word_and_the_serialised_reason_are_one() {
        for reason in [
            CauseReason::NotFound,
            CauseReason::Required,
            CauseReason::Duplicate,
            CauseReason::Invalid,
            CauseReason::NotSupported,
            CauseReason::Forbidden,
            CauseReason::TooLong,
            CauseReason::TooMany,
            CauseReason::TypeInvalid,
        ] {
            assert_eq!(serde_json::to_value(reason).unwrap(), json!(reason.as_str()));
        }
    }
}
