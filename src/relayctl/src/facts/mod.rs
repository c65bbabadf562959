//! What objects of the control plane say, read from their trees: a newer release may say more, and less is no error.

mod model;
mod owners;
mod server;

use jiff::Timestamp;
use serde_json::Value;

pub(crate) use self::model::Model;
pub(crate) use self::owners::foreign_owners;
pub(crate) use self::server::{Laya, Pause, Rollout, Version};

/// A text that is not empty.
pub(crate) fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

pub(crate) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// Name of an object.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Whether an object is on its way out.
pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The first twelve hex digits of a digest.
pub(crate) fn short(digest: &str) -> &str {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    hex.get(..12).unwrap_or(hex)
}

/// Bytes for people, in powers of ten, as disks and downloads are sold: `678 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 4] = [
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("kB", 1_000),
    ];
    for (unit, size) in UNITS {
        if count >= size {
            let tenths = count / (size / 10);
            return match tenths {
                0..100 => format!("{}.{} {unit}", tenths / 10, tenths % 10),
                _ => format!("{} {unit}", (count + size / 2) / size),
            };
        }
    }
    format!("{count} B")
}

/// A share as percent, without a tail of zeros: `0.941` is `94.1 %`, `0.01` is `1 %`.
pub(crate) fn percent(ratio: f64, decimals: usize) -> String {
    format!("{:.decimals$} %", ratio * 100.0)
}

/// A limit in percent as short as it is exact.
pub(crate) fn limit_percent(ratio: f64) -> String {
    let text = format!("{:.4}", ratio * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares_are_for_people() {
        for (count, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_500, "1.5 kB"),
            (678_202_866, "678 MB"),
            (2_250_000_000, "2.2 GB"),
            (15_000_000_000, "15 GB"),
        ] {
            assert_eq!(bytes(count), expected, "{count}");
        }
        assert_eq!(percent(0.9412, 1), "94.1 %");
        assert_eq!(percent(0.0, 1), "0.0 %");
        assert_eq!(limit_percent(0.01), "1 %");
        assert_eq!(limit_percent(0.0125), "1.25 %");
        assert_eq!(short("sha256:d5a13ee24047ffff"), "d5a13ee24047");
        assert_eq!(short("x"), "x");
    }
}
