//! The requests R0–R3 of wire.md 22.1, as one file that every implementation reads. A byte is a token of the random
//! checkpoints, so the state is cut until the rows have the length that a case asks for.

use std::collections::BTreeMap;
use std::path::Path;

use decision::json::{self, Value};
use decision::wire::{Question, check_questions};
use laya::{Checkpoint, Engine, EngineOptions, Lengths, LoadOptions, encode};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Case {
    /// The text that is asked about.
    pub(crate) state: String,
    /// Question id → definition.
    pub(crate) questions: serde_json::Value,
    /// Tokens of all rows together.
    pub(crate) tokens: usize,
}

/// Long enough for every case. The least that a checkpoint has (the tiny one: 96 for questions) cuts none of the heads.
const LENGTHS: Lengths = Lengths {
    max_len: Some(512),
    head_max_len: Some(96),
};

/// Name, questions, tokens of a row in the middle.
const WANTED: [(&str, usize, usize); 4] = [
    ("R0", 1, 120),
    ("R1", 3, 99),
    ("R2", 1, 512),
    ("R3", 18, 109),
];

/// What the state is made of.
const TEXT: &str = "The payment for the order failed again, the invoice shows it twice and nobody answers our mails; \
                    please look into it before the end of the week. ";

/// Every case. `dir` is a random checkpoint of any shape: all have the same tokenizer.
pub(super) fn fitted(dir: &Path) -> Result<BTreeMap<String, Case>, String> {
    let engine = Engine::new(EngineOptions::default()).map_err(|error| error.to_string())?;
    let checkpoint = engine
        .load(dir, &LoadOptions::default())
        .map_err(|error| error.to_string())?;
    WANTED
        .into_iter()
        .map(|(name, count, length)| Ok((name.to_owned(), fit(&checkpoint, count, length)?)))
        .collect()
}

fn fit(checkpoint: &Checkpoint, count: usize, length: usize) -> Result<Case, String> {
    let questions = questions(count);
    let checked = check(&questions)?;
    let tokens = |state: &str| {
        encode(checkpoint, &Value::from(state), &checked, LENGTHS)
            .map(|encoded| encoded.usage.input_tokens)
            .map_err(|error| error.to_string())
    };
    let short = 8;
    let of_heads = tokens(&state(short))? - short * count;
    let room = (count * length)
        .checked_sub(of_heads)
        .ok_or_else(|| format!("{count} questions alone have {of_heads} tokens"))?;
    let state = state((room + count / 2) / count);
    let tokens = tokens(&state)?;
    Ok(Case {
        state,
        questions,
        tokens,
    })
}

/// ASCII of that length that ends in no space.
fn state(length: usize) -> String {
    let text: String = TEXT
        .chars()
        .cycle()
        .take(length.saturating_sub(1))
        .collect();
    text + "."
}

/// Choice, score and noul in turn.
fn questions(count: usize) -> serde_json::Value {
    let definition = |at: usize| match at % 3 {
        0 => {
            json!({"type": "choice", "instructions": "Which team answers?", "criteria": ["billing", "technical", "other"]})
        }
        1 => {
            json!({"type": "score", "instructions": "How urgent?", "criteria": ["low", "mid", "high"]})
        }
        _ => {
            json!({"type": "noul", "instructions": "Will they leave?", "criteria": {"true": "yes", "false": "no"}})
        }
    };
    (0..count)
        .map(|at| (format!("q{at:02}"), definition(at)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Questions as the engine takes them.
pub(super) fn check(questions: &serde_json::Value) -> Result<Vec<Question>, String> {
    let value = json::read(questions.to_string().as_bytes()).map_err(|error| error.to_string())?;
    let Value::Object(object) = value else {
        return Err("the questions of a case are no object".to_owned());
    };
    check_questions(&object).map_err(|refusal| refusal.detail)
}

pub(super) fn write(file: &Path, cases: &BTreeMap<String, Case>) -> Result<(), String> {
    let failed = |error: String| format!("cannot write {}: {error}", file.display());
    let text = serde_json::to_string_pretty(cases).map_err(|error| failed(error.to_string()))?;
    std::fs::write(file, text).map_err(|error| failed(error.to_string()))
}

pub(super) fn read(file: &Path) -> Result<BTreeMap<String, Case>, String> {
    let failed = |error: String| format!("cannot read {}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use laya::checkpoint::{Shape, write_random};

    use super::*;

    #[test]
    fn the_rows_have_the_length_that_the_page_asks_for() {
        let folder = crate::command::root().join("target/bench-laya-test");
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        let dir = folder.join("tiny");
        write_random(&dir, Shape::Tiny, 1).unwrap();
        let cases = fitted(&dir).unwrap();
        for (name, count, length) in WANTED {
            let case = &cases[name];
            let off = case.tokens.abs_diff(count * length);
            assert!(
                off <= count / 2,
                "{name}: {} tokens for {count} × {length}",
                case.tokens
            );
            assert_eq!(check(&case.questions).unwrap().len(), count, "{name}");
        }
        let file = folder.join("cases.json");
        write(&file, &cases).unwrap();
        assert_eq!(read(&file).unwrap(), cases);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
