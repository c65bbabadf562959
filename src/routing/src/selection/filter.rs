//! Who is considered at all: floor, availability, context window, and what to do when nobody is left (routing.md 9.1, 9.4).

use decision::vocabulary::Tier;

use super::{NoCandidate, NoCandidateCause, OnFloorUnmet, SelectionInput};
use crate::assessment::TOLERANCE;
use crate::reason::{Exclusion, Warning, WarningCode};
use crate::registry::{Candidate, ModelRef};

/// A provider at or below this availability is as good as away.
const AWAY: f64 = 0.05;

/// Who is considered, who is not, and what was given up to have somebody.
pub(super) struct Pool<'a> {
    pub(super) kept: Vec<&'a Candidate>,
    pub(super) dropped: Vec<(ModelRef, Exclusion)>,
    pub(super) warnings: Vec<Warning>,
}

struct Looked<'a> {
    candidate: &'a Candidate,
    fits: bool,
    there: bool,
}

/// Whether a conversation and a fifth more fits; an unknown window does.
pub(crate) fn fits(candidate: &Candidate, tokens: u64) -> bool {
    let room = |window: u64| u128::from(window) * 5 >= u128::from(tokens) * 6;
    candidate.context_window.is_none_or(room)
}

pub(super) fn pool<'a>(input: &SelectionInput<'a>) -> Result<Pool<'a>, NoCandidate> {
    let mut looked: Vec<Looked<'a>> = input
        .candidates
        .iter()
        .map(|candidate| Looked {
            candidate,
            fits: fits(candidate, input.context_tokens),
            there: (input.availability)(candidate.model.provider()).get() > AWAY + TOLERANCE,
        })
        .collect();
    looked.sort_by(|a, b| place(a.candidate).cmp(&place(b.candidate)));
    let reach = choose_reach(&looked, input)?;
    let mut kept = Vec::with_capacity(looked.len());
    let mut dropped = Vec::new();
    for seen in &looked {
        match reach.refuses(seen) {
            None => kept.push(seen.candidate),
            Some(reason) => dropped.push((seen.candidate.model.clone(), reason)),
        }
    }
    Ok(Pool {
        kept,
        dropped,
        warnings: reach.warnings(input.min_tier),
    })
}

fn place(candidate: &Candidate) -> (u32, &ModelRef) {
    (candidate.order, &candidate.model)
}

/// How far down selection has to reach to have somebody.
#[derive(Clone, Copy)]
struct Reach {
    floor: Tier,
    floor_met: bool,
    heed_availability: bool,
}

impl Reach {
    fn refuses(self, seen: &Looked<'_>) -> Option<Exclusion> {
        if seen.candidate.tier < self.floor {
            Some(Exclusion::BelowMinTier)
        } else if !seen.fits {
            Some(Exclusion::ContextWindow)
        } else if self.heed_availability && !seen.there {
            Some(Exclusion::Availability)
        } else {
            None
        }
    }

    fn warnings(self, min_tier: Tier) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if !self.floor_met {
            let message = format!(
                "no model of tier {min_tier} or above can run this; took tier {}",
                self.floor
            );
            warnings.push(Warning {
                code: WarningCode::FloorNotMet,
                message,
            });
        }
        if !self.heed_availability {
            let message =
                "every provider of a model strong enough is exhausted; availability was ignored"
                    .to_owned();
            warnings.push(Warning {
                code: WarningCode::ProviderUnavailable,
                message,
            });
        }
        warnings
    }
}

/// The floor if it can be met, by an exhausted provider if it must be, else the strongest tier that is there.
fn choose_reach(looked: &[Looked<'_>], input: &SelectionInput<'_>) -> Result<Reach, NoCandidate> {
    let able = |floor: Tier| {
        looked
            .iter()
            .filter(move |seen| seen.fits && seen.candidate.tier >= floor)
    };
    let floor = input.min_tier;
    if able(floor).next().is_some() {
        let heed_availability = able(floor).any(|seen| seen.there);
        return Ok(Reach {
            floor,
            floor_met: true,
            heed_availability,
        });
    }
    let refusal = |cause| {
        let reason = |seen: &Looked<'_>| match seen.candidate.tier < floor {
            true => Exclusion::BelowMinTier,
            false => Exclusion::ContextWindow,
        };
        let dropped = looked
            .iter()
            .map(|seen| (seen.candidate.model.clone(), reason(seen)))
            .collect();
        NoCandidate {
            cause,
            min_tier: floor,
            dropped,
        }
    };
    let strongest = |there: bool| {
        let all = able(Tier::Fast).filter(move |seen| seen.there || !there);
        all.map(|seen| seen.candidate.tier).max()
    };
    match (
        looked,
        strongest(true),
        strongest(false),
        input.on_floor_unmet,
    ) {
        ([], ..) => Err(refusal(NoCandidateCause::None)),
        (_, _, None, _) => Err(refusal(NoCandidateCause::ContextWindow)),
        (.., OnFloorUnmet::Refuse) => Err(refusal(NoCandidateCause::FloorUnmet)),
        (_, Some(floor), ..) => Ok(Reach {
            floor,
            floor_met: false,
            heed_availability: true,
        }),
        (_, None, Some(floor), _) => Ok(Reach {
            floor,
            floor_met: false,
            heed_availability: false,
        }),
    }
}
