//! What happened to a decision (routing.md 11, 18): the report a client sends for each attempt, and what it says about
//! the model that ran it. Storing reports and keeping them in order is the store's.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::bounded::{Ratio, Usd};
use crate::estimate::{Tokens, Used};
use crate::history::{self, AttemptEnd, Checks, HistoryKey, Observation};
use crate::provider_error::{ErrorClass, classify};
use crate::record::{Decision, DecisionKind};
use crate::registry::ModelRef;
use crate::request::FieldError;
use decision::vocabulary::Validation;

/// Most attempts of one decision that are recorded.
pub const MOST_ATTEMPTS: u32 = 1000;

/// How an attempt ended, in the words of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttemptResult {
    /// Completed, and its checks did not fail.
    Success,
    /// Checks failed at the end, escalated away, or an error that is not the provider's.
    Failure,
    /// The provider's fault.
    ProviderError,
    /// The user stopped it.
    Aborted,
    /// The user's steering replaced it.
    Superseded,
}

impl AttemptResult {
    /// Every result.
    pub const ALL: &'static [Self] = &[
        Self::Success,
        Self::Failure,
        Self::ProviderError,
        Self::Aborted,
        Self::Superseded,
    ];

    /// The word used in JSON and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::ProviderError => "provider_error",
            Self::Aborted => "aborted",
            Self::Superseded => "superseded",
        }
    }
}

/// What an attempt used.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens sent, cached ones included.
    #[serde(default)]
    pub input_tokens: u64,
    /// Those of them that came from the provider's cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// Tokens written to the provider's cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Tokens received.
    #[serde(default)]
    pub output_tokens: u64,
    /// What the provider charges, in USD; absent where that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Wall clock, in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

impl Usage {
    /// The tokens by class.
    #[must_use]
    pub const fn tokens(&self) -> Tokens {
        Tokens {
            input: self.input_tokens,
            cached_input: self.cached_input_tokens,
            cache_write: self.cache_write_tokens,
            output: self.output_tokens,
        }
    }

    /// The cost, if it is known and a sum of money.
    #[must_use]
    pub fn cost(&self) -> Option<Usd> {
        self.cost_usd.and_then(|cost| Usd::clamped(cost).ok())
    }
}

/// An error of a provider as its client saw it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProviderErrorFacts {
    /// The client's own verdict; wins over the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Error body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How long the provider asked to be left alone, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl ProviderErrorFacts {
    /// What kind of error it is.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        self.class
            .unwrap_or_else(|| classify(self.status, self.message.as_deref().unwrap_or_default()))
    }
}

/// Body of `POST /v1/outcomes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OutcomeReport {
    /// Which decision.
    pub decision_id: Uuid,
    /// Counted from 1.
    pub attempt: u32,
    /// How it ended.
    pub result: AttemptResult,
    /// What the last check said, if one ran.
    #[serde(default)]
    pub tests_passed: Option<bool>,
    /// Tool calls that failed.
    #[serde(default)]
    pub tool_failures: u32,
    /// Whether the user's next message said that it was wrong. The only thing that may change later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<bool>,
    /// Whether no other attempt of the decision follows.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// With result `provider_error`: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_error: Option<ProviderErrorFacts>,
}

