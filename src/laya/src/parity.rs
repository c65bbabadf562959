//! The gate before a reduced precision: its answers beside those of f32 on the same weights, over a probe set, as a
//! report that loading asks for (wire.md 22.2). Time comes in as text, so that the same inputs make the same report.

use std::collections::BTreeMap;

use decision::json::{Value, write};
use decision::wire::{Form, Outcome, Question, value_text};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::checkpoint::Checkpoint;
use crate::engine::Engine;
use crate::model::Precision;
use crate::predict::{Lengths, PredictError, Prediction, encode, predict};
use crate::probe::{best, probabilities};

/// Schema of the report.
pub const SCHEMA: &str = "laya-parity/1";
/// Grows when kernels or scales change what the numbers mean; older reports do not count then.
pub const FORMAT: u32 = 2;
/// Fewest states that a verdict rests on.
pub const LEAST_STATES: usize = 200;
/// From this lead of the best option on, the answer must be the same.
const CLEAR_MARGIN: f64 = 0.10;
/// Confidence bins of the calibration error.
const BINS: usize = 15;

/// One state of a probe set, and the labels it should get, if known.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeState {
    /// The state.
    pub state: Value,
    /// Question id → label (level number for scores, `true` or `false`).
    pub expected: BTreeMap<String, String>,
}

/// What a report concludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Every measure is within its bound.
    Passed,
    /// Some measure is not.
    Failed,
    /// Too few states.
    Inconclusive,
}

/// Which side of the bound is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Values up to the bound.
    AtMost,
    /// Values from the bound on.
    AtLeast,
}

/// One measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// What was measured.
    pub name: String,
    /// What came out.
    pub value: f64,
    /// What is allowed.
    pub bound: f64,
    /// Which side of it.
    pub side: Side,
}

impl Measure {
    fn new(name: &str, value: f64, side: Side, bound: f64) -> Self {
        Self {
            name: name.to_owned(),
            value,
            bound,
            side,
        }
    }

    /// Whether the value is within its bound.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self.side {
            Side::AtMost => self.value <= self.bound,
            Side::AtLeast => self.value >= self.bound,
        }
    }
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSet {
    /// Number of states.
    pub states: usize,
    /// Number of questions.
    pub questions: usize,
    /// SHA-256 of states and questions.
    pub sha256: String,
}

/// The report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParityReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// Digest of the checkpoint.
    pub source_digest: String,
    /// `int8`.
    pub precision: String,
    /// Version of this crate.
    pub engine: String,
    /// [`FORMAT`].
    pub format: u32,
    /// Kernels that ran.
    pub cpu: String,
    /// What was asked.
    pub probe: ProbeSet,
    /// What came out.
    pub measures: Vec<Measure>,
    /// What follows.
    pub verdict: Verdict,
    /// When, as given.
    pub time: String,
}

impl ParityReport {
    /// Whether the report lets a checkpoint serve in a precision, with these kernels.
    ///
    /// # Errors
    /// One phrase: what does not fit.
    pub fn accepts(
        &self,
        digest: &str,
        precision: Precision,
        engine: &Engine,
    ) -> Result<(), String> {
        let fits = |what: &str, got: &str, expected: &str| {
            if got == expected {
                Ok(())
            } else {
                Err(format!("the report's {what} is {got}, expected {expected}"))
            }
        };
        fits("schema", &self.schema, SCHEMA)?;
        fits("source digest", &self.source_digest, digest)?;
        fits("precision", &self.precision, precision.as_str())?;
        fits("format", &self.format.to_string(), &FORMAT.to_string())?;
        // 7-bit and 8-bit activations are two things; the rest of the kernels agree.
        fits(
            "kernel family",
            kernel_family(&self.cpu),
            kernel_family(engine.kernels()),
        )?;
        match self.verdict {
            Verdict::Passed
                if self.measures.iter().all(Measure::holds)
                    && self.probe.states >= LEAST_STATES =>
            {
                Ok(())
            }
            Verdict::Passed => Err("the report says Passed and its measures do not".to_owned()),
            other => Err(format!("the verdict is {other:?}")),
        }
    }
}

fn kernel_family(kernels: &str) -> &'static str {
    if matches!(kernels, "avx2" | "avx512") {
        "7-bit"
    } else {
        "8-bit"
    }
}

