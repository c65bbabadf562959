//! How a decision came about, step by step, for people (`relay route --explain`). Not part of the record.

use serde::{Deserialize, Serialize};

use crate::reason::Exclusion;
use crate::registry::ModelRef;

/// One step: what was looked at, what came out, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// For example `type`, `floor`, `effort`.
    pub name: String,
    /// What came out.
    pub result: String,
    /// Why.
    pub because: String,
}

/// A candidate in the ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedModel {
    /// `provider/model`.
    pub model: ModelRef,
    /// Its tier.
    pub tier: decision::vocabulary::Tier,
    /// Estimated success S.
    pub success: f64,
    /// q·S.
    pub quality: f64,
    /// c·cost.
    pub cost: f64,
    /// l·latency.
    pub latency: f64,
    /// r·failure.
    pub risk: f64,
    /// Price of leaving the current model.
    pub switch: f64,
    /// What is left.
    pub utility: f64,
    /// May it be chosen.
    pub eligible: bool,
    /// Why it is not the chosen one; `chosen` for that.
    pub verdict: String,
}

/// The whole story.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trace {
    /// In order.
    pub steps: Vec<Step>,
    /// Best first.
    pub ranking: Vec<RankedModel>,
    /// Who was not considered.
    pub not_considered: Vec<(ModelRef, Exclusion)>,
}

impl Trace {
    pub(super) fn step(&mut self, name: &str, result: impl Into<String>, because: impl Into<String>) {
        self.steps.push(Step { name: name.to_owned(), result: result.into(), because: because.into() });
    }
}
