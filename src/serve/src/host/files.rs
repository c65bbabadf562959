//! Whether the files of a checkpoint are other ones than before, cheaply: by size and time of change. It only decides
//! when a failed load is tried again, never what is trusted.

use std::time::SystemTime;

use crate::source::Found;

/// Files whose change may mend a checkpoint.
const WATCHED: [&str; 8] = [
    "rl_agent_config.json",
    "model.safetensors",
    "encoder/config.json",
    "tokenizer/tokenizer.json",
    "tokenizer/tokenizer_config.json",
    "relay-manifest.json",
    "decisions.json",
    "questions.json",
];

/// Size and time of change of each file; none where there is no folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fingerprint(Option<Vec<Option<Seen>>>);

/// Size and time of change of one file.
type Seen = (u64, Option<SystemTime>);

/// Looks at the files of a source.
pub(super) fn fingerprint(found: Option<Found>) -> Fingerprint {
    Fingerprint(found.map(|found| {
        let seen = |name: &&str| {
            let metadata = found.folder.join(name).metadata().ok()?;
            Some((metadata.len(), metadata.modified().ok()))
        };
        WATCHED.iter().map(seen).collect()
    }))
}
