//! Memory, processor time and file handles of this process, from `/proc`, under the usual names. Where there is no
//! `/proc` they stay 0.

use std::fs;

use prometheus::{Gauge, IntGauge};

use super::Make;

/// Gauges that are read when they are scraped.
#[derive(Debug, Clone)]
pub(super) struct Resources {
    memory: IntGauge,
    processor: Gauge,
    files: IntGauge,
    threads: IntGauge,
}

impl Resources {
    pub(super) fn new(make: &Make<'_>) -> prometheus::Result<Self> {
        Ok(Self {
            memory: make.gauge("process_resident_memory_bytes", "Resident memory in bytes.")?,
            processor: make.float_gauge(
                "process_cpu_seconds_total",
                "User and system time in seconds.",
            )?,
            files: make.gauge("process_open_fds", "Open file handles.")?,
            threads: make.gauge("process_threads", "Threads.")?,
        })
    }

    pub(super) fn refresh(&self) {
        if let Some(seen) = fs::read_to_string("/proc/self/stat")
            .ok()
            .as_deref()
            .and_then(parse)
        {
            let page = i64::try_from(rustix::param::page_size()).unwrap_or(4096);
            let ticks = rustix::param::clock_ticks_per_second();
            self.memory.set(seen.resident_pages.saturating_mul(page));
            self.processor.set(seen.ticks as f64 / ticks as f64);
            self.threads.set(seen.threads);
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            // One of them is the folder that is being read.
            self.files
                .set(i64::try_from(files.count()).unwrap_or(0) - 1);
        }
    }
}

/// What one line of `/proc/self/stat` says (proc(5)).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    ticks: u64,
    threads: i64,
    resident_pages: i64,
}

fn parse(line: &str) -> Option<Stat> {
    // The name of the program, in brackets, may hold anything.
    let fields: Vec<&str> = line
        .get(line.rfind(')')? + 1..)?
        .split_whitespace()
        .collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
    Some(Stat {
        ticks: u64::try_from(number(14)? + number(15)?).ok()?,
        threads: number(20)?,
        resident_pages: number(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_with_an_odd_name() {
        let line = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 30 12 13 14 15 16 5 18 19 20 640 22";
        let expected = Stat {
            ticks: 42,
            threads: 5,
            resident_pages: 640,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("7 (a"), None);
    }
}
