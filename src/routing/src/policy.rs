//! The policy: everything an operator may choose about routing, compiled once and then only read (control-plane 6,
//! routing.md 5–9). Checks say the path of each problem in the words of the document, so that a person can find it.

use std::collections::BTreeMap;
use std::sync::Arc;

use decision::vocabulary::Tier;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::keywords::{self, GroupEdit, Keywords};
use crate::profile::{self, Profile};
use crate::registry::{EntryPatch, ModelRef, Registry, RegistryError, STALE_AFTER_DAYS};
use crate::requirement::{Floor, RequirementThresholds};
use crate::rules::RuleId;
use crate::selection::{CostBasis, OnFloorUnmet};
use crate::tool_routing::ToolRouting;

/// How much of a request's text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestTextPrivacy {
    /// The text.
    Full,
    /// Digest and length.
    Hashed,
    /// Nothing.
    None,
}

/// Limits in 0..=1 at which behaviour changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Confidence below this asks for one tier more.
    pub min_confidence: f64,
    /// Similarity from which a learned task routes.
    pub memory_similarity: f64,
    /// Similarity from which a lesson is shown.
    pub memory_lesson: f64,
    /// Risk from which the floor is strong.
    pub high_risk: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            min_confidence: 0.5,
            memory_similarity: 0.6,
            memory_lesson: 0.45,
            high_risk: 0.66,
        }
    }
}

/// Waits for the decision model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// For one request, 100..=60 000 ms.
    pub timeout_millis: u32,
    /// Until an open breaker lets one request try, 1..=3600 s.
    pub breaker_seconds: u32,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            timeout_millis: 5000,
            breaker_seconds: 60,
        }
    }
}

/// A rule that a policy adds to the built-in ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedRule {
    /// Its id; not one of the built-in ids.
    pub id: String,
    /// Terms of routing.md 4.1, any of which fires it.
    pub patterns: Vec<String>,
    /// Terms around which a match does not count.
    pub unless: Vec<String>,
    /// What it demands; the floor of the built-in rules when absent.
    pub floor: Option<Floor>,
}

/// What is left of a provider's plan.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaShare {
    /// 0..=1.
    pub share: f64,
    /// USD per UTC day, if bounded.
    pub budget_per_day: Option<f64>,
}

/// Every knob of a policy, not yet checked. [`PolicySource::default`] is the policy that holds when nobody wrote one.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicySource {
    /// Profile in force when the request names none.
    pub profile: String,
    /// Own profiles.
    pub profiles: Vec<Profile>,
    /// Tiers whose models are replaced.
    pub tiers: Vec<(Tier, Vec<ModelRef>)>,
    /// What is known of models. When not empty, a tier may only name models that are here.
    pub models: Vec<EntryPatch>,
    /// Providers used when a request names none; all when `None`.
    pub providers: Option<Vec<String>>,
    /// What savings are measured against; the first strong candidate when `None`.
    pub baseline: Option<ModelRef>,
    /// Added rules.
    pub rules: Vec<AddedRule>,
    /// Built-in rules that are switched off.
    pub disabled_rules: Vec<String>,
    /// Edits of the keyword groups.
    pub keywords: Vec<GroupEdit>,
    /// Limits.
    pub thresholds: Thresholds,
    /// Waits.
    pub deadlines: Deadlines,
    /// Weighted failures until a task moves up; 0 = never.
    pub escalate_after_failures: u32,
    /// Advice or force.
    pub tool_routing: ToolRouting,
    /// Whether learned tasks are asked.
    pub memory: bool,
    /// Whether outcomes are recorded.
    pub telemetry: bool,
    /// Probability of exploration, 0..=1.
    pub exploration: f64,
    /// Whether moving inside a conversation has a price.
    pub switch_price: bool,
    /// Priors or prices.
    pub cost_basis: CostBasis,
    /// Strongest or nothing.
    pub on_floor_unmet: OnFloorUnmet,
    /// Plans, by provider.
    pub quota: BTreeMap<String, QuotaShare>,
    /// How much text is kept; `None` leaves it to the program.
    pub request_text: Option<RequestTextPrivacy>,
    /// Days that records are kept, 1..=3650.
    pub retention_days: u32,
}

