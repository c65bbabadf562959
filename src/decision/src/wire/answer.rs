//! From logits to the numbers of an answer (wire.md 6.1, 6.2). Every number an [`Answer`] holds is rounded to four
//! decimals, as it is replied; how it is written is in `fields`.

use super::bucket::Bucket;
use super::gate::{Gate, GateVerdict};
use super::label::Label;
use super::question::{Form, Question};
use crate::contract::Kind;
use crate::json::Value;

/// What an answer says.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// One option.
    Choice {
        /// Every label, in criteria order.
        labels: Vec<Label>,
        /// Probability of each label.
        probabilities: Vec<f64>,
        /// Position of the chosen one: the first maximum before rounding.
        winner: usize,
    },
    /// A level.
    Score {
        /// Expected level.
        score: f64,
        /// Text of each level.
        legend: Vec<String>,
        /// Probability of each level.
        probabilities: Vec<f64>,
    },
    /// Whether a statement holds.
    Noul {
        /// Probability that it holds.
        noul: f64,
    },
}

impl Outcome {
    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Choice { .. } => Kind::Choice,
            Self::Score { .. } => Kind::Score,
            Self::Noul { .. } => Kind::Noul,
        }
    }

    /// Calibration bucket by kind and number of probabilities; a noul answer has 2.
    #[must_use]
    pub const fn bucket(&self) -> Bucket {
        let options = match self {
            Self::Choice { probabilities, .. } | Self::Score { probabilities, .. } => {
                probabilities.len()
            }
            Self::Noul { .. } => 2,
        };
        Bucket::of(self.kind(), options)
    }
}

/// How a tournament came to its answer (wire.md 15.2).
#[derive(Debug, Clone, PartialEq)]
pub struct Tournament {
    /// Labels of the last round, in order.
    pub finalists: Vec<Label>,
    /// Rounds before the last call.
    pub rounds: usize,
    /// Whether an `option_order` of the question was dropped.
    pub option_order_dropped: bool,
}

/// One answer, rounded, with all that may accompany it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What it says.
    pub outcome: Outcome,
    /// How far the probabilities are from uniform, 0..=1; for noul the larger of both probabilities.
    pub confidence: f64,
    /// Largest probability, or its calibrated value, 0..=1.
    pub answer_confidence: f64,
    /// First output of the act head, 0..=1.
    pub act_probability: f64,
    /// The window that answered, for long documents (wire.md 14).
    pub window: Option<Value>,
    /// Verdict of the gate, if the request has one.
    pub gate: Option<GateVerdict>,
    /// The tournament, if the choice was narrowed by one.
    pub tournament: Option<Tournament>,
}

/// Probabilities from the logits of the slots of a question (wire.md 6.1): softmax at a temperature in single precision,
/// put back into option order. `temperature` is positive, `option_order` a permutation of the slots.
#[must_use]
pub fn probabilities(logits: &[f32], temperature: f32, option_order: Option<&[usize]>) -> Vec<f32> {
    let slots = softmax(logits, temperature);
    let Some(order) = option_order else {
        return slots;
    };
    let mut options = vec![0.0; slots.len()];
    for (slot, &option) in order.iter().enumerate() {
        if let (Some(place), Some(&probability)) = (options.get_mut(option), slots.get(slot)) {
            *place = probability;
        }
    }
    options
}

/// Probability of acting: softmax over the outputs of the act head, its first one. 0 where there is none.
#[must_use]
pub fn act_probability(logits: &[f32]) -> f32 {
    softmax(logits, 1.0).first().copied().unwrap_or(0.0)
}

