//! Floats as text (wire.md 4.2).

/// The shortest digits that read back as the same float, in Laya's form: exponents below 1e-4 and from 1e16 with at
/// least two digits, otherwise always a decimal point; `nan`, `inf`, `-inf` for what is no number.
#[must_use]
pub fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // `{:e}` gives the shortest digits as `d.ddde±x`; the exponent decides the form.
    let scientific = format!("{float:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let power: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&power) {
        let plain = format!("{float}");
        return if plain.contains('.') {
            plain
        } else {
            plain + ".0"
        };
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::float_text;

    #[test]
    fn writes_the_forms_of_the_specification() {
        for (float, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.0, "0.0"),
            (100_000.0, "100000.0"),
            (0.1, "0.1"),
            (1.5, "1.5"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.2e-7, "1.2e-07"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (1.25e100, "1.25e+100"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float_text(float), text);
        }
    }
}
