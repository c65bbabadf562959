//! One change of one object, as those who follow get it. What most of them want is serialised once and shared.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Added,
    Modified,
    Deleted,
}

impl Verb {
    /// As a watch names it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    /// The other way.
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "ADDED" => Self::Added,
            "DELETED" => Self::Deleted,
            _ => Self::Modified,
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Added => 0,
            Self::Modified => 1,
            Self::Deleted => 2,
        }
    }
}

/// A committed change, or one about to be.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) kind: Arc<str>,
    pub(crate) namespace: String,
    pub(crate) verb: Verb,
    /// The object after the change; of a deleted one its last state.
    pub(crate) object: Value,
    /// The object before it, for those who follow some labels only.
    pub(crate) before: Option<Value>,
    text: Bytes,
    lines: [OnceLock<Bytes>; 3],
}

impl Change {
    /// `text` is `object` as JSON.
    pub(crate) fn new(
        version: u64,
        kind: Arc<str>,
        namespace: String,
        verb: Verb,
        (object, text): (Value, Bytes),
        before: Option<Value>,
    ) -> Self {
        Self {
            version,
            kind,
            namespace,
            verb,
            object,
            before,
            text,
            lines: [const { OnceLock::new() }; 3],
        }
    }

    /// Bytes of the object.
    pub(crate) const fn size(&self) -> usize {
        self.text.len()
    }

    /// The line of a watch for the object as it is stored. The verb differs for those who follow some labels only.
    pub(crate) fn line(&self, verb: Verb) -> Bytes {
        let made = || {
            let mut line = Vec::with_capacity(self.text.len() + 40);
            line.extend_from_slice(b"{\"type\":\"");
            line.extend_from_slice(verb.as_str().as_bytes());
            line.extend_from_slice(b"\",\"object\":");
            line.extend_from_slice(&self.text);
            line.extend_from_slice(b"}\n");
            Bytes::from(line)
        };
        self.lines[verb.index()].get_or_init(made).clone()
    }
}
