//! What happens to a decision while its task runs (routing.md 12): failures that add up move it to a stronger model or
//! more thinking, provider errors move it to another provider. The new record shares the task and names its parent.

use std::time::Duration;

use decision::vocabulary::{Effort, Tier};

use super::choose::Wish;
use super::judge::Judged;
use super::select::{self, Choice};
use super::state::State;
use super::{Client, Knobs, Moment, Prepared, write};
use crate::bounded::Score;
use crate::derive::derive;
use crate::escalation::{self, Failure, Move, Standing, Tally};
use crate::follow_up::{Effect, FollowUp};
use crate::lessons::LESSONS_MARKER;
use crate::plan::Progress;
use crate::policy::Policy;
use crate::provider_error::{self, Action, ErrorClass, OVERFLOW_ROOM, Settled};
use crate::reason::Reason;
use crate::record::{Decision, DecisionKind, Truncated};
use crate::request::{FieldError, RouteRequest};
use crate::requirement::{Raise, Requirement};
use crate::selection::{NoCandidate, fits};

/// A task that runs: the decision in force and what its client can use now.
#[derive(Debug, Clone, Copy)]
pub struct RunningTask<'a> {
    /// The decision in force.
    pub decision: &'a Decision,
    /// The policy in force.
    pub policy: &'a Policy,
    /// Whose router it is.
    pub client: Client,
    /// The client's side of a request: providers, models, quota, settings, context. Its text is not looked at.
    pub request: &'a RouteRequest,
}

/// What becomes of a running task.
#[derive(Debug, Clone)]
pub enum During {
    /// The new decision holds from the next request on.
    Move(Box<Decision>),
    /// Nothing changes.
    Stay {
        /// There is nothing above: the user should be asked. Holds the decision with the plan that says so.
        exhausted: Option<Box<Decision>>,
    },
    /// The same model, later; neither attempt nor escalation is counted.
    Wait {
        /// How long.
        retry_after: Duration,
    },
    /// No window is large enough: the conversation must be made shorter.
    Compact,
}

/// Failures since the last user message, and how far they counted before.
#[derive(Debug, Clone, Copy)]
pub struct FailureReport<'a> {
    /// All of them, oldest first.
    pub failures: &'a [Failure],
    /// What a correction brought along (routing.md 13).
    pub carried: Score,
    /// Score at the last escalation of the task; 0 before the first.
    pub at_last_escalation: Score,
}

/// Adds up failures and moves the task when it is time to; says the score either way.
///
/// # Errors
/// When the client can use no model at all.
pub fn escalate(
    task: RunningTask<'_>,
    report: FailureReport<'_>,
    state: &dyn State,
    moment: Moment<'_>,
) -> Result<(Tally, During), EscalateError> {
    let knobs =
        Knobs::of(task.request, task.policy, task.client).map_err(EscalateError::Invalid)?;
    let threshold = knobs.escalate_after_failures;
    let tally = escalation::tally(
        report.failures,
        report.carried,
        report.at_last_escalation,
        threshold,
    );
    let Some(reason) = tally.escalate else {
        return Ok((tally, During::Stay { exhausted: None }));
    };
    let current = task.decision;
    if current.selected.explicit {
        // What the user chose stays, however it fares.
        return Ok((tally, During::Stay { exhausted: None }));
    }
    let entry = knobs.registry.entry(&current.selected.model);
    let highest_effort = entry.map_or(Effort::ExtraHigh, |entry| entry.efforts.highest());
    // Whom selection would take: a move to nobody else would be none.
    let (candidates, _) = select::candidates(task.request, &knobs, None);
    let tokens = task.request.context.tokens.unwrap_or(0);
    let strongest = candidates
        .iter()
        .filter(|candidate| fits(candidate, tokens))
        .map(|candidate| candidate.tier)
        .max()
        .unwrap_or(current.selected.tier);
    let moves = current.escalations.iter();
    let so_far = moves.filter(|raise| raise.reason.is_escalation()).count();
    let next = escalation::next(&Standing {
        tier: current.selected.tier,
        effort: current.policy.effort,
        highest_effort,
        strongest,
        escalations: u32::try_from(so_far).unwrap_or(u32::MAX),
    });
    let during = match next {
        Move::Exhausted => {
            let decision = restated(current, Progress::Exhausted);
            During::Stay {
                exhausted: Some(Box::new(decision)),
            }
        }
        Move::ThinkMore { effort } => {
            let tier = current.selected.tier;
            let wish = Wish {
                stay: Some(current.selected.model.clone()),
                ..wish(current, tier, current.policy.min_tier, effort)
            };
            let raise = Raise {
                reason,
                from: tier,
                to: tier,
            };
            moved(
                task,
                knobs,
                wish,
                Some(raise),
                DecisionKind::Escalation,
                state,
                moment,
            )?
        }
        Move::Up { tier, effort } => {
            let raise = Raise {
                reason,
                from: current.selected.tier,
                to: tier,
            };
            let wish = wish(current, tier, tier, effort);
            moved(
                task,
                knobs,
                wish,
                Some(raise),
                DecisionKind::Escalation,
                state,
                moment,
            )?
        }
    };
    Ok((tally, during))
}

