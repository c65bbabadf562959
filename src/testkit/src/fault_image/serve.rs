//! The server: the fake of this crate on the port of `laya serve`, with what its switches say.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use decision::relay_contract;
use serde_json::{Value, json};
use testkit::{Answers, FakeLaya, Fault, Says};
use tokio::signal::unix::{SignalKind, signal};

use crate::switches::Switches;

/// Exit code of a checkpoint that is refused (control-plane 13).
const REFUSED: u8 = 3;
/// How often it is looked whether it is time to crash.
const LOOK: Duration = Duration::from_millis(2);
const OTHER: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

/// What it was called with, as far as it matters.
#[derive(Debug, Default)]
struct Called {
    model: Option<PathBuf>,
    expect_digest: Option<String>,
    host: String,
    port: String,
    device: String,
}

impl Called {
    fn read(arguments: &[String]) -> Self {
        let variable =
            |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let mut called = Self {
            host: variable("LAYA_HOST", "0.0.0.0"),
            port: variable("LAYA_PORT", "8000"),
            device: variable("LAYA_DEVICE", "auto"),
            ..Self::default()
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let Some(value) = rest.next() else { break };
            match flag.as_str() {
                "--model" => called.model = Some(value.into()),
                "--expect-digest" => called.expect_digest = Some(value.clone()),
                "--host" => called.host = value.clone(),
                "--port" => called.port = value.clone(),
                "--device" => called.device = value.clone(),
                _ => {}
            }
        }
        called
    }
}

/// `probe --ready`: 0 when `/ready` says so.
pub(crate) fn probe() -> u8 {
    let asked = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", 8000))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        Ok(head.ends_with(b"200"))
    };
    u8::from(!asked().unwrap_or(false))
}

/// Serves until it is told to end, or fails.
pub(crate) fn run(arguments: &[String]) -> u8 {
    let called = Called::read(arguments);
    let variable = std::env::var("RELAY_FAULT").ok();
    let switches = match Switches::find(variable.as_deref(), called.model.as_deref()) {
        Ok(switches) => switches,
        Err(error) => {
            eprintln!("fault-laya: {error}");
            return 2;
        }
    };
    println!("fault-laya: {switches:?}");
    let manifest = called.model.as_deref().map(manifest).unwrap_or_default();
    if let Some(code) = refused(&called, &manifest, &switches) {
        return code;
    }
    if switches.eat_memory {
        eat();
    }
    let Ok(address) = format!("{}:{}", called.host, called.port).parse::<SocketAddr>() else {
        eprintln!("fault-laya: no address in {called:?}");
        return 1;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(serve(address, &called, &manifest, &switches)),
        Err(error) => {
            eprintln!("fault-laya: {error}");
            1
        }
    }
}

fn manifest(model: &Path) -> Value {
    std::fs::read(model.join("relay-manifest.json"))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

fn refused(called: &Called, manifest: &Value, switches: &Switches) -> Option<u8> {
    if let Some(code) = switches.crash_at_start {
        eprintln!("fault-laya: told to end with {code}");
        return Some(u8::try_from(code).unwrap_or(1));
    }
    if switches.damaged {
        eprintln!("fault-laya: told to refuse its checkpoint");
        return Some(REFUSED);
    }
    match (&called.expect_digest, manifest["digest"].as_str()) {
        (Some(expected), Some(digest)) if expected != digest => {
            eprintln!("fault-laya: the checkpoint is {digest}, expected {expected}");
            Some(REFUSED)
        }
        _ => None,
    }
}

/// Until the kernel has enough of it.
fn eat() -> ! {
    let mut eaten = Vec::new();
    loop {
        // Written, or it would not count.
        eaten.push(vec![1_u8; 8 << 20]);
        std::thread::sleep(LOOK);
    }
}

async fn serve(address: SocketAddr, called: &Called, manifest: &Value, switches: &Switches) -> u8 {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return 1;
    };
    let says = says(called, manifest, switches);
    let loading = says.clone().not_ready("Starting");
    let says = once_loaded(says, switches);
    let fake = FakeLaya::start_at(address, loading.clone()).await;
    fake.fail(fault(switches));
    println!("fault-laya: listening on {address}");
    let load = Duration::from_millis(switches.slow_load_millis.unwrap_or_default());
    let started = tokio::time::Instant::now();
    let mut ready = false;
    let mut draining = false;
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            _ = terminate.recv() => {
                if switches.ignore_sigterm {
                    println!("fault-laya: told to end, and does not");
                } else {
                    println!("fault-laya: draining");
                    fake.drain();
                    draining = true;
                }
            }
            _ = look.tick() => {
                if !ready && !switches.never_ready && started.elapsed() >= load {
                    fake.say(says.clone());
                    ready = true;
                }
                if draining && fake.in_flight() == 0 {
                    return 0;
                }
                if crashes(switches, &fake, started.elapsed()) {
                    eprintln!("fault-laya: told to crash after {} decisions", fake.calls());
                    return u8::try_from(switches.crash_code.unwrap_or(1)).unwrap_or(1);
                }
            }
        }
    }
}

