//! Two bodies byte for byte, but for the last digits of numbers: different kernels may move those (wire.md 21).

/// How far numbers may lie apart.
const TOLERANCE: f64 = 1e-4;
/// The same for `x_jev_confidence`, which is made from rounded values.
const JEV_TOLERANCE: f64 = 1e-3;
/// What subtraction of two decimals may add.
const NOISE: f64 = 1e-9;

/// Compares, and says where they differ.
pub(crate) fn same_body(got: &str, expected: &str) -> Result<(), String> {
    let (mut a, mut b) = (Tokens::new(got), Tokens::new(expected));
    let mut key = String::new();
    loop {
        let same = match (a.next(), b.next()) {
            (None, None) => return Ok(()),
            (Some(Token::Number(x)), Some(Token::Number(y))) => {
                let tolerance = if key == "\"x_jev_confidence\"" {
                    JEV_TOLERANCE
                } else {
                    TOLERANCE
                };
                x == y || close(x, y, tolerance)
            }
            (Some(Token::Text(x)), Some(Token::Text(y))) => {
                if x.starts_with('"') {
                    key = x.to_owned();
                }
                x == y
            }
            _ => false,
        };
        if !same {
            return Err(format!(
                "body differs after {key}:\n   got {got}\n  want {expected}"
            ));
        }
    }
}

/// Floats may differ a little, integers not at all.
fn close(x: &str, y: &str, tolerance: f64) -> bool {
    let float = |text: &str| {
        text.contains(['.', 'e'])
            .then(|| text.parse::<f64>().ok())
            .flatten()
    };
    matches!((float(x), float(y)), (Some(x), Some(y)) if (x - y).abs() <= tolerance + NOISE)
}

enum Token<'a> {
    Number(&'a str),
    Text(&'a str),
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    const fn new(rest: &'a str) -> Self {
        Self { rest }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let first = self.rest.chars().next()?;
        let is_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let length = if first == '"' {
            let mut escaped = false;
            let end = self.rest.char_indices().skip(1).find(|(_, c)| {
                let end = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                end
            });
            end.map_or(self.rest.len(), |(at, _)| at + 1)
        } else if first.is_ascii_digit() || first == '-' {
            self.rest.find(|c| !is_number(c)).unwrap_or(self.rest.len())
        } else {
            first.len_utf8()
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(if first.is_ascii_digit() || first == '-' {
            Token::Number(token)
        } else {
            Token::Text(token)
        })
    }
}

#[test]
fn only_the_last_digits_of_floats_may_differ() {
    for (got, expected, same) in [
        (r#"{"p":0.1234}"#, r#"{"p":0.1234}"#, true),
        (r#"{"p":0.1235}"#, r#"{"p":0.1234}"#, true),
        (r#"{"p":0.1236}"#, r#"{"p":0.1234}"#, false),
        (r#"{"p":-1e-05}"#, r#"{"p":0.0}"#, true),
        (
            r#"{"x_jev_confidence":0.1236}"#,
            r#"{"x_jev_confidence":0.1234}"#,
            true,
        ),
        (r#"{"n":41}"#, r#"{"n":42}"#, false),
        (r#"{"n":1}"#, r#"{"n":1.0}"#, false),
        (r#"{"s":"0.1235"}"#, r#"{"s":"0.1234"}"#, false),
        (r#"{"s":"\"1"}"#, r#"{"s":"\"2"}"#, false),
        (r#"{"a":1, "b":2}"#, r#"{"a":1,"b":2}"#, false),
        (r#"{"a":1}"#, r#"{"a":1}}"#, false),
        ("", "", true),
    ] {
        assert_eq!(
            same_body(got, expected).is_ok(),
            same,
            "{got} and {expected}"
        );
    }
}