/// An error of the provider of the current model.
#[derive(Debug, Clone, Copy)]
pub struct ProviderErrorReport {
    /// What it was, by [`provider_error::classify`].
    pub class: ErrorClass,
    /// Errors of this class without a success between, this one included.
    pub in_a_row: u32,
    /// What the provider asked for.
    pub retry_after: Option<Duration>,
}

/// Moves a task whose provider fails to another one of the same tier, or says how long to wait. A model of the user's
/// choice is never moved away from. The caller has put the fault into the quota that `state` shows.
///
/// # Errors
/// When the client's fields are wrong.
pub fn provider_failed(
    task: RunningTask<'_>,
    report: ProviderErrorReport,
    state: &dyn State,
    moment: Moment<'_>,
) -> Result<During, EscalateError> {
    let mut knobs =
        Knobs::of(task.request, task.policy, task.client).map_err(EscalateError::Invalid)?;
    let current = task.decision;
    let action = provider_error::respond(report.class, report.in_a_row).action;
    if current.selected.explicit {
        let settled =
            provider_error::settle(action, &current.selected.model, None, report.retry_after);
        return Ok(settled_without_move(settled));
    }
    let mut request = task.request.clone();
    match action {
        Action::Again => {
            let settled =
                provider_error::settle(action, &current.selected.model, None, report.retry_after);
            return Ok(settled_without_move(settled));
        }
        Action::LeaveOut => knobs
            .providers
            .retain(|name| *name != current.selected.provider),
        Action::Widen => {
            // Selection keeps a fifth of the window free, so the current window itself is what must not suffice.
            let window = knobs
                .registry
                .entry(&current.selected.model)
                .and_then(|entry| entry.context_window);
            let tokens = request.context.tokens.unwrap_or(0);
            let least = window.map_or(tokens, |window| {
                tokens.max((window as f64 / OVERFLOW_ROOM) as u64 + 1)
            });
            request.context.tokens = Some(least);
        }
        Action::Reselect => {}
    }
    let tier = current.selected.tier;
    let task = RunningTask {
        request: &request,
        ..task
    };
    let raise = Raise {
        reason: Reason::ProviderUnavailable,
        from: tier,
        to: tier,
    };
    let wish = wish(current, tier, tier, current.policy.effort);
    let found = moved(
        task,
        knobs,
        wish,
        Some(raise),
        DecisionKind::Provider,
        state,
        moment,
    );
    let decision = match found {
        Ok(During::Move(decision)) => Some(decision),
        Ok(other) => return Ok(other),
        Err(EscalateError::NoCandidate(_)) => None,
        Err(error) => return Err(error),
    };
    let chosen = decision.as_ref().map(|decision| &decision.selected.model);
    let settled =
        provider_error::settle(action, &current.selected.model, chosen, report.retry_after);
    Ok(match (settled, decision) {
        (Settled::Move, Some(decision)) => During::Move(decision),
        (settled, _) => settled_without_move(settled),
    })
}

