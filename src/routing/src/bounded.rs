//! Numbers that cannot be wrong: finite and within a range by construction, so that the formulas of routing.md 8–13 are
//! total functions. What comes from outside is turned into one of these where it enters.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number that is not finite or outside the range of what it was meant to be.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{what} must be a number from {least} to {most}, got {got}")]
pub struct OutOfRange {
    /// What it was meant to be, for example `a ratio`.
    pub what: &'static str,
    /// Smallest value allowed.
    pub least: f64,
    /// Largest value allowed.
    pub most: f64,
    /// What was given.
    pub got: f64,
}

macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident, $what:literal, $least:literal, $most:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(try_from = "f64", into = "f64")]
        #[cfg_attr(feature = "schema", schemars(extend("minimum" = $least, "maximum" = $most)))]
        pub struct $name(f64);

        impl $name {
            /// The smallest value.
            pub const LEAST: Self = Self($least);
            /// The largest value.
            pub const MOST: Self = Self($most);

            /// A number known at compile time.
            ///
            /// # Panics
            /// At compile time, when it is outside the range.
            #[must_use]
            pub const fn constant(value: f64) -> Self {
                assert!(value >= $least && value <= $most, "outside the range");
                Self(value)
            }

            /// Takes a number of the range.
            ///
            /// # Errors
            /// When it is not finite or outside the range.
            pub fn new(value: f64) -> Result<Self, OutOfRange> {
                if value.is_finite() && ($least..=$most).contains(&value) {
                    Ok(Self(value + 0.0)) // −0 becomes 0, or two equal values would be written differently
                } else {
                    Err(OutOfRange { what: $what, least: $least, most: $most, got: value })
                }
            }

            /// Takes a finite number, moved into the range if it lies outside.
            ///
            /// # Errors
            /// When it is not finite.
            pub fn clamped(value: f64) -> Result<Self, OutOfRange> {
                if value.is_finite() {
                    Ok(Self(value.clamp($least, $most) + 0.0))
                } else {
                    Err(OutOfRange { what: $what, least: $least, most: $most, got: value })
                }
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = OutOfRange;

            fn try_from(value: f64) -> Result<Self, OutOfRange> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

bounded!(
    /// A share, weight or probability, 0..=1.
    Ratio, "a ratio", 0.0, 1.0
);
bounded!(
    /// An amount of money in USD, 0..=10¹².
    Usd, "an amount in USD", 0.0, 1e12
);
bounded!(
    /// A price in USD per million tokens, 0..=10⁶.
    UsdPerMillion, "a price in USD per million tokens", 0.0, 1e6
);
bounded!(
    /// A sum of decayed observations, 0..=10⁹.
    Runs, "a number of runs", 0.0, 1e9
);

bounded!(
    /// A sum of weighted failures of a task, 0..=10⁹.
    Score, "a sum of failures", 0.0, 1e9
);

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self::LEAST;
    /// All.
    pub const ONE: Self = Self::MOST;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_only_what_lies_in_the_range() {
        for (name, value, taken, clamped) in [
            ("inside", 0.5, Some(0.5), Some(0.5)),
            ("least", 0.0, Some(0.0), Some(0.0)),
            ("most", 1.0, Some(1.0), Some(1.0)),
            ("below", -1.0, None, Some(0.0)),
            ("above", 2.0, None, Some(1.0)),
            ("not a number", f64::NAN, None, None),
            ("infinite", f64::INFINITY, None, None),
        ] {
            assert_eq!(Ratio::new(value).ok().map(Ratio::get), taken, "{name}");
            assert_eq!(
                Ratio::clamped(value).ok().map(Ratio::get),
                clamped,
                "{name}, clamped"
            );
        }
        assert!(serde_json::from_str::<Ratio>("1.5").is_err());
        assert_eq!(
            serde_json::to_string(&Ratio::new(-0.0).unwrap()).unwrap(),
            "0.0"
        );
    }
}
