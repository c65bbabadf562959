//! The two configuration files of a checkpoint as checked values: what the decision head was trained with and the shape
//! of its encoder. Every dimension is bounded here, before any buffer is sized by it (wire.md 11, 12.1, 12.3).

use std::collections::BTreeMap;

use decision::json::{Object, Value, json_text};

/// Largest width of the model.
const MAX_WIDTH: u64 = 8192;
/// Most layers.
const MAX_LAYERS: u64 = 128;
/// Largest vocabulary.
const MAX_VOCABULARY: u64 = 1 << 20;
/// Longest row that a configuration may ask for, in tokens.
const MAX_ROW_TOKENS: u64 = 1 << 16;

/// `rl_agent_config.json`, as far as it is used.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    /// Name of the encoder it was trained from.
    pub encoder: String,
    /// Layers of the decision head.
    pub head_layers: usize,
    /// Longest row in tokens.
    pub max_len: usize,
    /// Tokens of a row that the question may take.
    pub head_max_len: usize,
    /// Outputs of the act head; none: as many as the weights have.
    pub act_outputs: Option<usize>,
    /// How logits become probabilities.
    pub temperatures: Temperatures,
}

/// Temperatures per type and per bucket, clamped to 0.5..=5 (wire.md 6.1).
#[derive(Debug, Clone, PartialEq)]
pub struct Temperatures {
    /// choice, score, noul.
    pub by_type: [f32; 3],
    /// `<type>:<size>` → temperature; wins over the type's.
    pub by_bucket: BTreeMap<String, f32>,
    /// One line for each value that was replaced.
    pub warnings: Vec<String>,
}

impl Default for Temperatures {
    fn default() -> Self {
        Self {
            by_type: [1.0; 3],
            by_bucket: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }
}

/// Shape of an encoder of the ModernBERT family.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderConfig {
    /// Rows of the embedding table.
    pub vocabulary: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of the gated middle of the MLP.
    pub middle: usize,
    /// Added to variances.
    pub norm_eps: f32,
    /// Tokens on each side that a local layer sees.
    pub window: usize,
    /// What each layer sees, first layer first.
    pub layers: Vec<Reach>,
    /// Base of the rotation in global layers.
    pub global_theta: f64,
    /// Base of the rotation in local layers.
    pub local_theta: f64,
}

/// What a layer's tokens see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The whole row.
    Global,
    /// The window.
    Local,
}

/// Reads `rl_agent_config.json`.
///
/// # Errors
/// One sentence.
pub(crate) fn agent(config: &Object) -> Result<AgentConfig, String> {
    let encoder = match config.get("encoder") {
        Some(Value::String(name)) => name.to_string_lossy(),
        _ => return Err("'encoder' is no text".to_owned()),
    };
    if config
        .get("option_layout")
        .is_some_and(|v| v.as_str() == Some("parallel"))
    {
        return Err("option_layout 'parallel' is not supported".to_owned());
    }
    let act_outputs = match config.get("act_costs") {
        None | Some(Value::Null) => None,
        Some(Value::Object(costs)) => Some(costs.len() + 1),
        Some(Value::List(costs)) => Some(costs.len() + 1),
        Some(_) => return Err("'act_costs' is no table".to_owned()),
    };
    Ok(AgentConfig {
        encoder,
        head_layers: size(config, "head_layers", None, 0, MAX_LAYERS)?,
        max_len: size(config, "max_len", Some(512), 1, MAX_ROW_TOKENS)?,
        head_max_len: size(config, "head_max_len", Some(192), 1, MAX_ROW_TOKENS)?,
        act_outputs,
        temperatures: temperatures(config),
    })
}

fn temperatures(config: &Object) -> Temperatures {
    let mut out = Temperatures::default();
    if let Some(Value::List(list)) = config.get("temperature") {
        for (i, (slot, value)) in out.by_type.iter_mut().zip(list).enumerate() {
            *slot = temperature(&format!("temperature[{i}]"), value, &mut out.warnings);
        }
    }
    if let Some(Value::Object(buckets)) = config.get("temperature_by_options") {
        for (bucket, value) in buckets {
            let bucket = bucket.to_string_lossy();
            let value = temperature(
                &format!("temperature_by_options['{bucket}']"),
                value,
                &mut out.warnings,
            );
            out.by_bucket.insert(bucket, value);
        }
    }
    out
}

fn temperature(name: &str, value: &Value, warnings: &mut Vec<String>) -> f32 {
    let number = match value {
        Value::String(text) => text.as_str().and_then(|text| text.trim().parse().ok()),
        number => number.as_f64(),
    };
    let served = match number {
        Some(number) if number.is_finite() => number.clamp(0.5, 5.0),
        _ => 1.0,
    };
    if number != Some(served) {
        warnings.push(format!(
            "{name} is {}, served as {served}",
            json_text(value)
        ));
    }
    served as f32
}

