//! Typed questions and answers, their validation and exact JSON, contracts (an ordered question set and its digest)
//! and Relay's own 18 questions. No I/O.

pub mod answers;
pub mod contract;
pub mod json;
pub mod labels;
pub mod probe;
mod relay_contract;
pub mod vocabulary;
pub mod wire;

pub use answers::{Answer, AnswerError, Answers, Reply};
pub use contract::Contract;
pub use labels::Labels;
pub use relay_contract::{RELAY_DECISIONS_JSON, relay_contract};
