//! Which model it is: candidates of this request, the ranking, a model that stays or that the user chose, and now and
//! then an exploration (routing.md 8, 9, 11, 13).

use decision::vocabulary::Tier;

use super::choose::Wish;
use super::judge::Judged;
use super::state::State;
use super::{Knobs, Moment, Prepared};
use crate::bounded::{Ratio, Usd};
use crate::estimate::{Tokens, baseline, estimate};
use crate::follow_up::{FollowUp, switch_price};
use crate::history::{self, Evidence, HistoryKey};
use crate::reason::{Exclusion, Warning};
use crate::record::SwitchPrice;
use crate::registry::{Candidate, CandidateQuery, Capabilities, Entry, ModelRef};
use crate::request::{RequestKind, RouteRequest};
use crate::selection::{
    ExplorationInput, NoCandidate, Scored, Selection, SelectionInput, Switch, explore, select,
};

/// The outcome of selection.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) selected: Scored,
    pub(super) alternatives: Vec<Scored>,
    /// The whole ranking, for people; without the chosen model where the user named one outside it.
    pub(super) ranked: Vec<Scored>,
    pub(super) excluded: Vec<(ModelRef, Exclusion)>,
    pub(super) warnings: Vec<Warning>,
    pub(super) explored: bool,
    pub(super) switch: Option<SwitchPrice>,
    pub(super) class: HistoryKey,
    pub(super) tokens: Tokens,
    /// What savings are measured against: the policy's choice, else the first strong candidate.
    pub(super) baseline: Option<ModelRef>,
}

pub(super) fn choose(
    prepared: &Prepared<'_>,
    judged: &Judged,
    wish: &Wish,
    state: &dyn State,
    moment: Moment<'_>,
) -> Result<Choice, NoCandidate> {
    let Prepared {
        request,
        knobs,
        policy,
        ..
    } = prepared;
    let task = &judged.assessment.task;
    let complexity = Ratio::clamped(task.complexity).unwrap_or(Ratio::ONE);
    let task_risk = Ratio::clamped(task.risk).unwrap_or(Ratio::ONE);
    let class = history::key(task.task_type, complexity);
    let tokens = state
        .tokens(class)
        .unwrap_or_else(|| Tokens::typical(class));
    let (candidates, refused) = candidates(request, knobs, wish.tier);

    let switch = switch(prepared, moment);
    let direct = request.kind == RequestKind::Direct;
    let availability = |provider: &str| {
        let configured = knobs.quota.get(provider).copied().unwrap_or(Ratio::ONE);
        state.availability(provider, configured)
    };
    let evidence = |model: &ModelRef| {
        if direct {
            Evidence::NONE
        } else {
            state.evidence(class, model)
        }
    };
    let cost = |candidate: &Candidate| -> Option<Usd> {
        estimate(tokens, candidate.prices.as_ref()).cost_usd
    };
    let input = SelectionInput {
        candidates: &candidates,
        required_tier: wish.requirement.required_tier,
        min_tier: wish.min_tier,
        task_risk,
        profile: &knobs.profile,
        availability: &availability,
        evidence: &evidence,
        switch: switch.as_ref().map(|switch| Switch {
            current: &switch.from,
            price: Ratio::clamped(switch.price).unwrap_or(Ratio::ZERO),
        }),
        context_tokens: request.context.tokens.unwrap_or(0),
        cost_basis: policy.source.cost_basis,
        estimate: Some(&cost),
        on_floor_unmet: policy.source.on_floor_unmet,
    };
    let ranking = select(&input);
    let fixed = wish.model.as_ref().or(wish.stay.as_ref());
    let mut choice = match fixed.and_then(|model| alone(prepared, wish, model, &input)) {
        Some(scored) => with_fixed(scored, ranking),
        None => {
            let ranking = ranking.map_err(|mut none| {
                none.dropped.extend(refused.iter().cloned());
                none
            })?;
            from_ranking(prepared, wish, state, moment, (task_risk, class), ranking)
        }
    };
    choice.excluded.extend(refused);
    let selected = choice.selected.candidate.model.clone();
    choice.excluded.retain(|(model, _)| *model != selected);
    choice.switch = switch;
    choice.class = class;
    choice.tokens = tokens;
    choice.baseline = baseline(knobs.baseline.as_ref(), &candidates).cloned();
    Ok(choice)
}

