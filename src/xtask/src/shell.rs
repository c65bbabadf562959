//! `cargo xtask shell`: completions and manual pages of the programs, from the definitions their parsers use.

use std::path::Path;

use clap::Command;
use clap_complete::Shell;

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes completions and a manual page of each program that has its definition in a library.
pub(crate) fn run(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut command = serve::cli::command();
    for shell in SHELLS {
        let file =
            clap_complete::generate_to(shell, &mut command, "laya", folder).map_err(|error| {
                format!(
                    "cannot write completions below {}: {error}",
                    folder.display()
                )
            })?;
        println!("{}", file.display());
    }
    manual(&command, folder)
}

fn manual(command: &Command, folder: &Path) -> Result<(), String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| format!("cannot render the manual page: {error}"))?;
    let file = folder.join("laya.1");
    std::fs::write(&file, text)
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}
