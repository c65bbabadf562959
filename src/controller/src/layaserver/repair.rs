//! Rows Crashing, Repairing and Scaling of control-plane 3.2: what should run runs, as it was rendered.

use api::event::EventReason;
use api::kinds::laya_server::{RolloutState, Strategy, Traffic, Version};
use api::reason::Reason;

use super::action::{Action, document_name};
use super::available;
use super::facts::Facts;
use super::image::{self, Need};
use super::probed::{self, Found};
use super::replicas::{Mend, Replica, Replicas, RoomForOne, Start};
use super::restarts;
use super::revision::{self, Stored};
use super::rollout::{Ran, gpu_holds_both, steps};
use super::sweep;
use super::traffic;
use super::view::{Because, Draft, View};
use crate::failure::Failure;

/// Whether replicas can be started now.
pub(super) enum Mending {
    Do(Vec<Action>),
    Wait(Because),
}

/// Starts replicas of a version, from what is stored of it.
pub(super) fn ensure(view: &View<'_>, version: &Version, ordinals: &[u32]) -> Mending {
    match revision::server(view, version) {
        Ok(server) => Mending::Do(vec![view.on(backend::Action::EnsureServer {
            server: Box::new(server),
            ordinals: ordinals.to_vec(),
        })]),
        Err(missing) => Mending::Wait(Because::new(
            Reason::Preparing,
            format!("it cannot be started: {missing}"),
        )),
    }
}

/// What stands in the way of a start. What the engine said is told first and tried again after that, so that a start that
/// fails each time is seen.
pub(super) fn blocked(
    view: &View<'_>,
    version: &Version,
    replicas: &Replicas<'_>,
) -> Option<Because> {
    if let Some(because) = available::stranger_of(view, version) {
        return Some(because);
    }
    let because = available::blocked(view, version, replicas)?;
    let engine_tries = view.checked.capabilities.pods;
    (engine_tries || !view.says(because.reason)).then_some(because)
}

/// A version that should run, with how many replicas.
struct Due {
    version: Version,
    count: usize,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Champion,
    Candidate,
    Previous,
}

/// The champion's, but not in a gap; the candidate's from Loading on; the old one's until Draining.
fn due(view: &View<'_>, draft: &Draft) -> Vec<Due> {
    let status = &draft.status;
    let all = usize::try_from(view.cut.replicas).unwrap_or(0);
    let at = status.works_at();
    let mut due = Vec::new();
    let mut push = |version: &Option<Version>, count, role| {
        due.extend(version.clone().map(|version| Due {
            version,
            count,
            role,
        }));
    };
    if !traffic::in_gap(draft) || at == Some(RolloutState::RollingBack) {
        push(&status.champion, all, Role::Champion);
    }
    let probed = status
        .candidate
        .as_ref()
        .is_some_and(|it| it.probe.is_some());
    let runs = match at {
        Some(RolloutState::Loading | RolloutState::Probing | RolloutState::Shifting) => true,
        // Judged before it runs, where there is no room for two.
        Some(RolloutState::Shadowing | RolloutState::Gating | RolloutState::AwaitingApproval) => {
            probed
        }
        _ => false,
    };
    if runs {
        push(
            &status.candidate,
            steps::replicas(view, draft),
            Role::Candidate,
        );
    }
    if at == Some(RolloutState::Baking) && view.cut.strategy != Strategy::Replace {
        push(&status.previous, all, Role::Previous);
    }
    due
}

/// Does the first thing that is to be done about what should run.
pub(super) fn run(view: &View<'_>, draft: &mut Draft) -> Ran {
    for due in due(view, draft) {
        if store(view, draft, &due.version) == Ran::Something
            || crashing(view, draft, &due) == Ran::Something
            || mend(view, draft, &due) == Ran::Something
        {
            return Ran::Something;
        }
    }
    Ran::Nothing
}

/// What made a version is stored as long as status names it.
fn store(view: &View<'_>, draft: &mut Draft, version: &Version) -> Ran {
    match revision::inputs(view, version) {
        Some((inputs, Stored::NotYet)) if view.checked.taken.contains(&inputs.revision()) => {
            // It is said each pass; what runs is looked after all the same, by its labels.
            let because = name_taken(view, &inputs.revision());
            draft.waits.get_or_insert(because);
            Ran::Nothing
        }
        Some((inputs, Stored::NotYet)) => {
            draft.actions.push(Action::StoreRevision {
                revision: inputs.revision(),
                inputs: Box::new(inputs),
            });
            Ran::Something
        }
        _ => Ran::Nothing,
    }
}

/// Something else has the name of a document: in the words of the pass that found out.
fn name_taken(view: &View<'_>, revision: &str) -> Because {
    let server = view.object.metadata.name.as_deref().unwrap_or_default();
    let document = document_name(server, revision);
    let failure = Failure::NameTaken {
        resource: format!("ControllerRevision {document}"),
    };
    Because::new(Reason::NameTaken, failure.to_string())
}