/// Asks both checkpoints, the same weights in f32 and in the reduced precision, and compares.
///
/// # Errors
/// When one of them does not answer.
pub fn compare(
    engine: &Engine,
    reference: &Checkpoint,
    reduced: &Checkpoint,
    states: &[ProbeState],
    questions: &[Question],
    time: &str,
) -> Result<ParityReport, PredictError> {
    let mut tally = Tally::default();
    for probe in states {
        let rows = |checkpoint| encode(checkpoint, &probe.state, questions, Lengths::default());
        tally.rows(rows(reference)?.rows == rows(reduced)?.rows);
        let ask = |checkpoint| {
            predict(
                engine,
                checkpoint,
                &probe.state,
                questions,
                Lengths::default(),
            )
        };
        tally.add(&ask(reference)?, &ask(reduced)?, &probe.expected);
    }
    let measures = tally.measures();
    let verdict = if states.len() < LEAST_STATES {
        Verdict::Inconclusive
    } else if measures.iter().all(Measure::holds) {
        Verdict::Passed
    } else {
        Verdict::Failed
    };
    Ok(ParityReport {
        schema: SCHEMA.to_owned(),
        source_digest: reference.info().digest.clone(),
        precision: reduced.precision().as_str().to_owned(),
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        format: FORMAT,
        cpu: engine.kernels().to_owned(),
        probe: ProbeSet {
            states: states.len(),
            questions: questions.len(),
            sha256: probe_sha256(states, questions),
        },
        measures,
        verdict,
        time: time.to_owned(),
    })
}

fn probe_sha256(states: &[ProbeState], questions: &[Question]) -> String {
    let mut hasher = Sha256::new();
    for question in questions {
        hasher.update(format!(
            "{}\n{}\n{}\n",
            question.id,
            question.prompt(),
            question.option_texts().join("\n")
        ));
    }
    for probe in states {
        hasher.update(write(&probe.state));
        hasher.update("\n");
    }
    crate::checkpoint::hex(&hasher.finalize())
}

/// Sums while both answer.
#[derive(Default)]
struct Tally {
    answers: usize,
    same: usize,
    clear: usize,
    clear_same: usize,
    rows_differ: usize,
    confidence: Vec<f64>,
    probability: f64,
    /// Question id → labelled, right in f32, right in the reduced precision.
    labelled: BTreeMap<String, (usize, usize, usize)>,
    /// Confidence and whether right, in f32 and in the reduced precision.
    calibration: [Vec<(f64, bool)>; 2],
}

impl Tally {
    fn rows(&mut self, same: bool) {
        self.rows_differ += usize::from(!same);
    }

    fn add(
        &mut self,
        reference: &Prediction,
        reduced: &Prediction,
        expected: &BTreeMap<String, String>,
    ) {
        for ((id, a), (_, b)) in reference.answers.iter().zip(&reduced.answers) {
            let (all_a, all_b) = (probabilities(a), probabilities(b));
            let ((label_a, p_a), (label_b, _)) = (best(a), best(b));
            let second = all_a
                .iter()
                .filter(|(label, _)| *label != label_a)
                .fold(0f64, |m, (_, p)| m.max(*p));
            let same = label_a == label_b;
            self.answers += 1;
            self.same += usize::from(same);
            if p_a - second >= CLEAR_MARGIN {
                self.clear += 1;
                self.clear_same += usize::from(same);
            }
            self.confidence
                .push((a.answer_confidence - b.answer_confidence).abs());
            for ((_, a), (_, b)) in all_a.iter().zip(&all_b) {
                self.probability = self.probability.max((a - b).abs());
            }
            let Some(expected) = expected.get(id) else {
                continue;
            };
            let (right_a, right_b) = (label_a == *expected, label_b == *expected);
            let counts = self.labelled.entry(id.clone()).or_default();
            *counts = (
                counts.0 + 1,
                counts.1 + usize::from(right_a),
                counts.2 + usize::from(right_b),
            );
            if !matches!(a.outcome, Outcome::Score { .. }) {
                self.calibration[0].push((a.answer_confidence, right_a));
                self.calibration[1].push((b.answer_confidence, right_b));
            }
        }
    }

    fn measures(mut self) -> Vec<Measure> {
        let share = |part: usize, of: usize| {
            if of == 0 {
                1.0
            } else {
                part as f64 / of as f64
            }
        };
        self.confidence.sort_by(f64::total_cmp);
        let n = self.confidence.len();
        let mean = self.confidence.iter().sum::<f64>() / n.max(1) as f64;
        // Nearest rank.
        let p99 = self
            .confidence
            .get((n * 99).div_ceil(100).saturating_sub(1))
            .copied()
            .unwrap_or(0.0);
        let mut measures = vec![
            Measure::new("rows_different", self.rows_differ as f64, Side::AtMost, 0.0),
            Measure::new(
                "same_answer",
                share(self.same, self.answers),
                Side::AtLeast,
                0.99,
            ),
            Measure::new(
                "same_answer_clear",
                share(self.clear_same, self.clear),
                Side::AtLeast,
                1.0,
            ),
            Measure::new("confidence_difference_mean", mean, Side::AtMost, 0.005),
            Measure::new("confidence_difference_p99", p99, Side::AtMost, 0.03),
            Measure::new(
                "probability_difference_max",
                self.probability,
                Side::AtMost,
                0.08,
            ),
        ];
        if !self.labelled.is_empty() {
            let drop =
                |(n, a, b): &(usize, usize, usize)| 100.0 * (*a as f64 - *b as f64) / *n as f64;
            let worst = self.labelled.values().map(drop).fold(f64::MIN, f64::max);
            measures.push(Measure::new(
                "accuracy_drop_points_max",
                worst,
                Side::AtMost,
                0.5,
            ));
            let rise =
                calibration_error(&self.calibration[1]) - calibration_error(&self.calibration[0]);
            measures.push(Measure::new("ece_rise", rise, Side::AtMost, 0.01));
        }
        measures
    }
}

