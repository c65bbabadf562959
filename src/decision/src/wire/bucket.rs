//! Calibration buckets: kind and size class of a question (wire.md 6.1).

use std::fmt;

use crate::contract::Kind;

/// Size class by number of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BucketSize {
    /// At most 2.
    Two,
    /// 3 to 5.
    ThreeToFive,
    /// 6 to 10.
    SixToTen,
    /// 11 and more.
    ElevenUp,
}

impl BucketSize {
    /// Every class, smallest first.
    pub const ALL: &'static [Self] =
        &[Self::Two, Self::ThreeToFive, Self::SixToTen, Self::ElevenUp];

    /// The class of a number of options.
    #[must_use]
    pub const fn of(options: usize) -> Self {
        match options {
            0..=2 => Self::Two,
            3..=5 => Self::ThreeToFive,
            6..=10 => Self::SixToTen,
            _ => Self::ElevenUp,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Two => "2",
            Self::ThreeToFive => "3-5",
            Self::SixToTen => "6-10",
            Self::ElevenUp => "11+",
        }
    }
}

/// A bucket, written like `choice:3-5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// Kind of the question.
    pub kind: Kind,
    /// Size class.
    pub size: BucketSize,
}

impl Bucket {
    /// The bucket of a question with that many options.
    #[must_use]
    pub const fn of(kind: Kind, options: usize) -> Self {
        Self {
            kind,
            size: BucketSize::of(options),
        }
    }

    /// The bucket with a name like `choice:3-5`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let (kind, size) = name.split_once(':')?;
        let kind = Kind::from_word(kind)?;
        let size = BucketSize::ALL
            .iter()
            .copied()
            .find(|class| class.as_str() == size)?;
        Some(Self { kind, size })
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.size.as_str())
    }
}
