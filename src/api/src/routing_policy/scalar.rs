//! Numbers in specs are strings, so that no float is compared or rounded on the way (control-plane 1.2).

use serde::{Deserialize, Serialize};

/// A string that must look like a number of a certain form.
fn digits(text: &str, whole: usize, fraction: usize) -> bool {
    let (before, after) = match text.split_once('.') {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    };
    let all = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    all(before, whole) && after.is_none_or(|after| all(after, fraction))
}

/// A decimal between 0 and 1 with at most six places, written as a string: `"0.5"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "kinds", schemars(extend("maxLength" = 8, "pattern" = r"^(0(\.[0-9]{1,6})?|1(\.0{1,6})?)$")))]
#[serde(try_from = "String", into = "String")]
pub struct Ratio(String);

impl Ratio {
    /// A value known to be right.
    pub(crate) fn constant(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// The number, 0..=1.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.0.parse().unwrap_or_default()
    }
}

impl Ratio {
    /// The number as crate `routing` has it.
    #[must_use]
    pub fn ratio(&self) -> routing::bounded::Ratio {
        routing::bounded::Ratio::clamped(self.value()).unwrap_or_default()
    }
}

impl TryFrom<String> for Ratio {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let in_range =
            text.starts_with("0") || text.trim_end_matches('0').trim_end_matches('.') == "1";
        if digits(&text, 1, 6) && in_range {
            Ok(Self(text))
        } else {
            Err(format!(
                "`{text}` must be a decimal between \"0\" and \"1\" with at most six places"
            ))
        }
    }
}

impl From<Ratio> for String {
    fn from(ratio: Ratio) -> Self {
        ratio.0
    }
}

/// A decimal of at most nine digits and six places, written as a string: `"12.50"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "kinds", schemars(extend("maxLength" = 16, "pattern" = r"^[0-9]{1,9}(\.[0-9]{1,6})?$")))]
#[serde(try_from = "String", into = "String")]
pub struct Decimal(String);

impl Decimal {
    /// A value known to be right.
    #[cfg(feature = "kinds")]
    pub(crate) fn constant(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// The number, not negative.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.0.parse().unwrap_or_default()
    }
}

impl Decimal {
    /// The number as a price per million tokens, cut at the highest there is.
    #[must_use]
    pub fn price(&self) -> routing::bounded::UsdPerMillion {
        routing::bounded::UsdPerMillion::clamped(self.value()).unwrap_or_default()
    }
}

impl TryFrom<String> for Decimal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if digits(&text, 9, 6) {
            Ok(Self(text))
        } else {
            Err(format!(
                "`{text}` must be a decimal such as \"12.50\", at most nine digits and six places"
            ))
        }
    }
}

impl From<Decimal> for String {
    fn from(decimal: Decimal) -> Self {
        decimal.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_exactly_the_patterns_of_the_page() {
        for good in ["0", "1", "0.5", "0.000001", "1.0", "1.000000"] {
            assert!(Ratio::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "2",
            "1.1",
            "10",
            "01",
            ".5",
            "0.",
            "0.0000001",
            "-0",
            "1e0",
            "NaN",
            " 0",
        ] {
            assert!(Ratio::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        for good in ["0", "12.50", "123456789.123456", "007"] {
            assert!(Decimal::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in ["", "1234567890", "1.", ".1", "-1", "1.1234567", "inf"] {
            assert!(Decimal::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
