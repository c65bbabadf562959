//! The clock of a task: its deadline, the silence of its source, its speed, and when progress is to be said. Shared with
//! the connection, which looks at it while it waits for bytes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::TaskError;
use crate::error::SourceFault;
use crate::request::Limits;
use crate::run::{Phase, Progress, Run, Step};

/// Progress is said at most so often while bytes move.
const MOVING: Duration = Duration::from_millis(500);
/// And at least so often when they do not.
const WAITING: Duration = Duration::from_secs(15);
/// Share of the work that is done once every byte is here.
const FETCHED: f64 = 0.95;

pub(crate) struct Watch {
    run: Run,
    limits: Limits,
    began: Instant,
    meter: Mutex<Meter>,
}

struct Meter {
    now: Progress,
    said: Instant,
    /// Bytes that moved since this phase began, which are less than those that are here when a part is gone on with.
    moved: u64,
    since: Instant,
    source: Option<Listening>,
}

/// A source that is waited for.
struct Listening {
    what: String,
    heard: Instant,
    window: Instant,
    in_window: u64,
}

impl Watch {
    pub(crate) fn new(run: &Run, limits: Limits) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            run: run.clone(),
            limits,
            began: now,
            meter: Mutex::new(Meter {
                now: Progress::default(),
                said: now,
                moved: 0,
                since: now,
                source: None,
            }),
        })
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A step was done.
    pub(crate) fn passed(&self, step: &Step) -> Result<(), TaskError> {
        self.run.points.passed(step)
    }

    /// Whether to go on; says progress where it is time. To be called at least once a second.
    pub(crate) fn check(&self) -> Result<(), TaskError> {
        if self.run.cancel.is_cancelled() {
            return Err(TaskError::Interrupted);
        }
        if let Some(deadline) = self.limits.deadline
            && self.began.elapsed() >= deadline
        {
            return Err(TaskError::DeadlineExceeded { deadline });
        }
        let mut meter = self.meter();
        if let Some(source) = &mut meter.source {
            source.check(&self.limits)?;
        }
        let said = meter.said;
        self.say_after(meter, said, WAITING);
        Ok(())
    }

    /// Another phase begins: `bytes` of `total` are here.
    pub(crate) fn phase(&self, phase: Phase, bytes: u64, total: u64) {
        let mut meter = self.meter();
        meter.now = Progress {
            phase,
            bytes,
            total,
            ..Progress::default()
        };
        (meter.moved, meter.since) = (0, Instant::now());
        self.say(meter);
    }

    /// Another file is under way.
    pub(crate) fn file(&self, path: &str) {
        self.meter().now.file = Some(path.to_owned());
    }

    /// So many bytes more are done.
    pub(crate) fn moved(&self, bytes: u64) {
        let mut meter = self.meter();
        meter.now.bytes += bytes;
        meter.moved += bytes;
        let said = meter.said;
        self.say_after(meter, said, MOVING);
    }

    /// Bytes that were counted turned out to be no good.
    pub(crate) fn lost(&self, bytes: u64) {
        let mut meter = self.meter();
        meter.now.bytes = meter.now.bytes.saturating_sub(bytes);
    }

    /// A source is asked for something: its silence counts from now on.
    pub(crate) fn listen(&self, what: &str) {
        let now = Instant::now();
        self.meter().source = Some(Listening {
            what: what.to_owned(),
            heard: now,
            window: now,
            in_window: 0,
        });
    }

    /// The source gave so many bytes.
    pub(crate) fn heard(&self, bytes: u64) {
        if let Some(source) = &mut self.meter().source {
            source.heard = Instant::now();
            source.in_window += bytes;
        }
    }

    /// Nothing is expected of a source.
    pub(crate) fn hang_up(&self) {
        self.meter().source = None;
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say_after(&self, meter: MutexGuard<'_, Meter>, said: Instant, pause: Duration) {
        if said.elapsed() >= pause {
            self.say(meter);
        }
    }

    fn say(&self, mut meter: MutexGuard<'_, Meter>) {
        meter.said = Instant::now();
        let progress = meter.progress();
        // The listener may take its time; the connection must not wait for it.
        drop(meter);
        (self.run.progress)(&progress);
    }
}

