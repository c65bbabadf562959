//! Program of `images/fault`: takes the command line of `laya serve` and answers as it does, or fails as it is told by
//! [`switches`]. A second word, `task`, speaks the task protocol. Only for tests; built static, with feature `image`.

mod serve;
mod switches;
mod task;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("probe") => ExitCode::from(serve::probe()),
        Some("task") => ExitCode::from(task::run(&arguments[1..])),
        Some("serve") => ExitCode::from(serve::run(&arguments[1..])),
        // The form of images that are not ours: flags alone.
        _ => ExitCode::from(serve::run(&arguments)),
    }
}
