//! The name this program was called by: `relayctl`, or `kubectl relay` through a link named `kubectl-relay`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// `relayctl`.
    Relayctl,
    /// `kubectl relay`.
    Plugin,
}

impl Program {
    /// By the first argument of the process.
    pub(crate) fn called(first: Option<&OsStr>) -> Self {
        let name = first.and_then(|path| Path::new(path).file_name());
        match name.and_then(OsStr::to_str) {
            Some("kubectl-relay" | "kubectl_relay") => Self::Plugin,
            _ => Self::Relayctl,
        }
    }

    /// As people type it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Relayctl => "relayctl",
            Self::Plugin => "kubectl relay",
        }
    }

    /// A text of ours with the commands in it as people have to type them.
    pub(crate) fn speak(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Relayctl => Cow::Borrowed(text),
            Self::Plugin => Cow::Owned(text.replace("relayctl ", "kubectl relay ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_named_like_a_plugin_speaks_like_one() {
        for (first, expected) in [
            (Some("relayctl"), Program::Relayctl),
            (Some("/usr/bin/kubectl-relay"), Program::Plugin),
            (Some("./kubectl_relay"), Program::Plugin),
            (Some(""), Program::Relayctl),
            (None, Program::Relayctl),
        ] {
            assert_eq!(
                Program::called(first.map(OsStr::new)),
                expected,
                "{first:?}"
            );
        }
        let text = "start it with `relayctl up`; see relayctl.toml";
        assert_eq!(Program::Relayctl.speak(text), text);
        assert_eq!(
            Program::Plugin.speak(text),
            "start it with `kubectl relay up`; see relayctl.toml"
        );
    }
}
