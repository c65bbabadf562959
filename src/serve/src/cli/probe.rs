//! `laya probe`: `--ready` asks a running server (the images' health check); with a folder, the probe questions are asked
//! in this process, and `--record` prints the answers for the manifest (control-plane 12).

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use decision::json::{Object, Value, write};
use decision::wire::{Answer, Outcome};
use laya::checkpoint::{Probe as Recorded, ProbeAnswer};
use laya::probe::{probe, probe_questions};
use laya::{Checkpoint, Engine, EngineOptions, Lengths, LoadOptions, predict};

use super::{CliError, Environment};
use crate::host::{EXIT_CHECKPOINT, EXIT_CONFIGURATION};

/// Requests whose answers are recorded: different in everything a question may ask for.
const RECORDED: [&str; 6] = [
    "Rename the variable in the settings page.",
    "The payment service answers 500 since the last deployment. Find out why, fix it and add a test.",
    "What does this function do?",
    "Design a migration of all customer data to the new region without downtime.",
    "Delete every user account that looks unused, in production, now.",
    "Translate the error messages to German and keep the placeholders.",
];

/// For a server to answer.
const WAIT: Duration = Duration::from_secs(5);
/// Most bytes of its answer that are read.
const MAX_REPLY_BYTES: u64 = 256 * 1024;

// No doc comment: clap would show it in place of the word's description.
#[derive(Debug, Clone, Args)]
pub(super) struct Probe {
    /// Ask a running server whether it is ready
    #[arg(long, conflicts_with_all = ["dir", "record"], required_unless_present = "dir")]
    ready: bool,
    /// The server's address [default: the one LAYA_HOST and LAYA_PORT say]
    #[arg(long, value_name = "HOST:PORT", requires = "ready")]
    address: Option<String>,
    /// Folder of a checkpoint to ask the probe questions
    dir: Option<PathBuf>,
    /// Print the answers as the manifest records them
    #[arg(long)]
    record: bool,
}

pub(super) fn run(arguments: &Probe, environment: &Environment) -> Result<u8, CliError> {
    match &arguments.dir {
        Some(dir) => ask_folder(dir, arguments.record),
        None => {
            let address = arguments
                .address
                .clone()
                .unwrap_or_else(|| own_address(environment));
            ask_server(&address)
        }
    }
}

/// Where a server with this environment listens, as seen from its own machine.
fn own_address(environment: &Environment) -> String {
    let get = |name: &str| {
        environment
            .get(name)
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    };
    let host = match get("LAYA_HOST").unwrap_or("127.0.0.1") {
        "0.0.0.0" => "127.0.0.1",
        "::" | "[::]" => "[::1]",
        host => host,
    };
    format!("{host}:{}", get("LAYA_PORT").unwrap_or("8000"))
}

fn ask_server(address: &str) -> Result<u8, CliError> {
    let unreachable =
        |why: String| CliError::new(1, format!("no answer from http://{address}/ready: {why}"));
    let reply = get_ready(address).map_err(|error| unreachable(error.to_string()))?;
    let status = reply.split(' ').nth(1).unwrap_or_default();
    let body = reply
        .split_once("\r\n\r\n")
        .map(|(_, body)| body)
        .unwrap_or_default();
    if status == "200" {
        println!("ready");
        return Ok(0);
    }
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let text = |key: &str| {
        body.get(key)
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let line = match (text("reason"), text("message")) {
        (reason, _) if reason.is_empty() => format!("http://{address}/ready answered {status}"),
        (reason, message) => format!("not ready: {reason}: {message}"),
    };
    let printable: String = line
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    Err(CliError::new(1, printable))
}

fn get_ready(address: &str) -> std::io::Result<String> {
    let mut last = std::io::Error::other("the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, WAIT) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(WAIT))?;
                stream.set_write_timeout(Some(WAIT))?;
                let head =
                    format!("GET /ready HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
                stream.write_all(head.as_bytes())?;
                let mut reply = Vec::new();
                stream.take(MAX_REPLY_BYTES).read_to_end(&mut reply)?;
                return Ok(String::from_utf8_lossy(&reply).into_owned());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn ask_folder(dir: &Path, record: bool) -> Result<u8, CliError> {
    let engine = Engine::new(EngineOptions::default())
        .map_err(|error| CliError::new(EXIT_CONFIGURATION, error.to_string()))?;
    let checkpoint = engine
        .load(dir, &LoadOptions::default())
        .map_err(|error| CliError::new(EXIT_CHECKPOINT, error.to_string()))?;
    if record {
        let probes = recorded(&engine, &checkpoint)
            .map_err(|problem| CliError::new(EXIT_CHECKPOINT, problem))?;
        let text = serde_json::to_string_pretty(&probes)
            .map_err(|error| CliError::new(1, error.to_string()))?;
        println!("{text}");
        return Ok(0);
    }
    probe(&engine, &checkpoint)
        .map_err(|problem| CliError::new(EXIT_CHECKPOINT, problem.to_string()))?;
    println!("passed");
    Ok(0)
}

/// The answers of a checkpoint to the built-in requests, as `probes` of its manifest.
fn recorded(engine: &Engine, checkpoint: &Checkpoint) -> Result<Vec<Recorded>, String> {
    if checkpoint.info().questions.is_none() {
        return Err("only a checkpoint with a contract can be recorded".to_owned());
    }
    let questions = probe_questions(checkpoint).map_err(|problem| problem.to_string())?;
    let one = |text: &&str| {
        let state = Value::Object([("request", *text)].into_iter().collect::<Object>());
        let answered = predict(engine, checkpoint, &state, &questions, Lengths::default());
        let answers = answered.map_err(|error| error.to_string())?.answers;
        Ok(Recorded {
            state: serde_json::from_str(&write(&state)).map_err(|error| error.to_string())?,
            answers: answers
                .iter()
                .map(|(id, answer)| (id.clone(), recorded_answer(answer)))
                .collect(),
        })
    };
    RECORDED.iter().map(one).collect()
}

/// The label of a choice, `true` or `false`, or the most likely level, with its probability.
fn recorded_answer(answer: &Answer) -> ProbeAnswer {
    let (label, probability) = match &answer.outcome {
        Outcome::Choice {
            labels,
            probabilities,
            winner,
        } => (
            labels.get(*winner).map(|label| label.key()),
            probabilities.get(*winner).copied(),
        ),
        Outcome::Score { probabilities, .. } => {
            let most = probabilities.iter().copied().fold(f64::MIN, f64::max);
            let level = probabilities.iter().position(|p| *p == most);
            (level.map(|level| level.to_string()), Some(most))
        }
        Outcome::Noul { noul } if *noul >= 0.5 => (Some("true".to_owned()), Some(*noul)),
        Outcome::Noul { noul } => (Some("false".to_owned()), Some(1.0 - noul)),
    };
    ProbeAnswer {
        label: label.unwrap_or_default(),
        probability: probability.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_where_the_environment_says() {
        for (pairs, address) in [
            (&[][..], "127.0.0.1:8000"),
            (
                &[("LAYA_HOST", "0.0.0.0"), ("LAYA_PORT", "9")],
                "127.0.0.1:9",
            ),
            (&[("LAYA_HOST", "::")], "[::1]:8000"),
            (&[("LAYA_HOST", " "), ("LAYA_PORT", "")], "127.0.0.1:8000"),
            (&[("LAYA_HOST", "10.0.0.7")], "10.0.0.7:8000"),
        ] {
            let environment = pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            assert_eq!(own_address(&environment.collect()), address);
        }
    }
}
