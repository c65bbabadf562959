//! Temperatures of a checkpoint: per kind and per bucket, as its configuration or a calibration file gives them
//! (wire.md 6.1, 19.3).

use super::bucket::Bucket;
use crate::contract::Kind;
use crate::json::{Value, python_repr, trim};

/// Smallest and largest temperature that is applied.
const RANGE: (f64, f64) = (0.5, 5.0);

/// Temperatures that divide logits, each in 0.5..=5.
#[derive(Debug, Clone, PartialEq)]
pub struct Temperatures {
    /// Of choice, score and noul.
    by_kind: [f32; 3],
    by_bucket: Vec<(Bucket, f32)>,
}

impl Default for Temperatures {
    fn default() -> Self {
        Self {
            by_kind: [1.0; 3],
            by_bucket: Vec::new(),
        }
    }
}

impl Temperatures {
    /// Reads `temperature` (a list for choice, score, noul) and `temperature_by_options` (bucket → temperature). What is
    /// absent is 1, what is no number counts as 1, what is out of range is clamped; for each value replaced `warn` gets
    /// one line. Unknown buckets are ignored.
    #[must_use]
    pub fn from_config(
        temperature: Option<&Value>,
        by_options: Option<&Value>,
        mut warn: impl FnMut(String),
    ) -> Self {
        let mut temperatures = Self::default();
        let list = temperature.and_then(Value::as_list).unwrap_or_default();
        for ((place, value), kind) in temperatures.by_kind.iter_mut().zip(list).zip(Kind::ALL) {
            *place = usable(value, kind.as_str(), &mut warn);
        }
        for (name, value) in by_options.and_then(Value::as_object).into_iter().flatten() {
            if let Some(bucket) = name.as_str().and_then(Bucket::from_name) {
                temperatures
                    .by_bucket
                    .push((bucket, usable(value, &bucket.to_string(), &mut warn)));
            }
        }
        temperatures
    }

    /// The temperature of a bucket: its own, else that of its kind.
    #[must_use]
    pub fn of(&self, bucket: Bucket) -> f32 {
        let own = self
            .by_bucket
            .iter()
            .find(|(name, _)| *name == bucket)
            .map(|(_, temperature)| *temperature);
        let [choice, score, noul] = self.by_kind;
        own.unwrap_or(match bucket.kind {
            Kind::Choice => choice,
            Kind::Score => score,
            Kind::Noul => noul,
        })
    }
}

fn usable(value: &Value, place: &str, warn: &mut impl FnMut(String)) -> f32 {
    let number = match value {
        Value::String(text) => text.as_str().and_then(|text| trim(text).parse().ok()),
        other => other.as_f64(),
    };
    let number = number.filter(|number: &f64| number.is_finite());
    let used = number.unwrap_or(1.0).clamp(RANGE.0, RANGE.1);
    if number != Some(used) {
        warn(format!(
            "temperature {} of {place} is served as {used}",
            python_repr(value)
        ));
    }
    used as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read;

    #[test]
    fn takes_the_bucket_then_the_kind_and_replaces_what_is_unusable() {
        let list = read(br#"[1.6369, "0.9", true]"#).expect("reads");
        let buckets = read(
            br#"{"choice:2": 1.9063563346862793, "choice:11+": 0.1006, "score:3-5": 9, "score:6-10": "x", "noul:2": NaN,
            "odd": 0}"#,
        )
        .expect("reads");
        let mut warnings = Vec::new();
        let temperatures =
            Temperatures::from_config(Some(&list), Some(&buckets), |line| warnings.push(line));
        for (kind, options, expected) in [
            (Kind::Choice, 1, 1.906_356_3),
            (Kind::Choice, 3, 1.6369),
            (Kind::Choice, 11, 0.5),
            (Kind::Score, 5, 5.0),
            (Kind::Score, 6, 1.0),
            (Kind::Score, 20, 0.9),
            (Kind::Noul, 2, 1.0),
        ] {
            assert_eq!(
                temperatures.of(Bucket::of(kind, options)),
                expected,
                "{kind} of {options}"
            );
        }
        assert_eq!(
            warnings,
            [
                "temperature True of noul is served as 1",
                "temperature 0.1006 of choice:11+ is served as 0.5",
                "temperature 9 of score:3-5 is served as 5",
                "temperature 'x' of score:6-10 is served as 1",
                "temperature nan of noul:2 is served as 1",
            ]
        );
    }

    #[test]
    fn is_one_without_a_configuration() {
        let temperatures =
            Temperatures::from_config(None, Some(&Value::Null), |line| panic!("{line}"));
        assert_eq!(temperatures, Temperatures::default());
        assert_eq!(temperatures.of(Bucket::of(Kind::Score, 4)), 1.0);
    }
}