impl Default for PolicySource {
    fn default() -> Self {
        Self {
            profile: "balanced".to_owned(),
            profiles: Vec::new(),
            tiers: Vec::new(),
            models: Vec::new(),
            providers: None,
            baseline: None,
            rules: Vec::new(),
            disabled_rules: Vec::new(),
            keywords: Vec::new(),
            thresholds: Thresholds::default(),
            deadlines: Deadlines::default(),
            escalate_after_failures: 3,
            tool_routing: ToolRouting::default(),
            memory: true,
            telemetry: true,
            exploration: 0.05,
            switch_price: true,
            cost_basis: CostBasis::default(),
            on_floor_unmet: OnFloorUnmet::default(),
            quota: BTreeMap::new(),
            request_text: None,
            retention_days: 90,
        }
    }
}

/// Whether a problem keeps a policy from being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Severity {
    /// The policy is refused.
    Error,
    /// It is used, and somebody should know.
    Warning,
}

/// What a problem is about, in one word (control-plane 6): what a condition names as its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PolicyProblemReason"))]
pub enum ProblemReason {
    /// A value that the form allows and that does not hold: an unknown profile or rule, a name that is taken.
    InvalidSpec,
    /// A tier names a model that `models` lacks.
    UnknownModel,
    /// A term of a rule or of a keyword group that cannot be read, or a rule without one.
    BadPattern,
    /// A tier without a model.
    EmptyTier,
    /// A model whose cost stays unknown.
    MissingPrice,
    /// A price that is too old to be believed.
    StalePrice,
    /// A model that no tier names.
    UnusedModel,
}

impl ProblemReason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::InvalidSpec,
        Self::UnknownModel,
        Self::BadPattern,
        Self::EmptyTier,
        Self::MissingPrice,
        Self::StalePrice,
        Self::UnusedModel,
    ];

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidSpec => "InvalidSpec",
            Self::UnknownModel => "UnknownModel",
            Self::BadPattern => "BadPattern",
            Self::EmptyTier => "EmptyTier",
            Self::MissingPrice => "MissingPrice",
            Self::StalePrice => "StalePrice",
            Self::UnusedModel => "UnusedModel",
        }
    }
}

/// Why a policy is not, or not quite, as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PolicyProblem"))]
pub struct Problem {
    /// Field of the document, for example `rules[0].patterns[1]`.
    pub path: String,
    /// What is wrong and what to do.
    pub message: String,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub reason: ProblemReason,
}

impl Problem {
    fn error(reason: ProblemReason, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            severity: Severity::Error,
            reason,
        }
    }

    fn warning(reason: ProblemReason, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            severity: Severity::Warning,
            reason,
        }
    }
}

/// A policy in force: checked, with its keyword groups compiled.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Name of the document; `default` for the built-in one.
    pub name: String,
    /// `sha256:…` over the canonical document.
    pub digest: String,
    /// What was compiled.
    pub source: PolicySource,
    /// Models by tier.
    pub registry: Registry,
    /// Keyword groups with the policy's own; `None` where the built-in ones hold as they are.
    keywords: Option<Arc<Keywords>>,
    /// What is not as it should be, though accepted.
    pub warnings: Vec<Problem>,
}

impl Policy {
    /// The policy that holds when nobody wrote one. `digest` is that of the empty document, which the caller computes
    /// because it knows the form.
    ///
    /// # Errors
    /// When the built-in data is damaged, which a test rules out.
    pub fn builtin(digest: &str, today: Date) -> Result<Self, Vec<Problem>> {
        Self::compile("default", digest, PolicySource::default(), today)
    }

    /// Checks and compiles a policy.
    ///
    /// # Errors
    /// Every problem of severity `Error`, with warnings among them.
    pub fn compile(
        name: &str,
        digest: &str,
        source: PolicySource,
        today: Date,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        check_numbers(&source, &mut problems);
        check_profile(&source, &mut problems);
        check_rules(&source, &mut problems);
        let registry = compile_registry(&source, today, &mut problems);
        let keywords = compile_keywords(&source, &mut problems);
        let failed = problems
            .iter()
            .any(|problem| problem.severity == Severity::Error);
        match keywords {
            Some(keywords) if !failed => Ok(Self {
                name: name.to_owned(),
                digest: digest.to_owned(),
                source,
                registry,
                keywords,
                warnings: problems,
            }),
            _ => Err(problems),
        }
    }

    /// The policy with further edits of its keyword groups, as a user's own keyword file has them.
    ///
    /// # Errors
    /// Every edit that cannot be.
    pub fn with_keywords(self, edits: &[GroupEdit], today: Date) -> Result<Self, Vec<Problem>> {
        let Self {
            name,
            digest,
            mut source,
            ..
        } = self;
        source.keywords.extend_from_slice(edits);
        Self::compile(&name, &digest, source, today)
    }

