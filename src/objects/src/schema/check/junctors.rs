//! `allOf`, `anyOf`, `oneOf` and `not` (`kube-openapi/pkg/validation/validate/schema_props.go`). Branches are not excused
//! for what an update leaves as it was.

use serde_json::Value;

use super::super::go_text;
use super::super::node::Node;
use super::super::path::Path;
use super::outcome::{Fault, Outcome};
use super::values::check;

/// Checks a value against the branches of its node.
pub(super) fn check_junctors(node: &Node, path: &Path<'_>, value: &Value) -> Outcome {
    let mut outcome = Outcome::default();
    if !node.any_of.is_empty() {
        outcome.merge(any_of(&node.any_of, path, value));
    }
    if !node.one_of.is_empty() {
        outcome.merge(one_of(&node.one_of, path, value));
    }
    if !node.all_of.is_empty() {
        outcome.merge(all_of(&node.all_of, path, value));
    }
    if let Some(branch) = &node.not
        && check(branch, path, value).is_valid()
    {
        outcome.add(said(path, "must not validate the schema (not)"));
    }
    outcome.passed += 1;
    outcome
}

fn said(path: &Path<'_>, words: &str) -> Fault {
    Fault::of_junctor(format!("{} {words}", go_text::quote(&path.dotted())))
}

/// Keeps the branch that came farthest.
fn keep_best(best: &mut Option<Outcome>, failed: Outcome) {
    if best.as_ref().is_none_or(|best| failed.passed > best.passed) {
        *best = Some(failed);
    }
}

fn any_of(branches: &[Node], path: &Path<'_>, value: &Value) -> Outcome {
    let mut best = None;
    for branch in branches {
        let tried = check(branch, path, value);
        if tried.is_valid() {
            return tried;
        }
        keep_best(&mut best, tried);
    }
    let mut outcome = Outcome::fault(said(path, "must validate at least one schema (anyOf)"));
    best.into_iter().for_each(|best| outcome.merge(best));
    outcome
}

fn one_of(branches: &[Node], path: &Path<'_>, value: &Value) -> Outcome {
    let mut best = None;
    let mut valid = Vec::new();
    for branch in branches {
        let tried = check(branch, path, value);
        if tried.is_valid() {
            best = None;
            valid.push(tried);
        } else if valid.is_empty() {
            keep_best(&mut best, tried);
        }
    }
    let found = match valid.len() {
        1 => return valid.remove(0),
        0 => "Found none valid".to_owned(),
        count => format!("Found {count} valid alternatives"),
    };
    let mut outcome = Outcome::fault(said(path, &format!("must validate one and only one schema (oneOf). {found}")));
    best.into_iter().for_each(|best| outcome.merge(best));
    outcome
}

fn all_of(branches: &[Node], path: &Path<'_>, value: &Value) -> Outcome {
    let mut outcome = Outcome::default();
    let mut valid = 0;
    for branch in branches {
        let tried = check(branch, path, value);
        valid += usize::from(tried.is_valid());
        outcome.merge(tried);
    }
    if valid < branches.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        outcome.add(said(path, &format!("must validate all the schemas (allOf){none}")));
    }
    outcome
}
