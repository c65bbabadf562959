//! Whole numbers that were written with a fraction. The API server checks `4.0` as a float, counts it as a change of `4`, and
//! stores `4`, since that is how it prints it.

use serde_json::Value;

/// Floats from here on are not all whole numbers that fit.
const LIMIT: f64 = 9.2e18;

/// Makes whole floats integers.
pub(super) fn settle(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0);
            if let Some(float) = whole.filter(|float| float.abs() < LIMIT) {
                *value = to_integer(float).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(fields) => fields.values_mut().for_each(settle),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
const fn to_integer(float: f64) -> i64 {
    float as i64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_floats_become_integers_and_others_stay() {
        let mut value = json!({"a": [4.0, -0.0, 0.5, 1e300, 1e18, 7, "4.0", null]});
        settle(&mut value);
        assert_eq!(
            value.to_string(),
            r#"{"a":[4,0,0.5,1e+300,1000000000000000000,7,"4.0",null]}"#
        );
    }
}
