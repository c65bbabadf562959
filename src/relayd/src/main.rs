//! `relayd`: the long-running process of Relay. Parses arguments, dispatches, and turns an error into one line, a hint
//! and an exit code.

mod cluster;
mod controller_command;
mod daemon;
mod ending;
mod engine;
mod engine_choice;
mod engine_settings;
mod error;
mod first_look;
mod follow_policy;
mod follow_servers;
mod followed_table;
mod local_home;
mod local_objects;
mod router_command;
mod router_port;
mod settings;
mod start;
mod tombstones;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use cli::Said;

use engine_settings::EngineFlags;
use error::RelaydError;

/// The long-running process of Relay.
#[derive(Debug, Parser)]
#[command(name = "relayd", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Decide which model, effort, role, tools and checks a request needs, over HTTP
    Router(SharedFlags),
    /// Make the objects of a cluster true: reconcile what a kubeconfig, or the pod's own account, reaches
    Controller(ControllerFlags),
    /// Both for one user of this machine: with the objects in a file, the model inside, one at a time
    Local(LocalFlags),
}

/// The settings of every router, and what only one beside a cluster has.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
struct SharedFlags {
    #[command(flatten)]
    router: RouterFlags,
    /// How to reach the API server of --policy-object [default: the pod's own account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
    /// Namespace of --policy-object [default: that of the kubeconfig or the pod]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
}

/// The settings of every router, and what only one user's own has.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
struct LocalFlags {
    #[command(flatten)]
    router: RouterFlags,
    /// Port of the object API on 127.0.0.1, with and without TLS; 0 takes a free one [default: 4748, or a free port if
    /// that is taken]
    #[arg(long, value_name = "PORT")]
    daemon_port: Option<String>,
    /// Folder of a checkpoint that is served inside this process while the policy names no LayaServer
    /// [default: none]
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<String>,
    #[command(flatten)]
    engine: EngineFlags,
    /// The same as --backend embedded
    #[arg(long)]
    no_docker: bool,
    /// Only keep the objects and route: `relayd controller` reconciles them in a process of its own
    #[arg(long)]
    no_controller: bool,
}

/// Each flag is also an environment variable (`RELAYD_LISTEN`) and a key of the configuration file (`listen`).
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
struct RouterFlags {
    /// Address of the router [default: 127.0.0.1:8737]; beyond loopback a token file is required
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
    /// Address of /metrics, /livez and /readyz [default: 127.0.0.1:9737, or a free port if that is taken]
    #[arg(long, value_name = "IP:PORT")]
    admin_listen: Option<String>,
    /// One RoutingPolicy document, read once [default: what --policy-object says]
    #[arg(long, value_name = "FILE")]
    policy: Option<String>,
    /// Name of the RoutingPolicy object that is followed; an edit that is accepted is in force within a second
    /// [default: `default` in `relayd local`, else none: the built-in policy]
    #[arg(long, value_name = "NAME")]
    policy_object: Option<String>,
    /// Address of a Laya server, for example http://127.0.0.1:8000; repeatable [default: `[[servers]]` of the
    /// configuration file, else none: keyword rules decide]
    #[arg(long, value_name = "URL")]
    laya_url: Vec<String>,
    /// PostgreSQL that replicas share, for example postgres://relay@db/relay; with a password better in a file
    /// [default: SQLite in <RELAY_HOME>/relay.db]
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// A file with that address
    #[arg(long, value_name = "FILE")]
    database_url_file: Option<String>,
    /// Lines `<tenant> <token>`, mode 0600 [default beyond loopback: <RELAY_HOME>/router/tokens]
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
    /// Who may ask for /v1/internal/revisions, which a controller in another process does: lines `<name> <token>`, mode
    /// 0600 [default: nobody]
    #[arg(long, value_name = "FILE")]
    internal_token_file: Option<String>,
    /// A browser origin that may call; repeatable [default: none]
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Form of log lines on standard error: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Least important lines: error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Print each setting with its source, and exit
    #[arg(long)]
    print_config: bool,
}

/// Each flag is also an environment variable and a key of the configuration file.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
struct ControllerFlags {
    /// How to reach the API server [default: the pod's own account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
    /// A namespace whose objects are reconciled; repeatable [default: that of the kubeconfig or the pod]
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,
    #[command(flatten)]
    engine: EngineFlags,
    /// A router that reports what it measures of each revision, for canaries and the watch after a rollout; for example
    /// http://127.0.0.1:8737 [default: none: such rollouts pause]
    #[arg(long, value_name = "URL")]
    router_url: Option<String>,
    /// A line `<name> <token>` of that router's --internal-token-file [default: none]
    #[arg(long, value_name = "FILE")]
    router_token_file: Option<String>,
    /// Address of /metrics, /livez and /readyz [default: 127.0.0.1:9737, or a free port if that is taken]
    #[arg(long, value_name = "IP:PORT")]
    admin_listen: Option<String>,
    /// Form of log lines on standard error: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Least important lines: error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Print each setting with its source, and exit
    #[arg(long)]
    print_config: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    drained after SIGTERM or SIGINT
  1    failed while running: a task ended, or the drain took too long
  2    bad arguments, configuration, policy or token file
  3    cannot listen on an address
  4    another `relayd local` of this user runs
  130  a second SIGINT (143: SIGTERM) stopped it at once";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where nobody reads it, the exit code says it alone.
            let _ = std::io::stderr().write_all(error.render().as_bytes());
            ExitCode::from(error.exit_code())
        }
    }
}

fn run() -> Result<(), RelaydError> {
    let Arguments { command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(stopped) => {
            return match cli::said(stopped) {
                Said::Answer(text) => {
                    cli::print(&text).map_err(RelaydError::start("write to standard output"))
                }
                Said::Misuse(misuse) => Err(RelaydError::Usage(misuse)),
            };
        }
    };
    match command {
        Command::Router(flags) => router_command::router(flags),
        Command::Controller(flags) => controller_command::run(flags),
        Command::Local(flags) => router_command::local(flags),
    }
}
