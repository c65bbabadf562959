//! The program over real sockets: surface, readiness, ends, hostile clients, and the other words of the command line.

mod checkpoints;
mod commands;
mod ends;
mod hostile;
mod load;
#[path = "../support/mod.rs"]
mod support;
mod surface;
mod volumes;

use std::path::{Path, PathBuf};

/// A copy of the tiny checkpoint that may be changed.
fn copy_of_tiny(to: &Path) -> PathBuf {
    let from = support::golden().join("tiny-laya");
    let folder = to.join("tiny");
    for part in ["", "encoder", "tokenizer"] {
        std::fs::create_dir_all(folder.join(part)).expect("a folder");
        for entry in std::fs::read_dir(from.join(part)).expect("tiny-laya") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a type").is_file() {
                std::fs::copy(entry.path(), folder.join(part).join(entry.file_name()))
                    .expect("a copy");
            }
        }
    }
    folder
}

/// The same with a contract: two questions.
fn copy_with_contract(to: &Path) -> PathBuf {
    let folder = copy_of_tiny(to);
    let decisions = r#"{"description":"test","language":"en","decisions":{
        "urgent":{"type":"noul","instructions":"Is it urgent?","criteria":{"true":"yes","false":"no"}},
        "kind":{"type":"choice","instructions":"Which kind?","criteria":{"bug":"a fault","wish":"a wish"}}}}"#;
    std::fs::write(folder.join("decisions.json"), decisions).expect("a file");
    folder
}

/// A request with one choice.
const ONE_CHOICE: &str = r#"{"state":"The server is down","questions":{"q":{"type":"choice","instructions":"Which?","criteria":["a","b","c"]}}}"#;

/// A request with `states` states of the largest size, which takes a while.
fn heavy(states: usize) -> String {
    let text = "The payment failed again and the invoice is wrong. ".repeat(40);
    let question = r#"{"type":"choice","instructions":"Which?","criteria":["a","b","c","d"]}"#;
    let questions: Vec<String> = (0..32)
        .map(|index| format!(r#""q{index}":{question}"#))
        .collect();
    let states = vec![format!("{text:?}"); states].join(",");
    format!(
        r#"{{"states":[{states}],"lang":"en","questions":{{{}}}}}"#,
        questions.join(",")
    )
}