impl OutcomeReport {
    /// Checks what the types cannot say.
    ///
    /// # Errors
    /// Every refused field; never an empty list.
    pub fn check(&self) -> Result<(), Vec<FieldError>> {
        let mut errors = Vec::new();
        if !(1..=MOST_ATTEMPTS).contains(&self.attempt) {
            let message = format!("must lie between 1 and {MOST_ATTEMPTS}");
            errors.push(FieldError::new("attempt", message));
        }
        if let Some(cost) = self.usage.and_then(|usage| usage.cost_usd)
            && (!cost.is_finite() || cost < 0.0)
        {
            errors.push(FieldError::new(
                "usage.cost_usd",
                "must be a finite number of at least 0",
            ));
        }
        if self.provider_error.is_some() && self.result != AttemptResult::ProviderError {
            errors.push(FieldError::new(
                "provider_error",
                "goes with result `provider_error` only",
            ));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }

    /// Whether another report says the same but for `corrected`.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let plain = |report: &Self| Self {
            corrected: None,
            ..report.clone()
        };
        plain(self) == plain(other)
    }

    fn end(&self, validation: Validation, corrected: bool) -> AttemptEnd {
        let checks = match self.tests_passed {
            Some(true) => Checks::Passed,
            Some(false) => Checks::Failed,
            None if validation == Validation::None => Checks::NothingToCheck,
            None => Checks::NotRun,
        };
        match self.result {
            AttemptResult::Success if corrected => AttemptEnd::Corrected(checks),
            AttemptResult::Success => AttemptEnd::Finished(checks),
            AttemptResult::Failure => AttemptEnd::AgentError,
            AttemptResult::ProviderError => AttemptEnd::ProviderError,
            AttemptResult::Aborted => AttemptEnd::Aborted,
            AttemptResult::Superseded => AttemptEnd::Superseded,
        }
    }
}

/// One attempt's say about a model at a class of tasks, and what it used: what history is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvidenceEvent {
    /// Class of the task.
    pub class: HistoryKey,
    /// The model that ran it.
    pub model: ModelRef,
    /// For or against; nothing where the attempt says nothing about the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
    /// An earlier observation of the same attempt that this one takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Observation>,
    /// Tokens of a task that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
}

/// The class of tasks a decision belongs to.
#[must_use]
pub fn class_of(decision: &Decision) -> HistoryKey {
    let task = &decision.assessment.task;
    let complexity = Ratio::clamped(task.complexity).unwrap_or(Ratio::ONE);
    history::key(task.task_type, complexity)
}

/// What a report says about the model of its decision; nothing for direct requests, which have no history. `at` is when
/// the report was first recorded, so that a correction does not make an old attempt young again.
#[must_use]
pub fn observe(
    decision: &Decision,
    report: &OutcomeReport,
    corrected: bool,
    at: Timestamp,
) -> Option<Observation> {
    if decision.kind == DecisionKind::Direct {
        return None;
    }
    let end = report.end(decision.policy.validation.level, corrected);
    history::weigh(end).map(|(counts, weight)| Observation { at, counts, weight })
}

/// The event of a report that is recorded for the first time; nothing if it says nothing at all.
#[must_use]
pub fn first_event(
    decision: &Decision,
    report: &OutcomeReport,
    corrected: bool,
    at: Timestamp,
) -> Option<EvidenceEvent> {
    let observation = observe(decision, report, corrected, at);
    let used = report
        .usage
        .filter(|_| report.is_final && decision.kind != DecisionKind::Direct)
        .map(|usage| usage.tokens())
        .filter(|tokens| tokens.input > 0 || tokens.output > 0)
        .map(|tokens| Used { at, tokens });
    (observation.is_some() || used.is_some()).then(|| EvidenceEvent {
        class: class_of(decision),
        model: decision.selected.model.clone(),
        observation,
        replaces: None,
        used,
    })
}

