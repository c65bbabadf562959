//! Random checkpoints of a given shape, seeded, for tests and benchmarks: the layout of a real one, weights without
//! meaning, a byte-level tokenizer that needs no data. Times measured on them are those of the real shape (wire.md 22.1).

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::kernels::f32_to_f16;

use super::config::{AgentConfig, EncoderConfig, Reach, Temperatures};
use super::header::{self, Dtype};
use super::tensors;

/// Sizes of published encoders, and two for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// ModernBERT-large: 1024 wide, 28 layers (`english`, `typed-decisions`).
    ModernBertLarge,
    /// mmBERT-base: 768 wide, 22 layers, 256000 tokens (`multilingual`).
    MmBertBase,
    /// 128 wide, 4 layers.
    Tiny,
}

impl Shape {
    /// Every shape.
    pub const ALL: &'static [Self] = &[Self::ModernBertLarge, Self::MmBertBase, Self::Tiny];

    /// Its name on command lines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ModernBertLarge => "modernbert-large",
            Self::MmBertBase => "mmbert-base",
            Self::Tiny => "tiny",
        }
    }

    /// The shape of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|shape| shape.as_str() == name)
    }

    const fn sizes(self) -> Sizes {
        match self {
            Self::ModernBertLarge => Sizes {
                vocabulary: 50_368,
                width: 1024,
                layers: 28,
                heads: 16,
                middle: 2624,
                window: 128,
                local_theta: 10_000.0,
                max_len: 512,
                head_max_len: 192,
            },
            Self::MmBertBase => Sizes {
                vocabulary: 256_000,
                width: 768,
                layers: 22,
                heads: 12,
                middle: 1152,
                window: 128,
                local_theta: 160_000.0,
                max_len: 1024,
                head_max_len: 256,
            },
            Self::Tiny => Sizes {
                vocabulary: 512,
                width: 128,
                layers: 4,
                heads: 4,
                middle: 192,
                window: 16,
                local_theta: 10_000.0,
                max_len: 256,
                head_max_len: 96,
            },
        }
    }
}

struct Sizes {
    vocabulary: usize,
    width: usize,
    layers: usize,
    heads: usize,
    middle: usize,
    window: usize,
    local_theta: f64,
    max_len: usize,
    head_max_len: usize,
}

/// A random checkpoint could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RandomError {
    /// The folder exists already.
    #[error("{path} exists already", path = .0.display())]
    Exists(PathBuf),
    /// The disk refused.
    #[error("cannot write {path}: {source}", path = .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Writes a random checkpoint into the new folder `dir`. The same shape and seed make the same bytes.
///
/// # Errors
/// When `dir` exists or cannot be written.
pub fn write_random(dir: &Path, shape: Shape, seed: u64) -> Result<(), RandomError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| RandomError::Write { path, source }
    };
    if dir.exists() {
        return Err(RandomError::Exists(dir.to_owned()));
    }
    for part in ["encoder", "tokenizer"] {
        let path = dir.join(part);
        fs::create_dir_all(&path).map_err(failed(&path))?;
    }
    let sizes = shape.sizes();
    let files = [
        ("rl_agent_config.json", agent(shape, &sizes)),
        ("encoder/config.json", encoder(&sizes)),
        ("tokenizer/tokenizer.json", tokenizer()),
        ("tokenizer/tokenizer_config.json", tokenizer_config()),
    ];
    for (name, content) in files {
        let path = dir.join(name);
        fs::write(&path, format!("{content:#}\n")).map_err(failed(&path))?;
    }
    let path = dir.join("model.safetensors");
    weights(&path, &sizes, seed).map_err(failed(&path))
}

fn agent(shape: Shape, sizes: &Sizes) -> serde_json::Value {
    json!({
        "encoder": shape.as_str(), "head_layers": 2, "max_len": sizes.max_len, "head_max_len": sizes.head_max_len,
        "act_costs": {"escalate": 0.5}, "temperature": [1.0, 1.0, 1.0], "temperature_by_options": {},
    })
}

