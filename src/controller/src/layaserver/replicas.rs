//! The replicas of one revision: which serve, which differ from what was rendered, what is missing.

use api::reason::Reason;
use backend::{RunState, ServerSeen};

use crate::conditions::bounded;
use crate::probe::{Readiness, ReplicaProbe};

/// Exit code of a server that found its checkpoint damaged (control-plane 11, 13).
pub(super) const DAMAGED: i32 = 3;

/// How `laya serve` says that files are not those of the manifest (wire 12.3: the texts are those of the original).
const DIFFERS: [&str; 3] = ["SHA-256 mismatch", "size mismatch", "digest mismatch"];
/// How it says that they mean nothing to it.
const UNFIT: [&str; 4] = [
    "Incompatible model",
    "Model architecture mismatch",
    "Model weights incomplete",
    "bad manifest of",
];
/// Longest line of a log that is told, in characters.
const MAX_LINE: usize = 300;

/// Why a server refused its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// `BadCheckpoint` where it can make nothing of the files, else `ModelDamaged`: they may be fetched again.
    pub(super) reason: Reason,
    /// Its own words, where its log has them.
    pub(super) said: Option<String>,
}

impl Refusal {
    fn read(log: &str) -> Self {
        let has = |line: &str, texts: &[&str]| texts.iter().any(|text| line.contains(text));
        let mut lines = log.lines().rev();
        let Some(line) = lines.find(|line| has(line, &DIFFERS) || has(line, &UNFIT)) else {
            return Self {
                reason: Reason::ModelDamaged,
                said: None,
            };
        };
        let reason = if has(line, &DIFFERS) {
            Reason::ModelDamaged
        } else {
            Reason::BadCheckpoint
        };
        let line = line.trim();
        let line = line.strip_prefix("laya: ").unwrap_or(line);
        Self {
            reason,
            said: Some(bounded(line.to_owned(), MAX_LINE)),
        }
    }
}

/// A replica, and what asking it showed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replica<'a> {
    pub(super) seen: &'a ServerSeen,
    /// Of the address it has now.
    pub(super) probe: Option<&'a ReplicaProbe>,
}

impl<'a> Replica<'a> {
    pub(super) fn new(seen: &'a ServerSeen, probes: &'a [ReplicaProbe]) -> Self {
        let same = |probe: &&ReplicaProbe| {
            probe.revision == seen.revision
                && probe.ordinal == seen.ordinal
                && Some(&probe.url) == seen.url.as_ref()
        };
        Self {
            seen,
            probe: probes.iter().find(same),
        }
    }

    pub(super) fn ordinal(&self) -> u32 {
        self.seen.ordinal
    }

    pub(super) fn runs(&self) -> bool {
        self.seen.state == RunState::Running
    }

    /// Runs, or the engine starts it again by itself.
    pub(super) fn lives(&self) -> bool {
        matches!(self.seen.state, RunState::Running | RunState::Restarting)
    }

    /// Ended, or never began, and the engine leaves it so.
    pub(super) fn is_down(&self) -> bool {
        matches!(self.seen.state, RunState::Exited | RunState::Created)
    }

    pub(super) fn is_ready(&self) -> bool {
        let ready = |probe: &ReplicaProbe| matches!(probe.readiness, Readiness::Ready { .. });
        self.runs() && self.probe.is_some_and(ready)
    }

    /// Runs, and this process has not asked it yet.
    pub(super) fn is_unasked(&self) -> bool {
        self.runs()
            && self
                .probe
                .is_none_or(|probe| probe.readiness == Readiness::Unknown)
    }

    /// What differs from its rendering, for people.
    pub(super) fn differs(&self) -> Option<String> {
        if !self.seen.tampered.is_empty() {
            return Some(self.seen.tampered.join(", "));
        }
        (self.seen.hash_matches == Some(false)).then(|| "its rendering".to_owned())
    }

    /// Whether it ended by a fault of its own. An orderly end, a kill and an end that an engine's restart hid are not.
    pub(super) fn crashed(&self) -> bool {
        !self.runs()
            && (self.seen.oom_killed
                || self
                    .seen
                    .exit_code
                    .is_some_and(|code| !matches!(code, 0 | 137 | 143 | 255)))
    }

