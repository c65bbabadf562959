//! Which server a task belongs to: a fixed place of its id on a ring of 10 000, shared out by weight (training.md 10), and
//! other places for what else is drawn by task. When weights move, only the tasks between the old and the new border
//! change sides.

use sha2::{Digest, Sha256};

/// Places on the ring.
const PLACES: u64 = 10_000;

/// Numbers that belong to a task or request id for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Draw {
    /// Its place on the ring, 0..10 000: the first 8 bytes of its SHA-256, big-endian, modulo 10 000.
    pub(super) place: u64,
    /// Which of several servers of one revision: the next 8 bytes.
    pub(super) replica: u64,
    /// Whether it is copied: the 8 bytes after those, in millionths.
    pub(super) sample: u64,
}

impl Draw {
    /// Those of an id.
    #[must_use]
    pub(super) fn of(id: &str) -> Self {
        let digest = Sha256::digest(id.as_bytes());
        let number = |at: usize| {
            let bytes = digest.iter().skip(at).take(8);
            bytes.fold(0_u64, |number, byte| (number << 8) | u64::from(*byte))
        };
        Self {
            place: number(0) % PLACES,
            replica: number(8),
            sample: number(16) % 1_000_000,
        }
    }
}

/// The index whose share holds a place; shares lie one behind the other in the order of the weights, so a candidate that
/// stands first has the lowest places. `None` when all weights are zero.
#[must_use]
pub(super) fn owner(place: u64, weights: impl Iterator<Item = u32> + Clone) -> Option<usize> {
    let total: u64 = weights.clone().map(u64::from).sum();
    let mut below = 0;
    weights
        .enumerate()
        .filter(|(_, weight)| *weight > 0)
        .find_map(|(index, weight)| {
            below += u64::from(weight);
            // place / PLACES < below / total, without division.
            (place * total < below * PLACES).then_some(index)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_weights_in_order() {
        for (place, weights, expected) in [
            (0, &[10, 90][..], Some(0)),
            (999, &[10, 90], Some(0)),
            (1000, &[10, 90], Some(1)),
            (9999, &[10, 90], Some(1)),
            (1000, &[50, 50], Some(0)),
            (0, &[0, 100], Some(1)),
            (9999, &[100, 0], Some(0)),
            (3333, &[1, 1, 1], Some(0)),
            (3334, &[1, 1, 1], Some(1)),
            (6667, &[1, 1, 1], Some(2)),
            (5, &[0, 0], None),
            (5, &[], None),
        ] {
            let found = owner(place, weights.iter().copied());
            assert_eq!(found, expected, "{place} {weights:?}");
        }
    }

    /// training.md 15.5.
    #[test]
    fn task_ids_have_their_places() {
        for (number, expected) in [(1, 1194), (2, 4078), (3, 1054), (4, 6133)] {
            let id = format!("0193d2b1-0000-7000-8000-00000000000{number}");
            assert_eq!(Draw::of(&id).place, expected, "{id}");
            for weight in [11, 12] {
                let side = owner(Draw::of(&id).place, [weight, 100 - weight].into_iter());
                let candidate = number == 3 || number == 1 && weight == 12;
                assert_eq!(side, Some(usize::from(!candidate)), "{id} at {weight}");
            }
        }
    }

    #[test]
    fn a_candidate_that_gains_weight_loses_no_task() {
        for place in (0..PLACES).step_by(7) {
            let sides =
                (0..=100_u32).map(|weight| owner(place, [weight, 100 - weight].into_iter()));
            let joined: Vec<_> = sides.map(|side| side == Some(0)).collect();
            let first = joined.iter().position(|joined| *joined);
            let stays = joined.iter().skip(first.unwrap_or(0)).all(|joined| *joined);
            assert!(stays && first.is_some_and(|at| at > 0), "{place}");
        }
    }

    #[test]
    fn places_are_spread_evenly() {
        let low = (0..10_000)
            .filter(|number| Draw::of(&format!("task-{number}")).place < 1000)
            .count();
        assert!((900..1100).contains(&low), "{low} of 10 000 in a tenth");
    }
}
