//! What every long-running program of Relay shares: the process runtime (signals, drain, supervised tasks, admin port),
//! the HTTP stack (limits, auth, origins, request ids, problem documents), telemetry set-up and layered configuration.
//! It knows nothing of routing, objects or models.

pub mod config;
pub mod http;
pub mod listen;
pub mod problem;
pub mod runtime;
pub mod telemetry;
