//! Does a loaded checkpoint answer as it should? The probes its manifest records, else the shape of its answers to six
//! built-in requests, without a contract to the shortest of them; and the same answers twice (wire.md 2.5, control-plane
//! 12). Run before a checkpoint serves, so it is part of the start: rows share passes.

use decision::contract::Kind;
use decision::json::{Value, read};
use decision::probe::REQUESTS;
use decision::wire::{Answer, Outcome, Question, check_questions};

use crate::checkpoint::{Checkpoint, ProbeAnswer};
use crate::engine::Engine;
use crate::predict::{Lengths, PredictError, Prediction, predict_all};

/// How far a recorded probability may be off.
const PROBABILITY_BOUND: f64 = 0.02;
/// How far probabilities may sum from 1.
const SUM_BOUND: f64 = 0.001;

/// How many of the built-in requests a checkpoint without a contract is asked: two tell whether the head looks at what it
/// is given.
const WITHOUT_CONTRACT: usize = 2;

/// One question of each type, for checkpoints that name no contract.
const QUESTIONS: &str = r#"{
    "topic": {"type": "choice", "instructions": "What is this about?", "criteria": {"code": "software", "money": "payments", "other": "anything else"}},
    "urgency": {"type": "score", "instructions": "How urgent is this?", "criteria": ["can wait", "soon", "now"]},
    "is_question": {"type": "noul", "instructions": "Is this a question?"}
}"#;

/// Why a checkpoint must not serve.
#[derive(Debug, thiserror::Error)]
pub enum ProbeFailure {
    /// It did not answer.
    #[error("probe {probe} was not answered: {source}")]
    NoAnswer {
        /// Position of the probe.
        probe: usize,
        /// Why not.
        source: PredictError,
    },
    /// Its own questions are not questions.
    #[error("the checkpoint's own questions are refused: {0}")]
    Questions(String),
    /// An answer differs from the recorded one.
    #[error(
        "probe {probe}, question '{question}': expected {expected} with probability {probability:.4} ± 0.02, got {got}"
    )]
    Unexpected {
        /// Position of the probe.
        probe: usize,
        /// Id of the question.
        question: String,
        /// Recorded label.
        expected: String,
        /// Recorded probability.
        probability: f64,
        /// What was answered.
        got: String,
    },
    /// Probabilities are not finite or do not sum to 1.
    #[error("probe {probe}, question '{question}': probabilities sum to {sum}")]
    Shape {
        /// Position of the probe.
        probe: usize,
        /// Id of the question.
        question: String,
        /// Their sum.
        sum: f64,
    },
    /// A short probe did not fit.
    #[error("probe {probe} lost {dropped} tokens of its state")]
    Truncated {
        /// Position of the probe.
        probe: usize,
        /// Tokens lost.
        dropped: usize,
    },
    /// Every question got the same answer with the same probability for all probes.
    #[error("all {0} probes got the same answers with the same probabilities: the head is dead")]
    DeadHead(usize),
    /// The same probe got other answers the second time.
    #[error("probe {0} got other answers the second time")]
    Unstable(usize),
}

impl ProbeFailure {
    /// What it comes to in a word: those that a LayaServer has for wrong answers (control-plane 3), since whoever watches
    /// servers judges by the same questions; and one that is no judgement, where the engine could not compute an answer.
    #[must_use]
    pub const fn finding(&self) -> &'static str {
        match self {
            Self::DeadHead(_) => "DeadHead",
            // The engine failed, not what it computes with: a program that is put right may serve the same checkpoint.
            Self::NoAnswer {
                source: PredictError::Run(_),
                ..
            } => "NoAnswer",
            Self::NoAnswer { .. } | Self::Shape { .. } => "MalformedAnswers",
            Self::Questions(_)
            | Self::Unexpected { .. }
            | Self::Truncated { .. }
            | Self::Unstable(_) => "WrongAnswers",
        }
    }
}

/// The questions a checkpoint is probed with: those of its contract, else one of each type.
///
/// # Errors
/// When the contract's questions are refused.
pub fn probe_questions(checkpoint: &Checkpoint) -> Result<Vec<Question>, ProbeFailure> {
    let refused = |refusal: decision::wire::Refusal| ProbeFailure::Questions(refusal.detail);
    if let Some(contract) = &checkpoint.info().questions {
        return check_questions(&contract.request_questions()).map_err(refused);
    }
    match read(QUESTIONS.as_bytes()) {
        Ok(Value::Object(questions)) => check_questions(&questions).map_err(refused),
        _ => Err(ProbeFailure::Questions(
            "the built-in questions do not parse".to_owned(),
        )),
    }
}

