//! A rollout begins when the wish is not what serves, and is dropped when the wish is another one again.

use api::event::EventReason;
use api::kinds::laya_server::{RolloutKind, RolloutProgress, RolloutState, Version};
use api::reason::Reason;

use super::super::facts::{Facts, is_revision};
use super::super::history::{self, Outcome};
use super::super::kept_log;
use super::super::revision;
use super::super::view::{Because, Draft, View};
use super::super::wish::{self, Wished};
use super::{Ran, bake, told, word};

/// Begins a rollout to the wish, if there is one to begin.
pub(in super::super) fn begin(view: &View<'_>, draft: &mut Draft, wished: &Wished<'_>) -> Ran {
    if draft.status.state().is_some() || wished.rejected.is_some() || wish::is_served(draft, wished)
    {
        return Ran::Nothing;
    }
    let Some((revision, inputs)) = &wished.inputs else {
        draft.waits = Some(no_checkpoint(wished));
        return Ran::Nothing;
    };
    draft.actions.extend(kept_log::forget(view, revision));
    let candidate = candidate(view, draft, wished, revision, inputs);
    let kind = kind(draft, revision, &inputs.digest);
    let now = view.now();
    draft.status.candidate = Some(candidate);
    draft.status.rollout = Some(RolloutProgress {
        id: Some(format!("{revision}-{}", now.as_second())),
        kind: Some(kind),
        state: Some(RolloutState::Preparing),
        step_started_at: Some(now),
        started_at: Some(now),
        ..RolloutProgress::default()
    });
    draft.waits = Some(Because::new(
        word(RolloutState::Preparing),
        told(RolloutState::Preparing),
    ));
    draft.tell(
        EventReason::RolloutStarted,
        format!(
            "LayaModel {} is to serve as revision {revision} ({})",
            wished.model,
            kind.as_str()
        ),
    );
    Ran::Something
}

/// Why nothing is known of the wished checkpoint.
pub(super) fn no_checkpoint(wished: &Wished<'_>) -> Because {
    let model = &wished.model;
    match wished.view {
        None => Because::new(
            Reason::Preparing,
            format!("LayaModel {model} is not there. Create it, or name another in spec.modelRef"),
        ),
        Some(view) => Because::new(
            Reason::Preparing,
            format!(
                "LayaModel {model} is not ready ({}): {}",
                view.reason, view.message
            ),
        ),
    }
}

/// What serves, or served, under this revision keeps what is known of it; it is asked again.
fn candidate(
    view: &View<'_>,
    draft: &Draft,
    wished: &Wished<'_>,
    revision: &str,
    inputs: &backend::RevisionInputs,
) -> Version {
    let previous = draft.status.previous.as_ref();
    match previous.filter(|previous| is_revision(Some(previous), revision)) {
        Some(previous) => Version {
            since: Some(view.now()),
            probe: None,
            ready_replicas: None,
            ..previous.clone()
        },
        None => revision::version(view, &wished.model, inputs),
    }
}

fn kind(draft: &Draft, revision: &str, digest: &str) -> RolloutKind {
    match &draft.status.champion {
        None => RolloutKind::First,
        Some(_) if history::has_served(draft, revision) => RolloutKind::Revert,
        Some(champion) if champion.digest.as_deref() == Some(digest) => RolloutKind::Runtime,
        Some(_) => RolloutKind::Model,
    }
}

/// Drops the rollout that runs when it is not what is wished any more. A way back is finished first.
pub(super) fn drop_unwished(view: &View<'_>, draft: &mut Draft, wished: &Wished<'_>) -> Ran {
    match draft.status.works_at() {
        None | Some(RolloutState::RollingBack | RolloutState::Promoted) => return Ran::Nothing,
        Some(RolloutState::Baking | RolloutState::Draining) => {
            return end_watch(view, draft, wished);
        }
        Some(_) => {}
    }
    let Some(candidate) = draft.status.candidate.clone() else {
        return Ran::Nothing;
    };
    let same_model = candidate.model.as_ref() == Some(&wished.model);
    let same = wished.revision().map_or(same_model, |revision| {
        is_revision(Some(&candidate), revision)
    });
    if same {
        return Ran::Nothing;
    }
    let (outcome, reason, event, how) = if wish::is_served(draft, wished) {
        (
            Outcome::Withdrawn,
            Reason::Withdrawn,
            EventReason::Withdrawn,
            "the wish is the champion again",
        )
    } else {
        (
            Outcome::Superseded,
            Reason::Superseded,
            EventReason::Superseded,
            "a newer wish took its place",
        )
    };
    let from_to = history::from_to(draft);
    let revision = candidate.revision.clone().unwrap_or_default();
    draft.status.candidate = None;
    history::end(
        view,
        draft,
        from_to,
        outcome,
        Some(reason.as_str().to_owned()),
    );
    draft.waits = Some(Because::new(
        reason,
        format!("revision {revision} is dropped: {how}"),
    ));
    draft.tell(event, format!("revision {revision} was dropped: {how}"));
    Ran::Something
}

/// A newer wish ends the watch over the champion: it has served, so it is what the new one is compared with.
fn end_watch(view: &View<'_>, draft: &mut Draft, wished: &Wished<'_>) -> Ran {
    if wish::is_served(draft, wished) || wished.rejected.is_some() || wished.inputs.is_none() {
        return Ran::Nothing;
    }
    let (outcome, reason) = if draft.status.failed_in_place() {
        (Outcome::Superseded, Reason::Superseded.as_str().to_owned())
    } else {
        (Outcome::Promoted, bake::cut_short(view, draft))
    };
    let from_to = history::from_to(draft);
    let reason = Some(reason);
    history::end(view, draft, from_to, outcome, reason);
    draft.tell(
        EventReason::Superseded,
        "a newer wish ends the watch over the champion",
    );
    Ran::Something
}
