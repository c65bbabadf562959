//! Which tensors a checkpoint must hold, from its configuration (wire.md 12.2), and how a difference is reported.

use std::collections::BTreeMap;

use super::config::{AgentConfig, EncoderConfig};
use super::header::Tensor;
use super::{LoadError, Mismatch};

/// Width of the act head's middle layer.
pub(crate) const ACT_WIDTH: usize = 256;
/// Features beside the vector at `CLS` that the act head reads.
pub(crate) const ACT_FEATURES: usize = 4;

/// Attention heads of the decision head's layers.
pub(crate) const fn head_heads(width: usize) -> usize {
    if width < 64 { 1 } else { width / 64 }
}

/// Names and shapes, in a fixed order. `act_outputs` is the number of act costs + 1.
pub(crate) fn expected(
    agent: &AgentConfig,
    encoder: &EncoderConfig,
    act_outputs: usize,
) -> Vec<(String, Vec<usize>)> {
    let (d, f) = (encoder.width, encoder.middle);
    let mut list: Vec<(String, Vec<usize>)> = vec![
        (
            "encoder.embeddings.tok_embeddings.weight".into(),
            vec![encoder.vocabulary, d],
        ),
        ("encoder.embeddings.norm.weight".into(), vec![d]),
    ];
    for i in 0..encoder.layers.len() {
        let mut add = |name: &str, shape: Vec<usize>| {
            list.push((format!("encoder.layers.{i}.{name}"), shape))
        };
        if i > 0 {
            add("attn_norm.weight", vec![d]);
        }
        add("attn.Wqkv.weight", vec![3 * d, d]);
        add("attn.Wo.weight", vec![d, d]);
        add("mlp_norm.weight", vec![d]);
        add("mlp.Wi.weight", vec![2 * f, d]);
        add("mlp.Wo.weight", vec![d, f]);
    }
    list.push(("encoder.final_norm.weight".into(), vec![d]));
    for i in 0..agent.head_layers {
        let mut add =
            |name: &str, shape: Vec<usize>| list.push((format!("head.layers.{i}.{name}"), shape));
        add("self_attn.in_proj_weight", vec![3 * d, d]);
        add("self_attn.in_proj_bias", vec![3 * d]);
        add("self_attn.out_proj.weight", vec![d, d]);
        add("self_attn.out_proj.bias", vec![d]);
        add("linear1.weight", vec![4 * d, d]);
        add("linear1.bias", vec![4 * d]);
        add("linear2.weight", vec![d, 4 * d]);
        add("linear2.bias", vec![d]);
        for norm in ["norm1", "norm2"] {
            add(&format!("{norm}.weight"), vec![d]);
            add(&format!("{norm}.bias"), vec![d]);
        }
    }
    let rest: [(&str, Vec<usize>); 12] = [
        ("type_emb.weight", vec![3, d]),
        ("scorer.0.weight", vec![d]),
        ("scorer.0.bias", vec![d]),
        ("scorer.1.weight", vec![d, d]),
        ("scorer.1.bias", vec![d]),
        ("scorer.3.weight", vec![1, d]),
        ("scorer.3.bias", vec![1]),
        ("act_head.0.weight", vec![ACT_WIDTH, d + ACT_FEATURES]),
        ("act_head.0.bias", vec![ACT_WIDTH]),
        ("act_head.2.weight", vec![act_outputs, ACT_WIDTH]),
        ("act_head.2.bias", vec![act_outputs]),
        ("temperature", vec![3]),
    ];
    list.extend(rest.map(|(name, shape)| (name.to_owned(), shape)));
    list
}

/// Compares what a file holds with what it must hold: exactly that, no more and no less.
pub(crate) fn check(
    origin: &str,
    expected: &[(String, Vec<usize>)],
    found: &BTreeMap<String, Tensor>,
) -> Result<(), LoadError> {
    for prefix in ["encoder.", "head.", "type_emb.", "scorer.", "act_head."] {
        let wanted = expected.iter().any(|(name, _)| name.starts_with(prefix));
        if wanted && !found.keys().any(|name| name.starts_with(prefix)) {
            return Err(LoadError::MissingPart {
                origin: origin.to_owned(),
                prefix,
            });
        }
    }
    let mut wrong: Vec<Mismatch> = expected
        .iter()
        .filter_map(|(name, shape)| {
            found
                .get(name)
                .filter(|t| t.shape != *shape)
                .map(|t| (name.clone(), Some(shape.clone()), t.shape.clone()))
        })
        .collect();
    if wrong.is_empty() {
        let names: Vec<String> = expected
            .iter()
            .filter(|(name, _)| !found.contains_key(name))
            .map(|(name, _)| name.clone())
            .collect();
        if !names.is_empty() {
            return Err(LoadError::MissingTensors {
                origin: origin.to_owned(),
                names,
            });
        }
        let known: std::collections::BTreeSet<&str> =
            expected.iter().map(|(name, _)| name.as_str()).collect();
        wrong = found
            .iter()
            .filter(|(name, _)| !known.contains(name.as_str()))
            .map(|(n, t)| (n.clone(), None, t.shape.clone()))
            .collect();
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(LoadError::Shapes {
            origin: origin.to_owned(),
            tensors: wrong,
        })
    }
}
