//! Answers of a System One reply, checked against the questions that were asked (routing.md 2): extra ids and keys are
//! ignored, every asked id must be there with the asked kind, a known option and finite numbers.

use crate::contract::{Criteria, Kind, Question};
use crate::json::{self, Object, ReadError, Value};

/// Why a reply cannot be used as a whole.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AnswerError {
    /// The body is not JSON.
    #[error("the reply is not JSON: {0}")]
    NotJson(#[from] ReadError),
    /// The body has no object `answers`.
    #[error("the reply has no object `answers`")]
    NoAnswers,
    /// A question has no valid answer.
    #[error("answer to `{id}`: {fault}")]
    Invalid {
        /// The question.
        id: String,
        /// What is wrong with its answer.
        #[source]
        fault: AnswerFault,
    },
}

impl AnswerError {
    /// The question whose answer is invalid, if it is about one.
    #[must_use]
    pub fn question_id(&self) -> Option<&str> {
        match self {
            Self::Invalid { id, .. } => Some(id),
            Self::NotJson(_) | Self::NoAnswers => None,
        }
    }
}

/// What can be wrong with one answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AnswerFault {
    /// The id is not among the answers.
    #[error("is missing")]
    Missing,
    /// It is no object.
    #[error("is not an object")]
    NotAnObject,
    /// Another kind than asked.
    #[error("is of kind {got}, asked was {asked}")]
    OtherKind {
        /// What was asked.
        asked: Kind,
        /// The `type` of the answer, as far as it has one.
        got: String,
    },
    /// The chosen option is not among the options of the question.
    #[error("`{got}` is not one of its options")]
    UnknownOption {
        /// What was chosen.
        got: String,
    },
    /// A number is missing, is something else, or is not finite.
    #[error("`{field}` is not a finite number")]
    NotANumber {
        /// Path inside the answer, for example `probabilities.fast`.
        field: String,
    },
}

/// How sure the server is of an answer. Numbers are as sent: finite, normally in 0..=1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Confidence {
    /// `confidence`: how far the distribution is from uniform (wire.md 6.2).
    pub confidence: Option<f64>,
    /// `answer_confidence`: probability that the answer is right.
    pub answer_confidence: Option<f64>,
}

/// One valid answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To a choice.
    Choice {
        /// The chosen option id.
        choice: String,
        /// Its position among the options of the question, from 0.
        index: usize,
        /// Option id → probability, in the order of the reply. May be empty.
        probabilities: Vec<(String, f64)>,
        /// How sure.
        confidence: Confidence,
    },
    /// To a score.
    Score {
        /// Expected level. Finite; may lie outside 0..=levels−1, which users clamp.
        score: f64,
        /// Number of levels of the question.
        levels: usize,
        /// Level as text → probability, in the order of the reply. May be empty.
        probabilities: Vec<(String, f64)>,
        /// How sure.
        confidence: Confidence,
    },
    /// To a noul question.
    Noul {
        /// Probability that the statement holds.
        noul: f64,
        /// How sure.
        confidence: Confidence,
    },
}

impl Answer {
    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Choice { .. } => Kind::Choice,
            Self::Score { .. } => Kind::Score,
            Self::Noul { .. } => Kind::Noul,
        }
    }

    /// How sure the server said it is.
    #[must_use]
    pub const fn confidence(&self) -> Confidence {
        match self {
            Self::Choice { confidence, .. }
            | Self::Score { confidence, .. }
            | Self::Noul { confidence, .. } => *confidence,
        }
    }

    /// Probability of the answer, 0..=1: of the chosen option (choice), the likeliest level (score) or the likelier side
    /// (noul); else `answer_confidence`, else `confidence`, else 0, since an answer that says nothing about itself is
    /// not to be trusted (routing.md 2).
    #[must_use]
    pub fn answer_probability(&self) -> f64 {
        let own = match self {
            Self::Choice {
                choice,
                probabilities,
                ..
            } => probabilities
                .iter()
                .find(|(option, _)| option == choice)
                .map(|(_, probability)| *probability),
            Self::Score { probabilities, .. } => probabilities
                .iter()
                .map(|(_, probability)| *probability)
                .reduce(f64::max),
            Self::Noul { noul, .. } => Some(noul.max(1.0 - noul)),
        };
        let Confidence {
            confidence,
            answer_confidence,
        } = self.confidence();
        own.or(answer_confidence)
            .or(confidence)
            .unwrap_or(0.0)
            .clamp(0.0, 1.0)
    }

    /// Position of the score on its scale, 0..=1: clamp(score / (levels − 1)) (routing.md 2); 0 on a scale of one level
    /// and for other kinds.
    #[must_use]
    pub fn score_fraction(&self) -> f64 {
        match self {
            Self::Score { score, levels, .. } if *levels > 1 => {
                (score / (*levels - 1) as f64).clamp(0.0, 1.0)
            }
            _ => 0.0,
        }
    }

    /// The chosen option id; none for other kinds.
    #[must_use]
    pub fn choice(&self) -> Option<&str> {
        match self {
            Self::Choice { choice, .. } => Some(choice),
            _ => None,
        }
    }

    /// Whether the statement holds: noul ≥ 0.5 within the tolerance of routing.md; false for other kinds.
    #[must_use]
    pub fn holds(&self) -> bool {
        matches!(self, Self::Noul { noul, .. } if *noul >= 0.5 - 1e-9)
    }
}

/// Valid answers to a set of questions, in the order of the questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers(Vec<(String, Answer)>);