fn softmax(logits: &[f32], temperature: f32) -> Vec<f32> {
    let scaled: Vec<f32> = logits.iter().map(|logit| logit / temperature).collect();
    let largest = scaled.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = scaled.iter().map(|value| (value - largest).exp()).collect();
    let sum: f32 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// The nearest decimal with four places of the exact binary value, ties to even (wire.md 6.2).
#[must_use]
pub fn round4(number: f64) -> f64 {
    // Formatting rounds the exact value; what it writes always reads back.
    format!("{number:.4}").parse().unwrap_or(number)
}

impl Answer {
    /// The answer that probabilities give, one per option in question order and all finite.
    #[must_use]
    pub fn new(question: &Question, probabilities: &[f32], act_probability: f32) -> Self {
        let rounded = || {
            probabilities
                .iter()
                .map(|probability| round4(f64::from(*probability)))
                .collect()
        };
        let outcome = match &question.form {
            Form::Choice(options) => Outcome::Choice {
                labels: options.iter().map(|option| option.label.clone()).collect(),
                probabilities: rounded(),
                winner: first_maximum(probabilities),
            },
            Form::Score(levels) => Outcome::Score {
                score: round4(expected_level(probabilities)),
                legend: Question::legend(levels),
                probabilities: rounded(),
            },
            Form::Noul { .. } => Outcome::Noul {
                noul: round4(probabilities.get(1).copied().unwrap_or(0.0).into()),
            },
        };
        let confidence = match question.kind() {
            Kind::Noul => {
                let holds = f64::from(probabilities.get(1).copied().unwrap_or(0.0));
                holds.max(1.0 - holds)
            }
            Kind::Choice | Kind::Score => concentration(probabilities),
        };
        Self {
            outcome,
            confidence: round4(confidence),
            answer_confidence: round4(Self::uncalibrated_confidence(probabilities)),
            act_probability: round4(act_probability.into()),
            window: None,
            gate: None,
            tournament: None,
        }
    }

    /// Largest probability, 0..=1: `answer_confidence` before any calibration map.
    #[must_use]
    pub fn uncalibrated_confidence(probabilities: &[f32]) -> f64 {
        f64::from(probabilities.iter().copied().fold(0.0, f32::max)).clamp(0.0, 1.0)
    }

    /// Replaces `answer_confidence` by a calibrated value (wire.md 19.3), which is rounded here.
    #[must_use]
    pub fn with_answer_confidence(mut self, calibrated: f64) -> Self {
        self.answer_confidence = round4(calibrated);
        self
    }

    /// Lets the gate judge the answer. To be done before a tournament answer is spread over all labels.
    pub fn apply_gate(&mut self, gate: &Gate) {
        self.gate = Some(gate.judge(
            self.outcome.bucket(),
            self.answer_confidence,
            self.confidence,
        ));
    }

    /// Makes a choice among finalists an answer over all labels of the question: those out have probability 0
    /// (wire.md 15.2). Other answers stay as they are.
    pub fn spread_over(&mut self, all_labels: &[Label], tournament: Tournament) {
        let Outcome::Choice {
            labels,
            probabilities,
            winner,
        } = &mut self.outcome
        else {
            return;
        };
        let place = |label: &Label| labels.iter().position(|finalist| finalist.is_same(label));
        let spread: Vec<f64> = all_labels
            .iter()
            .map(|label| {
                place(label)
                    .and_then(|index| probabilities.get(index))
                    .copied()
                    .unwrap_or(0.0)
            })
            .collect();
        let chosen = labels
            .get(*winner)
            .and_then(|chosen| all_labels.iter().position(|label| label.is_same(chosen)));
        *winner = chosen.unwrap_or(0);
        *labels = all_labels.to_vec();
        *probabilities = spread;
        self.tournament = Some(tournament);
    }

    /// `x_jev_confidence` of a choice or score, from the rounded probabilities (wire.md 6.4).
    #[must_use]
    pub fn jev_confidence(&self) -> Option<f64> {
        match &self.outcome {
            Outcome::Choice { probabilities, .. } => {
                Some(round4(lead_over_uniform(&normalised(probabilities))))
            }
            Outcome::Score { probabilities, .. } => {
                Some(round4(closeness_to_mode(&normalised(probabilities))))
            }
            Outcome::Noul { .. } => None,
        }
    }
}

fn first_maximum<T: PartialOrd + Copy>(numbers: &[T]) -> usize {
    let mut best = 0;
    for (index, number) in numbers.iter().enumerate().skip(1) {
        if *number > numbers[best] {
            best = index;
        }
    }
    best
}

fn expected_level(probabilities: &[f32]) -> f64 {
    probabilities
        .iter()
        .enumerate()
        .map(|(level, probability)| level as f64 * f64::from(*probability))
        .sum()
}

/// 1 − H / ln k, with the entropy H summed in single precision; 1 for a single option (wire.md 6.2).
fn concentration(probabilities: &[f32]) -> f64 {
    if probabilities.len() < 2 {
        return 1.0;
    }
    let entropy: f32 = -probabilities
        .iter()
        .map(|p| p * p.clamp(1e-12, 1.0).ln())
        .sum::<f32>();
    (1.0 - f64::from(entropy) / (probabilities.len() as f64).ln()).clamp(0.0, 1.0)
}

fn normalised(probabilities: &[f64]) -> Vec<f64> {
    let sum: f64 = probabilities.iter().sum();
    if sum == 0.0 {
        return vec![1.0 / probabilities.len() as f64; probabilities.len()];
    }
    probabilities
        .iter()
        .map(|probability| probability / sum)
        .collect()
}

/// (max p − 1/n) / (1 − 1/n); 1 for a single option.
fn lead_over_uniform(probabilities: &[f64]) -> f64 {
    let n = probabilities.len() as f64;
    if probabilities.len() < 2 {
        return 1.0;
    }
    let largest = probabilities.iter().copied().fold(0.0, f64::max);
    (largest - 1.0 / n) / (1.0 - 1.0 / n)
}

/// 1 − Σ pᵢ·|i − mode| / (Σ |i − (n−1)/2| / n), at least 0; 1 for a single level.
fn closeness_to_mode(probabilities: &[f64]) -> f64 {
    if probabilities.len() < 2 {
        return 1.0;
    }
    let n = probabilities.len() as f64;
    let mode = first_maximum(probabilities) as f64;
    let centre = (n - 1.0) / 2.0;
    let distance: f64 = probabilities
        .iter()
        .enumerate()
        .map(|(level, p)| p * (level as f64 - mode).abs())
        .sum();
    let uniform: f64 = (0..probabilities.len())
        .map(|level| (level as f64 - centre).abs())
        .sum::<f64>()
        / n;
    (1.0 - distance / uniform).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_the_exact_binary_value() {
        for (number, rounded) in [
            (0.12345, 0.1235),
            (0.00005, 0.0001),
            (0.000_05_f64.next_down(), 0.0),
            (0.031_25, 0.0312),
            (0.093_75, 0.0938),
            (2.675_05, 2.6751),
            (1.000_05, 1.0001),
            (1.0, 1.0),
        ] {
            assert_eq!(round4(number).to_bits(), f64::to_bits(rounded), "{number}");
        }
    }

    #[test]
    fn puts_slots_back_into_option_order() {
        let plain = probabilities(&[1.0, 2.0, 3.0], 1.0, None);
        let ordered = probabilities(&[1.0, 2.0, 3.0], 1.0, Some(&[2, 0, 1]));
        assert_eq!(ordered, [plain[1], plain[2], plain[0]]);
        assert!((plain.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn survives_extreme_logits() {
        assert_eq!(probabilities(&[1e30, -1e30], 0.5, None), [1.0, 0.0]);
        assert_eq!(concentration(&[1.0, 0.0]), 1.0);
        assert_eq!(concentration(&[1.0]), 1.0);
        assert_eq!(probabilities(&[], 1.0, None), Vec::<f32>::new());
        assert_eq!(act_probability(&[]), 0.0);
    }

    #[test]
    fn takes_the_first_of_equal_maxima() {
        assert_eq!(first_maximum(&[0.2, 0.4, 0.4]), 1);
        assert_eq!(first_maximum::<f64>(&[]), 0);
    }

    #[test]
    fn measures_jev_confidence() {
        assert!((lead_over_uniform(&normalised(&[0.5, 0.5])) - 0.0).abs() < 1e-12);
        assert!((lead_over_uniform(&normalised(&[0.0, 0.0, 0.0])) - 0.0).abs() < 1e-12);
        assert!((closeness_to_mode(&[0.0, 1.0, 0.0]) - 1.0).abs() < 1e-12);
        assert!(
            (closeness_to_mode(&[0.5, 0.0, 0.5]) - 0.0).abs() < 1e-12,
            "never below zero"
        );
        assert!((closeness_to_mode(&[1.0]) - 1.0).abs() < 1e-12);
    }
}
