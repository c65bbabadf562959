//! Names of the API group and of its kinds (control-plane 1.1): one place for what URLs, CRDs and commands are made of.

/// The API group.
pub const GROUP: &str = "relay.dev";
/// The one served and stored version.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of every object of ours.
pub const API_VERSION: &str = "relay.dev/v1alpha1";
/// `kubectl get relay` lists all of them; they are not in `all`.
pub const CATEGORY: &str = "relay";
/// Longest `metadata.name`: the name is part of the names of children, which have 63 characters.
pub const MAX_NAME: usize = 40;
/// What a `metadata.name` looks like.
pub const NAME_PATTERN: &str = "^[a-z]([-a-z0-9]*[a-z0-9])?$";

/// What a kind can be asked beside the object itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresources {
    /// `/status`.
    Status,
    /// `/status` and `/scale`.
    StatusAndScale,
}

/// One of the five kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A checkpoint under a name.
    LayaModel,
    /// What serves a model.
    LayaServer,
    /// One training.
    TrainingRun,
    /// What must be shown before a model may serve.
    EvaluationGate,
    /// Everything an operator may choose about routing.
    RoutingPolicy,
}

impl Kind {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 5] = [
        Self::LayaModel,
        Self::LayaServer,
        Self::TrainingRun,
        Self::EvaluationGate,
        Self::RoutingPolicy,
    ];

    /// The word in `kind`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LayaModel => "LayaModel",
            Self::LayaServer => "LayaServer",
            Self::TrainingRun => "TrainingRun",
            Self::EvaluationGate => "EvaluationGate",
            Self::RoutingPolicy => "RoutingPolicy",
        }
    }

    /// The word in URLs.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::LayaModel => "layamodels",
            Self::LayaServer => "layaservers",
            Self::TrainingRun => "trainingruns",
            Self::EvaluationGate => "evaluationgates",
            Self::RoutingPolicy => "routingpolicies",
        }
    }

    /// The word for one in commands.
    #[must_use]
    pub const fn singular(self) -> &'static str {
        match self {
            Self::LayaModel => "layamodel",
            Self::LayaServer => "layaserver",
            Self::TrainingRun => "trainingrun",
            Self::EvaluationGate => "evaluationgate",
            Self::RoutingPolicy => "routingpolicy",
        }
    }

    /// Short words for commands.
    #[must_use]
    pub const fn short_names(self) -> &'static [&'static str] {
        match self {
            Self::LayaModel => &["lm"],
            Self::LayaServer => &["ls"],
            Self::TrainingRun => &["tr", "trun"],
            Self::EvaluationGate => &["eg"],
            Self::RoutingPolicy => &["rp"],
        }
    }

    /// What it can be asked.
    #[must_use]
    pub const fn subresources(self) -> Subresources {
        match self {
            Self::LayaServer => Subresources::StatusAndScale,
            _ => Subresources::Status,
        }
    }

    /// The two letters in names of children: a run and the model it makes have the same name by default.
    #[must_use]
    pub const fn abbreviation(self) -> &'static str {
        match self {
            Self::LayaModel => "lm",
            Self::LayaServer => "ls",
            Self::TrainingRun => "tr",
            Self::EvaluationGate => "eg",
            Self::RoutingPolicy => "rp",
        }
    }

    /// A kind by any word that commands take: kind, plural, singular or short name, in any case.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        Self::ALL.into_iter().find(|kind| {
            kind.singular() == word
                || kind.plural() == word
                || kind.short_names().contains(&word.as_str())
        })
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_kind_by_every_word_and_no_word_names_two() {
        let mut words = std::collections::BTreeSet::new();
        for kind in Kind::ALL {
            let own = [kind.plural(), kind.singular()]
                .into_iter()
                .chain(kind.short_names().iter().copied());
            for word in own {
                assert!(words.insert(word), "{word} names two kinds");
                assert_eq!(Kind::by_word(word), Some(kind), "{word}");
            }
            assert_eq!(Kind::by_word(kind.as_str()), Some(kind));
        }
        assert_eq!(Kind::by_word("pods"), None);
        assert_eq!(API_VERSION, format!("{GROUP}/{VERSION}"));
    }
}
