//! What an apply is refused for: fields that somebody else owns with another value.

use std::fmt;

use super::Operation;
use super::managed::{Identity, Managed};
use super::set::{FieldSet, path_text};
use super::text;

/// One field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager.
    pub manager: String,
    /// How it came to own the field.
    pub operation: Operation,
    /// The API version of its entry.
    pub api_version: String,
    /// The subresource it wrote through.
    pub subresource: Option<String>,
    /// The field, as in a cause of the API server: `.spec.profile`.
    pub field: String,
}

impl Conflict {
    /// The text of the cause (reason `FieldManagerConflict`): `conflict with "kubectl-edit" using relay.dev/v1alpha1`.
    #[must_use]
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager_text())
    }

    fn manager_text(&self) -> String {
        let mut out = text::quoted(&self.manager);
        if let Some(subresource) = &self.subresource {
            out.push_str(&format!(" with subresource {}", text::quoted(subresource)));
        }
        if self.operation == Operation::Update {
            out.push_str(&format!(" using {}", self.api_version));
        }
        out
    }
}

/// The conflicts of one apply, by manager; displayed as the message of the API server's 409.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.0.as_slice() {
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {}: {}",
                one.manager_text(),
                one.field
            );
        }
        let mut lines = Vec::new();
        let mut last = None;
        for conflict in &self.0 {
            let manager = conflict.manager_text();
            if last.as_ref() != Some(&manager) {
                lines.push(format!("conflicts with {manager}:"));
                last = Some(manager);
            }
            lines.push(format!("- {}", conflict.field));
        }
        write!(
            f,
            "Apply failed with {} conflicts: {}",
            self.0.len(),
            lines.join("\n")
        )
    }
}

/// A manager and those of its fields that would change.
pub(super) struct Disputed {
    pub(super) identity: Identity,
    pub(super) fields: FieldSet,
}

/// The conflicts, managers in the API server's order.
pub(super) fn conflicts_of(managed: &Managed, mut disputed: Vec<Disputed>) -> Conflicts {
    disputed.sort_by_key(|one| one.identity.sort_key());
    let conflict = |identity: &Identity, field: String| Conflict {
        manager: identity.manager.clone(),
        operation: identity.operation,
        api_version: managed
            .get(identity)
            .map(|entry| entry.api_version.clone())
            .unwrap_or_default(),
        subresource: Some(identity.subresource.clone()).filter(|name| !name.is_empty()),
        field,
    };
    let all = disputed.iter().flat_map(|one| {
        let paths = one.fields.paths();
        paths
            .into_iter()
            .map(|path| conflict(&one.identity, path_text(&path)))
    });
    Conflicts(all.collect())
}