/// A champion that ends again and again, or lost its GPU, is made anew with a growing pause.
fn crashing(view: &View<'_>, draft: &mut Draft, due: &Due) -> Ran {
    if due.role != Role::Champion {
        return Ran::Nothing;
    }
    let replicas = view.replicas_of(Some(&due.version));
    let lost = gpu_lost(view, draft, &due.version, &replicas);
    let looping = restarts::is_loop(view, draft);
    let ended = |replica: &&Replica<'_>| {
        let restarts_alone = replica.lives() && !replica.runs();
        looping && (restarts_alone || (replica.is_down() && replica.crashed()))
    };
    let worst = replicas.iter().find(ended).copied().or(lost);
    let due_now = worst.filter(|worst| restarts::may_recreate(view, draft, worst));
    let (Some(worst), Some(server)) = (due_now, view.server(&due.version)) else {
        return Ran::Nothing;
    };
    let ordinal = worst.ordinal();
    let by_gpu = lost.is_some_and(|lost| lost.ordinal() == ordinal);
    if by_gpu {
        restarts::gpu_lost(view, draft);
    } else if let Some(restarts) = &mut draft.status.restarts {
        // The next pause begins now, and is longer.
        restarts.since = Some(view.now());
    }
    draft.actions.push(view.on(backend::Action::RecreateServer {
        server: Box::new(server),
        ordinal,
    }));
    let why = if by_gpu {
        "its GPU went away"
    } else {
        "it ends again and again"
    };
    draft.tell(
        EventReason::Repaired,
        format!("replica {ordinal} is made anew: {why}"),
    );
    Ran::Something
}

/// The replica that lost its GPU.
fn gpu_lost<'a>(
    view: &View<'a>,
    draft: &Draft,
    version: &Version,
    replicas: &Replicas<'a>,
) -> Option<Replica<'a>> {
    let mut each = replicas.iter().copied();
    each.find(|replica| {
        let alone = Replicas::new(vec![*replica]);
        matches!(
            probed::device(view, draft, version, &alone),
            Found::Wrong(because) if because.reason == Reason::GpuLost
        )
    })
}

fn mend(view: &View<'_>, draft: &mut Draft, due: &Due) -> Ran {
    let replicas = view.replicas_of(Some(&due.version));
    let needs = view
        .server(&due.version)
        .map_or(0, |server| server.memory_bytes());
    let fits = view.fits(needs);
    if waits_for_room(view, draft, due, &replicas, fits) {
        return Ran::Nothing;
    }
    let room = if fits {
        RoomForOne::Yes
    } else {
        RoomForOne::No
    };
    let looping = due.role == Role::Champion && restarts::is_loop(view, draft);
    let start = if looping {
        Start::NotCrashed
    } else {
        Start::Any
    };
    match replicas.mend(due.count, room, start) {
        Mend::Nothing => Ran::Nothing,
        Mend::Ensure { ordinals, differs } => {
            start_some(view, draft, due, &replicas, &ordinals, differs)
        }
        Mend::Recreate { ordinal, differs } => {
            let Some(server) = view.server(&due.version) else {
                return Ran::Nothing;
            };
            draft.actions.push(view.on(backend::Action::RecreateServer {
                server: Box::new(server),
                ordinal,
            }));
            repaired(
                draft,
                due,
                &format!("replica {ordinal} differed in {differs}"),
            );
            Ran::Something
        }
        Mend::Replace { ordinal, differs } => {
            let gone = remove(
                view,
                draft,
                &due.version,
                &replicas,
                &[ordinal],
                End::Delete,
            );
            if gone == Ran::Something {
                repaired(
                    draft,
                    due,
                    &format!("replica {ordinal} differed in {differs}"),
                );
            }
            gone
        }
        Mend::Surplus { ordinals } => {
            remove(view, draft, &due.version, &replicas, &ordinals, End::Stop)
        }
    }
}

/// What nothing needs goes first where both do not fit, and in any case in a gap.
fn waits_for_room(
    view: &View<'_>,
    draft: &Draft,
    due: &Due,
    replicas: &Replicas<'_>,
    fits: bool,
) -> bool {
    if replicas.alive().next().is_some() {
        return false;
    }
    let fits = fits && gpu_holds_both(view, draft, &due.version);
    match due.role {
        Role::Champion => sweep::is_due(view, draft) && (!fits || traffic::in_gap(draft)),
        Role::Previous => !fits,
        Role::Candidate => false,
    }
}

