//! What is said of a server (control-plane 1.3, 3): conditions, from the facts and from what was seen.

use api::condition::ConditionType;
use api::kinds::ConditionStatus;
use api::kinds::laya_server::{RolloutState, ServerApi, Version};
use api::kinds::shared::DevicePolicy;
use api::reason::Reason;
use backend::{BackendError, ImageState};

use super::facts::{Facts, revision};
use super::probed::{self, Found};
use super::replicas::Replicas;
use super::view::{Because, Draft, View};
use super::wish::{self, Wished};
use super::{advice, available, external, history, image, rollout, traffic};
use crate::conditions::Conditions;
use crate::probe::ReplicaProbe;

/// A condition to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) status: ConditionStatus,
    pub(super) because: Because,
}

impl Said {
    fn yes(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status: ConditionStatus::True,
            because: Because::new(reason, message),
        }
    }

    fn no(because: Because) -> Self {
        Self {
            status: ConditionStatus::False,
            because,
        }
    }

    fn open(because: Because) -> Self {
        Self {
            status: ConditionStatus::Unknown,
            because,
        }
    }

    fn found(found: Found) -> Self {
        match found {
            Found::Right(because) => Self {
                status: ConditionStatus::True,
                because,
            },
            Found::Wrong(because) => Self::no(because),
            Found::Open(because) => Self::open(because),
        }
    }

    fn holds(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

/// All conditions of a server.
#[derive(Debug)]
pub(super) struct Saying {
    said: Vec<(ConditionType, Option<Said>)>,
}

impl Saying {
    pub(super) fn get(&self, kind: ConditionType) -> Option<&Said> {
        let mut said = self.said.iter();
        said.find(|(other, _)| *other == kind)
            .and_then(|(_, said)| said.as_ref())
    }

    fn set(&mut self, kind: ConditionType, said: Option<Said>) {
        self.said.push((kind, said));
    }

    /// Into the list that the object has.
    pub(super) fn write(&self, conditions: &mut Conditions) {
        for (kind, said) in &self.said {
            match said {
                Some(said) => conditions.set(
                    *kind,
                    said.status,
                    said.because.reason,
                    said.because.message.clone(),
                ),
                None => conditions.remove(*kind),
            }
        }
    }
}

/// What is said when everything was seen.
pub(super) fn say(view: &View<'_>, draft: &Draft, wished: &Wished<'_>) -> Saying {
    let mut saying = Saying { said: Vec::new() };
    let champion = draft.status.champion.as_ref();
    let replicas = view.replicas_of(champion);
    let reached = match view.observed {
        Some(_) => Said::yes(Reason::Observed, "the last look was complete"),
        // A server that is not ours needs no engine.
        None => Said::no(unseen(view)),
    };
    saying.set(ConditionType::BackendReachable, Some(reached));
    saying.set(ConditionType::FieldsSupported, Some(fields(view)));
    saying.set(ConditionType::ModelReady, Some(model(draft, wished)));
    if view.spec.external.is_some() {
        say_external(view, &mut saying);
    } else {
        saying.set(ConditionType::Adopted, None);
        saying.set(
            ConditionType::Available,
            Some(is_available(view, draft, &replicas)),
        );
        say_answers(view, draft, &replicas, &mut saying);
    }
    let rolled_out = rolled_out(view, draft, wished);
    saying.set(ConditionType::RolledOut, Some(rolled_out));
    saying.set(ConditionType::RollbackReady, Some(way_back(view, draft)));
    let stalled = stalled(view, draft, wished);
    let ready = ready(view, draft, &replicas, &saying, stalled.as_ref());
    let busy = reconciling(view, draft, &ready, stalled.as_ref(), &saying);
    saying.set(ConditionType::Ready, Some(ready));
    saying.set(ConditionType::Stalled, stalled);
    saying.set(ConditionType::Reconciling, busy);
    saying
}

/// What is said when nothing was seen: nothing is known, and all that is recorded stays.
pub(super) fn say_blind(view: &View<'_>) -> Saying {
    let because = unseen(view);
    let mut saying = Saying { said: Vec::new() };
    saying.set(
        ConditionType::BackendReachable,
        Some(Said::no(because.clone())),
    );
    for kind in [
        ConditionType::Ready,
        ConditionType::Available,
        ConditionType::ContractMatched,
        ConditionType::Probed,
        ConditionType::DeviceMatched,
    ] {
        saying.set(kind, Some(Said::open(because.clone())));
    }
    saying
}

/// Why nothing was seen.
fn unseen(view: &View<'_>) -> Because {
    match &view.seen.engine {
        Err(error) => blind(error),
        Ok(_) => Because::new(
            Reason::ObservationTimedOut,
            "the last look was not complete; what runs goes on. It is looked again",
        ),
    }
}

fn blind(error: &BackendError) -> Because {
    let reason = error.reason().filter(|_| error.is_blind());
    Because::new(
        reason.unwrap_or(Reason::EngineUnavailable),
        format!("{error}. What runs goes on; look after the engine"),
    )
}

fn fields(view: &View<'_>) -> Said {
    let ignored = &view.cut.ignored;
    if ignored.is_empty() {
        return Said::yes(Reason::AllApplied, "every field of the spec counts");
    }
    let name = view.checked.capabilities.name;
    let paths = ignored.join(", ");
    Said::no(Because::new(
        Reason::FieldsIgnored,
        format!("back end {name} cannot follow {paths}. Remove them, or use another back end"),
    ))
}

fn model(draft: &Draft, wished: &Wished<'_>) -> Said {
    let name = &wished.model;
    let Some(known) = wished.view else {
        return Said::no(Because::new(
            Reason::ReferenceNotFound,
            format!("LayaModel {name} is not there. Create it, or name another in spec.modelRef"),
        ));
    };
    let damage = draft.status.damage.as_ref().filter(|damage| {
        damage.digest == known.digest
            && damage
                .at
                .is_some_and(|at| known.verified_at.is_none_or(|verified| at > verified))
    });
    // One whose files are right and mean nothing says so itself.
    let unfit = known.reason == Reason::BadCheckpoint.as_str();
    if (damage.is_some() && !unfit) || known.reason == Reason::ModelDamaged.as_str() {
        return Said::no(Because::new(
            Reason::ModelDamaged,
            format!(
                "files of LayaModel {name} differ from their manifest; it is repaired where its source is ours to fetch from"
            ),
        ));
    }
    if known.ready {
        return Said::yes(Reason::Observed, format!("LayaModel {name} is ready"));
    }
    Said::no(Because::new(
        Reason::ModelNotReady,
        format!(
            "LayaModel {name} is not ready ({}): {}. Look at that LayaModel",
            known.reason, known.message
        ),
    ))
}

fn say_external(view: &View<'_>, saying: &mut Saying) {
    let target = external::target(view);
    let url = view.spec.external.as_ref().map_or("", |it| it.url.as_str());
    let adopted = match &target {
        Ok(_) => Said::yes(
            Reason::Observed,
            format!(
                "the server at {url} serves; nothing about it is changed{}",
                without_ready(view, view.seen.external.as_ref())
            ),
        ),
        Err(because) => Said::no(because.clone()),
    };
    let about = |kind: ConditionType| match &target {
        Ok(target) if kind == ConditionType::ContractMatched && target.contract.is_none() => {
            Said::yes(
                Reason::ContractUnverified,
                "it answers the questions and names no contract",
            )
        }
        Ok(_) => Said::yes(Reason::Observed, "its answers are right"),
        Err(because) if because.reason.conditions().contains(&kind) => Said::no(because.clone()),
        Err(because) => Said::open(Because::new(Reason::Waiting, because.message.clone())),
    };
    let device = view
        .seen
        .external
        .as_ref()
        .and_then(|probe| probe.device.claimed.clone());
    let device = match device.as_deref() {
        Some("cuda") => Said::yes(Reason::Cuda, "served by cuda"),
        Some(_) => Said::yes(Reason::Cpu, "served by cpu"),
        None => Said::open(Because::new(
            Reason::NotReported,
            "the server names no device",
        )),
    };
    saying.set(
        ConditionType::Available,
        Some(about(ConditionType::Available)),
    );
    saying.set(
        ConditionType::ContractMatched,
        Some(about(ConditionType::ContractMatched)),
    );
    saying.set(ConditionType::Probed, Some(about(ConditionType::Probed)));
    saying.set(ConditionType::DeviceMatched, Some(device));
    saying.set(ConditionType::Adopted, Some(adopted));
}

/// A server of ours, or one that is said to be like ours, does without `/ready`.
fn without_ready(view: &View<'_>, probe: Option<&ReplicaProbe>) -> String {
    let unexpected = view.spec.server_api == ServerApi::Relay;
    if unexpected && probe.is_some_and(|probe| probe.plain) {
        format!("; {}", external::WITHOUT_READY)
    } else {
        String::new()
    }
}

fn is_available(view: &View<'_>, draft: &Draft, replicas: &Replicas<'_>) -> Said {
    let unasked = replicas.iter().any(|replica| replica.is_unasked());
    let at = draft.status.works_at();
    let in_gap = traffic::in_gap(draft) && at != Some(RolloutState::RollingBack);
    if traffic::is_suspended(view) || in_gap {
        return Said::no(available::reason(view, draft));
    }
    if replicas.ready() > 0 || (unasked && traffic::serves_champion(draft)) {
        let mut probes = replicas.iter().filter_map(|replica| replica.probe);
        let plain = probes.find(|probe| probe.plain);
        let told = without_ready(view, plain);
        let message = format!("replicas of the champion answer{told}");
        return Said::yes(Reason::Observed, message);
    }
    Said::no(available::reason(view, draft))
}

fn say_answers(view: &View<'_>, draft: &Draft, replicas: &Replicas<'_>, saying: &mut Saying) {
    let Some(champion) = &draft.status.champion else {
        saying.set(ConditionType::ContractMatched, None);
        saying.set(ConditionType::Probed, None);
        saying.set(ConditionType::DeviceMatched, None);
        return;
    };
    let (contract, probed) = probed::answers(champion, replicas);
    let device = probed::device(view, draft, champion, replicas);
    saying.set(ConditionType::ContractMatched, Some(Said::found(contract)));
    saying.set(ConditionType::Probed, Some(Said::found(probed)));
    saying.set(ConditionType::DeviceMatched, Some(Said::found(device)));
}

fn rolled_out(view: &View<'_>, draft: &Draft, wished: &Wished<'_>) -> Said {
    if let Some(state) = draft.status.state() {
        let because = match &draft.waits {
            Some(because) => because.clone(),
            None => Because::new(rollout::word(state), rollout::told(state)),
        };
        return Said::no(because);
    }
    if history::way_back_failed(draft) && !traffic::serves_champion(draft) {
        return Said::no(Because::new(
            Reason::RollbackFailed,
            "the last rollout was taken back, and the version before does not answer either; rules answer. Look at the logs of both",
        ));
    }
    if let Some(rejection) = &wished.rejected {
        return Said::no(Because::new(
            Reason::Rejected,
            taken_back(
                view,
                wished,
                rejection.reason.as_deref(),
                rejection.message.as_deref(),
            ),
        ));
    }
    if let Some(because) = &draft.waits {
        return Said::no(because.clone());
    }
    if draft.status.champion.is_some() && wish::is_served(draft, wished) {
        return Said::yes(
            Reason::Observed,
            format!("LayaModel {} serves as wished", wished.model),
        );
    }
    if view.spec.external.is_some() {
        return Said::no(Because::new(
            Reason::Preparing,
            "spec.modelRef waits until spec.external is removed",
        ));
    }
    Said::no(Because::new(
        Reason::Preparing,
        rollout::told(RolloutState::Preparing),
    ))
}

fn taken_back(
    view: &View<'_>,
    wished: &Wished<'_>,
    reason: Option<&str>,
    message: Option<&str>,
) -> String {
    let retry = advice::command(view.object, "rollout retry");
    let model = &wished.model;
    let reason = reason.unwrap_or_default();
    let detail = message.map_or_else(String::new, |message| format!(" ({message})"));
    format!(
        "spec names model {model}, which was taken back: {reason}{detail}; change `modelRef` or run `{retry}`"
    )
}

fn way_back(view: &View<'_>, draft: &Draft) -> Said {
    let Some(previous) = &draft.status.previous else {
        return Said::no(Because::new(
            Reason::NoPrevious,
            "there is no earlier version to go back to",
        ));
    };
    let model = previous.model.clone().unwrap_or_default();
    let known = view.checked.models.get(&model);
    let has_weights = known.is_some_and(|known| {
        known.digest == previous.digest && known.location.is_some() && !known.deleting
    });
    if !has_weights {
        return Said::no(Because::new(
            Reason::PreviousModelMissing,
            format!("the weights of LayaModel {model} are gone. Fetch it again, or roll forward"),
        ));
    }
    if view.checked.capabilities.images
        && matches!(
            image::state(view, previous),
            Some(ImageState::Absent | ImageState::Failed { .. })
        )
    {
        let name = previous.image.clone().unwrap_or_default();
        return Said::no(Because::new(
            Reason::PreviousImageMissing,
            format!("image {name} is gone. Make the registry reachable, or roll forward"),
        ));
    }
    Said::yes(
        Reason::Observed,
        format!("image and weights of LayaModel {model} are here"),
    )
}

fn stalled(view: &View<'_>, draft: &Draft, wished: &Wished<'_>) -> Option<Said> {
    let yes = |reason, message: String| Some(Said::yes(reason, message));
    if let Some(because) = external::itself(view) {
        return yes(because.reason, because.message);
    }
    if history::way_back_failed(draft)
        && draft.status.state().is_none()
        && !traffic::serves_champion(draft)
    {
        return yes(
            Reason::RollbackFailed,
            "the version to go back to does not answer; rules answer. Look at the logs of both versions".to_owned(),
        );
    }
    if draft.status.failed_in_place() {
        let message = draft.waits.as_ref().map(|because| because.message.clone());
        return yes(Reason::Rejected, message.unwrap_or_default());
    }
    if let Some(rejection) = &wished.rejected {
        let message = taken_back(
            view,
            wished,
            rejection.reason.as_deref(),
            rejection.message.as_deref(),
        );
        return yes(Reason::Rejected, message);
    }
    if wished.view.is_none() && view.spec.external.is_none() {
        let name = &wished.model;
        return yes(
            Reason::ReferenceNotFound,
            format!("LayaModel {name} is not there. Create it, or name another in spec.modelRef"),
        );
    }
    let taken = available::stranger(view).filter(|because| because.reason == Reason::NameTaken);
    // Of a container, else of a document.
    let document = draft
        .waits
        .as_ref()
        .filter(|because| because.reason == Reason::NameTaken && !view.checked.taken.is_empty());
    let taken = taken.or_else(|| document.cloned());
    taken.and_then(|because| yes(Reason::NameTaken, because.message))
}

/// Whether the object does its work: the formula of control-plane 3.
fn ready(
    view: &View<'_>,
    draft: &Draft,
    replicas: &Replicas<'_>,
    saying: &Saying,
    stalled: Option<&Said>,
) -> Said {
    if traffic::is_suspended(view) {
        return Said::no(available::reason(view, draft));
    }
    if let Some(invalid) = external::itself(view) {
        return Said::no(invalid);
    }
    let prefers = view.spec.device_policy == DevicePolicy::Prefer;
    let kinds = [
        ConditionType::Available,
        ConditionType::ContractMatched,
        ConditionType::Probed,
        ConditionType::DeviceMatched,
    ];
    let mut open = None;
    for kind in kinds {
        let is_device = kind == ConditionType::DeviceMatched;
        match saying.get(kind) {
            Some(said) if said.status == ConditionStatus::False && !(is_device && prefers) => {
                let known = draft.status.champion.is_some() || view.spec.external.is_some();
                // Without anything that serves, what only somebody can change is the reason.
                let first = stalled.filter(|_| !known).unwrap_or(said);
                return Said::no(first.because.clone());
            }
            Some(said) if said.status == ConditionStatus::Unknown && !is_device => {
                open = open.or(Some(said.because.clone()));
            }
            _ => {}
        }
    }
    if let Some(because) = open {
        return Said::open(Because::new(Reason::Waiting, because.message));
    }
    if view.spec.external.is_some() {
        return Said::yes(Reason::Reconciled, "the server of spec.external serves");
    }
    let wanted = usize::try_from(view.cut.replicas).unwrap_or(0);
    let answering = replicas.maybe_ready();
    if answering < wanted {
        return Said::no(Because::new(
            Reason::Waiting,
            format!("{answering} of {wanted} replicas answer; the others are on their way"),
        ));
    }
    let model = draft
        .status
        .champion
        .as_ref()
        .and_then(|it| it.model.clone());
    Said::yes(
        Reason::Reconciled,
        format!("LayaModel {} serves", model.unwrap_or_default()),
    )
}

/// Work that goes on; absent where there is none, or where only somebody can help.
fn reconciling(
    view: &View<'_>,
    draft: &Draft,
    ready: &Said,
    stalled: Option<&Said>,
    saying: &Saying,
) -> Option<Said> {
    if stalled.is_some() {
        return None;
    }
    if traffic::is_suspended(view) {
        let up = view.observed.is_some_and(|observed| {
            let servers = observed.servers.iter();
            servers
                .clone()
                .any(|server| view.replicas(&server.revision).any_up())
        });
        return up.then(|| Said::yes(Reason::Progressing, "servers are being stopped"));
    }
    if view.spec.external.is_some() {
        return (!ready.holds())
            .then(|| Said::yes(Reason::Progressing, ready.because.message.clone()));
    }
    let rolled_out = saying.get(ConditionType::RolledOut)?;
    if !rolled_out.holds() {
        return Some(Said::yes(
            Reason::Progressing,
            rolled_out.because.message.clone(),
        ));
    }
    if !ready.holds() {
        return Some(Said::yes(
            Reason::Progressing,
            ready.because.message.clone(),
        ));
    }
    let wanted = usize::try_from(view.cut.replicas).unwrap_or(0);
    let replicas = view.replicas_of(draft.status.champion.as_ref());
    (replicas.alive().count() != wanted)
        .then(|| Said::yes(Reason::Progressing, "replicas are being started or stopped"))
}

/// Where it stands, in a word for people.
pub(super) fn phase(view: &View<'_>, draft: &Draft, saying: &Saying) -> &'static str {
    let ready = saying.get(ConditionType::Ready);
    if traffic::is_suspended(view) {
        return "Suspended";
    }
    if view.spec.external.is_some() {
        return "External";
    }
    if view.observed.is_none() {
        return "Unknown";
    }
    match draft.status.state() {
        Some(RolloutState::RollingBack) => return "RollingBack",
        Some(_) if draft.status.champion.is_some() => return "RollingOut",
        _ => {}
    }
    if revision(draft.status.champion.as_ref()).is_none() {
        return "FirstStart";
    }
    match ready {
        Some(ready) if ready.holds() => "Steady",
        Some(ready) if ready.because.reason == Reason::CrashLoop => "Crashing",
        _ => "Repairing",
    }
}

/// Device and probe of the champion as they are shown; renewed only when a condition about them changes.
pub(super) fn renews(old: Option<ConditionStatus>, said: Option<&Said>) -> bool {
    said.is_some_and(|said| {
        said.status != ConditionStatus::Unknown && old.is_some_and(|old| old != said.status)
    })
}

/// The version whose numbers are shown.
pub(super) fn count_ready(view: &View<'_>, version: &mut Option<Version>) {
    let Some(version) = version else {
        return;
    };
    let ready = view.replicas_of(Some(version)).maybe_ready();
    version.ready_replicas = i32::try_from(ready).ok();
}
