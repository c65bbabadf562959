//! Passes over rows of many requests (wire.md 13.2): one queue and one thread per loaded weights. Rows run in the order
//! of arrival; a job that does not fit into one pass goes behind those that came meanwhile, so that no job keeps others
//! waiting for longer than one pass. The queue is as long as requests are admitted; it has no bound of its own.

mod plan;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use laya::{EncodedRow, RowOutput, RunError, TokenRow};
use tokio::sync::oneshot;

use plan::{Waiting, next_pass};

/// What turns rows into numbers. A pass, once begun, runs to its end.
pub trait RunRows: Send + Sync + 'static {
    /// One pass.
    ///
    /// # Errors
    /// When a row is not one that the model can read.
    fn run(&self, rows: &[TokenRow<'_>]) -> Result<Vec<RowOutput>, RunError>;
}

/// Bounds of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassLimits {
    /// Most tokens, except for a single row that is longer.
    pub tokens: usize,
    /// How long a pass waits for more rows after the first.
    pub window: Duration,
}

/// What is told about each pass, for metrics.
pub type PassSeen = Arc<dyn Fn(PassReport) + Send + Sync>;

/// One pass that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassReport {
    /// Rows in it.
    pub rows: usize,
    /// Tokens in it.
    pub tokens: usize,
}

/// The numbers of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// One per row, in order.
    pub outputs: Vec<RowOutput>,
    /// From arrival to the start of the first row.
    pub waited: Duration,
}

/// Why a job has no numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Its deadline passed before its last row began.
    #[error("deadline exceeded")]
    Expired,
    /// The engine refused the rows of the pass.
    #[error("a pass failed: {0}")]
    Run(RunError),
    /// The engine panicked in the pass.
    #[error("a pass panicked")]
    Panicked,
    /// The weights are unloaded.
    #[error("the engine has stopped")]
    Stopped,
}

struct Job {
    rows: Vec<EncodedRow>,
    outputs: Vec<RowOutput>,
    arrived: Instant,
    started: Option<Instant>,
    deadline: Instant,
    reply: oneshot::Sender<Result<Ran, BatchError>>,
}

impl Job {
    fn waiting_rows(&self) -> usize {
        self.rows.len() - self.outputs.len()
    }

    fn finish(self) {
        let waited = self.started.unwrap_or(self.arrived) - self.arrived;
        let outputs = self.outputs;
        // A client that went away does not hear it.
        let _ = self.reply.send(Ok(Ran { outputs, waited }));
    }

    fn fail(self, error: BatchError) {
        let _ = self.reply.send(Err(error));
    }
}

impl Waiting for Job {
    fn lengths(&self) -> impl Iterator<Item = usize> {
        self.rows[self.outputs.len()..]
            .iter()
            .map(|row| row.ids.len())
    }
}

struct Queue {
    jobs: VecDeque<Job>,
    /// Rows that wait and belong to jobs of which others run.
    held_rows: usize,
    open: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Between two statements the queue is whole, whoever panicked.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queue of one set of weights. Dropping it ends its thread after the pass that runs.
pub struct Batcher {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Batcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batcher")
            .field("waiting", &self.waiting_rows())
            .finish()
    }
}

impl Batcher {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        model: Arc<dyn RunRows>,
        limits: PassLimits,
        seen: PassSeen,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue {
                jobs: VecDeque::new(),
                held_rows: 0,
                open: true,
            }),
            changed: Condvar::new(),
        });
        let worker = Worker {
            shared: Arc::clone(&shared),
            model,
            limits,
            seen,
        };
        thread::Builder::new()
            .name("laya-passes".to_owned())
            .spawn(move || worker.work())?;
        Ok(Self { shared })
    }

    /// Runs rows and gives back their numbers. Cancel safe: rows that have not begun are dropped with the future.
    ///
    /// # Errors
    /// [`BatchError`].
    pub async fn run(&self, rows: Vec<EncodedRow>, deadline: Instant) -> Result<Ran, BatchError> {
        if rows.is_empty() {
            return Ok(Ran {
                outputs: Vec::new(),
                waited: Duration::ZERO,
            });
        }
        let (reply, answer) = oneshot::channel();
        let outputs = Vec::with_capacity(rows.len());
        self.shared.lock().jobs.push_back(Job {
            rows,
            outputs,
            arrived: Instant::now(),
            started: None,
            deadline,
            reply,
        });
        self.shared.changed.notify_one();
        answer.await.unwrap_or(Err(BatchError::Stopped))
    }

    /// Rows that wait.
    #[must_use]
    pub fn waiting_rows(&self) -> usize {
        let queue = self.shared.lock();
        queue.held_rows + queue.jobs.iter().map(Job::waiting_rows).sum::<usize>()
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.shared.lock().open = false;
        self.shared.changed.notify_one();
    }
}

