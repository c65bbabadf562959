//! Typed questions and answers, their validation and exact JSON, contracts (an ordered question set and its digest)
//! and Relay's own 18 questions. No I/O.

pub mod vocabulary;
