//! `relay-manifest.json` and the checkpoint digest (control-plane 2, 11): SHA-256 of the canonical list of files, the
//! compact JSON array of `{"path","sha256","size"}` sorted by the bytes of the path.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::folder::hex;

/// Largest manifest file, in bytes.
pub const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// One file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Path inside the folder, with `/`.
    pub path: String,
    /// 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Length in bytes.
    pub size: u64,
}

/// The contract a checkpoint was trained for (routing 1.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractRef {
    /// Contract digest, `sha256:<hex>`.
    pub digest: String,
    /// Shape digest, `sha256:<hex>`.
    pub shape: String,
}

/// What a probe's question must answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeAnswer {
    /// The answer's label: of a choice, `true` or `false`, or the most likely level.
    pub label: String,
    /// Its probability, ± 0.02.
    pub probability: f64,
}

/// One recorded probe: a state and the answers of the checkpoint's own questions (control-plane 12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Any JSON state.
    pub state: serde_json::Value,
    /// Question id → answer.
    pub answers: BTreeMap<String, ProbeAnswer>,
}

/// `relay-manifest.json`. Fields that readers do not need (`parents`, `recipe`, …) are kept as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Every file but the manifest.
    pub files: Vec<FileEntry>,
    /// Checkpoint digest of `files`.
    pub digest: String,
    /// The contract, if the checkpoint names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<ContractRef>,
    /// At most 8 recorded probes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// Everything else.
    #[serde(flatten)]
    pub more: serde_json::Map<String, serde_json::Value>,
}

/// Most files of a manifest.
const MAX_FILES: usize = 256;
/// Most probes of a manifest.
const MAX_PROBES: usize = 8;

impl Manifest {
    /// Reads and checks a manifest: paths that stay inside, no path twice, digest equal to that of the list.
    ///
    /// # Errors
    /// One sentence about what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        super::folder::table(bytes)?;
        let manifest: Self = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if manifest.files.is_empty() || manifest.files.len() > MAX_FILES {
            return Err(format!(
                "{} files, expected 1 to {MAX_FILES}",
                manifest.files.len()
            ));
        }
        if manifest.probes.len() > MAX_PROBES {
            return Err(format!(
                "{} probes, limit {MAX_PROBES}",
                manifest.probes.len()
            ));
        }
        let mut seen = std::collections::BTreeSet::new();
        for file in &manifest.files {
            if !is_inner_path(&file.path) {
                return Err(format!(
                    "path '{}' is not allowed",
                    file.path.escape_default()
                ));
            }
            if !seen.insert(file.path.as_str()) {
                return Err(format!("path '{}' is listed twice", file.path));
            }
            if file.sha256.len() != 64
                || !file
                    .sha256
                    .bytes()
                    .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            {
                return Err(format!(
                    "sha256 of '{}' is no 64 lower-case hexadecimal digits",
                    file.path
                ));
            }
        }
        let digest = checkpoint_digest(&manifest.files);
        if manifest.digest != digest {
            return Err(format!(
                "its digest is {}, its files make {digest}",
                manifest.digest.escape_default()
            ));
        }
        Ok(manifest)
    }

    /// The entry of a path.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&FileEntry> {
        self.files.iter().find(|f| f.path == path)
    }
}

/// The checkpoint digest, `sha256:<hex>`, of a list of files in any order.
#[must_use]
pub fn checkpoint_digest(files: &[FileEntry]) -> String {
    let mut files: Vec<&FileEntry> = files.iter().collect();
    files.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
    // The derive keeps the order of the fields, and paths are written with JSON's escapes.
    let text = serde_json::to_string(&files).unwrap_or_default();
    format!("sha256:{}", hex(&Sha256::digest(text.as_bytes())))
}

/// Whether a path names a file inside the folder: at most 255 characters, up to eight parts, no part that begins with a
/// dot, a dash or that could climb (control-plane 2).
#[must_use]
pub fn is_inner_path(path: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
    };
    path.len() <= 255 && path.split('/').count() <= 8 && path.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, byte: char, size: u64) -> FileEntry {
        FileEntry {
            path: path.to_owned(),
            sha256: byte.to_string().repeat(64),
            size,
        }
    }

    #[test]
    fn the_digest_is_that_of_the_sorted_compact_list() {
        let files = [entry("b", 'b', 2), entry("B/c", 'a', 1)];
        let text = format!(
            r#"[{{"path":"B/c","sha256":"{}","size":1}},{{"path":"b","sha256":"{}","size":2}}]"#,
            "a".repeat(64),
            "b".repeat(64)
        );
        assert_eq!(
            checkpoint_digest(&files),
            format!("sha256:{}", hex(&Sha256::digest(text)))
        );
    }

    #[test]
    fn a_manifest_that_does_not_hold_together_is_refused() {
        let files = vec![entry("encoder/config.json", 'a', 1)];
        let good = Manifest {
            digest: checkpoint_digest(&files),
            files,
            contract: None,
            probes: vec![],
            more: serde_json::Map::new(),
        };
        let parse = |m: &Manifest| Manifest::parse(&serde_json::to_vec(m).unwrap());
        assert_eq!(parse(&good).unwrap(), good);

        let with = |change: &dyn Fn(&mut Manifest)| {
            let mut bad = good.clone();
            change(&mut bad);
            parse(&bad).unwrap_err()
        };
        assert!(with(&|m| m.files[0].size = 2).contains("its files make"));
        for path in [
            "../x",
            "/etc/passwd",
            "a//b",
            ".hidden",
            "a/../b",
            "a\\b",
            "",
            "a/b/c/d/e/f/g/h/i",
        ] {
            assert!(
                with(&|m| m.files[0].path = path.to_owned()).contains("not allowed"),
                "{path}"
            );
        }
        assert!(with(&|m| m.files.push(m.files[0].clone())).contains("twice"));
        assert!(with(&|m| m.files[0].sha256 = "A".repeat(64)).contains("hexadecimal"));
        assert!(with(&|m| m.files.clear()).contains("0 files"));
    }
}
