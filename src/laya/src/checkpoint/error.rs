//! Why a checkpoint is not served. Texts of the original are kept (wire.md 12.3); they name file, tensor, what was
//! expected and what was found.

use std::io;
use std::path::PathBuf;

/// What kind of failure a [`LoadError`] is, for metrics (`laya_load_failures_total{reason}`) and exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoadFailure {
    /// A file could not be read.
    Unreadable,
    /// A file is missing, too large, malformed, or the parts do not fit each other.
    BadCheckpoint,
    /// A link or a manifest path leaves the model root.
    UnsafePath,
    /// A size differs from the manifest.
    SizeMismatch,
    /// A digest differs from what was expected.
    DigestMismatch,
    /// Nothing verifies the folder, and verification is required.
    Unverified,
    /// The precision is not served: no kernel, or no passed parity report.
    PrecisionRefused,
}

impl LoadFailure {
    /// The word used in metric labels and conditions.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "Unreadable",
            Self::BadCheckpoint => "BadCheckpoint",
            Self::UnsafePath => "UnsafePath",
            Self::SizeMismatch => "SizeMismatch",
            Self::DigestMismatch => "DigestMismatch",
            Self::Unverified => "Unverified",
            Self::PrecisionRefused => "PrecisionRefused",
        }
    }
}

/// A tensor of another shape: name, expected shape (none where no such tensor belongs), found shape.
pub type Mismatch = (String, Option<Vec<usize>>, Vec<usize>);

/// Why a checkpoint folder was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A required file is not there.
    #[error("Incompatible model: '{origin}' does not contain '{file}'")]
    NoFile {
        /// The source as configured.
        origin: String,
        /// Path inside the folder.
        file: &'static str,
    },
    /// The weights are not there.
    #[error("Incompatible model: 'model.safetensors' not found in '{origin}'")]
    NoWeights {
        /// The source as configured.
        origin: String,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file or the folder is a link that leaves the model root, or no regular file.
    #[error("refused {path}: {why}", path = .path.display())]
    UnsafePath {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Keys that the agent configuration must have.
    #[error("Incompatible model config for '{origin}': missing configuration keys [{}]", quoted(.keys))]
    MissingKeys {
        /// The source as configured.
        origin: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// A configuration that cannot be used.
    #[error("Incompatible model config for '{origin}': {file}: {why}")]
    Config {
        /// The source as configured.
        origin: String,
        /// Path inside the folder.
        file: &'static str,
        /// What is wrong, with limit and value.
        why: String,
    },
    /// The safetensors header is not one.
    #[error("Incompatible model weights for '{origin}': model.safetensors: {why}")]
    Header {
        /// The source as configured.
        origin: String,
        /// What is wrong, with limit and value.
        why: String,
    },
    /// A whole part of the model is missing.
    #[error(
        "Incompatible model weights for '{origin}': checkpoint is missing '{prefix}' parameters"
    )]
    MissingPart {
        /// The source as configured.
        origin: String,
        /// How the names of the part begin.
        prefix: &'static str,
    },
    /// Tensors with another shape than the configuration says.
    #[error("Model architecture mismatch for '{origin}':{}", mismatches(.tensors))]
    Shapes {
        /// The source as configured.
        origin: String,
        /// Name, expected and found shape; `None` where no such tensor belongs.
        tensors: Vec<Mismatch>,
    },
    /// Tensors that are not there.
    #[error("Model weights incomplete for '{origin}': missing {} parameter tensors (e.g. [{}])", .names.len(), quoted(&.names[..names.len().min(3)]))]
    MissingTensors {
        /// The source as configured.
        origin: String,
        /// Their names.
        names: Vec<String>,
    },
    /// NaN or infinity.
    #[error("Incompatible model weights for '{origin}': {tensor} holds a value that is not finite")]
    NotFinite {
        /// The source as configured.
        origin: String,
        /// Name of the tensor.
        tensor: String,
    },
    /// The tokenizer files are not usable.
    #[error("Incompatible model: tokenizer of '{origin}': {why}")]
    Tokenizer {
        /// The source as configured.
        origin: String,
        /// What is wrong.
        why: String,
    },
    /// `relay-manifest.json` is not one.
    #[error("bad manifest of '{origin}': {why}")]
    Manifest {
        /// The source as configured.
        origin: String,
        /// What is wrong.
        why: String,
    },
    /// A file has another size than the manifest says.
    #[error("size mismatch for {path}: expected {expected} bytes, got {got}.")]
    Size {
        /// Path inside the folder.
        path: String,
        /// Bytes the manifest says.
        expected: u64,
        /// Bytes there are.
        got: u64,
    },
    /// A file has another SHA-256 than expected.
    #[error("SHA-256 mismatch for {path}: expected {expected}, got {got}.")]
    Sha256 {
        /// Path inside the folder.
        path: String,
        /// 64 hexadecimal digits.
        expected: String,
        /// 64 hexadecimal digits.
        got: String,
    },
    /// The checkpoint digest is another one than expected.
    #[error("checkpoint digest mismatch for '{origin}': expected {expected}, got {got}.")]
    Digest {
        /// The source as configured.
        origin: String,
        /// The digest asked for.
        expected: String,
        /// The digest there is.
        got: String,
    },
    /// Nothing says what the folder must hold.
    #[error("'{origin}' has no manifest and no expected digest, and LAYA_REQUIRE_VERIFIED is set")]
    Unverified {
        /// The source as configured.
        origin: String,
    },
    /// A reduced precision without a passed parity report.
    #[error(
        "'{origin}' has no passed {precision} parity report for this engine: {why}; run `laya parity <dir> --precision {precision} --out FILE`"
    )]
    NoParity {
        /// The source as configured.
        origin: String,
        /// The precision asked for.
        precision: String,
        /// What was found instead.
        why: String,
    },
}

