//! What a check of one value came to (`kube-openapi/pkg/validation/validate/result.go`).

use serde_json::{Value, json};

use super::super::cause::{Cause, CauseReason, NO_FIELD};
use super::super::go_text;

/// One fault in the words of kube-openapi, and the cause it becomes.
#[derive(Clone, Debug)]
pub(in super::super) struct Fault {
    /// The dotted path, unless the fault is about the value as a whole, without a field.
    name: Option<String>,
    /// kube-openapi's own text: two faults with the same one are the same.
    text: String,
    reason: CauseReason,
    shown: Shown,
    detail: String,
}

#[derive(Clone, Debug)]
enum Shown {
    Value(Value),
    Nothing,
}

impl Fault {
    pub(super) fn required(name: String) -> Self {
        let text = format!("{name} in body is required");
        Self { name: Some(name), text, reason: CauseReason::Required, shown: Shown::Nothing, detail: String::new() }
    }

    pub(super) fn not_supported(name: String, value: &Value, allowed: &[Value]) -> Self {
        let words: Vec<String> = allowed
            .iter()
            .map(|value| go_text::quote(&value.as_str().map_or_else(|| go_text::json(value), str::to_owned)))
            .collect();
        Self {
            text: format!("{name} in body should be one of [{}]", words.join(" ")),
            name: Some(name),
            reason: CauseReason::NotSupported,
            shown: Shown::Value(value.clone()),
            detail: format!("supported values: {}", words.join(", ")),
        }
    }

    pub(super) fn too_long(name: String, most: u64) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        Self {
            text: format!("{name} in body should be at most {most} chars long"),
            name: Some(name),
            reason: CauseReason::TooLong,
            shown: Shown::Nothing,
            detail: format!("may not be more than {most} {unit}"),
        }
    }

    pub(super) fn too_many(name: String, found: usize, most: u64) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        Self {
            text: format!("{name} in body should have at most {most} items"),
            name: Some(name),
            reason: CauseReason::TooMany,
            shown: Shown::Value(json!(found)),
            detail: format!("must have at most {most} {unit}"),
        }
    }

    /// `found` is a word for what the value is, or the value itself where a format was not met.
    pub(super) fn wrong_type(name: String, wanted: &str, found: &str) -> Self {
        let text = format!("{name} in body must be of type {wanted}: {}", go_text::quote(found));
        Self {
            detail: text.clone(),
            text,
            name: Some(name),
            reason: CauseReason::TypeInvalid,
            shown: Shown::Value(json!(found)),
        }
    }

    /// Any other fault; `said` follows the words “spec.x in body”.
    pub(super) fn invalid(name: String, value: Value, said: &str) -> Self {
        let text = format!("{name} in body {said}");
        Self {
            detail: text.clone(),
            text,
            name: Some(name),
            reason: CauseReason::Invalid,
            shown: Shown::Value(value),
        }
    }

    /// A multiple of nothing: a factor below one loses its fraction where the value is an integer, as there.
    pub(super) fn factor_is_zero(name: String) -> Self {
        let text = format!("factor MultipleOf declared for {name} must be positive: 0");
        Self {
            detail: text.clone(),
            text,
            name: Some(name),
            reason: CauseReason::Invalid,
            shown: Shown::Value(json!(0)),
        }
    }

    /// A fault of a junctor, which names its field in the text alone.
    pub(super) fn of_junctor(text: String) -> Self {
        Self {
            detail: text.clone(),
            text,
            name: None,
            reason: CauseReason::Invalid,
            shown: Shown::Value(json!("")),
        }
    }

    /// The cause, with the path that the checked value itself has (empty for a whole object).
    pub(in super::super) fn into_cause(self, prefix: &str) -> Cause {
        let name = self.name.as_deref().unwrap_or_default();
        let name = name.strip_prefix('.').unwrap_or(name);
        let field = match (prefix, name) {
            ("", "") => NO_FIELD.to_owned(),
            ("", name) => name.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, name) => format!("{prefix}.{name}"),
        };
        match self.shown {
            Shown::Value(value) => Cause::with_value(self.reason, field, &value, &self.detail),
            Shown::Nothing => Cause::without_value(self.reason, field, &self.detail),
        }
    }
}

/// The faults of a value, and how many checks it came through: of several branches of a junctor the one that came
/// farthest is reported.
#[derive(Debug, Default)]
pub(in super::super) struct Outcome {
    pub(in super::super) faults: Vec<Fault>,
    pub(super) passed: u32,
}

impl Outcome {
    pub(super) fn fault(fault: Fault) -> Self {
        Self { faults: vec![fault], passed: 0 }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn add(&mut self, fault: Fault) {
        if !self.faults.iter().any(|known| known.text == fault.text) {
            self.faults.push(fault);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        other.faults.into_iter().for_each(|fault| self.add(fault));
    }
}
