//! One corpus, two servers: the local object API must answer, refuse and store as the real one does.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cluster::{namespace, real};
use crate::compare::{Difference, accepted, compare, judge};
use crate::corpus::{Case, Kind, Step, read};
use crate::local::Local;
use crate::story::{Outcome, Story};
use crate::target::Target;

/// Fewest steps of the corpus.
const STEPS: usize = 220;

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kube/corpus")
}

/// A namespace of this run's own on both servers: what an earlier run left is in none of its answers.
pub(crate) fn own_namespace(targets: &[&dyn Target], what: &str) -> String {
    let name = format!("parity-{what}-{}", std::process::id());
    for target in targets {
        namespace(*target, &name);
    }
    name
}

#[test]
fn the_corpus_reads_and_is_large() {
    let cases = read(&folder());
    let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    let steps: usize = cases.iter().map(|case| case.steps.len()).sum();
    assert!(steps >= STEPS, "{steps} steps");
}

/// Each verdict of the real server is the one the case was written for; and every CEL rule of every kind refuses something.
#[test]
#[ignore = "needs a kube-apiserver"]
fn the_real_server_refuses_each_for_the_reason_it_was_written_for() {
    let real = real();
    let namespace = own_namespace(&[&real], "verdicts");
    let mut wrong = String::new();
    let mut said = BTreeSet::new();
    for case in read(&folder()) {
        let mut story = Story::new(&real, &namespace, &case);
        for (index, step) in case.steps.iter().enumerate() {
            let outcome = story.step(step);
            said.extend(causes(&outcome).map(|cause| Broken::by(case.kind, cause)));
            if let Err(why) = holds(step, &outcome) {
                let _ = writeln!(
                    wrong,
                    "{}, step {index}: {why}\n    {}",
                    case.name, outcome.told.body
                );
            }
        }
        story.end();
    }
    assert!(wrong.is_empty(), "{wrong}");
    let told = |rule: &Broken| said.iter().any(|said| said.is(rule));
    let silent: Vec<_> = rules().into_iter().filter(|rule| !told(rule)).collect();
    assert!(silent.is_empty(), "no case breaks these rules: {silent:#?}");
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn the_local_object_api_does_as_the_real_server_does() {
    let (real, local) = (real(), Local::start());
    let namespace = own_namespace(&[&real, &local], "corpus");
    let mut differences = Vec::new();
    for case in read(&folder()) {
        differences.extend(told_twice(&case, &namespace, &real, &local));
    }
    judge(
        &differences,
        &accepted(&folder().join("differences/corpus.yaml")),
    );
}

/// Tells a case to both.
fn told_twice(
    case: &Case,
    namespace: &str,
    real: &dyn Target,
    local: &dyn Target,
) -> Vec<Difference> {
    let mut here = Story::new(local, namespace, case);
    let mut there = Story::new(real, namespace, case);
    let mut differences = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let name = format!("{}, step {index}", case.name);
        let (real, local) = (there.step(step), here.step(step));
        differences.extend(compare(&name, &real.compared, &local.compared));
    }
    here.end();
    there.end();
    differences
}

fn causes(outcome: &Outcome) -> impl Iterator<Item = &Value> {
    let causes = &outcome.told.body["details"]["causes"];
    causes.as_array().into_iter().flatten()
}

/// Whether a step came to what its author wanted.
fn holds(step: &Step, outcome: &Outcome) -> Result<(), String> {
    let verdict = &step.verdict;
    let body = &outcome.told.body;
    let reason = match body["kind"].as_str() {
        Some("Status") => body["reason"].as_str().unwrap_or_default(),
        _ => "",
    };
    if (outcome.told.code, reason) != (verdict.code, verdict.reason.as_str()) {
        return Err(format!("wanted {} {}", verdict.code, verdict.reason));
    }
    let mut fields: Vec<_> = causes(outcome)
        .map(|cause| cause["field"].as_str().unwrap_or("?"))
        .collect();
    fields.sort_unstable();
    let mut wanted: Vec<_> = verdict.fields.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    if !wanted.is_empty() && fields != wanted {
        return Err(format!("wanted causes at {wanted:?}"));
    }
    let message = body["message"].as_str().unwrap_or_default();
    match verdict.says.iter().find(|words| !message.contains(*words)) {
        Some(words) => Err(format!("does not say {words:?}")),
        None => Ok(()),
    }
}

/// A CEL rule, or a cause that one gave: of which kind, at which place, in which words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Broken {
    kind: &'static str,
    /// Items of lists and maps have no number or key: `spec.heldOut[].digest`.
    field: String,
    words: String,
}

impl Broken {
    fn by(kind: Kind, cause: &Value) -> Self {
        let field = cause["field"].as_str().unwrap();
        let mut parts = field.split('[');
        let mut field = parts.next().unwrap().to_owned();
        for part in parts {
            field.push_str("[]");
            field.push_str(part.split_once(']').unwrap().1);
        }
        Self {
            kind: kind.kind,
            field,
            words: cause["message"].as_str().unwrap().to_owned(),
        }
    }

    fn is(&self, rule: &Self) -> bool {
        self.kind == rule.kind && self.field == rule.field && self.words.contains(&rule.words)
    }
}

/// Every CEL rule of our CRDs.
fn rules() -> BTreeSet<Broken> {
    let mut found = BTreeSet::new();
    for (kind, crd) in crate::crds::all() {
        collect(kind, crate::crds::schema(&crd), "", &mut found);
    }
    found
}

fn collect(kind: Kind, schema: &Value, at: &str, into: &mut BTreeSet<Broken>) {
    let rules = schema["x-kubernetes-validations"].as_array();
    for rule in rules.into_iter().flatten() {
        let words = rule["message"].as_str().or_else(|| rule["rule"].as_str());
        let field = format!("{at}{}", rule["fieldPath"].as_str().unwrap_or_default());
        into.insert(Broken {
            kind: kind.kind,
            field: field.trim_start_matches('.').to_owned(),
            words: words.unwrap().trim().to_owned(),
        });
    }
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        collect(kind, below, &format!("{at}.{key}"), into);
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() {
            collect(kind, &schema[key], &format!("{at}[]"), into);
        }
    }
}
