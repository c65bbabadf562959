//! `laya serve`: flags over environment, then the server until it has drained.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};
use laya::Verify;
use service::runtime::Signals;
use service::telemetry::{self, LogFormat};

use super::{CliError, Environment};
use crate::host::EXIT_CONFIGURATION;
use crate::server::{ServeError, Server};
use crate::settings::{Extras, Flag, LogLevel, Settings, VARIABLES, Values};
use crate::source::Places;

/// Threads for connections; the engine has its own.
const HTTP_THREADS: usize = 2;
/// Largest file with a key, in bytes.
const MAX_KEY_BYTES: u64 = 64 * 1024;

pub(super) fn command() -> Command {
    let mut command = Command::new("serve")
        .about("Serve checkpoints over HTTP")
        .after_help(
            "Every flag but --model, --expect-digest, --verify, --api-key-file and --unchecked also is a variable: \
             --max-loaded is LAYA_MAX_LOADED. Flags win. The key is LAYA_API_KEY or comes from --api-key-file.",
        )
        .arg(Arg::new("model").long("model").value_name("DIR").help("Serve this folder and nothing else"))
        .arg(
            Arg::new("expect-digest")
                .long("expect-digest")
                .value_name("DIGEST")
                .requires("model")
                .help("Refuse the folder unless its checkpoint digest is this one"),
        )
        .arg(
            Arg::new("verify")
                .long("verify")
                .value_parser(["size", "full"])
                .default_value("size")
                .help("Compare sizes with the manifest, or hash every file"),
        )
        .arg(Arg::new("api-key-file").long("api-key-file").value_name("FILE").help("File that holds the key"))
        .arg(
            Arg::new("unchecked")
                .long("unchecked")
                .action(ArgAction::SetTrue)
                .help("For benchmarks: serve a reduced precision without a parity report; never ready"),
        );
    for variable in VARIABLES {
        let arg = Arg::new(variable.name)
            .long(variable.flag_name())
            .value_name(variable.value)
            .help(variable.help)
            .allow_hyphen_values(true);
        command = match variable.flag {
            Flag::None => continue,
            Flag::Value => command.arg(arg),
            Flag::Switch => command.arg(
                arg.num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("1"),
            ),
        };
    }
    command
}

pub(super) fn run(matches: &ArgMatches, environment: &Environment) -> Result<u8, CliError> {
    let flags = VARIABLES
        .iter()
        .filter(|variable| variable.flag != Flag::None)
        .filter_map(|variable| {
            let value = matches.get_one::<String>(variable.name)?;
            Some((variable.name, value.clone()))
        });
    let variables = environment
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()));
    let (values, mut warnings) = Values::new(flags, variables);
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let api_key = text("api-key-file")
        .map(|file| read_key(Path::new(&file)))
        .transpose()?;
    let extras = Extras {
        model: text("model"),
        expect_digest: text("expect-digest"),
        verify: if text("verify").as_deref() == Some("full") {
            Verify::Full
        } else {
            Verify::Size
        },
        api_key,
        unchecked: matches.get_flag("unchecked"),
    };
    let configuration = |line: String| CliError::new(EXIT_CONFIGURATION, line);
    let (settings, more) =
        Settings::read(&values, &extras).map_err(|error| configuration(error.to_string()))?;
    warnings.extend(more);
    install_log(settings.log_level)
        .map_err(|error| configuration(format!("cannot log: {error}")))?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let places = Places::from_environment(
        |name| environment.get(name).cloned(),
        settings.loading.revision.clone(),
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(HTTP_THREADS)
        .thread_name("laya-http")
        .enable_all()
        .build()
        .map_err(|error| configuration(format!("cannot start threads: {error}")))?;
    let served = runtime.block_on(serve(settings, places));
    // What still computes is not waited for: its clients are gone.
    runtime.shutdown_background();
    served
        .map(|()| 0)
        .map_err(|error| CliError::new(error.exit_code(), error.to_string()))
}

async fn serve(settings: Settings, places: Places) -> Result<(), ServeError> {
    let server = Server::start(settings, places).await?;
    eprintln!("laya: listening on http://{}", server.address());
    let signals = Signals::of_process().map_err(|source| ServeError::Listen {
        address: "signals".to_owned(),
        source,
    })?;
    server.run(signals, |line| eprintln!("laya: {line}")).await
}

fn install_log(level: LogLevel) -> std::io::Result<()> {
    let format = if std::io::stderr().is_terminal() {
        LogFormat::Text
    } else {
        LogFormat::Json
    };
    let level = match level {
        LogLevel::Error => telemetry::LogLevel::Error,
        LogLevel::Warning => telemetry::LogLevel::Warn,
        LogLevel::Info => telemetry::LogLevel::Info,
        LogLevel::Debug => telemetry::LogLevel::Debug,
        LogLevel::Trace => telemetry::LogLevel::Trace,
    };
    telemetry::install(format, level)
}

fn read_key(file: &Path) -> Result<String, CliError> {
    let wrong = |why: String| {
        CliError::new(
            EXIT_CONFIGURATION,
            format!("cannot read the key from {}: {why}", file.display()),
        )
    };
    let size = std::fs::metadata(file)
        .map_err(|error| wrong(error.to_string()))?
        .len();
    if size > MAX_KEY_BYTES {
        return Err(wrong(format!("it has {size} bytes, limit {MAX_KEY_BYTES}")));
    }
    let text =
        std::fs::read_to_string(PathBuf::from(file)).map_err(|error| wrong(error.to_string()))?;
    // An editor ends a file with a newline; a key does not.
    let key = text.trim_end_matches(['\r', '\n']);
    if key.trim().is_empty() {
        Err(wrong("it is empty".to_owned()))
    } else {
        Ok(key.to_owned())
    }
}
