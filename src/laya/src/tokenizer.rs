//! Text to token ids, as the checkpoint's `tokenizer.json` says, and the four special tokens that rows are built with
//! (wire.md 10.1). The tokenizer adds no special tokens; its truncation and padding sections are ignored.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use decision::json::{Object, Value};
use decision::wire::Question;

use crate::prompt::QuestionTokens;

/// Questions whose tokens are kept (wire.md 13.2), in two generations of half as many.
const KEPT_QUESTIONS: usize = 4096;

/// Ids of the special tokens, from `tokenizer_config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Specials {
    /// Begins a row.
    pub cls: u32,
    /// Ends each part of a row.
    pub sep: u32,
    /// Never written, since rows are not padded; must exist all the same.
    pub pad: u32,
    /// Stands before each option.
    pub mask: u32,
}

/// A loaded tokenizer. Deterministic; shared between threads.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    specials: Specials,
    /// Text of the mask token, which states and questions must not bring in.
    mask_text: String,
    /// Texts of the other special tokens, longest first.
    special_texts: Vec<String>,
    questions: Mutex<Generations>,
}

/// Tokens of a question, and how many special texts stand in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tokens: QuestionTokens,
    pub(crate) special_texts: usize,
}

/// A bounded memory of two generations: what was not asked for while the young one filled is forgotten with the old.
#[derive(Default)]
struct Generations {
    young: HashMap<Vec<String>, Arc<Head>>,
    old: HashMap<Vec<String>, Arc<Head>>,
}

impl Generations {
    fn get(&mut self, key: &[String]) -> Option<Arc<Head>> {
        if let Some(head) = self.young.get(key) {
            return Some(Arc::clone(head));
        }
        let (key, head) = self.old.remove_entry(key)?;
        self.insert(key, Arc::clone(&head));
        Some(head)
    }

    fn insert(&mut self, key: Vec<String>, head: Arc<Head>) {
        if self.young.len() >= KEPT_QUESTIONS / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, head);
    }
}

impl Tokenizer {
    /// From the bytes of `tokenizer.json` and the table of `tokenizer_config.json`.
    ///
    /// # Errors
    /// One sentence: what cannot be read, or which special token is missing.
    pub fn new(json: &[u8], config: &Object) -> Result<Self, String> {
        let mut inner =
            tokenizers::Tokenizer::from_bytes(json).map_err(|e| format!("tokenizer.json: {e}"))?;
        inner
            .with_truncation(None)
            .map_err(|e| format!("tokenizer.json: {e}"))?;
        inner.with_padding(None);
        let text = |key: &str| match config.get(key) {
            Some(Value::String(text)) => Ok(text.to_string_lossy()),
            Some(Value::Object(token)) => match token.get("content") {
                Some(Value::String(text)) => Ok(text.to_string_lossy()),
                _ => Err(format!("tokenizer_config.json: '{key}' has no content")),
            },
            _ => Err(format!("tokenizer_config.json names no '{key}'")),
        };
        let id = |key: &str| {
            let text = text(key)?;
            inner
                .token_to_id(&text)
                .ok_or_else(|| format!("'{key}' {text:?} is not in the vocabulary"))
        };
        let specials = Specials {
            cls: id("cls_token")?,
            sep: id("sep_token")?,
            pad: id("pad_token")?,
            mask: id("mask_token")?,
        };
        let mask_text = text("mask_token")?;
        let mut special_texts: Vec<String> = inner
            .get_added_tokens_decoder()
            .into_values()
            .filter(|t| t.special && t.content != mask_text)
            .map(|t| t.content)
            .collect();
        special_texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        Ok(Self {
            inner,
            specials,
            mask_text,
            special_texts,
            questions: Mutex::default(),
        })
    }

    /// The special tokens.
    #[must_use]
    pub const fn specials(&self) -> Specials {
        self.specials
    }

    /// One more than the largest id that [`Self::encode`] can yield.
    #[must_use]
    pub fn id_bound(&self) -> u32 {
        self.inner
            .get_vocab(true)
            .into_values()
            .max()
            .map_or(0, |id| id.saturating_add(1))
    }

    /// Ids of a text, without special tokens of the tokenizer's own; the mask token's text counts as a space.
    ///
    /// # Errors
    /// When the tokenizer's model refuses the text, which ours do not.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizeError> {
        let neutral = if text.contains(&self.mask_text) {
            text.replace(&self.mask_text, " ")
        } else {
            text.to_owned()
        };
        let encoding = self
            .inner
            .encode_fast(neutral, false)
            .map_err(|e| TokenizeError(e.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Tokens of a question, slots in the order in which the model sees them; kept, since the same questions come with
    /// every state.
    pub(crate) fn question(&self, question: &Question) -> Result<Arc<Head>, TokenizeError> {
        let options = question.option_texts();
        let slots: Vec<usize> = question
            .option_order
            .clone()
            .unwrap_or_else(|| (0..options.len()).collect());
        let mut texts = vec![question.prompt()];
        texts.extend(
            slots
                .iter()
                .filter_map(|slot| options.get(*slot))
                .map(|option| format!(" {option}")),
        );

        let locked = || {
            self.questions
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(head) = locked().get(&texts) {
            return Ok(head);
        }
        let mut tokens = texts.iter().map(|text| self.encode(text));
        let prompt = tokens.next().transpose()?.unwrap_or_default();
        let options = tokens.collect::<Result<_, _>>()?;
        let special_texts = texts
            .iter()
            .map(|text| self.special_occurrences(text))
            .sum();
        let head = Arc::new(Head {
            tokens: QuestionTokens { prompt, options },
            special_texts,
        });
        locked().insert(texts, Arc::clone(&head));
        Ok(head)
    }

    /// How often other special texts (`[SEP]`, `<eos>`) occur in a text; they are not neutralised, only counted.
    #[must_use]
    pub fn special_occurrences(&self, text: &str) -> usize {
        self.special_texts
            .iter()
            .filter(|s| !s.is_empty())
            .map(|special| text.matches(special.as_str()).count())
            .sum()
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("specials", &self.specials)
            .finish_non_exhaustive()
    }
}

/// The tokenizer's model refused a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot tokenize a text: {0}")]
pub struct TokenizeError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_again_outlives_the_generations() {
        let head = || {
            Arc::new(Head {
                tokens: QuestionTokens {
                    prompt: vec![],
                    options: vec![],
                },
                special_texts: 0,
            })
        };
        let key = |i: usize| vec![i.to_string()];
        let mut kept = Generations::default();
        for i in 0..3 * KEPT_QUESTIONS {
            kept.insert(key(i), head());
            assert!(kept.get(&key(0)).is_some(), "after {i}");
            assert!(kept.young.len() + kept.old.len() <= KEPT_QUESTIONS);
        }
        assert!(kept.get(&key(1)).is_none());
    }
}
