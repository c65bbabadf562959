//! Every word that may stand as a reason (control-plane 1.3, 2–6): in a condition, in a rejection, in a verdict, in an
//! error of an evaluation, in a problem of a policy. Each says what it means and what to do; the page of
//! troubleshooting is written from this table.

use crate::condition::ConditionType;
use crate::group::Kind;

/// Where a reason stands that is not, or not only, one of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elsewhere {
    /// `status.rejected[].reason` of a LayaServer; the reasons of conditions that reject stand there too.
    Rejection,
    /// `status.traffic.reason` of a LayaServer.
    Traffic,
    /// Why a check of an EvaluationGate is Inconclusive.
    Inconclusive,
    /// `status.evaluations[].error` of an EvaluationGate.
    EvaluationError,
    /// What a problem of a RoutingPolicy is about.
    PolicyProblem,
}

macro_rules! reasons {
    ($($variant:ident: [$($condition:ident),*] [$($elsewhere:ident),*] $meaning:literal, $remedy:literal;)+) => {
        /// Why something is as it is, in one word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason { $(#[doc = $meaning] $variant),+ }

        impl Reason {
            /// All of them, in the order of the page.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }

            /// What it means, without a full stop.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }

            /// What somebody should do, without a full stop.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy),+ }
            }

            /// Conditions whose own word it is.
            #[must_use]
            pub const fn conditions(self) -> &'static [ConditionType] {
                match self { $(Self::$variant => &[$(ConditionType::$condition),*]),+ }
            }

            /// Where else it stands.
            #[must_use]
            pub const fn elsewhere(self) -> &'static [Elsewhere] {
                match self { $(Self::$variant => &[$(Elsewhere::$elsewhere),*]),+ }
            }
        }
    };
}

#[rustfmt::skip] // A table: one row a reason.
mod table {
    use super::{ConditionType, Elsewhere};

