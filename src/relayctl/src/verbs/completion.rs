//! `relayctl completion`: what a shell needs to complete our words.

use clap::Args;
use clap_complete::Shell;

use crate::call::Call;
use crate::error::CliError;
use crate::program::Program;
use crate::terminal;
use api::exit::Exit;

/// Arguments of `relayctl completion`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  source <(relayctl completion bash)")]
pub(crate) struct CompletionArguments {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes completions.
pub(crate) fn run(call: &Call, arguments: &CompletionArguments) -> Result<Exit, CliError> {
    // Shells complete programs; `kubectl` asks a program `kubectl_complete-relay`, which is one line around this.
    let mut command = crate::command(Program::Relayctl);
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "relayctl", &mut text);
    let text = String::from_utf8_lossy(&text);
    if call.program == Program::Plugin {
        call.tell(
            "these complete `relayctl`; kubectl completes plugins through `kubectl_complete-relay`",
        );
    }
    terminal::print(&text)?;
    Ok(Exit::Done)
}
