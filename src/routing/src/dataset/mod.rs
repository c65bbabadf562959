//! Learned tasks as rows of a dataset (training.md 2, 5, 12): reading and writing them, checking what an agent learned,
//! splitting and choosing them for training, editing, forgetting, importing and migrating them, and what older files
//! say about finished tasks. Pure functions from what is there to an [`Edit`]; the store that applies it, its
//! transactions and its versions are not known here.

mod edit;
mod evidence;
mod file;
mod generator;
mod learn;
mod line;
mod migrate;
mod mirror;
mod origin;
mod row;
mod secrets;
mod seed;
mod snapshot;
mod split;
mod standing;
mod telemetry;
mod view;

pub use edit::{EditError, Forget, edit_lesson, forget};
pub use evidence::{EVIDENCE_BYTES, Evidence, Outcome, Planned};
pub use file::{RejectedLine, RowFile, read_file, write_file};
pub use generator::Generator;
pub use learn::{
    Exercise, LESSON_UNITS, LearnAnswer, LearnBody, LearnRefusal, MAX_EXERCISES, NOTE_UNITS,
    SESSION_UNITS, TrainingAnswer, learn, rules_of,
};
pub use migrate::{MapError, Migration, MigrationMap, QuestionMap, migrate};
pub use mirror::{Import, Mirror, import_mirror};
pub use origin::{LabelSource, Source, Split};
pub use row::{MAX_LINE_BYTES, NewRow, Row, RowError};
pub use secrets::{REDACTED, Secret, SecretKind, find_secrets, has_secret, redact};
pub use seed::{SEED_COUNT, first_use, seed, template_count};
pub use snapshot::{FrozenFile, Snapshot, snapshot};
pub use split::{
    Selection, SelectionError, SelectionRecipe, SessionSplits, replay_size, request_hash, select,
    split_by_hash, split_hash, split_of,
};
pub use standing::{InForce, RowStanding, StaleReason};
pub use telemetry::{
    FinishedTask, Observed, TelemetryFile, TelemetryImport, TelemetryLine, export_rows,
    import_telemetry, read_telemetry,
};
pub use view::{DatasetView, Edit, Finding, LabelChange};

#[cfg(test)]
mod tests;
