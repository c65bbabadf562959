//! The learned tasks of one tenant at one dataset revision, indexed for questions (routing.md 14). Built off the request
//! path and swapped whole.

use decision::Labels;
use decision::relay_contract;
use routing::dataset::{InForce, Row};
use routing::memory::{LearnedTask, MemoryIndex, Recall, Thresholds};
use store::Dataset;

/// An index of learned tasks.
#[derive(Debug)]
pub(crate) struct Memory {
    index: MemoryIndex<Labels>,
    revision: u64,
}

impl Memory {
    /// Reads every row and builds the index. Takes milliseconds for thousands of rows: not for the request path.
    pub(crate) fn build(dataset: &Dataset) -> Self {
        let rows: Vec<Row> = dataset
            .rows
            .iter()
            .filter_map(|row| Row::read(&row.line).ok())
            .collect();
        let in_force = InForce::of(relay_contract());
        let tasks: Vec<LearnedTask<Labels>> = rows
            .iter()
            .filter_map(|row| row.learned(&in_force))
            .collect();
        let index = MemoryIndex::build(rows.iter().map(Row::request), tasks);
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
