//! How a decision came about, step by step, for people (`relay route --explain`). Not part of the record.

use decision::vocabulary::{TaskType, Tier};
use serde::{Deserialize, Serialize};

use super::Prepared;
use super::choose::Wish;
use super::judge::Judged;
use super::select::Choice;
use crate::assessment::{Source, TOLERANCE};
use crate::follow_up::FollowUp;
use crate::hidden_message::one_line;
use crate::keywords::Group;
use crate::keywords::scan::MatchedTerm;
use crate::reason::{Exclusion, Fallback};
use crate::registry::ModelRef;
use crate::rules::RuleId;
use crate::selection::{Eligible, Scored};

/// Most words shown as evidence of one group.
const SHOWN_TERMS: usize = 3;

/// One step: what was looked at, what came out, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// For example `type`, `floor`, `effort`.
    pub name: String,
    /// What came out.
    pub result: String,
    /// Why.
    pub because: String,
}

/// A candidate in the ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankedModel {
    /// `provider/model`.
    pub model: ModelRef,
    /// Its tier.
    pub tier: Tier,
    /// Estimated success S.
    pub success: f64,
    /// q·S.
    pub quality: f64,
    /// c·cost.
    pub cost: f64,
    /// l·latency.
    pub latency: f64,
    /// r·failure.
    pub risk: f64,
    /// Price of leaving the current model.
    pub switch: f64,
    /// What is left.
    pub utility: f64,
    /// May it be chosen.
    pub eligible: bool,
    /// Why it is not the chosen one; `chosen` for that.
    pub verdict: String,
}

/// The whole story.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace {
    /// In order.
    pub steps: Vec<Step>,
    /// Best first.
    pub ranking: Vec<RankedModel>,
    /// Who was not considered.
    pub not_considered: Vec<(ModelRef, Exclusion)>,
}

impl Trace {
    pub(super) fn step(
        &mut self,
        name: &str,
        result: impl Into<String>,
        because: impl Into<String>,
    ) {
        self.steps.push(Step {
            name: name.to_owned(),
            result: result.into(),
            because: because.into(),
        });
    }
}

/// Tells the story of a decision.
pub(super) fn tell(
    prepared: &Prepared<'_>,
    judged: &Judged,
    wish: &Wish,
    choice: &Choice,
) -> Trace {
    let mut trace = Trace::default();
    tell_source(&mut trace, prepared, judged);
    tell_rules(&mut trace, prepared, judged);
    tell_requirement(&mut trace, prepared, judged, wish);
    tell_choice(&mut trace, prepared, wish, choice);
    trace.not_considered.clone_from(&choice.excluded);
    trace
}

fn tell_source(trace: &mut Trace, prepared: &Prepared<'_>, judged: &Judged) {
    let follow_up = prepared.follow_up;
    if follow_up != FollowUp::New {
        let because = format!("the message and what came {} before it", before(prepared));
        trace.step("follow-up", follow_up.as_str(), because);
    }
    let assessment = &judged.assessment;
    let why = match (&judged.memory, &judged.model, judged.fallback) {
        (Some(memory), _, _) => format!(
            "learned task {} is {:.0}% similar",
            memory.task,
            memory.similarity * 100.0
        ),
        (None, Some(model), _) => format!("{} answered from {}", model.version, model.server),
        (None, None, _) if prepared.labels.is_some() => "labels came with the request".to_owned(),
        (None, None, Some(fallback)) => format!(
            "the decision model did not answer: {}",
            fallback_words(fallback)
        ),
        (None, None, None) if prepared.question().is_none() => "the task before goes on".to_owned(),
        (None, None, None) => "nothing else was asked".to_owned(),
    };
    let source = match assessment.source {
        Source::Memory if judged.memory.is_none() => "labels",
        source => source.as_str(),
    };
    trace.step("source", source, why);
    if assessment.source == Source::Rules {
        let scan = prepared.policy.keywords().scan(&prepared.text);
        for reason in prepared.derived.reasons(&scan) {
            trace.step(
                reason.field.as_str(),
                reason.conclusion.clone(),
                evidence(&reason),
            );
        }
    }
}

fn before(prepared: &Prepared<'_>) -> String {
    prepared.previous.map_or_else(
        || "nothing".to_owned(),
        |previous| format!("decision {}", previous.id),
    )
}

