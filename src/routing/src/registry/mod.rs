//! The models there are: per tier and in order, with what is known of each (routing.md 8). A data file compiled in,
//! changed by policy, settings and request; never by credentials, which are not known here.

mod candidate;
mod model_ref;
mod patch;
mod prices;

use std::sync::LazyLock;

use decision::contract::Digest;
use decision::vocabulary::Tier;
use serde::{Deserialize, Serialize};

pub use candidate::{Candidate, CandidateQuery, VIRTUAL_PROVIDER};
pub use model_ref::{BadModelRef, MAX_UNITS, ModelRef};
pub use patch::EntryPatch;
pub use prices::{Prices, STALE_AFTER_DAYS};

use crate::thinking::EffortSet;

/// Something a model can do besides reading and writing text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// Calls tools.
    Tools,
    /// Reads images.
    Vision,
}

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Capability>", into = "Vec<Capability>")]
pub struct Capabilities {
    tools: bool,
    vision: bool,
}

impl Capabilities {
    /// Whether all of `wanted` are here.
    #[must_use]
    pub const fn include(self, wanted: Self) -> bool {
        (self.tools || !wanted.tools) && (self.vision || !wanted.vision)
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(list: I) -> Self {
        list.into_iter()
            .fold(Self::default(), |set, capability| match capability {
                Capability::Tools => Self { tools: true, ..set },
                Capability::Vision => Self {
                    vision: true,
                    ..set
                },
            })
    }
}

impl From<Vec<Capability>> for Capabilities {
    fn from(list: Vec<Capability>) -> Self {
        list.into_iter().collect()
    }
}

impl From<Capabilities> for Vec<Capability> {
    fn from(set: Capabilities) -> Self {
        let all = [
            (set.tools, Capability::Tools),
            (set.vision, Capability::Vision),
        ];
        all.into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, capability)| capability)
            .collect()
    }
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Which.
    #[serde(rename = "ref")]
    pub model: ModelRef,
    /// How capable.
    pub tier: Tier,
    /// Efforts it supports; all five where nothing is said.
    #[serde(default)]
    pub efforts: EffortSet,
    /// Tokens it can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// What it can do; unknown where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Prices; unknown where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Never a candidate.
    #[serde(default)]
    pub disabled: bool,
}

impl Entry {
    /// An entry of which nothing but the tier is known.
    #[must_use]
    pub const fn new(model: ModelRef, tier: Tier) -> Self {
        Self {
            model,
            tier,
            efforts: EffortSet::ALL,
            context_window: None,
            capabilities: None,
            prices: None,
            disabled: false,
        }
    }
}

/// Why a registry cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The file is no registry.
    #[error("cannot read the model registry")]
    Parse(#[from] toml::de::Error),
    /// A file of another version.
    #[error("model registry has version {got}, this program reads 1")]
    Version {
        /// The version it has.
        got: u32,
    },
    /// A model twice, where it can only have one tier and place.
    #[error("model `{model}` is listed twice")]
    Duplicate {
        /// Which.
        model: ModelRef,
    },
    /// A tier whose list names no model.
    #[error("tier `{tier}` lists no model")]
    EmptyTier {
        /// Which.
        tier: Tier,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    model: Vec<Entry>,
}

/// The models there are, fast tier first, in order of preference within a tier.
#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    entries: Vec<Entry>,
    digest: String,
}

static BUILT_IN: LazyLock<Registry> = LazyLock::new(|| {
    Registry::from_toml(include_str!("../../data/models.toml"))
        .expect("data/models.toml is read by a test")
});

impl Registry {
    /// The registry compiled in.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Reads a registry file.
    ///
    /// # Errors
    /// When it is no registry of version 1 or names a model twice.
    pub fn from_toml(text: &str) -> Result<Self, RegistryError> {
        let file: File = toml::from_str(text)?;
        match file.version {
            1 => Self::new(file.model),
            got => Err(RegistryError::Version { got }),
        }
    }