/// Probes a checkpoint.
///
/// # Errors
/// The first thing that is wrong.
pub fn probe(engine: &Engine, checkpoint: &Checkpoint) -> Result<(), ProbeFailure> {
    let questions = probe_questions(checkpoint)?;
    let recorded = &checkpoint.info().probes;
    let states: Vec<Value> = if recorded.is_empty() {
        REQUESTS.iter().map(|text| Value::from(*text)).collect()
    } else {
        recorded
            .iter()
            .map(|probe| read(probe.state.to_string().as_bytes()).unwrap_or(Value::Null))
            .collect()
    };
    let ask = |range: std::ops::Range<usize>| {
        let first = range.start;
        let lengths = Lengths::default();
        let answered = predict_all(engine, checkpoint, &states[range], &questions, lengths);
        answered.map_err(|(at, source)| ProbeFailure::NoAnswer {
            probe: first + at,
            source,
        })
    };
    let few = if recorded.is_empty() && checkpoint.info().questions.is_none() {
        WITHOUT_CONTRACT
    } else {
        states.len()
    };
    let mut answers: Vec<Prediction> = ask(0..few)?;
    // The same answers to a few are a reason to ask more, and to all of them the proof.
    if recorded.is_empty() && few < states.len() && all_the_same(&answers) {
        answers.extend(ask(few..states.len())?);
    }
    for (probe, prediction) in answers.iter().enumerate() {
        for (id, answer) in &prediction.answers {
            let sum = probabilities(answer).iter().map(|(_, p)| p).sum::<f64>();
            // Rounded to four decimals, k of them may be off by k · 5e-5.
            let bound = SUM_BOUND + probabilities(answer).len() as f64 * 5e-5;
            if !sum.is_finite() || (sum - 1.0).abs() > bound {
                return Err(ProbeFailure::Shape {
                    probe,
                    question: id.clone(),
                    sum,
                });
            }
        }
        match recorded.get(probe) {
            Some(recorded) => {
                for (id, expected) in &recorded.answers {
                    compare(probe, id, expected, prediction)?;
                }
            }
            None => {
                let dropped = prediction
                    .usage
                    .state
                    .as_ref()
                    .map_or(0, |s| s.state_tokens_dropped);
                if dropped > 0 {
                    return Err(ProbeFailure::Truncated { probe, dropped });
                }
            }
        }
    }
    if recorded.is_empty() && all_the_same(&answers) {
        return Err(ProbeFailure::DeadHead(answers.len()));
    }
    // Among other rows than the first time, which must not matter either.
    if ask(0..1)?.first() == answers.first() {
        Ok(())
    } else {
        Err(ProbeFailure::Unstable(0))
    }
}

/// Whether every question got the same answer with the same probability each time.
fn all_the_same(answers: &[Prediction]) -> bool {
    let of = |prediction: &Prediction| -> Vec<(String, f64)> {
        prediction.answers.iter().map(|(_, a)| best(a)).collect()
    };
    answers.iter().map(of).is_sorted_by(|a, b| a == b)
}

fn compare(
    probe: usize,
    id: &str,
    expected: &ProbeAnswer,
    prediction: &Prediction,
) -> Result<(), ProbeFailure> {
    let answer = prediction
        .answers
        .iter()
        .find(|(question, _)| question == id)
        .map(|(_, answer)| best(answer));
    let fits = |(label, p): &(String, f64)| {
        *label == expected.label && (p - expected.probability).abs() <= PROBABILITY_BOUND
    };
    if answer.as_ref().is_some_and(fits) {
        return Ok(());
    }
    Err(ProbeFailure::Unexpected {
        probe,
        question: id.to_owned(),
        expected: expected.label.clone(),
        probability: expected.probability,
        got: answer.map_or_else(
            || "no answer".to_owned(),
            |(label, p)| format!("{label} with {p:.4}"),
        ),
    })
}

/// Every label of an answer with its probability: labels as keys, levels by number, `false` and `true`.
pub(crate) fn probabilities(answer: &Answer) -> Vec<(String, f64)> {
    match &answer.outcome {
        Outcome::Choice {
            labels,
            probabilities,
            ..
        } => labels
            .iter()
            .map(decision::wire::Label::key)
            .zip(probabilities.iter().copied())
            .collect(),
        Outcome::Score { probabilities, .. } => probabilities
            .iter()
            .enumerate()
            .map(|(level, p)| (level.to_string(), *p))
            .collect(),
        Outcome::Noul { noul } => {
            vec![("false".to_owned(), 1.0 - noul), ("true".to_owned(), *noul)]
        }
    }
}