    reasons! {

        // Ready and the common conditions
        Reconciled: [Ready] [] "everything the spec asks for is done",
            "nothing";
        Suspended: [Ready, Running] [] "spec.suspend is set",
            "remove spec.suspend to go on";
        Deleting: [Ready] [] "the object is being deleted",
            "nothing; status says what it waits for";
        InvalidSpec: [Ready, Stalled, Accepted] [PolicyProblem] "the spec cannot be read, or what it says does not hold",
            "correct the field that the message names";
        ReferenceNotFound: [Ready, Stalled, ModelReady, Accepted] [PolicyProblem] "an object that the spec names is not there",
            "create it, or name another";
        Waiting: [Ready] [] "something it needs is not ready yet",
            "nothing; the message names what it waits for";
        Progressing: [Reconciling] [] "work is going on",
            "nothing";
        NameTaken: [Stalled, Ready, RolledOut] [] "the name of something we would create belongs to somebody else",
            "rename or remove that, or choose another name";
        Forbidden: [Stalled] [] "the API server refuses what we ask",
            "grant the right that the message names";
        SchemaMismatch: [Stalled] [] "the installed CRD is older or newer than this program",
            "install the CRDs of the version that the message names";
        Observed: [BackendReachable, Fetched, Verified, ModelReady, Available, ContractMatched, Probed, DeviceMatched, RolledOut, RollbackReady, Adopted, DatasetReady, Running, Succeeded, GatePassed, Promoted, DataReady] [] "the last look showed it",
            "nothing";
        EngineUnavailable: [BackendReachable] [] "the container engine does not answer",
            "start the engine; what runs goes on meanwhile";
        EngineForbidden: [BackendReachable] [] "the container engine refuses this user",
            "give the user the right to use the engine's socket";
        ApiUnavailable: [BackendReachable] [] "the API server does not answer",
            "nothing, or look after the API server";
        ObservationTimedOut: [BackendReachable] [] "the last look did not end in time",
            "nothing; look at the engine's load when it stays";
        AllApplied: [FieldsSupported] [] "every field of the spec counts",
            "nothing";
        FieldsIgnored: [FieldsSupported] [] "this back end ignores the fields that the message lists",
            "remove them, or use a back end that knows them";

        // LayaModel
        NotStarted: [Fetched] [] "no fetch was started",
            "nothing, or remove spec.suspend";
        Fetching: [Fetched] [] "files are being fetched",
            "nothing";
        SourceUnauthorized: [Fetched, Stalled] [] "the source refuses the credentials (401, 403)",
            "correct the Secret that the spec names";
        SourceNotFound: [Fetched, Stalled] [] "the source has no such file (404)",
            "correct the address or the name of the file";
        SourceBusy: [Fetched] [] "the source is overloaded (429, 5xx)",
            "nothing; it is tried again";
        SourceInterrupted: [Fetched] [] "the connection to the source ended early",
            "nothing; it goes on from where it stopped";
        NoSpace: [Fetched, Succeeded, Available, RolledOut] [EvaluationError] "the volume is full",
            "make room, or ask for a larger volume";
        ReadOnlyVolume: [Fetched] [] "the volume cannot be written",
            "use a volume that can be written";
        FetchDeadlineExceeded: [Fetched] [] "the fetch took longer than spec.fetch.deadlineSeconds",
            "raise the deadline, or use a faster source";
        RunNotFinished: [Fetched] [] "the TrainingRun that makes it has no result yet",
            "nothing";
        VolumePending: [Ready, Fetched] [] "the claim is not bound",
            "look at the claim and its storage class";
        DigestMismatch: [Verified, Stalled, DatasetReady, DataReady] [] "the bytes are not those of the digest",
            "correct the digest, or put the right file there";
        SizeMismatch: [Verified] [] "a file has another size than the manifest says",
            "correct the size, or put the right file there";
        ContractMismatch: [Verified, Stalled, ContractMatched, DatasetReady, DataReady, Accepted] [PolicyProblem] "it is about other questions",
            "use what was made for this contract";
        ContractUnverified: [Verified, ContractMatched] [] "it names no contract and is taken to be ours",
            "set it with relayctl model import";
        UnsafePath: [Verified, Stalled] [] "a path leads out of its folder",
            "correct the manifest";
        BadCheckpoint: [Verified, Stalled] [Rejection] "the configuration or the header of the tensors cannot be read",
            "publish the checkpoint again";
        ModelDamaged: [Verified, ModelReady] [Rejection] "files differ from the manifest",
            "nothing where the source is ours to fetch from; else repair the volume";
        VolumeLost: [Verified] [] "the volume is gone or is another one",
            "nothing; it is fetched again";
        Unused: [InUse] [] "no LayaServer has it",
            "nothing";
        ServedBy: [InUse] [] "a LayaServer has it",
            "nothing";
        StillInUse: [Stalled] [] "it is to be deleted and a LayaServer still has it",
            "give the server another model, or delete the server";

        // LayaServer
        ModelNotReady: [ModelReady] [] "the wished LayaModel is not Ready",
            "look at that LayaModel";
        NoChampion: [Available] [] "no version was promoted yet",
            "nothing, or look at condition RolledOut";
        Starting: [Available, RolledOut] [] "replicas are starting",
            "nothing";
        CrashLoop: [Available] [Rejection] "a replica ends again and again",
            "look at its logs";
        OutOfMemory: [Available, Succeeded] [EvaluationError, Rejection] "it needed more memory than its limit",
            "raise the memory limit";
        ImagePullUnauthorized: [Available, RolledOut] [] "the registry refuses the credentials",
            "correct the Secret in spec.imagePullSecrets";
        ImageNotFound: [Available, RolledOut] [] "the registry has no such image",
            "correct spec.image";
        ImagePullBusy: [Available, RolledOut] [] "the registry is overloaded",
            "nothing; it is tried again";
        ImagePlatformMismatch: [Available, RolledOut] [Rejection] "the image is for another platform",
            "use an image for this platform";
        ImagePullInterrupted: [Available, RolledOut] [] "the connection to the registry ended early",
            "nothing; it is tried again";
        InsufficientMemory: [Available, RolledOut] [] "no node has the memory",
            "lower the request, or add memory";
        InsufficientGpu: [Available, RolledOut] [] "no node has a free GPU",
            "free one, add one, or lower spec.gpu.count";
        SecretMissing: [Available, RolledOut] [] "a Secret or key that the spec names is not there",
            "create it";
        PortInUse: [Available, RolledOut] [] "the port belongs to another program",
            "stop that program, or wait until it ends";
        Gap: [Available] [Traffic] "the old version stops before the new one starts; rules answer",
            "nothing";
        QuestionsUnknown: [ContractMatched] [Rejection] "the server does not know some of the questions",
            "serve a checkpoint of this contract";
        ProbeTimedOut: [Probed] [Rejection] "probe questions were not answered in time",
            "look at the server's load, or raise spec.probe.timeoutMillis";
        WrongAnswers: [Probed] [Rejection] "probe questions were answered wrong",
            "serve another version";
        DeadHead: [Probed] [Rejection] "every probe question has the same answer",
            "serve another version";
        MalformedAnswers: [Probed] [Rejection] "answers to probe questions cannot be read",
            "look at the server's image and checkpoint";
        Cpu: [DeviceMatched] [] "it serves on the CPU",
            "nothing";
        Cuda: [DeviceMatched] [] "it serves on a GPU",
            "nothing";
        DeviceMismatch: [DeviceMatched] [Rejection] "it serves on another device than the asked one",
            "make the device available, or set devicePolicy: Prefer";
        CpuFallback: [DeviceMatched] [Rejection] "it went to the CPU by itself",
            "look at the server's logs for the GPU's error";
        DeviceSuspect: [DeviceMatched] [Rejection] "it claims a GPU and is too slow for one",
            "look at the GPU, or raise spec.deviceCheck.maxP50Millis";
        GpuUnavailable: [DeviceMatched, Available] [Rejection] "no GPU can be used",
            "install the driver, or ask for the CPU";
        GpuLost: [DeviceMatched, Available] [] "the GPU went away in use",
            "look at the machine";
        NotReported: [DeviceMatched] [] "the server names no device",
            "nothing; only its speed counts";
        Preparing: [RolledOut] [] "model, image or room is not there yet",
            "nothing; the message says what is missing";
        Loading: [RolledOut] [] "the candidate loads its model",
            "nothing";
        Probing: [RolledOut] [] "the candidate is asked probe questions",
            "nothing";
        Shadowing: [RolledOut] [] "the candidate answers copies of requests",
            "nothing";
        Gating: [RolledOut] [] "the candidate is judged",
            "nothing";
        AwaitingApproval: [RolledOut, Promoted] [] "a person must say yes",
            "relayctl rollout approve, or relayctl train approve";
        Shifting: [RolledOut] [] "the candidate gets more traffic step by step",
            "nothing";
        Baking: [RolledOut] [] "the candidate has all traffic and is watched",
            "nothing";
        Paused: [RolledOut] [] "the rollout stands still",
            "look at the message; relayctl rollout resume, abort or retry";
        RollingBack: [RolledOut] [] "traffic goes back to the last good version",
            "nothing";
        Superseded: [RolledOut, Promoted] [] "a newer wish took its place",
            "nothing";
        Withdrawn: [RolledOut] [] "the wish is the champion again",
            "nothing";
        NoRoomForTwo: [RolledOut] [] "old and new do not fit side by side",
            "make room, or set spec.rollout.whenNoRoom: Gap";
        Rejected: [RolledOut, Stalled, Promoted] [] "the version was taken back",
            "change modelRef, or run relayctl rollout retry";
        RollbackFailed: [RolledOut, Stalled] [] "the way back failed; rules answer",
            "look at the logs of both versions";
        NoPrevious: [RollbackReady] [] "there is no earlier version",
            "nothing";
        PreviousImageMissing: [RollbackReady] [] "the image of the previous version is gone",
            "make the registry reachable, or roll forward";
        PreviousModelMissing: [RollbackReady] [] "the weights of the previous version are gone",
            "fetch that LayaModel again, or roll forward";

        // Why a candidate was taken back, when no condition says it
        LoadTimedOut: [] [Rejection] "it was not ready within spec.rollout.progressDeadlineSeconds",
            "look at its logs, or raise the deadline";
        LimitsExceeded: [] [Rejection] "it made more errors, or was slower, than spec.rollout.canary.limits allow",
            "look at its metrics";
        Aborted: [] [Rejection] "a person took it back",
            "relayctl rollout retry tries it again";
        GateFailed: [GatePassed] [Rejection] "it did not pass its gate",
            "look at the checks with relayctl gate show";
        GateInconclusive: [GatePassed] [Rejection] "there was too little to judge by",
            "add held-out rows";
        GateError: [GatePassed] [] "the judging itself failed",
            "look at the error of the evaluation in the gate";

        // TrainingRun
        DatasetMissing: [DatasetReady, DataReady] [] "the rows are not there",
            "create them, or correct the reference";
        TooFewRows: [DatasetReady] [] "there are fewer rows than spec.dataset.minRows",
            "collect more";
        NoSessionRows: [DatasetReady] [] "no row is of a session, which the recipe needs",
            "collect more, or use another recipe";
        Unauthorized: [DatasetReady, DataReady] [] "the source of the rows refuses the credentials",
            "correct the Secret that the spec names";
        Queued: [Running] [] "other runs go first",
            "nothing";
        WaitingForBase: [Running] [] "the LayaModel to start from is not Ready",
            "look at that LayaModel";
        WaitingForGpu: [Running] [] "no GPU is free",
            "nothing, or ask for the CPU";
        BackingOff: [Running] [] "the next attempt comes later",
            "nothing";
        TrainingUnsupported: [Running, Stalled] [] "the embedded engine cannot train",
            "install Docker, then relayctl up --backend docker";
        Finished: [Running] [] "it ended",
            "nothing";
        NoLearning: [Succeeded] [] "the loss did not fall, or is no number",
            "look at the dataset";
        BadData: [Succeeded] [] "the trainer refuses the rows",
            "correct the dataset";
        DeadlineExceeded: [Succeeded] [] "it took longer than spec.deadlineSeconds",
            "raise the deadline";
        NoProgress: [Succeeded] [] "nothing was heard for spec.noProgressSeconds",
            "look at its logs";
        TooManyRestarts: [Succeeded] [] "it ended more often than spec.maxRestarts",
            "look at its logs";
        TrainerFailed: [Succeeded] [] "the trainer failed",
            "look at its logs";
        Cancelled: [Succeeded] [] "spec.cancel was set",
            "nothing";
        OutcomeUnknown: [Succeeded] [] "nobody knows how it ended",
            "make a new run";
        NoGate: [GatePassed] [] "spec.gateRef is not set",
            "nothing";
        Evaluating: [GatePassed] [] "the gate is judging",
            "nothing";
        NotRequested: [Promoted] [] "spec.promote.mode is Never",
            "nothing";

        // EvaluationGate
        EvaluationTimedOut: [] [EvaluationError] "it took longer than spec.deadlineSeconds",
            "raise the deadline";
        EvaluatorFailed: [] [EvaluationError] "the evaluator failed",
            "look at its logs";
        TooFewSamples: [] [Inconclusive] "a check has fewer rows than its minSamples",
            "add held-out rows";
        NoData: [] [Inconclusive] "a check has no row at all",
            "add held-out rows";
        OneClass: [] [Inconclusive] "every row has the same answer",
            "add rows with other answers";
        NotFinite: [] [Inconclusive] "a result is no number",
            "look at the predictions";
        NoAnchor: [] [Inconclusive] "no reference is left to compare with",
            "set spec.shippedRef";
        Leak: [] [Inconclusive] "more than 1 % of the held-out rows were trained on",
            "use rows that no training saw";

        // RoutingPolicy
        Accepted: [Accepted] [] "the spec compiles",
            "nothing";
        UnknownModel: [Accepted] [PolicyProblem] "a tier names a model that spec.models lacks",
            "add it to spec.models";
        BadPattern: [Accepted] [PolicyProblem] "a term cannot be read",
            "correct the term that the message quotes";
        EmptyTier: [Accepted] [PolicyProblem] "a tier has no model",
            "name one, or leave the tier out";
        MissingPrice: [Accepted] [PolicyProblem] "a model has no price, so its cost stays unknown",
            "add spec.models[].prices";
        StalePrice: [Accepted] [PolicyProblem] "a price is older than 90 days",
            "look it up again and set asOf";
        UnusedModel: [Accepted] [PolicyProblem] "no tier names a model of spec.models, so it is never chosen",
            "name it in a tier, or remove it";
    }
}