fn evidence(reason: &crate::derive::Reason) -> String {
    let words = quoted(&reason.terms);
    match (reason.group, words.is_empty()) {
        (Some(group), false) => format!("{words} in {}", group.as_str()),
        (Some(group), true) => group.as_str().to_owned(),
        (None, false) => words,
        (None, true) => String::new(),
    }
}

/// The words that matched, each once, in the order they were found.
fn quoted(terms: &[MatchedTerm]) -> String {
    let mut words: Vec<String> = Vec::new();
    for term in terms {
        let shown = format!("`{}`", one_line(&term.words));
        if !words.contains(&shown) {
            words.push(shown);
        }
    }
    words.join(", ")
}

fn tell_rules(trace: &mut Trace, prepared: &Prepared<'_>, judged: &Judged) {
    if judged.fired.is_empty() {
        let because = if prepared.derived.explanatory {
            "a request for an explanation changes nothing"
        } else {
            ""
        };
        trace.step("rules", "none fired", because);
        return;
    }
    let scan = prepared.policy.keywords().scan(&prepared.text);
    for rule in &judged.fired {
        let groups = rule_groups(&rule.id).iter();
        let terms: Vec<_> = groups
            .flat_map(|group| scan.matched_terms(*group, SHOWN_TERMS))
            .collect();
        trace.step("rule", rule.id.clone(), quoted(&terms));
    }
}

/// The groups a built-in rule looks at; those of added rules are the policy's to know.
fn rule_groups(id: &str) -> &'static [Group] {
    match id {
        id if id == RuleId::PRODUCTION_DATABASE_MIGRATION.as_str() => &[
            Group::TopicMigration,
            Group::TopicMigrationVerb,
            Group::TopicProduction,
        ],
        id if id == RuleId::AUTHENTICATION.as_str() => &[Group::TopicAuth],
        id if id == RuleId::SECURITY_VULNERABILITY.as_str() => &[Group::TopicVulnerability],
        id if id == RuleId::PAYMENT_PROCESSING.as_str() => &[Group::TopicPayment],
        _ => &[],
    }
}

fn tell_requirement(trace: &mut Trace, prepared: &Prepared<'_>, judged: &Judged, wish: &Wish) {
    let requirement = &wish.requirement;
    let recommendation = judged.assessment.recommendation;
    let because = match judged.assessment.source {
        Source::Rules => levels(judged),
        _ => "by the assessment".to_owned(),
    };
    let recommended = format!("{}, {}", recommendation.tier, recommendation.effort);
    trace.step("recommended", recommended, because);
    if requirement.min_tier > Tier::Fast {
        trace.step(
            "floor",
            requirement.min_tier.as_str(),
            floor_words(judged, prepared),
        );
    }
    let confidence = judged.assessment.confidence;
    let least = prepared.knobs.thresholds.min_confidence;
    if confidence < least - TOLERANCE {
        trace.step(
            "confidence",
            format!("{confidence:.2}"),
            format!("below {least}: one tier more, if there is one"),
        );
    }
    for raise in &requirement.raises {
        trace.step(
            "raised",
            format!("{} -> {}", raise.from, raise.to),
            raise.reason.as_str(),
        );
    }
    let validation = requirement.validation;
    let must = if validation.required {
        "required"
    } else {
        "advised"
    };
    let required = format!(
        "{}, {}, {} ({must})",
        requirement.required_tier, requirement.effort, validation.level
    );
    let because = match (wish.is_explicit(prepared), requirement.sensitive) {
        (true, _) => "with what you chose",
        (false, true) => "sensitive work: at least medium effort and a review",
        (false, false) => "",
    };
    trace.step("required", required, because);
    let constraints = &prepared.request.constraints;
    let chosen = [
        constraints
            .model
            .as_ref()
            .map(|model| format!("model {model}")),
        constraints.tier.map(|tier| format!("tier {tier}")),
        constraints.effort.map(|effort| format!("effort {effort}")),
    ];
    let chosen: Vec<_> = chosen.into_iter().flatten().collect();
    if !chosen.is_empty() {
        trace.step(
            "chosen by you",
            chosen.join(", "),
            "an explicit choice always wins",
        );
    }
}

/// What the rules take tier and effort from (routing.md 4.4.8).
fn levels(judged: &Judged) -> String {
    let task = &judged.assessment.task;
    let by_level = |level: f64, levels: f64| (level * levels).round();
    format!(
        "complexity {} of 4 (0 and 1 fast, 2 balanced, 3 strong, 4 frontier), risk {} of 3 (2 and 3 at least strong)",
        by_level(task.complexity, 4.0),
        by_level(task.risk, 3.0)
    )
}

