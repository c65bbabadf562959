//! Device truth (control-plane 12): wanted, claimed and measured are compared. What is granted shows in the engine's own
//! reasons ([`Granted`]).

use api::kinds::shared::Device;
use api::reason::Reason;

use super::view::Because;
use crate::probe::DeviceSaid;

/// What is asked of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) device: Device,
    /// Median latency above which a claimed GPU is not believed; 0 = never measured.
    pub(super) max_p50_millis: i32,
}

/// What is known of a GPU beside what the server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Granted {
    /// Nothing speaks against it.
    Maybe,
    /// The engine could not give one, or its driver failed.
    No,
}

/// Whether a GPU has served this version before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    OnGpu,
    Never,
}

/// What the comparison comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// As asked; the word is the device.
    Matched(Because),
    /// Another one, or one that is not believed.
    Mismatched(Because),
    /// Nobody can say.
    NotReported(Because),
}

/// Compares what was asked with what a server says and does.
pub(super) fn judge(asked: Asked, said: &DeviceSaid, granted: Granted, before: Before) -> Finding {
    let claimed = said.claimed.as_deref();
    if asked.device != Device::Auto && granted == Granted::No {
        return no_gpu(before);
    }
    match (asked.device, claimed) {
        (Device::Auto, Some(claimed)) => matched(claimed, "it serves where it can"),
        (Device::Cpu, Some("cpu")) => matched("cpu", "as asked"),
        (Device::Cuda, Some("cuda")) if said.fallbacks_grew => fell_back(said),
        (Device::Cuda, None) if said.fallbacks_grew => fell_back(said),
        (Device::Cuda, Some("cuda")) => {
            too_slow(asked, said).map_or_else(|| matched("cuda", "as asked"), Finding::Mismatched)
        }
        (_, None) => too_slow(asked, said).map_or_else(not_reported, Finding::Mismatched),
        (Device::Cuda, Some(_)) if before == Before::OnGpu && said.fallbacks == 0 => no_gpu(before),
        (Device::Cuda, Some(_)) if said.fallbacks > 0 => fell_back(said),
        (wanted, Some(claimed)) => other(wanted, claimed, said),
    }
}

fn matched(device: &str, how: &str) -> Finding {
    let reason = if device == "cuda" {
        Reason::Cuda
    } else {
        Reason::Cpu
    };
    Finding::Matched(Because::new(reason, format!("served by {device}, {how}")))
}

fn not_reported() -> Finding {
    Finding::NotReported(Because::new(
        Reason::NotReported,
        "the server names no device; only its speed counts",
    ))
}

fn no_gpu(before: Before) -> Finding {
    Finding::Mismatched(match before {
        Before::OnGpu => Because::new(
            Reason::GpuLost,
            "the GPU went away in use. Look at the machine and its driver",
        ),
        Before::Never => Because::new(
            Reason::GpuUnavailable,
            "no GPU can be used. Install the driver, or set device: Cpu",
        ),
    })
}

fn fell_back(said: &DeviceSaid) -> Finding {
    let why = said.last_reason.as_deref().unwrap_or("no reason given");
    Finding::Mismatched(Because::new(
        Reason::CpuFallback,
        format!(
            "the server went to the CPU by itself: {why}. Look at its logs for the error of the GPU"
        ),
    ))
}

fn other(wanted: Device, claimed: &str, said: &DeviceSaid) -> Finding {
    let wanted = word(wanted);
    let why = said
        .last_reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {reason}"));
    let slow = said
        .p50_millis
        .map_or_else(String::new, |p50| format!(" (one question takes {p50} ms)"));
    Finding::Mismatched(Because::new(
        Reason::DeviceMismatch,
        format!(
            "{wanted} is asked for and {claimed} serves{slow}{why}. Make the device available, or set devicePolicy: Prefer"
        ),
    ))
}

/// A GPU that is slower than one would be; whatever is claimed.
fn too_slow(asked: Asked, said: &DeviceSaid) -> Option<Because> {
    let limit = u32::try_from(asked.max_p50_millis).unwrap_or(0);
    let measured = said.p50_millis?;
    let slow = asked.device == Device::Cuda && limit > 0 && measured > limit;
    slow.then(|| {
        Because::new(
            Reason::DeviceSuspect,
            format!(
                "one question takes {measured} ms, a GPU is believed up to {limit} ms. Look at the GPU, or raise spec.deviceCheck.maxP50Millis"
            ),
        )
    })
}

/// A device as statuses name it.
pub(super) const fn word(device: Device) -> &'static str {
    match device {
        Device::Auto => "auto",
        Device::Cpu => "cpu",
        Device::Cuda => "cuda",
    }
}
