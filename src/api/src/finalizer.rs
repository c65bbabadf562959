//! Finalizers (control-plane 1.4): there is one. Everything else is cleaned by owner references and the orphan sweep.

/// On a LayaModel: it stays while a LayaServer has it, then its data is removed.
pub const MODEL_IN_USE: &str = "relay.dev/model-in-use";

/// Every finalizer of ours.
pub const ALL: &[&str] = &[MODEL_IN_USE];
