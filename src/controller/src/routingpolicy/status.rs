//! What a policy's status says in each state, and which events that is worth. Pure.

use api::condition::ConditionType;
use api::event::EventReason;
use api::kinds::{
    ConditionStatus, PolicyProblem, PolicySummary, ProblemSeverity, RoutingPolicy,
    RoutingPolicyStatus,
};
use api::reason::Reason;
use routing::policy::{Problem, Severity};

use super::inputs::ServerState;
use super::validate::Checked;
use crate::clock::Now;
use crate::conditions::{Conditions, bounded, find};
use crate::failure::Failure;
use crate::reconciler::EventDraft;

/// Most problems in a status.
const MAX_PROBLEMS: usize = 32;
/// Longest path of a problem, in characters.
const MAX_PATH: usize = 512;
/// Longest message of a problem, in characters.
const MAX_PROBLEM_MESSAGE: usize = 1024;

/// Warnings that become the reason of `Accepted`, the most urgent first.
const WARNINGS: [Reason; 5] = [
    Reason::ReferenceNotFound,
    Reason::ContractMismatch,
    Reason::StalePrice,
    Reason::MissingPrice,
    Reason::UnusedModel,
];

fn before(policy: &RoutingPolicy) -> RoutingPolicyStatus {
    policy.status.clone().unwrap_or_default()
}

fn conditions(policy: &RoutingPolicy, now: &Now) -> Conditions {
    let list = policy
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice());
    Conditions::of(
        list.unwrap_or_default(),
        policy.metadata.generation,
        now.wall,
    )
}

/// It is being deleted; nothing is done about it any more.
pub(super) fn deleting(policy: &RoutingPolicy, now: &Now) -> RoutingPolicyStatus {
    let mut conditions = conditions(policy, now);
    conditions.remove(ConditionType::Reconciling);
    conditions.remove(ConditionType::Stalled);
    let message = "the object is being deleted; it goes once its finalizers are gone";
    conditions.set(
        ConditionType::Ready,
        ConditionStatus::False,
        Reason::Deleting,
        message,
    );
    RoutingPolicyStatus {
        observed_generation: policy.metadata.generation,
        conditions: conditions.into_list(),
        ..before(policy)
    }
}

/// It compiles, and its document is not there yet. What is said of the revision before stays, with its generation: that
/// one is still in force.
pub(super) fn storing(policy: &RoutingPolicy, revision: &str, now: &Now) -> RoutingPolicyStatus {
    let mut conditions = conditions(policy, now);
    let message = format!("revision {revision} compiles and is being stored");
    conditions.remove(ConditionType::Stalled);
    conditions.set(
        ConditionType::Reconciling,
        ConditionStatus::True,
        Reason::Progressing,
        message.clone(),
    );
    let before = before(policy);
    if before.accepted_revision.is_none() {
        conditions.set(
            ConditionType::Ready,
            ConditionStatus::False,
            Reason::Waiting,
            message,
        );
    }
    RoutingPolicyStatus {
        conditions: conditions.into_list(),
        ..before
    }
}

/// It compiles and is stored: routers may use it.
pub(super) fn settled(
    policy: &RoutingPolicy,
    checked: &Checked,
    summary: PolicySummary,
    warnings: &[Problem],
    now: &Now,
) -> RoutingPolicyStatus {
    let revision = &checked.compiled.revision;
    let mut told: Vec<_> = server_problem(&checked.server).into_iter().collect();
    told.extend(
        warnings
            .iter()
            .map(|warning| (Reason::from(warning.reason), problem(warning))),
    );
    let mut conditions = conditions(policy, now);
    conditions.remove(ConditionType::Reconciling);
    conditions.remove(ConditionType::Stalled);
    let urgent = WARNINGS
        .into_iter()
        .find_map(|reason| told.iter().find(|(warned, _)| *warned == reason));
    let (reason, message) = match urgent {
        None => (Reason::Accepted, format!("revision {revision} compiles")),
        Some((reason, first)) => {
            let more = match told.len() {
                1 => String::new(),
                count => format!(" ({} more in status.problems)", count - 1),
            };
            let message = format!(
                "revision {revision} compiles; {}: {}{more}",
                first.path, first.message
            );
            (*reason, message)
        }
    };
    conditions.set(
        ConditionType::Accepted,
        ConditionStatus::True,
        reason,
        message,
    );
    let in_force = format!("revision {revision} is in force");
    conditions.set(
        ConditionType::Ready,
        ConditionStatus::True,
        Reason::Reconciled,
        in_force,
    );
    RoutingPolicyStatus {
        observed_generation: policy.metadata.generation,
        conditions: conditions.into_list(),
        accepted_revision: Some(revision.clone()),
        accepted_generation: policy.metadata.generation,
        problems: limited(told.into_iter().map(|(_, problem)| problem).collect()),
        summary: Some(summary),
    }
}

