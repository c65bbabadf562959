//! `cargo xtask shell`: completions and manual pages of the programs, from the definitions their parsers use: those of
//! libraries directly, those of `relayctl` by asking the program.

use std::path::Path;

use clap::Command;
use clap_complete::Shell;

use crate::command::{cargo, output};

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// What shells call the completions of `relayctl`.
const RELAYCTL: [(&str, &str); 3] = [
    ("bash", "relayctl.bash"),
    ("zsh", "_relayctl"),
    ("fish", "relayctl.fish"),
];
/// Its commands with a manual page of their own.
const PAGES: [&str; 22] = [
    "",
    "up",
    "down",
    "status",
    "doctor",
    "get",
    "describe",
    "explain",
    "apply",
    "diff",
    "delete",
    "validate",
    "wait",
    "events",
    "logs",
    "context",
    "policy",
    "policy show",
    "policy diff",
    "policy test",
    "completion",
    "version",
];

/// Writes completions and manual pages of each program that has them.
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
    manual(&command, folder)?;
    relayctl(folder)
}

fn relayctl(folder: &Path) -> Result<(), String> {
    let ask = |arguments: &[&str]| {
        output(
            cargo()
                .args(["run", "--quiet", "-p", "relayctl", "--"])
                .args(arguments),
        )
    };
    for (shell, name) in RELAYCTL {
        write(&folder.join(name), &ask(&["completion", shell])?)?;
    }
    for page in PAGES {
        let words: Vec<_> = page.split_whitespace().collect();
        let arguments: Vec<_> = std::iter::once("man")
            .chain(words.iter().copied())
            .collect();
        let name: Vec<_> = std::iter::once("relayctl").chain(words).collect();
        write(
            &folder.join(format!("{}.1", name.join("-"))),
            &ask(&arguments)?,
        )?;
    }
    Ok(())
}

fn manual(command: &Command, folder: &Path) -> Result<(), String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| format!("cannot render the manual page: {error}"))?;
    write(&folder.join("laya.1"), &String::from_utf8_lossy(&text))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text)
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}
