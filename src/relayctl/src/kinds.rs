//! The kinds that the command line knows, by every word people have for them, and `KIND/NAME` read into them.

use crate::error::CliError;

/// Longest name of any object.
const MAX_NAME: usize = 253;
/// Longest name of a namespace.
const MAX_LABEL: usize = 63;

/// Where objects of a kind live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the whole cluster.
    Cluster,
}

/// One kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) scope: Scope,
}

/// Group of our own kinds.
pub(crate) const GROUP: &str = "relay.dev";
/// Version of them.
pub(crate) const VERSION: &str = "v1alpha1";
/// Kinds that a controller of this release acts on.
const ACTED_ON: [&str; 3] = ["LayaModel", "LayaServer", "RoutingPolicy"];
/// Category that stands for all of ours.
const CATEGORY: &str = "relay";

const fn ours(
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short_names: &'static [&'static str],
) -> Kind {
    Kind {
        group: GROUP,
        version: VERSION,
        kind,
        plural,
        singular,
        short_names,
        scope: Scope::Namespaced,
    }
}

/// Ours first, then those of Kubernetes that the local API serves too.
static KINDS: [Kind; 8] = [
    ours("LayaModel", "layamodels", "layamodel", &["lm"]),
    ours("LayaServer", "layaservers", "layaserver", &["ls"]),
    ours(
        "TrainingRun",
        "trainingruns",
        "trainingrun",
        &["trun", "tr"],
    ),
    ours(
        "EvaluationGate",
        "evaluationgates",
        "evaluationgate",
        &["eg"],
    ),
    ours("RoutingPolicy", "routingpolicies", "routingpolicy", &["rp"]),
    Kind {
        group: "events.k8s.io",
        version: "v1",
        kind: "Event",
        plural: "events",
        singular: "event",
        short_names: &["ev"],
        scope: Scope::Namespaced,
    },
    Kind {
        group: "apps",
        version: "v1",
        kind: "ControllerRevision",
        plural: "controllerrevisions",
        singular: "controllerrevision",
        short_names: &[],
        scope: Scope::Namespaced,
    },
    Kind {
        group: "",
        version: "v1",
        kind: "Namespace",
        plural: "namespaces",
        singular: "namespace",
        short_names: &["ns"],
        scope: Scope::Cluster,
    },
];

/// Pods of a cluster, for their logs; no word of the command line stands for them.
static POD: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Pod",
    plural: "pods",
    singular: "pod",
    short_names: &[],
    scope: Scope::Namespaced,
};

/// What runs for an object in a cluster.
pub(crate) fn pod() -> &'static Kind {
    &POD
}

/// All of ours.
pub(crate) fn own() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|kind| kind.is_ours())
}

/// The kind of an object that names itself.
pub(crate) fn of_object(api_version: &str, kind: &str) -> Option<&'static Kind> {
    KINDS
        .iter()
        .find(|known| known.kind == kind && known.api_version() == api_version)
}

/// One of ours by its name in Rust and YAML.
pub(crate) fn named(kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|known| known.kind == kind)
}

/// Versions of the decision model.
pub(crate) fn laya_model() -> &'static Kind {
    &KINDS[0]
}

/// What serves them.
pub(crate) fn laya_server() -> &'static Kind {
    &KINDS[1]
}

/// What makes them.
pub(crate) fn training_run() -> &'static Kind {
    &KINDS[2]
}

/// What judges them.
pub(crate) fn evaluation_gate() -> &'static Kind {
    &KINDS[3]
}

/// How requests are decided.
pub(crate) fn routing_policy() -> &'static Kind {
    &KINDS[4]
}

/// Events of every object.
pub(crate) fn event() -> &'static Kind {
    &KINDS[5]
}

/// Stored documents.
pub(crate) fn controller_revision() -> &'static Kind {
    &KINDS[6]
}

impl Kind {
    pub(crate) fn is_ours(&self) -> bool {
        self.group == GROUP
    }

    /// Whether an object of ours is kept and nothing more: no controller of this release acts on its kind, and none of
    /// another release has said anything of it.
    pub(crate) fn is_only_stored(&self, object: &serde_json::Value) -> bool {
        self.is_ours()
            && !ACTED_ON.contains(&self.kind)
            && object["status"]["observedGeneration"].is_null()
            && object["status"]["conditions"].is_null()
    }

    /// `relay.dev/v1alpha1`, or `v1` of the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `routingpolicy.relay.dev/default`, as `kubectl` names an object.
    pub(crate) fn full(&self, name: &str) -> String {
        if self.group.is_empty() {
            format!("{}/{name}", self.singular)
        } else {
            format!("{}.{}/{name}", self.singular, self.group)
        }
    }

