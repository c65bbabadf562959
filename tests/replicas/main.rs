//! Three routers on one PostgreSQL with two Laya servers behind them, as real processes under load, while each kind is
//! killed in turn. `cargo xtask test` runs it with `--ignored`; it starts and stops a PostgreSQL of its own
//! (`tests/engines/postgres.sh`).

#![allow(clippy::unwrap_used)]

mod cluster;
mod kept;
mod learned;
mod load;
#[path = "../programs/mod.rs"]
mod programs;
mod survives;
mod worker;
