//! Integers of any size in exact decimal form, and their exact comparison with floats.

use std::fmt;

/// A JSON integer of any size (wire.md 4.1). `-0` is `0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Integer(Repr);

/// `Big` is used only for what does not fit into an `i64`, so equality of the variants is equality of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Repr {
    Small(i64),
    /// Decimal digits with an optional minus sign, no leading zero.
    Big(Box<str>),
}

impl Integer {
    /// From `-?(0|[1-9][0-9]*)`, which the caller vouches for.
    pub(super) fn from_json_digits(digits: &str) -> Self {
        Self(match digits.parse() {
            Ok(small) => Repr::Small(small),
            Err(_) => Repr::Big(digits.into()),
        })
    }

    /// The value if it fits into 64 bits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self.0 {
            Repr::Small(small) => Some(small),
            Repr::Big(_) => None,
        }
    }

    /// Whether it is less than zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Small(small) => *small < 0,
            Repr::Big(digits) => digits.starts_with('-'),
        }
    }

    /// Whether it is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0 == Repr::Small(0)
    }

    /// The nearest float, infinite beyond its range.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            Repr::Small(small) => *small as f64,
            // A decimal integer is always a float literal; infinity would be as wrong as any other answer here.
            Repr::Big(digits) => digits.parse().unwrap_or(f64::INFINITY),
        }
    }

    /// Exact equality with a float: `2^53 + 1` is not `2^53` as a float. NaN and infinities equal no integer.
    #[must_use]
    pub fn equals_float(&self, float: f64) -> bool {
        if !float.is_finite() || float.fract() != 0.0 {
            return false;
        }
        match &self.0 {
            // Every finite integral float below 2^63 is exact in an i128.
            Repr::Small(small) => float.abs() < 1e19 && float as i128 == i128::from(*small),
            Repr::Big(digits) => format!("{float:.0}") == **digits,
        }
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Self(Repr::Small(value))
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Small(small) => small.fmt(f),
            Repr::Big(digits) => f.pad(digits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_exactly_with_floats() {
        let rows = [
            ("1 and 1.0", "1", 1.0, true),
            ("0 and -0.0", "0", -0.0, true),
            ("-0 and 0.0", "-0", 0.0, true),
            ("1 and 1.5", "1", 1.5, false),
            (
                "2^53 and 2^53",
                "9007199254740992",
                9_007_199_254_740_992.0,
                true,
            ),
            (
                "2^53+1 and 2^53",
                "9007199254740993",
                9_007_199_254_740_992.0,
                false,
            ),
            (
                "2^63-1 and 2^63",
                "9223372036854775807",
                9_223_372_036_854_775_808.0,
                false,
            ),
            (
                "2^63 and 2^63",
                "9223372036854775808",
                9_223_372_036_854_775_808.0,
                true,
            ),
            ("1e22 and 1e22", "10000000000000000000000", 1e22, true),
            ("-1e22 and 1e22", "-10000000000000000000000", 1e22, false),
            ("1e22+1 and 1e22", "10000000000000000000001", 1e22, false),
            ("5 and NaN", "5", f64::NAN, false),
            ("5 and infinity", "5", f64::INFINITY, false),
        ];
        for (name, digits, float, equal) in rows {
            assert_eq!(
                Integer::from_json_digits(digits).equals_float(float),
                equal,
                "{name}"
            );
        }
    }

    #[test]
    fn keeps_every_digit() {
        for digits in [
            "0",
            "-1",
            "9223372036854775807",
            "-9223372036854775809",
            "123456789012345678901234567890",
        ] {
            assert_eq!(Integer::from_json_digits(digits).to_string(), digits);
        }
        assert_eq!(Integer::from_json_digits("-0").to_string(), "0");
    }
}
