//! `RoutingPolicy`: the policy as a document (control-plane 6). Its form and limits; what it means is `routing::policy`.

mod convert;
mod limits;
mod scalar;

use std::collections::BTreeMap;

use decision::vocabulary::{Effort, Tier, Validation};
use jiff::civil::Date;
use routing::policy::{Policy, Problem};
use routing::registry::{Capabilities, ModelRef};
use routing::thinking::EffortSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use scalar::{Decimal, Ratio};

use crate::FieldError;
use crate::document::{self, DocumentError};

/// `apiVersion` of every object of ours.
pub const API_VERSION: &str = "relay.dev/v1alpha1";
/// `kind` of this one.
pub const KIND: &str = "RoutingPolicy";

/// A policy document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoutingPolicy {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Name and the like.
    pub metadata: Metadata,
    /// The policy.
    #[serde(default)]
    pub spec: RoutingPolicySpec,
    /// What a control plane wrote; not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// The part of `metadata` that is ours to read; what an API server adds is accepted and not read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// At most 40 characters of `a-z`, `0-9` and `-`, starting with a letter.
    pub name: String,
    /// Where it lives in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_fields: Vec<Value>,
    /// Set by a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Set by a controller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<Value>,
}

/// Names another object of the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Its name.
    pub name: String,
}

/// Every knob of routing. What is absent has the default of routing.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RoutingPolicySpec {
    /// The server that answers the questions; rules and memory only when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_ref: Option<Reference>,
    /// Profile in force when a request names none.
    pub profile: String,
    /// Own profiles, at most 8.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileSpec>,
    /// Tiers whose models replace the built-in ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierSpec>,
    /// What is known of models, at most 256.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelSpec>,
    /// Providers used when a request names none, at most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
    /// What savings are measured against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<ModelRef>,
    /// Added rules, at most 128.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSpec>,
    /// Built-in rules that are switched off, at most 16.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled_rules: Vec<String>,
    /// Edits of keyword groups, at most 128.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<KeywordSpec>,
    /// Limits at which behaviour changes.
    pub thresholds: ThresholdsSpec,
    /// Waits for the decision model.
    pub deadlines: DeadlinesSpec,
    /// Weighted failures until a task moves up, 0..=20; 0 = never.
    pub escalate_after_failures: u32,
    /// Whether tools that are not needed are switched off.
    pub tool_routing: ToolRoutingSpec,
    /// Whether learned tasks are asked.
    pub memory: bool,
    /// Whether outcomes are recorded.
    pub telemetry: bool,
    /// Probability that a new task tries another model of its tier.
    pub exploration: Ratio,
    /// Whether moving to another model inside a conversation has a price.
    pub switch_price: bool,
    /// Whether cost stands on tiers or on prices.
    pub cost_basis: CostBasisSpec,
    /// What happens when nothing reaches the floor.
    pub on_floor_unmet: OnFloorUnmetSpec,
    /// What is left of each provider's plan, at most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quota: Vec<QuotaSpec>,
    /// What is kept, and for how long.
    pub privacy: PrivacySpec,
}

impl Default for RoutingPolicySpec {
    fn default() -> Self {
        Self {
            server_ref: None,
            profile: "balanced".to_owned(),
            profiles: Vec::new(),
            tiers: Vec::new(),
            models: Vec::new(),
            providers: Vec::new(),
            baseline: None,
            rules: Vec::new(),
            disabled_rules: Vec::new(),
            keywords: Vec::new(),
            thresholds: ThresholdsSpec::default(),
            deadlines: DeadlinesSpec::default(),
            escalate_after_failures: 3,
            tool_routing: ToolRoutingSpec::Advise,
            memory: true,
            telemetry: true,
            exploration: Ratio::constant("0.05"),
            switch_price: true,
            cost_basis: CostBasisSpec::Tiers,
            on_floor_unmet: OnFloorUnmetSpec::Strongest,
            quota: Vec::new(),
            privacy: PrivacySpec::default(),
        }
    }
}

/// Weights of an own profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileSpec {
    /// Not the name of a built-in profile.
    pub name: String,
    /// Weight of success.
    pub quality: Ratio,
    /// Weight of cost.
    pub cost: Ratio,
    /// Weight of latency.
    pub latency: Ratio,
    /// Weight of risk.
    pub risk: Ratio,
    /// Success below this is not eligible.
    pub min_success: Ratio,
}

/// Models of a tier, in order of preference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierSpec {
    /// Which.
    pub name: Tier,
    /// 1 to 32 references.
    pub models: Vec<ModelRef>,
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelSpec {
    /// `provider/model`.
    #[serde(rename = "ref")]
    pub model: ModelRef,
    /// Tokens it can hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Efforts it supports, 1 to 8; all five when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efforts: Option<EffortSet>,
    /// What it can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// USD per million tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PricesSpec>,
    /// Not to be used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
}

/// USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PricesSpec {
    /// Read.
    pub input: Decimal,
    /// Read from the cache; the price of `input` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<Decimal>,
    /// Written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Decimal>,
    /// Written.
    pub output: Decimal,
    /// When they held, `YYYY-MM-DD`.
    pub as_of: String,
    /// Where they were read.
    pub source: String,
}

/// An added rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// Not the id of a built-in rule.
    pub id: String,
    /// 1 to 32 terms of at most 256 characters.
    pub patterns: Vec<String>,
    /// At most 32 terms around which a match does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<String>,
    /// A note for people: which languages the patterns cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// What it demands; strong, medium, review when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<FloorSpec>,
    /// A note for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a rule demands at least; a part that is absent demands nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloorSpec {
    /// Capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
}

