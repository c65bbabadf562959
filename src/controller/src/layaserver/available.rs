//! Why no replica of the champion answers (condition `Available`, and the reason of empty traffic).

use api::condition::ConditionType;
use api::kinds::laya_server::{RolloutState, Version};
use api::reason::Reason;
use backend::{ImageState, Stranger};

use super::advice;
use super::facts::Facts;
use super::replicas::{Replica, Replicas};
use super::restarts;
use super::revision;
use super::traffic;
use super::view::{Because, Draft, View};
use crate::probe::Readiness;

/// Why no replica of the champion answers, when none does.
pub(super) fn reason(view: &View<'_>, draft: &Draft) -> Because {
    if traffic::is_suspended(view) {
        return Because::new(
            Reason::Suspended,
            "the server is suspended; rules answer. Remove spec.suspend, or raise spec.replicas",
        );
    }
    let Some(champion) = &draft.status.champion else {
        return no_champion(draft);
    };
    if draft.status.is_gap() && draft.status.state() != Some(RolloutState::RollingBack) {
        return Because::new(
            Reason::Gap,
            "the old version has stopped and the new one starts; rules answer meanwhile",
        );
    }
    let replicas = view.replicas_of(Some(champion));
    crashing(view, draft, champion, &replicas)
        .or_else(|| blocked(view, champion, &replicas))
        .or_else(|| unknown(view, champion, &replicas))
        .or_else(|| image_missing(view, champion, &replicas))
        .unwrap_or_else(|| starting(&replicas))
}

/// Nothing was promoted yet. What stands in the way of the first version is the reason where it is one of this condition.
fn no_champion(draft: &Draft) -> Because {
    let waits = draft.waits.as_ref();
    let own = waits.filter(|because| {
        because
            .reason
            .conditions()
            .contains(&ConditionType::Available)
            && because.reason != Reason::Starting
    });
    if let Some(because) = own {
        return because.clone();
    }
    let message = match waits {
        Some(because) => format!("no version serves yet: {}", because.message),
        None => "no version serves yet; rules answer".to_owned(),
    };
    Because::new(Reason::NoChampion, message)
}

fn crashing(
    view: &View<'_>,
    draft: &Draft,
    champion: &Version,
    replicas: &Replicas<'_>,
) -> Option<Because> {
    let mut ended = replicas.iter().filter(|replica| !replica.runs());
    if let Some(replica) = ended.find(|replica| replica.seen.oom_killed) {
        let limit = replica.seen.memory_bytes >> 20;
        return Some(Because::new(
            Reason::OutOfMemory,
            format!(
                "a replica needed more memory than its limit of {limit} MiB. Raise spec.resources.limits.memory"
            ),
        ));
    }
    if !restarts::is_loop(view, draft) {
        return None;
    }
    let count = draft.status.restarts.as_ref()?.count.unwrap_or(0);
    let code = draft.status.restarts.as_ref()?.last_exit_code;
    let code = code.map_or_else(String::new, |code| {
        format!(", the last time with code {code}")
    });
    let model = champion.model.as_deref().unwrap_or_default();
    Some(Because::new(
        Reason::CrashLoop,
        format!(
            "replicas of {model} ended {count} times in five minutes{code}. Look at their logs with {}",
            advice::command(view.object, "logs")
        ),
    ))
}

/// What the engine itself says stands in the way of a start.
pub(super) fn blocked(
    view: &View<'_>,
    version: &Version,
    replicas: &Replicas<'_>,
) -> Option<Because> {
    let mut waiting = replicas
        .iter()
        .filter_map(|replica| replica.seen.waiting.as_ref());
    if let Some(waiting) = waiting.next() {
        return Some(Because::new(waiting.reason, waiting.message.clone()));
    }
    stranger_of(view, version).filter(|because| because.reason == Reason::PortInUse)
}

/// Somebody else has a name or a port that we need.
pub(super) fn stranger(view: &View<'_>) -> Option<Because> {
    view.observed?.strangers.first().map(told)
}

/// The same, as far as it stands in the way of this version.
pub(super) fn stranger_of(view: &View<'_>, version: &Version) -> Option<Because> {
    let mut strangers = view.observed?.strangers.iter();
    let revision = version.revision.as_deref().unwrap_or_default();
    strangers
        .find(|stranger| !is_replica_of_another(&stranger.name, revision))
        .map(told)
}

fn told(stranger: &Stranger) -> Because {
    Because::new(
        stranger.reason,
        format!(
            "{} belongs to {}, which is not ours and stays as it is. Rename or remove that",
            stranger.name, stranger.holder
        ),
    )
}

/// Whether this is the name of a replica (…-revision-number) of another revision.
fn is_replica_of_another(name: &str, revision: &str) -> bool {
    let mut parts = name.rsplit('-');
    let number = parts.next().unwrap_or_default();
    let named = parts.next().unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_revision = named.len() == 10 && named.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number && is_revision && named != revision
}

/// None of it runs, and what it is made from is not known whole any more.
fn unknown(view: &View<'_>, version: &Version, replicas: &Replicas<'_>) -> Option<Because> {
    if replicas.alive().next().is_some() {
        return None;
    }
    let missing = revision::server(view, version).err()?;
    Some(Because::new(
        Reason::Starting,
        format!("it cannot be started: {missing}"),
    ))
}

fn image_missing(view: &View<'_>, version: &Version, replicas: &Replicas<'_>) -> Option<Because> {
    if !replicas.is_empty() || !view.checked.capabilities.images {
        return None;
    }
    match super::image::state(view, version)? {
        ImageState::Failed {
            reason, message, ..
        } => Some(Because::new(*reason, message.clone())),
        _ => None,
    }
}

fn starting(replicas: &Replicas<'_>) -> Because {
    let said = replicas.iter().find_map(not_ready);
    let message = match said {
        Some(said) => format!("no replica answers yet: {said}"),
        None if replicas.is_empty() => "replicas are being started".to_owned(),
        None => "replicas are starting".to_owned(),
    };
    Because::new(Reason::Starting, message)
}

/// What a replica that runs says instead of being ready.
pub(super) fn not_ready(replica: &Replica<'_>) -> Option<String> {
    match &replica.probe?.readiness {
        Readiness::NotReady {
            reason, message, ..
        } => Some(format!("{reason}: {message}")),
        Readiness::Unreachable { message } => Some(message.clone()),
        Readiness::Ready { .. } | Readiness::Unknown => None,
    }
}
