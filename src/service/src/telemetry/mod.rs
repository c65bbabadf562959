//! Logs, process metrics and traces. Logs go to stderr as text or JSON, metrics into a registry that the program passes
//! in, traces to a collector that the environment names. The only process-wide things are the log subscriber and the panic hook, both set once by a `main`.

mod causes;
mod logs;
mod process;
mod repeated;
pub mod trace;

pub use causes::causes;
pub use logs::{LogFormat, LogLevel, install};
pub use process::{BuildInfo, ProcessMetrics};
pub use repeated::RepeatedError;