/// Who may run the request, and who may not; of one tier only, if the user chose one.
pub(super) fn candidates(
    request: &RouteRequest,
    knobs: &Knobs,
    tier: Option<Tier>,
) -> (Vec<Candidate>, Vec<(ModelRef, Exclusion)>) {
    let query = CandidateQuery {
        providers: &knobs.providers,
        exclude: &request.constraints.exclude,
        capabilities: request
            .constraints
            .capabilities
            .iter()
            .copied()
            .collect::<Capabilities>(),
    };
    let (candidates, mut refused) = knobs.registry.candidates(&query);
    let has_credentials = |candidate: &Candidate| {
        knobs
            .only
            .as_ref()
            .is_none_or(|only| only.contains(&candidate.model))
    };
    let (candidates, without): (Vec<_>, Vec<_>) = candidates.into_iter().partition(has_credentials);
    refused.extend(
        without
            .into_iter()
            .map(|candidate| (candidate.model, Exclusion::NoCredentials)),
    );
    let Some(tier) = tier else {
        return (candidates, refused);
    };
    let (candidates, others): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|candidate| candidate.tier == tier);
    refused.extend(
        others
            .into_iter()
            .map(|candidate| (candidate.model, Exclusion::Constraint)),
    );
    (candidates, refused)
}

/// One model by itself: the user's, which needs no credentials here, or the one that stays, which must still be a
/// candidate.
fn alone(
    prepared: &Prepared<'_>,
    wish: &Wish,
    model: &ModelRef,
    input: &SelectionInput<'_>,
) -> Option<Scored> {
    let candidate = match input
        .candidates
        .iter()
        .find(|candidate| candidate.model == *model)
    {
        Some(candidate) => candidate.clone(),
        None if wish.model.is_some() => {
            let known = prepared.knobs.registry.entry(model).cloned();
            known
                .unwrap_or_else(|| Entry::new(model.clone(), Tier::Balanced))
                .candidate(u32::MAX)
        }
        None => return None,
    };
    let only = [candidate];
    let by_itself = SelectionInput {
        candidates: &only,
        min_tier: Tier::Fast,
        context_tokens: 0,
        ..*input
    };
    select(&by_itself).ok()?.ranked.into_iter().next()
}

fn with_fixed(selected: Scored, ranking: Result<Selection, NoCandidate>) -> Choice {
    let (ranked, excluded) = match ranking {
        Ok(ranking) => (ranking.ranked, ranking.dropped),
        Err(none) => (Vec::new(), none.dropped),
    };
    let others = ranked
        .iter()
        .filter(|scored| scored.candidate.model != selected.candidate.model);
    Choice {
        alternatives: others
            .take(crate::selection::ALTERNATIVES)
            .cloned()
            .collect(),
        excluded: excluded
            .into_iter()
            .filter(|(model, _)| *model != selected.candidate.model)
            .collect(),
        ranked,
        ..Choice::of(selected)
    }
}

fn from_ranking(
    prepared: &Prepared<'_>,
    wish: &Wish,
    state: &dyn State,
    moment: Moment<'_>,
    (task_risk, class): (Ratio, HistoryKey),
    ranking: Selection,
) -> Choice {
    let user = prepared.request.kind == RequestKind::User;
    let explored = explore(
        &ranking,
        &ExplorationInput {
            rate: prepared.knobs.exploration,
            draw: Ratio::clamped(moment.draw).unwrap_or(Ratio::ONE),
            required_tier: wish.requirement.required_tier,
            min_tier: wish.requirement.min_tier,
            task_risk,
            explicit: wish.is_explicit(prepared),
            new_task: user && prepared.follow_up == FollowUp::New,
            stored: state.stores() && !prepared.request.dry_run,
            last_explored: state.last_explored(class),
            now: moment.now,
        },
    );
    let at = explored.unwrap_or(0);
    let alternatives = ranking.alternatives(at).cloned().collect();
    let selected = ranking.ranked[at].clone();
    Choice {
        alternatives,
        ranked: ranking.ranked,
        excluded: ranking.dropped,
        warnings: ranking.warnings,
        explored: explored.is_ok(),
        ..Choice::of(selected)
    }
}

impl Choice {
    fn of(selected: Scored) -> Self {
        Self {
            selected,
            alternatives: Vec::new(),
            ranked: Vec::new(),
            excluded: Vec::new(),
            warnings: Vec::new(),
            explored: false,
            switch: None,
            class: history::key(decision::vocabulary::TaskType::Question, Ratio::ZERO),
            tokens: Tokens::default(),
            baseline: None,
        }
    }
}

/// The price of leaving the current model, where the conversation goes on and the policy counts it.
fn switch(prepared: &Prepared<'_>, moment: Moment<'_>) -> Option<SwitchPrice> {
    let context = &prepared.request.context;
    let current = context
        .current
        .as_ref()
        .filter(|_| prepared.knobs.switch_price)?;
    let cached_tokens = context.cached_tokens?;
    let last_used = context
        .last_used
        .or(prepared.previous.map(|previous| previous.created))?;
    let price = switch_price(cached_tokens, last_used, moment.now).get();
    Some(SwitchPrice {
        from: current.model.clone(),
        cached_tokens,
        price,
    })
}
