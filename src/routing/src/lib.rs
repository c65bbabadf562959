//! The routing brain: assessment, keyword rules, policy, candidates and utility, history, memory, quota and prices as
//! pure functions of data. Clocks and random numbers are arguments; there is no I/O here (routing.md 2–17).

pub mod assessment;
pub mod bounded;
pub mod escalation;
pub mod estimate;
pub mod follow_up;
pub mod history;
pub mod profile;
pub mod provider_error;
pub mod quota;
pub mod reason;
pub mod registry;
pub mod selection;
pub mod stop_words;
pub mod text;
pub mod thinking;
pub mod timestamp;
