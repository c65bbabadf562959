//! An answer as JSON members, in the order that is contract (wire.md 6.3, 6.6).

use super::answer::{Answer, Outcome, Tournament};
use super::gate::{GateState, GateVerdict};
use super::label::Label;
use super::payload::Surface;
use crate::json::{Object, Text, Value};

impl Answer {
    /// The answer as a surface replies it.
    #[must_use]
    pub fn to_object(&self, surface: Surface) -> Object {
        if surface == Surface::HttpStrict {
            return self.strict();
        }
        let mut object = Object::new();
        object.push("type", self.outcome.kind().as_str());
        match &self.outcome {
            Outcome::Choice {
                labels,
                probabilities,
                winner,
            } => {
                object.push("choice", chosen(labels, *winner));
                object.push("probabilities", by_label(labels, probabilities));
            }
            Outcome::Score {
                score,
                legend,
                probabilities,
            } => {
                object.push("score", *score);
                object.push("legend", by_level(legend.iter().map(String::as_str)));
                object.push("probabilities", by_level(probabilities.iter().copied()));
            }
            Outcome::Noul { noul } => object.push("noul", *noul),
        }
        object.push("confidence", self.confidence);
        object.push("answer_confidence", self.answer_confidence);
        object.push(
            "action",
            [("act_probability", self.act_probability)]
                .into_iter()
                .collect::<Object>(),
        );
        if let Some(window) = &self.window {
            object.push("window", window.clone());
        }
        if let Some(verdict) = &self.gate {
            push_verdict(&mut object, verdict);
        }
        if let Some(tournament) = &self.tournament {
            object.push("x_tournament", tournament_fields(tournament));
        }
        if surface == Surface::Http
            && let Some(confidence) = self.jev_confidence()
        {
            object.push("x_jev_confidence", confidence);
        }
        object
    }

    /// The fields of strict mode, which has an order of its own.
    fn strict(&self) -> Object {
        let mut object = Object::new();
        object.push("type", self.outcome.kind().as_str());
        match &self.outcome {
            Outcome::Choice {
                labels,
                probabilities,
                winner,
            } => {
                object.push("choice", chosen(labels, *winner));
                object.push("confidence", self.confidence);
                object.push("probabilities", by_label(labels, probabilities));
            }
            Outcome::Score {
                score,
                legend,
                probabilities,
            } => {
                object.push("score", *score);
                object.push("confidence", self.confidence);
                object.push("probabilities", by_level(probabilities.iter().copied()));
                object.push("legend", by_level(legend.iter().map(String::as_str)));
            }
            Outcome::Noul { noul } => object.push("noul", *noul),
        }
        object
    }

    /// Whether JSON can carry the answer: a NaN or infinite label cannot be written, chosen or not (wire.md 4.4).
    #[must_use]
    pub fn is_json(&self) -> bool {
        match &self.outcome {
            Outcome::Choice { labels, .. } => labels.iter().all(Label::is_json),
            Outcome::Score { .. } | Outcome::Noul { .. } => true,
        }
    }
}

fn chosen(labels: &[Label], winner: usize) -> Value {
    labels
        .get(winner)
        .map_or(Value::Null, |label| label.value().clone())
}

/// Two labels may have one key; it is then written twice (wire.md 6.2).
fn by_label(labels: &[Label], probabilities: &[f64]) -> Object {
    labels
        .iter()
        .map(Label::key)
        .zip(probabilities.iter().copied())
        .collect()
}

fn by_level<V: Into<Value>>(values: impl Iterator<Item = V>) -> Object {
    values
        .enumerate()
        .map(|(level, value)| (Text::from(level.to_string()), value))
        .collect()
}

fn push_verdict(object: &mut Object, verdict: &GateVerdict) {
    if verdict.state == GateState::Abstained {
        object.push("low_confidence", true);
    }
    object.push("abstention", verdict.state.as_str());
    object.push("abstention_threshold", verdict.threshold);
}

fn tournament_fields(tournament: &Tournament) -> Object {
    let finalists: Vec<Value> = tournament
        .finalists
        .iter()
        .map(|label| label.value().clone())
        .collect();
    let mut object = Object::new();
    object.push("finalists", finalists);
    object.push(
        "rounds",
        i64::try_from(tournament.rounds).unwrap_or(i64::MAX),
    );
    if tournament.option_order_dropped {
        object.push("option_order_dropped", true);
    }
    object
}
