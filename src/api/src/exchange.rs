//! Bodies of the router's routes about what happened after a decision: escalations, outcomes, stored decisions, learned
//! tasks, data sets and the report (routing.md 18, 21).

use std::collections::BTreeMap;

use decision::vocabulary::Tier;
use jiff::Timestamp;
use routing::escalation::Failure;
use routing::outcome::{OutcomeReport, ProviderErrorFacts};
use routing::record::Decision;
use routing::registry::ModelRef;
use routing::request::{FieldError, MAX_LIST};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Most failures of one report.
pub const MAX_FAILURES: usize = 1000;

/// Body of `POST /v1/escalate`: failures since the last user message, or an error of the provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EscalateRequest {
    /// The decision in force.
    pub decision_id: Uuid,
    /// All failures since the last user message, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<Vec<Failure>>,
    /// What the provider answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_error: Option<ProviderErrorFacts>,
    /// Providers with credentials; those of the request when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub providers: Option<Vec<String>>,
}

impl EscalateRequest {
    /// Checks what the types cannot say.
    ///
    /// # Errors
    /// Every refused field; never an empty list.
    pub fn check(&self) -> Result<(), Vec<FieldError>> {
        let mut errors = Vec::new();
        let refuse = |path: &str, message: String| FieldError::new(path, message);
        match (&self.failures, &self.provider_error) {
            (Some(failures), None) if failures.len() > MAX_FAILURES => {
                let message = format!("has {} entries, limit {MAX_FAILURES}", failures.len());
                errors.push(refuse("failures", message));
            }
            (Some(_), None) | (None, Some(_)) => {}
            (Some(_), Some(_)) => {
                let message = "stands beside `failures`; send one of them";
                errors.push(refuse("provider_error", message.to_owned()));
            }
            (None, None) => {
                let message = "is missing; send `failures` or `provider_error`";
                errors.push(refuse("failures", message.to_owned()));
            }
        }
        let providers = self.providers.as_ref().map_or(0, Vec::len);
        if providers > MAX_LIST {
            let message = format!("has {providers} entries, limit {MAX_LIST}");
            errors.push(refuse("providers", message));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EscalateAction {
    /// The new decision holds from the next request on.
    Move,
    /// Nothing changes.
    Stay,
    /// The same model, later.
    Wait,
    /// The conversation must be made shorter.
    Compact,
}

/// Answer to `POST /v1/escalate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EscalateResponse {
    /// What to do.
    pub action: EscalateAction,
    /// With `move`: the new decision. With `exhausted`: the decision whose plan says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Box<Decision>>,
    /// Weighted failures so far.
    pub failure_score: f64,
    /// What they are measured against; 0 = never.
    pub threshold: u32,
    /// Whether there is nothing above: the user should be asked.
    pub exhausted: bool,
    /// With `wait`: how long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// What history makes of a model after an outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryStanding {
    /// Class of the task.
    pub key: String,
    /// The model.
    pub model: ModelRef,
    /// Decayed successes.
    pub successes: f64,
    /// Decayed failures.
    pub failures: f64,
    /// Posterior mean of success.
    pub mean: f64,
    /// Optimistic bound.
    pub upper: f64,
    /// Whether the model is left out for this class.
    pub excluded: bool,
}

/// Answer to `POST /v1/outcomes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutcomeResponse {
    /// Whether it is on disk; false only where recording is off.
    pub recorded: bool,
    /// What history makes of the model now.
    pub history: HistoryStanding,
}

/// A stored decision with what happened to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionWithOutcomes {
    /// The record.
    #[serde(flatten)]
    pub decision: Decision,
    /// Its outcomes, by attempt.
    pub outcomes: Vec<RecordedOutcome>,
}

/// One recorded outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedOutcome {
    /// What the client reported; `corrected` says what holds now.
    #[serde(flatten)]
    pub report: OutcomeReport,
    /// When it was recorded.
    #[serde(with = "routing::timestamp")]
    #[cfg_attr(feature = "schema", schemars(with = "Timestamp"))]
    pub recorded_at: Timestamp,
}

/// Answer to `GET /v1/decisions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionsResponse {
    /// Newest first.
    pub decisions: Vec<DecisionWithOutcomes>,
    /// Where the next page starts, if there is one.
    pub next_cursor: Option<String>,
}

/// A learned task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryTask {
    /// Its id.
    pub id: String,
    /// The request as it was given.
    pub request: String,
    /// What it taught.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lesson: Option<String>,
    /// When it was labelled; absent where its row does not say.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "routing::timestamp::optional"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Timestamp>"))]
    pub created: Option<Timestamp>,
    /// Its labels as they were given.
    pub labels: Value,
    /// Whether they do not fit the questions in force.
    pub stale: bool,
    /// Session it was learned in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// `train`, `val` or `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// In a search: how close it is, 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
}

/// Answer to `GET /v1/memory` and its search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryResponse {
    /// Learned tasks: oldest first, in a search closest first.
    pub tasks: Vec<MemoryTask>,
    /// How many there are in all.
    pub total: usize,
    /// How many of them are stale.
    pub stale: usize,
    /// Revision of the data set.
    pub revision: u64,
}

/// Body of `PATCH /v1/memory/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MemoryPatch {
    /// The new lesson; blank removes it.
    pub lesson: String,
}

/// Answer to `DELETE /v1/memory/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForgetResponse {
    /// Ids that were removed.
    pub forgotten: Vec<String>,
    /// Models that were trained on them already.
    pub trained_models: Vec<String>,
}

/// Decisions of one kind in the report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportGroup {
    /// Decisions.
    pub decisions: u64,
    /// Decisions with a final outcome that says something about the model.
    pub judged: u64,
    /// Those that went well.
    pub successes: u64,
}

/// Answer to `GET /v1/report`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportResponse {
    /// From when on.
    #[serde(with = "routing::timestamp")]
    #[cfg_attr(feature = "schema", schemars(with = "Timestamp"))]
    pub since: Timestamp,
    /// Until when.
    #[serde(with = "routing::timestamp")]
    #[cfg_attr(feature = "schema", schemars(with = "Timestamp"))]
    pub until: Timestamp,
    /// Everything.
    pub total: ReportGroup,
    /// By chosen tier.
    pub by_tier: BTreeMap<Tier, ReportGroup>,
    /// By who judged the request.
    pub by_source: BTreeMap<String, ReportGroup>,
    /// Moves to a stronger model or more thinking.
    pub escalations: u64,
    /// Moves to another provider.
    pub provider_moves: u64,
    /// Decisions taken to learn about a model.
    pub explorations: u64,
    /// Money.
    pub cost: ReportCost,
    /// What the figures rest on.
    pub assumptions: Vec<String>,
}

/// Money in the report, USD.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportCost {
    /// Estimated cost of what was chosen, over decisions whose cost is known.
    pub estimated: f64,
    /// The same decisions on the baseline.
    pub baseline: f64,
    /// Baseline less estimated.
    pub savings: f64,
    /// Decisions whose cost or baseline is unknown: not part of the three figures above.
    pub unknown: u64,
    /// Cost that clients reported.
    pub reported: f64,
}
