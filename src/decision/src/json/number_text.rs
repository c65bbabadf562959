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
    let (sign, digits, power) = shortest_digits(float);
    match usize::try_from(power) {
        Ok(power) if power < 16 => {
            let whole = digits.len().min(power + 1);
            let zeros = "0".repeat(power + 1 - whole);
            let fraction = if digits.len() > whole {
                &digits[whole..]
            } else {
                "0"
            };
            format!("{sign}{}{zeros}.{fraction}", &digits[..whole])
        }
        Err(_) if power >= -4 => {
            let zeros = "0".repeat(power.unsigned_abs() as usize - 1);
            format!("{sign}0.{zeros}{digits}")
        }
        _ => {
            let point = if digits.len() > 1 { "." } else { "" };
            let power_sign = if power < 0 { '-' } else { '+' };
            format!(
                "{sign}{}{point}{}e{power_sign}{:02}",
                &digits[..1],
                &digits[1..],
                power.unsigned_abs()
            )
        }
    }
}

/// Sign, shortest digits that read back as the same float, and the power of ten of the first digit. Where two shortest
/// forms are equally near, Rust rounds up and Laya to the even digit: 118059162071741.125 is `…41.12`.
fn shortest_digits(float: f64) -> (&'static str, String, i32) {
    let shortest = format!("{float:e}");
    let (mantissa, _) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let places = mantissa
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len());
    let nearest = format!("{float:.places$e}");
    let chosen = if nearest.parse() == Ok(float) {
        nearest
    } else {
        shortest
    };
    let (mantissa, power) = chosen.split_once('e').unwrap_or((&chosen, "0"));
    let digits = mantissa.chars().filter(char::is_ascii_digit).collect();
    (
        if float.is_sign_negative() { "-" } else { "" },
        digits,
        power.parse().unwrap_or(0),
    )
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
            (944_473_296_573_929.0 / 8.0, "118059162071741.12"),
            (-2_446_382_366_009_877.0 / 4.0, "-611595591502469.2"),
            (944_473_296_573_931.0 / 8.0, "118059162071741.38"),
            (0.000_123, "0.000123"),
            (1_234_567_890_123_456.0, "1234567890123456.0"),
            (2_f64.powi(-44), "5.684341886080802e-14"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float_text(float), text);
        }
    }
}
