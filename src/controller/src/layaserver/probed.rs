//! What asking the replicas of a version has shown (control-plane 12), as one finding each for contract, answers and device.

use api::kinds::laya_server::{DeviceSeen, ProbeLevel, ProbeSeen, Version};
use api::kinds::shared::{Device, DevicePolicy};
use api::reason::Reason;

use super::device::{self, Asked, Before, Finding, Granted};
use super::replicas::{Replica, Replicas};
use super::view::{Because, Draft, View};
use crate::probe::ReplicaProbe;

/// Failures in a row, ≥ 10 s apart, that count.
pub(super) const FAILURES: u32 = 3;

/// What was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// As it should be.
    Right(Because),
    /// Not as it should be.
    Wrong(Because),
    /// Not known (yet).
    Open(Because),
}

/// Reasons of condition `ContractMatched`; other failures of questions are those of `Probed`.
const fn is_about_contract(reason: Reason) -> bool {
    matches!(reason, Reason::ContractMismatch | Reason::QuestionsUnknown)
}

/// A server that is sure to be another one than its revision: other weights, other questions.
pub(super) fn wrong_identity(version: &Version, probe: &ReplicaProbe) -> Option<Because> {
    let differs = |wanted: &Option<String>, said: &Option<String>| match (wanted, said) {
        (Some(wanted), Some(said)) => wanted != said,
        _ => false,
    };
    if differs(&version.contract, &probe.contract) {
        let said = probe.contract.as_deref().unwrap_or_default();
        let wanted = version.contract.as_deref().unwrap_or_default();
        return Some(Because::new(
            Reason::ContractMismatch,
            format!(
                "the server names contract {said} and its model {wanted}. Serve a checkpoint of this contract"
            ),
        ));
    }
    if differs(&version.digest, &probe.digest) {
        let said = probe.digest.as_deref().unwrap_or_default();
        let wanted = version.digest.as_deref().unwrap_or_default();
        return Some(Because::new(
            Reason::WrongAnswers,
            format!(
                "the server has loaded checkpoint {said} instead of {wanted}. Look at its logs"
            ),
        ));
    }
    None
}

/// Why the answers of a replica are not to be trusted: a conclusive failure is enough for a candidate, a server in use gets
/// three.
fn failed(version: &Version, probe: &ReplicaProbe, patience: Patience) -> Option<Because> {
    if let Some(because) = wrong_identity(version, probe) {
        return Some(because);
    }
    let failed = probe.questions.failed.as_ref()?;
    let counts = match patience {
        Patience::None => failed.conclusive || probe.questions.failures >= FAILURES,
        Patience::Three => probe.questions.failures >= FAILURES,
    };
    counts.then(|| Because::new(failed.reason, failed.message.clone()))
}

/// How much is forgiven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Nothing: it has no traffic yet.
    None,
    /// Two failures.
    Three,
}

/// Whether a replica answers wrongly and must get no traffic.
pub(super) fn lies(version: &Version, replica: &Replica<'_>) -> Option<Because> {
    let probe = replica.probe?;
    let because = failed(version, probe, Patience::Three)?;
    let conclusive = probe
        .questions
        .failed
        .as_ref()
        .is_none_or(|failed| failed.conclusive);
    conclusive.then_some(because)
}

/// The first reason not to trust a version: of its contract, then its answers.
pub(super) fn wrong(
    version: &Version,
    replicas: &Replicas<'_>,
    patience: Patience,
) -> Option<Because> {
    let running = replicas.iter().filter(|replica| replica.runs());
    let mut wrong = running
        .filter_map(|replica| failed(version, replica.probe?, patience))
        .collect::<Vec<_>>();
    wrong.sort_by_key(|because| !is_about_contract(because.reason));
    wrong.into_iter().next()
}

/// `ContractMatched` and `Probed` of a version in use.
pub(super) fn answers(version: &Version, replicas: &Replicas<'_>) -> (Found, Found) {
    let running: Vec<_> = replicas.iter().filter(|replica| replica.runs()).collect();
    let failures: Vec<_> = running
        .iter()
        .filter_map(|replica| failed(version, replica.probe?, Patience::Three))
        .collect();
    let of = |contract: bool| {
        failures
            .iter()
            .find(|because| is_about_contract(because.reason) == contract)
            .cloned()
    };
    let asked = running
        .iter()
        .filter_map(|replica| replica.probe)
        .any(|probe| probe.questions.level.is_some());
    let passed = version
        .probe
        .as_ref()
        .is_some_and(|probe| probe.passed_at.is_some());
    let open = || {
        Found::Open(Because::new(
            Reason::Waiting,
            "no probe question was answered yet; the first round is on its way",
        ))
    };
    let contract = match of(true) {
        Some(because) => Found::Wrong(because),
        None if asked || passed => Found::Right(contract_word(version, &running)),
        None => open(),
    };
    let probed = match of(false) {
        Some(because) => Found::Wrong(because),
        None if passed || answered(&running) => Found::Right(Because::new(
            Reason::Observed,
            "the last probe questions were answered right",
        )),
        None => open(),
    };
    (contract, probed)
}

