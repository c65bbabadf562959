//! Outcomes that could not be delivered (agent.md 10.3): `outcomes.jsonl`, one report a line, oldest first, at most 1000
//! lines or 4 MiB. They go out whenever a router answers, oldest first, within a time that nobody notices; what a router
//! refuses for good is dropped and said, what it cannot take now stays. A line may go out twice: routers know it by
//! decision and attempt.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use files::{Lock, PRIVATE, ReadError, lock_path};
use jiff::Timestamp;
use routing::outcome::OutcomeReport;
use serde::Deserialize;
use serde::de::IgnoredAny;
use ureq::http::Method;

use crate::client::{Asked, Client, Question};
use crate::error::CliError;
use crate::output::counted;

/// Most lines that wait.
const MAX_LINES: usize = 1000;
/// Most bytes that wait.
const MAX_BYTES: usize = 4 << 20;
/// Most bytes that are read: somebody else may have written more than we do.
const MAX_READ: u64 = 4 * MAX_BYTES as u64;
/// What some editors put in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Most time one command spends on delivery.
const BUDGET: Duration = Duration::from_millis(200);
/// How long one that has an outcome waits for others that write.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most dropped lines that are named one by one.
const MAX_NAMED: usize = 3;

/// The file of waiting outcomes.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    path: PathBuf,
}

/// What became of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Delivery {
    /// The router has it.
    Taken,
    /// It never will; says why.
    Refused(String),
    /// Not now.
    Later,
}

/// What is needed of a line; the rest is the router's business, which may know more fields than we do.
#[derive(Debug, Deserialize)]
struct Line {
    decision_id: String,
    attempt: u64,
}

impl Spool {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Puts a report behind the others; the oldest go when there are too many. Says what was dropped.
    ///
    /// # Errors
    /// When the file cannot be locked or written; what waited before waits on.
    #[cfg_attr(not(test), expect(dead_code, reason = "the agent reports outcomes"))]
    pub(crate) fn add(&self, report: &OutcomeReport) -> Result<Vec<String>, CliError> {
        let line = serde_json::to_string(report)
            .map_err(|error| CliError::file(&self.path, format!("an outcome: {error}")))?;
        if let Some(folder) = self.path.parent() {
            files::make_private_folder(folder).map_err(|error| CliError::file(folder, error))?;
        }
        let lock = lock_path(&self.path);
        let _lock = Lock::take_within(&lock, PATIENCE)
            .map_err(|error| CliError::file(&lock, error))?
            .ok_or_else(|| CliError::file(&self.path, "another process is changing it"))?;
        let mut notes = Vec::new();
        let mut lines = self.read(&mut notes)?;
        lines.push_back(line);
        let dropped = bound(&mut lines);
        if dropped > 0 {
            notes.push(format!(
                "{dropped} of the oldest outcomes in {} were dropped: at most {MAX_LINES} lines or {MAX_BYTES} bytes wait for a router",
                self.path.display()
            ));
        }
        self.write(&lines)?;
        Ok(notes)
    }

    /// Sends what waits. Returns what a person should know; that something is delivered is none of it.
    pub(crate) fn deliver(&self, client: &Client) -> Vec<String> {
        let began = Instant::now();
        self.deliver_by(|line| {
            let left = BUDGET.saturating_sub(began.elapsed());
            if left.is_zero() {
                Delivery::Later
            } else {
                send(client, line, left)
            }
        })
    }

    fn deliver_by(&self, mut send: impl FnMut(&str) -> Delivery) -> Vec<String> {
        if !std::fs::metadata(&self.path).is_ok_and(|file| file.len() > 0) {
            return Vec::new();
        }
        // Whoever holds the lock delivers, or has an outcome of its own; neither is worth a wait.
        let Ok(Some(_lock)) = Lock::try_take(&lock_path(&self.path)) else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        let mut lines = match self.read(&mut notes) {
            Ok(lines) => lines,
            Err(error) => return vec![error.to_string()],
        };
        let before = lines.len();
        let mut refused = Vec::new();
        while let Some(line) = lines.front() {
            match send(line) {
                Delivery::Later => break,
                Delivery::Taken => {}
                Delivery::Refused(why) => refused.push(named(line, &why)),
            }
            lines.pop_front();
        }
        if lines.len() != before
            && let Err(error) = self.write(&lines)
        {
            // They go out again, which the router takes as the same.
            notes.push(error.to_string());
        }
        let more = refused.len().saturating_sub(MAX_NAMED);
        notes.extend(refused.into_iter().take(MAX_NAMED));
        if more > 0 {
            notes.push(format!(
                "{more} more waiting outcomes were refused by the router and dropped"
            ));
        }
        notes
    }