impl Meter {
    fn progress(&self) -> Progress {
        let mut progress = self.now.clone();
        let share = if progress.total == 0 {
            0.0
        } else {
            (progress.bytes as f64 / progress.total as f64).min(1.0)
        };
        progress.done = match progress.phase {
            Phase::Prepare => 0.0,
            Phase::Fetch => share * FETCHED,
            Phase::Publish => FETCHED,
            Phase::Verify | Phase::Prune => share,
        };
        let seconds = self.since.elapsed().as_secs_f64();
        if self.moved > 0 && seconds > 0.0 && progress.total > 0 {
            let left = progress.total.saturating_sub(progress.bytes);
            progress.eta_seconds = Some(left as f64 * seconds / self.moved as f64);
        }
        progress
    }
}

impl Listening {
    fn check(&mut self, limits: &Limits) -> Result<(), TaskError> {
        let stopped = |why| {
            Err(TaskError::source(
                SourceFault::Interrupted,
                self.what.clone(),
                why,
            ))
        };
        if self.heard.elapsed() >= limits.silence {
            let seconds = limits.silence.as_secs_f64();
            return stopped(format!("no bytes for {seconds} s; it is tried again"));
        }
        let window = self.window.elapsed();
        if window < limits.silence {
            return Ok(());
        }
        let speed = self.in_window as f64 / window.as_secs_f64();
        if speed < limits.min_bytes_per_second as f64 {
            return stopped(format!(
                "{speed:.0} bytes per second, the limit is {}; use a faster source, or lower the limit",
                limits.min_bytes_per_second
            ));
        }
        (self.window, self.in_window) = (Instant::now(), 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cancel;

    fn limits(silence: Duration) -> Limits {
        Limits {
            silence,
            ..Limits::default()
        }
    }

    #[test]
    fn the_switch_comes_before_the_deadline_and_both_end_it() {
        let cancel = Cancel::new();
        let run = Run::new(cancel.clone(), Arc::new(|_| {}));
        let over = Limits {
            deadline: Some(Duration::ZERO),
            ..Limits::default()
        };
        let watch = Watch::new(&run, over);
        assert!(matches!(
            watch.check(),
            Err(TaskError::DeadlineExceeded { .. })
        ));
        cancel.cancel();
        assert!(matches!(watch.check(), Err(TaskError::Interrupted)));
    }

    #[test]
    fn a_silent_source_is_given_up_and_one_that_was_hung_up_on_is_not() {
        let watch = Watch::new(&Run::quiet(), limits(Duration::ZERO));
        assert!(watch.check().is_ok());
        watch.listen("model.safetensors");
        let error = watch.check().unwrap_err();
        assert!(error.to_string().contains("no bytes for 0 s"), "{error}");
        watch.hang_up();
        assert!(watch.check().is_ok());
    }

    #[test]
    fn a_slow_source_is_given_up_at_the_end_of_a_window() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let Some(earlier) = now.checked_sub(second) else {
            return;
        };
        let listening = |in_window| Listening {
            what: "x".to_owned(),
            heard: now,
            window: earlier,
            in_window,
        };
        let limits = limits(second);
        assert!(listening(500).check(&limits).is_err());
        let mut fast = listening(5000);
        assert!(fast.check(&limits).is_ok());
        assert_eq!(fast.in_window, 0, "a new window began");
    }

    #[test]
    fn progress_is_of_the_whole() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&heard);
        let run = Run::new(
            Cancel::new(),
            Arc::new(move |p: &Progress| ear.lock().unwrap().push(p.clone())),
        );
        let watch = Watch::new(&run, Limits::default());
        watch.phase(Phase::Fetch, 50, 100);
        watch.moved(50);
        watch.phase(Phase::Publish, 100, 100);
        let done: Vec<f64> = heard.lock().unwrap().iter().map(|p| p.done).collect();
        assert_eq!(done, [0.475, 0.95]);
    }
}