pub use table::Reason;

impl Reason {
    /// Whether a condition may have it: as its own word, or, on `Ready`, as that of the condition that keeps it from
    /// being true.
    #[must_use]
    pub fn may_stand_on(self, condition: ConditionType) -> bool {
        self.conditions().contains(&condition)
            || (condition == ConditionType::Ready && !self.conditions().is_empty())
    }

    /// Those whose own word on a condition they are, in the order of the page.
    pub fn of(condition: ConditionType) -> impl Iterator<Item = Self> {
        Self::ALL
            .iter()
            .copied()
            .filter(move |reason| reason.conditions().contains(&condition))
    }

    /// Those of control-plane 1.3, which objects of every kind may have.
    const COMMON: [Self; 17] = [
        Self::Reconciled,
        Self::Suspended,
        Self::Deleting,
        Self::InvalidSpec,
        Self::ReferenceNotFound,
        Self::Waiting,
        Self::Progressing,
        Self::NameTaken,
        Self::Forbidden,
        Self::SchemaMismatch,
        Self::Observed,
        Self::EngineUnavailable,
        Self::EngineForbidden,
        Self::ApiUnavailable,
        Self::ObservationTimedOut,
        Self::AllApplied,
        Self::FieldsIgnored,
    ];

    /// Whether an object of the kind may have it: it is common, or belongs to a condition of the kind alone.
    #[must_use]
    pub fn fits(self, kind: Kind) -> bool {
        let own = |condition: &ConditionType| {
            condition.kinds().len() < Kind::ALL.len() && condition.kinds().contains(&kind)
        };
        match self {
            // It stands on `Stalled` alone, which every kind has.
            Self::StillInUse => kind == Kind::LayaModel,
            _ => Self::COMMON.contains(&self) || self.conditions().iter().any(own),
        }
    }