struct Worker {
    shared: Arc<Shared>,
    model: Arc<dyn RunRows>,
    limits: PassLimits,
    seen: PassSeen,
}

impl Worker {
    fn work(&self) {
        while let Some(pass) = self.next() {
            self.pass(pass);
        }
        let left = std::mem::take(&mut self.shared.lock().jobs);
        for job in left {
            job.fail(BatchError::Stopped);
        }
    }

    /// The jobs of the next pass, each with how many of its rows; none once the queue is closed.
    fn next(&self) -> Option<Vec<(Job, usize)>> {
        let mut queue = self.shared.lock();
        loop {
            if !queue.open {
                return None;
            }
            drop_dead(&mut queue.jobs, Instant::now());
            let first = queue
                .jobs
                .front()
                .map(|first| first.arrived + self.limits.window);
            let wait = first.map(|until| until.saturating_duration_since(Instant::now()));
            match wait {
                Some(Duration::ZERO) => {
                    let pass = next_pass(&mut queue.jobs, self.limits.tokens);
                    queue.held_rows = pass
                        .iter()
                        .map(|(job, count)| job.waiting_rows() - count)
                        .sum();
                    return Some(pass);
                }
                Some(wait) => {
                    let woken = self.shared.changed.wait_timeout(queue, wait);
                    queue = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => {
                    queue = self
                        .shared
                        .changed
                        .wait(queue)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    fn pass(&self, mut pass: Vec<(Job, usize)>) {
        let now = Instant::now();
        for (job, _) in &mut pass {
            job.started.get_or_insert(now);
        }
        let rows: Vec<TokenRow<'_>> = pass
            .iter()
            .flat_map(|(job, count)| job.rows[job.outputs.len()..].iter().take(*count))
            .map(EncodedRow::as_tokens)
            .collect();
        let report = PassReport {
            rows: rows.len(),
            tokens: rows.iter().map(|row| row.ids.len()).sum(),
        };
        // The model is not left half-changed by a panic: a pass only writes buffers of its own.
        let ran = catch_unwind(AssertUnwindSafe(|| self.model.run(&rows)));
        (self.seen)(report);
        let error = match ran {
            Ok(Ok(outputs)) if outputs.len() == report.rows => return self.hand_out(pass, outputs),
            Ok(Ok(_)) | Err(_) => BatchError::Panicked,
            Ok(Err(error)) => BatchError::Run(error),
        };
        self.shared.lock().held_rows = 0;
        for (job, _) in pass {
            job.fail(error.clone());
        }
    }

    fn hand_out(&self, pass: Vec<(Job, usize)>, outputs: Vec<RowOutput>) {
        let mut outputs = outputs.into_iter();
        let mut queue = self.shared.lock();
        queue.held_rows = 0;
        for (mut job, count) in pass {
            job.outputs.extend(outputs.by_ref().take(count));
            if job.waiting_rows() == 0 {
                job.finish();
            } else {
                queue.jobs.push_back(job);
            }
        }
    }
}

/// Drops jobs whose client went away, and fails those whose deadline passed.
fn drop_dead(jobs: &mut VecDeque<Job>, now: Instant) {
    if jobs
        .iter()
        .all(|job| !job.reply.is_closed() && job.deadline > now)
    {
        return;
    }
    for job in std::mem::take(jobs) {
        if job.reply.is_closed() {
            continue;
        }
        if job.deadline <= now {
            job.fail(BatchError::Expired);
        } else {
            jobs.push_back(job);
        }
    }
}

#[cfg(test)]
mod tests;
