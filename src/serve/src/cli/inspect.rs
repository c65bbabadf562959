//! `laya inspect DIR`: what a folder holds and what is missing. It loads the checkpoint, so what it shows is what a server
//! would serve.

use std::path::PathBuf;

use clap::Args;
use decision::json::{Object, Value, write_pretty};
use laya::checkpoint::{AgentConfig, EncoderConfig};
use laya::{Checkpoint, CheckpointInfo, Engine, EngineOptions, LoadOptions, Verify};

use super::CliError;
use crate::host::{EXIT_CHECKPOINT, EXIT_CONFIGURATION};

// No doc comment: clap would show it in place of the word's description.
#[derive(Debug, Clone, Args)]
pub(super) struct Inspect {
    /// The folder
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Hash every file and compare with the manifest
    #[arg(long)]
    full: bool,
}

pub(super) fn run(arguments: &Inspect) -> Result<u8, CliError> {
    let Inspect { dir, json, full } = arguments;
    let engine = Engine::new(EngineOptions::default())
        .map_err(|error| CliError::new(EXIT_CONFIGURATION, error.to_string()))?;
    let options = LoadOptions {
        verify: if *full { Verify::Full } else { Verify::Size },
        ..LoadOptions::default()
    };
    let checkpoint = engine
        .load(dir, &options)
        .map_err(|error| CliError::new(EXIT_CHECKPOINT, error.to_string()))?;
    let shown = describe(&checkpoint);
    if *json {
        println!("{}", write_pretty(&Value::Object(shown)));
    } else {
        print_lines("", &shown);
    }
    Ok(0)
}

fn describe(checkpoint: &Checkpoint) -> Object {
    let info = checkpoint.info();
    let mut object = Object::new();
    object.push("digest", info.digest.as_str());
    object.push("verified", info.verified);
    object.push(
        "contract",
        info.contract
            .as_ref()
            .map(|contract| contract.digest.as_str()),
    );
    object.push(
        "shape",
        info.contract
            .as_ref()
            .map(|contract| contract.shape.as_str()),
    );
    let questions = info
        .questions
        .iter()
        .flat_map(|contract| contract.questions());
    let ids: Vec<Value> = questions
        .map(|question| question.id.as_str().into())
        .collect();
    object.push("decisions", ids);
    object.push("encoder", encoder(&info.encoder));
    object.push("head", head(&info.agent));
    object.push("temperatures", temperatures(&info.agent));
    object.push("weights_bytes", count(checkpoint.weight_bytes()));
    object.push("probes", count(info.probes.len()));
    object.push("missing", missing(info));
    let warnings: Vec<Value> = info
        .warnings
        .iter()
        .map(|warning| warning.as_str().into())
        .collect();
    object.push("warnings", warnings);
    object
}

fn encoder(encoder: &EncoderConfig) -> Object {
    let mut object = Object::new();
    object.push("vocabulary", count(encoder.vocabulary));
    object.push("width", count(encoder.width));
    object.push("layers", count(encoder.layers.len()));
    object.push("heads", count(encoder.heads));
    object.push("middle", count(encoder.middle));
    object.push("window", count(2 * encoder.window));
    object.push("global_theta", encoder.global_theta);
    object.push("local_theta", encoder.local_theta);
    object
}

fn head(agent: &AgentConfig) -> Object {
    let mut object = Object::new();
    object.push("encoder", agent.encoder.as_str());
    object.push("head_layers", count(agent.head_layers));
    object.push("max_len", count(agent.max_len));
    object.push("head_max_len", count(agent.head_max_len));
    object
}

fn temperatures(agent: &AgentConfig) -> Object {
    let mut object = Object::new();
    let shown = |temperature: f32| Value::from(f64::from(temperature));
    for (kind, temperature) in ["choice", "score", "noul"]
        .into_iter()
        .zip(agent.temperatures.by_type)
    {
        object.push(kind, shown(temperature));
    }
    for (bucket, temperature) in &agent.temperatures.by_bucket {
        object.push(bucket.as_str(), shown(*temperature));
    }
    object
}

/// What a complete version has and this folder has not.
fn missing(info: &CheckpointInfo) -> Vec<Value> {
    let mut missing = Vec::new();
    if !info.verified {
        missing.push("relay-manifest.json".into());
    }
    if info.contract.is_none() {
        missing.push("contract (decisions.json or questions.json)".into());
    } else if info.questions.is_none() {
        missing.push("decisions.json".into());
    }
    if info.probes.is_empty() {
        missing.push("recorded probes".into());
    }
    missing
}

fn count(number: usize) -> Value {
    Value::from(i64::try_from(number).unwrap_or(i64::MAX))
}

fn print_lines(prefix: &str, object: &Object) {
    for (key, value) in object {
        let key = format!("{prefix}{}", key.to_string_lossy());
        match value {
            Value::Object(inner) => print_lines(&format!("{key}."), inner),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(decision::json::python_str).collect();
                println!(
                    "{key:<22} {}",
                    printable(&if items.is_empty() {
                        "-".to_owned()
                    } else {
                        items.join(", ")
                    })
                );
            }
            Value::Null => println!("{key:<22} -"),
            other => println!("{key:<22} {}", printable(&decision::json::key_text(other))),
        }
    }
}

/// Text of a file without what would steer a terminal.
fn printable(text: &str) -> String {
    let safe = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(safe).collect()
}
