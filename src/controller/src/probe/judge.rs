//! Whether an answer to a probe question is right (control-plane 12). Pure, over the bytes that came.

use api::reason::Reason;
use decision::answers::AnswerFault;
use decision::contract::{Criteria, Question};
use decision::{Answer, AnswerError, Reply};

use super::call::{CallError, Said};
use super::questions::{QuestionSet, RecordedProbe};
use super::seen::QuestionsFailed;

/// How far a recorded probability may be off.
const PROBABILITY_BOUND: f64 = 0.02;
/// How far probabilities may sum from 1.
const SUM_BOUND: f64 = 0.001;
/// What rounding to four decimals may add for each of them.
const ROUNDING: f64 = 5e-5;

/// The likeliest label of each question with its probability, in the order of the questions.
pub type Labels = Vec<(String, f64)>;

/// What an answer is.
#[derive(Debug, Clone, PartialEq)]
pub enum Judged {
    /// It is right.
    Right(Labels),
    /// It is wrong, late or unreadable.
    Wrong(QuestionsFailed),
    /// The server turned the question away because it has too much to do, which says nothing about its answers.
    Busy,
}

/// Judges what came back for all questions of a set about one state; `recorded` has the answers it should be.
#[must_use]
pub fn judge(
    set: &QuestionSet,
    came: &Result<Said, CallError>,
    recorded: Option<&RecordedProbe>,
) -> Judged {
    let said = match came {
        Ok(said) => said,
        Err(error) => return Judged::Wrong(not_come(error)),
    };
    let failed = match said.status {
        200 => match read(set.questions(), &said.body, recorded) {
            Ok(labels) => return Judged::Right(labels),
            Err(failed) => failed,
        },
        429 | 503 => return Judged::Busy,
        status => refused(status, set.digest()),
    };
    Judged::Wrong(failed)
}

/// Whether the same answers with the same probabilities came for all states: the head does not look at them.
#[must_use]
pub fn is_dead(answers: &[Labels]) -> bool {
    answers.len() > 1 && answers.iter().is_sorted_by(|a, b| a == b)
}

/// What a head that is dead fails with.
pub(super) fn dead(states: usize) -> QuestionsFailed {
    wrong(
        Reason::DeadHead,
        format!("all {states} probe questions have the same answers with the same probabilities"),
    )
}

fn not_come(error: &CallError) -> QuestionsFailed {
    match error {
        CallError::TooLong { .. } => wrong(
            Reason::MalformedAnswers,
            format!("a probe question: {error}"),
        ),
        CallError::Deadline { .. } | CallError::Unreachable { .. } => QuestionsFailed {
            reason: Reason::ProbeTimedOut,
            message: format!("a probe question was not answered: {error}"),
            conclusive: false,
        },
    }
}

fn refused(status: u16, contract: &str) -> QuestionsFailed {
    match status {
        409 => wrong(
            Reason::ContractMismatch,
            format!("it does not serve contract {contract}"),
        ),
        400 | 413 | 422 => wrong(
            Reason::QuestionsUnknown,
            format!("it refuses the questions of contract {contract} with {status}"),
        ),
        401 | 403 => wrong(
            Reason::MalformedAnswers,
            format!("it demands a key: probe questions are answered with {status}"),
        ),
        408 | 504 => QuestionsFailed {
            reason: Reason::ProbeTimedOut,
            message: format!("a probe question ran into the server's deadline ({status})"),
            conclusive: false,
        },
        // A server may fail once and not again.
        500.. => QuestionsFailed {
            reason: Reason::MalformedAnswers,
            message: format!("a probe question is answered with {status}"),
            conclusive: false,
        },
        _ => wrong(
            Reason::MalformedAnswers,
            format!("a probe question is answered with {status}, as no Laya server does"),
        ),
    }
}

fn wrong(reason: Reason, message: String) -> QuestionsFailed {
    QuestionsFailed {
        reason,
        message,
        conclusive: true,
    }
}

