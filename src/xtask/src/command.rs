//! Runs other programs from the workspace root and says which one failed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Top folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The cargo that started us, so that toolchains do not mix.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end, output passed through.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let line = text(command);
    eprintln!("+ {line}");
    let status = command
        .status()
        .map_err(|error| format!("cannot start `{line}`: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{line}` ended with {status}"))
    }
}

/// Runs a command to its end and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let line = text(command);
    let output = command
        .output()
        .map_err(|error| format!("cannot start `{line}`: {error}"))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "`{line}` ended with {}: {}",
            output.status,
            told.trim()
        ));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("`{line}` printed no UTF-8: {error}"))
}

fn text(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    std::iter::once(program)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