/// Reads `encoder/config.json`.
///
/// # Errors
/// One sentence.
pub(crate) fn encoder(config: &Object) -> Result<EncoderConfig, String> {
    for key in ["attention_bias", "mlp_bias", "norm_bias"] {
        if config.get(key).and_then(Value::as_bool) == Some(true) {
            return Err(format!(
                "'{key}' is true, encoders with biases are not supported"
            ));
        }
    }
    if let Some(name) = config
        .get("hidden_activation")
        .and_then(Value::as_str)
        .filter(|name| *name != "gelu")
    {
        return Err(format!(
            "hidden_activation '{name}' is not supported, expected 'gelu'"
        ));
    }
    let width = size(config, "hidden_size", None, 2, MAX_WIDTH)?;
    let heads = size(config, "num_attention_heads", None, 1, MAX_WIDTH)?;
    if !width.is_multiple_of(heads) || !(width / heads).is_multiple_of(2) {
        return Err(format!(
            "{heads} heads do not divide a width of {width} into even parts"
        ));
    }
    let count = size(config, "num_hidden_layers", None, 1, MAX_LAYERS)?;
    let every = size(config, "global_attn_every_n_layers", Some(3), 1, MAX_LAYERS)?;
    let layers = match config.get("layer_types") {
        None | Some(Value::Null) => (0..count)
            .map(|i| {
                if i.is_multiple_of(every) {
                    Reach::Global
                } else {
                    Reach::Local
                }
            })
            .collect(),
        Some(Value::List(types)) if types.len() == count => types
            .iter()
            .map(|t| {
                if t.as_str() == Some("full_attention") {
                    Reach::Global
                } else {
                    Reach::Local
                }
            })
            .collect(),
        Some(_) => return Err(format!("'layer_types' is no list of {count}")),
    };
    let norm_eps = number(config, "norm_eps")?.unwrap_or(1e-5);
    if !(0.0..1.0).contains(&norm_eps) {
        return Err(format!("norm_eps {norm_eps} outside 0..1"));
    }
    let window = size(config, "local_attention", Some(128), 0, MAX_ROW_TOKENS)? / 2;
    let (global_theta, local_theta) = (
        theta(config, "full_attention", 160_000.0)?,
        theta(config, "sliding_attention", 10_000.0)?,
    );
    Ok(EncoderConfig {
        vocabulary: size(config, "vocab_size", None, 1, MAX_VOCABULARY)?,
        width,
        heads,
        middle: size(config, "intermediate_size", None, 1, 8 * MAX_WIDTH)?,
        norm_eps: norm_eps as f32,
        window,
        layers,
        global_theta,
        local_theta,
    })
}

fn theta(config: &Object, kind: &str, default: f64) -> Result<f64, String> {
    let nested = config.get("rope_parameters").and_then(Value::as_object);
    let own = nested
        .and_then(|n| n.get(kind))
        .and_then(Value::as_object)
        .map(|n| number(n, "rope_theta"))
        .transpose()?
        .flatten();
    let flat = nested
        .map(|n| number(n, "rope_theta"))
        .transpose()?
        .flatten();
    let old = number(
        config,
        if kind == "full_attention" {
            "global_rope_theta"
        } else {
            "local_rope_theta"
        },
    )?;
    let theta = own
        .or(flat)
        .or(number(config, "rope_theta")?)
        .or(old)
        .unwrap_or(default);
    if theta.is_finite() && theta >= 1.0 {
        Ok(theta)
    } else {
        Err(format!("rope theta {theta} of {kind} is below 1"))
    }
}

fn number(config: &Object, key: &str) -> Result<Option<f64>, String> {
    match config.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_f64()
            .map(Some)
            .ok_or_else(|| format!("'{key}' is no number")),
    }
}