    /// Keyword groups, with those of the added rules.
    #[must_use]
    pub fn keywords(&self) -> &Keywords {
        match &self.keywords {
            Some(own) => own,
            None => Keywords::builtin(),
        }
    }

    /// Ids of the rules the policy added, in order.
    #[must_use]
    pub fn added_rule_ids(&self) -> Vec<&str> {
        self.source
            .rules
            .iter()
            .map(|rule| rule.id.as_str())
            .collect()
    }

    /// First 10 hex digits of the digest.
    #[must_use]
    pub fn revision(&self) -> &str {
        let hex = self.digest.strip_prefix("sha256:").unwrap_or(&self.digest);
        hex.get(..10).unwrap_or(hex)
    }

    /// A profile by name: one of the policy's own, else a built-in one.
    #[must_use]
    pub fn profile(&self, name: &str) -> Option<Profile> {
        let own = self
            .source
            .profiles
            .iter()
            .find(|profile| profile.name == name);
        own.cloned().or_else(|| Profile::built_in(name))
    }

    /// Names of every profile there is, own ones first.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        let own = self
            .source
            .profiles
            .iter()
            .map(|profile| profile.name.as_str());
        own.chain(profile::BUILT_IN_NAMES.iter().copied())
    }

    /// The thresholds of [`crate::requirement`].
    #[must_use]
    pub fn requirement_thresholds(&self) -> RequirementThresholds {
        let Thresholds {
            min_confidence,
            high_risk,
            ..
        } = self.source.thresholds;
        RequirementThresholds {
            min_confidence,
            high_risk,
        }
    }
}

fn check_numbers(source: &PolicySource, problems: &mut Vec<Problem>) {
    let Thresholds {
        min_confidence,
        memory_similarity,
        memory_lesson,
        high_risk,
    } = source.thresholds;
    let ratios = [
        ("thresholds.minConfidence", min_confidence),
        ("thresholds.memorySimilarity", memory_similarity),
        ("thresholds.memoryLesson", memory_lesson),
        ("thresholds.highRisk", high_risk),
        ("exploration", source.exploration),
    ];
    for (path, value) in ratios {
        if !(0.0..=1.0).contains(&value) {
            problems.push(Problem::error(
                ProblemReason::InvalidSpec,
                path,
                format!("is {value}, must lie between 0 and 1"),
            ));
        }
    }
    let ranges = [
        (
            "deadlines.timeoutMillis",
            source.deadlines.timeout_millis,
            100,
            60_000,
        ),
        (
            "deadlines.breakerSeconds",
            source.deadlines.breaker_seconds,
            1,
            3600,
        ),
        (
            "escalateAfterFailures",
            source.escalate_after_failures,
            0,
            20,
        ),
        ("privacy.retentionDays", source.retention_days, 1, 3650),
    ];
    for (path, value, low, high) in ranges {
        if !(low..=high).contains(&value) {
            problems.push(Problem::error(
                ProblemReason::InvalidSpec,
                path,
                format!("is {value}, must lie between {low} and {high}"),
            ));
        }
    }
    for (provider, quota) in &source.quota {
        if !(0.0..=1.0).contains(&quota.share) {
            let path = format!("quota[{provider}].share");
            problems.push(Problem::error(
                ProblemReason::InvalidSpec,
                path,
                format!("is {}, must lie between 0 and 1", quota.share),
            ));
        }
    }
}

fn check_profile(source: &PolicySource, problems: &mut Vec<Problem>) {
    for profile in &source.profiles {
        if profile::BUILT_IN_NAMES.contains(&profile.name.as_str()) {
            let path = format!("profiles[{}]", profile.name);
            problems.push(Problem::error(
                ProblemReason::InvalidSpec,
                path,
                "has the name of a built-in profile; choose another",
            ));
        }
    }
    let known = profile::BUILT_IN_NAMES.contains(&source.profile.as_str())
        || source
            .profiles
            .iter()
            .any(|profile| profile.name == source.profile);
    if !known {
        let own = source.profiles.iter().map(|profile| profile.name.as_str());
        let names: Vec<_> = own.chain(profile::BUILT_IN_NAMES.iter().copied()).collect();
        let message = format!(
            "`{}` is unknown; there are {}",
            source.profile,
            names.join(", ")
        );
        problems.push(Problem::error(
            ProblemReason::InvalidSpec,
            "profile",
            message,
        ));
    }
}

