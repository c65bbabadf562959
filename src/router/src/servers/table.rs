//! The servers behind a router at one moment, in order, with their weights. Never changed: another table takes its place
//! whole, and a running request keeps the one it began with.

use std::sync::Arc;
use std::time::Instant;

use super::server::Server;
use super::share::{owner, place};
use super::standing::{Expected, Serves, Standing, Wording};
use super::upstream::Upstream;

/// Which part a server plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// It serves what is in force.
    #[default]
    Champion,
    /// It serves what wants to be.
    Candidate,
}

/// One server as it is configured.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Its name; unique in a table, and a label of metrics.
    pub name: String,
    /// Name of the version it serves.
    pub version: String,
    /// Where it answers.
    pub upstream: Upstream,
    /// Its share of the tasks, relative to those of the others. With 0 it is asked only when another one failed.
    pub weight: u32,
    /// Which part it plays.
    pub role: Role,
    /// The wording its version is tuned to, where that is not ours.
    pub wording: Option<Arc<Wording>>,
    /// What it must say of itself.
    pub expected: Expected,
}

impl Target {
    /// A server of weight 1 that serves what is in force, named after its version.
    #[must_use]
    pub fn new(name: impl Into<String>, upstream: Upstream) -> Self {
        let name = name.into();
        Self {
            version: name.clone(),
            name,
            upstream,
            weight: 1,
            role: Role::Champion,
            wording: None,
            expected: Expected::default(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) server: Arc<Server>,
    pub(super) weight: u32,
    pub(super) role: Role,
}

#[derive(Debug, Default)]
pub(super) struct Table(pub(super) Vec<Entry>);

impl Table {
    /// The servers in the order in which a task asks them: its own by weight, then those with a weight, then the rest.
    pub(super) fn order(&self, task: &str) -> Vec<&Arc<Server>> {
        let first = owner(place(task), self.0.iter().map(|entry| entry.weight));
        let mut rest: Vec<_> = self
            .0
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != first)
            .map(|(_, entry)| entry)
            .collect();
        rest.sort_by_key(|entry| entry.weight == 0);
        first
            .map(|index| &self.0[index])
            .into_iter()
            .chain(rest)
            .map(|entry| &entry.server)
            .collect()
    }

    /// The server that stands for what is in force: of those that serve, the champion with the most weight, the first
    /// of equals; a candidate only where there is no champion.
    pub(super) fn champion(&self) -> Option<(&Entry, Arc<Serves>)> {
        self.best(Role::Champion)
            .or_else(|| self.best(Role::Candidate))
    }

    pub(super) fn best(&self, role: Role) -> Option<(&Entry, Arc<Serves>)> {
        self.0
            .iter()
            .filter(|entry| entry.role == role)
            .filter_map(|entry| Some((entry, entry.server.serves()?)))
            .rev()
            .max_by_key(|(entry, _)| entry.weight)
    }

    /// Of the servers that should answer, how many would now, and how many there are.
    pub(super) fn usable(&self, now: Instant) -> (usize, usize) {
        let with_weight = || self.0.iter().filter(|entry| entry.weight > 0);
        let usable = with_weight().filter(|entry| entry.server.is_usable(now));
        (usable.count(), with_weight().count())
    }

    /// Whether some server was there and does not answer any more.
    pub(super) fn has_lost_one(&self) -> bool {
        self.0
            .iter()
            .any(|entry| matches!(entry.server.standing(), Standing::Unreachable { .. }))
    }
}
