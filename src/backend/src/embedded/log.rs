//! The last lines that a server or a task would have written to its output.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Most bytes that are kept of one (control-plane 8.1).
const KEPT: usize = 64 << 10;
/// Longest line; the rest is cut.
const LINE: usize = 4 << 10;
/// Bytes of the tail that an observation carries.
pub(super) const TAIL: usize = 4 << 10;

/// Lines, the newest last.
#[derive(Debug, Default)]
pub(super) struct Log(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    bytes: usize,
    lines: VecDeque<String>,
}

impl Log {
    /// One more line; line breaks within it become more.
    pub(super) fn say(&self, text: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in text.lines() {
            let line = line[..line.floor_char_boundary(LINE)].to_owned();
            kept.bytes += line.len() + 1;
            kept.lines.push_back(line);
            while kept.bytes > KEPT
                && let Some(gone) = kept.lines.pop_front()
            {
                kept.bytes -= gone.len() + 1;
            }
        }
    }

    /// The last whole lines, at most `limit` bytes.
    pub(super) fn tail(&self, limit: usize) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = limit;
        let mut from = kept.lines.len();
        while from > 0 && kept.lines[from - 1].len() < left {
            from -= 1;
            left -= kept.lines[from].len() + 1;
        }
        kept.lines
            .iter()
            .skip(from)
            .flat_map(|line| [line.as_str(), "\n"])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_end_in_whole_lines_and_never_more_than_its_bound() {
        let log = Log::default();
        log.say("one\ntwo");
        assert_eq!(log.tail(100), "one\ntwo\n");
        assert_eq!(log.tail(8), "one\ntwo\n");
        assert_eq!(log.tail(7), "two\n");
        assert_eq!(log.tail(0), "");
        log.say(&"é".repeat(LINE));
        assert_eq!(log.tail(KEPT).lines().last().unwrap().len(), LINE);
        for number in 0..10_000 {
            log.say(&format!("line {number:05}"));
        }
        let tail = log.tail(usize::MAX);
        assert!(
            tail.len() <= KEPT && tail.ends_with("line 09999\n"),
            "{}",
            tail.len()
        );
    }
}
