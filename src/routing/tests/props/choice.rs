//! Property tests of choosing a model.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "history.rs"]
mod history;
#[path = "selection.rs"]
mod selection;
