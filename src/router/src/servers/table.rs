//! The servers behind a router at one moment, in order, with their weights. Never changed: another table takes its place
//! whole, and a running request keeps the one it began with.

use std::sync::Arc;
use std::time::Instant;

use super::server::{Admitted, Closed, Purpose, Server};
use super::share::{Draw, owner};
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
    /// It gets copies of requests, and its answers are compared and not used.
    Shadow,
}

impl Role {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Champion, Self::Candidate, Self::Shadow];

    /// The word at a metric's label.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Champion => "champion",
            Self::Candidate => "candidate",
            Self::Shadow => "shadow",
        }
    }
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
    /// Revision of a LayaServer. Servers of one revision share its weight, and what is counted of them is counted of it.
    pub revision: Option<String>,
    /// Its share of the tasks, relative to those of the others; of servers of one revision the share of all of them
    /// together, so each names the same. With 0 it is asked only when another one failed. Means nothing for a shadow.
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
            revision: None,
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

impl Entry {
    /// Lets a request in, or says why not.
    pub(super) fn admit(&self, now: Instant) -> Result<Admitted, Closed> {
        self.server.admit(now, Purpose::Answer(self.role))
    }

    /// Lets a copy in, or not.
    pub(super) fn admit_copy(&self, now: Instant) -> Result<Admitted, Closed> {
        self.server.admit(now, Purpose::Copy)
    }
}

/// Servers that share a weight: those of a revision, or one alone. Indices of entries.
#[derive(Debug)]
struct Side {
    weight: u32,
    members: Vec<usize>,
}

impl Side {
    /// The members, the one that a task belongs to first.
    fn in_turn(&self, replica: u64) -> impl Iterator<Item = usize> + '_ {
        let count = self.members.len();
        let first = usize::try_from(replica % (count.max(1) as u64)).unwrap_or(0);
        let all = self.members.iter().cycle().skip(first);
        all.take(count).copied()
    }
}

/// What is followed, and which table of it this is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The LayaServer, as `namespace/name`; empty where none is followed.
    pub server: String,
    /// Its `status.traffic.generation`.
    pub generation: i64,
    /// Share of the requests that is copied to shadows, in millionths.
    pub copied_millionths: u32,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) entries: Vec<Entry>,
    /// Those that requests go to, in order.
    sides: Vec<Side>,
    pub(super) traffic: Traffic,
}

impl Table {
    pub(super) fn new(entries: Vec<Entry>, traffic: Traffic) -> Self {
        let mut sides: Vec<Side> = Vec::new();
        let mut named: Vec<(&str, usize)> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            if entry.role == Role::Shadow {
                continue;
            }
            let revision = entry.server.identity().revision.as_deref();
            let side = revision.and_then(|revision| {
                let known = named.iter().find(|(name, _)| *name == revision);
                sides.get_mut(known?.1)
            });
            if let Some(side) = side {
                side.members.push(index);
                continue;
            }
            named.extend(revision.map(|revision| (revision, sides.len())));
            sides.push(Side {
                weight: entry.weight,
                members: vec![index],
            });
        }
        Self {
            entries,
            sides,
            traffic,
        }
    }

    /// The servers in the order in which a task asks them: those of its own side by weight, then those of other sides
    /// with a weight, then the rest. Shadows are not among them.
    pub(super) fn order(&self, task: &str) -> Vec<&Entry> {
        let draw = Draw::of(task);
        let first = owner(draw.place, self.sides.iter().map(|side| side.weight));
        let mut rest: Vec<_> = self
            .sides
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != first)
            .map(|(_, side)| side)
            .collect();
        rest.sort_by_key(|side| side.weight == 0);
        first
            .and_then(|index| self.sides.get(index))
            .into_iter()
            .chain(rest)
            .flat_map(|side| side.in_turn(draw.replica))
            .filter_map(|index| self.entries.get(index))
            .collect()
    }

    /// The servers that a copy of a task's request may go to, in order; none when it is not among those copied.
    pub(super) fn shadows(&self, task: &str) -> Vec<&Entry> {
        let draw = Draw::of(task);
        if draw.sample >= self.traffic.copied_millionths.into() {
            return Vec::new();
        }
        let shadows = self.entries.iter().enumerate();
        let shadows = shadows.filter(|(_, entry)| entry.role == Role::Shadow);
        let side = Side {
            weight: 0,
            members: shadows.map(|(index, _)| index).collect(),
        };
        let in_turn = side.in_turn(draw.replica);
        in_turn
            .filter_map(|index| self.entries.get(index))
            .collect()
    }

    /// The server that stands for what is in force: of those that serve, the champion with the most weight, the first
    /// of equals; a candidate only where there is no champion.
    pub(super) fn champion(&self) -> Option<(&Entry, Arc<Serves>)> {
        self.best(Role::Champion)
            .or_else(|| self.best(Role::Candidate))
    }

    pub(super) fn best(&self, role: Role) -> Option<(&Entry, Arc<Serves>)> {
        self.entries
            .iter()
            .filter(|entry| entry.role == role)
            .filter_map(|entry| Some((entry, entry.server.serves()?)))
            .rev()
            .max_by_key(|(entry, _)| entry.weight)
    }

    /// Those that requests go to.
    fn answering(&self) -> impl Iterator<Item = &Entry> {
        let answers = |entry: &&Entry| entry.role != Role::Shadow;
        self.entries.iter().filter(answers)
    }

    /// Whether nobody would be asked, in whatever state.
    pub(super) fn is_empty(&self) -> bool {
        self.sides.is_empty()
    }

    /// Of the servers that should answer, how many would now, and how many there are.
    pub(super) fn usable(&self, now: Instant) -> (usize, usize) {
        let with_weight = || self.answering().filter(|entry| entry.weight > 0);
        let usable = with_weight().filter(|entry| entry.server.is_usable(now));
        (usable.count(), with_weight().count())
    }

    /// Whether some server was there and does not answer any more.
    pub(super) fn has_lost_one(&self) -> bool {
        self.answering()
            .any(|entry| matches!(entry.server.standing(), Standing::Unreachable { .. }))
    }
}
