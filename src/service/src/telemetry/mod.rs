//! Logs and process metrics. Logs go to stderr as text or JSON; metrics go into a registry that the program passes in.
//! The only process-wide things are the log subscriber and the panic hook, both set once by a `main`.

mod logs;
mod process;
mod repeated;

pub use logs::{LogFormat, LogLevel, install};
pub use process::{BuildInfo, ProcessMetrics};
pub use repeated::RepeatedError;
