//! Who judges a request: given labels, the task that goes on, memory, the decision model, or the keyword rules; and
//! which rules fire whatever they say (routing.md 2, 3, 5).

use decision::Labels;
use decision::vocabulary::Tier;

use super::Prepared;
use crate::assessment::{Assessment, Source};
use crate::follow_up::{self, Effect};
use crate::from_answers;
use crate::reason::Fallback;
use crate::record::{MemoryProvenance, ModelProvenance, Truncated};
use crate::request::{FieldError, RouteRequest};
use crate::requirement::FiredRule;

/// What the caller found out about [`Prepared::question`].
#[derive(Debug, Clone)]
pub enum Judgement<'a> {
    /// Nobody answered; the rules do. Says why the model did not, if it should have.
    Rules {
        /// Why.
        fallback: Option<Fallback>,
    },
    /// The decision model answered.
    Model {
        /// Its answers, from [`from_answers::from_answers`].
        assessment: Assessment,
        /// Which model.
        provenance: ModelProvenance,
        /// What it did not see.
        truncated: Truncated,
    },
    /// A learned task passed the route test.
    Memory {
        /// Its labels.
        labels: &'a Labels,
        /// Which task.
        provenance: MemoryProvenance,
    },
}

/// No decision model is configured or serving.
pub const NO_MODEL: Judgement<'static> = Judgement::Rules {
    fallback: Some(Fallback::NoModel),
};

/// A judged request.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) assessment: Assessment,
    pub(super) fired: Vec<FiredRule>,
    pub(super) model: Option<ModelProvenance>,
    pub(super) memory: Option<MemoryProvenance>,
    pub(super) truncated: Truncated,
    pub(super) fallback: Option<Fallback>,
}

impl Judged {
    pub(super) fn was_truncated(&self) -> bool {
        let Truncated {
            request,
            state_tokens_dropped,
            questions,
        } = &self.truncated;
        *request || *state_tokens_dropped > 0 || !questions.is_empty()
    }
}

/// The assessment that given labels stand for.
pub(super) fn from_labels(request: &RouteRequest) -> Result<Option<Assessment>, Vec<FieldError>> {
    let Some(tree) = &request.labels else {
        return Ok(None);
    };
    match Labels::from_json(tree) {
        Ok(labels) => Ok(Some(from_answers::from_labels(
            &labels,
            Source::Memory,
            1.0,
        ))),
        Err(errors) => Err(errors
            .0
            .into_iter()
            .map(|error| FieldError::new(error.path, error.message))
            .collect()),
    }
}

pub(super) fn judge(prepared: &Prepared<'_>, judgement: Judgement<'_>) -> Judged {
    let mut judged = Judged {
        assessment: prepared.derived.assessment.clone(),
        fired: fired(prepared),
        model: None,
        memory: None,
        truncated: Truncated::default(),
        fallback: None,
    };
    if let Some(labels) = &prepared.labels {
        judged.assessment = labels.clone();
        return judged;
    }
    if prepared.question().is_none() {
        // The task before goes on as it was judged; an acknowledgement is judged by its own few words.
        let goes_on = matches!(prepared.effect, Effect::GoOn { .. } | Effect::Repair { .. });
        if let Some(previous) = prepared.previous.filter(|_| goes_on) {
            judged.assessment = previous.assessment.clone();
            keep_rules(prepared, &previous.policy.rules, &mut judged.fired);
        }
        return judged;
    }
    if let (Effect::Extend { .. }, Some(previous)) = (prepared.effect, prepared.previous) {
        keep_rules(prepared, &previous.policy.rules, &mut judged.fired);
    }
    match judgement {
        Judgement::Rules { fallback } => judged.fallback = fallback,
        Judgement::Model {
            assessment,
            provenance,
            truncated,
        } => {
            judged.assessment = assessment;
            judged.model = Some(provenance);
            judged.truncated = truncated;
            if judged.was_truncated() {
                raise(&mut judged.assessment, &prepared.derived.assessment);
            }
        }
        Judgement::Memory { labels, provenance } => {
            judged.assessment =
                from_answers::from_labels(labels, Source::Memory, provenance.similarity);
            judged.memory = Some(provenance);
        }
    }
    extend(prepared, &mut judged.assessment);
    judged
}

/// The rules that fire on the whole text, with the floors of those the policy added.
fn fired(prepared: &Prepared<'_>) -> Vec<FiredRule> {
    prepared
        .fired
        .iter()
        .map(|id| with_floor(prepared, id.as_str()))
        .collect()
}

fn with_floor(prepared: &Prepared<'_>, id: &str) -> FiredRule {
    let added = prepared
        .policy
        .source
        .rules
        .iter()
        .find(|rule| rule.id == id);
    FiredRule {
        id: id.to_owned(),
        own_floor: added.and_then(|rule| rule.floor),
    }
}

/// A task that goes on stays as sensitive as it was.
fn keep_rules(prepared: &Prepared<'_>, before: &[String], fired: &mut Vec<FiredRule>) {
    let mut all: Vec<_> = before.iter().map(|id| with_floor(prepared, id)).collect();
    all.extend(fired.drain(..).filter(|rule| !before.contains(&rule.id)));
    *fired = all;
}

/// Where the model did not see everything, the rules did: tier, effort, complexity and risk are the higher of both.
fn raise(assessment: &mut Assessment, rules: &Assessment) {
    let recommendation = &mut assessment.recommendation;
    recommendation.tier = recommendation.tier.max(rules.recommendation.tier);
    recommendation.effort = recommendation.effort.max(rules.recommendation.effort);
    assessment.task.complexity = assessment.task.complexity.max(rules.task.complexity);
    assessment.task.risk = assessment.task.risk.max(rules.task.risk);
}

/// An amendment takes the higher of both assessments, field by field, where the text of the task is not at hand: it was
/// not kept, or the message before was itself a follow-up and says little of the task.
fn extend(prepared: &Prepared<'_>, assessment: &mut Assessment) {
    if let (Effect::Extend { .. }, Some(previous)) = (prepared.effect, prepared.previous)
        && prepared.task_text().is_none()
    {
        *assessment = follow_up::higher_of(&previous.assessment, assessment);
    }
}

/// Strong and above is sensitive.
pub(super) const SENSITIVE: Tier = Tier::Strong;
