//! Best first, with ties within the tolerance (routing.md 9.3).

use super::Scored;
use crate::assessment::TOLERANCE;
use crate::history::Eligible;

/// What the ranking went by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Somebody is eligible: utility.
    Utility,
    /// Nobody is: success first.
    Success,
}

type Key = fn(&Scored) -> f64;

pub(super) fn rank(scored: &mut [Scored]) -> By {
    let may = |scored: &Scored| scored.eligible != Eligible::No;
    scored.sort_by_key(|scored| !may(scored));
    let eligible = scored.iter().take_while(|scored| may(scored)).count();
    if eligible == 0 {
        sort(scored, &[|scored| scored.success, |scored| scored.utility]);
        return By::Success;
    }
    let (first, rest) = scored.split_at_mut(eligible);
    sort(first, &[|scored| scored.utility]);
    sort(rest, &[|scored| scored.utility]);
    By::Utility
}

/// By each key in turn, highest first, then by order. Values within the tolerance of the highest of their group are
/// equal; comparing pairs that way would be no order at all.
fn sort(scored: &mut [Scored], keys: &[Key]) {
    let Some((key, next)) = keys.split_first() else {
        scored.sort_by(|a, b| {
            (a.candidate.order, &a.candidate.model).cmp(&(b.candidate.order, &b.candidate.model))
        });
        return;
    };
    scored.sort_by(|a, b| key(b).total_cmp(&key(a)));
    let mut rest = scored;
    while let Some(highest) = rest.first().map(key) {
        let equal = rest
            .iter()
            .take_while(|scored| key(scored) >= highest - TOLERANCE)
            .count()
            .max(1);
        let (group, after) = rest.split_at_mut(equal);
        sort(group, next);
        rest = after;
    }
}