    /// Takes entries; those of one tier keep their order.
    ///
    /// # Errors
    /// When a model is there twice.
    pub fn new(entries: Vec<Entry>) -> Result<Self, RegistryError> {
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = entries
            .iter()
            .find(|entry| !seen.insert(entry.model.as_str()))
        {
            return Err(RegistryError::Duplicate {
                model: twice.model.clone(),
            });
        }
        Ok(Self::sorted(entries))
    }

    fn sorted(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| entry.tier); // stable: order within a tier stays
        let digest = digest(&entries);
        Self { entries, digest }
    }

    /// Every entry, fast tier first; the position is the candidate's order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What is known of a model.
    #[must_use]
    pub fn entry(&self, model: &ModelRef) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.model == *model)
    }

    /// The entries of a tier in order of preference.
    pub fn tier(&self, tier: Tier) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.tier == tier)
    }

    /// The tiers with their entries, fast first.
    pub fn tiers(&self) -> impl Iterator<Item = (Tier, impl Iterator<Item = &Entry>)> {
        Tier::ALL.iter().map(|tier| (*tier, self.tier(*tier)))
    }

    /// Puts exactly these models into a tier, in this order. Models that were in it leave the registry; models that
    /// were in another tier move, with what is known of them; unknown ones get a bare entry.
    ///
    /// # Errors
    /// When the list is empty or names a model twice.
    pub fn replace_tier(&mut self, tier: Tier, models: &[ModelRef]) -> Result<(), RegistryError> {
        if models.is_empty() {
            return Err(RegistryError::EmptyTier { tier });
        }
        if let Some((_, twice)) = models
            .iter()
            .enumerate()
            .find(|(at, model)| models[..*at].contains(model))
        {
            return Err(RegistryError::Duplicate {
                model: twice.clone(),
            });
        }
        let place = |model: &ModelRef| match self.entry(model) {
            Some(known) => Entry {
                tier,
                ..known.clone()
            },
            None => Entry::new(model.clone(), tier),
        };
        let mut entries: Vec<Entry> = models.iter().map(place).collect();
        let others = self
            .entries
            .iter()
            .filter(|entry| entry.tier != tier && !models.contains(&entry.model));
        entries.extend(others.cloned());
        *self = Self::sorted(entries);
        Ok(())
    }

    /// Replaces several tiers at once; tiers that are not named stay.
    ///
    /// # Errors
    /// When a list is empty or a model is named twice, in one list or in two.
    pub fn replace_tiers(&mut self, tiers: &[(Tier, Vec<ModelRef>)]) -> Result<(), RegistryError> {
        let all: Vec<&ModelRef> = tiers.iter().flat_map(|(_, models)| models).collect();
        if let Some((_, twice)) = all
            .iter()
            .enumerate()
            .find(|(at, model)| all[..*at].contains(model))
        {
            return Err(RegistryError::Duplicate {
                model: (*twice).clone(),
            });
        }
        tiers
            .iter()
            .try_for_each(|(tier, models)| self.replace_tier(*tier, models))
    }

    /// Sets what is known of a model: replaces its entry in its place, or adds it as the last of its tier.
    pub fn put(&mut self, entry: Entry) {
        let mut entries = std::mem::take(&mut self.entries);
        match entries.iter().position(|known| known.model == entry.model) {
            Some(at) if entries[at].tier == entry.tier => entries[at] = entry,
            Some(at) => {
                entries.remove(at);
                entries.push(entry);
            }
            None => entries.push(entry),
        }
        *self = Self::sorted(entries);
    }

    /// `sha256:` and the hex digest over every entry in order.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// Over the entries as JSON lines, whose fields come in the order of the struct.
fn digest(entries: &[Entry]) -> String {
    let mut lines = Vec::new();
    for entry in entries {
        // An entry holds strings, finite numbers and lists: it has a JSON form.
        lines.extend(serde_json::to_vec(entry).unwrap_or_default());
        lines.push(b'\n');
    }
    Digest::of(&lines).to_string()
}

#[cfg(test)]
mod tests;
