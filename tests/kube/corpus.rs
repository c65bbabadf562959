//! The corpus: what is asked, as people write it (`corpus/README.md` says how), and what must come of it.

use std::collections::BTreeMap;
use std::path::Path;

use api::document::read_yaml;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::edit::{Edit, merge};

/// One file: rows about one kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// What the file is about, for its reader.
    #[serde(rename = "subject")]
    _subject: String,
    kind: String,
    /// What an object of a row is unless the row says otherwise.
    #[serde(default)]
    base: Value,
    /// Objects that must not be created.
    #[serde(default)]
    refused: Vec<Row>,
    /// Objects that must be created.
    #[serde(default)]
    accepted: Vec<Row>,
    #[serde(default)]
    cases: Vec<CaseText>,
}

/// One create.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    because: String,
    #[serde(default)]
    object: Option<Value>,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    expect: Option<String>,
    #[serde(default)]
    fields: Vec<String>,
    #[serde(default)]
    says: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseText {
    name: String,
    #[serde(default)]
    base: Option<Value>,
    steps: Vec<StepText>,
}

/// One request: exactly one of the verbs, with its options and its verdict.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StepText {
    /// From the case's base.
    create: Option<Edit>,
    /// From what is stored.
    update: Option<Edit>,
    /// A JSON merge patch.
    merge: Option<Value>,
    /// A JSON patch.
    json: Option<Vec<Value>>,
    /// Server-side apply; kind and name are added.
    apply: Option<Value>,
    /// With these options.
    delete: Option<Map<String, Value>>,
    /// A body as it stands.
    raw: Option<Raw>,
    /// Another object than the case's.
    name: Option<String>,
    subresource: Option<String>,
    #[serde(rename = "as")]
    manager: Option<String>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    dry_run: bool,
    /// More parameters; null takes a usual one away.
    #[serde(default)]
    query: BTreeMap<String, Option<String>>,
    expect: Option<String>,
    #[serde(default)]
    fields: Vec<String>,
    #[serde(default)]
    says: Vec<String>,
}

/// What the real server must answer. That the local one answers the same is another question.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) code: u16,
    /// `Status.reason`; empty for a success.
    pub(crate) reason: String,
    /// Fields of the causes, all of them, in any order.
    pub(crate) fields: Vec<String>,
    /// Words of the message.
    pub(crate) says: Vec<String>,
}

/// One request, and what is read after it.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) verb: Verb,
    pub(crate) options: Options,
    pub(crate) verdict: Verdict,
}

#[derive(Debug, Clone)]
pub(crate) enum Verb {
    Create(Edit),
    Update(Edit),
    Merge(Value),
    Json(Value),
    Apply(Value),
    Delete(Value),
    Raw(Raw),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Raw {
    pub(crate) method: String,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) manager: Option<String>,
    pub(crate) force: bool,
    pub(crate) dry_run: bool,
    pub(crate) query: BTreeMap<String, Option<String>>,
}

/// One object's story.
#[derive(Debug)]
pub(crate) struct Case {
    /// File and name.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Name of its object.
    pub(crate) object: String,
    pub(crate) base: Value,
    pub(crate) steps: Vec<Step>,
}

/// Where objects of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) kind: &'static str,
    /// `apis/relay.dev/v1alpha1` and so on.
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
}

/// All kinds of the corpus.
pub(crate) const KINDS: [Kind; 7] = [
    relay("LayaModel", "layamodels"),
    relay("LayaServer", "layaservers"),
    relay("TrainingRun", "trainingruns"),
    relay("EvaluationGate", "evaluationgates"),
    relay("RoutingPolicy", "routingpolicies"),
    Kind {
        kind: "ControllerRevision",
        group: "apis/apps/v1",
        plural: "controllerrevisions",
    },
    Kind {
        kind: "Event",
        group: "apis/events.k8s.io/v1",
        plural: "events",
    },
];

const fn relay(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        kind,
        group: "apis/relay.dev/v1alpha1",
        plural,
    }
}

impl Kind {
    pub(crate) fn named(kind: &str) -> Self {
        let found = KINDS.iter().find(|known| known.kind == kind);
        *found.unwrap_or_else(|| panic!("no kind {kind}"))
    }

