//! Which owners' children go. Pure but for what it has seen before.

use std::collections::HashMap;
use std::time::Duration;

use backend::Owner;

/// Least time between the two looks that see a deleted owner's children (control-plane 1.4).
pub(super) const APART: Duration = Duration::from_secs(60);

/// What became of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is there.
    Owned,
    /// The store remembers that it was deleted.
    Deleted,
    /// The store has never known it.
    Unknown,
}

/// When children of deleted owners were seen first, by uid and the boot-time clock.
#[derive(Debug, Default)]
pub(super) struct Sightings(HashMap<String, Duration>);

/// What a look says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Owners whose children go.
    pub(super) remove: Vec<Owner>,
    /// Owners whose children nobody claims, by uid.
    pub(super) unclaimed: Vec<Owner>,
}

impl Sightings {
    /// Takes a look at all owners. An owner that it does not show is forgotten, so only what is seen twice goes.
    pub(super) fn judge(&mut self, seen: Vec<(Owner, Fate)>, boot: Duration) -> Verdict {
        let mut verdict = Verdict::default();
        let mut still = HashMap::new();
        for (owner, fate) in seen {
            match fate {
                Fate::Owned => {}
                Fate::Unknown => verdict.unclaimed.push(owner),
                Fate::Deleted => {
                    let first = self.0.get(&owner.uid).copied().unwrap_or(boot);
                    still.insert(owner.uid.clone(), first);
                    if boot.saturating_sub(first) >= APART {
                        verdict.remove.push(owner);
                    }
                }
            }
        }
        self.0 = still;
        verdict.unclaimed.sort_by(|a, b| a.uid.cmp(&b.uid));
        verdict.unclaimed.dedup_by(|a, b| a.uid == b.uid);
        verdict
    }

    /// Its children are gone.
    pub(super) fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use api::group::Kind;

    use super::*;

    fn owner(uid: &str) -> Owner {
        Owner {
            kind: Kind::LayaServer,
            namespace: "space".to_owned(),
            name: "main".to_owned(),
            uid: uid.to_owned(),
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(1_000 + seconds)
    }

    fn removed(sightings: &mut Sightings, fates: &[(&str, Fate)], seconds: u64) -> Vec<String> {
        let seen = fates.iter().map(|(uid, fate)| (owner(uid), *fate));
        let verdict = sightings.judge(seen.collect(), at(seconds));
        verdict.remove.into_iter().map(|owner| owner.uid).collect()
    }

    #[test]
    fn fault_07_only_what_is_deleted_and_seen_twice_a_minute_apart_goes() {
        let mut sightings = Sightings::default();
        let all = [
            ("gone", Fate::Deleted),
            ("here", Fate::Owned),
            ("lost", Fate::Unknown),
        ];
        assert!(removed(&mut sightings, &all, 0).is_empty(), "seen once");
        assert!(removed(&mut sightings, &all, 59).is_empty(), "too soon");
        assert_eq!(removed(&mut sightings, &all, 60), ["gone"]);
        // It was not possible: it is tried again.
        assert_eq!(removed(&mut sightings, &all, 90), ["gone"]);
        sightings.forget("gone");
        assert!(removed(&mut sightings, &all, 91).is_empty(), "begins anew");
    }

    #[test]
    fn what_a_look_does_not_show_begins_anew() {
        let mut sightings = Sightings::default();
        assert!(removed(&mut sightings, &[("a", Fate::Deleted)], 0).is_empty());
        assert!(removed(&mut sightings, &[], 30).is_empty());
        assert!(removed(&mut sightings, &[("a", Fate::Deleted)], 70).is_empty());
        assert_eq!(removed(&mut sightings, &[("a", Fate::Deleted)], 130), ["a"]);
    }

    #[test]
    fn fault_07_a_store_that_never_knew_them_removes_nothing() {
        let mut sightings = Sightings::default();
        for seconds in [0, 60, 600, 86_400] {
            let seen = ["b", "a", "b"].map(|uid| (owner(uid), Fate::Unknown));
            let verdict = sightings.judge(seen.into(), at(seconds));
            assert!(verdict.remove.is_empty());
            assert_eq!(verdict.unclaimed, [owner("a"), owner("b")]);
        }
    }
}