    /// Why it ended, in a word.
    pub(super) fn crash_reason(&self) -> Reason {
        if self.seen.oom_killed || self.seen.exit_code == Some(4) {
            Reason::OutOfMemory
        } else {
            Reason::CrashLoop
        }
    }

    /// Why it refused its checkpoint, if it ended so.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        (self.seen.exit_code == Some(DAMAGED)).then(|| Refusal::read(&self.seen.log_tail))
    }
}

/// The replicas of one revision, by number.
#[derive(Debug, Clone)]
pub(super) struct Replicas<'a>(Vec<Replica<'a>>);

/// What is to be done so that as many replicas serve as should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mend {
    /// Nothing, or nothing yet.
    Nothing,
    /// These are to be there and to run.
    Ensure {
        ordinals: Vec<u32>,
        /// For people: what was wrong; `None` where there are simply too few.
        differs: Option<String>,
    },
    /// This one is made anew where it stands, since there is no room for another beside it.
    Recreate { ordinal: u32, differs: String },
    /// This one differs, and another has taken its place.
    Replace { ordinal: u32, differs: String },
    /// These are too many.
    Surplus { ordinals: Vec<u32> },
}

/// Whether another replica fits beside those there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RoomForOne {
    Yes,
    No,
}

/// Which replicas that are down are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// All.
    Any,
    /// Not those that ended by their own fault: somebody else decides when.
    NotCrashed,
}

impl<'a> Replicas<'a> {
    pub(super) fn new(mut replicas: Vec<Replica<'a>>) -> Self {
        replicas.sort_by_key(Replica::ordinal);
        Self(replicas)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Replica<'a>> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn alive(&self) -> impl Iterator<Item = &Replica<'a>> {
        self.iter().filter(|replica| replica.lives())
    }

    pub(super) fn ready(&self) -> usize {
        self.iter().filter(|replica| replica.is_ready()).count()
    }

    /// Replicas that are ready, or are not known not to be.
    pub(super) fn maybe_ready(&self) -> usize {
        let maybe = |replica: &&Replica<'_>| replica.is_ready() || replica.is_unasked();
        self.iter().filter(maybe).count()
    }

    /// Those that run or are about to, or have not ended yet.
    pub(super) fn any_up(&self) -> bool {
        self.iter().any(|replica| !replica.is_down())
    }

    /// Those that serve as they should: alive and as rendered, lowest numbers first.
    fn sound(&self) -> impl Iterator<Item = &Replica<'a>> {
        self.alive().filter(|replica| replica.differs().is_none())
    }

