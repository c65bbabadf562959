//! From the registry to the candidates of one request: whose provider has credentials and what the request allows.

use decision::vocabulary::Tier;

use super::{Capabilities, Entry, ModelRef, Prices, Registry};
use crate::reason::Exclusion;
use crate::thinking::EffortSet;

/// The provider of the virtual models, which are selections and never run anything.
pub const VIRTUAL_PROVIDER: &str = "laya";

/// A model that may be asked for one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Which.
    pub model: ModelRef,
    /// How capable.
    pub tier: Tier,
    /// Position over all tiers, fast first; lower goes first among equals.
    pub order: u32,
    /// Efforts it supports.
    pub efforts: EffortSet,
    /// Tokens it can read, if known.
    pub context_window: Option<u64>,
    /// What it can do, if known.
    pub capabilities: Option<Capabilities>,
    /// Prices, if known.
    pub prices: Option<Prices>,
}

/// What a request says about the models it may run on.
#[derive(Debug, Clone, Copy, Default)]
pub struct CandidateQuery<'a> {
    /// Providers with credentials.
    pub providers: &'a [String],
    /// References the request rules out.
    pub exclude: &'a [ModelRef],
    /// What the model must be able to do.
    pub capabilities: Capabilities,
}

impl CandidateQuery<'_> {
    fn refuses(&self, entry: &Entry) -> Option<Exclusion> {
        let provider = entry.model.provider();
        if provider == VIRTUAL_PROVIDER || entry.disabled || self.exclude.contains(&entry.model) {
            Some(Exclusion::Constraint)
        } else if !self.providers.iter().any(|known| known == provider) {
            Some(Exclusion::NoCredentials)
        } else if entry
            .capabilities
            .is_some_and(|has| !has.include(self.capabilities))
        {
            Some(Exclusion::Constraint)
        } else {
            None
        }
    }
}

impl Registry {
    /// The candidates of a request in registry order, and the entries that are none with the reason.
    ///
    /// An entry that does not say what it can do is taken to be able to: refusing it would refuse every model whose
    /// entry is short.
    #[must_use]
    pub fn candidates(
        &self,
        query: &CandidateQuery<'_>,
    ) -> (Vec<Candidate>, Vec<(ModelRef, Exclusion)>) {
        let mut taken = Vec::with_capacity(self.entries().len());
        let mut refused = Vec::new();
        for (order, entry) in (0..).zip(self.entries()) {
            match query.refuses(entry) {
                Some(reason) => refused.push((entry.model.clone(), reason)),
                None => taken.push(entry.candidate(order)),
            }
        }
        (taken, refused)
    }
}

impl Entry {
    pub(crate) fn candidate(&self, order: u32) -> Candidate {
        Candidate {
            model: self.model.clone(),
            tier: self.tier,
            order,
            efforts: self.efforts,
            context_window: self.context_window,
            capabilities: self.capabilities,
            prices: self.prices.clone(),
        }
    }
}
