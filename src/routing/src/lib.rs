//! The routing brain: assessment, keyword rules, policy, candidates and utility, history, memory, quota and prices as
//! pure functions of data. Clocks and random numbers are arguments; there is no I/O here (routing.md 2–17).

pub mod assessment;
pub mod bounded;
pub mod escalation;
pub mod follow_up;
pub mod hidden_message;
pub mod history;
pub mod lessons;
pub mod memory;
pub mod plan;
pub mod profile;
pub mod reason;
pub mod registry;
pub mod selection;
pub mod skills;
pub mod stop_words;
pub mod text;
pub mod thinking;
pub mod timestamp;
pub mod tool_routing;
