//! Where requests go (row Pointing of control-plane 3.2): computed from the facts and from which replicas are ready. It sums
//! to 100, or is empty with a reason.

use api::event::EventReason;
use api::kinds::laya_server::{RolloutState, Strategy, Target, TargetRole, Traffic, Version};
use api::reason::Reason;

use super::facts::{EXTERNAL, Facts, revision};
use super::probed;
use super::replicas::Replica;
use super::rollout::steps;
use super::view::{Draft, View};
use super::{available, external};

/// Puts the traffic that the facts and the replicas ask for into the draft. A pass that changes it does nothing else.
pub(super) fn point(view: &View<'_>, draft: &mut Draft) -> Changed {
    let wanted = wanted(view, draft);
    let old = draft.status.traffic.clone().unwrap_or_default();
    let same = old.generation.is_some()
        && old.targets == wanted.targets
        && old.reason == wanted.reason
        && old.stable_url == wanted.stable_url;
    if same {
        return Changed::No;
    }
    if old.reason.as_deref() == Some(Reason::Gap.as_str()) && !wanted.targets.is_empty() {
        draft.tell(EventReason::GapEnded, "a version answers again");
    }
    let was_suspended = old.reason.as_deref() == Some(Reason::Suspended.as_str());
    if was_suspended
        && !is_suspended(view)
        && draft.status.state() == Some(RolloutState::RollingBack)
    {
        // What is gone back to was stopped meanwhile, which is no fault of its own.
        let clocks = view.clocks;
        clocks.restart(draft.rollout());
    }
    draft.status.traffic = Some(Traffic {
        generation: Some(old.generation.unwrap_or(0) + 1),
        ..wanted
    });
    draft.actions.clear();
    Changed::Yes
}

/// Whether traffic changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Yes,
    No,
}

fn wanted(view: &View<'_>, draft: &Draft) -> Traffic {
    let stable_url = view.checked.capabilities.pods.then(|| {
        let metadata = &view.object.metadata;
        let name = metadata.name.as_deref().unwrap_or_default();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        format!("http://laya-{name}.{namespace}.svc:8000")
    });
    let (targets, reason) = targets(view, draft);
    Traffic {
        generation: None,
        reason: reason.map(|reason| reason.as_str().to_owned()),
        stable_url,
        targets,
    }
}

fn targets(view: &View<'_>, draft: &Draft) -> (Vec<Target>, Option<Reason>) {
    let status = &draft.status;
    if is_suspended(view) {
        return (Vec::new(), Some(Reason::Suspended));
    }
    if view.spec.external.is_some() {
        return match external::target(view) {
            Ok(target) => (vec![target], None),
            Err(because) => (Vec::new(), Some(because.reason)),
        };
    }
    if in_gap(draft) && status.works_at() != Some(RolloutState::RollingBack) {
        return (Vec::new(), Some(Reason::Gap));
    }
    let Some(champion) = &status.champion else {
        // A server that is not ours serves until ours does.
        return match foreign(status.traffic.as_ref()) {
            Some(target) => (vec![target], None),
            None => (Vec::new(), Some(Reason::NoChampion)),
        };
    };
    let count = usize::try_from(view.cut.replicas).unwrap_or(0);
    let champions = urls(view, draft, champion, count);
    let candidate = status.candidate.as_ref();
    let share = candidate.and_then(|candidate| share(view, draft, candidate));
    split(champion, champions, share).map_or_else(
        || (Vec::new(), Some(why_empty(view, draft))),
        |targets| (targets, None),
    )
}

/// Nothing runs and nothing is to.
pub(super) fn is_suspended(view: &View<'_>) -> bool {
    view.spec.suspend || (view.spec.replicas == 0 && view.spec.external.is_none())
}

fn foreign(traffic: Option<&Traffic>) -> Option<Target> {
    let targets = traffic.map(|traffic| traffic.targets.as_slice());
    let mut targets = targets.unwrap_or_default().iter();
    targets
        .find(|target| target.revision.as_deref() == Some(EXTERNAL))
        .cloned()
}

/// What a candidate gets of the traffic.
struct Share<'a> {
    version: &'a Version,
    urls: Vec<String>,
    weight: i32,
    role: TargetRole,
}

fn share<'a>(view: &View<'_>, draft: &Draft, candidate: &'a Version) -> Option<Share<'a>> {
    let (role, weight) = match draft.status.works_at()? {
        RolloutState::Shadowing if view.cut.strategy != Strategy::BlueGreen => {
            (TargetRole::Shadow, 0)
        }
        RolloutState::Shifting => (TargetRole::Candidate, steps::weight(view, draft)),
        _ => return None,
    };
    if role == TargetRole::Candidate && weight == 0 {
        return None;
    }
    let urls = urls(view, draft, candidate, steps::replicas(view, draft));
    (!urls.is_empty()).then_some(Share {
        version: candidate,
        urls,
        weight,
        role,
    })
}