/// The event of a correction that comes, or is taken back, after the report was recorded at `at`; nothing if it changes
/// nothing.
#[must_use]
pub fn correction_event(
    decision: &Decision,
    report: &OutcomeReport,
    corrected: bool,
    at: Timestamp,
) -> Option<EvidenceEvent> {
    let before = observe(decision, report, !corrected, at)?;
    let after = observe(decision, report, corrected, at)?;
    (before != after).then(|| EvidenceEvent {
        class: class_of(decision),
        model: decision.selected.model.clone(),
        observation: Some(after),
        replaces: Some(before),
        used: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::{Client, Explain, Moment, NO_MODEL, NothingKnown, decide, prepare};
    use crate::history::Counts;
    use crate::policy::{Policy, PolicySource};
    use crate::request::RouteRequest;

    fn decision(text: &str) -> Decision {
        let today = "2026-11-30".parse().unwrap();
        let policy = Policy::compile("test", "", PolicySource::default(), today).unwrap();
        let request = RouteRequest::new(text);
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        let prepared = prepare(&request, &policy, Client::Own, None, now).unwrap();
        let moment = Moment::new(now, [7; 28], &|| 0.0, Explain::No);
        decide(&prepared, NO_MODEL, &NothingKnown, moment)
            .unwrap()
            .decision
    }

    fn report(body: &str) -> OutcomeReport {
        let id = "0193d2b1-0000-7000-8000-000000000001";
        let text = format!(r#"{{"decision_id":"{id}","attempt":1,"final":true,{body}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn an_attempt_counts_as_section_11_says() {
        let checked = decision("Fix the pager");
        let unchecked = decision("What is a CRDT?");
        let at = checked.created;
        for (name, decision, body, corrected, expected) in [
            (
                "checks passed",
                &checked,
                r#""result":"success","tests_passed":true"#,
                false,
                Some((Counts::Success, 1.0)),
            ),
            (
                "no check ran",
                &checked,
                r#""result":"success","tests_passed":null"#,
                false,
                Some((Counts::Success, 0.5)),
            ),
            (
                "nothing to check",
                &unchecked,
                r#""result":"success""#,
                false,
                Some((Counts::Success, 1.0)),
            ),
            (
                "checks failed",
                &checked,
                r#""result":"success","tests_passed":false"#,
                false,
                Some((Counts::Failure, 1.0)),
            ),
            (
                "failure",
                &checked,
                r#""result":"failure""#,
                false,
                Some((Counts::Failure, 1.0)),
            ),
            (
                "corrected",
                &checked,
                r#""result":"success","tests_passed":true"#,
                true,
                Some((Counts::Failure, 0.5)),
            ),
            (
                "a failure is not corrected",
                &checked,
                r#""result":"failure""#,
                true,
                Some((Counts::Failure, 1.0)),
            ),
            (
                "provider error",
                &checked,
                r#""result":"provider_error""#,
                false,
                None,
            ),
            ("aborted", &checked, r#""result":"aborted""#, false, None),
            (
                "superseded",
                &checked,
                r#""result":"superseded""#,
                true,
                None,
            ),
        ] {
            let seen = observe(decision, &report(body), corrected, at);
            let seen = seen.map(|seen| (seen.counts, seen.weight.get()));
            assert_eq!(seen, expected, "{name}");
        }
    }

    #[test]
    fn a_correction_takes_the_place_of_the_success_at_its_time() {
        let decision = decision("Fix the pager");
        let success = report(r#""result":"success","tests_passed":true"#);
        let event = correction_event(&decision, &success, true, decision.created).unwrap();
        assert_eq!(
            event.replaces.map(|seen| seen.counts),
            Some(Counts::Success)
        );
        assert_eq!(
            event.observation.map(|seen| seen.at),
            Some(decision.created)
        );
        let failure = report(r#""result":"failure""#);
        assert_eq!(
            correction_event(&decision, &failure, true, decision.created),
            None
        );
    }

    #[test]
    fn refuses_what_the_types_let_through() {
        for (name, body, path) in [
            ("fine", r#""result":"success""#, None),
            (
                "cost",
                r#""result":"success","usage":{"cost_usd":-1}"#,
                Some("usage.cost_usd"),
            ),
            (
                "stray error",
                r#""result":"success","provider_error":{"status":429}"#,
                Some("provider_error"),
            ),
        ] {
            let refused = report(body)
                .check()
                .err()
                .map(|errors| errors[0].path.clone());
            assert_eq!(refused.as_deref(), path, "{name}");
        }
        let zeroth = OutcomeReport {
            attempt: 0,
            ..report(r#""result":"success""#)
        };
        assert_eq!(zeroth.check().unwrap_err()[0].path, "attempt");
    }

    #[test]
    fn only_corrected_may_differ() {
        let first = report(r#""result":"success""#);
        assert!(first.agrees_with(&report(r#""result":"success","corrected":true"#)));
        assert!(!first.agrees_with(&report(r#""result":"failure""#)));
    }
}
