//! Text to token ids, as the checkpoint's `tokenizer.json` says, and the four special tokens that rows are built with
//! (wire.md 10.1). The tokenizer adds no special tokens; its truncation and padding sections are ignored.

use decision::json::{Object, Value};

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
}

impl Tokenizer {
    /// From the bytes of `tokenizer.json` and the table of `tokenizer_config.json`.
    ///
    /// # Errors
    /// One sentence: what cannot be read, or which special token is missing.
    pub fn new(json: &[u8], config: &Object) -> Result<Self, String> {
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(|e| format!("tokenizer.json: {e}"))?;
        inner.with_truncation(None).map_err(|e| format!("tokenizer.json: {e}"))?;
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
            inner.token_to_id(&text).ok_or_else(|| format!("'{key}' {text:?} is not in the vocabulary"))
        };
        let specials = Specials { cls: id("cls_token")?, sep: id("sep_token")?, pad: id("pad_token")?, mask: id("mask_token")? };
        let mask_text = text("mask_token")?;
        let mut special_texts: Vec<String> =
            inner.get_added_tokens_decoder().into_values().filter(|t| t.special && t.content != mask_text).map(|t| t.content).collect();
        special_texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        Ok(Self { inner, specials, mask_text, special_texts })
    }

    /// The special tokens.
    #[must_use]
    pub const fn specials(&self) -> Specials {
        self.specials
    }

    /// One more than the largest id that [`Self::encode`] can yield.
    #[must_use]
    pub fn id_bound(&self) -> u32 {
        self.inner.get_vocab(true).into_values().max().map_or(0, |id| id.saturating_add(1))
    }

    /// Ids of a text, without special tokens of the tokenizer's own; the mask token's text counts as a space.
    ///
    /// # Errors
    /// When the tokenizer's model refuses the text, which ours do not.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizeError> {
        let neutral = if text.contains(&self.mask_text) { text.replace(&self.mask_text, " ") } else { text.to_owned() };
        let encoding = self.inner.encode_fast(neutral, false).map_err(|e| TokenizeError(e.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// How often other special texts (`[SEP]`, `<eos>`) occur in a text; they are not neutralised, only counted.
    #[must_use]
    pub fn special_occurrences(&self, text: &str) -> usize {
        self.special_texts.iter().filter(|s| !s.is_empty()).map(|special| text.matches(special.as_str()).count()).sum()
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("specials", &self.specials).finish_non_exhaustive()
    }
}

/// The tokenizer's model refused a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot tokenize a text: {0}")]
pub struct TokenizeError(String);
