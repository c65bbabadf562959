//! The learned tasks of one tenant at one dataset revision, indexed for questions (routing.md 14). Built off the request
//! path and swapped whole.

use decision::Labels;
use decision::relay_contract;
use routing::dataset::{InForce, Row};
use routing::memory::{LearnedTask, MemoryIndex, Recall, Thresholds};
use store::{Dataset, StoredRow};

/// An index of learned tasks.
#[derive(Debug)]
pub(crate) struct Memory {
    index: MemoryIndex<Labels>,
    revision: u64,
}

impl Memory {
    /// Reads every row and builds the index. Takes milliseconds for thousands of rows: not for the request path.
    pub(crate) fn build(dataset: &Dataset) -> Self {
        let rows = read(dataset);
        let requests = rows.iter().map(|(row, _)| row.request().to_owned());
        let requests: Vec<String> = requests.collect();
        let tasks = rows.into_iter().filter_map(|(_, task)| task).collect();
        let index = MemoryIndex::build(requests.iter().map(String::as_str), tasks);
        Self {
            index,
            revision: dataset.revision,
        }
    }

    /// What is known about a request.
    pub(crate) fn recall(&self, request: &str, thresholds: Thresholds) -> Recall<'_, Labels> {
        self.index.recall(request, thresholds)
    }

    /// The index itself.
    pub(crate) fn index(&self) -> &MemoryIndex<Labels> {
        &self.index
    }

    /// Revision of the dataset it was built from.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }
}

/// A row, and the learned task it is, if it is one.
type Read = (Row, Option<LearnedTask<Labels>>);

/// Reads the rows on every core there is: a start waits for it.
fn read(dataset: &Dataset) -> Vec<Read> {
    let in_force = InForce::of(relay_contract());
    let one = |row: &StoredRow| {
        let row = Row::read(&row.line).ok()?;
        let task = row.learned(&in_force);
        Some((row, task))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let part = dataset.rows.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = dataset
            .rows
            .chunks(part)
            .map(|rows| scope.spawn(move || rows.iter().filter_map(one).collect::<Vec<_>>()))
            .collect();
        let parts = parts.into_iter();
        parts
            .flat_map(|part| match part.join() {
                Ok(rows) => rows,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}