    /// What waits; the caller holds the lock. Damaged lines are moved into a file beside it and said.
    fn read(&self, notes: &mut Vec<String>) -> Result<VecDeque<String>, CliError> {
        let bytes = match read_bytes(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(VecDeque::new()),
            Err(error @ ReadError::TooLarge { .. }) => {
                let aside = self.aside();
                std::fs::rename(&self.path, &aside)
                    .map_err(|error| CliError::file(&self.path, error))?;
                notes.push(format!(
                    "{} {error}; it was kept as {}, and its outcomes are not delivered",
                    self.path.display(),
                    aside.display()
                ));
                return Ok(VecDeque::new());
            }
            Err(error) => return Err(CliError::file(&self.path, error)),
        };
        let (mut whole, mut damaged) = (VecDeque::new(), Vec::new());
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            // Line by line: a byte that is no text damages one outcome, not all.
            match std::str::from_utf8(line) {
                Ok("") => {}
                Ok(line) if serde_json::from_str::<Line>(line).is_ok() => {
                    whole.push_back(line.to_owned());
                }
                _ => damaged.push(line),
            }
        }
        if !damaged.is_empty() {
            let aside = self.aside();
            let mut kept = damaged.join(&b'\n');
            kept.push(b'\n');
            files::write_whole(&aside, &kept, PRIVATE)
                .map_err(|error| CliError::file(&aside, error))?;
            notes.push(format!(
                "{} of {} kept in {}, not delivered",
                counted(damaged.len() as u64, "damaged line", "damaged lines"),
                self.path.display(),
                aside.display()
            ));
            self.write(&whole)?;
        }
        Ok(whole)
    }

    /// A name for what is damaged, which nothing has yet.
    fn aside(&self) -> PathBuf {
        let mut seconds = Timestamp::now().as_second();
        loop {
            let path = files::set_aside_path(&self.path, seconds);
            if path.symlink_metadata().is_err() {
                return path;
            }
            seconds += 1;
        }
    }

    fn write(&self, lines: &VecDeque<String>) -> Result<(), CliError> {
        let mut text = String::new();
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        files::write_whole(&self.path, text.as_bytes(), PRIVATE)
            .map_err(|error| CliError::file(&self.path, error))
    }
}

/// Everything in a regular file of bounded length.
fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let (file, _) = files::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_READ + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_READ {
        return Err(ReadError::TooLarge {
            size: bytes.len() as u64,
            limit: MAX_READ,
        });
    }
    Ok(bytes)
}

/// Takes the oldest away until the rest fits; tells how many those were.
fn bound(lines: &mut VecDeque<String>) -> usize {
    let mut bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    let mut dropped = 0;
    while lines.len() > MAX_LINES || bytes > MAX_BYTES {
        let Some(oldest) = lines.pop_front() else {
            break;
        };
        bytes -= oldest.len() + 1;
        dropped += 1;
    }
    dropped
}

fn named(line: &str, why: &str) -> String {
    match serde_json::from_str::<Line>(line) {
        Ok(Line {
            decision_id,
            attempt,
        }) => {
            format!("the outcome of decision {decision_id}, attempt {attempt}, was dropped: {why}")
        }
        Err(_) => format!("a waiting outcome was dropped: {why}"),
    }
}

/// Sends one line. What can never succeed is refused for good; a wrong key, for one, can be put right.
fn send(client: &Client, line: &str, within: Duration) -> Delivery {
    let question = Question::new(Method::POST, "/v1/outcomes")
        .bytes(line.as_bytes().to_vec())
        .within(within);
    match client.ask::<IgnoredAny>(question, "record of an outcome") {
        Asked::Answered(_) => Delivery::Taken,
        Asked::Refused(problem) if matches!(problem.status, 400 | 404 | 409 | 413 | 422) => {
            Delivery::Refused(problem.detail.clone())
        }
        Asked::Refused(_) | Asked::Unanswered(_) => Delivery::Later,
    }
}

#[cfg(test)]
mod tests {
    use routing::outcome::AttemptResult;
    use uuid::Uuid;

    use super::*;

    fn report(attempt: u32) -> OutcomeReport {
        OutcomeReport {
            decision_id: Uuid::nil(),
            attempt,
            result: AttemptResult::Success,
            tests_passed: None,
            tool_failures: 0,
            corrected: None,
            is_final: true,
            usage: None,
            provider_error: None,
        }
    }

