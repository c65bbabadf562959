//! The process that `endpoint.json` names. Only one that is proven to be the daemon of this home is ever signalled: its start
//! time is that of the file, its program is `relayd`, and it holds the lock of this home.

use std::path::{Path, PathBuf};

use files::process_start;

/// Looks up the program of a process; a parameter so that tests need no `relayd`.
pub(crate) type ProgramOf<'a> = &'a dyn Fn(u32) -> Option<PathBuf>;

/// A process that a file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// When it started; another process with the same number started at another time.
    pub(crate) start: Option<u64>,
}

impl Process {
    /// Why it is not the one that was meant, or no longer there.
    pub(crate) fn fault(self, program_of: ProgramOf<'_>) -> Option<String> {
        let pid = self.pid;
        match (process_start(pid), self.start) {
            (Some(_), None) => Some(format!(
                "process {pid} is named without its start time, so it may be anything"
            )),
            (Some(now), Some(then)) if now == then => {
                let ours = program_of(pid).is_some_and(|program| is_relayd(&program));
                (!ours).then(|| format!("process {pid} is no relayd"))
            }
            _ => Some(format!("process {pid} is gone")),
        }
    }
}

/// The program that a process runs, as far as it may be asked.
pub(crate) fn program_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}

pub(crate) fn is_relayd(program: &Path) -> bool {
    // A program that was replaced since has ` (deleted)` behind its name.
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    name.split(' ').next() == Some("relayd")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relayd(_: u32) -> Option<PathBuf> {
        Some("/usr/bin/relayd".into())
    }

    #[test]
    fn one_that_ended_is_dead_before_its_parent_has_noticed() {
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let process = Process {
            pid: child.id(),
            start: process_start(child.id()).or(Some(0)),
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while process.fault(&relayd).is_none() {
            assert!(std::time::Instant::now() < deadline, "still alive");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(process.fault(&relayd).is_some());
    }

    #[test]
    fn a_process_is_meant_only_with_its_start_and_its_program() {
        let pid = std::process::id();
        let start = process_start(pid);
        let init = Process {
            pid: 1,
            start: None,
        };
        assert!(init.fault(&relayd).unwrap().contains("may be anything"));
        let own = Process { pid, start };
        assert_eq!(own.fault(&relayd), None);
        assert!(own.fault(&program_of).unwrap().ends_with("is no relayd"));
        assert!(own.fault(&|_| None).unwrap().ends_with("is no relayd"));
        assert!(
            is_relayd(Path::new("/usr/bin/relayd (deleted)"))
                && !is_relayd(Path::new("/bin/relay"))
        );
    }
}
