//! From a state and checked questions to rows, and from the numbers of those rows to answers and usage (wire.md 6, 10).
//! [`predict`] is both with the passes between them; a server calls the halves, and puts rows of many requests into one
//! pass.

use decision::contract::Kind;
use decision::json::{Text, Value, repr_text};
use decision::wire::{
    Answer, Bucket, OptionUsage, Question, Refusal, StateUsage, Usage, act_probability,
    probabilities, value_text,
};

use crate::checkpoint::{Checkpoint, Temperatures};
use crate::engine::{Engine, PASS_TOKENS, RunError, plan_passes};
use crate::model::{RowOutput, TokenRow, kind_index};
use crate::prompt::{self, Budget, Keep};
use crate::tokenizer::TokenizeError;

/// Lengths that a request asks for in place of the checkpoint's, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lengths {
    /// The whole row.
    pub max_len: Option<usize>,
    /// Question and options.
    pub head_max_len: Option<usize>,
}

/// A row ready for a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRow {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Position of each slot's marker.
    pub markers: Vec<usize>,
    /// Type of the question.
    pub kind: Kind,
}

impl EncodedRow {
    /// The row as the engine reads it.
    #[must_use]
    pub fn as_tokens(&self) -> TokenRow<'_> {
        TokenRow {
            ids: &self.ids,
            markers: &self.markers,
            kind: self.kind,
        }
    }
}

/// The rows of one state, one per question in order, and what they cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// One row per question.
    pub rows: Vec<EncodedRow>,
    /// Tokens and cuts, as replied.
    pub usage: Usage,
    /// Special texts that the request brought in and that were left in place (a metric).
    pub special_texts: usize,
    /// How many questions lost tokens of the state.
    pub truncated: usize,
}

/// Why a prediction has no answers.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// The request cannot be answered as asked; the refusal says why.
    #[error("{}", .0.detail)]
    Refused(Refusal),
    /// The tokenizer refused a text.
    #[error(transparent)]
    Tokenize(#[from] TokenizeError),
    /// The engine refused a row.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The model's numbers are not finite.
    #[error("the model answered question {question} with a number that is not finite")]
    NotFinite {
        /// Position of the question.
        question: usize,
    },
}

/// What [`predict`] yields.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Question id → answer, in order.
    pub answers: Vec<(String, Answer)>,
    /// Tokens and cuts.
    pub usage: Usage,
}

/// Rows of all questions about a state. Without questions nothing is tokenised.
///
/// # Errors
/// [`PredictError::Refused`] when the markers of a question do not fit its row.
pub fn encode(
    checkpoint: &Checkpoint,
    state: &Value,
    questions: &[Question],
    lengths: Lengths,
) -> Result<Encoded, PredictError> {
    if questions.is_empty() {
        let usage = Usage {
            input_tokens: 0,
            state: None,
        };
        return Ok(Encoded {
            rows: Vec::new(),
            usage,
            special_texts: 0,
            truncated: 0,
        });
    }
    let tokenizer = checkpoint.tokenizer();
    let agent = &checkpoint.info().agent;
    let budget = Budget {
        max_len: lengths.max_len.unwrap_or(agent.max_len),
        head_max_len: lengths.head_max_len.unwrap_or(agent.head_max_len),
    };
    let keep = if matches!(state, Value::List(_)) {
        Keep::Last
    } else {
        Keep::First
    };
    let text = value_text(state);
    let state_tokens = tokenizer.encode(&text)?;
    let mut special_texts = tokenizer.special_occurrences(&text);

    let mut rows = Vec::with_capacity(questions.len());
    let mut input_tokens = 0;
    let mut usage = StateUsage {
        state_tokens: state_tokens.len(),
        ..StateUsage::default()
    };
    for question in questions {
        let head = tokenizer.question(question)?;
        special_texts += head.special_texts;
        let row = prompt::build(
            tokenizer.specials(),
            &head.tokens,
            &state_tokens,
            keep,
            budget,
        );
        let slots = head.tokens.options.len();
        if row.markers.len() < slots {
            return Err(PredictError::Refused(too_few_markers(
                question,
                row.markers.len(),
                slots,
                budget,
            )));
        }
        let dropped = state_tokens.len() - row.state_tokens_used;
        if dropped > 0 {
            usage.truncated_questions.push(question.id.clone());
            usage.state_tokens_dropped = usage.state_tokens_dropped.max(dropped);
        }
        if row.distinct_options < slots {
            usage.options.push(OptionUsage {
                question: question.id.clone(),
                total: slots,
                distinct: row.distinct_options,
                tokens_per_option: row.tokens_per_option,
            });
        }
        input_tokens += row.ids.len();
        rows.push(EncodedRow {
            ids: row.ids,
            markers: row.markers,
            kind: question.kind(),
        });
    }
    let truncated = usage.truncated_questions.len();
    Ok(Encoded {
        rows,
        usage: Usage {
            input_tokens,
            state: Some(usage),
        },
        special_texts,
        truncated,
    })
}

