//! Puts the record and the trace together. Decides nothing.

use decision::contract::Digest;
use decision::relay_contract;
use decision::vocabulary::Effort;

use super::choose::Wish;
use super::judge::Judged;
use super::select::Choice;
use super::{Decided, Moment, Prepared};
use crate::assessment::Assessment;
use crate::estimate::{Tokens, counterfactual, estimate, price_stale};
use crate::follow_up::{Effect, FollowUp};
use crate::plan::{Demand, Plan, Progress, plan_message};
use crate::reason::Exclusion;
use crate::record::{
    Decision, DecisionKind, Excluded, PolicyProvenance, PolicyResult, Provenance, Selected, Timings,
};
use crate::request::RequestKind;
use crate::requirement::ValidationRequirement;
use crate::selection::{Eligible, Scored};
use crate::skills::suitable_skills;
use crate::text;
use crate::thinking::thinking;
use crate::tool_routing::plan_tools;

/// Most models that a record lists as not considered.
const MOST_EXCLUDED: usize = 20;

pub(super) fn write(
    prepared: &Prepared<'_>,
    judged: Judged,
    wish: Wish,
    choice: Choice,
    moment: Moment<'_>,
    assessed_at: f64,
) -> Decided {
    let Prepared {
        request,
        policy,
        knobs,
        ..
    } = prepared;
    let user = request.kind == RequestKind::User;
    let goes_on = matches!(prepared.effect, Effect::GoOn { .. } | Effect::Repair { .. });
    let parent = prepared
        .previous
        .filter(|_| prepared.follow_up != FollowUp::New);
    let assessment = judged.assessment;
    let skills = if user {
        suitable_skills(assessment.agent, &request.request, &request.skills)
    } else {
        Vec::new()
    };
    let tools = plan_tools(knobs.tool_routing, &assessment.tools, &request.tools);
    let requirement = wish.requirement;

    // The limit of escalations is the task's, so they stay with it from message to message.
    let before = parent.filter(|_| goes_on).into_iter();
    let before = before.flat_map(|parent| &parent.escalations);
    let mut escalations = requirement.raises;
    escalations.extend(before.filter(|raise| raise.reason.is_of_running_task()));

    let explicit = wish.model.is_some();
    // Where the user chose the model there may be no plan to read; the lessons then stand alone.
    let (lessons, in_plan) = if explicit {
        (prepared.lessons.clone(), None)
    } else {
        (None, prepared.lessons.as_deref())
    };
    let plan = user
        .then(|| {
            plan(
                &request.request,
                &assessment,
                &skills,
                &tools.deactivate,
                (requirement.validation, &requirement.rules),
                Progress::Open,
                in_plan,
            )
        })
        .flatten();
    let pick = Pick {
        explicit,
        explored: choice.explored,
    };
    let selected = selected(&choice.selected, requirement.effort, choice.tokens, pick);
    let alternatives = choice
        .alternatives
        .iter()
        .map(|scored| self::selected(scored, requirement.effort, choice.tokens, Pick::PLAIN))
        .collect();
    let counterfactual = choice.baseline.as_ref().map(|model| {
        let prices = knobs
            .registry
            .entry(model)
            .and_then(|entry| entry.prices.as_ref());
        counterfactual(model, estimate(choice.tokens, prices), selected.estimate)
    });

    let mut warnings = wish.warnings;
    warnings.extend(choice.warnings);
    warnings.extend(price_stale(
        &selected.model,
        choice.selected.candidate.prices.as_ref(),
        date(moment.now),
    ));
    let keeps_text = user && knobs.telemetry && keeps_text(prepared);
    let decision = Decision {
        id: moment.id,
        task_id: parent
            .filter(|_| goes_on)
            .map_or(moment.task_id, |parent| parent.task_id),
        parent_id: parent.map(|parent| parent.id),
        conversation_id: request.conversation_id.clone(),
        created: moment.now,
        profile: knobs.profile.name.clone(),
        kind: if user {
            DecisionKind::User
        } else {
            DecisionKind::Direct
        },
        follow_up: prepared.follow_up,
        request_digest: if says_nothing(prepared) {
            String::new()
        } else {
            Digest::of(request.request.as_bytes()).hex()
        },
        request_chars: if says_nothing(prepared) {
            0
        } else {
            text::units(&request.request)
        },
        request: keeps_text.then(|| request.request.clone()),
        policy: PolicyResult {
            recommended_tier: requirement.recommended_tier,
            required_tier: requirement.required_tier,
            min_tier: requirement.min_tier,
            effort: requirement.effort,
            thinking_level: requirement.effort.thinking_level().to_owned(),
            validation: requirement.validation,
            rules: requirement.rules,
            notes: requirement.notes,
        },
        selected,
        alternatives,
        excluded: excluded(&choice.ranked, choice.excluded),
        escalations,
        agent: assessment.agent,
        skills,
        tools,
        counterfactual,
        switch: choice.switch,
        warnings,
        plan,
        lessons,
        provenance: Provenance {
            relay_version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: PolicyProvenance {
                name: policy.name.clone(),
                revision: policy.revision().to_owned(),
                digest: policy.digest.clone(),
                added_rules: policy
                    .source
                    .rules
                    .iter()
                    .map(|rule| rule.id.clone())
                    .collect(),
                disabled_rules: policy.source.disabled_rules.clone(),
            },
            contract: relay_contract().digest().to_string(),
            shape: relay_contract().shape_digest().to_string(),
            keywords_digest: policy.keywords().digest().to_owned(),
            registry_digest: knobs.registry.digest().to_owned(),
            model: judged.model,
            memory: judged.memory,
            truncated: judged.truncated,
            fallback: judged.fallback,
            timings_ms: timings(assessed_at, (moment.elapsed_millis)()),
        },
        assessment,
    };
    let store = user && !request.dry_run && prepared.follow_up != FollowUp::Acknowledgement;
    let corrects = parent
        .filter(|_| prepared.follow_up == FollowUp::Correction)
        .map(|parent| parent.id);
    Decided {
        store,
        records: knobs.telemetry,
        corrects,
        trace: None,
        decision,
    }
}

