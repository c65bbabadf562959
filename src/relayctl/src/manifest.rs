//! The files of a checkpoint and where they come from (training 12): the manifest file, the checkpoint digest, and the
//! version that Relay ships.

use decision::contract::Digest;
use serde::Serialize;
use serde_json::{Value, json};

/// Name of the LayaModel that `relayctl up` makes for the shipped version.
pub(crate) const SHIPPED_NAME: &str = "v1";
/// Word for the shipped version, whatever its object is called.
pub(crate) const SHIPPED_WORD: &str = "shipped";
/// Where the project publishes its checkpoints, by revision.
const REPOSITORY: &str = "https://huggingface.co/eltonssouza/relay-laya/resolve/";
const SHIPPED_REVISION: &str = "deb313b03518f282a7c4c227dc776c9fe229c30e";

/// Path, bytes and SHA-256 of each file of the shipped version.
const SHIPPED_FILES: [(&str, u64, &str); 6] = [
    (
        "encoder/config.json",
        2018,
        "d69c2320a59a1dd825838a66792048566537c845a30127d2e4fef7ccc759d938",
    ),
    (
        "laya_trainer_meta.json",
        904,
        "8a8970d8339248e2358a5bb0764cf02f3524f467634575774f9370d7c288c589",
    ),
    (
        "model.safetensors",
        643_835_524,
        "d950dc93a2bd0fcf12b7ec1575390c3507073d0f00896adb4727b94ceef192ad",
    ),
    (
        "rl_agent_config.json",
        584,
        "1c556afd40de99c56dd3bec53fbf65120461bfe4f7900b242dcaed10e79d2fad",
    ),
    (
        "tokenizer/tokenizer.json",
        34_363_188,
        "609d8f4c067cd3950f88594c5a802616cea245823836ef5848ee4fc40aab5b6f",
    ),
    (
        "tokenizer/tokenizer_config.json",
        648,
        "5f36fa307ecb9e70c9b058ca0621530f6bd3e89b371c4d6c0279c48d9dbd2629",
    ),
];

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct File {
    /// Place in the checkpoint.
    pub(crate) path: String,
    /// Name at the source.
    pub(crate) asset: String,
    /// Bytes.
    pub(crate) size: u64,
    /// 64 hex digits.
    pub(crate) sha256: String,
}

/// The manifest file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) base_url: String,
    pub(crate) files: Vec<File>,
}

impl Manifest {
    /// The shipped version.
    pub(crate) fn shipped() -> Self {
        let files = SHIPPED_FILES.iter().map(|(path, size, sha256)| File {
            path: (*path).to_owned(),
            asset: (*path).to_owned(),
            size: *size,
            sha256: (*sha256).to_owned(),
        });
        Self {
            base_url: published(SHIPPED_REVISION),
            files: files.collect(),
        }
    }

    /// Bytes of all files.
    pub(crate) fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Checkpoint digest of the files.
    pub(crate) fn digest(&self) -> String {
        let files = self.files.iter();
        checkpoint_digest(
            files
                .map(|file| (file.path.as_str(), file.size, file.sha256.as_str()))
                .collect(),
        )
    }

    /// With two spaces for each level and a line break at the end.
    pub(crate) fn to_text(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        // Strings and numbers alone always have a form.
        text.unwrap_or_default() + "\n"
    }

    /// `spec.source.http` of a LayaModel; an asset is named where it is not the path.
    pub(crate) fn to_source(&self) -> Value {
        let files = self.files.iter().map(|file| {
            let mut entry = json!({"path": file.path, "size": file.size, "sha256": file.sha256});
            if file.asset != file.path {
                entry["asset"] = json!(file.asset);
            }
            entry
        });
        json!({"baseUrl": self.base_url, "files": files.collect::<Vec<_>>()})
    }
}

/// Address of a revision in the project's repository.
pub(crate) fn published(revision: &str) -> String {
    format!("{REPOSITORY}{revision}/")
}

/// Digest of the shipped version.
pub(crate) fn shipped_digest() -> String {
    Manifest::shipped().digest()
}

/// The checkpoint digest of path, bytes and SHA-256 of every file (control-plane 2): SHA-256 of the canonical manifest,
/// the compact JSON array of `{"path","sha256","size"}` sorted by the bytes of the path.
pub(crate) fn checkpoint_digest(mut files: Vec<(&str, u64, &str)>) -> String {
    #[derive(Serialize)]
    struct Entry<'a> {
        path: &'a str,
        sha256: &'a str,
        size: u64,
    }
    files.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    let entries: Vec<_> = files
        .into_iter()
        .map(|(path, size, sha256)| Entry { path, sha256, size })
        .collect();
    let text = serde_json::to_string(&entries).unwrap_or_default();
    Digest::of(text.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_version_has_the_digest_of_the_page() {
        let shipped = Manifest::shipped();
        assert_eq!(
            shipped.digest(),
            "sha256:d5a13ee2404702eb1e6f08e548878b5c32e664da8d7fdae4ffac5d3f5f8cc729"
        );
        assert_eq!(shipped.size(), 678_202_866);
        assert!(shipped.base_url.ends_with("29c30e/"));
    }

    #[test]
    fn a_manifest_has_two_spaces_and_a_line_break_at_the_end() {
        let manifest = Manifest {
            base_url: published("v2"),
            files: vec![File {
                path: "a/b".into(),
                asset: "a__b".into(),
                size: 1,
                sha256: "00".into(),
            }],
        };
        assert_eq!(
            manifest.to_text(),
            "{\n  \"baseUrl\": \"https://huggingface.co/eltonssouza/relay-laya/resolve/v2/\",\n  \"files\": [\n    {\n      \"path\": \"a/b\",\n      \"asset\": \"a__b\",\n      \"size\": 1,\n      \"sha256\": \"00\"\n    }\n  ]\n}\n"
        );
        assert_eq!(manifest.to_source()["files"][0]["asset"], "a__b");
        assert_eq!(
            Manifest::shipped().to_source()["files"][0]["asset"],
            Value::Null
        );
    }
}