fn encoder(sizes: &Sizes) -> serde_json::Value {
    json!({
        "model_type": "modernbert", "vocab_size": sizes.vocabulary, "hidden_size": sizes.width,
        "num_hidden_layers": sizes.layers, "num_attention_heads": sizes.heads, "intermediate_size": sizes.middle,
        "hidden_activation": "gelu", "norm_eps": 1e-5, "norm_bias": false, "attention_bias": false, "mlp_bias": false,
        "global_attn_every_n_layers": 3, "local_attention": sizes.window, "max_position_embeddings": 8192,
        "global_rope_theta": 160_000.0, "local_rope_theta": sizes.local_theta,
        "cls_token_id": 257, "sep_token_id": 258, "pad_token_id": 259, "bos_token_id": 257, "eos_token_id": 258,
    })
}

/// Byte-level pairs without merges: every byte is a token. Enough to make rows of any length.
fn tokenizer() -> serde_json::Value {
    let mut vocabulary = serde_json::Map::new();
    for byte in 0..=255u8 {
        vocabulary.insert(byte_symbol(byte).to_string(), json!(byte));
    }
    let special = |id: u32, text: &str| json!({"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let added: Vec<serde_json::Value> = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
        .iter()
        .zip(256..)
        .map(|(text, id)| special(id, text))
        .collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocabulary, "merges": [],
        },
    })
}

fn tokenizer_config() -> serde_json::Value {
    json!({
        "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]", "unk_token": "[UNK]",
        "clean_up_tokenization_spaces": false, "model_max_length": 8192, "tokenizer_class": "PreTrainedTokenizerFast",
    })
}

/// The printable character that byte-level tokenizers write for a byte.
fn byte_symbol(byte: u8) -> char {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|b| !printable(*b)).count() as u32;
    char::from_u32(256 + rank).unwrap_or('\u{fffd}')
}

/// xorshift64*: quick, seeded, good enough for weights without meaning.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Roughly normal: the sum of four uniform numbers, with the given standard deviation.
    fn normal(&mut self, deviation: f32) -> f32 {
        let bits = self.next();
        let sum: f32 = (0..4)
            .map(|i| ((bits >> (16 * i)) & 0xffff) as f32 / 65_536.0 - 0.5)
            .sum();
        sum * deviation * 1.732_050_8
    }
}

fn weights(path: &Path, sizes: &Sizes, seed: u64) -> io::Result<()> {
    let agent = AgentConfig {
        encoder: String::new(),
        head_layers: 2,
        max_len: sizes.max_len,
        head_max_len: sizes.head_max_len,
        act_outputs: Some(2),
        temperatures: Temperatures::default(),
    };
    let encoder = EncoderConfig {
        vocabulary: sizes.vocabulary,
        width: sizes.width,
        heads: sizes.heads,
        middle: sizes.middle,
        norm_eps: 1e-5,
        window: sizes.window / 2,
        layers: vec![Reach::Global; sizes.layers],
        global_theta: 160_000.0,
        local_theta: sizes.local_theta,
    };
    let tensors: Vec<(String, Dtype, Vec<usize>)> = tensors::expected(&agent, &encoder, 2)
        .into_iter()
        .map(|(name, shape)| (name, Dtype::F16, shape))
        .collect();
    let mut file = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
    file.write_all(&header::write(&tensors))?;
    let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for (name, _, shape) in &tensors {
        let norm = shape.len() == 1 && name.ends_with("weight");
        // Fan-in scaling keeps the residual stream in the range of a trained model.
        let deviation = match shape.as_slice() {
            _ if name.contains("embeddings") || name == "type_emb.weight" => 0.5,
            [_, k] => 0.7 / (*k as f32).sqrt(),
            _ => 0.02,
        };
        for _ in 0..shape.iter().product() {
            let value = if norm {
                1.0 + noise.normal(0.05)
            } else {
                noise.normal(deviation)
            };
            file.write_all(&f32_to_f16(value).to_le_bytes())?;
        }
    }
    file.flush()
}