fn floor_words(judged: &Judged, prepared: &Prepared<'_>) -> &'static str {
    let assessment = &judged.assessment;
    if !judged.fired.is_empty() {
        "a rule fired"
    } else if assessment.security_sensitive || assessment.task.task_type == TaskType::Security {
        "security-sensitive work"
    } else if assessment.task.risk >= prepared.knobs.thresholds.high_risk - TOLERANCE {
        "the risk is high"
    } else if assessment.task.task_type == TaskType::Architecture {
        "a complex design"
    } else {
        "the task before"
    }
}

fn tell_choice(trace: &mut Trace, prepared: &Prepared<'_>, wish: &Wish, choice: &Choice) {
    let profile = &prepared.knobs.profile;
    trace.step(
        "profile",
        profile.name.clone(),
        format!(
            "quality {}, cost {}, latency {}, risk {}; success at least {}",
            profile.quality, profile.cost, profile.latency, profile.risk, profile.min_success
        ),
    );
    if let Some(switch) = &choice.switch {
        let because = format!("{} cached tokens would be lost", switch.cached_tokens);
        trace.step(
            "leaving",
            format!("{} costs {:.2}", switch.from, switch.price),
            because,
        );
    }
    if choice.explored {
        trace.step(
            "explored",
            choice.selected.candidate.model.to_string(),
            "another model of the tier gets a chance",
        );
    }
    let chosen = &choice.selected;
    let listed = choice
        .ranked
        .iter()
        .any(|scored| scored.candidate.model == chosen.candidate.model);
    if !listed {
        trace.ranking.push(row(prepared, wish, chosen, chosen));
    }
    trace.ranking.extend(
        choice
            .ranked
            .iter()
            .map(|scored| row(prepared, wish, chosen, scored)),
    );
}

fn row(prepared: &Prepared<'_>, wish: &Wish, chosen: &Scored, scored: &Scored) -> RankedModel {
    let profile = &prepared.knobs.profile;
    RankedModel {
        model: scored.candidate.model.clone(),
        tier: scored.candidate.tier,
        success: scored.success,
        quality: profile.quality.get() * scored.success,
        cost: profile.cost.get() * scored.cost,
        latency: profile.latency.get() * scored.latency,
        risk: profile.risk.get() * scored.failure,
        switch: scored.switch_cost,
        utility: scored.utility,
        eligible: scored.eligible != Eligible::No,
        verdict: verdict(prepared, wish, chosen, scored),
    }
}

/// Why a model is, or is not, the chosen one.
fn verdict(prepared: &Prepared<'_>, wish: &Wish, chosen: &Scored, scored: &Scored) -> String {
    let least = prepared.knobs.profile.min_success;
    if scored.candidate.model == chosen.candidate.model {
        return match (&wish.model, &wish.stay) {
            (Some(_), _) => "chosen by you".to_owned(),
            (None, Some(stay)) if *stay == scored.candidate.model => {
                "stays: the task goes on".to_owned()
            }
            _ => "chosen".to_owned(),
        };
    }
    if let Some(model) = wish.model.as_ref().or(wish.stay.as_ref())
        && *model == chosen.candidate.model
    {
        return if wish.model.is_some() {
            "you chose another"
        } else {
            "the task keeps its model"
        }
        .to_owned();
    }
    if scored.excluded {
        return format!(
            "failed too often at such tasks: at best {:.2}, needs {least}",
            scored.upper
        );
    }
    if scored.eligible == Eligible::No && chosen.eligible != Eligible::No {
        return format!("success {:.2} is below {least}", scored.success);
    }
    let gap = chosen.utility - scored.utility;
    if gap.abs() <= TOLERANCE {
        "as good; the order of the list decides".to_owned()
    } else if gap > 0.0 {
        format!("{gap:.4} less useful")
    } else {
        format!("{:.4} more useful, but not as likely to succeed", -gap)
    }
}

fn fallback_words(fallback: Fallback) -> &'static str {
    match fallback {
        Fallback::Timeout => "it was too slow",
        Fallback::BreakerOpen => "it failed and is left alone for a while",
        Fallback::InvalidAnswers => "its answers make no sense",
        Fallback::Unreachable => "it cannot be reached",
        Fallback::NoModel => "none is serving",
        Fallback::Busy => "it is busy",
        Fallback::RouterUnreachable => "no router answered",
    }
}
