//! What servers say and do when they are asked (control-plane 12): readiness, identity, device, probe questions. A task of
//! its own asks; a pass reads the last results and never waits for a model.
//!
//! What an answer means is decided in `judge`, `health` and `replica`, which are pure; `prober` asks what they say is due.

mod call;
mod health;
mod judge;
mod prober;
mod questions;
mod replica;
mod seen;
mod watched;

pub use call::{Call, CallError, Said, ask};
pub use health::{HealthSaid, ReadySaid, read_health, read_ready};
pub use judge::{Judged, Labels, is_dead, judge};
pub use prober::{ProbeCounts, Prober, ServerId};
pub use questions::{BUILT_IN, QuestionSet, RecordedAnswer, RecordedProbe};
pub use seen::{DeviceSaid, Questions, QuestionsFailed, Readiness, ReplicaProbe};
pub use watched::{Pace, Replica};
