//! Runs the rules of a schema over an object (`apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go`).

use std::sync::Arc;

use kube_cel::cel::Value as Cel;
use serde_json::{Value, json};

use super::super::cause::{Cause, CauseReason, NO_FIELD};
use super::super::check::{Pair, counterpart};
use super::super::node::{Kind, Node};
use super::super::path::Path;
use super::compile::{Rule, RuleReason, Transition};
use super::engine::{Engine, OLD_SELF, OLD_SELF_SORTED, SELF, SELF_SORTED, evaluate};
use super::fault;
use super::value::{Order, convert, convert_root, mismatch};

/// The longest text that a `messageExpression` may make.
const MESSAGE_MAX_BYTES: usize = 5 * 1024;

/// What decides whether a fault is excused because nothing changed: this part of the object with its counterpart, or
/// where it has none, the nearest part above that has.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Ratchet<'a> {
    current: Option<Pair<'a>>,
    nearest: Option<Pair<'a>>,
}

impl<'a> Ratchet<'a> {
    /// For the object as a whole.
    pub(in super::super) const fn of(pair: Pair<'a>) -> Self {
        Self { current: Some(pair), nearest: None }
    }

    fn excuses(&self) -> bool {
        self.current.or(self.nearest).is_some_and(|pair| pair.is_unchanged())
    }

    fn key(self, key: &str) -> Self {
        match (self.current, self.nearest) {
            (None, _) => self,
            (Some(_), None) if key == "apiVersion" || key == "kind" => Self::default(),
            (Some(current), _) => Self { current: current.key(key), nearest: Some(current) },
        }
    }

    fn index(self, index: usize) -> Self {
        match self.current {
            None => self,
            Some(current) => Self { current: current.index(index), nearest: Some(current) },
        }
    }
}

/// Runs all rules. `old` is what the value was, where that can be told.
pub(in super::super) fn check(
    engine: &Engine,
    node: &Node,
    path: &Path<'_>,
    (value, old): (&Value, Option<&Value>),
    ratchet: Ratchet<'_>,
    causes: &mut Vec<Cause>,
) {
    // rules are about values; null is a matter for the node above
    if !node.has_rules || value.is_null() {
        return;
    }
    let old = old.filter(|old| !old.is_null());
    if !node.rules.is_empty() {
        check_here(engine, node, path, (value, old), ratchet, causes);
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let old = old.and_then(|old| old.get(key));
                if let Some(child) = node.properties.get(key) {
                    check(engine, child, &path.field(key), (value, old), ratchet.key(key), causes);
                } else if let Some(child) = node.additional.schema() {
                    check(engine, child, &path.entry(key), (value, old), ratchet.key(key), causes);
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = node.items.as_deref() else { return };
            let old = old.and_then(Value::as_array);
            for (index, item) in items.iter().enumerate() {
                let old = old.and_then(|old| counterpart(node, item, old));
                check(engine, child, &path.item(index), (item, old), ratchet.index(index), causes);
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Null => {}
    }
}

fn check_here(
    engine: &Engine,
    node: &Node,
    path: &Path<'_>,
    (value, old): (&Value, Option<&Value>),
    ratchet: Ratchet<'_>,
    causes: &mut Vec<Cause>,
) {
    let runs = |rule: &&Rule| rule.transition == Transition::No || old.is_some();
    let to_cel = |value: &Value, order: Order| {
        if path.is_root() { convert_root(engine, node, value, order) } else { convert(engine, node, value, order) }
    };
    let old = old.filter(|_| node.rules.iter().any(|rule| rule.transition == Transition::Yes));
    let mut variables = vec![(SELF, to_cel(value, Order::AsGiven))];
    variables.extend(old.map(|old| (OLD_SELF, to_cel(old, Order::AsGiven))));
    if node.rules.iter().any(|rule| rule.compares_fields) {
        // without such lists both are one
        let sorted = |value: &Value, given: usize, variables: &[(&'static str, Cel)]| match node.has_unordered {
            true => to_cel(value, Order::Sorted),
            false => variables[given].1.clone(),
        };
        variables.push((SELF_SORTED, sorted(value, 0, &variables)));
        if let Some(old) = old {
            variables.push((OLD_SELF_SORTED, sorted(old, 1, &variables)));
        }
    }
    let scope = engine.scope(variables);
    for rule in node.rules.iter().filter(runs) {
        let broken = match evaluate(&rule.expression, &scope) {
            Ok(Cel::Bool(true)) => continue,
            Ok(Cel::Bool(false)) => None,
            Ok(other) => Some(format!("result is {:?}, not a boolean, evaluating rule: {}", other.type_of(), rule.title)),
            Err(error) => Some(match mismatch(node, value) {
                Some(problem) => format!("{problem} evaluating rule: {}", rule.title),
                None => fault::text(&error, &rule.title),
            }),
        };
        let field = path.bracketed();
        match broken {
            // a rule that cannot be evaluated is never excused
            Some(problem) => {
                let field = if field.is_empty() { NO_FIELD.to_owned() } else { field };
                causes.push(Cause::with_value(CauseReason::Invalid, field, &json!(schema_type(node)), &problem));
            }
            None if rule.transition == Transition::No && ratchet.excuses() => {}
            None => causes.push(refusal(rule, node, field, value, message(rule, &scope))),
        }
    }
}

/// The type that the schema names, which stands for the value in some texts.
const fn schema_type(node: &Node) -> &'static str {
    match node.kind {
        Kind::IntOrString => "",
        kind => kind.names(),
    }
}

fn refusal(rule: &Rule, node: &Node, field: String, value: &Value, detail: String) -> Cause {
    let field = match (&rule.field_path, field.as_str()) {
        (None, "") => NO_FIELD.to_owned(),
        (None, _) => field,
        (Some(below), "") => below.clone(),
        (Some(below), above) => format!("{above}.{below}"),
    };
    let hides_value = matches!(node.kind, Kind::Object | Kind::Array);
    match rule.reason {
        RuleReason::Forbidden => Cause::without_value(CauseReason::Forbidden, field, &detail),
        RuleReason::Required => Cause::without_value(CauseReason::Required, field, &detail),
        RuleReason::Duplicate if hides_value => Cause::without_value(CauseReason::Duplicate, field, ""),
        RuleReason::Duplicate => Cause::with_value(CauseReason::Duplicate, field, value, ""),
        RuleReason::Invalid if hides_value => Cause::without_value(CauseReason::Invalid, field, &detail),
        RuleReason::Invalid => Cause::with_value(CauseReason::Invalid, field, value, &detail),
    }
}

/// The text of `messageExpression`, or the fixed one where that makes none that can be used.
fn message(rule: &Rule, scope: &kube_cel::cel::Context<'_>) -> String {
    let made = rule.message_expression.as_ref().and_then(|expression| match evaluate(expression, scope) {
        Ok(Cel::String(text)) => Some(Arc::unwrap_or_clone(text)),
        Ok(_) | Err(_) => None,
    });
    made.map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_MAX_BYTES)
        .unwrap_or_else(|| rule.message.clone())
}
