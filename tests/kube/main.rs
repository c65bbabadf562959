//! The local object API beside a real kube-apiserver, and under a real kubectl. `cargo xtask test` builds and starts the
//! server (`tests/engines/kubernetes.sh`) and runs these with `--ignored`; by themselves they need `RELAY_TEST_KUBECONFIG`
//! and `RELAY_TEST_KUBECTL`.

#![allow(clippy::unwrap_used)]

mod bounds;
mod cluster;
mod compare;
mod corpus;
mod crds;
mod edit;
mod engine;
mod kubectl_local;
mod kubectl_same;
mod laptop;
mod local;
mod mutate;
mod parity;
#[path = "../programs/mod.rs"]
mod programs;
mod redact;
mod relayctl;
mod remote;
mod same_files;
mod story;
mod talk;
mod target;
