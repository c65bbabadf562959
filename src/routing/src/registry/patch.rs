//! What a policy or a request knows better about single models.

use decision::vocabulary::Tier;
use serde::{Deserialize, Serialize};

use super::{Capabilities, Entry, ModelRef, Prices, Registry};
use crate::reason::{Warning, WarningCode};
use crate::thinking::EffortSet;

/// Changes to one entry; what is not given stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryPatch {
    /// Which.
    #[serde(rename = "ref")]
    pub model: ModelRef,
    /// How capable; a model that changes its tier becomes the last there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Efforts it supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efforts: Option<EffortSet>,
    /// Tokens it can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// What it can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Never a candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

impl EntryPatch {
    fn onto(&self, known: Entry) -> Entry {
        Entry {
            model: known.model,
            tier: self.tier.unwrap_or(known.tier),
            efforts: self.efforts.unwrap_or(known.efforts),
            context_window: self.context_window.or(known.context_window),
            capabilities: self.capabilities.or(known.capabilities),
            prices: self.prices.clone().or(known.prices),
            disabled: self.disabled.unwrap_or(known.disabled),
        }
    }
}

impl Registry {
    /// Applies patches in order. A model the registry lacks is added; without a tier it counts as balanced, with the
    /// warning `capability_unknown`.
    pub fn patch(&mut self, patches: &[EntryPatch]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut entries = std::mem::take(&mut self.entries);
        for patch in patches {
            let at = entries.iter().position(|entry| entry.model == patch.model);
            if at.is_none() && patch.tier.is_none() {
                let message = format!("nothing is known of {}; it counts as balanced", patch.model);
                warnings.push(Warning {
                    code: WarningCode::CapabilityUnknown,
                    message,
                });
            }
            match at {
                Some(at) if patch.tier.is_none_or(|tier| tier == entries[at].tier) => {
                    entries[at] = patch.onto(entries[at].clone());
                }
                Some(at) => {
                    let known = entries.remove(at);
                    entries.push(patch.onto(known));
                }
                None => entries.push(patch.onto(Entry::new(patch.model.clone(), Tier::Balanced))),
            }
        }
        *self = Self::sorted(entries);
        warnings
    }
}