/// Why a running task could not be decided again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EscalateError {
    /// Fields of the client that are wrong; never empty.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<FieldError>),
    /// No model can run it.
    #[error(transparent)]
    NoCandidate(#[from] NoCandidate),
}

fn settled_without_move(settled: Settled) -> During {
    match settled {
        Settled::Compact => During::Compact,
        Settled::Wait { retry_after } => During::Wait { retry_after },
        Settled::Move => During::Wait {
            retry_after: provider_error::DEFAULT_WAIT,
        },
    }
}

fn wish(current: &Decision, required_tier: Tier, min_tier: Tier, effort: Effort) -> Wish {
    let policy = &current.policy;
    let requirement = Requirement {
        recommended_tier: policy.recommended_tier,
        required_tier,
        min_tier,
        effort,
        validation: policy.validation,
        rules: policy.rules.clone(),
        notes: policy.notes.clone(),
        raises: current.escalations.clone(),
        sensitive: min_tier >= super::judge::SENSITIVE,
    };
    Wish {
        requirement,
        min_tier,
        stay: None,
        model: None,
        tier: None,
        warnings: Vec::new(),
    }
}

fn moved(
    task: RunningTask<'_>,
    knobs: Knobs,
    wish: Wish,
    raise: Option<Raise>,
    kind: DecisionKind,
    state: &dyn State,
    moment: Moment<'_>,
) -> Result<During, EscalateError> {
    let current = task.decision;
    // Escalations and moves of the provider do not pay for leaving a model (routing.md 13).
    let mut request = task.request.clone();
    request.context.current = None;
    let prepared = Prepared {
        request: &request,
        policy: task.policy,
        knobs,
        previous: Some(current),
        // Not a new task, so nothing is explored.
        follow_up: FollowUp::Continuation,
        effect: Effect::GoOn {
            tier: current.selected.tier,
            effort: current.policy.effort,
        },
        text: std::borrow::Cow::Borrowed(""),
        derived: derive(&task.policy.keywords().scan("")),
        fired: Vec::new(),
        labels: None,
        lessons: None,
    };
    let judged = Judged {
        assessment: current.assessment.clone(),
        fired: Vec::new(),
        model: None,
        memory: None,
        truncated: Truncated::default(),
        fallback: None,
    };
    let choice = select::choose(&prepared, &judged, &wish, state, moment)?;
    let mut decision = restated(current, Progress::Open);
    decision.id = moment.id;
    decision.parent_id = Some(current.id);
    decision.created = moment.now;
    decision.kind = kind;
    decision.escalations.extend(raise);
    let Wish {
        requirement,
        warnings,
        ..
    } = wish;
    decision.policy.required_tier = requirement.required_tier;
    decision.policy.min_tier = requirement.min_tier;
    decision.policy.effort = requirement.effort;
    decision.policy.thinking_level = requirement.effort.thinking_level().to_owned();
    put_choice(&mut decision, choice, requirement.effort);
    decision.warnings.splice(0..0, warnings);
    Ok(During::Move(Box::new(decision)))
}

fn put_choice(decision: &mut Decision, choice: Choice, effort: Effort) {
    decision.selected =
        write::selected(&choice.selected, effort, choice.tokens, write::Pick::PLAIN);
    decision.alternatives = choice
        .alternatives
        .iter()
        .map(|scored| write::selected(scored, effort, choice.tokens, write::Pick::PLAIN))
        .collect();
    decision.excluded = write::excluded(&choice.ranked, choice.excluded);
    decision.warnings = choice.warnings;
    decision.switch = None;
}

/// The same decision with a plan for how the task stands now.
fn restated(current: &Decision, progress: Progress) -> Decision {
    let mut decision = current.clone();
    if let Some(plan) = &current.plan {
        // The lessons stand at the end of the plan they came with, and still hold.
        let lessons = plan.find(LESSONS_MARKER).map(|at| &plan[at..]);
        decision.plan = write::plan(
            "",
            &decision.assessment,
            &decision.skills,
            &decision.tools.deactivate,
            (decision.policy.validation, &decision.policy.rules),
            progress,
            lessons,
        );
    }
    decision
}
