//! A rule as the schema has it becomes one that can be evaluated.

use kube_cel::cel::Program;
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr, operators};
use serde_json::{Map, Value};

use super::super::compile::{Place, flag, list, malformed, text};
use super::super::error::DefinitionError;
use super::super::node::{Kind, Node};
use super::engine::{FUNCTIONS, OLD_SELF, OLD_SELF_SORTED, SELF, SELF_SORTED};

/// What a rule reports as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleReason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

/// Whether a rule compares two states of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    No,
    /// It names `oldSelf` and runs only where there is one.
    Yes,
}

/// A compiled rule.
#[derive(Debug)]
pub(in super::super) struct Rule {
    pub(super) expression: IdedExpr,
    /// What the API server calls the rule in errors: its message, else its source.
    pub(super) title: String,
    pub(super) message: String,
    pub(super) message_expression: Option<IdedExpr>,
    pub(super) reason: RuleReason,
    /// Path below the node, without a leading dot.
    pub(super) field_path: Option<String>,
    pub(super) transition: Transition,
    /// It compares whole fields, so it needs `self` with lists in a fixed order as well.
    pub(super) compares_fields: bool,
}

/// Compiles `x-kubernetes-validations` of a node whose children are compiled.
pub(in super::super) fn compile(raw: &Value, node: &Node, place: &Place) -> Result<Vec<Rule>, DefinitionError> {
    let path = place.at("x-kubernetes-validations");
    list(raw, &path)?
        .iter()
        .enumerate()
        .map(|(index, raw)| {
            let path = format!("{path}[{index}]");
            let Value::Object(map) = raw else { return Err(malformed(&path, "must be an object".to_owned())) };
            compile_one(map, node, place, &path)
        })
        .collect()
}

fn compile_one(map: &Map<String, Value>, node: &Node, place: &Place, path: &str) -> Result<Rule, DefinitionError> {
    let known = ["rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"];
    if let Some(unknown) = map.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(DefinitionError::Unsupported { path: path.to_owned(), what: format!("keyword {unknown}") });
    }
    if let Some(value) = map.get("optionalOldSelf")
        && flag(value, path)?
    {
        return Err(DefinitionError::Unsupported { path: path.to_owned(), what: "optionalOldSelf".to_owned() });
    }
    let field = |name: &str| map.get(name).map(|value| text(value, &format!("{path}.{name}"))).transpose();
    let source = field("rule")?.map(str::trim).filter(|rule| !rule.is_empty());
    let source = source.ok_or_else(|| malformed(path, "rule is not specified".to_owned()))?;
    let message = field("message")?.map(str::trim);
    if message.is_some_and(|message| message.is_empty() || message.contains('\n')) {
        return Err(malformed(path, "message must be one line that is not empty".to_owned()));
    }
    if message.is_none() && source.contains('\n') {
        return Err(malformed(path, "message must be specified if rule contains line breaks".to_owned()));
    }
    let (expression, transition) = parse(source, path)?;
    if let (Transition::Yes, Some(within)) = (transition, &place.uncorrelated) {
        let problem = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
        return Err(refused(path, source, problem));
    }
    let mut expression = expression;
    let compares_fields = order_free_comparisons(&mut expression);
    let message_expression = field("messageExpression")?
        .map(|source| parse(source, &format!("{path}.messageExpression")).map(|(expression, _)| expression))
        .transpose()?;
    let title = message.unwrap_or(source).to_owned();
    Ok(Rule {
        expression,
        message: message.map_or_else(|| format!("failed rule: {title}"), str::to_owned),
        title,
        message_expression,
        reason: reason(field("reason")?, path)?,
        field_path: field("fieldPath")?.map(|text| field_path(text, node, path)).transpose()?,
        transition,
        compares_fields,
    })
}

fn refused(path: &str, rule: &str, problem: String) -> DefinitionError {
    DefinitionError::Rule { path: path.to_owned(), rule: rule.to_owned(), problem }
}

fn reason(name: Option<&str>, path: &str) -> Result<RuleReason, DefinitionError> {
    match name {
        None | Some("FieldValueInvalid") => Ok(RuleReason::Invalid),
        Some("FieldValueForbidden") => Ok(RuleReason::Forbidden),
        Some("FieldValueRequired") => Ok(RuleReason::Required),
        Some("FieldValueDuplicate") => Ok(RuleReason::Duplicate),
        Some(other) => Err(malformed(path, format!("reason {other:?} is none of the API server's"))),
    }
}

fn parse(source: &str, path: &str) -> Result<(IdedExpr, Transition), DefinitionError> {
    let program = Program::compile(source).map_err(|error| refused(path, source, error.to_string()))?;
    let expression = program.expression().clone();
    let mut names = Names::default();
    names.read(&expression, &mut Vec::new()).map_err(|problem| refused(path, source, problem))?;
    let transition = if names.old_self { Transition::Yes } else { Transition::No };
    Ok((expression, transition))
}

/// Checks that a rule names only what can be evaluated.
#[derive(Default)]
struct Names {
    old_self: bool,
}