    /// Path of the kind's objects in a namespace.
    pub(crate) fn path(self, namespace: &str) -> String {
        format!("/{}/namespaces/{namespace}/{}", self.group, self.plural)
    }

    pub(crate) fn api_version(self) -> &'static str {
        self.group.strip_prefix("apis/").unwrap()
    }

    /// An object of the kind with this name and what the base has besides.
    pub(crate) fn object(self, name: &str, base: &Value) -> Value {
        let mut object = json!({
            "apiVersion": self.api_version(), "kind": self.kind, "metadata": {"name": name},
        });
        merge(&mut object, base);
        object
    }
}

impl Verdict {
    /// `409 Conflict`; by default success, or 422 where fields or words are given.
    fn new(expect: Option<&str>, verb: &Verb, fields: Vec<String>, says: Vec<String>) -> Self {
        let text = match expect {
            Some(text) => text,
            None if !fields.is_empty() || !says.is_empty() => "422 Invalid",
            None if matches!(verb, Verb::Create(_)) => "201",
            None => "200",
        };
        let (code, reason) = text.split_once(' ').unwrap_or((text, ""));
        Self {
            code: code.parse().unwrap(),
            reason: reason.to_owned(),
            fields,
            says,
        }
    }
}

impl Row {
    fn step(self) -> Step {
        let verb = Verb::Create(Edit::new(self.object, self.set, self.without));
        Step {
            verdict: Verdict::new(self.expect.as_deref(), &verb, self.fields, self.says),
            verb,
            options: Options::default(),
        }
    }
}

impl StepText {
    fn step(self) -> Option<Step> {
        let verbs = [
            self.create.map(Verb::Create),
            self.update.map(Verb::Update),
            self.merge.map(Verb::Merge),
            self.json.map(|patch| Verb::Json(Value::Array(patch))),
            self.apply.map(Verb::Apply),
            self.delete
                .map(|options| Verb::Delete(Value::Object(options))),
            self.raw.map(Verb::Raw),
        ];
        let mut verbs = verbs.into_iter().flatten();
        let (Some(verb), None) = (verbs.next(), verbs.next()) else {
            return None;
        };
        Some(Step {
            verdict: Verdict::new(self.expect.as_deref(), &verb, self.fields, self.says),
            verb,
            options: Options {
                name: self.name,
                subresource: self.subresource,
                manager: self.manager,
                force: self.force,
                dry_run: self.dry_run,
                query: self.query,
            },
        })
    }
}

/// Every case of a folder's files, in the order of their names.
pub(crate) fn read(folder: &Path) -> Vec<Case> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|is| is == "yaml"))
        .collect();
    files.sort();
    files.iter().flat_map(|path| read_file(path)).collect()
}

fn read_file(path: &Path) -> Vec<Case> {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let tree = read_yaml(&text).unwrap_or_else(|error| panic!("{stem}: {error}"));
    let file: File =
        serde_path_to_error::deserialize(tree).unwrap_or_else(|error| panic!("{stem}: {error}"));
    let kind = Kind::named(&file.kind);
    let rows = file.refused.into_iter().map(|row| (true, row));
    let rows = rows.chain(file.accepted.into_iter().map(|row| (false, row)));
    let from_rows = rows.map(|(refused, row)| {
        let because = row.because.clone();
        let step = row.step();
        let code = step.verdict.code;
        assert_eq!(refused, code >= 400, "{stem}: {because}: {code}");
        (because, None, vec![step])
    });
    let from_cases = file.cases.into_iter().map(|case| {
        let steps = case.steps.into_iter().map(StepText::step);
        let steps: Option<Vec<_>> = steps.collect();
        let steps = steps.unwrap_or_else(|| panic!("{stem}: {}: one verb a step", case.name));
        (case.name, case.base, steps)
    });
    let all: Vec<_> = from_rows.chain(from_cases).collect();
    let cases = all
        .into_iter()
        .enumerate()
        .map(|(index, (name, base, steps))| Case {
            name: format!("{stem}: {name}"),
            kind,
            object: format!("o-{}-{index}", stem.split('-').next().unwrap()),
            base: base.unwrap_or_else(|| file.base.clone()),
            steps,
        });
    cases.collect()
}
