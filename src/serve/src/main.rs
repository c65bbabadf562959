//! Program `laya`: parses and dispatches; everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let environment = std::env::vars_os()
        .map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned(),
            )
        })
        .collect();
    ExitCode::from(serve::cli::run(std::env::args_os().collect(), &environment))
}
