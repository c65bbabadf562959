//! From the mapped file to packed weights, tensor by tensor in the order of the file, so that memory never exceeds file
//! plus result and each byte is read once: faulted in, hashed where a digest is wanted, checked and packed side by side.

use std::collections::BTreeMap;

use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::kernels::{Layout, f16_to_f32};
use crate::mmap::Mapped;
use crate::model::{
    ActHead, Embedding, EncoderLayer, HeadLayer, Linear, Model, Norm, Precision, Ropes, Scorer,
};

use super::LoadError;
use super::config::{AgentConfig, EncoderConfig};
use super::folder::{Folder, hex};
use super::header::{self, Dtype, Tensor};
use super::tensors::{self, ACT_WIDTH};

/// LayerNorms of the decision head.
const HEAD_EPS: f32 = 1e-5;
const TABLE: &str = "encoder.embeddings.tok_embeddings.weight";
const WEIGHTS: &str = "model.safetensors";

/// Whether the bytes are hashed on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hashing {
    Off,
    On,
}

/// What reading the weights yields.
pub(crate) struct Read {
    pub(crate) model: Model,
    /// Length of the file.
    pub(crate) size: u64,
    /// SHA-256 of the file, if it was asked for.
    pub(crate) sha256: Option<String>,
}

/// Reads, checks and packs `model.safetensors`.
pub(crate) fn read(
    folder: &Folder,
    agent: &AgentConfig,
    encoder: &EncoderConfig,
    precision: Precision,
    hashing: Hashing,
) -> Result<Read, LoadError> {
    let origin = || folder.origin.clone();
    let (file, size) = folder
        .file(WEIGHTS)?
        .ok_or_else(|| LoadError::NoWeights { origin: origin() })?;
    let unreadable = |source| LoadError::Read {
        path: folder.path_of(WEIGHTS),
        source,
    };
    let bad = |why| LoadError::Header {
        origin: origin(),
        why,
    };
    if size < 8 {
        return Err(bad(format!("{size} bytes are no safetensors file")));
    }
    let map = Mapped::new(&file).map_err(unreadable)?;
    map.populate(&(0..map.bytes().len().min(header::MAX_HEADER_BYTES as usize + 8)))
        .map_err(unreadable)?;
    let found = header::parse(map.bytes()).map_err(bad)?;
    let acts = found
        .get("act_head.2.weight")
        .and_then(|t| t.shape.first().copied());
    let acts = agent
        .act_outputs
        .or(acts.filter(|n| (1..=256).contains(n)))
        .unwrap_or(1);
    tensors::check(
        &folder.origin,
        &tensors::expected(agent, encoder, acts),
        &found,
    )?;

    let mut hasher = (hashing == Hashing::On).then(Sha256::new);
    let start = found
        .values()
        .map(|t| t.range.start)
        .min()
        .unwrap_or(map.bytes().len());
    if let Some(hasher) = &mut hasher {
        hasher.update(&map.bytes()[..start]);
    }
    let mut in_order: Vec<(&String, &Tensor)> = found.iter().collect();
    in_order.sort_by_key(|(_, t)| t.range.start);
    let mut parts = Parts {
        origin: &folder.origin,
        vectors: BTreeMap::new(),
        linears: BTreeMap::new(),
    };
    for (name, tensor) in in_order {
        map.populate(&tensor.range).map_err(unreadable)?;
        let bytes = &map.bytes()[tensor.range.clone()];
        let (sound, ()) = rayon::join(
            || parts.take(name, tensor, bytes, precision),
            || {
                if let Some(hasher) = &mut hasher {
                    hasher.update(bytes);
                }
            },
        );
        sound?;
        map.release(&tensor.range);
    }
    let table = &found[TABLE];
    let embedding = Embedding {
        map,
        range: table.range.clone(),
        dtype: table.dtype,
        width: encoder.width,
    };
    let model = parts.assemble(agent, encoder, precision, acts, embedding)?;
    Ok(Read {
        model,
        size,
        sha256: hasher.map(|h| hex(&h.finalize())),
    })
}

/// Tensors that have been taken out of the file and not yet been put into the model.
struct Parts<'a> {
    origin: &'a str,
    vectors: BTreeMap<String, Vec<f32>>,
    linears: BTreeMap<String, Linear>,
}

