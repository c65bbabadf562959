//! `docs/kinds/` is what the types say. `cargo xtask docs` writes it.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use api::group::Kind;
use api::kinds::page::page;

/// Set when the files are to be written instead of compared.
const UPDATE: &str = "RELAY_UPDATE_DOCS";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The plainest example of each kind.
fn example(kind: Kind) -> &'static str {
    match kind {
        Kind::LayaModel => "model",
        Kind::LayaServer => "server",
        Kind::TrainingRun => "run",
        Kind::EvaluationGate => "gate",
        Kind::RoutingPolicy => "policy",
    }
}

#[test]
fn the_committed_pages_are_current() {
    for kind in Kind::ALL {
        let example = format!("examples/{}-minimal.yaml", example(kind));
        let text = page(
            kind,
            &std::fs::read_to_string(docs().join(example)).unwrap(),
        );
        let name = format!("{}.md", kind.singular());
        let path = docs().join("kinds").join(&name);
        if std::env::var_os(UPDATE).is_some() {
            std::fs::create_dir_all(docs().join("kinds")).unwrap();
            std::fs::write(&path, text).unwrap();
            continue;
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == text,
            "docs/kinds/{name} is old: run `cargo xtask docs`"
        );
    }
}