/// An edit of a keyword group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeywordSpec {
    /// Id of the group.
    pub id: String,
    /// Terms to add, at most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<String>,
    /// Terms around which a match does not count, at most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<String>,
    /// Terms to take away, at most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// Limits at which behaviour changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ThresholdsSpec {
    /// Confidence below this asks for one tier more.
    pub min_confidence: Ratio,
    /// Similarity from which a learned task routes.
    pub memory_similarity: Ratio,
    /// Similarity from which a lesson is shown.
    pub memory_lesson: Ratio,
    /// Risk from which the floor is strong.
    pub high_risk: Ratio,
}

impl Default for ThresholdsSpec {
    fn default() -> Self {
        Self {
            min_confidence: Ratio::constant("0.5"),
            memory_similarity: Ratio::constant("0.6"),
            memory_lesson: Ratio::constant("0.45"),
            high_risk: Ratio::constant("0.66"),
        }
    }
}

/// Waits for the decision model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeadlinesSpec {
    /// For one request, 100..=60 000 ms.
    pub timeout_millis: u32,
    /// Until an open breaker lets one request try, 1..=3600 s.
    pub breaker_seconds: u32,
}

impl Default for DeadlinesSpec {
    fn default() -> Self {
        Self {
            timeout_millis: 5000,
            breaker_seconds: 60,
        }
    }
}

/// What is left of a provider's plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuotaSpec {
    /// Which provider.
    pub provider: String,
    /// How much is left.
    #[serde(default = "whole")]
    pub share: Ratio,
    /// USD per UTC day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_per_day: Option<Decimal>,
}

fn whole() -> Ratio {
    Ratio::constant("1")
}

/// What is kept, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PrivacySpec {
    /// `Full` in `relayd local`, `Hashed` in `relayd router` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_text: Option<RequestTextSpec>,
    /// 1..=3650.
    pub retention_days: u32,
}

impl Default for PrivacySpec {
    fn default() -> Self {
        Self {
            request_text: None,
            retention_days: 90,
        }
    }
}

macro_rules! spec_enum {
    ($(#[$doc:meta])* $name:ident => $target:path { $($(#[$vdoc:meta])* $variant:ident),+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl From<$name> for $target {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant),+ }
            }
        }
    };
}

spec_enum!(
    /// Whether tools that are not needed are switched off.
    ToolRoutingSpec => routing::tool_routing::ToolRouting {
        /// They are only named.
        Advise,
        /// They are switched off for the request.
        Enforce
    }
);
spec_enum!(
    /// What cost stands on.
    CostBasisSpec => routing::selection::CostBasis {
        /// One prior per tier.
        Tiers,
        /// Estimates, when all are known.
        Prices
    }
);
spec_enum!(
    /// What happens when nothing reaches the floor.
    OnFloorUnmetSpec => routing::selection::OnFloorUnmet {
        /// The strongest tier there is.
        Strongest,
        /// No decision.
        Refuse
    }
);
spec_enum!(
    /// How much text is kept.
    RequestTextSpec => routing::policy::RequestTextPrivacy {
        /// The text.
        Full,
        /// Digest and length.
        Hashed,
        /// Nothing.
        None
    }
);

/// Why a policy document is not used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// It is no document of this kind.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It is one, and what it says does not hold.
    #[error("{}", .0.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect::<Vec<_>>().join("; "))]
    Problems(Vec<Problem>),
}

impl RoutingPolicy {
    /// Reads one document and checks its form and limits.
    ///
    /// # Errors
    /// The place in the text, or the path of the field.
    pub fn read(text: &str) -> Result<Self, DocumentError> {
        let policy: Self = document::typed(document::read_yaml(text)?)?;
        match limits::check(&policy) {
            None => Ok(policy),
            Some(error) => Err(error.into()),
        }
    }

    /// Compiles what was read.
    ///
    /// # Errors
    /// Every problem, with its path below `spec`.
    pub fn compile(&self, today: Date) -> Result<Policy, PolicyError> {
        self.spec.compile(&self.metadata.name, today)
    }
}

impl RoutingPolicySpec {
    /// Digest of the spec with its defaults: the same policy has the same digest, however much of it was written.
    #[must_use]
    pub fn digest(&self) -> String {
        document::digest(&self.tree())
    }

    /// The spec with its defaults as a tree.
    #[must_use]
    pub fn tree(&self) -> Value {
        // Cannot fail: the type holds strings, integers, lists and structs only.
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// Compiles the spec under a name.
    ///
    /// # Errors
    /// Every problem, with its path below `spec`.
    pub fn compile(&self, name: &str, today: Date) -> Result<Policy, PolicyError> {
        let source = convert::source(self).map_err(DocumentError::from)?;
        Policy::compile(name, &self.digest(), source, today).map_err(|mut problems| {
            for problem in &mut problems {
                problem.path = format!("spec.{}", problem.path);
            }
            PolicyError::Problems(problems)
        })
    }
}

/// Checks the name of an object of ours (control-plane 1.1).
///
/// # Errors
/// The path and the rule.
pub fn check_name(path: &str, name: &str) -> Result<(), FieldError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = name.len() <= 40
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(allowed);
    if good {
        Ok(())
    } else {
        let rule = "must be 1 to 40 characters of a-z, 0-9 and `-`, start with a letter and not end with `-`";
        Err(FieldError::new(path, rule))
    }
}
