//! Recorded exchanges of a Laya 0.4.15 server, replayed against ours (wire.md 21): every profile, preloaded and lazily
//! loaded, with one thread and with all, and without any instruction set. `LAYA_EXCHANGES` names another folder of the
//! same kind of files.

mod compare;
mod exchange;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;

use exchange::{Exchange, Kind};
use support::{Server, TINY_MODELS};

/// One way to start a server, beside what a profile asks for.
struct Variant {
    name: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

const PRELOADED: Variant = Variant {
    name: "preloaded",
    environment: &[],
};
const LAZY: Variant = Variant {
    name: "lazy",
    environment: &[("LAYA_PRELOAD", "0")],
};
const ONE_THREAD: Variant = Variant {
    name: "one thread",
    environment: &[("LAYA_THREADS", "1")],
};
const PORTABLE: Variant = Variant {
    name: "portable",
    environment: &[("LAYA_CPU_FEATURES", "portable"), ("LAYA_PRELOAD", "0")],
};

fn replay(variant: &Variant) {
    let mut profiles: BTreeMap<String, Vec<Exchange>> = BTreeMap::new();
    for exchange in exchange::all() {
        profiles
            .entry(exchange.profile.clone())
            .or_default()
            .push(exchange);
    }
    assert!(!profiles.is_empty());
    let mut wrong = Vec::new();
    for (profile, mut exchanges) in profiles {
        // What `/health` says depends on what was asked before.
        exchanges.sort_by_key(|exchange| exchange.kind != Kind::Health);
        let own: Vec<(&str, &str)> = exchanges[0]
            .environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let preloads = own
            .iter()
            .all(|(name, value)| *name != "LAYA_PRELOAD" || *value != "0");
        let lazily = variant.environment.contains(&("LAYA_PRELOAD", "0"));
        let environment: Vec<(&str, &str)> = [
            &[("LAYA_EXTRA_MODELS", TINY_MODELS)],
            variant.environment,
            &own,
        ]
        .concat();
        let server = Server::start(&environment, &[]);
        for exchange in &exchanges {
            if exchange.kind == Kind::Health && preloads && lazily {
                continue;
            }
            if let Err(problem) = exchange.replay(&server) {
                wrong.push(format!(
                    "{profile}, {}, {}: {problem}",
                    variant.name, exchange.name
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn replies_are_those_recorded_when_preloaded() {
    replay(&PRELOADED);
}

#[test]
fn replies_are_those_recorded_when_loaded_on_first_use() {
    replay(&LAZY);
}

#[test]
fn replies_are_those_recorded_with_one_thread() {
    replay(&ONE_THREAD);
}

#[test]
fn replies_are_those_recorded_with_portable_kernels() {
    replay(&PORTABLE);
}
