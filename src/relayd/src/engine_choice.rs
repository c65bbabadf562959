//! Which back end a laptop uses: decided once, at the first start, and kept with the objects. An engine that appears later
//! changes nothing, and one that goes makes nothing else take its place (control-plane 8.1).

use std::fmt;
use std::str::FromStr;

/// A back end by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackendName {
    /// Containers of an engine.
    Docker,
    /// In this process.
    Embedded,
    /// Objects of a cluster.
    Kubernetes,
}

impl BackendName {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Embedded => "embedded",
            Self::Kubernetes => "kubernetes",
        }
    }
}

impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No such back end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected docker, embedded or kubernetes")]
pub(crate) struct UnknownBackend;

impl FromStr for BackendName {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, UnknownBackend> {
        [Self::Docker, Self::Embedded, Self::Kubernetes]
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or(UnknownBackend)
    }
}

/// Why it is this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChosenBy {
    /// A flag, a variable or the configuration file.
    Flag,
    /// Nobody had chosen before.
    FirstUp,
    /// It is the one that was in use.
    Meta,
}

impl ChosenBy {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::FirstUp => "first up",
            Self::Meta => "meta",
        }
    }
}

/// A choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) backend: BackendName,
    pub(crate) by: ChosenBy,
}

/// What is known before any engine is asked: the wish of a setting, else what was kept. `None`: whether Docker answers
/// decides, and [`first_up`] says how.
pub(crate) fn settled(wished: Option<BackendName>, kept: Option<&str>) -> Option<Choice> {
    if let Some(backend) = wished {
        let by = ChosenBy::Flag;
        return Some(Choice { backend, by });
    }
    // A word of another program is none of ours; it is decided again.
    let backend = kept?.parse().ok()?;
    (backend != BackendName::Kubernetes).then_some(Choice {
        backend,
        by: ChosenBy::Meta,
    })
}

/// The first start of all.
pub(crate) const fn first_up(docker_answers: bool) -> Choice {
    Choice {
        backend: if docker_answers {
            BackendName::Docker
        } else {
            BackendName::Embedded
        },
        by: ChosenBy::FirstUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_decided_once_and_changed_by_a_wish_only() {
        use BackendName::{Docker, Embedded};
        use ChosenBy::{Flag, Meta};
        let choice = |backend, by| Some(Choice { backend, by });
        for (wished, kept, expected) in [
            (None, None, None),
            (None, Some("docker"), choice(Docker, Meta)),
            (None, Some("embedded"), choice(Embedded, Meta)),
            (None, Some("kubernetes"), None),
            (None, Some("podman"), None),
            (Some(Embedded), Some("docker"), choice(Embedded, Flag)),
            (Some(Docker), None, choice(Docker, Flag)),
        ] {
            assert_eq!(settled(wished, kept), expected, "{wished:?} {kept:?}");
        }
        assert_eq!(first_up(true).backend, Docker);
        assert_eq!(first_up(false).backend, Embedded);
        assert_eq!("docker".parse(), Ok(Docker));
        assert_eq!("Docker".parse::<BackendName>(), Err(UnknownBackend));
    }
}