/// The label of an answer and its probability; the first on a tie, `true` from one half on.
pub(crate) fn best(answer: &Answer) -> (String, f64) {
    let all = probabilities(answer);
    let place = match &answer.outcome {
        Outcome::Choice { winner, .. } => *winner,
        outcome if outcome.kind() == Kind::Noul => usize::from(all[1].1 >= 0.5),
        _ => (0..all.len()).fold(0, |best, i| if all[i].1 > all[best].1 { i } else { best }),
    };
    all.into_iter().nth(place).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{LoadOptions, Manifest, Probe};
    use crate::golden_tests::{engines, golden};
    use crate::predict::predict;

    #[test]
    fn an_engine_that_cannot_compute_judges_no_checkpoint() {
        let no_answer = |source| ProbeFailure::NoAnswer { probe: 0, source };
        let run = crate::engine::RunError::EmptyRow { row: 0 };
        for (failure, finding) in [
            (no_answer(PredictError::Run(run)), "NoAnswer"),
            (
                no_answer(PredictError::NotFinite { question: 0 }),
                "MalformedAnswers",
            ),
            (ProbeFailure::Unstable(0), "WrongAnswers"),
        ] {
            assert_eq!(failure.finding(), finding, "{failure}");
        }
    }

    #[test]
    fn the_tiny_checkpoint_passes_and_a_wrong_record_does_not() {
        let engine = engines().pop().unwrap();
        let checkpoint = engine
            .load(&golden("tiny-laya"), &LoadOptions::default())
            .unwrap();
        probe(&engine, &checkpoint).unwrap();

        let recorded = predict(
            &engine,
            &checkpoint,
            &"hello".into(),
            &probe_questions(&checkpoint).unwrap(),
            Lengths::default(),
        )
        .unwrap();
        for (shift, passes) in [(0.0, true), (0.019, true), (0.03, false)] {
            let answers = recorded
                .answers
                .iter()
                .map(|(id, a)| (id.clone(), best(a)))
                .map(|(id, (label, p))| {
                    (
                        id,
                        ProbeAnswer {
                            label,
                            probability: p + shift,
                        },
                    )
                });
            let record = Probe {
                state: "hello".into(),
                answers: answers.collect(),
            };
            // As if the folder had a manifest with that record.
            let dir = tempfile::tempdir().unwrap();
            let files = crate::golden_tests::copy_checkpoint(&golden("tiny-laya"), dir.path());
            let digest = crate::checkpoint::checkpoint_digest(&files);
            let manifest = Manifest {
                files,
                digest,
                contract: None,
                probes: vec![record],
                more: serde_json::Map::new(),
            };
            std::fs::write(
                dir.path().join("relay-manifest.json"),
                serde_json::to_vec(&manifest).unwrap(),
            )
            .unwrap();
            let loaded = engine.load(dir.path(), &LoadOptions::default()).unwrap();
            assert!(loaded.info().verified);
            assert_eq!(probe(&engine, &loaded).is_ok(), passes, "{shift}");
        }
    }

    #[test]
    fn a_head_that_answers_everything_alike_is_dead() {
        let dir = tempfile::tempdir().unwrap();
        crate::golden_tests::copy_checkpoint(&golden("tiny-laya"), dir.path());
        // Nothing reaches the logits any more.
        let weights = dir.path().join("model.safetensors");
        let mut bytes = std::fs::read(&weights).unwrap();
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let tensors: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
        let place = |at: usize| {
            tensors["scorer.3.weight"]["data_offsets"][at]
                .as_u64()
                .unwrap() as usize
                + 8
                + header
        };
        bytes[place(0)..place(1)].fill(0);
        std::fs::write(&weights, bytes).unwrap();

        let engine = engines().pop().unwrap();
        let checkpoint = engine.load(dir.path(), &LoadOptions::default()).unwrap();
        let failure = probe(&engine, &checkpoint).unwrap_err();
        assert!(
            matches!(failure, ProbeFailure::DeadHead(6)),
            "asked two, then all: {failure}"
        );
        assert_eq!(failure.finding(), "DeadHead");
    }
}
