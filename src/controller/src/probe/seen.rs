//! What is known of one server from asking it.

use api::kinds::laya_server::ProbeLevel;
use api::reason::Reason;
use jiff::Timestamp;

/// What asking one replica has shown so far.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaProbe {
    /// Its revision; empty for an external server.
    pub revision: String,
    /// Its number.
    pub ordinal: u32,
    /// The address that was asked. What is known of another address is forgotten.
    pub url: String,
    /// Whether it takes requests.
    pub readiness: Readiness,
    /// Whether it has no `/ready`, so that an answered question says whether it takes requests (control-plane 3.2).
    pub plain: bool,
    /// Checkpoint digest that `/health` names, where it does.
    pub digest: Option<String>,
    /// Contract digest that `/health` names, where it does.
    pub contract: Option<String>,
    /// What it says of its device.
    pub device: DeviceSaid,
    /// Probe questions.
    pub questions: Questions,
}

/// Whether a server takes requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Readiness {
    /// `/ready` said yes (`serverApi: Laya`: a probe question was answered), each time since then.
    Ready {
        /// First yes of the unbroken row, in this process.
        since: Timestamp,
        /// How long by the boot-time clock, seconds.
        for_seconds: u64,
    },
    /// It answers, and says no.
    NotReady {
        /// What it says: `Starting`, `LoadFailed`, `WrongDevice`, `WrongContract`, `ProbeFailed`, `Draining`, …
        reason: String,
        /// For people.
        message: String,
        /// What it found out about itself, where that keeps it from ever being ready: the reason of the condition that says
        /// the same.
        verdict: Option<Reason>,
    },
    /// It does not answer.
    Unreachable {
        /// Why.
        message: String,
    },
    /// It was not asked yet.
    Unknown,
}

/// What a server says of its device, and what was measured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceSaid {
    /// `cpu` or `cuda`; `None` where it names none.
    pub claimed: Option<String>,
    /// Falls to the CPU it has counted.
    pub fallbacks: u64,
    /// Whether that grew since the look before.
    pub fallbacks_grew: bool,
    /// Its last reason for one.
    pub last_reason: Option<String>,
    /// Median of 5 calls of one short question after a warm-up, milliseconds.
    pub p50_millis: Option<u32>,
}

/// How the probe questions went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Questions {
    /// How much they prove, once asked.
    pub level: Option<ProbeLevel>,
    /// Whether all of the first round were answered right.
    pub passed_all: bool,
    /// When they were answered right last.
    pub passed_at: Option<Timestamp>,
    /// Wrong, late or unreadable answers in a row, ≥ 10 s apart.
    pub failures: u32,
    /// The last failure, cleared by a right answer.
    pub failed: Option<QuestionsFailed>,
}

/// Why a probe question failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionsFailed {
    /// `ProbeTimedOut`, `WrongAnswers`, `DeadHead`, `MalformedAnswers`, `QuestionsUnknown`, `ContractMismatch`.
    pub reason: Reason,
    /// For people.
    pub message: String,
    /// Whether the server answered and was wrong, so that asking again does not help; else it was not reached in time.
    pub conclusive: bool,
}
