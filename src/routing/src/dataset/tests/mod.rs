//! Operations on small datasets. The vectors of the specification are in `tests/dataset_vectors.rs`.

mod edits;
mod mirror;
mod rows;
mod seeds;
mod selection;

use decision::relay_contract;

use super::*;

fn in_force() -> InForce {
    InForce::of(relay_contract())
}

const LABELS: &str = r#"{"task_type":"bug_fix","complexity":1,"scope":"module","risk":0,"ambiguity":0,"reasoning_requirement":1,"capability_tier":"fast","reasoning_effort":"low","agent":"software-engineer","validation_level":"unit_test","requires_write":true,"requires_shell":false,"requires_tests":true,"requires_web":false,"requires_browser":false,"requires_database":false,"requires_git":false,"security_sensitive":false}"#;

/// A row as Relay 1.0.3 writes one: no digests; `more` are further members.
fn old_line(id: &str, request: &str, source: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","state":{{"request":"{request}"}},"expected":{LABELS},"source":"{source}"{more}}}"#
    )
}

fn row(line: &str) -> Row {
    Row::read(line).expect("a row")
}

fn session(id: &str, request: &str, more: &str) -> Row {
    row(&old_line(id, request, "session", more)).stamped(&in_force())
}

fn pool(id: &str, request: &str) -> Row {
    row(&old_line(id, request, "synthetic", "")).stamped(&in_force())
}

fn view(rows: &[Row]) -> DatasetView<'_> {
    DatasetView {
        rows,
        highest_session_number: 0,
    }
}

fn ids(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(Row::id).collect()
}
