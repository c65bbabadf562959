//! The evaluator: the functions rules may call, and the names they are bound to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::extractors::This;
use kube_cel::cel::{Context, ExecutionError, Program, Value};
use regex::Regex;

use super::super::pattern::go_regex;

/// The value a rule is about.
pub(super) const SELF: &str = "self";
/// What it was before.
pub(super) const OLD_SELF: &str = "oldSelf";
/// The value with lists that have keys, and sets, in a fixed order. No rule can name it.
pub(super) const SELF_SORTED: &str = "@self";
/// What it was before, likewise.
pub(super) const OLD_SELF_SORTED: &str = "@oldSelf";

/// What rules may call: the operators, and the functions of `cel` and of the `kube-cel` features we build with. A rule that
/// calls anything else is refused when it is compiled, not when it first runs.
pub(super) const FUNCTIONS: &[&str] = &[
    "_?_:_", "_&&_", "_||_", "!_", "_-_", "_+_", "_*_", "_/_", "_%_", "_==_", "_!=_", "_>=_", "_<=_", "_>_", "_<_", "-_",
    "_[_]", "@in", "@not_strictly_false", "contains", "size", "max", "min", "startsWith", "endsWith", "string", "bytes",
    "double", "int", "uint", "matches", "duration", "timestamp", "getFullYear", "getMonth", "getDayOfYear",
    "getDayOfMonth", "getDate", "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds", "charAt",
    "indexOf", "lastIndexOf", "lowerAscii", "upperAscii", "replace", "split", "substring", "trim", "join", "quote",
    "strings.quote", "isSorted", "sum", "slice", "sort", "flatten", "distinct", "first", "last", "range", "lists.range",
    "reverse", "find", "findAll", "url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath",
    "getQuery", "quantity", "isQuantity", "sign", "isInteger", "asInteger", "asApproximateFloat", "add", "sub",
    "isGreaterThan", "isLessThan", "compareTo",
];

/// Expressions that were compiled for `matches`. Rules write them as literals, so there are few.
const PATTERNS_MAX: usize = 256;

/// Holds what is made once for all rules of a definition.
pub(in super::super) struct Engine {
    context: Context<'static>,
    timestamp: Program,
    duration: Program,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Engine {
    pub(in super::super) fn new() -> Self {
        let mut context = Context::default().with_all();
        let patterns = Patterns::default();
        context.add_function("matches", move |This(text): This<Arc<String>>, pattern: Arc<String>| {
            patterns.is_match(&pattern, &text)
        });
        let constant = |source| Program::compile(source).expect("a constant expression compiles");
        Self { context, timestamp: constant("timestamp(text)"), duration: constant("duration(text)") }
    }

    /// A scope with these variables.
    pub(super) fn scope(&self, variables: impl IntoIterator<Item = (&'static str, Value)>) -> Context<'_> {
        let mut scope = self.context.new_inner_scope();
        for (name, value) in variables {
            scope.add_variable_from_value(name, value);
        }
        scope
    }

    /// A point in time, from RFC 3339.
    pub(super) fn timestamp(&self, text: &str) -> Option<Value> {
        self.convert(&self.timestamp, text)
    }

    /// A span of time, in Go's form.
    pub(super) fn duration(&self, text: &str) -> Option<Value> {
        self.convert(&self.duration, text)
    }

    fn convert(&self, program: &Program, text: &str) -> Option<Value> {
        program.execute(&self.scope([("text", Value::String(Arc::new(text.to_owned())))])).ok()
    }
}

/// Evaluates an expression.
pub(super) fn evaluate(expression: &IdedExpr, scope: &Context<'_>) -> Result<Value, ExecutionError> {
    scope.resolve(expression)
}

/// Compiled expressions by their source.
#[derive(Default)]
struct Patterns {
    compiled: Mutex<HashMap<String, Regex>>,
}

impl Patterns {
    fn is_match(&self, pattern: &str, text: &str) -> Result<bool, ExecutionError> {
        Ok(self.get(pattern)?.is_match(text))
    }

    fn get(&self, pattern: &str) -> Result<Regex, ExecutionError> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = compiled.get(pattern) {
            return Ok(regex.clone());
        }
        let regex = go_regex(pattern).map_err(|problem| ExecutionError::function_error("matches", problem))?;
        if compiled.len() >= PATTERNS_MAX {
            compiled.clear();
        }
        compiled.insert(pattern.to_owned(), regex.clone());
        Ok(regex)
    }
}
