//! Which model runs a request: drop what cannot, score what can, rank by eligibility and utility (routing.md 9), and now
//! and then let another model prove itself (11). Knows numbers about models, nothing about requests or where evidence,
//! quota and prices come from.

mod explore;
mod filter;
mod rank;
mod score;

use decision::vocabulary::Tier;
use serde::{Deserialize, Serialize};

pub use crate::history::{Eligible, Evidence};
pub use explore::{ExplorationInput, NotExplored, explore};
pub(crate) use filter::fits;
pub use score::{Scored, prior_success};

use crate::bounded::{Ratio, Usd};
use crate::profile::Profile;
use crate::reason::{Exclusion, Warning, WarningCode};
use crate::registry::{Candidate, ModelRef};

/// What the cost of a candidate is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CostBasis {
    /// The prior of its tier.
    #[default]
    Tiers,
    /// Its estimate among those of all candidates, when every one is known.
    Prices,
}

/// What to do when no candidate reaches the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFloorUnmet {
    /// Take the strongest tier there is, with a warning.
    #[default]
    Strongest,
    /// Refuse.
    Refuse,
}

/// The price of leaving the model that holds the conversation in its cache (routing.md 13).
#[derive(Debug, Clone, Copy)]
pub struct Switch<'a> {
    /// The current model.
    pub current: &'a ModelRef,
    /// From [`switch_price`](crate::follow_up::switch_price).
    pub price: Ratio,
}

/// Estimated cost of a candidate for this task; nothing where it is unknown.
pub type EstimateOf<'a> = &'a dyn Fn(&Candidate) -> Option<Usd>;

/// Everything selection looks at.
#[derive(Clone, Copy)]
pub struct SelectionInput<'a> {
    /// Who may run it.
    pub candidates: &'a [Candidate],
    /// The tier the work needs.
    pub required_tier: Tier,
    /// The tier below which nothing may go.
    pub min_tier: Tier,
    /// Risk of the task.
    pub task_risk: Ratio,
    /// Weights.
    pub profile: &'a Profile,
    /// Availability by provider.
    pub availability: &'a dyn Fn(&str) -> Ratio,
    /// Evidence by model, for the class of this task.
    pub evidence: &'a dyn Fn(&ModelRef) -> Evidence,
    /// The conversation's current model, if leaving it has a price.
    pub switch: Option<Switch<'a>>,
    /// Tokens of the conversation; 0 where unknown.
    pub context_tokens: u64,
    /// Where cost comes from.
    pub cost_basis: CostBasis,
    /// Estimated cost by candidate, if known; needed for [`CostBasis::Prices`] only.
    pub estimate: Option<EstimateOf<'a>>,
    /// What to do without a candidate at the floor.
    pub on_floor_unmet: OnFloorUnmet,
}

/// The ranking and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Best first; never empty.
    pub ranked: Vec<Scored>,
    /// Who was not considered, in order, and why.
    pub dropped: Vec<(ModelRef, Exclusion)>,
    /// What a person should know.
    pub warnings: Vec<Warning>,
}

/// How many alternatives a decision names.
pub const ALTERNATIVES: usize = 3;

impl Selection {
    /// The best, or nothing for a ranking that was emptied by hand.
    #[must_use]
    pub fn winner(&self) -> Option<&Scored> {
        self.ranked.first()
    }

    /// The next three after the ranked model at `chosen`, of other references.
    pub fn alternatives(&self, chosen: usize) -> impl Iterator<Item = &Scored> {
        let model = self
            .ranked
            .get(chosen)
            .map(|scored| &scored.candidate.model);
        let others = self
            .ranked
            .iter()
            .filter(move |scored| Some(&scored.candidate.model) != model);
        others.take(ALTERNATIVES)
    }
}

/// Why there is no candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCandidateCause {
    /// None was passed in.
    None,
    /// The conversation fits into none.
    ContextWindow,
    /// None is strong enough, and policy refuses weaker ones.
    FloorUnmet,
}

/// No model can run the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct NoCandidate {
    /// Why.
    pub cause: NoCandidateCause,
    /// The floor.
    pub min_tier: Tier,
    /// Who was not considered, in order, and why.
    pub dropped: Vec<(ModelRef, Exclusion)>,
}

impl NoCandidate {
    fn sentence(&self) -> String {
        let count = self.dropped.len();
        match self.cause {
            NoCandidateCause::None => {
                "no model has credentials and meets the constraints of the request".to_owned()
            }
            NoCandidateCause::ContextWindow => {
                format!("the conversation fits into none of {count} models")
            }
            NoCandidateCause::FloorUnmet => {
                format!(
                    "none of {count} models is of tier {} or above, and policy refuses weaker ones",
                    self.min_tier
                )
            }
        }
    }
}

/// Ranks the candidates of a request (routing.md 9).
///
/// # Errors
/// When nothing can run it, with the reason.
pub fn select(input: &SelectionInput<'_>) -> Result<Selection, NoCandidate> {
    let filter::Pool {
        kept,
        dropped,
        mut warnings,
    } = filter::pool(input)?;
    let mut ranked = score::score(input, &kept);
    if rank::rank(&mut ranked) == rank::By::Success {
        warnings.push(below_minimum(&ranked, input.profile));
    }
    Ok(Selection {
        ranked,
        dropped,
        warnings,
    })
}

fn below_minimum(ranked: &[Scored], profile: &Profile) -> Warning {
    let best = ranked.first().map_or(0.0, |scored| scored.success);
    Warning {
        code: WarningCode::BelowMinimumSuccess,
        message: format!(
            "no model promises the {} success that profile {} asks for; the best promises {best:.2}",
            profile.min_success, profile.name
        ),
    }
}

#[cfg(test)]
mod tests;
