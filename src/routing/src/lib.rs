//! The routing brain: assessment, keyword rules, policy, candidates and utility, history, memory, quota and prices as
//! pure functions of data. Clocks and random numbers are arguments; there is no I/O here (routing.md 2–17).

pub mod assessment;
pub mod derive;
pub mod keywords;
pub mod reason;
pub mod rules;
pub mod stop_words;
pub mod text;
pub mod timestamp;
pub mod words;