/// Expected calibration error over 15 bins (lo, hi], the first closed (wire.md 19.4).
fn calibration_error(answers: &[(f64, bool)]) -> f64 {
    let mut bins = [(0usize, 0f64, 0usize); BINS];
    for (confidence, right) in answers {
        let bin = ((confidence * BINS as f64).ceil() as usize).clamp(1, BINS) - 1;
        let (n, sum, good) = &mut bins[bin];
        (*n, *sum, *good) = (*n + 1, *sum + confidence, *good + usize::from(*right));
    }
    bins.iter()
        .map(|(_, sum, good)| (sum - *good as f64).abs())
        .sum::<f64>()
        / answers.len().max(1) as f64
}

/// States made of the words of the questions themselves, for checkpoints without data: every option text alone and in
/// sentences with others. The same questions make the same states.
#[must_use]
pub fn generate_states(questions: &[Question], count: usize) -> Vec<ProbeState> {
    let mut texts: Vec<String> = Vec::new();
    for question in questions {
        texts.push(question.instructions.clone());
        match &question.form {
            Form::Choice(options) => {
                texts.extend(
                    options
                        .iter()
                        .map(|o| format!("{} {}", o.label.text(), value_text(&o.description))),
                );
            }
            Form::Score(levels) => texts.extend(levels.iter().map(value_text)),
            Form::Noul { .. } => texts.extend(question.option_texts()),
        }
    }
    if texts.is_empty() {
        return Vec::new();
    }
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut pick = || {
        // An LCG's high bits; only spread matters.
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let sentence = |i: usize, parts: Vec<&str>| match i % 3 {
        0 => format!("Please look at this: {}.", parts.join(", ")),
        1 => format!(
            "{}? I need {} by tomorrow.",
            parts[0],
            parts[parts.len() - 1]
        ),
        _ => parts.join(". "),
    };
    (0..count)
        .map(|i| {
            let parts: Vec<&str> = (0..=pick() % 3)
                .map(|_| texts[pick() % texts.len()].as_str())
                .collect();
            let text = texts.get(i).cloned().unwrap_or_else(|| sentence(i, parts));
            ProbeState {
                state: Value::from(text),
                expected: BTreeMap::new(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::LoadOptions;
    use crate::golden_tests::{engines, golden};
    use crate::probe::probe_questions;

    #[test]
    fn f32_beside_itself_passes_and_a_report_fits_its_checkpoint_only() {
        let engine = engines().pop().unwrap();
        let checkpoint = engine
            .load(&golden("tiny-laya"), &LoadOptions::default())
            .unwrap();
        let questions = probe_questions(&checkpoint).unwrap();
        let states = generate_states(&questions, LEAST_STATES);
        let report = compare(
            &engine,
            &checkpoint,
            &checkpoint,
            &states,
            &questions,
            "now",
        )
        .unwrap();
        assert_eq!(report.verdict, Verdict::Passed, "{report:?}");
        let digest = &checkpoint.info().digest;
        assert_eq!(report.accepts(digest, Precision::F32, &engine), Ok(()));
        assert!(
            report
                .accepts("sha256:0", Precision::F32, &engine)
                .unwrap_err()
                .contains("source digest")
        );
        assert!(
            report
                .accepts(digest, Precision::Int8, &engine)
                .unwrap_err()
                .contains("precision")
        );
        let old = ParityReport {
            format: 0,
            ..report.clone()
        };
        assert!(
            old.accepts(digest, Precision::F32, &engine)
                .unwrap_err()
                .contains("format")
        );
        let mut forged = report.clone();
        forged.measures[1].value = 0.5;
        assert!(
            forged
                .accepts(digest, Precision::F32, &engine)
                .unwrap_err()
                .contains("do not")
        );
        let read: ParityReport =
            serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
        assert_eq!(read, report);
        let few = compare(
            &engine,
            &checkpoint,
            &checkpoint,
            &states[..10],
            &questions,
            "now",
        )
        .unwrap();
        assert_eq!(few.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn labels_bring_accuracy_and_calibration() {
        let mut tally = Tally::default();
        tally.labelled.insert("q".to_owned(), (200, 180, 178));
        tally.calibration = [
            vec![(0.9, true), (0.9, false)],
            vec![(0.5, true), (0.5, false)],
        ];
        let measures = tally.measures();
        let value = |name: &str| measures.iter().find(|m| m.name == name).unwrap();
        assert!(
            (value("accuracy_drop_points_max").value - 1.0).abs() < 1e-9
                && !value("accuracy_drop_points_max").holds()
        );
        assert!((value("ece_rise").value - (0.0 - 0.4)).abs() < 1e-9 && value("ece_rise").holds());
    }
}
