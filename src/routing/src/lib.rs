//! The routing brain: assessment, keyword rules, policy, candidates and utility, history, memory, quota and prices as
//! pure functions of data. Clocks and random numbers are arguments; there is no I/O here (routing.md 2–17).

pub mod assessment;
pub mod bounded;
pub mod checks;
pub mod decide;
pub mod derive;
pub mod escalation;
pub mod estimate;
pub mod follow_up;
pub mod from_answers;
pub mod hidden_message;
pub mod history;
pub mod keywords;
pub mod lessons;
pub mod memory;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod provider_error;
pub mod quota;
pub mod reason;
pub mod recent;
pub mod record;
pub mod registry;
pub mod request;
pub mod requirement;
pub mod rules;
pub mod selection;
pub mod settings;
pub mod skills;
pub mod stop_words;
pub mod text;
pub mod thinking;
pub mod timestamp;
pub mod tool_routing;
pub mod words;
