//! One call of the program: its global flags, and what every command gets from them.

use std::time::Duration;

use clap::{Args, ValueEnum};
use files::Places;

use crate::connect;
use crate::context::{self, Chosen};
use crate::duration;
use crate::error::{CliError, Detail};
use crate::kinds;
use crate::output::Format;
use crate::output::table::Headers;
use crate::program::Program;
use crate::server::{Server, Write};
use crate::terminal::{ColorChoice, Styles, escape, tell};
use api::exit::Exit;

/// For one answer of a server, where `--timeout` says nothing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum DryRun {
    /// It is
    #[default]
    None,
    /// Only shown, no server is asked to do anything
    Client,
    /// The server says what would come of it
    Server,
}

/// Flags of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// `local`, or a context of the kubeconfig [default: RELAY_CONTEXT, else what `context use` kept, else local]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Namespace of the objects [default: that of the context]
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Form of the output: table, wide, json, yaml, name or jsonpath=<template>
    #[arg(short, long, global = true, value_name = "FORM", value_parser = Format::parse)]
    pub(crate) output: Option<Format>,
    /// How long to wait, for example 30s or 5m
    #[arg(long, global = true, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Wait until it is done
    #[arg(long, global = true, overrides_with = "no_wait")]
    pub(crate) wait: bool,
    /// Do not wait
    #[arg(long, global = true, overrides_with = "wait")]
    pub(crate) no_wait: bool,
    /// Whether to do it
    #[arg(long, global = true, value_enum, value_name = "WHERE", num_args = 0..=1, require_equals = true, default_missing_value = "client")]
    pub(crate) dry_run: Option<DryRun>,
    /// Say yes to every question
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,
    /// When to colour
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_possible_values = true
    )]
    pub(crate) color: ColorChoice,
    /// Tell the causes of an error too
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Tables without the names of their columns
    #[arg(long, global = true)]
    pub(crate) no_headers: bool,
}

/// Which forms a command answers in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forms {
    /// Every one.
    Objects,
    /// A document of ours: a table for people, JSON, YAML, a JSON path.
    Document,
    /// One text.
    Text,
}

/// Which of the flags a command obeys; the others are refused, not ignored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Obeys {
    pub(crate) forms: Forms,
    pub(crate) wait: Flag,
    pub(crate) dry_run: Flag,
}

/// Whether a flag means something to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    /// It does.
    Obeyed,
    /// It does not.
    Refused,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) program: Program,
    pub(crate) global: Global,
}

impl Call {
    /// Refuses flags that the command would ignore.
    ///
    /// # Errors
    /// The flag.
    pub(crate) fn check(&self, verb: &str, obeys: Obeys) -> Result<(), CliError> {
        let refuse = |flag: &str| {
            Err(CliError::usage(format!("`{verb}` knows no `{flag}`"))
                .hint(format!("`relayctl {verb} --help` tells what it knows")))
        };
        let Obeys {
            forms,
            wait,
            dry_run,
        } = obeys;
        if wait == Flag::Refused && (self.global.wait || self.global.no_wait) {
            return refuse(if self.global.wait {
                "--wait"
            } else {
                "--no-wait"
            });
        }
        if dry_run == Flag::Refused && self.dry_run() != DryRun::None {
            return refuse("--dry-run");
        }
        let format = self.format();
        let fits = match forms {
            Forms::Objects => true,
            Forms::Document => !matches!(format, Format::Name),
            Forms::Text => format == Format::Table,
        };
        if fits {
            Ok(())
        } else {
            refuse(&format!("-o {}", format.word()))
        }
    }

    pub(crate) fn format(&self) -> Format {
        self.global.output.clone().unwrap_or_default()
    }

    pub(crate) fn dry_run(&self) -> DryRun {
        self.global.dry_run.unwrap_or_default()
    }

    /// Whether servers are to do things.
    pub(crate) fn write(&self) -> Write {
        match self.dry_run() {
            DryRun::None => Write::Commit,
            DryRun::Client | DryRun::Server => Write::DryRun,
        }
    }

    /// `--wait` or `--no-wait`, else what the command does by itself.
    pub(crate) fn waits(&self, by_itself: bool) -> bool {
        if self.global.wait {
            true
        } else if self.global.no_wait {
            false
        } else {
            by_itself
        }
    }

    pub(crate) fn patience(&self, by_itself: Duration) -> Duration {
        self.global.timeout.unwrap_or(by_itself)
    }

    pub(crate) fn headers(&self) -> Headers {
        if self.global.no_headers {
            Headers::Hidden
        } else {
            Headers::Shown
        }
    }

    pub(crate) fn styles(&self) -> Styles {
        self.global.color.for_stdout()
    }

    /// What an error of this call tells.
    pub(crate) fn detail(&self) -> Detail {
        Detail {
            causes: self.global.verbose,
            status: self.global.output == Some(Format::Json),
        }
    }

    /// Talks, with commands as they have to be typed.
    pub(crate) fn tell(&self, line: &str) {
        tell(&format!("{}\n", escape(&self.program.speak(line))));
    }

    /// The user's folders.
    ///
    /// # Errors
    /// Nothing names them.
    pub(crate) fn places(&self) -> Result<Places, CliError> {
        Places::find(&|name| std::env::var_os(name)).map_err(|error| {
            CliError::usage(error.to_string())
                .hint("set RELAY_HOME to the folder that Relay keeps its files in")
        })
    }

    /// The context in force.
    ///
    /// # Errors
    /// The settings file is damaged.
    pub(crate) fn context(&self) -> Result<Chosen, CliError> {
        let flag = self.global.context.as_deref();
        context::choose(flag, &|name| std::env::var_os(name), &self.places()?)
    }

    /// A namespace becomes a part of a path; what could lead elsewhere is none.
    fn check_namespace(&self) -> Result<(), CliError> {
        let named = self.global.namespace.as_deref();
        match named.and_then(|name| Some((name, kinds::namespace_fault(name)?))) {
            None => Ok(()),
            Some((name, why)) => {
                let shown: String = name.chars().take(80).collect();
                Err(CliError::usage(format!(
                    "`-n {shown}` is no namespace: {why}"
                )))
            }
        }
    }

    /// The object API of the context.
    ///
    /// # Errors
    /// There is no such context, or it cannot be used.
    pub(crate) async fn connect(&self) -> Result<Server, CliError> {
        self.check_namespace()?;
        let context = self.context()?;
        let connected = if context.is_local() {
            connect::local(&self.places()?)
        } else {
            Box::pin(connect::cluster(&context)).await?
        };
        // A wait of no time still needs an answer.
        let asked = self.global.timeout.filter(|timeout| !timeout.is_zero());
        Ok(Server {
            client: connected.client,
            namespace: self.global.namespace.clone().unwrap_or(connected.namespace),
            context,
            timeout: asked.unwrap_or(ANSWER_TIMEOUT).min(ANSWER_TIMEOUT),
        })
    }

    /// The same for a command that changes something: on a cluster it says first which one.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub(crate) async fn connect_to_change(&self) -> Result<Server, CliError> {
        let server = self.connect().await?;
        if !server.context.is_local() {
            self.tell(&format!(
                "context {}, namespace {}",
                server.context.name, server.namespace
            ));
        }
        Ok(server)
    }
}

/// Runs what needs a server.
///
/// # Errors
/// Those of the work itself, or no runtime.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::new(Exit::Failed, format!("cannot start: {error}")))?;
    runtime.block_on(work)
}