fn size(
    config: &Object,
    key: &str,
    default: Option<u64>,
    low: u64,
    high: u64,
) -> Result<usize, String> {
    let value = match (config.get(key), default) {
        (None | Some(Value::Null), Some(default)) => default,
        (None | Some(Value::Null), None) => return Err(format!("'{key}' is missing")),
        (Some(Value::Integer(integer)), _) => integer
            .as_i64()
            .and_then(|i| u64::try_from(i).ok())
            .ok_or_else(|| format!("'{key}' is {integer}, expected {low}..={high}"))?,
        (Some(value), _) => {
            return Err(format!(
                "'{key}' is {}, expected an integer",
                json_text(value)
            ));
        }
    };
    if (low..=high).contains(&value) {
        Ok(value as usize)
    } else {
        Err(format!("'{key}' is {value}, expected {low}..={high}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[allow(clippy::needless_pass_by_value)] // reads better with json!(…) at every call
    fn map(value: serde_json::Value) -> Object {
        match decision::json::read(value.to_string().as_bytes()) {
            Ok(Value::Object(object)) => object,
            other => panic!("{other:?} is no table"),
        }
    }

    #[test]
    fn temperatures_are_clamped_and_the_replaced_ones_named() {
        let config = map(json!({
            "encoder": "e", "head_layers": 2, "temperature": [true, "2.5", 0.1],
            "temperature_by_options": {"choice:11+": 0.1006, "noul:2": 9, "score:2": null, "choice:2": 1.25},
        }));
        let read = agent(&config).unwrap();
        assert_eq!(read.temperatures.by_type, [1.0, 2.5, 0.5]);
        let buckets: Vec<(&str, f32)> = read
            .temperatures
            .by_bucket
            .iter()
            .map(|(k, v)| (k.as_str(), *v))
            .collect();
        assert_eq!(
            buckets,
            [
                ("choice:11+", 0.5),
                ("choice:2", 1.25),
                ("noul:2", 5.0),
                ("score:2", 1.0)
            ]
        );
        assert_eq!(
            read.temperatures.warnings.len(),
            5,
            "{:?}",
            read.temperatures.warnings
        );
        assert_eq!(
            (read.max_len, read.head_max_len, read.act_outputs),
            (512, 192, None)
        );
    }

    #[allow(clippy::needless_pass_by_value)] // as above
    fn modern(extra: serde_json::Value) -> Object {
        let base = json!({
            "vocab_size": 100, "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 4, "intermediate_size": 96,
        });
        // A later member wins.
        map(base).into_iter().chain(map(extra)).collect()
    }

    #[test]
    fn layers_and_thetas_follow_the_order_of_sources() {
        use Reach::{Global, Local};
        let rows = [
            (
                "nothing said",
                json!({}),
                vec![Global, Local, Local, Global],
                (160_000.0, 10_000.0),
            ),
            (
                "every second",
                json!({"global_attn_every_n_layers": 2, "rope_theta": 500}),
                vec![Global, Local, Global, Local],
                (500.0, 500.0),
            ),
            (
                "list and nested",
                json!({
                    "layer_types": ["sliding_attention", "full_attention", "full_attention", "x"], "rope_theta": 500,
                    "rope_parameters": {"full_attention": {"rope_theta": 7.0}, "sliding_attention": {"rope_theta": 8}},
                }),
                vec![Local, Global, Global, Local],
                (7.0, 8.0),
            ),
            (
                "old names",
                json!({"global_rope_theta": 11, "local_rope_theta": 12}),
                vec![Global, Local, Local, Global],
                (11.0, 12.0),
            ),
        ];
        for (name, extra, layers, thetas) in rows {
            let read = encoder(&modern(extra)).unwrap();
            assert_eq!(read.layers, layers, "{name}");
            assert_eq!((read.global_theta, read.local_theta), thetas, "{name}");
            assert_eq!(read.window, 64, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        let rows = [
            (
                "width",
                json!({"hidden_size": 8193}),
                "'hidden_size' is 8193",
            ),
            (
                "vocabulary",
                json!({"vocab_size": (1u64 << 20) + 1}),
                "'vocab_size'",
            ),
            (
                "layers",
                json!({"num_hidden_layers": 129}),
                "'num_hidden_layers'",
            ),
            (
                "negative",
                json!({"intermediate_size": -1}),
                "'intermediate_size' is -1",
            ),
            (
                "heads",
                json!({"num_attention_heads": 3}),
                "3 heads do not divide",
            ),
            ("bias", json!({"attention_bias": true}), "biases"),
            (
                "types",
                json!({"layer_types": ["full_attention"]}),
                "no list of 4",
            ),
            ("theta", json!({"rope_theta": -2}), "below 1"),
            ("activation", json!({"hidden_activation": "silu"}), "'silu'"),
        ];
        for (name, extra, expected) in rows {
            let error = encoder(&modern(extra)).expect_err(name);
            assert!(error.contains(expected), "{name}: {error}");
        }
        assert!(
            agent(&map(
                json!({"encoder": "e", "head_layers": 2, "option_layout": "parallel"})
            ))
            .is_err()
        );
        assert!(agent(&map(json!({"encoder": "e", "head_layers": 1.5}))).is_err());
    }
}
