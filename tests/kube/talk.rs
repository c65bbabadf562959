//! The same words to two servers: a real kubectl is run on each, and what it prints and how it ends must be the same.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::kubectl;
use crate::programs::{Ended, run};
use crate::redact::Redaction;

/// One server as kubectl sees it, with a home of its own for what kubectl keeps.
pub(crate) struct Side {
    kubeconfig: PathBuf,
    home: TempDir,
}

impl Side {
    pub(crate) fn new(kubeconfig: PathBuf) -> Self {
        Self {
            kubeconfig,
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// A command that has not been started.
    pub(crate) fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = kubectl(&self.kubeconfig, self.home.path());
        // What editors and shells of a machine are called.
        command
            .env("PATH", "/usr/bin:/bin")
            .env("TMPDIR", self.home.path());
        command.args(arguments);
        command.stdin(std::process::Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        run(&mut self.command(arguments))
    }

    /// Runs a command that must end well, and gives what it printed.
    pub(crate) fn told(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, 0, "kubectl {arguments:?}: {ended:?}");
        ended.out
    }

    /// The object that a command prints.
    pub(crate) fn object(&self, arguments: &[&str]) -> Value {
        let all = [arguments, &["-o", "json"]].concat();
        serde_json::from_str(&self.told(&all)).unwrap()
    }
}

/// Two servers in one conversation, and the files both are given.
pub(crate) struct Talk<'a> {
    pub(crate) real: &'a Side,
    pub(crate) local: &'a Side,
    pub(crate) namespace: &'a str,
    files: TempDir,
    differences: String,
    steps: usize,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(real: &'a Side, local: &'a Side, namespace: &'a str) -> Self {
        Self {
            real,
            local,
            namespace,
            files: tempfile::tempdir().unwrap(),
            differences: String::new(),
            steps: 0,
        }
    }

    /// A file both are given.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A program that edits a file with `sed`.
    pub(crate) fn editor(&self, name: &str, script: &str) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.file(name, &format!("#!/bin/sh\nexec sed -i '{script}' \"$1\"\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(Path::new(&path), mode).unwrap();
        path
    }

    /// Says a command line, split at spaces, to both.
    pub(crate) fn say(&mut self, line: &str, code: i32) -> String {
        self.say_with(line, code, &[])
    }

    /// The same with variables of the environment. Gives what the local server's kubectl printed.
    pub(crate) fn say_with(&mut self, line: &str, code: i32, variables: &[(&str, &str)]) -> String {
        self.steps += 1;
        let mut arguments = vec!["-n", self.namespace];
        arguments.extend(line.split(' '));
        let [real, local] = [self.real, self.local].map(|side| {
            let mut command = side.command(&arguments);
            command.envs(variables.iter().copied());
            run(&mut command)
        });
        let wanted = self.words(self.real, &real);
        let is = self.words(self.local, &local);
        if wanted != is || real.code != code {
            let _ = writeln!(
                self.differences,
                "kubectl {line}: wanted code {code}\n--- real\n{wanted}\n--- local\n{is}"
            );
        }
        local.out
    }

    /// Everything a command printed, without what differs between two servers by nature.
    fn words(&self, side: &Side, ended: &Ended) -> String {
        let redaction = Redaction {
            namespace: self.namespace,
            prefix: None,
        };
        let text = |text: &str| {
            let text = text.replace(side.home.path().to_str().unwrap(), "<home>");
            plain(&redaction.text(&text))
        };
        let out = match serde_json::from_str::<Value>(&ended.out) {
            Ok(object) => format!("{:#}", redaction.redact(&object)),
            Err(_) => text(&ended.out),
        };
        format!("code {}\n{out}\n{}", ended.code, text(&ended.err))
    }

    /// Fails with everything that differed.
    pub(crate) fn end(self) {
        assert!(self.steps > 0);
        assert!(self.differences.is_empty(), "{}", self.differences);
    }
}

/// Columns are as wide as what is in them, times pass, names of temporary files are random, and what kubectl's libraries
/// log beside its own words depends on what the machine had time for: a watch that a deadline of kubectl's own met while
/// it was being opened is logged, one it met a moment later is not.
fn plain(text: &str) -> String {
    let lines = text.lines().filter(|line| !is_cut_watch(line)).map(|line| {
        let words: Vec<_> = line.split_whitespace().map(plain_word).collect();
        match words[..] {
            ["Resource", "Version:", _] => "Resource Version: <version>".to_owned(),
            _ => words.join(" "),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// `E1130 17:57:59.239931   27015 reflector.go:204] "Failed to watch" err="context deadline exceeded" …`.
fn is_cut_watch(line: &str) -> bool {
    line.starts_with('E')
        && line.contains(" reflector.go:")
        && line.contains("\"Failed to watch\" err=\"context deadline exceeded\"")
}

fn plain_word(word: &str) -> &str {
    let is_random = |after: &str| word.contains(after) && word.contains("<home>");
    match word {
        _ if is_age(word) => "<age>",
        _ if is_time(word) => "<time>",
        _ if is_random("/LIVE-") => "<live>",
        _ if is_random("/MERGED-") => "<merged>",
        _ if is_random("/kubectl-edit-") => "<edited>",
        _ => word,
    }
}

/// `0s`, `17s`, `2m5s`.
fn is_age(word: &str) -> bool {
    word.ends_with('s')
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || "ms".contains(c))
}

/// `2026-11-30T17:57:59Z`, in quotes or not; `2026-11-30`, `17:57:59.239931772` and `+0000` of a diff's head.
fn is_time(word: &str) -> bool {
    let word = word.trim_matches('"');
    let known = |c: char| c.is_ascii_digit() || "-:TZ.+".contains(c);
    let parts = word.split(['-', ':']).count();
    word.len() > 4 && word.chars().all(known) && (parts >= 3 || word == "+0000")
}
