//! Deterministic rules (routing.md 5): what the text alone demands, whatever a model believes. They see the full text.

use std::borrow::Cow;
use std::fmt;

use crate::keywords::{Group, Scan};
use crate::words::Stream;

/// Words that may lie between a migration and `production`, counted from one to the other.
const NEAR: usize = 20;

/// Id of a rule: one of the four built-in ones, or one that a policy added.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(Cow<'static, str>);

impl RuleId {
    /// A migration of data or schema in production.
    pub const PRODUCTION_DATABASE_MIGRATION: Self =
        Self(Cow::Borrowed("production-database-migration"));
    /// How identity is proven.
    pub const AUTHENTICATION: Self = Self(Cow::Borrowed("authentication"));
    /// Vulnerabilities.
    pub const SECURITY_VULNERABILITY: Self = Self(Cow::Borrowed("security-vulnerability"));
    /// Money that moves.
    pub const PAYMENT_PROCESSING: Self = Self(Cow::Borrowed("payment-processing"));

    /// The built-in rules, in the order they are reported.
    pub const BUILTIN: [Self; 4] = [
        Self::PRODUCTION_DATABASE_MIGRATION,
        Self::AUTHENTICATION,
        Self::SECURITY_VULNERABILITY,
        Self::PAYMENT_PROCESSING,
    ];

    /// A rule that a policy added.
    #[must_use]
    pub fn added(id: &str) -> Self {
        Self(Cow::Owned(id.to_owned()))
    }

    /// The id as it is written in policies and decisions.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the program itself brings this rule.
    #[must_use]
    pub fn is_builtin(&self) -> bool {
        Self::BUILTIN.contains(self)
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The rules that fire: built-in ones in their order, then the added ones in theirs. `added` are the ids the keywords
/// were compiled with (`Keywords::with_rules`), `disabled` the ids of built-in rules that the policy switched off.
/// A request for an explanation fires none.
#[must_use]
pub fn fired(
    scan: &Scan<'_>,
    added: &[impl AsRef<str>],
    disabled: &[impl AsRef<str>],
) -> Vec<RuleId> {
    if scan.explanatory() {
        return Vec::new();
    }
    let is_off = |rule: &RuleId| disabled.iter().any(|id| id.as_ref() == rule.as_str());
    let builtin = [
        production_migration(scan),
        scan.matches(Group::TopicAuth),
        scan.matches(Group::TopicVulnerability),
        scan.matches(Group::TopicPayment),
    ];
    RuleId::BUILTIN
        .into_iter()
        .zip(builtin)
        .filter(|(rule, fires)| *fires && !is_off(rule))
        .map(|(rule, _)| rule)
        .chain(
            added
                .iter()
                .filter(|id| scan.rule_matches(id.as_ref()))
                .map(|id| RuleId::added(id.as_ref())),
        )
        .collect()
}

/// A migration noun within 20 words of production, either order; or a migration verb so placed and stored data anywhere.
#[must_use]
pub fn production_migration(scan: &Scan<'_>) -> bool {
    near_production(scan, Group::TopicMigration)
        || (scan.matches(Group::TopicData) && near_production(scan, Group::TopicMigrationVerb))
}

/// Whether a match of the group begins within [`NEAR`] words of one of `topic.production`, in the same stream.
fn near_production(scan: &Scan<'_>, group: Group) -> bool {
    [Stream::Plain, Stream::Camel].into_iter().any(|stream| {
        let of = |group| {
            scan.all(group)
                .iter()
                .filter(move |found| found.stream == stream)
                .map(|found| found.first)
        };
        let mut production = of(Group::TopicProduction).peekable();
        // Both are in text order, so one walk over both finds the nearest pair.
        of(group).any(|at| {
            while production.next_if(|near| near + NEAR < at).is_some() {}
            production
                .peek()
                .is_some_and(|near| near.abs_diff(at) <= NEAR)
        })
    })
}
