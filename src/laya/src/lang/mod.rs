//! Which language a state is written in, as far as the choice between checkpoints needs to know: script by counting
//! letters, Latin languages by function words and letters, then line by line for a foreign line in an English text
//! (wire.md 9). Pure functions of text; total on any string.

mod chars;
mod latin;
mod lines;
mod script;
mod tables;
mod text;

use decision::json::{Object, Value};

use latin::Profile;

/// Code points of a state that are read.
const TEXT_CHARS: usize = 4000;

/// What is known about the language of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Detection {
    /// `latin`, a named script, `other`, or `unknown` without letters.
    pub script: &'static str,
    /// Fraction of the letters per script, zeros left out, `latin` first.
    pub script_profile: Vec<(&'static str, f64)>,
    /// A language code, where one was identified.
    pub language: Option<&'static str>,
    /// Whether the English checkpoint can read it, as far as one can tell.
    pub is_english: bool,
    /// Whether no language was identified.
    pub language_undecided: bool,
    /// Share of letters that English does not use, 4 decimals.
    pub diacritic_rate: f64,
    /// Share of letters outside the Latin script, 4 decimals.
    pub non_latin_fraction: f64,
    /// A line or field that reads as another language than the English around it.
    pub mixed_segment: Option<String>,
}

impl Detection {
    /// The object as replies show it, keys in their order.
    #[must_use]
    pub fn to_object(&self) -> Object {
        let mut object = Object::new();
        object.push("script", self.script);
        let profile: Object = self
            .script_profile
            .iter()
            .map(|(script, share)| (*script, *share))
            .collect();
        object.push("script_profile", profile);
        object.push("language", self.language);
        object.push("is_english", self.is_english);
        object.push("language_undecided", self.language_undecided);
        object.push("diacritic_rate", self.diacritic_rate);
        object.push("non_latin_fraction", self.non_latin_fraction);
        object.push("mixed_segment", self.mixed_segment.as_deref());
        object
    }
}

/// Detects the language of a state.
#[must_use]
pub fn detect(state: &Value) -> Detection {
    let leaves = text::leaves(state);
    let mut detection = analyse(&text::joined(&leaves)).detection;
    let several = leaves.len() > 1 || leaves.iter().any(|leaf| leaf.contains('\n'));
    if detection.script == "latin" && detection.is_english && several {
        lines::look_for_other_language(&leaves, &mut detection);
    }
    if !matches!(state, Value::String(_)) && detection.is_english {
        lines::look_for_other_field(&leaves, &mut detection);
    }
    detection
}

/// One text on its own (wire.md 9.4), with what the line rules need beside it.
struct Analysis {
    detection: Detection,
    /// Letters in the text.
    letters: usize,
    /// Whether it has words of a named non-Latin script.
    has_non_latin_words: bool,
    /// Words of its Latin profile.
    words: usize,
}

fn analyse(text: &str) -> Analysis {
    let counts = script::count(text);
    let letters = counts.total();
    let latin_share = if letters == 0 {
        1.0
    } else {
        counts.of("latin") as f64 / letters as f64
    };
    let non_latin_fraction = if letters == 0 {
        0.0
    } else {
        round4(1.0 - latin_share)
    };
    let non_latin_letters = (non_latin_fraction * letters as f64).round_ties_even();
    let thresholds = &tables::get().thresholds;
    let carries = non_latin_fraction >= thresholds.non_latin_fraction
        || (non_latin_fraction >= thresholds.non_latin_min_fraction
            && non_latin_letters >= thresholds.non_latin_min_letters);
    let has_non_latin_words = script::has_non_latin_words(text);
    let mut script = counts.dominant();
    if script == "latin"
        && has_non_latin_words
        && carries
        && let Some(largest) = counts.largest_non_latin()
    {
        script = largest;
    }
    let mut detection = Detection {
        script,
        script_profile: counts.profile(),
        language: None,
        is_english: false,
        language_undecided: true,
        diacritic_rate: 0.0,
        non_latin_fraction,
        mixed_segment: None,
    };
    let mut words = 0;
    match script {
        "unknown" => detection.is_english = true,
        "latin" => {
            let profile = Profile::of(text);
            let language = if carries {
                profile.language
            } else {
                latin::after_capitals(text, &profile)
            };
            words = profile.words;
            detection.language = language;
            detection.language_undecided = language.is_none();
            detection.is_english = language.map_or(!profile.looks_non_english, |code| code == "en");
            detection.diacritic_rate = round4(profile.rate);
        }
        _ => {}
    }
    Analysis {
        detection,
        letters,
        has_non_latin_words,
        words,
    }
}

/// The nearest decimal with four places of the exact binary value, ties to even.
fn round4(number: f64) -> f64 {
    decision::wire::round4(number)
}

#[cfg(test)]
mod tests {
    use decision::json::{read, write};

    use super::*;

    #[test]
    fn agrees_with_every_recorded_state() {
        let read_file =
            |name: &str| std::fs::read_to_string(crate::golden_tests::golden(name)).unwrap();
        let file = read_file("laya/lang.jsonl") + &read_file("laya/lang-more.jsonl");
        let mut wrong = Vec::new();
        for line in file.lines() {
            let row = read(line.as_bytes()).unwrap();
            let row = row.as_object().unwrap();
            let got = write(&Value::Object(
                detect(row.get("state").unwrap()).to_object(),
            ));
            let want = write(row.get("analyse").unwrap());
            if got != want {
                wrong.push(format!(
                    "{}\n got {got}\nwant {want}",
                    write(row.get("state").unwrap())
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} differ:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    }
}
