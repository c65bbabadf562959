//! What an agent saw of a task it labels (training.md 2.1): bounded, free of credentials, and compared with the labels
//! it gave, since it grades its own work.

use std::collections::BTreeMap;

use decision::json::{self, Value};
use decision::labels::Labels;
use decision::vocabulary::Tier;
use serde::{Deserialize, Serialize};

use super::secrets::redact;
use crate::checks::{CheckResult, check_result};
use crate::tool_routing::{ToolClass, classes_of};

/// Most bytes of the evidence of one task, as compact JSON.
pub const EVIDENCE_BYTES: usize = 8 * 1024;

/// How one task went.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Evidence {
    /// The request as it was collected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// `provider/model (<tier> tier) • <thinking>`, in order of use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Calls by tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, u64>,
    /// Files that editing tools changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Command lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Tool calls that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_failures: Option<u64>,
    /// The first of their messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// What the last check said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests_passed: Option<bool>,
    /// `completed`, `error` or `aborted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What the router had planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<Planned>,
    /// The last text of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The user's next request; a correction there means that the task was not right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "EvidenceOutcome"))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The agent finished.
    Completed,
    /// It stopped with an error.
    Error,
    /// The user stopped it.
    Aborted,
}

impl Outcome {
    /// The word in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Aborted => "aborted",
        }
    }
}

/// What the router had planned for a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Planned {
    /// Type of the task.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// Tier it aimed at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_tier: Option<String>,
    /// Thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Who assessed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Where labels and evidence do not fit: the label, and why.
pub(super) type Mismatch = (&'static str, String);

impl Evidence {
    /// Its length as compact JSON.
    pub(super) fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(0, |written| written.len())
    }

    /// The evidence without credentials, as a row keeps it; null when nothing is in it.
    pub(super) fn to_value(&self) -> Value {
        // Strings, numbers and truths only: writing cannot fail, and what serde_json writes is JSON.
        let written = serde_json::to_string(self).unwrap_or_default();
        let value = json::read(written.as_bytes()).unwrap_or(Value::Null);
        match redacted(value) {
            Value::Object(object) if object.is_empty() => Value::Null,
            value => value,
        }
    }

    /// Labels that cannot be right (training.md 2.3).
    pub(super) fn contradictions(&self, labels: &Labels) -> Vec<Mismatch> {
        let mut found = Vec::new();
        if let (Some(file), false) = (self.files.first(), labels.requires_write) {
            let message = format!(
                "must be true: {} changed, {} first",
                match self.files.len() {
                    1 => "1 file was".to_owned(),
                    several => format!("{several} files were"),
                },
                quoted(file)
            );
            found.push(("requires_write", message));
        }
        found
    }

    /// Labels that are unlikely to be right.
    pub(super) fn doubts(&self, labels: &Labels) -> Vec<Mismatch> {
        let mut found = Vec::new();
        if let Some(tier) = self
            .escalated_from()
            .filter(|tier| labels.capability_tier <= *tier)
        {
            found.push((
                "capability_tier",
                format!("{tier} was tried and escalated away from"),
            ));
        }
        let check = self
            .commands
            .iter()
            .find(|command| check_result(command, None) != CheckResult::NotACheck);
        if let (Some(command), false) = (check, labels.requires_tests) {
            found.push(("requires_tests", format!("{} ran", quoted(command))));
        }
        let needs = [
            (ToolClass::Web, "requires_web", labels.requires_web),
            (
                ToolClass::Browser,
                "requires_browser",
                labels.requires_browser,
            ),
            (
                ToolClass::Database,
                "requires_database",
                labels.requires_database,
            ),
        ];
        for (class, label, _) in needs.iter().filter(|(_, _, needed)| !needed) {
            let used = self
                .tools
                .keys()
                .find(|tool| classes_of(tool).contains(class));
            found.extend(used.map(|tool| (*label, format!("the tool {} was used", quoted(tool)))));
        }
        if !labels.requires_git
            && let Some(command) = self.commands.iter().find(|command| runs_git(command))
        {
            found.push(("requires_git", format!("{} ran", quoted(command))));
        }
        found
    }

    /// The highest tier after which a higher one ran.
    fn escalated_from(&self) -> Option<Tier> {
        let tiers: Vec<Tier> = self
            .models
            .iter()
            .filter_map(|model| tier_of(model))
            .collect();
        let left = tiers.windows(2).filter(|pair| pair[0] < pair[1]);
        left.map(|pair| pair[0]).max()
    }
}

/// `<tier>` of `provider/model (<tier> tier) • <thinking>`.
fn tier_of(model: &str) -> Option<Tier> {
    let (before, _) = model.rsplit_once(" tier)")?;
    before.rsplit_once('(')?.1.parse().ok()
}

/// Whether a command line runs git, alone or in a chain.
fn runs_git(command: &str) -> bool {
    command
        .split(['\n', ';', '&', '|', '('])
        .any(|part| part.split_whitespace().next() == Some("git"))
}

/// Text of somebody else in a message of ours: one line, short, in quotes, without credentials.
fn quoted(text: &str) -> String {
    let line = crate::hidden_message::one_line(text);
    format!("`{}`", crate::text::cut(&redact(&line), 60))
}

/// The value with every text in it free of credentials.
fn redacted(value: Value) -> Value {
    match value {
        Value::String(text) => match text.as_str().map(|plain| (plain, redact(plain))) {
            Some((plain, clean)) if clean != plain => clean.into_owned().into(),
            _ => Value::String(text),
        },
        Value::List(items) => Value::List(items.into_iter().map(redacted).collect()),
        Value::Object(object) => {
            let members = object.into_iter();
            Value::Object(members.map(|(key, value)| (key, redacted(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tiers_and_escalations() {
        let evidence = |models: &[&str]| Evidence {
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            ..Evidence::default()
        };
        let rows: &[(&[&str], Option<Tier>)] = &[
            (&[], None),
            (&["a/one (fast tier) • low"], None),
            (
                &["a/one (fast tier) • low", "b/two (balanced tier) • medium"],
                Some(Tier::Fast),
            ),
            (
                &["a/one (strong tier) • low", "b/two (balanced tier) • low"],
                None,
            ),
            (
                &[
                    "a/m (x) (fast tier) • low",
                    "?",
                    "b/two (strong tier) • low",
                ],
                Some(Tier::Fast),
            ),
        ];
        for (models, expected) in rows {
            assert_eq!(evidence(models).escalated_from(), *expected, "{models:?}");
        }
    }

    #[test]
    fn knows_git_in_a_chain() {
        assert!(runs_git("git status"));
        assert!(runs_git("cd x && git commit -m y"));
        assert!(!runs_git("grep git README.md"));
        assert!(!runs_git("gitleaks detect"));
    }
}