impl Parts<'_> {
    fn take(
        &mut self,
        name: &str,
        tensor: &Tensor,
        bytes: &[u8],
        precision: Precision,
    ) -> Result<(), LoadError> {
        if !bytes
            .par_chunks(1 << 20)
            .all(|piece| is_finite(tensor.dtype, piece))
        {
            return Err(LoadError::NotFinite {
                origin: self.origin.to_owned(),
                tensor: name.to_owned(),
            });
        }
        if name == TABLE || name == "temperature" {
            return Ok(());
        }
        if let ([n, k], false) = (
            tensor.shape.as_slice(),
            name == "type_emb.weight" || name == "scorer.3.weight",
        ) {
            let layout = if name.ends_with("mlp.Wi.weight") {
                Layout::Halves
            } else {
                Layout::Plain
            };
            let precision = if name.starts_with("encoder.") || name.starts_with("head.") {
                precision
            } else {
                Precision::F32
            };
            let row_bytes = k * tensor.dtype.size();
            let row = |c: usize, out: &mut [f32]| {
                decode(tensor.dtype, &bytes[c * row_bytes..][..row_bytes], out)
            };
            self.linears.insert(
                name.to_owned(),
                Linear::pack(precision, *n, *k, layout, row),
            );
        } else {
            let mut values = vec![0f32; bytes.len() / tensor.dtype.size()];
            decode(tensor.dtype, bytes, &mut values);
            self.vectors.insert(name.to_owned(), values);
        }
        Ok(())
    }

    fn vector(&mut self, name: &str) -> Result<Vec<f32>, LoadError> {
        self.vectors.remove(name).ok_or_else(|| self.missing(name))
    }

    fn linear(&mut self, name: &str) -> Result<Linear, LoadError> {
        self.linears.remove(name).ok_or_else(|| self.missing(name))
    }

    /// Cannot happen after [`tensors::check`]; said instead of assumed.
    fn missing(&self, name: &str) -> LoadError {
        LoadError::MissingTensors {
            origin: self.origin.to_owned(),
            names: vec![name.to_owned()],
        }
    }

    fn norm(&mut self, name: &str, eps: f32) -> Result<Norm, LoadError> {
        Ok(Norm {
            weight: self.vector(&format!("{name}.weight"))?,
            bias: None,
            eps,
        })
    }

    fn norm_with_bias(&mut self, name: &str) -> Result<Norm, LoadError> {
        let (weight, bias) = (
            self.vector(&format!("{name}.weight"))?,
            self.vector(&format!("{name}.bias"))?,
        );
        Ok(Norm {
            weight,
            bias: Some(bias),
            eps: HEAD_EPS,
        })
    }

    fn linear_with_bias(&mut self, weight: &str, bias: &str) -> Result<Linear, LoadError> {
        Ok(self.linear(weight)?.with_bias(self.vector(bias)?))
    }

    fn assemble(
        mut self,
        agent: &AgentConfig,
        encoder: &EncoderConfig,
        precision: Precision,
        act_outputs: usize,
        embedding: Embedding,
    ) -> Result<Model, LoadError> {
        let eps = encoder.norm_eps;
        let mut layers = Vec::with_capacity(encoder.layers.len());
        for (i, reach) in encoder.layers.iter().enumerate() {
            let at = |name: &str| format!("encoder.layers.{i}.{name}");
            layers.push(EncoderLayer {
                reach: *reach,
                attention_norm: if i == 0 {
                    None
                } else {
                    Some(self.norm(&at("attn_norm"), eps)?)
                },
                qkv: self.linear(&at("attn.Wqkv.weight"))?,
                attention_out: self.linear(&at("attn.Wo.weight"))?,
                mlp_norm: self.norm(&at("mlp_norm"), eps)?,
                mlp_in: self.linear(&at("mlp.Wi.weight"))?,
                mlp_out: self.linear(&at("mlp.Wo.weight"))?,
            });
        }
        let mut head = Vec::with_capacity(agent.head_layers);
        for i in 0..agent.head_layers {
            let at = |name: &str| format!("head.layers.{i}.{name}");
            head.push(HeadLayer {
                norm1: self.norm_with_bias(&at("norm1"))?,
                qkv: self.linear_with_bias(
                    &at("self_attn.in_proj_weight"),
                    &at("self_attn.in_proj_bias"),
                )?,
                attention_out: self.linear_with_bias(
                    &at("self_attn.out_proj.weight"),
                    &at("self_attn.out_proj.bias"),
                )?,
                norm2: self.norm_with_bias(&at("norm2"))?,
                linear1: self.linear_with_bias(&at("linear1.weight"), &at("linear1.bias"))?,
                linear2: self.linear_with_bias(&at("linear2.weight"), &at("linear2.bias"))?,
            });
        }
        let scorer = Scorer {
            norm: self.norm_with_bias("scorer.0")?,
            dense: self.linear_with_bias("scorer.1.weight", "scorer.1.bias")?,
            weight: self.vector("scorer.3.weight")?,
            bias: self
                .vector("scorer.3.bias")?
                .first()
                .copied()
                .unwrap_or(0.0),
        };
        let act = ActHead {
            dense: self.linear_with_bias("act_head.0.weight", "act_head.0.bias")?,
            out: self.linear_with_bias("act_head.2.weight", "act_head.2.bias")?,
            outputs: act_outputs,
        };
        debug_assert_eq!(ACT_WIDTH, 256);
        Ok(Model {
            precision,
            width: encoder.width,
            heads: encoder.heads,
            head_heads: tensors::head_heads(encoder.width),
            middle: encoder.middle,
            window: encoder.window,
            ropes: Ropes::new(
                encoder.width / encoder.heads,
                encoder.global_theta,
                encoder.local_theta,
            ),
            embedding,
            embedding_norm: self.norm("encoder.embeddings.norm", eps)?,
            layers,
            final_norm: self.norm("encoder.final_norm", eps)?,
            types: self.vector("type_emb.weight")?,
            head,
            scorer,
            act,
        })
    }
}