    /// `routingpolicy/default`, as people say it.
    pub(crate) fn brief(&self, name: &str) -> String {
        format!("{}/{name}", self.singular)
    }

    fn answers_to(&self, word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        let bare = match word.split_once('.') {
            Some((bare, group)) => {
                let full = format!("{}.{}", self.version, self.group);
                if group != self.group && group != full {
                    return false;
                }
                bare
            }
            None => &word,
        };
        bare == self.plural
            || bare == self.singular
            || self.short_names.contains(&bare)
            || self.kind.eq_ignore_ascii_case(bare)
    }
}

/// The kinds a word stands for: one, or all of ours for `relay`; several words are separated by commas.
///
/// # Errors
/// A word that stands for none.
pub(crate) fn resolve(words: &str) -> Result<Vec<&'static Kind>, CliError> {
    let mut found: Vec<&'static Kind> = Vec::new();
    for word in words.split(',') {
        if word == CATEGORY {
            found.extend(own());
            continue;
        }
        let kind = KINDS.iter().find(|kind| kind.answers_to(word));
        found.push(kind.ok_or_else(|| unknown(word))?);
    }
    let mut seen = Vec::new();
    found.retain(|kind| {
        let fresh = !seen.contains(&kind.plural);
        seen.push(kind.plural);
        fresh
    });
    Ok(found)
}

fn unknown(word: &str) -> CliError {
    let words = KINDS.iter().flat_map(|kind| {
        [kind.plural, kind.singular]
            .into_iter()
            .chain(kind.short_names.iter().copied())
    });
    let near = words
        .map(|known| {
            (
                strsim::damerau_levenshtein(&word.to_ascii_lowercase(), known),
                known,
            )
        })
        .filter(|(distance, known)| *distance <= 3 && *distance < known.len())
        .min();
    let hint = match near {
        Some((_, known)) => format!("did you mean `{known}`?"),
        None => {
            let all: Vec<_> = own()
                .map(|kind| format!("{} ({})", kind.plural, kind.short_names.join(", ")))
                .collect();
            format!("kinds are {}", all.join(", "))
        }
    };
    CliError::usage(format!("there is no kind `{word}`")).hint(hint)
}

/// What arguments name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Targets {
    /// Every object of kinds.
    All(Vec<&'static Kind>),
    /// Objects by name.
    Named(Vec<(&'static Kind, String)>),
}

/// Reads `KIND [NAME…]` or `KIND/NAME…`.
///
/// # Errors
/// Unknown kinds, names that are none, or both forms mixed.
pub(crate) fn targets(arguments: &[String]) -> Result<Targets, CliError> {
    let Some((first, names)) = arguments.split_first() else {
        return Err(CliError::usage("no kind was given").hint("for example `relayctl get rp`"));
    };
    if arguments.iter().any(|argument| argument.contains('/')) {
        return arguments
            .iter()
            .map(|argument| object(argument))
            .collect::<Result<_, _>>()
            .map(Targets::Named);
    }
    let kinds = resolve(first)?;
    if names.is_empty() {
        return Ok(Targets::All(kinds));
    }
    let mut named = Vec::new();
    for kind in kinds {
        for name in names {
            check_name(name)?;
            named.push((kind, name.clone()));
        }
    }
    Ok(Targets::Named(named))
}

/// Reads `KIND/NAME`.
///
/// # Errors
/// Anything else.
pub(crate) fn object(argument: &str) -> Result<(&'static Kind, String), CliError> {
    let Some((kind, name)) = argument.split_once('/') else {
        return Err(CliError::usage(format!("`{argument}` is no KIND/NAME"))
            .hint("for example `routingpolicy/default`; several names of one kind are `KIND NAME NAME`"));
    };
    let kinds = resolve(kind)?;
    let [kind] = kinds[..] else {
        return Err(CliError::usage(format!(
            "`{argument}` names more than one kind"
        )));
    };
    check_name(name)?;
    Ok((kind, name.to_owned()))
}

/// A name becomes a part of a path; what could lead elsewhere is no name.
///
/// # Errors
/// Why it is none.
pub(crate) fn check_name(name: &str) -> Result<(), CliError> {
    match name_fault(name) {
        None => Ok(()),
        Some(why) => Err(CliError::usage(format!(
            "`{name}` is no name of an object: {why}"
        ))),
    }
}

/// Why a text cannot be a namespace: one is a label of DNS.
pub(crate) fn namespace_fault(name: &str) -> Option<&'static str> {
    if name.contains('.') {
        return Some("only a-z, 0-9 and `-` may be in it");
    }
    match name_fault(name) {
        None if name.len() > MAX_LABEL => Some("it has more than 63 characters"),
        fault => fault,
    }
}

/// Why a text cannot be the name of a new object of ours (control-plane 1.1).
pub(crate) fn own_name_fault(name: &str) -> Option<&'static str> {
    match name_fault(name) {
        Some(why) => Some(why),
        None if name.len() > api::group::MAX_NAME => Some("it has more than 40 characters"),
        None if name.contains('.') => Some("only a-z, 0-9 and `-` may be in it"),
        None if !name.starts_with(|c: char| c.is_ascii_lowercase()) => {
            Some("it must start with a letter")
        }
        None => None,
    }
}

