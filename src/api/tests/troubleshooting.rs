//! `docs/troubleshooting.md` is what the list of reasons says. `cargo xtask docs` writes it.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

use std::path::Path;

/// Set when the file is to be written instead of compared.
const UPDATE: &str = "RELAY_UPDATE_DOCS";

#[test]
fn the_committed_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting.md");
    let text = api::troubleshooting::page();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "docs/troubleshooting.md is old: run `cargo xtask docs`"
    );
}
