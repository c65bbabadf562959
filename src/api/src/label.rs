//! Keys of labels and annotations on children and objects, and of image labels (control-plane 1.4, 4, 8). Values are
//! made elsewhere.

/// Value of [`APP_NAME`].
pub const APP: &str = "laya";
/// Value of [`PART_OF`].
pub const RELAY: &str = "relay";

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident = $key:literal;)+) => {
        $($(#[$doc])* pub const $name: &str = $key;)+

        /// Every key, to be looked through.
        pub const ALL: &[&str] = &[$($name),+];
    };
}

keys! {
    /// Always [`APP`].
    APP_NAME = "app.kubernetes.io/name";
    /// Name of the owner.
    APP_INSTANCE = "app.kubernetes.io/instance";
    /// A [`Component`].
    APP_COMPONENT = "app.kubernetes.io/component";
    /// Always [`RELAY`].
    PART_OF = "app.kubernetes.io/part-of";
    /// Always [`crate::field_manager::CONTROLLER`].
    MANAGED_BY = "app.kubernetes.io/managed-by";
    /// Docker: 12 hex digits of the local store's id; what has none, or another, is a stranger.
    INSTANCE = "relay.dev/instance";
    /// Docker volumes: random, set at creation; a container start makes a missing volume anew in silence.
    VOLUME_UID = "relay.dev/volume-uid";
    /// Kind of the owner.
    KIND = "relay.dev/kind";
    /// Namespace of the owner.
    NAMESPACE = "relay.dev/namespace";
    /// Name of the owner.
    NAME = "relay.dev/name";
    /// Uid of the owner.
    UID = "relay.dev/uid";
    /// Serving: the revision.
    REVISION = "relay.dev/revision";
    /// Serving on Docker: the lowest free number from 0.
    ORDINAL = "relay.dev/ordinal";
    /// Serving: first 16 hex digits of the checkpoint digest.
    MODEL = "relay.dev/model";
    /// Tasks: a [`Task`].
    TASK = "relay.dev/task";
    /// Tasks: number of the attempt.
    ATTEMPT = "relay.dev/attempt";
    /// Label on Docker, annotation on Kubernetes: first 16 hex digits of the digest of the rendered object without this key.
    SPEC_HASH = "relay.dev/spec-hash";
    /// Docker: inputs of the revision and the model's name as canonical JSON, at most 8 KiB, for `up --recover`.
    INPUTS = "relay.dev/inputs";
    /// On a LayaModel that a run made: name of the run.
    RUN = "relay.dev/run";
    /// Annotation of a LayaModel: a nonce that asks for one full hash check.
    VERIFY = "relay.dev/verify";
    /// Annotation of a LayaModel, `"true"`: drop our finalizer now, leave the data.
    RELEASE = "relay.dev/release";
    /// Label of a trainer image that speaks the task protocol of control-plane 13, `1`.
    TASK_PROTOCOL = "relay.dev/task-protocol";
    /// Label of a trainer image of another tool, which gets the adapter of training 4.2.
    LAYA_IMAGE = "relay.laya.image";
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The value of the label.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

words!(
    /// What a child is for.
    Component {
        /// It answers questions.
        Serving = "serving",
        /// It fetches or checks a model.
        Fetch = "fetch",
        /// It trains.
        Training = "training",
        /// It scores or compares.
        Evaluation = "evaluation",
    }
);
words!(
    /// What a task does.
    Task {
        /// Fetches a model.
        Fetch = "fetch",
        /// Hashes a model.
        Verify = "verify",
        /// Removes what nothing names.
        Prune = "prune",
        /// Trains.
        Train = "train",
        /// Scores one model.
        Score = "score",
        /// Compares stored predictions.
        Compare = "compare",
        /// Asks what the GPU is.
        GpuCheck = "gpu-check",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_what_kubernetes_accepts() {
        let mut seen = std::collections::BTreeSet::new();
        for key in ALL {
            assert!(seen.insert(key), "{key} stands there twice");
            let name = key.rsplit('/').next().unwrap_or_default();
            let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            assert!(
                (1..=63).contains(&name.len()) && name.chars().all(good),
                "{key}"
            );
        }
        for value in Component::ALL
            .iter()
            .map(|word| word.as_str())
            .chain(Task::ALL.iter().map(|word| word.as_str()))
        {
            assert!(
                value.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
                "{value}"
            );
        }
    }
}
