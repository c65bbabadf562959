//! A Laya server that is not ours (`spec.external`): it is asked and gets traffic while its answers are right; nothing about
//! it is ever changed.

use api::kinds::laya_server::{Target, TargetRole};
use api::reason::Reason;

use super::facts::EXTERNAL;
use super::probed::FAILURES;
use super::view::{Because, View};
use crate::probe::{Readiness, ReplicaProbe};

/// Where it gets traffic, or why it does not.
pub(super) fn target(view: &View<'_>) -> Result<Target, Because> {
    let address = view.spec.external.as_ref().map(|external| &external.url);
    let address = address.map(|url| url.trim_end_matches('/').to_owned());
    let address = address.unwrap_or_default();
    let target = |digest, contract| Target {
        revision: Some(EXTERNAL.to_owned()),
        digest,
        contract,
        urls: vec![address.clone()],
        weight: Some(100),
        role: Some(TargetRole::Champion),
    };
    if let Some(because) = itself(view) {
        return Err(because);
    }
    let Some(probe) = &view.seen.external else {
        return Err(not_asked(&address));
    };
    if let Some(because) = wrong(&address, probe) {
        return Err(because);
    }
    if probe.readiness == Readiness::Unknown {
        return known(view, &address).ok_or_else(|| not_answered(&address, probe));
    }
    if probe.questions.passed_at.is_none() {
        return Err(not_answered(&address, probe));
    }
    Ok(target(probe.digest.clone(), probe.contract.clone()))
}

/// The router would ask itself.
pub(super) fn itself(view: &View<'_>) -> Option<Because> {
    let own = view.checked.own_address?;
    let url = view.spec.external.as_ref().map_or("", |it| it.url.as_str());
    Some(Because::new(
        Reason::InvalidSpec,
        format!(
            "spec.external.url: {url} is {own}, where relayd itself listens, so the router would ask itself. Name the Laya server that is meant, or remove spec.external"
        ),
    ))
}

/// What a server without `/ready` is told of, where that is not what it was said to be (control-plane 3.2).
pub(super) const WITHOUT_READY: &str =
    "it has no /ready, so it counts as ready while it answers probe questions";

/// What it got before this process began to ask.
fn known(view: &View<'_>, address: &str) -> Option<Target> {
    let traffic = view.object.status.as_ref()?.traffic.as_ref()?;
    let mut targets = traffic.targets.iter();
    targets
        .find(|target| {
            target.revision.as_deref() == Some(EXTERNAL)
                && target.urls.iter().any(|url| url == address)
        })
        .cloned()
}

fn not_asked(address: &str) -> Because {
    Because::new(
        Reason::Starting,
        format!("the server at {address} was not asked yet"),
    )
}

/// It was asked, and no round of questions has come to its end.
fn not_answered(address: &str, probe: &ReplicaProbe) -> Because {
    match &probe.questions.failed {
        Some(failed) => Because::new(
            Reason::Starting,
            format!(
                "the server at {address} has not answered its probe questions yet: {}",
                failed.message
            ),
        ),
        None if probe.plain => Because::new(
            Reason::Starting,
            format!(
                "the server at {address} has not answered its probe questions yet; {WITHOUT_READY}"
            ),
        ),
        None if probe.readiness == Readiness::Unknown => not_asked(address),
        None => Because::new(
            Reason::Starting,
            format!("the server at {address} has not answered its probe questions yet"),
        ),
    }
}

/// Why it gets no traffic, as far as that is known for sure.
fn wrong(address: &str, probe: &ReplicaProbe) -> Option<Because> {
    let failed = probe.questions.failed.as_ref().filter(|failed| {
        // What nobody gave us the wording of is never asked.
        let unknown = failed.reason == Reason::QuestionsUnknown;
        failed.conclusive || unknown || probe.questions.failures >= FAILURES
    });
    let message = match &probe.readiness {
        Readiness::Unreachable { message } => message,
        // Without `/ready` it is its answers that say so, and those have a word of their own.
        Readiness::NotReady { message, .. } if failed.is_none() || !probe.plain => message,
        Readiness::NotReady { .. } | Readiness::Ready { .. } | Readiness::Unknown => {
            let failed = failed?;
            let message = format!(
                "the server at {address}: {}. Stop it, or remove spec.external",
                failed.message
            );
            return Some(Because::new(failed.reason, message));
        }
    };
    Some(Because::new(
        Reason::Starting,
        format!(
            "the server at {address} does not serve: {message}. Start it, or remove spec.external"
        ),
    ))
}