fn read(
    questions: &[Question],
    body: &[u8],
    recorded: Option<&RecordedProbe>,
) -> Result<Labels, QuestionsFailed> {
    let reply = Reply::read(questions, body).map_err(|error| unreadable(&error))?;
    // Recorded states may be of any length.
    if recorded.is_none() && reply.was_truncated() {
        return Err(wrong(
            Reason::WrongAnswers,
            format!(
                "it cut {} tokens off a short text",
                reply.state_tokens_dropped
            ),
        ));
    }
    let mut labels = Labels::with_capacity(questions.len());
    for (question, (id, answer)) in questions.iter().zip(reply.answers.iter()) {
        let label = likeliest(question, answer).map_err(|problem| {
            wrong(
                Reason::MalformedAnswers,
                format!("answer to `{id}`: {problem}"),
            )
        })?;
        labels.push(label);
    }
    if let Some(recorded) = recorded {
        compare(questions, &labels, recorded)?;
    }
    Ok(labels)
}

fn unreadable(error: &AnswerError) -> QuestionsFailed {
    let reason = match error {
        AnswerError::Invalid {
            fault: AnswerFault::Missing,
            ..
        } => Reason::QuestionsUnknown,
        _ => Reason::MalformedAnswers,
    };
    wrong(reason, error.to_string())
}

/// The likeliest label of an answer whose options are those of the question and whose probabilities are some.
fn likeliest(question: &Question, answer: &Answer) -> Result<(String, f64), String> {
    match (answer, &question.criteria) {
        (
            Answer::Choice {
                choice,
                probabilities,
                ..
            },
            Criteria::Choice(options),
        ) => {
            let options = options.iter().map(|option| option.id.clone());
            check(probabilities, options.collect())?;
            let found = probabilities.iter().find(|(option, _)| option == choice);
            let probability = found.map_or(0.0, |(_, probability)| *probability);
            Ok((choice.clone(), probability))
        }
        (Answer::Score { probabilities, .. }, Criteria::Score(levels)) => {
            check(
                probabilities,
                (0..levels.len()).map(|level| level.to_string()).collect(),
            )?;
            let first_best = probabilities
                .iter()
                .reduce(|best, next| if next.1 > best.1 { next } else { best });
            Ok(first_best.cloned().unwrap_or_default())
        }
        (Answer::Noul { noul, .. }, _) if (0.0..=1.0).contains(noul) => Ok(if *noul >= 0.5 {
            ("true".to_owned(), *noul)
        } else {
            ("false".to_owned(), 1.0 - noul)
        }),
        (Answer::Noul { noul, .. }, _) => Err(format!("{noul} is no probability")),
        // `Reply::read` has compared the kinds.
        _ => Err("is of another kind".to_owned()),
    }
}

fn check(probabilities: &[(String, f64)], mut expected: Vec<String>) -> Result<(), String> {
    let mut got: Vec<_> = probabilities
        .iter()
        .map(|(label, _)| label.clone())
        .collect();
    got.sort();
    expected.sort();
    if got != expected {
        let list = |labels: &[String]| labels.join(", ").chars().take(200).collect::<String>();
        return Err(format!(
            "has options {}, asked were {}",
            list(&got),
            list(&expected)
        ));
    }
    let numbers = probabilities.iter().map(|(_, probability)| *probability);
    if let Some(odd) = numbers.clone().find(|number| !(0.0..=1.0).contains(number)) {
        return Err(format!("{odd} is no probability"));
    }
    let sum: f64 = numbers.sum();
    let bound = SUM_BOUND + ROUNDING * probabilities.len() as f64;
    if (sum - 1.0).abs() > bound {
        return Err(format!("its probabilities sum to {sum}"));
    }
    Ok(())
}

fn compare(
    questions: &[Question],
    labels: &Labels,
    recorded: &RecordedProbe,
) -> Result<(), QuestionsFailed> {
    for (id, expected) in &recorded.answers {
        let at = questions.iter().position(|question| question.id == *id);
        let Some((label, probability)) = at.and_then(|at| labels.get(at)) else {
            // The record is of a question that this contract lacks, so it says nothing.
            continue;
        };
        let off = (probability - expected.probability).abs();
        // A float that is off by exactly the bound may show as a hair more.
        if *label != expected.label || off > PROBABILITY_BOUND + 1e-9 {
            return Err(wrong(
                Reason::WrongAnswers,
                format!(
                    "`{id}` is answered {label} with {probability:.4}, recorded is {} with {:.4} ± {PROBABILITY_BOUND}",
                    expected.label, expected.probability
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