/// All of it shared out, or nothing where nobody can take it.
fn split(champion: &Version, urls: Vec<String>, share: Option<Share<'_>>) -> Option<Vec<Target>> {
    let mut targets = Vec::new();
    let taken = match &share {
        Some(share) if share.role == TargetRole::Candidate && urls.is_empty() => 100,
        Some(share) => share.weight,
        None => 0,
    };
    if !urls.is_empty() {
        targets.push(target(champion, urls, 100 - taken, TargetRole::Champion));
    }
    if let Some(share) = share
        && (share.role == TargetRole::Candidate || !targets.is_empty())
    {
        targets.push(target(share.version, share.urls, taken, share.role));
    }
    (!targets.is_empty()).then_some(targets)
}

fn target(version: &Version, urls: Vec<String>, weight: i32, role: TargetRole) -> Target {
    Target {
        revision: version.revision.clone(),
        digest: version.digest.clone(),
        contract: version.contract.clone(),
        urls,
        weight: Some(weight),
        role: Some(role),
    }
}

/// Addresses of a version's replicas that take requests. One that this process has not asked yet keeps what it had.
fn urls(view: &View<'_>, draft: &Draft, version: &Version, count: usize) -> Vec<String> {
    let replicas = view.replicas_of(Some(version));
    let serves = |replica: &&Replica<'_>| {
        let known = || had(draft, version, replica);
        (replica.is_ready() || (replica.is_unasked() && known()))
            && probed::lies(version, replica).is_none()
    };
    let kept = replicas.kept(count);
    let urls = kept
        .iter()
        .filter(serves)
        .filter_map(|replica| replica.seen.url.clone());
    urls.take(MAX_URLS).collect()
}

/// Most addresses of a target.
const MAX_URLS: usize = 64;

fn had(draft: &Draft, version: &Version, replica: &Replica<'_>) -> bool {
    let traffic = draft.status.traffic.as_ref();
    let targets = traffic.map(|traffic| traffic.targets.as_slice());
    targets.unwrap_or_default().iter().any(|target| {
        target.revision == version.revision
            && replica
                .seen
                .url
                .as_ref()
                .is_some_and(|url| target.urls.contains(url))
    })
}

/// Whether an address of this revision is still in the traffic.
pub(super) fn names(draft: &Draft, wanted: &str, url: &str) -> bool {
    let traffic = draft.status.traffic.as_ref();
    let targets = traffic.map(|traffic| traffic.targets.as_slice());
    targets.unwrap_or_default().iter().any(|target| {
        target.revision.as_deref() == Some(wanted) && target.urls.iter().any(|other| other == url)
    })
}

/// Whether a revision is in the traffic at all.
pub(super) fn has(draft: &Draft, wanted: &str) -> bool {
    let traffic = draft.status.traffic.as_ref();
    let targets = traffic.map(|traffic| traffic.targets.as_slice());
    let mut targets = targets.unwrap_or_default().iter();
    targets.any(|target| target.revision.as_deref() == Some(wanted))
}

/// Whether rules answer because the old one makes room for the new one, or the new one for the old one again.
pub(super) fn in_gap(draft: &Draft) -> bool {
    let states = [
        RolloutState::Starting,
        RolloutState::Loading,
        RolloutState::Probing,
        RolloutState::RollingBack,
    ];
    draft.status.is_gap()
        && draft
            .status
            .works_at()
            .is_some_and(|at| states.contains(&at))
}

/// Rules answer from now on, so that the old one can stop.
pub(super) fn open_gap(draft: &mut Draft) {
    let old = draft.status.traffic.take().unwrap_or_default();
    draft.status.traffic = Some(Traffic {
        generation: Some(old.generation.unwrap_or(0) + 1),
        reason: Some(Reason::Gap.as_str().to_owned()),
        targets: Vec::new(),
        stable_url: old.stable_url,
    });
}

fn why_empty(view: &View<'_>, draft: &Draft) -> Reason {
    if in_gap(draft) {
        return Reason::Gap;
    }
    let status = &draft.status;
    let champion = status.champion.as_ref();
    let replicas = view.replicas_of(champion);
    let lie = champion.and_then(|champion| {
        let mut ready = replicas.iter().filter(|replica| replica.is_ready());
        ready.find_map(|replica| probed::lies(champion, replica))
    });
    match lie {
        Some(because) => because.reason,
        None => available::reason(view, draft).reason,
    }
}

/// The address for plain Laya clients: the stable one, else the first that has traffic.
pub(super) fn url(draft: &Draft) -> Option<String> {
    let traffic = draft.status.traffic.as_ref()?;
    let first = || {
        traffic
            .targets
            .iter()
            .find(|target| revision_has_weight(target))
    };
    traffic
        .stable_url
        .clone()
        .or_else(|| first()?.urls.first().cloned())
}

fn revision_has_weight(target: &Target) -> bool {
    target.weight.unwrap_or(0) > 0
}

/// The champion's revision, where it has traffic.
pub(super) fn serves_champion(draft: &Draft) -> bool {
    revision(draft.status.champion.as_ref()).is_some_and(|champion| has(draft, champion))
}
