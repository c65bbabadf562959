//! Contracts: an ordered set of typed questions, its wording and its two digests (routing.md 1). Reading and writing of
//! `decisions.json` is in `import` and `export`, digests in `digest`, the naming of differences in `difference`.

mod difference;
mod digest;
mod export;
mod import;

pub use difference::Difference;
pub use digest::{Digest, DigestError};
pub use import::{ImportError, ImportFault};

/// Most questions in a contract.
pub const MAX_QUESTIONS: usize = 64;

/// Most options or levels of one question in a contract.
pub const MAX_OPTIONS: usize = 100;

/// Largest `decisions.json`, in bytes: 1 MiB.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The three kinds of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One option of several.
    Choice,
    /// A level on a scale from 0.
    Score,
    /// How true a statement is, 0..=1.
    Noul,
}

impl Kind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[Self::Choice, Self::Score, Self::Noul];

    /// The word used in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Choice => "choice",
            Self::Score => "score",
            Self::Noul => "noul",
        }
    }

    /// The kind with a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceOption {
    /// The option id, which is also the answer key.
    pub id: String,
    /// What the option means, for the model.
    pub text: Option<String>,
}

/// What the two answers of a noul question mean, for the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NoulTexts {
    /// Text of `true`.
    pub when_true: Option<String>,
    /// Text of `false`.
    pub when_false: Option<String>,
}

/// Kind and criteria of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Criteria {
    /// Options in order, at least one.
    Choice(Vec<ChoiceOption>),
    /// Level texts from level 0, at least one.
    Score(Vec<String>),
    /// Texts of both answers, or none: then the server's defaults.
    Noul(Option<NoulTexts>),
}

impl Criteria {
    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Choice(_) => Kind::Choice,
            Self::Score(_) => Kind::Score,
            Self::Noul(_) => Kind::Noul,
        }
    }
}

/// One typed question of a contract, with the wording a checkpoint is tuned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Unique in its contract.
    pub id: String,
    /// What the model is asked.
    pub instructions: String,
    /// Kind and options or levels.
    pub criteria: Criteria,
}

impl Question {
    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.criteria.kind()
    }
}

/// An ordered set of typed questions. Made by [`Contract::import`], so it always obeys the limits of routing.md 1.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    description: String,
    language: String,
    questions: Vec<Question>,
    digest: Digest,
    shape_digest: Digest,
}

impl Contract {
    fn new(description: String, language: String, questions: Vec<Question>) -> Self {
        let digest = digest::of_wording(&questions);
        let shape_digest = digest::of_shape(&questions);
        Self {
            description,
            language,
            questions,
            digest,
            shape_digest,
        }
    }

    /// What the file says about itself; not part of any digest.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Language of the requests, `auto` for any; not part of any digest.
    #[must_use]
    pub fn language(&self) -> &str {
        &self.language
    }

    /// The questions in contract order.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The question with an id.
    #[must_use]
    pub fn question(&self, id: &str) -> Option<&Question> {
        self.questions.iter().find(|question| question.id == id)
    }

    /// The contract digest: wording and shape (routing.md 1.3).
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The shape digest: ids, kinds, options and level counts without wording (routing.md 1.3).
    #[must_use]
    pub const fn shape_digest(&self) -> &Digest {
        &self.shape_digest
    }

    /// The bytes under the contract digest.
    #[must_use]
    pub fn canonical_form(&self) -> String {
        digest::wording_form(&self.questions)
    }

    /// The bytes under the shape digest.
    #[must_use]
    pub fn canonical_shape(&self) -> String {
        digest::shape_form(&self.questions)
    }
}
