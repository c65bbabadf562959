//! Clients that share one sequence of tickets, and whoever does something to the cluster meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::learned::Texts;
use crate::programs::until;
use crate::worker::Worker;

/// Clients at once. Below the bound of one Laya server, so that models are asked.
const WORKERS: usize = 12;

/// A load that goes on where it stopped.
pub(crate) struct Load {
    next: AtomicUsize,
    done: AtomicUsize,
    pub(crate) workers: Vec<Worker>,
    began: Instant,
}

/// How far a load is, for who changes the cluster under it.
pub(crate) struct Progress<'a> {
    done: &'a AtomicUsize,
    /// What was done before this stage.
    base: usize,
}

impl Progress<'_> {
    /// Waits until so many requests of this stage were answered.
    pub(crate) fn wait_for(&self, requests: usize) {
        until("the load goes on", || {
            let done = self.done.load(Ordering::Relaxed) - self.base;
            if done >= requests {
                Ok(())
            } else {
                Err(format!("{done} of {requests} requests"))
            }
        });
    }
}

impl Load {
    pub(crate) fn new(urls: &[String], texts: Texts) -> Self {
        let texts = Arc::new(texts);
        let worker = |at| Worker::new(at, urls, texts.clone());
        Self {
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            workers: (0..WORKERS).map(worker).collect(),
            began: Instant::now(),
        }
    }

    /// Sends so many requests, while `meanwhile` runs beside.
    pub(crate) fn run<T>(
        &mut self,
        name: &str,
        requests: usize,
        meanwhile: impl FnOnce(&Progress<'_>) -> T,
    ) -> T {
        let began = Instant::now();
        let base = self.done.load(Ordering::Relaxed);
        let end = base + requests;
        self.next.store(base, Ordering::Relaxed);
        let (next, done) = (&self.next, &self.done);
        let came = std::thread::scope(|scope| {
            for worker in &mut self.workers {
                scope.spawn(move || {
                    loop {
                        let ticket = next.fetch_add(1, Ordering::Relaxed);
                        if ticket >= end {
                            return;
                        }
                        worker.serve(ticket);
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            meanwhile(&Progress { done, base })
        });
        let took = began.elapsed();
        eprintln!(
            "{name}: {requests} requests in {:.1} s, {:.0}/s, {:.1} s since the start",
            took.as_secs_f64(),
            requests as f64 / took.as_secs_f64(),
            self.began.elapsed().as_secs_f64()
        );
        came
    }

    pub(crate) fn took(&self) -> Duration {
        self.began.elapsed()
    }
}