    /// What is alive, the best first: as rendered, ready, running.
    fn by_worth(&self) -> Vec<Replica<'a>> {
        let mut alive: Vec<_> = self.alive().copied().collect();
        alive.sort_by_key(|replica| {
            (
                replica.differs().is_some(),
                !replica.is_ready(),
                !replica.runs(),
                replica.ordinal(),
            )
        });
        alive
    }

    fn has_enough(&self, count: usize) -> bool {
        self.sound().filter(|replica| replica.is_ready()).count() >= count
    }

    /// Those to keep of what is alive when `count` should serve: sound ones first, and of those the ready ones.
    pub(super) fn kept(&self, count: usize) -> Vec<Replica<'a>> {
        let mut alive = self.by_worth();
        if self.has_enough(count) {
            alive.truncate(count);
        }
        alive.sort_by_key(Replica::ordinal);
        alive
    }

    /// What is to be done so that `count` serve.
    pub(super) fn mend(&self, count: usize, room: RoomForOne, start: Start) -> Mend {
        let alive = self.alive().count();
        let bad: Vec<_> = self
            .alive()
            .filter_map(|replica| Some((replica, replica.differs()?)))
            .collect();
        if alive < count {
            return self.missing(count - alive, start);
        }
        if let Some((worst, differs)) = bad.first() {
            let (ordinal, differs) = (worst.ordinal(), differs.clone());
            return if worst.is_unasked() {
                Mend::Nothing
            } else if alive > count {
                // Another was started beside it; it goes once enough others serve.
                if !worst.is_ready() || self.ready() > count {
                    Mend::Replace { ordinal, differs }
                } else {
                    Mend::Nothing
                }
            } else if room == RoomForOne::Yes && worst.is_ready() {
                let ordinals = self.free(1);
                let differs = Some(differs);
                Mend::Ensure { ordinals, differs }
            } else {
                Mend::Recreate { ordinal, differs }
            };
        }
        // Which ones serve is not known before all were asked.
        if !self.has_enough(count) && self.alive().any(Replica::is_unasked) {
            return Mend::Nothing;
        }
        let beyond = self.by_worth().into_iter().skip(count);
        let mut ordinals: Vec<_> = beyond.map(|replica| replica.ordinal()).collect();
        ordinals.sort_unstable();
        if ordinals.is_empty() {
            Mend::Nothing
        } else {
            Mend::Surplus { ordinals }
        }
    }

    fn missing(&self, count: usize, start: Start) -> Mend {
        let down: Vec<_> = self.iter().filter(|replica| replica.is_down()).collect();
        let held = down
            .iter()
            .filter(|replica| start == Start::NotCrashed && replica.crashed())
            .count();
        // One that is just being stopped keeps its name until it is gone.
        let leaving = self
            .iter()
            .filter(|replica| !replica.is_down() && !replica.lives())
            .count();
        let count = count.saturating_sub(held + leaving);
        let startable = down
            .iter()
            .filter(|replica| start == Start::Any || !replica.crashed());
        let mut ordinals: Vec<_> = startable
            .clone()
            .take(count)
            .map(|replica| replica.ordinal())
            .collect();
        let differs = startable.clone().next().map(|replica| {
            let code = replica.seen.exit_code;
            code.map_or_else(
                || "it was not running".to_owned(),
                |code| format!("it had ended with code {code}"),
            )
        });
        ordinals.extend(self.free(count - ordinals.len()));
        if ordinals.is_empty() {
            return Mend::Nothing;
        }
        Mend::Ensure { ordinals, differs }
    }

    /// The lowest numbers that no replica has.
    fn free(&self, count: usize) -> Vec<u32> {
        (0..)
            .filter(|number| self.iter().all(|replica| replica.ordinal() != *number))
            .take(count)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_of_its_checkpoint_tells_damage_from_what_means_nothing() {
        for (log, reason, said) in [
            ("", Reason::ModelDamaged, None),
            ("told to refuse its checkpoint", Reason::ModelDamaged, None),
            (
                "laya: SHA-256 mismatch for model.safetensors: expected 0, got 1.\n",
                Reason::ModelDamaged,
                Some("SHA-256 mismatch for model.safetensors: expected 0, got 1."),
            ),
            (
                "laya: checkpoint digest mismatch for 'm': expected sha256:0, got sha256:1.",
                Reason::ModelDamaged,
                Some("checkpoint digest mismatch for 'm': expected sha256:0, got sha256:1."),
            ),
            (
                "size mismatch for model.safetensors: expected 5 bytes, got 4.",
                Reason::ModelDamaged,
                Some("size mismatch for model.safetensors: expected 5 bytes, got 4."),
            ),
            (
                "{\"problem\":\"Incompatible model\"}\nlaya: Incompatible model weights for 'm': model.safetensors: no header",
                Reason::BadCheckpoint,
                Some("Incompatible model weights for 'm': model.safetensors: no header"),
            ),
            (
                "laya: Model architecture mismatch for 'm':\n  - a: expected (2, 3), found (2,)\n",
                Reason::BadCheckpoint,
                Some("Model architecture mismatch for 'm':"),
            ),
            (
                "laya: Model weights incomplete for 'm': missing 1 parameter tensors (e.g. ['x'])",
                Reason::BadCheckpoint,
                Some("Model weights incomplete for 'm': missing 1 parameter tensors (e.g. ['x'])"),
            ),
        ] {
            let found = Refusal::read(log);
            assert_eq!(found.reason, reason, "{log}");
            assert_eq!(found.said.as_deref(), said, "{log}");
        }
    }
}
