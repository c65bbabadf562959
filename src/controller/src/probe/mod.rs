//! What servers say and do when they are asked (control-plane 12): readiness, identity, device, probe questions. A task of
//! its own asks; a pass reads the last results and never waits for a model.

mod seen;

pub use seen::{DeviceSaid, Questions, QuestionsFailed, Readiness, ReplicaProbe};
