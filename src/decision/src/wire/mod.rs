//! Laya's HTTP contract without HTTP (wire.md 4–7): which bodies are accepted and how each refusal reads, what questions
//! mean once checked, and how probabilities become the fields of a reply. It knows no tokens and no model.
//!
//! A server reads a body with [`read_request`] or [`read_batch_request`], checks its questions with
//! [`check_questions`], turns logits into [`Answer`]s with [`probabilities`] and [`Answer::new`], applies the [`Gate`]
//! and writes a [`Payload`].

mod answer;
mod bucket;
mod fields;
mod gate;
mod label;
mod limits;
mod model_choice;
mod payload;
mod question;
mod question_rules;
mod refusal;
mod request;
mod state;
mod temperature;

pub use answer::{Answer, Outcome, Tournament, act_probability, probabilities, round4};
pub use bucket::{Bucket, BucketSize};
pub use gate::{Gate, GateState, GateVerdict};
pub use label::Label;
pub use limits::{
    MAX_CHOICE_OPTIONS, MAX_QUESTIONS, MAX_SCORE_LEVELS, MAX_STATE_CHARS, MAX_STATES,
    MAX_TOTAL_OPTIONS,
};
pub use limits::{MAX_TOURNAMENT_OPTIONS, OptionLimit};
pub use model_choice::{ModelChoice, ModelNames};
pub use payload::{OptionUsage, Payload, StateUsage, Surface, Usage, write_batch, write_reply};
pub use question::{ChoiceOption, Form, Question};
pub use question_rules::{check_question, check_questions};
pub use refusal::{Refusal, Status};
pub use request::{
    BatchRequest, Controls, Request, RequestRules, read_batch_request, read_request,
};
pub use state::{state_chars, value_text};
pub use temperature::Temperatures;