fn compile_registry(source: &PolicySource, today: Date, problems: &mut Vec<Problem>) -> Registry {
    let mut registry = Registry::built_in().clone();
    if !source.models.is_empty() {
        for (tier, models) in &source.tiers {
            let unknown =
                |wanted: &&ModelRef| !source.models.iter().any(|model| model.model == **wanted);
            for model in models.iter().filter(unknown) {
                let path = format!("tiers[{tier}].models");
                problems.push(Problem::error(
                    ProblemReason::UnknownModel,
                    path,
                    format!("`{model}` is not in `models`; add it there"),
                ));
            }
        }
    }
    if let Err(error) = registry.replace_tiers(&source.tiers) {
        let reason = match error {
            RegistryError::EmptyTier { .. } => ProblemReason::EmptyTier,
            RegistryError::Parse(_)
            | RegistryError::Version { .. }
            | RegistryError::Duplicate { .. } => ProblemReason::InvalidSpec,
        };
        problems.push(Problem::error(reason, "tiers", error.to_string()));
    }
    let (listed, others): (Vec<_>, Vec<_>) = source
        .models
        .iter()
        .cloned()
        .partition(|model| registry.entry(&model.model).is_some());
    registry.patch(&listed);
    for model in &others {
        let path = format!("models[{}]", model.model);
        problems.push(Problem::warning(
            ProblemReason::UnusedModel,
            path,
            "is in no tier and never chosen",
        ));
    }
    for model in &listed {
        check_prices(&format!("models[{}]", model.model), model, today, problems);
    }
    registry
}

fn check_prices(path: &str, model: &EntryPatch, today: Date, problems: &mut Vec<Problem>) {
    match &model.prices {
        None => problems.push(Problem::warning(
            ProblemReason::MissingPrice,
            path,
            "has no prices; its cost stays unknown",
        )),
        Some(prices) if prices.stale(today) => {
            let message =
                format!("is more than {STALE_AFTER_DAYS} days ago; look the price up again");
            problems.push(Problem::warning(
                ProblemReason::StalePrice,
                format!("{path}.prices.asOf"),
                message,
            ));
        }
        Some(_) => {}
    }
}

fn check_rules(source: &PolicySource, problems: &mut Vec<Problem>) {
    for (at, id) in source.disabled_rules.iter().enumerate() {
        if !RuleId::BUILTIN.iter().any(|rule| rule.as_str() == id) {
            let names: Vec<_> = RuleId::BUILTIN.iter().map(RuleId::as_str).collect();
            let message = format!("`{id}` is no built-in rule; there are {}", names.join(", "));
            problems.push(Problem::error(
                ProblemReason::InvalidSpec,
                format!("disabledRules[{at}]"),
                message,
            ));
        }
    }
    for (at, rule) in source.rules.iter().enumerate() {
        if RuleId::BUILTIN
            .iter()
            .any(|builtin| builtin.as_str() == rule.id)
        {
            problems.push(Problem::error(
                ProblemReason::InvalidSpec,
                format!("rules[{at}].id"),
                "is the id of a built-in rule; choose another",
            ));
        }
    }
}

/// `None` when a term is wrong; `Some(None)` where the built-in groups hold as they are.
#[allow(clippy::option_option)]
fn compile_keywords(
    source: &PolicySource,
    problems: &mut Vec<Problem>,
) -> Option<Option<Arc<Keywords>>> {
    if source.keywords.is_empty() && source.rules.is_empty() {
        return Some(None);
    }
    let rules: Vec<_> = source
        .rules
        .iter()
        .map(|rule| keywords::AddedRule {
            id: rule.id.clone(),
            patterns: rule.patterns.clone(),
            unless: rule.unless.clone(),
        })
        .collect();
    // Each step names its list, for the paths inside are counted from its own start.
    let named = |list: &'static str| {
        move |wrong: Vec<keywords::Problem>| {
            let problem = |problem: keywords::Problem| {
                let reason = match problem.cause {
                    keywords::Cause::Term => ProblemReason::BadPattern,
                    keywords::Cause::Edit => ProblemReason::InvalidSpec,
                };
                Problem::error(reason, format!("{list}{}", problem.path), problem.message)
            };
            wrong.into_iter().map(problem).collect::<Vec<_>>()
        }
    };
    let edited = Keywords::builtin()
        .with_edits(&source.keywords)
        .map_err(named("keywords"));
    match edited.and_then(|edited| edited.with_rules(&rules).map_err(named("rules"))) {
        Ok(keywords) => Some(Some(Arc::new(keywords))),
        Err(wrong) => {
            problems.extend(wrong);
            None
        }
    }
}
