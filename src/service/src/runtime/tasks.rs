//! The supervised tasks of a process. None of them may end while the process runs: one that does, or that panics, is
//! reported with its name, and the runtime ends the process.

use std::collections::HashMap;
use std::future::Future;

use prometheus::IntCounter;
use tokio::task::{Id, JoinSet};

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnd {
    /// It returned.
    Returned,
    /// It panicked (counted and logged already).
    Panicked,
}

/// Named tasks, joined by the runtime; dropping the set aborts what is left.
#[derive(Debug)]
pub(crate) struct TaskSet {
    tasks: JoinSet<()>,
    names: HashMap<Id, String>,
    panics: IntCounter,
}

impl TaskSet {
    pub(crate) fn new(panics: IntCounter) -> Self {
        Self {
            tasks: JoinSet::new(),
            names: HashMap::new(),
            panics,
        }
    }

    pub(crate) fn spawn<F>(&mut self, name: &str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let handle = self.tasks.spawn(task);
        self.names.insert(handle.id(), name.to_owned());
    }

    /// The next task that ends; `None` when there are none. Cancel safe.
    pub(crate) async fn next_end(&mut self) -> Option<(String, TaskEnd)> {
        let (id, end) = match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => (id, TaskEnd::Returned),
            Err(error) if error.is_panic() => {
                self.panics.inc();
                (error.id(), TaskEnd::Panicked)
            }
            // Only the set itself aborts its tasks.
            Err(error) => (error.id(), TaskEnd::Returned),
        };
        let name = self.names.remove(&id).unwrap_or_default();
        if end == TaskEnd::Panicked {
            tracing::error!(task = name, "task panicked");
        }
        Some((name, end))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Names of the tasks that still run, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.names.values().cloned().collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_what_ended_and_counts_panics() {
        let panics = IntCounter::new("panics_total", "test").unwrap();
        let mut tasks = TaskSet::new(panics.clone());
        tasks.spawn("waits", std::future::pending());
        tasks.spawn("returns", async {});
        assert_eq!(
            tasks.next_end().await,
            Some(("returns".to_owned(), TaskEnd::Returned))
        );
        tasks.spawn("panics", async { panic!("on purpose") });
        assert_eq!(
            tasks.next_end().await,
            Some(("panics".to_owned(), TaskEnd::Panicked))
        );
        assert_eq!((panics.get(), tasks.names()), (1, vec!["waits".to_owned()]));
    }
}
