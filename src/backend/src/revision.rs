//! What makes a revision of a server, and its name (control-plane 3.1).

use api::kinds::laya_server::{ServerApi, Serving};
use api::kinds::shared::{Device, DevicePolicy, Gpu, Pod, Resources};
use serde::{Deserialize, Serialize};

/// Raised when the rendering of a server changes (a golden of rendered objects), so that a new controller goes through a
/// rollout too.
pub const RENDER_VERSION: u32 = 1;

/// Everything that makes a revision. Stored as a document, and on the label `relay.dev/inputs` with the model's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevisionInputs {
    /// Uid of the LayaServer.
    pub owner_uid: String,
    /// Checkpoint digest, `sha256:<64 hex>`.
    pub digest: String,
    /// Contract digest, where the model names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// Image as the spec or the controller names it.
    pub image: String,
    /// What the image speaks.
    pub server_api: ServerApi,
    /// Device asked for.
    pub device: Device,
    /// What happens without it.
    pub device_policy: DevicePolicy,
    /// GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// CPU and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// How requests are taken.
    pub serving: Serving,
    /// Where pods run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Pod>,
    /// [`RENDER_VERSION`] of the program that made it.
    pub render_version: u32,
}

impl RevisionInputs {
    /// As canonical JSON: sorted keys, no spaces.
    #[must_use]
    pub fn canonical(&self) -> String {
        let tree = serde_json::to_value(self).unwrap_or_default();
        api::document::canonical(&tree)
    }

    /// The revision: first ten hex digits of SHA-256 over the canonical JSON.
    #[must_use]
    pub fn revision(&self) -> String {
        let digest = decision::contract::Digest::of(self.canonical().as_bytes()).to_string();
        digest
            .trim_start_matches("sha256:")
            .chars()
            .take(10)
            .collect()
    }

    /// The limit of memory that the spec names, in bytes.
    #[must_use]
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        let limits = self.resources.as_ref()?.limits.as_ref()?;
        limits
            .memory
            .as_ref()
            .and_then(|memory| quantity(&memory.0))
    }

    /// The limit of CPU that the spec names, in thousandths of a core.
    #[must_use]
    pub fn cpu_limit_millis(&self) -> Option<u64> {
        let limits = self.resources.as_ref()?.limits.as_ref()?;
        let cpu = limits.cpu.as_ref()?;
        quantity_scaled(&cpu.0, 1000)
    }
}

/// The whole value of a Quantity (control-plane 1.2), rounded down; `None` where it has no such form or does not fit.
#[must_use]
pub fn quantity(text: &str) -> Option<u64> {
    quantity_scaled(text, 1)
}

/// A Quantity in thousandths of its unit for `scale` 1000, in units for 1.
fn quantity_scaled(text: &str, scale: u128) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (factor, divisor): (u128, u128) = match suffix {
        "" => (1, 1),
        "m" => (1, 1000),
        "k" => (1000, 1),
        "Ki" => (1 << 10, 1),
        "M" => (1_000_000, 1),
        "Mi" => (1 << 20, 1),
        "G" => (1_000_000_000, 1),
        "Gi" => (1 << 30, 1),
        "T" => (1_000_000_000_000, 1),
        "Ti" => (1 << 40, 1),
        _ => return None,
    };
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let point = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let value = digits.checked_mul(factor)?.checked_mul(scale)?;
    u64::try_from(value / (divisor * point)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        let cases = [
            ("0", Some(0)),
            ("128", Some(128)),
            ("1.5Gi", Some(1_610_612_736)),
            ("2G", Some(2_000_000_000)),
            ("500m", Some(0)),
            ("3k", Some(3000)),
            ("999999999999Ti", None),
            ("x", None),
            ("1Pi", None),
        ];
        for (text, expected) in cases {
            assert_eq!(quantity(text), expected, "{text}");
        }
        assert_eq!(quantity_scaled("500m", 1000), Some(500));
        assert_eq!(quantity_scaled("1.5", 1000), Some(1500));
    }

    #[test]
    fn a_revision_changes_with_what_makes_it_and_with_nothing_else() {
        let inputs = RevisionInputs {
            owner_uid: "u".to_owned(),
            digest: format!("sha256:{}", "0".repeat(64)),
            contract: None,
            image: "laya@sha256:1".to_owned(),
            server_api: ServerApi::Relay,
            device: Device::Auto,
            device_policy: DevicePolicy::Require,
            gpu: None,
            resources: None,
            serving: Serving::default(),
            pod: None,
            render_version: RENDER_VERSION,
        };
        let revision = inputs.revision();
        assert_eq!(revision.len(), 10);
        let text = inputs.canonical();
        let read: RevisionInputs = serde_json::from_str(&text).unwrap();
        assert_eq!(read.revision(), revision);
        let more = RevisionInputs {
            serving: Serving {
                threads: 2,
                ..Serving::default()
            },
            ..inputs
        };
        assert_ne!(more.revision(), revision);
    }
}