/// The plan for a task as it stands.
pub(super) fn plan(
    request: &str,
    assessment: &Assessment,
    skills: &[String],
    deactivated: &[String],
    (validation, rules): (ValidationRequirement, &[String]),
    progress: Progress,
    lessons: Option<&str>,
) -> Option<String> {
    let demand = if validation.required {
        Demand::Required
    } else {
        Demand::Advised
    };
    let plan = Plan {
        assessment,
        skills,
        deactivated,
        validation: validation.level,
        demand,
        rules,
        progress,
        lessons,
    };
    plan_message(request, &plan)
}

/// How a model came to be in a record.
#[derive(Clone, Copy)]
pub(super) struct Pick {
    explicit: bool,
    explored: bool,
}

impl Pick {
    /// By its rank.
    pub(super) const PLAIN: Self = Self {
        explicit: false,
        explored: false,
    };
}

pub(super) fn selected(scored: &Scored, wanted: Effort, tokens: Tokens, pick: Pick) -> Selected {
    let candidate = &scored.candidate;
    let thinking = thinking(wanted, candidate.efforts);
    Selected {
        model: candidate.model.clone(),
        provider: candidate.model.provider().to_owned(),
        id: candidate.model.id().to_owned(),
        tier: candidate.tier,
        effort: thinking.effort,
        thinking_level: thinking.level.to_owned(),
        effort_clamped: thinking.effort_clamped,
        success: scored.success,
        utility: scored.utility,
        eligible: scored.eligible != Eligible::No,
        explored: pick.explored,
        explicit: pick.explicit,
        estimate: estimate(tokens, candidate.prices.as_ref()),
    }
}

/// Those that selection dropped, then those that history keeps out of the choice.
pub(super) fn excluded(
    ranked: &[Scored],
    dropped: Vec<(crate::registry::ModelRef, Exclusion)>,
) -> Vec<Excluded> {
    let by_history = ranked.iter().filter(|scored| scored.excluded);
    let by_history = by_history.map(|scored| (scored.candidate.model.clone(), Exclusion::History));
    let all = dropped.into_iter().chain(by_history);
    all.take(MOST_EXCLUDED)
        .map(|(model, reason)| Excluded { model, reason })
        .collect()
}

/// The text is kept where the policy says so in full; the program has filled in its default by then.
fn keeps_text(prepared: &Prepared<'_>) -> bool {
    use crate::policy::RequestTextPrivacy::Full;
    prepared.policy.source.request_text == Some(Full)
}

/// Where not even equal requests may be told apart.
fn says_nothing(prepared: &Prepared<'_>) -> bool {
    use crate::policy::RequestTextPrivacy;
    prepared.policy.source.request_text == Some(RequestTextPrivacy::None)
}

fn timings(assessed_at: f64, decided_at: f64) -> Timings {
    let assess = if assessed_at.is_finite() {
        assessed_at.max(0.0)
    } else {
        0.0
    };
    let decide = if decided_at.is_finite() {
        (decided_at - assess).max(0.0)
    } else {
        0.0
    };
    Timings { assess, decide }
}

fn date(now: jiff::Timestamp) -> jiff::civil::Date {
    now.to_zoned(jiff::tz::TimeZone::UTC).date()
}
