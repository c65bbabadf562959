//! Types of conditions (control-plane 1.3, 2–6): which kind has which, and how each is to be read.

use crate::group::Kind;

/// How a condition is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polarity {
    /// True is as it should be.
    TrueIsNormal,
    /// True is abnormal; removed when false, so that kstatus reads it correctly.
    TrueIsAbnormal,
    /// Neither is better.
    Informative,
}

macro_rules! conditions {
    ($($(#[$doc:meta])* $variant:ident: $polarity:ident, $kinds:expr, $meaning:literal;)+) => {
        /// The type of a condition.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ConditionType { $($(#[$doc])* $variant),+ }

        impl ConditionType {
            /// All of them: those of every kind first, then kind by kind.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }

            /// How it is to be read.
            #[must_use]
            pub const fn polarity(self) -> Polarity {
                match self { $(Self::$variant => Polarity::$polarity),+ }
            }

            /// Kinds that have it.
            #[must_use]
            pub const fn kinds(self) -> &'static [Kind] {
                match self { $(Self::$variant => $kinds),+ }
            }

            /// What true means.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }
        }
    };
}

conditions! {
    /// The object does its work.
    Ready: TrueIsNormal, &Kind::ALL, "the object does its work now";
    /// Work is going on.
    Reconciling: TrueIsAbnormal, &Kind::ALL, "work is going on and needs nobody";
    /// Somebody must change something.
    Stalled: TrueIsAbnormal, &Kind::ALL, "only a change by somebody helps";
    /// The back end answered.
    BackendReachable: TrueIsNormal, &Kind::ALL, "the last observation was complete";
    /// Everything in spec counts.
    FieldsSupported: TrueIsNormal, &Kind::ALL, "nothing in spec is ignored by this back end";

    /// The files are here.
    Fetched: TrueIsNormal, &[Kind::LayaModel], "the files of the checkpoint are here";
    /// The files are right.
    Verified: TrueIsNormal, &[Kind::LayaModel], "the files are those of the manifest, and the contract is the asked one";
    /// A server has it.
    InUse: Informative, &[Kind::LayaModel], "a LayaServer has it as champion, candidate or previous";

    /// The wished model is ready.
    ModelReady: TrueIsNormal, &[Kind::LayaServer], "the wished LayaModel is Ready";
    /// A replica answers.
    Available: TrueIsNormal, &[Kind::LayaServer], "at least one champion replica answers";
    /// The questions are known.
    ContractMatched: TrueIsNormal, &[Kind::LayaServer], "every replica answers the contract's questions";
    /// The answers are right.
    Probed: TrueIsNormal, &[Kind::LayaServer], "the last probe questions were answered right";
    /// The device is the asked one.
    DeviceMatched: TrueIsNormal, &[Kind::LayaServer], "the serving device is the asked one";
    /// The wish is served.
    RolledOut: TrueIsNormal, &[Kind::LayaServer], "the champion is the wish and its bake is over";
    /// There is a way back.
    RollbackReady: TrueIsNormal, &[Kind::LayaServer], "image and weights of the previous version are here";
    /// A foreign server answers.
    Adopted: Informative, &[Kind::LayaServer], "the server of spec.external answers; absent without it";

    /// The rows are here.
    DatasetReady: TrueIsNormal, &[Kind::TrainingRun], "the dataset is here and pinned";
    /// A task trains.
    Running: TrueIsNormal, &[Kind::TrainingRun], "the training runs";
    /// There is a model.
    Succeeded: TrueIsNormal, &[Kind::TrainingRun], "the training made a model";
    /// The gate said yes.
    GatePassed: TrueIsNormal, &[Kind::TrainingRun], "the gate's verdict is Passed";
    /// The server wishes it.
    Promoted: TrueIsNormal, &[Kind::TrainingRun], "the server serves the model that was made";

    /// The held-out rows are here.
    DataReady: TrueIsNormal, &[Kind::EvaluationGate], "the held-out rows are here";

    /// The policy compiles.
    Accepted: TrueIsNormal, &[Kind::RoutingPolicy], "the spec compiles and routers may use it";
}

impl ConditionType {
    /// Those that objects of a kind may have.
    pub fn of(kind: Kind) -> impl Iterator<Item = Self> {
        Self::ALL
            .iter()
            .copied()
            .filter(move |condition| condition.kinds().contains(&kind))
    }

    /// A type by its word.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|condition| condition.as_str() == word)
    }
}

impl std::fmt::Display for ConditionType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_no_object_can_have_more_than_fit() {
        let words: std::collections::BTreeSet<_> = ConditionType::ALL
            .iter()
            .map(|item| item.as_str())
            .collect();
        assert_eq!(words.len(), ConditionType::ALL.len());
        for kind in Kind::ALL {
            let count = ConditionType::of(kind).count();
            assert!((6..=16).contains(&count), "{kind}: {count}");
        }
        for condition in ConditionType::ALL {
            assert_eq!(ConditionType::by_word(condition.as_str()), Some(*condition));
        }
    }
}
