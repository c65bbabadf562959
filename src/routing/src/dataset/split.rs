//! Which rows are trained on and which are held out (training.md 2.5, 5): the split of a row, the split a session row
//! gets once and for ever, and the rows of one training.

use std::collections::HashSet;

use decision::json::{Object, Value, json_text};
use sha1::{Digest as _, Sha1};

use super::generator::Generator;
use super::origin::{Source, Split};
use super::row::Row;
use crate::assessment::TOLERANCE;
use crate::memory::{Vector, Weights, merge_key, similarity};

/// Session rows are all trained on until there are this many.
const SESSIONS_BEFORE_HOLD_OUT: usize = 20;
/// From this similarity on, a session row follows the one it is like.
const SAME_TASK: f64 = 0.60;
/// Share of rows in `test`, in percent of the hash.
const TEST_BELOW: u8 = 10;
/// The same for `val`, on top of `test`.
const VAL_BELOW: u8 = 20;
/// Share of session rows in `test`, in percent of the hash.
const SESSION_TEST_BELOW: u8 = 20;

/// h of training.md 5, 0..=99: SHA-1 as an integer, modulo 100, of the state as JSON with sorted keys and the
/// separators `", "` and `": "`, then trimmed, in lower case and with single spaces.
#[must_use]
pub fn split_hash(state: &Value) -> u8 {
    let text = merge_key(&json_text(&sorted(state)));
    let digest = Sha1::digest(text.as_bytes());
    let rest = digest
        .iter()
        .fold(0_u16, |rest, byte| (rest * 256 + u16::from(*byte)) % 100);
    u8::try_from(rest).unwrap_or(0)
}

/// [`split_hash`] of a state that holds a request and nothing else.
#[must_use]
pub fn request_hash(request: &str) -> u8 {
    split_hash(&Object::from_iter([("request", request)]).into())
}

/// The value with the keys of its objects in the order of their code points, at every depth.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by(|(one, _), (other, _)| one.as_bytes().cmp(other.as_bytes()));
            let members = members.into_iter();
            Value::Object(
                members
                    .map(|(key, value)| (key.clone(), sorted(value)))
                    .collect(),
            )
        }
        Value::List(items) => Value::List(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// The split of a pool row that names none.
#[must_use]
pub fn split_by_hash(hash: u8) -> Split {
    match hash {
        hash if hash < TEST_BELOW => Split::Test,
        hash if hash < VAL_BELOW => Split::Val,
        _ => Split::Train,
    }
}

/// The split of a row: its own, else that of its hash. An evaluation row is held out whatever its hash.
#[must_use]
pub fn split_of(row: &Row) -> Split {
    match (row.split(), row.source(), row.state()) {
        (Some(split), _, _) => split,
        (None, Source::Evaluation, _) => Split::Test,
        (None, _, Some(state)) => split_by_hash(split_hash(state)),
        (None, _, None) => Split::Train,
    }
}

/// What new session rows are compared with; each row that gets its split is compared with by the next.
#[derive(Debug)]
pub struct SessionSplits {
    weights: Weights,
    saved: Vec<(Vector, Split)>,
}

impl SessionSplits {
    /// Session rows among `rows`; the requests of all rows weigh the words.
    #[must_use]
    pub fn of(rows: &[Row]) -> Self {
        let weights = Weights::of_requests(rows.iter().map(Row::request));
        let saved = rows.iter().filter(|row| row.is_session());
        let saved = saved
            .map(|row| {
                (
                    weights.vector(row.request()),
                    row.split().unwrap_or(Split::Train),
                )
            })
            .collect();
        Self { weights, saved }
    }

    /// The split of a new session row (training.md 2.5): `train` while there are fewer than 20, then that of the row
    /// it is most like from similarity 0.60 on, else `test` when h < 20.
    pub fn assign(&mut self, request: &str) -> Split {
        let vector = self.weights.vector(request);
        let split = if self.saved.len() < SESSIONS_BEFORE_HOLD_OUT {
            Split::Train
        } else {
            match self.most_like(&vector) {
                Some((close, split)) if close >= SAME_TASK - TOLERANCE => split,
                _ if request_hash(request) < SESSION_TEST_BELOW => Split::Test,
                _ => Split::Train,
            }
        };
        self.saved.push((vector, split));
        split
    }

    /// The closest saved row; of several equally close ones a held-out one, so that no twin of it is trained on.
    fn most_like(&self, vector: &Vector) -> Option<(f64, Split)> {
        let scored = self.saved.iter();
        scored
            .map(|(saved, split)| (similarity(vector, saved), *split))
            .max_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)))
    }
}

