//! Where a row comes from, what it is used for and who labelled it: the words of `dataset.jsonl` (training.md 2.4).

use crate::reason::words;

/// Where a row comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// Taught in a session: focus of a training, and memory.
    Session,
    /// Made from templates.
    Synthetic,
    /// Exported from telemetry.
    Harness,
    /// Held out for gates: never trained on.
    Evaluation,
    /// Something else: kept, and treated as a pool row.
    Other(String),
}

impl Source {
    /// The word in the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Session => "session",
            Self::Synthetic => "synthetic",
            Self::Harness => "harness",
            Self::Evaluation => "evaluation",
            Self::Other(word) => word,
        }
    }

    pub(super) fn from_word(word: &str) -> Self {
        match word {
            "session" => Self::Session,
            "synthetic" => Self::Synthetic,
            "harness" => Self::Harness,
            "evaluation" => Self::Evaluation,
            other => Self::Other(other.to_owned()),
        }
    }
}

words!(
    /// What a row is used for.
    Split {
        /// Trained on.
        Train = "train",
        /// Watched during training.
        Val = "val",
        /// Held out.
        Test = "test",
    }
);

words!(
    /// Who labelled a row.
    LabelSource {
        /// The agent that did the task.
        Agent = "agent",
        /// A person.
        Human = "human",
        /// The outcome alone.
        Telemetry = "telemetry",
    }
);
