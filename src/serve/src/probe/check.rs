//! What an answer says as a label with a probability, and whether answers have the shape their questions ask for.

use decision::wire::{Answer, Outcome, Question};
use laya::Prediction;

/// How far probabilities may be from summing to 1, beside their rounding.
const SUM_TOLERANCE: f64 = 0.001;
/// Largest error of a number with four decimals.
const ROUNDING: f64 = 0.000_05;

/// The label of an answer: of a choice, `true` or `false`, or the most likely level.
#[must_use]
pub fn label_of(answer: &Answer) -> String {
    match &answer.outcome {
        Outcome::Choice { labels, winner, .. } => labels
            .get(*winner)
            .map(|label| label.key())
            .unwrap_or_default(),
        Outcome::Score { probabilities, .. } => {
            let most = probabilities.iter().copied().fold(f64::MIN, f64::max);
            let level = probabilities.iter().position(|p| *p == most);
            level.unwrap_or(0).to_string()
        }
        Outcome::Noul { noul } => (*noul >= 0.5).to_string(),
    }
}

/// The probability that an answer gives to a label.
#[must_use]
pub fn probability_of(answer: &Answer, label: &str) -> Option<f64> {
    match &answer.outcome {
        Outcome::Choice {
            labels,
            probabilities,
            ..
        } => {
            let at = labels.iter().position(|known| known.key() == label)?;
            probabilities.get(at).copied()
        }
        Outcome::Score { probabilities, .. } => {
            probabilities.get(label.parse::<usize>().ok()?).copied()
        }
        Outcome::Noul { noul } => match label {
            "true" => Some(*noul),
            "false" => Some(1.0 - noul),
            _ => None,
        },
    }
}

/// Whether every question is answered in order with finite probabilities that sum to 1, and saw the whole state. Else
/// the id and what is wrong.
pub(super) fn shape_of(
    prediction: &Prediction,
    questions: &[Question],
) -> Result<(), (String, String)> {
    for (index, question) in questions.iter().enumerate() {
        let wrong = |problem: &str| Err((question.id.clone(), problem.to_owned()));
        let Some((_, answer)) = prediction
            .answers
            .get(index)
            .filter(|(id, _)| *id == question.id)
        else {
            return wrong("it was not answered");
        };
        if answer.outcome.kind() != question.kind() {
            return wrong("its answer is of another type");
        }
        let probabilities: &[f64] = match &answer.outcome {
            Outcome::Choice { probabilities, .. } | Outcome::Score { probabilities, .. } => {
                probabilities
            }
            Outcome::Noul { noul } => &[*noul, 1.0 - noul],
        };
        if probabilities.len() != question.option_count() {
            return wrong("it has another number of options");
        }
        let sum: f64 = probabilities.iter().sum();
        let tolerance = ROUNDING.mul_add(probabilities.len() as f64, SUM_TOLERANCE);
        if !probabilities.iter().all(|p| p.is_finite()) || (sum - 1.0).abs() > tolerance {
            return wrong("its probabilities do not sum to 1");
        }
    }
    let cut = prediction
        .usage
        .state
        .as_ref()
        .and_then(|state| state.truncated_questions.first());
    match cut {
        Some(question) => Err((
            question.clone(),
            "the probe request does not fit into a row".to_owned(),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use decision::json::{self, Value};
    use decision::wire::{Usage, check_questions};

    use super::*;
    use crate::probe::built_in_questions;

    #[test]
    fn labels_and_probabilities_of_each_type() {
        let questions = check_questions(&built_in_questions()).unwrap();
        let answer = |index: usize, p: &[f32]| Answer::new(&questions[index], p, 0.5);
        for (name, answer, label, other, probability) in [
            (
                "choice",
                answer(0, &[0.2, 0.7, 0.1]),
                "question",
                "work",
                Some(0.2),
            ),
            ("score", answer(1, &[0.2, 0.3, 0.5]), "2", "1", Some(0.3)),
            ("noul", answer(2, &[0.6, 0.4]), "false", "true", Some(0.4)),
            (
                "unknown label",
                answer(0, &[0.2, 0.7, 0.1]),
                "question",
                "no such",
                None,
            ),
        ] {
            assert_eq!(label_of(&answer), label, "{name}");
            assert_eq!(probability_of(&answer, other), probability, "{name}");
        }
    }

    #[test]
    fn wrong_shapes_are_named() {
        let text = br#"{"q":{"type":"choice","instructions":"?","criteria":["a","b"]}}"#;
        let Ok(Value::Object(object)) = json::read(text) else {
            panic!("an object")
        };
        let questions = check_questions(&object).unwrap();
        let predicted = |answers| Prediction {
            answers,
            usage: Usage::default(),
        };
        let answer = |p: &[f32]| ("q".to_owned(), Answer::new(&questions[0], p, 0.5));
        assert_eq!(
            shape_of(&predicted(vec![answer(&[0.5, 0.5])]), &questions),
            Ok(())
        );
        for (name, answers) in [
            ("none", vec![]),
            ("another id", vec![("r".to_owned(), answer(&[0.5, 0.5]).1)]),
            ("another count", vec![answer(&[0.2, 0.3, 0.5])]),
            ("another sum", vec![answer(&[0.5, 0.6])]),
            ("no number", vec![answer(&[f32::NAN, 0.5])]),
        ] {
            assert!(shape_of(&predicted(answers), &questions).is_err(), "{name}");
        }
    }
}