/// The numbers of a recipe that choose rows (training.md 5, 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectionRecipe {
    /// How often each focus row is trained on.
    pub focus_repeat: usize,
    /// Least replay rows.
    pub replay_min: usize,
    /// Most replay rows.
    pub replay_max: usize,
    /// Replay rows per focus row.
    pub replay_per_focus: usize,
    /// Seed of the sample.
    pub seed: u64,
    /// Most rows watched during training.
    pub val_rows: usize,
    /// Most leaking rows, in percent of all that could be trained on.
    pub max_leak_percent: usize,
}

impl Default for SelectionRecipe {
    fn default() -> Self {
        Self {
            focus_repeat: 4,
            replay_min: 100,
            replay_max: 600,
            replay_per_focus: 4,
            seed: 7,
            val_rows: 100,
            max_leak_percent: 5,
        }
    }
}

/// The rows of one training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection<'a> {
    /// Session rows, each trained on several times.
    pub focus: Vec<&'a Row>,
    /// The sample of other rows that keeps the model from forgetting, in the order it was drawn.
    pub replay: Vec<&'a Row>,
    /// Watched during training.
    pub val: Vec<&'a Row>,
    /// Held out.
    pub test: Vec<&'a Row>,
    /// How many rows were left out because they are also in a held-out set.
    pub leaked: usize,
}

/// Why rows cannot be trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No session row with split `train` (`no_focus`).
    #[error("no session row with split train")]
    NoFocus,
    /// The held-out sets are not held out (`bad_dataset`).
    #[error("{leaked} of {rows} training rows are also in a held-out set, limit {limit} %")]
    Leaked {
        /// Rows that are.
        leaked: usize,
        /// All rows that could be trained on.
        rows: usize,
        /// Percent.
        limit: usize,
    },
}

/// Size of the replay sample.
#[must_use]
pub fn replay_size(pool: usize, focus: usize, recipe: &SelectionRecipe) -> usize {
    let wanted = recipe.replay_per_focus.saturating_mul(focus);
    wanted
        .min(recipe.replay_max)
        .max(recipe.replay_min)
        .min(pool)
}

/// Chooses the rows of a training among rows in force. `held_out` are merge keys of evaluation sets outside the dataset;
/// evaluation rows inside it count without being named.
///
/// # Errors
/// When no session row is left to train on, or too many rows are also held out.
pub fn select<'a>(
    rows: &'a [Row],
    held_out: &HashSet<String>,
    recipe: &SelectionRecipe,
) -> Result<Selection<'a>, SelectionError> {
    let split: Vec<(&Row, Split)> = rows.iter().map(|row| (row, split_of(row))).collect();
    let of = |wanted: Split| {
        let rows = split.iter().filter(move |(_, split)| *split == wanted);
        rows.map(|(row, _)| *row)
    };
    let hidden: HashSet<String> = split
        .iter()
        .filter(|(row, split)| *split == Split::Test || *row.source() == Source::Evaluation)
        .map(|(row, _)| row.merge_key())
        .collect();
    let trainable = of(Split::Train).filter(|row| *row.source() != Source::Evaluation);
    let (leaks, kept): (Vec<&Row>, Vec<&Row>) = trainable.partition(|row| {
        let key = row.merge_key();
        hidden.contains(&key) || held_out.contains(&key)
    });
    let (leaked, all) = (leaks.len(), leaks.len() + kept.len());
    if leaked * 100 > all * recipe.max_leak_percent {
        let limit = recipe.max_leak_percent;
        return Err(SelectionError::Leaked {
            leaked,
            rows: all,
            limit,
        });
    }
    let (focus, pool): (Vec<&Row>, Vec<&Row>) = kept.into_iter().partition(|row| row.is_session());
    if focus.is_empty() {
        return Err(SelectionError::NoFocus);
    }
    let size = replay_size(pool.len(), focus.len(), recipe);
    let drawn = Generator::new(recipe.seed).sample(pool.len(), size);
    let val = of(Split::Val).filter(|row| !row.is_session() && *row.source() != Source::Evaluation);
    Ok(Selection {
        replay: drawn
            .into_iter()
            .filter_map(|at| pool.get(at).copied())
            .collect(),
        val: val.take(recipe.val_rows).collect(),
        test: of(Split::Test).collect(),
        focus,
        leaked,
    })
}

impl<'a> Selection<'a> {
    /// The training set: each focus row `focus_repeat` times, then the replay.
    pub fn training(&self, recipe: &SelectionRecipe) -> impl Iterator<Item = &'a Row> {
        let rounds = std::iter::repeat_n(self.focus.clone(), recipe.focus_repeat);
        rounds.flatten().chain(self.replay.clone())
    }
}