/// Whether no number of `bytes` is NaN or infinite.
fn is_finite(dtype: Dtype, bytes: &[u8]) -> bool {
    match dtype {
        Dtype::F16 => bytes
            .as_chunks::<2>()
            .0
            .iter()
            .fold(true, |ok, b| ok & (b[1] & 0x7c != 0x7c)),
        Dtype::BF16 => bytes.as_chunks::<2>().0.iter().fold(true, |ok, b| {
            ok & (u16::from_le_bytes(*b) & 0x7f80 != 0x7f80)
        }),
        Dtype::F32 => bytes.as_chunks::<4>().0.iter().fold(true, |ok, b| {
            ok & (u32::from_le_bytes(*b) & 0x7f80_0000 != 0x7f80_0000)
        }),
    }
}

/// Widens stored numbers to f32.
pub(crate) fn decode(dtype: Dtype, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        Dtype::F16 => {
            for (out, b) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *out = f16_to_f32(u16::from_le_bytes(*b));
            }
        }
        Dtype::BF16 => {
            for (out, b) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *out = f32::from_bits(u32::from(u16::from_le_bytes(*b)) << 16);
            }
        }
        Dtype::F32 => {
            for (out, b) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *out = f32::from_le_bytes(*b);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_widens_and_shows_what_is_not_finite() {
        let f16 = [0x00, 0x3c, 0x00, 0xbc];
        let bf16 = [0x80, 0x3f, 0x80, 0xbf];
        let f32s: Vec<u8> = [1f32, -1.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        for (dtype, bytes) in [
            (Dtype::F16, f16.as_slice()),
            (Dtype::BF16, &bf16),
            (Dtype::F32, &f32s),
        ] {
            let mut out = [0f32; 2];
            decode(dtype, bytes, &mut out);
            assert_eq!(out, [1.0, -1.0], "{dtype:?}");
            assert!(is_finite(dtype, bytes), "{dtype:?}");
        }
        for (dtype, bytes) in [
            (Dtype::F16, &[0x00, 0x7c][..]),
            (Dtype::F16, &[0x01, 0xfe]),
            (Dtype::BF16, &[0x80, 0xff]),
            (Dtype::F32, &f32::NAN.to_le_bytes()),
            (Dtype::F32, &f32::NEG_INFINITY.to_le_bytes()),
        ] {
            assert!(!is_finite(dtype, bytes), "{dtype:?} {bytes:?}");
        }
    }
}
