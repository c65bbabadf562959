//! `laya fetch`, `verify` and `prune`: tasks on a volume of checkpoints. What they do is in crate `volumes`; here are
//! their lines, their signals and where their result is kept.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command};
use service::runtime::Signals;
use volumes::task::{self, Outcome};
use volumes::{Cancel, Phase, Progress, Run, Task, TaskExit};

use super::{CliError, Environment};

/// Where a task container keeps its result.
const RESULT_FILE: &str = "/work/result.json";
/// Names another file.
const RESULT_VARIABLE: &str = "LAYA_RESULT_FILE";
/// A line is said again when nothing was said for so long: the protocol wants one a minute.
const AGAIN: Duration = Duration::from_secs(20);

/// The three words.
pub(super) fn commands() -> [Command; 3] {
    volumes::commands().map(|command| {
        command.arg(
            Arg::new("result-file")
                .long("result-file")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Also write the result here [default: /work/result.json where /work can be written]"),
        )
    })
}

pub(super) fn run(
    word: &str,
    matches: &ArgMatches,
    environment: &Environment,
) -> Result<u8, CliError> {
    let cancel = Cancel::new();
    end_on_signal(cancel.clone())?;
    let lines = Arc::new(Lines::default());
    let (done, repeating) = repeat(Arc::clone(&lines));
    let ear = Arc::clone(&lines);
    let run = Run::new(
        cancel,
        Arc::new(move |progress: &Progress| ear.say(progress)),
    );
    let outcome = match Task::of_matches(word, matches) {
        Ok(task) => task.run(&run),
        Err(error) => Outcome {
            result: task::failure(&error),
            exit: error.exit(),
        },
    };
    drop(done);
    // It ends at once: nothing is sent, and the channel is closed.
    let _ = repeating.join();
    keep(matches, environment, &outcome.result);
    lines.print(&task::result_line(&outcome.result));
    Ok(outcome.exit.code())
}

/// SIGTERM and Ctrl-C end the task where it can go on later; the second one ends the process there and then.
fn end_on_signal(cancel: Cancel) -> Result<(), CliError> {
    let failed =
        |error: std::io::Error| CliError::new(1, format!("cannot wait for signals: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let mut signals = runtime
        .block_on(async { Signals::of_process() })
        .map_err(failed)?;
    std::thread::spawn(move || {
        runtime.block_on(signals.next());
        cancel.cancel();
        runtime.block_on(signals.next());
        std::process::exit(TaskExit::Interrupted.code().into());
    });
    Ok(())
}

/// Lines on stdout, and the last of them.
#[derive(Default)]
struct Lines {
    last: Mutex<Option<(Instant, String)>>,
}

impl Lines {
    fn say(&self, progress: &Progress) {
        self.say_line(task::progress_line(progress));
    }

    fn say_line(&self, line: String) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.print(&line);
        *last = Some((Instant::now(), line));
    }

    /// Whoever reads may have gone; the result is still kept in its file.
    fn print(&self, line: &str) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    fn say_again(&self) {
        let last = self
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match last {
            Some((said, line)) if said.elapsed() >= AGAIN => self.say_line(line),
            None => self.say(&Progress {
                phase: Phase::Prepare,
                ..Progress::default()
            }),
            Some(_) => {}
        }
    }
}

/// Says the last line again while the system does not return: a sync of gigabytes, a tokenizer.
fn repeat(lines: Arc<Lines>) -> (Sender<()>, std::thread::JoinHandle<()>) {
    let (done, waiting) = channel::<()>();
    let thread = std::thread::spawn(move || {
        while waiting.recv_timeout(AGAIN / 4) == Err(RecvTimeoutError::Timeout) {
            lines.say_again();
        }
    });
    (done, thread)
}

/// Keeps the result in a file, so that a lost log costs nothing.
fn keep(matches: &ArgMatches, environment: &Environment, result: &str) {
    let named = matches
        .get_one::<PathBuf>("result-file")
        .cloned()
        .or_else(|| environment.get(RESULT_VARIABLE).map(PathBuf::from));
    match named {
        Some(file) => {
            if let Err(error) = task::write_result(&file, result) {
                eprintln!("laya: cannot write {}: {error}", file.display());
            }
        }
        // A container without a work volume, or somebody's own machine.
        None if !Path::new(RESULT_FILE).parent().is_some_and(Path::is_dir) => {}
        None => {
            let _ = task::write_result(Path::new(RESULT_FILE), result);
        }
    }
}
