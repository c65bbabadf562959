use super::*;
use serde::Deserialize;

/// `must`: what stands between `«` and `»` is a credential and may not be left. `<<an36>>` stands for 36 letters and
/// digits, `up` for capitals and digits, `hex` for such digits, `pem` for what key files hold: no file here holds a token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(rename = "source")]
    _source: String,
    must: Vec<String>,
    must_not: Vec<String>,
}

fn tables() -> Tables {
    serde_json::from_str(include_str!("../../../tests/vectors/secrets.json"))
        .expect("tables of this form")
}

/// The text with its stand-ins filled in.
fn filled(text: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<<") {
        let (stand_in, after) = after.split_once(">>").expect("closed");
        let digits = stand_in
            .find(|c: char| c.is_ascii_digit())
            .expect("a length");
        let (kind, length) = stand_in.split_at(digits);
        let alphabet = match kind {
            "an" => "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0z",
            "up" => "ABC2DEF3GHJ4KLM5NPQ6RST7",
            "hex" => "0a1b2c3d4e5f6789",
            "pem" => "aB3+dE5/gH7jK9mN1pQ2",
            other => panic!("no alphabet {other}"),
        };
        filled.push_str(before);
        filled.extend(
            alphabet
                .chars()
                .cycle()
                .take(length.parse().expect("a length")),
        );
        rest = after;
    }
    filled + rest
}

#[test]
fn finds_and_takes_out_what_must_not_be_kept() {
    let must = tables().must;
    assert!(must.len() >= 40, "{}", must.len());
    for row in &must {
        let marked = filled(row);
        let text: String = marked.chars().filter(|c| !matches!(c, '«' | '»')).collect();
        assert!(has_secret(&text), "{row}");
        let clean = redact(&text);
        let mut rest = marked.as_str();
        let mut marks = 0;
        while let Some((_, after)) = rest.split_once('«') {
            let (secret, after) = after.split_once('»').expect("closed");
            for part in secret.split_whitespace() {
                assert!(!clean.contains(part), "{row}: {clean}");
            }
            rest = after;
            marks += 1;
        }
        assert!(marks > 0, "{row} marks no secret");
        assert!(clean.contains(REDACTED), "{row}");
        assert!(!has_secret(&clean), "{row}: {clean}");
        assert_eq!(redact(&clean), clean, "{row}");
    }
}

#[test]
fn leaves_what_only_talks_about_credentials() {
    let must_not = tables().must_not;
    assert!(must_not.len() >= 40, "{}", must_not.len());
    for row in &must_not {
        let text = filled(row);
        assert_eq!(find_secrets(&text), [], "{row}");
        assert_eq!(redact(&text), text);
    }
}

#[test]
fn the_words_around_a_secret_stay() {
    let text = filled("Log in with password=<<an12>>, then fix the date parser.");
    assert_eq!(
        redact(&text),
        "Log in with password=[redacted], then fix the date parser."
    );
}

#[test]
fn phrases_about_security_hold_no_secret() {
    let files = [
        include_str!("../../../tests/phrases/phrases_must.tsv"),
        include_str!("../../../tests/phrases/phrases_must_not.tsv"),
    ];
    let lines: Vec<&str> = files.into_iter().flat_map(str::lines).collect();
    assert!(lines.len() >= 300);
    for line in lines {
        assert_eq!(find_secrets(line), [], "{line}");
    }
}

#[test]
fn a_long_text_of_names_costs_no_square_of_its_length() {
    let long = format!("{}=(", "password".repeat(20_000));
    assert!(!has_secret(&long));
    let value = "x1".repeat(LONG_VALUE);
    let clean = redact(&format!("password={value} and more")).into_owned();
    assert_eq!(clean, "password=[redacted] and more");
}

/// Longer than what is looked at of a value.
const LONG_VALUE: usize = 10_000;