/// What it says when it has loaded: that it is ready, or what it found out about itself.
fn once_loaded(says: Says, switches: &Switches) -> Says {
    if switches.ready_wrong_contract {
        says.not_ready("WrongContract")
    } else if switches.ready_probe_failed {
        says.probe_failed(if switches.dead_head {
            "DeadHead"
        } else {
            "WrongAnswers"
        })
    } else {
        says
    }
}

fn crashes(switches: &Switches, fake: &FakeLaya, age: Duration) -> bool {
    let calls = u64::try_from(fake.calls()).unwrap_or(u64::MAX);
    let after = switches.crash_after.is_some_and(|most| calls >= most);
    let old = switches
        .crash_in_millis
        .is_some_and(|millis| age >= Duration::from_millis(millis));
    after || old
}

fn fault(switches: &Switches) -> Fault {
    if switches.nan {
        Fault::NotANumber
    } else if switches.dead_head {
        Fault::DeadHead
    } else if switches.malformed {
        Fault::MalformedJson
    } else if switches.wrong_answers {
        Fault::UnknownChoice
    } else if let Some(millis) = switches.slow_answers_millis {
        Fault::Latency(Duration::from_millis(millis))
    } else {
        Fault::None
    }
}

/// What a server of this checkpoint says, but for its lies.
fn says(called: &Called, manifest: &Value, switches: &Switches) -> Says {
    let probes = manifest["probes"].as_array().cloned();
    let answers = Answers::Plausible(probes.unwrap_or_default());
    if switches.no_ready {
        return Says {
            answers,
            ..Says::original()
        };
    }
    let ours = relay_contract();
    let of_manifest = |key: &str| {
        let contract = &manifest["contract"];
        contract[key].as_str().map(str::to_owned)
    };
    let mut contract = of_manifest("digest")
        .or_else(|| manifest["contract"].as_str().map(str::to_owned))
        .unwrap_or_else(|| ours.digest().to_string());
    let shape = of_manifest("shape").unwrap_or_else(|| ours.shape_digest().to_string());
    if switches.wrong_contract {
        contract = OTHER.to_owned();
    }
    let digest = manifest["digest"].as_str().map(str::to_owned);
    let mut digest = digest
        .or_else(|| called.expect_digest.clone())
        .unwrap_or_else(|| format!("sha256:{}", "1".repeat(64)));
    if switches.wrong_digest {
        digest = OTHER.to_owned();
    }
    let device = if called.device == "cuda" && !switches.cpu_claim {
        "cuda"
    } else {
        "cpu"
    };
    let mut says = Says::contract(&contract, &shape);
    let mut health: Value = serde_json::from_str(&says.health.1).unwrap_or_default();
    health["device"] = json!(device);
    health["checkpoint_devices"]["model"] = json!(device);
    health["checkpoints"]["model"]["device"]["kind"] = json!(device);
    health["checkpoints"]["model"]["digest"] = json!(digest);
    says.health.1 = health.to_string();
    says.checkpoint = Some(digest);
    says.answers = answers;
    says
}