/// It does not compile; what was accepted before stays in force.
pub(super) fn refused(
    policy: &RoutingPolicy,
    reason: Reason,
    problems: &[Problem],
    now: &Now,
) -> RoutingPolicyStatus {
    let before = before(policy);
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .count();
    let first = problems.first().map_or_else(String::new, |first| {
        format!("{}: {}", first.path, first.message)
    });
    let others = match errors {
        0 | 1 => String::new(),
        count => format!(" ({} more errors in status.problems)", count - 1),
    };
    let in_force = match &before.accepted_revision {
        Some(revision) => format!("revision {revision} stays in force"),
        None => "no revision is in force".to_owned(),
    };
    // The advice comes last, so the first problem is what is cut where there is no room.
    let first = bounded(first, 800);
    let message = format!("{first}{others}; {in_force}. Correct the spec");
    let mut conditions = conditions(policy, now);
    conditions.set(
        ConditionType::Accepted,
        ConditionStatus::False,
        reason,
        message.clone(),
    );
    conditions.fail(reason, &message);
    RoutingPolicyStatus {
        observed_generation: policy.metadata.generation,
        conditions: conditions.into_list(),
        problems: limited(problems.iter().map(problem).collect()),
        ..before
    }
}

/// Something stands in the way that only somebody can remove.
pub(super) fn failed(policy: &RoutingPolicy, failure: &Failure, now: &Now) -> RoutingPolicyStatus {
    let reason = failure.reason().unwrap_or(Reason::Waiting);
    let message = failure.to_string();
    let mut conditions = conditions(policy, now);
    conditions.fail(reason, &message);
    RoutingPolicyStatus {
        observed_generation: policy.metadata.generation,
        conditions: conditions.into_list(),
        ..before(policy)
    }
}

fn server_problem(server: &ServerState) -> Option<(Reason, PolicyProblem)> {
    let (reason, message) = match server {
        ServerState::Unnamed | ServerState::Fine => return None,
        ServerState::NotFound { name } => (
            Reason::ReferenceNotFound,
            format!(
                "LayaServer `{name}` is not there; rules and memory answer until it is. Create it, or name another"
            ),
        ),
        ServerState::OtherContract { name } => (
            Reason::ContractMismatch,
            format!(
                "LayaServer `{name}` answers other questions than a policy has; rules and memory answer. Serve a model of this contract"
            ),
        ),
    };
    let problem = PolicyProblem {
        severity: ProblemSeverity::Warning,
        path: "spec.serverRef".to_owned(),
        message,
    };
    Some((reason, problem))
}

fn problem(problem: &Problem) -> PolicyProblem {
    PolicyProblem {
        severity: problem.severity.into(),
        path: bounded(problem.path.clone(), MAX_PATH),
        message: bounded(problem.message.clone(), MAX_PROBLEM_MESSAGE),
    }
}

/// As many as fit; the last one says how many did not.
fn limited(mut problems: Vec<PolicyProblem>) -> Vec<PolicyProblem> {
    if problems.len() > MAX_PROBLEMS {
        let more = problems.len() - (MAX_PROBLEMS - 1);
        let severity = problems[MAX_PROBLEMS - 1].severity;
        problems.truncate(MAX_PROBLEMS - 1);
        problems.push(PolicyProblem {
            severity,
            path: "spec".to_owned(),
            message: format!("{more} more; correct these first"),
        });
    }
    problems
}

/// The event of a revision that comes into force.
pub(super) fn acceptance(policy: &RoutingPolicy, status: &RoutingPolicyStatus) -> Vec<EventDraft> {
    let old = policy.status.as_ref();
    let was_refused = old.is_some_and(|old| is_accepted(old) == Some(ConditionStatus::False));
    let same = old.is_some_and(|old| old.accepted_revision == status.accepted_revision);
    if same && !was_refused {
        return Vec::new();
    }
    let revision = status.accepted_revision.as_deref().unwrap_or_default();
    let note = match old
        .and_then(|old| old.accepted_revision.as_deref())
        .filter(|_| !same)
    {
        Some(before) => format!("revision {revision} is in force; it was {before}"),
        None => format!("revision {revision} is in force"),
    };
    vec![EventDraft {
        reason: EventReason::PolicyAccepted,
        note,
    }]
}

/// The event of an edit that is refused; once for each.
pub(super) fn refusal(policy: &RoutingPolicy, status: &RoutingPolicyStatus) -> Vec<EventDraft> {
    let old = policy.status.as_ref();
    let told = old.is_some_and(|old| {
        is_accepted(old) == Some(ConditionStatus::False)
            && old.observed_generation == status.observed_generation
    });
    if told {
        return Vec::new();
    }
    let accepted = find(&status.conditions, ConditionType::Accepted);
    vec![EventDraft {
        reason: EventReason::PolicyRefused,
        note: accepted
            .map(|condition| condition.message.clone())
            .unwrap_or_default(),
    }]
}

fn is_accepted(status: &RoutingPolicyStatus) -> Option<ConditionStatus> {
    find(&status.conditions, ConditionType::Accepted).map(|condition| condition.status)
}
