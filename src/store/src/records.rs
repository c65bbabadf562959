//! What is stored and what reads answer.

use std::sync::Arc;

use decision::vocabulary::Tier;
use jiff::{SignedDuration, Timestamp};
use routing::assessment::Source;
use routing::history::HistoryKey;
use routing::outcome::{EvidenceEvent, OutcomeReport};
use routing::provider_error::ErrorClass;
use routing::quota::{ProviderFault, QuotaState};
use routing::record::Decision;
use uuid::Uuid;

/// What became of a write that nobody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Kept {
    /// It is committed with one of the next groups.
    Queued,
    /// Too many writes wait, or the store is closed; it is not kept.
    Full,
}

/// What became of a reported outcome.
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    /// The first report of this attempt.
    New {
        /// The decision it belongs to.
        decision: Arc<Decision>,
    },
    /// The same report as before.
    Same {
        /// The decision it belongs to.
        decision: Arc<Decision>,
        /// What was answered the first time, if that was kept.
        answer: Option<String>,
    },
    /// The same report as before but for `corrected`, which was changed.
    Corrected {
        /// The decision it belongs to.
        decision: Arc<Decision>,
    },
    /// Another report of this attempt is recorded; nothing was changed.
    Conflict {
        /// The one that stands.
        recorded: Box<OutcomeReport>,
    },
    /// Its client wants no outcomes stored (routing.md 19); nothing was.
    NotWanted {
        /// The decision it belongs to.
        decision: Arc<Decision>,
    },
    /// The tenant has no such decision.
    UnknownDecision,
}

/// An error of a provider inside a task.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderFaultReport {
    /// The decision whose model failed.
    pub decision: Uuid,
    /// Its provider.
    pub provider: String,
    /// What kind of error.
    pub class: ErrorClass,
    /// What it does to the provider's quota, if anything.
    pub fault: Option<ProviderFault>,
    /// How long the provider asked to be left alone.
    pub retry_after: Option<SignedDuration>,
}

/// An answer to an escalation, and the decision it made.
#[derive(Debug, Clone, PartialEq)]
pub struct Escalation {
    /// The decision that failed.
    pub decision: Uuid,
    /// What makes two requests the same for this decision.
    pub key: String,
    /// Sum of failures at this escalation.
    pub score: f64,
    /// The answer to give again.
    pub answer: String,
    /// The decision that takes over.
    pub new_decision: Option<Arc<Decision>>,
    /// What the client said of itself, for the decision that was made.
    pub client: Option<String>,
    /// Whether outcomes of the decision that was made are stored.
    pub records: bool,
}

/// A decision with what happened to it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDecision {
    /// The record.
    pub decision: Decision,
    /// Whether the user's next message called it wrong before any outcome was reported.
    pub corrected: bool,
    /// Its attempts, in order.
    pub outcomes: Vec<StoredOutcome>,
    /// Sum of failures at the escalation that made it; 0 otherwise.
    pub born_score: f64,
    /// What the client said of itself when it asked, as it was kept.
    pub client: Option<String>,
    /// Whether its outcomes are stored.
    pub records: bool,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredOutcome {
    /// As it was reported first, but for the message of an error of the provider.
    pub report: OutcomeReport,
    /// Whether it counts as corrected now.
    pub corrected: bool,
    /// When it was reported first.
    pub recorded: Timestamp,
}

/// Which decisions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DecisionQuery {
    /// Of this conversation only.
    pub conversation_id: Option<String>,
    /// Made at this moment or later.
    pub since: Option<Timestamp>,
    /// Most per page, 1..=500; 0 stands for 50.
    pub limit: u32,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

/// A page of decisions, newest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DecisionPage {
    /// At most as many as asked for, and at most some 4 MiB.
    pub decisions: Vec<StoredDecision>,
    /// Where the next page starts; nothing at the end.
    pub next_cursor: Option<String>,
}

/// What happened to the decisions of one tier, source and profile. Direct requests are not counted.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportRow {
    /// Tier of the chosen model.
    pub tier: Tier,
    /// Who assessed the request.
    pub source: Source,
    /// Cost profile in force.
    pub profile: String,
    /// Decisions.
    pub count: u64,
    /// Those with a final outcome that says something about the model.
    pub judged: u64,
    /// Those of them that succeeded.
    pub successes: u64,
    /// Decisions made because a task kept failing.
    pub escalations: u64,
    /// Decisions made because a provider failed.
    pub provider_moves: u64,
    /// Decisions taken to learn about a model.
    pub explored: u64,
    /// Sum of the estimates, USD, of decisions whose savings are known, too.
    pub estimated_cost: f64,
    /// Decisions whose estimate or savings are unknown.
    pub unknown_cost: u64,
    /// Sum of the estimated savings against the baseline, USD, of the same decisions.
    pub estimated_savings: f64,
    /// Decisions whose savings are unknown.
    pub unknown_savings: u64,
    /// Sum of the costs that were reported, USD.
    pub reported_cost: f64,
    /// Decisions with a reported cost.
    pub reported_cost_count: u64,
    /// Tokens sent, cached ones included.
    pub input_tokens: u64,
    /// Those of them that came from the provider's cache.
    pub cached_input_tokens: u64,
    /// Tokens written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
}

/// A line of `dataset.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRow {
    /// Its id.
    pub id: String,
    /// The whole line, without the line break.
    pub line: String,
}

/// The rows of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dataset {
    /// Counts the changes; 0 where there was none.
    pub revision: u64,
    /// The highest number an id of a session row (`s00001`) ever had.
    pub highest_session_number: u64,
    /// In the order they came; a replaced row keeps its place.
    pub rows: Vec<StoredRow>,
}

/// A change of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowWrite {
    /// Adds a row or takes the place of the one with its id.
    Put(StoredRow),
    /// Forgets a row and its earlier versions.
    Remove(String),
}

/// Looks at the rows and says what to change. Runs inside the transaction, with the tenant's rows locked, and again if
/// that is rolled back.
pub type DatasetEdit<T> = Arc<dyn Fn(&Dataset) -> (Vec<RowWrite>, T) + Send + Sync>;

/// A frozen dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its digest; two with the same are the same.
    pub digest: String,
    /// Canonical JSONL.
    pub body: String,
}

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Decisions with their outcomes, in days.
    pub days: u32,
    /// Most decisions of a tenant. None of the last 24 hours is removed for it.
    pub most_decisions: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            days: 90,
            most_decisions: 100_000,
        }
    }
}

/// What pruning removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Decisions, each with its outcomes.
    pub decisions: u64,
    /// Snapshots that nobody read for 30 days.
    pub snapshots: u64,
    /// Evidence older than 90 days.
    pub events: u64,
    /// Answers to escalations and counts of faults whose decision is long gone, and quota that did not change for 90
    /// days.
    pub leftovers: u64,
}

/// Something that changed for every process on this database.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// What an attempt says about a model.
    Evidence(EvidenceEvent),
    /// A model was taken to learn about it.
    Explored {
        /// Class of the task.
        class: HistoryKey,
        /// When.
        at: Timestamp,
    },
    /// The quota of a provider; only the latest state of each is told.
    Quota {
        /// Which.
        provider: String,
        /// All of it.
        state: QuotaState,
    },
    /// The rows of the tenant; only the latest revision is told.
    Dataset {
        /// Its revision now.
        revision: u64,
    },
}

/// What changed since a number, in order of commit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// Give this the next time.
    pub last: u64,
    /// Tenant and event.
    pub events: Vec<(Arc<str>, Event)>,
}