/// Why a text cannot be the name of any object.
pub(crate) fn name_fault(name: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.is_empty() {
        Some("it is empty")
    } else if name.len() > MAX_NAME {
        Some("it has more than 253 characters")
    } else if !name.chars().all(plain) {
        Some("only a-z, 0-9, `-` and `.` may be in it")
    } else if !name.starts_with(edge) || !name.ends_with(edge) || name.contains("..") {
        Some("it must start and end with a letter or digit")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::exit::Exit;

    #[test]
    fn every_word_leads_to_its_kind() {
        for (word, expected) in [
            ("rp", "RoutingPolicy"),
            ("RoutingPolicy", "RoutingPolicy"),
            ("routingpolicies", "RoutingPolicy"),
            ("routingpolicy.relay.dev", "RoutingPolicy"),
            ("routingpolicies.v1alpha1.relay.dev", "RoutingPolicy"),
            ("ls", "LayaServer"),
            ("lm", "LayaModel"),
            ("tr", "TrainingRun"),
            ("trun", "TrainingRun"),
            ("eg", "EvaluationGate"),
            ("events", "Event"),
            ("controllerrevisions.apps", "ControllerRevision"),
            ("ns", "Namespace"),
        ] {
            let kinds = resolve(word).unwrap();
            assert_eq!(kinds.len(), 1, "{word}");
            assert_eq!(kinds[0].kind, expected, "{word}");
        }
        assert_eq!(resolve("relay").unwrap().len(), 5);
        assert_eq!(resolve("lm,ls,lm").unwrap().len(), 2);
        for word in ["", "pods", "rp.apps", "lm,", "relay.dev"] {
            assert_eq!(resolve(word).unwrap_err().exit, Exit::Usage, "{word}");
        }
        assert_eq!(
            resolve("routngpolicy").unwrap_err().hint_text(),
            Some("did you mean `routingpolicy`?")
        );
    }

    #[test]
    fn words_are_unique() {
        let mut words: Vec<_> = KINDS
            .iter()
            .flat_map(|kind| {
                [kind.plural, kind.singular]
                    .into_iter()
                    .chain(kind.short_names.iter().copied())
            })
            .collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
        assert_eq!(laya_model().kind, "LayaModel");
        assert_eq!(laya_server().kind, "LayaServer");
        assert_eq!(training_run().kind, "TrainingRun");
        assert_eq!(evaluation_gate().kind, "EvaluationGate");
        assert_eq!(routing_policy().kind, "RoutingPolicy");
        assert_eq!(event().kind, "Event");
        assert_eq!(controller_revision().kind, "ControllerRevision");
    }

    #[test]
    fn arguments_name_kinds_or_objects() {
        let read = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(|text| (*text).to_owned()).collect();
            targets(&arguments)
        };
        assert!(matches!(read(&["rp"]).unwrap(), Targets::All(kinds) if kinds.len() == 1));
        for (arguments, expected) in [
            (&["rp", "a", "b"][..], &["a", "b"][..]),
            (&["rp/a", "ls/b"], &["a", "b"]),
        ] {
            let Targets::Named(named) = read(arguments).unwrap() else {
                panic!("{arguments:?}")
            };
            let names: Vec<_> = named.iter().map(|(_, name)| name.as_str()).collect();
            assert_eq!(names, expected);
        }
        for arguments in [
            &[][..],
            &["rp/a", "b"],
            &["rp", "a/b"],
            &["rp", ".."],
            &["rp/../../secrets"],
            &["rp/"],
            &["rp", "A"],
            &["rp", "a%2fb"],
            &["rp", "\u{1b}[2J"],
            &["lm,ls/x"],
            &["relay/x"],
        ] {
            assert_eq!(
                read(arguments).unwrap_err().exit,
                Exit::Usage,
                "{arguments:?}"
            );
        }
    }
}
