//! What lies in the volume of all models, and what room it has, as a look at it or a task in it tells.

use serde::Deserialize;

/// What lies in the volume: the RESULT of `laya prune --list`, or of a prune (control-plane 13).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelsView {
    /// Versions, by digest.
    pub published: Vec<StoredModel>,
    /// Versions that were left out of a list that would be too long.
    #[serde(default)]
    pub omitted: u64,
    /// Names that the layout does not know; left alone.
    pub unknown: Vec<String>,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Bytes of the file system.
    pub total_bytes: u64,
}

/// A version in the volume.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredModel {
    /// Its digest.
    pub digest: String,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// Whether it is marked so that no prune takes it.
    pub keep: bool,
    /// What is wrong with it, as far as manifest and sizes tell.
    #[serde(default)]
    pub damage: Option<String>,
}

/// Room in the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelsRoom {
    /// Its name on the engine.
    pub volume: String,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Bytes of the file system.
    pub total_bytes: u64,
}

#[cfg(any(feature = "docker", feature = "embedded"))]
impl From<volumes::View> for ModelsView {
    fn from(view: volumes::View) -> Self {
        let volumes::View {
            published,
            unknown,
            free_bytes,
            total_bytes,
        } = view;
        let stored = |version: volumes::Published| StoredModel {
            digest: version.digest.to_string(),
            size_bytes: version.size_bytes,
            keep: version.keep,
            damage: version.damage,
        };
        Self {
            published: published.into_iter().map(stored).collect(),
            omitted: 0,
            unknown,
            free_bytes,
            total_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_task_says_is_read() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let result = json!({"ok": true, "deleted": [], "kept": [], "freedBytes": 0, "unknown": ["local-1"],
            "published": [{"digest": digest, "sizeBytes": 7, "keep": true, "damage": null}],
            "freeBytes": 1, "totalBytes": 2});
        let view: ModelsView = serde_json::from_value(result).unwrap();
        let stored = StoredModel {
            digest,
            size_bytes: 7,
            keep: true,
            damage: None,
        };
        assert_eq!(view.published, [stored]);
        assert_eq!((view.omitted, view.free_bytes, view.total_bytes), (0, 1, 2));
        // A task of an older release says less, which is no view.
        let older = json!({"ok": true, "deleted": [], "kept": [], "freedBytes": 0, "unknown": []});
        assert!(serde_json::from_value::<ModelsView>(older).is_err());
    }
}