impl LoadError {
    /// Which kind of failure this is.
    #[must_use]
    pub const fn failure(&self) -> LoadFailure {
        match self {
            Self::Read { .. } => LoadFailure::Unreadable,
            Self::UnsafePath { .. } => LoadFailure::UnsafePath,
            Self::Size { .. } => LoadFailure::SizeMismatch,
            Self::Sha256 { .. } | Self::Digest { .. } => LoadFailure::DigestMismatch,
            Self::Unverified { .. } => LoadFailure::Unverified,
            Self::NoParity { .. } => LoadFailure::PrecisionRefused,
            _ => LoadFailure::BadCheckpoint,
        }
    }

    /// Whether the same call can succeed later without anybody changing the folder.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        matches!(self, Self::Read { .. })
    }
}

fn quoted(names: &[String]) -> String {
    names
        .iter()
        .map(|n| format!("'{n}'"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn mismatches(tensors: &[Mismatch]) -> String {
    let line = |(name, expected, found): &Mismatch| {
        let expected = expected
            .as_deref()
            .map_or_else(|| "no such tensor".to_owned(), shape);
        format!("\n  - {name}: expected {expected}, found {}", shape(found))
    };
    tensors.iter().take(5).map(line).collect()
}

/// A shape as Python writes a tuple.
fn shape(dimensions: &[usize]) -> String {
    match dimensions {
        [one] => format!("({one},)"),
        more => format!(
            "({})",
            more.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_original() {
        let origin = || "tiny".to_owned();
        let rows = [
            (
                LoadError::NoFile {
                    origin: origin(),
                    file: "rl_agent_config.json",
                },
                "Incompatible model: 'tiny' does not contain 'rl_agent_config.json'",
            ),
            (
                LoadError::MissingKeys {
                    origin: origin(),
                    keys: vec!["encoder".into(), "head_layers".into()],
                },
                "Incompatible model config for 'tiny': missing configuration keys ['encoder', 'head_layers']",
            ),
            (
                LoadError::Shapes {
                    origin: origin(),
                    tensors: vec![
                        ("a".into(), Some(vec![2, 3]), vec![2]),
                        ("b".into(), None, vec![]),
                    ],
                },
                "Model architecture mismatch for 'tiny':\n  - a: expected (2, 3), found (2,)\n  - b: expected no such tensor, found ()",
            ),
            (
                LoadError::MissingTensors {
                    origin: origin(),
                    names: vec!["x".into()],
                },
                "Model weights incomplete for 'tiny': missing 1 parameter tensors (e.g. ['x'])",
            ),
        ];
        for (error, text) in rows {
            assert_eq!(error.to_string(), text);
        }
    }
}
