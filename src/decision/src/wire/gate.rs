//! The confidence gate: `min_confidence` of a request and what it says about an answer (wire.md 6.7). It flags answers
//! and never changes them.

use super::bucket::Bucket;
use super::refusal::Refusal;
use crate::json::{Value, python_repr, repr_text};

/// Thresholds of a request, each in 0..=1.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// One for every answer.
    Single(f64),
    /// One per bucket.
    PerBucket {
        /// Bucket → threshold, in the order of the request.
        thresholds: Vec<(Bucket, f64)>,
        /// For every other bucket; 0 if there is none.
        default: Option<f64>,
    },
}

/// What the gate found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateState {
    /// Confident enough.
    Passed,
    /// Below the threshold.
    Abstained,
    /// There is no confidence to compare.
    Unevaluated,
}

impl GateState {
    /// The word in `abstention`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Abstained => "abstained",
            Self::Unevaluated => "unevaluated",
        }
    }
}

/// Verdict on one answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateVerdict {
    /// What was found.
    pub state: GateState,
    /// The threshold that was applied.
    pub threshold: f64,
}

impl Gate {
    /// Reads `min_confidence`; null is no gate.
    ///
    /// # Errors
    /// What is neither a number in 0..=1 nor a non-empty map of buckets to such numbers, as a refusal of status 422; the
    /// first problem in the order of the map.
    pub fn from_value(value: &Value) -> Result<Option<Self>, Refusal> {
        match value {
            Value::Null => Ok(None),
            Value::Object(map) if map.is_empty() => Err(Refusal::unprocessable(
                "a min_confidence map must be a non-empty dict of bucket -> float, got {}",
            )),
            Value::Object(map) => {
                let mut thresholds = Vec::new();
                let mut default = None;
                for (key, value) in map {
                    let bucket = key.as_str().and_then(Bucket::from_name);
                    if bucket.is_none() && *key != "default" {
                        return Err(Refusal::unprocessable(format!(
                            "min_confidence map keys must be a bucket like 'choice:3-5' or 'default', got {}",
                            repr_text(key)
                        )));
                    }
                    let threshold = threshold(value)?;
                    match bucket {
                        Some(bucket) => thresholds.push((bucket, threshold)),
                        None => default = Some(threshold),
                    }
                }
                Ok(Some(Self::PerBucket {
                    thresholds,
                    default,
                }))
            }
            number => threshold(number).map(|threshold| Some(Self::Single(threshold))),
        }
    }

    /// The threshold for answers of a bucket.
    #[must_use]
    pub fn threshold(&self, bucket: Bucket) -> f64 {
        match self {
            Self::Single(threshold) => *threshold,
            Self::PerBucket {
                thresholds,
                default,
            } => {
                let own = thresholds
                    .iter()
                    .find(|(name, _)| *name == bucket)
                    .map(|(_, threshold)| *threshold);
                own.or(*default).unwrap_or(0.0)
            }
        }
    }

    /// Judges an answer by its `answer_confidence` if that is finite, else by its `confidence`; nothing is rounded.
    #[must_use]
    pub fn judge(&self, bucket: Bucket, answer_confidence: f64, confidence: f64) -> GateVerdict {
        let threshold = self.threshold(bucket);
        let state = match [answer_confidence, confidence]
            .into_iter()
            .find(|number| number.is_finite())
        {
            None => GateState::Unevaluated,
            Some(confidence) if confidence < threshold => GateState::Abstained,
            Some(_) => GateState::Passed,
        };
        GateVerdict { state, threshold }
    }
}

fn threshold(value: &Value) -> Result<f64, Refusal> {
    // NaN is in no range; bools and strings are no numbers; an integer beyond a float reads as infinite.
    value
        .as_f64()
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| {
            Refusal::unprocessable(format!(
                "min_confidence must be a float in [0.0, 1.0], got {}",
                python_repr(value)
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Kind;
    use crate::json::read;

    fn gate(json: &str) -> Result<Option<Gate>, String> {
        Gate::from_value(&read(json.as_bytes()).expect("reads")).map_err(|refusal| refusal.detail)
    }

    #[test]
    fn refuses_what_is_no_threshold() {
        let number = |got: &str| format!("min_confidence must be a float in [0.0, 1.0], got {got}");
        let key = |got: &str| {
            format!(
                "min_confidence map keys must be a bucket like 'choice:3-5' or 'default', got {got}"
            )
        };
        for (json, detail) in [
            ("true", number("True")),
            ("\"0.5\"", number("'0.5'")),
            ("NaN", number("nan")),
            ("1e999", number("inf")),
            ("-0.1", number("-0.1")),
            ("1.0000001", number("1.0000001")),
            ("2", number("2")),
            ("[]", number("[]")),
            (&"9".repeat(400), number(&"9".repeat(400))),
            (
                "{}",
                "a min_confidence map must be a non-empty dict of bucket -> float, got {}"
                    .to_owned(),
            ),
            (r#"{"choice:4":0.5}"#, key("'choice:4'")),
            (r#"{"choice":0.5}"#, key("'choice'")),
            (r#"{"Default":0.5}"#, key("'Default'")),
            (r#"{"default":null}"#, number("None")),
            (r#"{"noul:2":2,"x":1}"#, number("2")),
            (r#"{"x":2,"noul:2":2}"#, key("'x'")),
        ] {
            assert_eq!(gate(json), Err(detail), "{json}");
        }
        assert_eq!(gate("null"), Ok(None));
    }

    #[test]
    fn judges_by_bucket_default_and_zero() {
        let rows = [
            ("number, below", "0.5", 3, 0.4999, GateState::Abstained, 0.5),
            ("number, equal", "0.5", 3, 0.5, GateState::Passed, 0.5),
            ("zero flags nothing", "0", 3, 0.0, GateState::Passed, 0.0),
            (
                "own bucket",
                r#"{"choice:3-5":0.9,"default":0.1}"#,
                5,
                0.5,
                GateState::Abstained,
                0.9,
            ),
            (
                "default",
                r#"{"choice:3-5":0.9,"default":0.1}"#,
                6,
                0.5,
                GateState::Passed,
                0.1,
            ),
            (
                "neither",
                r#"{"choice:3-5":0.9}"#,
                11,
                0.5,
                GateState::Passed,
                0.0,
            ),
            (
                "two and less",
                r#"{"choice:2":0.9}"#,
                1,
                0.5,
                GateState::Abstained,
                0.9,
            ),
        ];
        for (name, json, options, confidence, state, threshold) in rows {
            let gate = gate(json).expect(name).expect(name);
            let verdict = gate.judge(Bucket::of(Kind::Choice, options), confidence, 1.0);
            assert_eq!(verdict, GateVerdict { state, threshold }, "{name}");
        }
        let bucket = Bucket::of(Kind::Noul, 2);
        let gate = Gate::Single(0.5);
        assert_eq!(gate.judge(bucket, f64::NAN, 0.6).state, GateState::Passed);
        assert_eq!(
            gate.judge(bucket, f64::NAN, f64::NAN).state,
            GateState::Unevaluated
        );
    }
}
