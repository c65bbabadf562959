//! Names of what we make on an engine: all begin `relay-<inst6>-` (control-plane 8.2). `relay-laya` and `relay-laya-train`
//! have another shape and are never ours, since another tool deletes containers of these names that it does not know.

use api::group::Kind;

use crate::{Owner, TaskKey, VolumeRole};

/// Digits of an instance.
const INSTANCE_DIGITS: usize = 12;

/// Which store's things are ours: 12 hex digits of its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Instance(String);

impl Instance {
    /// Reads 12 hex digits in lower case.
    ///
    /// # Errors
    /// The text, when it is anything else.
    pub fn parse(text: &str) -> Result<Self, String> {
        let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        if text.len() == INSTANCE_DIGITS && text.chars().all(hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err(text.to_owned())
        }
    }

    /// All 12 digits: the label.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What every name of ours begins with.
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("relay-{}-", &self.0[..6])
    }

    /// A replica.
    #[must_use]
    pub fn server(&self, owner: &Owner, revision: &str, ordinal: u32) -> String {
        format!("{}{}-{revision}-{ordinal}", self.prefix(), owner.name)
    }

    /// A task. A run and the model it makes have the same name by default, so the kind is part of it.
    #[must_use]
    pub fn task(&self, owner: &Owner, key: &TaskKey) -> String {
        format!("{}{}", self.task_prefix(owner, key), key.attempt)
    }

    fn task_prefix(&self, owner: &Owner, key: &TaskKey) -> String {
        let kind = kind_word(owner.kind);
        format!(
            "{}{}-{kind}-{}-",
            self.prefix(),
            key.task.as_str(),
            owner.name
        )
    }

    /// A volume; one that is not ours has the name it has.
    #[must_use]
    pub fn volume(&self, role: &VolumeRole) -> String {
        match role {
            VolumeRole::Models => format!("{}models", self.prefix()),
            VolumeRole::Work { run } => format!("{}work-{run}", self.prefix()),
            VolumeRole::Gate { gate } => format!("{}gate-{gate}", self.prefix()),
            VolumeRole::Foreign { name } => name.clone(),
        }
    }

    /// The network of servers: published ports work, and there is no way out.
    #[must_use]
    pub fn serve_network(&self) -> String {
        format!("{}serve", self.prefix())
    }

    /// The network of fetch tasks.
    #[must_use]
    pub fn egress_network(&self) -> String {
        format!("{}egress", self.prefix())
    }

    /// Whether a container of this name stands where one of this owner would.
    #[must_use]
    pub fn is_name_of(&self, owner: &Owner, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(&self.prefix()) else {
            return false;
        };
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let hex = |text: &str| text.len() == 10 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let own = format!("{}-", owner.name);
        let replica = rest
            .strip_prefix(&own)
            .and_then(|rest| rest.split_once('-'))
            .is_some_and(|(revision, ordinal)| hex(revision) && number(ordinal));
        let task = api::label::Task::ALL.iter().any(|task| {
            let start = format!("{}-{}-{own}", task.as_str(), kind_word(owner.kind));
            rest.strip_prefix(&start).is_some_and(number)
        });
        (replica && owner.kind == Kind::LayaServer) || task
    }
}

const fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::LayaModel => "lm",
        Kind::LayaServer => "ls",
        Kind::TrainingRun => "tr",
        Kind::EvaluationGate => "eg",
        Kind::RoutingPolicy => "rp",
    }
}

#[cfg(test)]
mod tests {
    use api::label::Task;

    use super::*;

    fn owner(kind: Kind, name: &str) -> Owner {
        Owner {
            kind,
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: "u".to_owned(),
        }
    }

    #[test]
    fn names_are_those_of_the_page() {
        let instance = Instance::parse("0123456789ab").unwrap();
        let server = owner(Kind::LayaServer, "main");
        let model = owner(Kind::LayaModel, "english");
        let fetch = TaskKey {
            task: Task::Fetch,
            attempt: 2,
        };
        assert_eq!(
            instance.server(&server, "aabbccddee", 1),
            "relay-012345-main-aabbccddee-1"
        );
        assert_eq!(
            instance.task(&model, &fetch),
            "relay-012345-fetch-lm-english-2"
        );
        assert_eq!(instance.volume(&VolumeRole::Models), "relay-012345-models");
        let run = VolumeRole::Work {
            run: "nightly".to_owned(),
        };
        assert_eq!(instance.volume(&run), "relay-012345-work-nightly");
        let foreign = VolumeRole::Foreign {
            name: "relay-laya-models".to_owned(),
        };
        assert_eq!(instance.volume(&foreign), "relay-laya-models");
        assert_eq!(instance.serve_network(), "relay-012345-serve");
    }

    #[test]
    fn instances_are_twelve_hex_digits() {
        for bad in [
            "",
            "0123456789",
            "0123456789AB",
            "0123456789abc",
            "gggggggggggg",
        ] {
            assert_eq!(Instance::parse(bad), Err(bad.to_owned()));
        }
    }

    #[test]
    fn a_name_is_of_one_owner() {
        let instance = Instance::parse("0123456789ab").unwrap();
        let main = owner(Kind::LayaServer, "main");
        let cases = [
            ("relay-012345-main-aabbccddee-0", true),
            ("relay-012345-main-two-aabbccddee-0", false),
            ("relay-012345-main-aabbccddee-x", false),
            ("relay-012345-gpu-check-ls-main-1", true),
            ("relay-012345-gpu-check-lm-main-1", false),
            ("relay-999999-main-aabbccddee-0", false),
            ("relay-laya", false),
            ("relay-laya-train", false),
        ];
        for (name, expected) in cases {
            assert_eq!(instance.is_name_of(&main, name), expected, "{name}");
        }
    }
}