    fn attempts(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<Line>(line).unwrap().attempt)
            .collect()
    }

    fn spool(folder: &Path) -> Spool {
        Spool::new(folder.join("laya/outcomes.jsonl"))
    }

    #[test]
    fn what_is_added_waits_in_order_and_can_be_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(folder.path());
        assert_eq!(spool.deliver_by(|_| panic!("nothing waits")), [""; 0]);
        for attempt in 1..=3 {
            assert_eq!(spool.add(&report(attempt)).unwrap(), [""; 0]);
        }
        assert_eq!(attempts(&spool.path), [1, 2, 3]);
        let mut seen = Vec::new();
        let notes = spool.deliver_by(|line| {
            seen.push(serde_json::from_str::<OutcomeReport>(line).unwrap());
            Delivery::Taken
        });
        assert_eq!(notes, [""; 0]);
        assert_eq!(seen, [report(1), report(2), report(3)]);
        assert_eq!(attempts(&spool.path), [0; 0]);
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(folder.path());
        std::fs::create_dir_all(folder.path().join("laya")).unwrap();
        let lines: Vec<_> = (1..=1002)
            .map(|attempt| serde_json::to_string(&report(attempt)).unwrap())
            .collect();
        std::fs::write(&spool.path, lines.join("\n")).unwrap();
        let notes = spool.add(&report(1003)).unwrap();
        assert!(
            notes[0].starts_with("3 of the oldest outcomes"),
            "{notes:?}"
        );
        let left = attempts(&spool.path);
        assert_eq!((left.len(), left[0], left[999]), (1000, 4, 1003));

        let mut long: VecDeque<_> = (0..5).map(|_| "x".repeat(1 << 20)).collect();
        assert_eq!(bound(&mut long), 2, "4 MiB, line ends counted");
    }

    #[test]
    fn what_is_refused_for_good_goes_and_what_cannot_be_now_stays() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(folder.path());
        for attempt in 1..=7 {
            spool.add(&report(attempt)).unwrap();
        }
        let notes =
            spool.deliver_by(
                |line| match serde_json::from_str::<Line>(line).unwrap().attempt {
                    1 => Delivery::Taken,
                    7 => Delivery::Later,
                    attempt => Delivery::Refused(format!("no {attempt}")),
                },
            );
        assert_eq!(attempts(&spool.path), [7]);
        assert_eq!(notes.len(), 4, "{notes:?}");
        assert!(
            notes[0].ends_with("attempt 2, was dropped: no 2") && notes[3].starts_with("2 more"),
            "{notes:?}"
        );
    }

    #[test]
    fn damaged_lines_are_kept_aside_and_the_others_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(folder.path());
        spool.add(&report(1)).unwrap();
        let mut text = std::fs::read_to_string(&spool.path).unwrap();
        text.push_str(
            "{\"decision_id\":\"0\",\"att\n\n{\"decision_id\":\"x\",\"attempt\":2,\"newer\":1}\n",
        );
        std::fs::write(&spool.path, text).unwrap();
        let notes = spool.deliver_by(|_| Delivery::Later);
        assert!(notes[0].starts_with("1 damaged line of "), "{notes:?}");
        assert_eq!(
            attempts(&spool.path),
            [1, 2],
            "unknown fields are the router's business"
        );
        let aside = notes[0].split(" kept in ").nth(1).unwrap();
        let aside = aside.split(", not ").next().unwrap();
        assert_eq!(
            std::fs::read_to_string(aside).unwrap(),
            "{\"decision_id\":\"0\",\"att\n"
        );
    }

    #[test]
    fn a_byte_that_is_no_text_damages_its_line_alone() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(folder.path());
        for attempt in 1..=3 {
            spool.add(&report(attempt)).unwrap();
        }
        let mut bytes = BYTE_ORDER_MARK.to_vec();
        bytes.extend(std::fs::read(&spool.path).unwrap());
        let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        bytes[second + 3] = 0xff;
        std::fs::write(&spool.path, &bytes).unwrap();
        let notes = spool.deliver_by(|_| Delivery::Later);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("1 damaged line of "), "{notes:?}");
        assert_eq!(attempts(&spool.path), [1, 3]);
        let aside = notes[0].split(" kept in ").nth(1).unwrap();
        let kept = std::fs::read(aside.split(", not ").next().unwrap()).unwrap();
        let end = second + kept.len();
        assert_eq!(kept, bytes[second..end], "as it was, to the byte");
        assert!(kept.ends_with(b"\n") && kept.contains(&0xff));
    }

    #[test]
    fn a_file_that_is_too_long_is_set_aside_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(folder.path());
        spool.add(&report(1)).unwrap();
        let file = std::fs::File::options().write(true).open(&spool.path);
        file.unwrap().set_len(MAX_READ + 1).unwrap();
        let notes = spool.deliver_by(|_| panic!("nothing is read"));
        assert!(notes[0].contains("; it was kept as "), "{notes:?}");
        assert!(!spool.path.exists());
    }

    #[test]
    fn whoever_holds_the_lock_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(folder.path());
        spool.add(&report(1)).unwrap();
        let _held = Lock::try_take(&lock_path(&spool.path)).unwrap().unwrap();
        assert_eq!(spool.deliver_by(|_| panic!("somebody else does")), [""; 0]);
    }
}
