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
    let Some(probe) = &view.seen.external else {
        return Err(not_asked(&address));
    };
    match verdict(&address, probe) {
        Ok(()) => Ok(target(probe.digest.clone(), probe.contract.clone())),
        Err(because) if is_unasked(probe) => known(view, &address).ok_or(because),
        Err(because) => Err(because),
    }
}

fn is_unasked(probe: &ReplicaProbe) -> bool {
    probe.readiness == Readiness::Unknown
}

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

/// Whether its answers are right.
fn verdict(address: &str, probe: &ReplicaProbe) -> Result<(), Because> {
    match &probe.readiness {
        Readiness::Unknown => return Err(not_asked(address)),
        Readiness::Unreachable { message } | Readiness::NotReady { message, .. } => {
            return Err(Because::new(
                Reason::Starting,
                format!(
                    "the server at {address} does not serve: {message}. Start it, or remove spec.external"
                ),
            ));
        }
        Readiness::Ready { .. } => {}
    }
    if let Some(failed) = &probe.questions.failed
        && (failed.conclusive || probe.questions.failures >= FAILURES)
    {
        let message = format!(
            "the server at {address}: {}. Stop it, or remove spec.external",
            failed.message
        );
        return Err(Because::new(failed.reason, message));
    }
    if probe.questions.passed_at.is_none() {
        return Err(not_asked(address));
    }
    Ok(())
}
