//! Volumes of checkpoints (control-plane 11): a checkpoint is fetched into a staging folder, checked against its digests
//! and for its meaning, synced, and published by one rename; it is hashed again on demand, mended by exchange, and pruned
//! in two phases. A run that dies anywhere leaves what the next run goes on from. Everything here blocks: callers bring
//! a thread, an ear for progress and a switch ([`Run`]). What is fetched, kept or deleted is decided elsewhere.

mod arguments;
mod digest;
mod error;
mod fetch;
mod layout;
mod meaning;
mod part;
mod prune;
mod publish;
mod request;
mod run;
mod source;
mod space;
pub mod task;
mod verify;
mod view;
mod watch;

pub use arguments::{Task, commands};
pub use digest::{Digest, NoDigest};
pub use error::{SourceFault, TaskError, TaskExit};
pub use fetch::fetch;
pub use layout::VOLUME_UID;
pub use prune::prune;
pub use request::{
    Credential, Existing, FetchRequest, Fetched, Limits, PruneRequest, Pruned, Source, SourceFile,
    SourceManifest, Verified, VerifyRequest,
};
pub use run::{Cancel, CrashPoints, NoCrash, OnProgress, Phase, Progress, Run, Step};
pub use verify::verify;
pub use view::{Published, View, room, view};