    /// A reason by its word.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.as_str() == word)
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<routing::policy::ProblemReason> for Reason {
    fn from(reason: routing::policy::ProblemReason) -> Self {
        use routing::policy::ProblemReason;
        match reason {
            ProblemReason::InvalidSpec => Self::InvalidSpec,
            ProblemReason::UnknownModel => Self::UnknownModel,
            ProblemReason::BadPattern => Self::BadPattern,
            ProblemReason::EmptyTier => Self::EmptyTier,
            ProblemReason::MissingPrice => Self::MissingPrice,
            ProblemReason::StalePrice => Self::StalePrice,
            ProblemReason::UnusedModel => Self::UnusedModel,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_are_unique_and_an_api_server_takes_them() {
        let words: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert_eq!(Reason::by_word(reason.as_str()), Some(*reason));
            assert!(reason.as_str().len() <= 64, "{reason}");
        }
    }

    #[test]
    fn every_reason_stands_somewhere_and_says_what_it_means_and_what_to_do() {
        for reason in Reason::ALL {
            let places = reason.conditions().len() + reason.elsewhere().len();
            assert!(places > 0, "{reason} stands nowhere");
            for text in [reason.meaning(), reason.remedy()] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{reason}: {text}");
            }
        }
    }

    #[test]
    fn every_condition_can_be_true_and_not() {
        for condition in ConditionType::ALL {
            let count = Reason::of(*condition).count();
            // What is removed when false has no word for that; Adopted is absent when it does not apply.
            let least = match condition {
                ConditionType::Reconciling | ConditionType::Adopted => 1,
                _ => 2,
            };
            assert!(count >= least, "{condition} has {count} reasons");
        }
    }

    #[test]
    fn every_reason_of_a_condition_fits_a_kind_and_no_foreign_one() {
        for reason in Reason::ALL {
            let fits = Kind::ALL.into_iter().any(|kind| reason.fits(kind));
            assert_eq!(fits, !reason.conditions().is_empty(), "{reason}");
        }
        assert!(Reason::NameTaken.fits(Kind::RoutingPolicy));
        assert!(Reason::Rejected.fits(Kind::LayaServer));
        assert!(!Reason::Rejected.fits(Kind::LayaModel));
    }

    #[test]
    fn ready_may_name_the_reason_of_another_condition_and_no_other_may() {
        assert!(Reason::CrashLoop.may_stand_on(ConditionType::Available));
        assert!(Reason::CrashLoop.may_stand_on(ConditionType::Ready));
        assert!(!Reason::CrashLoop.may_stand_on(ConditionType::Fetched));
        assert!(!Reason::LoadTimedOut.may_stand_on(ConditionType::Ready));
    }

    #[test]
    fn every_reason_of_a_policy_problem_is_a_word_of_the_page() {
        for word in routing::policy::ProblemReason::ALL {
            let reason = Reason::from(word);
            assert_eq!(reason.as_str(), word.as_str());
            assert!(
                reason.elsewhere().contains(&Elsewhere::PolicyProblem),
                "{reason}"
            );
            assert!(reason.may_stand_on(ConditionType::Accepted), "{reason}");
        }
    }
}