fn start_some(
    view: &View<'_>,
    draft: &mut Draft,
    due: &Due,
    replicas: &Replicas<'_>,
    ordinals: &[u32],
    differs: Option<String>,
) -> Ran {
    if blocked(view, &due.version, replicas).is_some() || makes_way(view, draft, due) {
        return Ran::Nothing;
    }
    let exists = |ordinal: &u32| replicas.iter().any(|it| it.ordinal() == *ordinal);
    if !ordinals.iter().all(exists) {
        match image::need(view, &due.version) {
            Need::Do(action, _) => {
                draft.actions.push(action);
                return Ran::Something;
            }
            Need::Wait(_) => return Ran::Nothing,
            Need::Here(_) | Need::Nothing => {}
        }
    }
    match ensure(view, &due.version, ordinals) {
        Mending::Do(actions) => draft.actions.extend(actions),
        Mending::Wait(_) => return Ran::Nothing,
    }
    let lost = lost(draft, &due.version) > replicas.alive().count()
        || (due.role == Role::Champion && are_gone(view, replicas));
    let what = differs.or_else(|| lost.then(|| "it was gone".to_owned()));
    if let Some(what) = what {
        repaired(draft, due, &format!("replicas {ordinals:?}: {what}"));
    }
    Ran::Something
}

/// Whether a start that failed the last time lets the rollout that replaces it go first: every other pass, since what is
/// said of the failure goes with a pass that does not fail.
fn makes_way(view: &View<'_>, draft: &Draft, due: &Due) -> bool {
    let words = [
        Reason::NameTaken,
        Reason::PortInUse,
        Reason::NoSpace,
        Reason::GpuUnavailable,
        Reason::SecretMissing,
        Reason::ImageNotFound,
        Reason::ImagePullUnauthorized,
        Reason::ImagePullBusy,
        Reason::ImagePullInterrupted,
        Reason::ImagePlatformMismatch,
    ];
    let candidate = draft.status.candidate.as_ref();
    due.role == Role::Champion
        && candidate.is_some_and(|candidate| !waits_itself(view, candidate))
        && words.iter().any(|reason| view.says(*reason))
}

/// Whether it is the candidate that something is in the way of: then what is said is said of it, and each pass again.
fn waits_itself(view: &View<'_>, candidate: &Version) -> bool {
    let replicas = view.replicas_of(Some(candidate));
    available::stranger_of(view, candidate).is_some()
        || available::blocked(view, candidate, &replicas).is_some()
        || matches!(image::need(view, candidate), Need::Wait(_))
}

/// Addresses of a version that have traffic: fewer replicas than that means that one went.
fn lost(draft: &Draft, version: &Version) -> usize {
    addresses(draft.status.traffic.as_ref(), version)
}

fn addresses(traffic: Option<&Traffic>, version: &Version) -> usize {
    let targets = traffic.map(|traffic| traffic.targets.as_slice());
    let mut targets = targets.unwrap_or_default().iter();
    targets
        .find(|target| target.revision == version.revision)
        .map_or(0, |target| target.urls.len())
}

/// Whether somebody removed all there was: what is stopped is kept. An engine inside the process keeps nothing, and one that
/// makes pods anew repairs by itself.
fn are_gone(view: &View<'_>, replicas: &Replicas<'_>) -> bool {
    let engine = &view.checked.capabilities;
    replicas.is_empty() && engine.images && !engine.pods
}

/// Some of the champion's replicas that had traffic are not there any more: told when their addresses leave it, since the
/// pass that starts others cannot see that they were there.
pub(super) fn tell_lost(view: &View<'_>, draft: &mut Draft) {
    let Some(version) = draft.status.champion.clone() else {
        return;
    };
    let before = view.object.status.as_ref();
    let had = addresses(before.and_then(|it| it.traffic.as_ref()), &version);
    let replicas = view.replicas_of(Some(&version));
    let gone = had.saturating_sub(replicas.iter().count());
    if gone > 0 && !replicas.is_empty() && !view.checked.capabilities.pods {
        let due = Due {
            version,
            count: had,
            role: Role::Champion,
        };
        repaired(draft, &due, &format!("{gone} of {had} replicas was gone"));
    }
}

fn repaired(draft: &mut Draft, due: &Due, what: &str) {
    let revision = due.version.revision.clone().unwrap_or_default();
    draft.tell(
        EventReason::Repaired,
        format!("revision {revision}: {what}; it is put right"),
    );
}

/// What becomes of replicas that are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stop,
    Delete,
}

/// Replicas go once they have no traffic any more; row Pointing takes that away first.
fn remove(
    view: &View<'_>,
    draft: &mut Draft,
    version: &Version,
    replicas: &Replicas<'_>,
    ordinals: &[u32],
    end: End,
) -> Ran {
    let revision = version.revision.clone().unwrap_or_default();
    let urls: Vec<_> = replicas
        .iter()
        .filter(|replica| ordinals.contains(&replica.ordinal()) && replica.runs())
        .filter_map(|replica| replica.seen.url.clone())
        .collect();
    if urls.iter().any(|url| traffic::names(draft, &revision, url)) {
        return Ran::Nothing;
    }
    draft.actions.extend(sweep::drains(view, version, &urls));
    let grace_seconds = sweep::grace(view);
    let ordinals = backend::Ordinals::Only(ordinals.to_vec());
    draft.actions.push(view.on(match end {
        End::Stop => backend::Action::StopServer {
            revision,
            ordinals,
            grace_seconds,
        },
        End::Delete => backend::Action::DeleteServer {
            revision,
            ordinals,
            grace_seconds,
        },
    }));
    Ran::Something
}