fn answered(running: &[&Replica<'_>]) -> bool {
    let mut probes = running.iter().filter_map(|replica| replica.probe);
    probes.any(|probe| probe.questions.passed_at.is_some())
}

fn contract_word(version: &Version, running: &[&Replica<'_>]) -> Because {
    let mut named = running
        .iter()
        .filter_map(|replica| replica.probe?.contract.as_deref());
    match named.next().or(version.contract.as_deref()) {
        Some(contract) => Because::new(
            Reason::Observed,
            format!("every replica answers the questions of contract {contract}"),
        ),
        None => Because::new(
            Reason::ContractUnverified,
            "every replica answers the questions, and no contract is named. Set it with relayctl model import",
        ),
    }
}

/// What the device of a version comes to: the worst of its replicas.
pub(super) fn device(
    view: &View<'_>,
    draft: &Draft,
    version: &Version,
    replicas: &Replicas<'_>,
) -> Found {
    let asked = asked(view, version);
    let before = before(draft, version);
    let mut open = None;
    let mut right = None;
    for replica in replicas.iter() {
        let granted = granted(replica);
        let probe = replica.probe.filter(|_| replica.is_ready());
        let said = match (probe, granted) {
            (Some(probe), _) => probe.device.clone(),
            (None, Granted::No) => Default::default(),
            (None, Granted::Maybe) => continue,
        };
        match device::judge(asked, &said, granted, before) {
            Finding::Mismatched(because) => return Found::Wrong(because),
            Finding::NotReported(because) => open = Some(because),
            Finding::Matched(because) => right = Some(because),
        }
    }
    match (open, right) {
        (Some(because), _) => Found::Open(because),
        (None, Some(because)) => Found::Right(because),
        (None, None) => remembered(asked, version),
    }
}

/// What was found before this process asked.
fn remembered(asked: Asked, version: &Version) -> Found {
    let actual = version
        .device
        .as_ref()
        .and_then(|device| device.actual.as_deref());
    let said = crate::probe::DeviceSaid {
        claimed: actual.map(str::to_owned),
        ..Default::default()
    };
    match device::judge(asked, &said, Granted::Maybe, Before::Never) {
        Finding::Matched(because) => Found::Right(because),
        Finding::Mismatched(because) => Found::Wrong(because),
        Finding::NotReported(because) => Found::Open(because),
    }
}

fn asked(view: &View<'_>, version: &Version) -> Asked {
    let inputs = super::facts::revision(Some(version))
        .and_then(|revision| view.checked.documents.get(revision));
    Asked {
        device: inputs.map_or(view.cut.device, |inputs| inputs.device),
        max_p50_millis: view.spec.device_check.max_p50_millis,
    }
}

/// Whether another device than the asked one is a fault of this version.
pub(super) fn requires_device(view: &View<'_>, version: &Version) -> bool {
    let inputs = super::facts::revision(Some(version))
        .and_then(|revision| view.checked.documents.get(revision));
    let (device, policy) = inputs.map_or((view.cut.device, view.spec.device_policy), |inputs| {
        (inputs.device, inputs.device_policy)
    });
    device != Device::Auto && policy == DevicePolicy::Require
}

fn before(draft: &Draft, version: &Version) -> Before {
    let was = version
        .device
        .as_ref()
        .is_some_and(|device| device.actual.as_deref() == Some("cuda"));
    let is_champion = draft.status.champion.as_ref() == Some(version);
    let lost =
        draft.status.restarts.as_ref().is_some_and(|restarts| {
            restarts.last_reason.as_deref() == Some(Reason::GpuLost.as_str())
        });
    if was || (is_champion && lost) {
        Before::OnGpu
    } else {
        Before::Never
    }
}

fn granted(replica: &Replica<'_>) -> Granted {
    let refused =
        replica.seen.waiting.as_ref().is_some_and(|waiting| {
            matches!(waiting.reason, Reason::GpuUnavailable | Reason::GpuLost)
        });
    let driver = !replica.runs() && replica.seen.log_tail.contains("Xid");
    if refused || driver {
        Granted::No
    } else {
        Granted::Maybe
    }
}

/// What Probing found, for the version's record.
pub(super) fn record(view: &View<'_>, version: &mut Version, replicas: &Replicas<'_>) {
    let probes = || replicas.iter().filter_map(|replica| replica.probe);
    let claimed = probes().find_map(|probe| probe.device.claimed.clone());
    let p50 = probes().filter_map(|probe| probe.device.p50_millis).max();
    version.device = Some(DeviceSeen {
        wanted: Some(device::word(asked(view, version).device).to_owned()),
        actual: claimed.or_else(|| version.device.as_ref()?.actual.clone()),
        p50_millis: p50.and_then(|p50| i32::try_from(p50).ok()),
    });
    let level = probes().filter_map(|probe| probe.questions.level);
    let weakest = level.max_by_key(|level| *level == ProbeLevel::Shape);
    version.probe = Some(ProbeSeen {
        // A round that only just begins does not say it again.
        level: weakest.or_else(|| version.probe.as_ref()?.level),
        passed_at: Some(view.now()),
    });
}
