//! The committed document and page are what the table and the types say. `cargo xtask docs` writes them.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use api::openapi;

/// Set when the files are to be written instead of compared.
const UPDATE: &str = "RELAY_UPDATE_DOCS";

fn current(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == text,
        "docs/{file} is old: run `cargo xtask docs`"
    );
}

#[test]
fn the_committed_files_are_current() {
    let document = openapi::document();
    let mut text = serde_json::to_string_pretty(&document).unwrap();
    text.push('\n');
    current("openapi.json", &text);
    current("http-api.md", &openapi::page(&document));
}
