//! The routing brain: assessment, keyword rules, policy, candidates and utility, history, memory, quota and prices as
//! pure functions of data. Clocks and random numbers are arguments; there is no I/O here (routing.md 2–17).

pub mod assessment;
pub mod checks;
pub mod hidden_message;
pub mod lessons;
pub mod memory;
pub mod plan;
pub mod reason;
pub mod settings;
pub mod skills;
pub mod stop_words;
pub mod text;
pub mod timestamp;
pub mod tool_routing;
