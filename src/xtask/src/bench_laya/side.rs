//! A process under measurement, seen from outside: ours or the original, in one precision.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde::de::DeserializeOwned;

use super::child::{Ended, Ready, Timed};
use crate::command::root;

/// Whose engine, in which precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    OursF32,
    OursInt8,
    OriginalF32,
    OriginalBf16,
}

impl Kind {
    /// Who takes part.
    pub(super) const fn all(with_original: bool) -> &'static [Self] {
        if with_original {
            &[
                Self::OursF32,
                Self::OriginalF32,
                Self::OursInt8,
                Self::OriginalBf16,
            ]
        } else {
            &[Self::OursF32, Self::OursInt8]
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::OursF32 => "ours f32",
            Self::OursInt8 => "ours int8",
            Self::OriginalF32 => "original f32",
            Self::OriginalBf16 => "original bf16",
        }
    }

    fn command(self, python: Option<&Path>) -> Result<Command, String> {
        let ours = |precision: &str| {
            let here = std::env::current_exe()
                .map_err(|error| format!("cannot find this program: {error}"))?;
            let mut command = Command::new(here);
            command.args(["bench-laya-child", "--precision", precision]);
            Ok(command)
        };
        let original = |amp: &str| {
            let mut command = Command::new(python.ok_or("the original needs an interpreter")?);
            command.arg(root().join("tests/bench/laya_original.py"));
            command.env("LAYA_CPU_AMP", amp).env("HF_HUB_OFFLINE", "1");
            Ok(command)
        };
        match self {
            Self::OursF32 => ours("f32"),
            Self::OursInt8 => ours("int8"),
            Self::OriginalF32 => original(""),
            Self::OriginalBf16 => original("bf16"),
        }
    }
}

/// A process that has loaded its checkpoint.
pub(super) struct Running {
    kind: Kind,
    child: Child,
    /// Gone once the process is asked to end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    ready: Ready,
    start_ms: f64,
}

impl Running {
    /// Starts the process and waits until it has loaded.
    pub(super) fn start(
        kind: Kind,
        python: Option<&Path>,
        dir: &Path,
        cases: &Path,
        threads: usize,
    ) -> Result<Self, String> {
        let mut command = kind.command(python)?;
        command.arg("--dir").arg(dir).arg("--cases").arg(cases);
        command.args(["--threads", &threads.to_string()]);
        command.env("OMP_NUM_THREADS", threads.to_string());
        let begun = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", kind.name()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("a child without output")?;
        let mut output = BufReader::new(output);
        let ready = told(kind, &mut output);
        if ready.is_err() {
            drop(child.kill());
            drop(child.wait());
        }
        Ok(Self {
            kind,
            child,
            input,
            output,
            ready: ready?,
            start_ms: begun.elapsed().as_secs_f64() * 1e3,
        })
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) const fn ready(&self) -> &Ready {
        &self.ready
    }

    /// From starting the process to a loaded checkpoint, milliseconds.
    pub(super) const fn start_ms(&self) -> f64 {
        self.start_ms
    }

    /// One call of a case.
    pub(super) fn ask(&mut self, case: &str) -> Result<Timed, String> {
        let input = self.input.as_mut().ok_or("asked after its end")?;
        writeln!(input, "{case}")
            .and_then(|()| input.flush())
            .map_err(|error| format!("cannot ask {}: {error}", self.kind.name()))?;
        told(self.kind, &mut self.output)
    }

    /// Lets the process end; the most memory it ever held, KiB.
    pub(super) fn end(mut self) -> Result<u64, String> {
        drop(self.input.take());
        let ended: Ended = told(self.kind, &mut self.output)?;
        Ok(ended.peak_kib)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn told<T: DeserializeOwned>(kind: Kind, output: &mut impl BufRead) -> Result<T, String> {
    let mut line = String::new();
    let count = output
        .read_line(&mut line)
        .map_err(|error| format!("cannot hear {}: {error}", kind.name()))?;
    if count == 0 {
        return Err(format!(
            "{} ended without an answer; its reason is above",
            kind.name()
        ));
    }
    serde_json::from_str(&line).map_err(|error| format!("{} said {line:?}: {error}", kind.name()))
}