impl Answers {
    /// Checks the `answers` object of a reply against the questions asked.
    ///
    /// # Errors
    /// The first question without a valid answer.
    pub fn from_object(questions: &[Question], answers: &Object) -> Result<Self, AnswerError> {
        let checked = questions.iter().map(|question| {
            let answer = answers
                .get(&question.id)
                .ok_or(AnswerFault::Missing)
                .and_then(|value| check(question, value));
            match answer {
                Ok(answer) => Ok((question.id.clone(), answer)),
                Err(fault) => Err(AnswerError::Invalid {
                    id: question.id.clone(),
                    fault,
                }),
            }
        });
        Ok(Self(checked.collect::<Result<_, _>>()?))
    }

    /// Answers that are known to fit their questions, in order; used for learned labels.
    pub(crate) const fn from_pairs(pairs: Vec<(String, Answer)>) -> Self {
        Self(pairs)
    }

    /// The answer to a question.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Answer> {
        self.0
            .iter()
            .find(|(name, _)| name == id)
            .map(|(_, answer)| answer)
    }

    /// Question ids with their answers, in the order of the questions.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Answer)> {
        self.0.iter().map(|(id, answer)| (id.as_str(), answer))
    }

    /// Number of answers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no question was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A System One reply: its answers and what its `usage` says about cuts.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Valid answers to every question asked.
    pub answers: Answers,
    /// `usage.input_tokens`, 0 if the reply does not say.
    pub input_tokens: u64,
    /// `usage.state_tokens_dropped`, 0 if the reply does not say.
    pub state_tokens_dropped: u64,
    /// `usage.truncated_questions`: ids for which the state was cut.
    pub truncated_questions: Vec<String>,
}

impl Reply {
    /// Reads the body of a reply of status 200 and checks its answers against the questions asked.
    ///
    /// # Errors
    /// A body that is no JSON or holds no `answers`, and the first question without a valid answer.
    pub fn read(questions: &[Question], body: &[u8]) -> Result<Self, AnswerError> {
        let body = json::read(body)?;
        let member = |key| {
            body.as_object()
                .and_then(|body| body.get(key))
                .and_then(Value::as_object)
        };
        let answers =
            Answers::from_object(questions, member("answers").ok_or(AnswerError::NoAnswers)?)?;
        let usage = |key| member("usage").and_then(|usage| usage.get(key));
        let count = |key| match usage(key) {
            Some(Value::Integer(count)) => count
                .as_i64()
                .and_then(|count| u64::try_from(count).ok())
                .unwrap_or(0),
            _ => 0,
        };
        let truncated_questions = usage("truncated_questions")
            .and_then(Value::as_list)
            .unwrap_or_default();
        Ok(Self {
            answers,
            input_tokens: count("input_tokens"),
            state_tokens_dropped: count("state_tokens_dropped"),
            truncated_questions: truncated_questions
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        })
    }

    /// Whether the server did not see the whole state.
    #[must_use]
    pub fn was_truncated(&self) -> bool {
        self.state_tokens_dropped > 0 || !self.truncated_questions.is_empty()
    }
}

fn check(question: &Question, value: &Value) -> Result<Answer, AnswerFault> {
    let answer = value.as_object().ok_or(AnswerFault::NotAnObject)?;
    let asked = question.kind();
    let kind = answer
        .get("type")
        .map_or_else(|| "none".to_owned(), json::python_str);
    if kind != asked.as_str() {
        return Err(AnswerFault::OtherKind { asked, got: kind });
    }
    let confidence = Confidence {
        confidence: optional_number(answer, "confidence")?,
        answer_confidence: optional_number(answer, "answer_confidence")?,
    };
    match &question.criteria {
        Criteria::Choice(options) => {
            let chosen = answer.get("choice").unwrap_or(&Value::Null);
            let index = chosen
                .as_str()
                .and_then(|id| options.iter().position(|option| option.id == id));
            let index = index.ok_or_else(|| AnswerFault::UnknownOption {
                got: json::python_str(chosen),
            })?;
            let choice = options[index].id.clone();
            Ok(Answer::Choice {
                choice,
                index,
                probabilities: probabilities(answer)?,
                confidence,
            })
        }
        Criteria::Score(levels) => Ok(Answer::Score {
            score: required_number(answer, "score")?,
            levels: levels.len(),
            probabilities: probabilities(answer)?,
            confidence,
        }),
        Criteria::Noul(_) => Ok(Answer::Noul {
            noul: required_number(answer, "noul")?,
            confidence,
        }),
    }
}

fn probabilities(answer: &Object) -> Result<Vec<(String, f64)>, AnswerFault> {
    const FIELD: &str = "probabilities";
    let object = match answer.get(FIELD) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(value) => value.as_object().ok_or_else(|| not_a_number(FIELD))?,
    };
    object
        .iter()
        .map(|(key, value)| {
            let key = key.to_string_lossy();
            let probability =
                finite(value).ok_or_else(|| not_a_number(&format!("{FIELD}.{key}")))?;
            Ok((key, probability))
        })
        .collect()
}

fn required_number(answer: &Object, field: &str) -> Result<f64, AnswerFault> {
    answer
        .get(field)
        .and_then(finite)
        .ok_or_else(|| not_a_number(field))
}

fn optional_number(answer: &Object, field: &str) -> Result<Option<f64>, AnswerFault> {
    match answer.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => finite(value).map(Some).ok_or_else(|| not_a_number(field)),
    }
}

fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

fn not_a_number(field: &str) -> AnswerFault {
    AnswerFault::NotANumber {
        field: field.to_owned(),
    }
}