impl Names {
    fn read(&mut self, node: &IdedExpr, scope: &mut Vec<String>) -> Result<(), String> {
        match &node.expr {
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.read_name(name, scope),
            Expr::Select(select) => self.read(&select.operand, scope),
            Expr::List(list) if list.optional_indices.is_empty() => {
                list.elements.iter().try_for_each(|item| self.read(item, scope))
            }
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.read(&entry.key, scope)?;
                    self.read(&entry.value, scope)
                }
                EntryExpr::StructField(field) => self.read(&field.value, scope),
            }),
            Expr::Call(call) => {
                if !FUNCTIONS.contains(&call.func_name.as_str()) {
                    return Err(format!("function {} is not known", call.func_name));
                }
                // `lists.range(…)`: the target is the name of a library
                let target = call.target.as_deref().filter(|target| !is_library(target));
                target.into_iter().chain(&call.args).try_for_each(|part| self.read(part, scope))
            }
            Expr::Comprehension(macro_) if macro_.iter_var2.is_none() => {
                self.read(&macro_.iter_range, scope)?;
                self.read(&macro_.accu_init, scope)?;
                let outer = scope.len();
                scope.extend([macro_.iter_var.clone(), macro_.accu_var.clone()]);
                let inner = [&macro_.loop_cond, &macro_.loop_step, &macro_.result];
                let read = inner.into_iter().try_for_each(|part| self.read(part, scope));
                scope.truncate(outer);
                read
            }
            Expr::List(_) => Err("optional entries are not supported".to_owned()),
            Expr::Comprehension(_) => Err("macros with two variables are not supported".to_owned()),
            Expr::Struct(_) => Err("messages cannot be constructed".to_owned()),
            Expr::Unspecified => Err("is empty".to_owned()),
        }
    }

    fn read_name(&mut self, name: &str, scope: &[String]) -> Result<(), String> {
        match name {
            SELF => Ok(()),
            OLD_SELF => {
                self.old_self = true;
                Ok(())
            }
            name if scope.iter().any(|known| known == name) => Ok(()),
            name => Err(format!("undeclared reference to '{name}'")),
        }
    }
}

fn is_library(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if name == "lists" || name == "strings")
}

/// Turns `self.a == oldSelf.a` to the variables in which lists with keys and sets have a fixed order. Answers whether
/// there was such a comparison.
fn order_free_comparisons(node: &mut IdedExpr) -> bool {
    match &mut node.expr {
        Expr::Call(call) => {
            if matches!(call.func_name.as_str(), operators::EQUALS | operators::NOT_EQUALS)
                && call.args.iter().all(is_field)
            {
                call.args.iter_mut().for_each(use_sorted);
                return true;
            }
            let target = call.target.as_deref_mut();
            target.into_iter().chain(&mut call.args).fold(false, |found, part| order_free_comparisons(part) || found)
        }
        Expr::Select(select) => order_free_comparisons(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().fold(false, |found, item| order_free_comparisons(item) || found),
        Expr::Comprehension(macro_) => {
            let macro_ = &mut **macro_;
            [&mut macro_.iter_range, &mut macro_.accu_init, &mut macro_.loop_cond, &mut macro_.loop_step, &mut macro_.result]
                .into_iter()
                .fold(false, |found, part| order_free_comparisons(part) || found)
        }
        Expr::Map(_) | Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => false,
    }
}

/// `self`, `self.a.b`, `oldSelf.a`.
fn is_field(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Ident(name) => name == SELF || name == OLD_SELF,
        Expr::Select(select) => !select.test && is_field(&select.operand),
        _ => false,
    }
}

fn use_sorted(node: &mut IdedExpr) {
    match &mut node.expr {
        Expr::Ident(name) if name == SELF => *name = SELF_SORTED.to_owned(),
        Expr::Ident(name) => *name = OLD_SELF_SORTED.to_owned(),
        Expr::Select(select) => use_sorted(&mut select.operand),
        _ => {}
    }
}

/// `.spec.a` or `.labels['key']`, checked against the schema, as `field.Path` writes it.
fn field_path(source: &str, node: &Node, path: &str) -> Result<String, DefinitionError> {
    let wrong = |problem: &str| malformed(&format!("{path}.fieldPath"), format!("{source:?} {problem}"));
    let mut rest = source.trim();
    let mut node = node;
    let mut text = String::new();
    if rest.is_empty() {
        return Err(wrong("must be non-empty if specified"));
    }
    while !rest.is_empty() {
        let (name, tail) = if let Some(after) = rest.strip_prefix("['") {
            after.split_once("']").ok_or_else(|| wrong("has an open bracket"))?
        } else if let Some(after) = rest.strip_prefix('.') {
            after.split_at(after.find(['.', '[']).unwrap_or(after.len()))
        } else {
            return Err(wrong("must begin with [ or ."));
        };
        if name.contains('\\') {
            return Err(wrong("has an escaped character, which is not supported here"));
        }
        let child = if node.kind == Kind::Object { node.child(name) } else { None };
        let is_field = node.properties.contains_key(name);
        node = child.ok_or_else(|| wrong("does not refer to a valid field"))?;
        match (is_field, text.is_empty()) {
            (true, true) => text.push_str(name),
            (true, false) => text.push_str(&format!(".{name}")),
            (false, _) => text.push_str(&format!("[{name}]")),
        }
        rest = tail;
    }
    Ok(text)
}