fn too_few_markers(question: &Question, fit: usize, of: usize, budget: Budget) -> Refusal {
    Refusal::unprocessable(format!(
        "question {}: only {fit} of its {of} option markers fit in max_len={} with head_max_len={} spent on the question; \
         lower head_max_len, raise max_len, or use fewer options",
        repr_text(&Text::from(question.id.as_str())),
        budget.max_len,
        budget.head_max_len,
    ))
}

/// The temperature of a question with that many options (wire.md 6.1).
#[must_use]
pub fn temperature(temperatures: &Temperatures, kind: Kind, options: usize) -> f32 {
    let bucket = Bucket::of(kind, options).to_string();
    temperatures
        .by_bucket
        .get(&bucket)
        .copied()
        .unwrap_or(temperatures.by_type[kind_index(kind)])
}

/// Answers from the numbers of the questions' rows, in order.
///
/// # Errors
/// [`PredictError::NotFinite`] when a row's numbers are no answer.
pub fn decode(
    checkpoint: &Checkpoint,
    questions: &[Question],
    outputs: &[RowOutput],
) -> Result<Vec<(String, Answer)>, PredictError> {
    let temperatures = &checkpoint.info().agent.temperatures;
    let answer = |(i, (question, output)): (usize, (&Question, &RowOutput))| {
        let finite = |values: &[f32]| values.iter().all(|v| v.is_finite());
        if !finite(&output.logits)
            || !finite(&output.act_logits)
            || output.logits.len() != question.option_count()
        {
            return Err(PredictError::NotFinite { question: i });
        }
        let temperature = temperature(temperatures, question.kind(), question.option_count());
        let p = probabilities(
            &output.logits,
            temperature,
            question.option_order.as_deref(),
        );
        Ok((
            question.id.clone(),
            Answer::new(question, &p, act_probability(&output.act_logits)),
        ))
    };
    questions
        .iter()
        .zip(outputs)
        .enumerate()
        .map(answer)
        .collect()
}

/// Asks a checkpoint all questions about one state. Blocks for the passes.
///
/// # Errors
/// [`PredictError`].
pub fn predict(
    engine: &Engine,
    checkpoint: &Checkpoint,
    state: &Value,
    questions: &[Question],
    lengths: Lengths,
) -> Result<Prediction, PredictError> {
    let states = std::slice::from_ref(state);
    let mut all =
        predict_all(engine, checkpoint, states, questions, lengths).map_err(|(_, error)| error)?;
    Ok(all.remove(0))
}

/// Asks a checkpoint all questions about each state, in as few passes as hold the rows. Blocks for them.
///
/// # Errors
/// The first that is wrong, and the position of its state.
pub(crate) fn predict_all(
    engine: &Engine,
    checkpoint: &Checkpoint,
    states: &[Value],
    questions: &[Question],
    lengths: Lengths,
) -> Result<Vec<Prediction>, (usize, PredictError)> {
    let encoded: Vec<Encoded> = states
        .iter()
        .enumerate()
        .map(|(at, state)| {
            encode(checkpoint, state, questions, lengths).map_err(|error| (at, error))
        })
        .collect::<Result<_, _>>()?;
    let rows: Vec<TokenRow<'_>> = encoded
        .iter()
        .flat_map(|encoded| encoded.rows.iter().map(EncodedRow::as_tokens))
        .collect();
    let sizes: Vec<usize> = rows.iter().map(|row| row.ids.len()).collect();
    // Each state has one row per question.
    let each = questions.len();
    let mut outputs = Vec::with_capacity(rows.len());
    for pass in plan_passes(&sizes, PASS_TOKENS) {
        let of = pass.start / each.max(1);
        let ran = engine.run(checkpoint, &rows[pass]);
        outputs.extend(ran.map_err(|error| (of, error.into()))?);
    }
    encoded
        .into_iter()
        .enumerate()
        .map(|(at, encoded)| {
            let outputs = &outputs[at * each..(at + 1) * each];
            let answers = decode(checkpoint, questions, outputs).map_err(|error| (at, error))?;
            let usage = encoded.usage;
            Ok(Prediction { answers, usage })
        })
        .collect()
}
