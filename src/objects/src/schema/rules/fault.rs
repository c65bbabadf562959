//! Why a rule could not be evaluated, in the words of cel-go.

use kube_cel::cel::ExecutionError;

use super::super::go_text;
use super::value::plain;

/// The text of the API server for a rule that failed with an error; `title` names the rule.
pub(super) fn text(error: &ExecutionError, title: &str) -> String {
    match error {
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. } => format!(
            "'no such overload': call arguments did not match a supported operator, function or macro signature for \
             rule: {title}"
        ),
        other => format!("{} evaluating rule: {title}", words(other)),
    }
}

fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(index) => format!("index out of bounds: {}", go_text::plain(&plain(index))),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        other => other.to_string(),
    }
}
