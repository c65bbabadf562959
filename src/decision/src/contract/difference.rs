//! The first difference between two contracts, for people: what `ContractMismatch` names (routing.md 1.3).

use super::{Contract, Criteria, Kind, Question};

/// How another contract first differs from the one that is expected. Positions count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// The other one ends before this question.
    #[error("question {position} `{id}` is missing")]
    MissingQuestion {
        /// Position of the question.
        position: usize,
        /// Its id.
        id: String,
    },
    /// The other one has a question more.
    #[error("question {position} `{id}` is one too many")]
    ExtraQuestion {
        /// Position of the question.
        position: usize,
        /// Its id.
        id: String,
    },
    /// Another question stands at this position.
    #[error("question {position} is `{got}` instead of `{expected}`")]
    OtherQuestion {
        /// Position of the question.
        position: usize,
        /// Id expected there.
        expected: String,
        /// Id found there.
        got: String,
    },
    /// The same question has another kind.
    #[error("question `{id}` is a {got} instead of a {expected}")]
    OtherKind {
        /// The question.
        id: String,
        /// Kind expected.
        expected: Kind,
        /// Kind found.
        got: Kind,
    },
    /// The other one lacks options.
    #[error("question `{id}`: option {position} `{option}` is missing")]
    MissingOption {
        /// The question.
        id: String,
        /// Position of the option.
        position: usize,
        /// The option.
        option: String,
    },
    /// The other one has more options.
    #[error("question `{id}`: option {position} `{option}` is one too many")]
    ExtraOption {
        /// The question.
        id: String,
        /// Position of the option.
        position: usize,
        /// The option.
        option: String,
    },
    /// Another option stands at this position.
    #[error("question `{id}`: option {position} is `{got}` instead of `{expected}`")]
    OtherOption {
        /// The question.
        id: String,
        /// Position of the option.
        position: usize,
        /// Option expected there.
        expected: String,
        /// Option found there.
        got: String,
    },
    /// The scale has another number of levels.
    #[error("question `{id}` has {got} levels instead of {expected}")]
    OtherLevels {
        /// The question.
        id: String,
        /// Levels expected.
        expected: usize,
        /// Levels found.
        got: usize,
    },
    /// Only words differ.
    #[error("question `{id}`: the wording of its {part} differs")]
    OtherWording {
        /// The question.
        id: String,
        /// `instructions` or `criteria`.
        part: &'static str,
    },
}

impl Contract {
    /// The first difference in shape: what makes the shape digests differ.
    #[must_use]
    pub fn first_shape_difference(&self, other: &Self) -> Option<Difference> {
        first_by_position(self.questions(), other.questions(), question_order).or_else(|| {
            let mut pairs = self.questions().iter().zip(other.questions());
            pairs.find_map(|(expected, got)| shape_difference(expected, got))
        })
    }

    /// The first difference: in shape if there is one, else in wording. None if the contract digests are equal.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<Difference> {
        self.first_shape_difference(other).or_else(|| {
            let mut pairs = self.questions().iter().zip(other.questions());
            pairs.find_map(|(expected, got)| wording_difference(expected, got))
        })
    }
}

/// One position of two lists that are compared in order.
struct Place<'a, T> {
    position: usize,
    expected: Option<&'a T>,
    got: Option<&'a T>,
}

fn first_by_position<'a, T>(
    expected: &'a [T],
    got: &'a [T],
    difference: impl Fn(Place<'a, T>) -> Option<Difference>,
) -> Option<Difference> {
    (0..expected.len().max(got.len())).find_map(|index| {
        difference(Place {
            position: index + 1,
            expected: expected.get(index),
            got: got.get(index),
        })
    })
}

fn question_order(
    Place {
        position,
        expected,
        got,
    }: Place<'_, Question>,
) -> Option<Difference> {
    match (
        expected.map(|question| &question.id),
        got.map(|question| &question.id),
    ) {
        (Some(expected), Some(got)) if expected != got => Some(Difference::OtherQuestion {
            position,
            expected: expected.clone(),
            got: got.clone(),
        }),
        (Some(id), None) => Some(Difference::MissingQuestion {
            position,
            id: id.clone(),
        }),
        (None, Some(id)) => Some(Difference::ExtraQuestion {
            position,
            id: id.clone(),
        }),
        _ => None,
    }
}

fn shape_difference(expected: &Question, got: &Question) -> Option<Difference> {
    let id = &expected.id;
    match (&expected.criteria, &got.criteria) {
        (Criteria::Choice(expected), Criteria::Choice(got)) => first_by_position(
            expected,
            got,
            |Place {
                 position,
                 expected,
                 got,
             }| {
                let id = id.clone();
                match (
                    expected.map(|option| &option.id),
                    got.map(|option| &option.id),
                ) {
                    (Some(expected), Some(got)) if expected != got => {
                        Some(Difference::OtherOption {
                            id,
                            position,
                            expected: expected.clone(),
                            got: got.clone(),
                        })
                    }
                    (Some(option), None) => Some(Difference::MissingOption {
                        id,
                        position,
                        option: option.clone(),
                    }),
                    (None, Some(option)) => Some(Difference::ExtraOption {
                        id,
                        position,
                        option: option.clone(),
                    }),
                    _ => None,
                }
            },
        ),
        (Criteria::Score(expected), Criteria::Score(got)) => {
            (expected.len() != got.len()).then(|| Difference::OtherLevels {
                id: id.clone(),
                expected: expected.len(),
                got: got.len(),
            })
        }
        (Criteria::Noul(_), Criteria::Noul(_)) => None,
        (expected, got) => Some(Difference::OtherKind {
            id: id.clone(),
            expected: expected.kind(),
            got: got.kind(),
        }),
    }
}

fn wording_difference(expected: &Question, got: &Question) -> Option<Difference> {
    let part = if expected.instructions != got.instructions {
        "instructions"
    } else if expected.criteria != got.criteria {
        "criteria"
    } else {
        return None;
    };
    Some(Difference::OtherWording {
        id: expected.id.clone(),
        part,
    })
}
