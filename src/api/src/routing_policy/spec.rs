//! Fields of a `RoutingPolicy`: one definition for files (serde) and, with feature `kinds`, for the schema of the CRD.
//! What the schema cannot say is checked by `limits` and by `routing::policy`; a test holds the two together.

// `KubeSchema` copies a struct, with its `pub`, into a function.
#![cfg_attr(feature = "kinds", allow(unreachable_pub))]

use decision::vocabulary::{Effort, Tier, Validation};
use routing::registry::{Capabilities, ModelRef};
use routing::thinking::EffortSet;
use serde::{Deserialize, Serialize};

use super::{Decimal, Ratio};

/// A key has a character that is no white space.
#[cfg(feature = "kinds")]
const KEY: &str = r"\S";

/// Names another object of the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Its name.
    #[cfg_attr(feature = "kinds", schemars(length(min = 1, max = 40), regex(pattern = crate::group::NAME_PATTERN)))]
    pub name: String,
}

/// Every knob of routing; what is absent has its default.
// The copy that `KubeSchema` makes of the struct has no `Default` of its own, hence the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(kube::CustomResource, kube::KubeSchema))]
#[cfg_attr(
    feature = "kinds",
    kube(
        group = "relay.dev",
        version = "v1alpha1",
        kind = "RoutingPolicy",
        root = "RoutingPolicyResource",
        plural = "routingpolicies",
        singular = "routingpolicy",
        shortname = "rp",
        category = "relay",
        namespaced,
        status = "crate::kinds::RoutingPolicyStatus",
        derive = "PartialEq",
        doc = "Everything an operator may choose about routing: models and prices, profiles, rules, limits, privacy.",
        printcolumn(
            name = "Profile",
            type_ = "string",
            json_path = ".spec.profile",
            description = "Profile in force when a request names none"
        ),
        printcolumn(
            name = "Accepted",
            type_ = "string",
            json_path = r#".status.conditions[?(@.type=="Accepted")].status"#,
            description = "Whether the spec compiles"
        ),
        printcolumn(
            name = "Reason",
            type_ = "string",
            json_path = r#".status.conditions[?(@.type=="Accepted")].reason"#,
            description = "Why, of condition Accepted"
        ),
        printcolumn(
            name = "Revision",
            type_ = "string",
            json_path = ".status.acceptedRevision",
            description = "Revision that routers use"
        ),
        printcolumn(
            name = "Age",
            type_ = "date",
            json_path = ".metadata.creationTimestamp",
            description = "Time since creation"
        ),
        printcolumn(
            name = "Server",
            type_ = "string",
            json_path = ".spec.serverRef.name",
            description = "LayaServer that answers the questions",
            priority = 1
        ),
        printcolumn(
            name = "Models",
            type_ = "integer",
            json_path = ".status.summary.models",
            description = "Models of the accepted revision",
            priority = 1
        ),
        printcolumn(
            name = "Rules",
            type_ = "integer",
            json_path = ".status.summary.rules",
            description = "Added rules of the accepted revision",
            priority = 1
        )
    )
)]
#[cfg_attr(feature = "kinds", x_kube(
        validation = Rule::new("self.profile in ['economy','balanced','quality','critical'] || (has(self.profiles) && self.profiles.exists(p, p.name == self.profile))")
            .message("must be economy, balanced, quality, critical, or the name of an entry of profiles")
            .field_path(".profile")
    ))]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default = "RoutingPolicySpec::default"
)]
pub struct RoutingPolicySpec {
    /// LayaServer that answers the questions; without it rules and memory decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "Reference"))]
    pub server_ref: Option<Reference>,
    /// Profile in force when a request names none: economy, balanced, quality, critical, or one of profiles.
    #[cfg_attr(feature = "kinds", schemars(length(min = 1, max = 128)))]
    pub profile: String,
    /// Own profiles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kinds", schemars(length(max = 8)))]
    #[cfg_attr(feature = "kinds", x_kube(merge_strategy = ListMerge::Map(vec!["name".into()])))]
    pub profiles: Vec<ProfileSpec>,
    /// Tiers whose models replace the built-in ones; a tier that is not named keeps its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kinds", schemars(length(min = 1, max = 4)))]
    #[cfg_attr(feature = "kinds", x_kube(merge_strategy = ListMerge::Map(vec!["name".into()])))]
    pub tiers: Vec<TierSpec>,
    /// What is known of models. With one entry or more, every model of tiers needs one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kinds", schemars(length(max = 256)))]
    #[cfg_attr(feature = "kinds", x_kube(merge_strategy = ListMerge::Map(vec!["ref".into()])))]
    pub models: Vec<ModelSpec>,
    /// Providers with credentials, used when a request names none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kinds", schemars(length(max = 64), inner(length(min = 1, max = 128), regex(pattern = KEY))))]
    #[cfg_attr(feature = "kinds", x_kube(merge_strategy = ListMerge::Set))]
    pub providers: Vec<String>,
    /// provider/model that savings are measured against; the first strong one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "ModelRef"))]
    pub baseline: Option<ModelRef>,
    /// Rules beside the built-in ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kinds", schemars(length(max = 128)))]
    #[cfg_attr(feature = "kinds", x_kube(merge_strategy = ListMerge::Map(vec!["id".into()])))]
    pub rules: Vec<RuleSpec>,
    /// Built-in rules that are switched off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kinds", schemars(length(max = 16), inner(length(min = 1, max = 128), regex(pattern = KEY))))]
    #[cfg_attr(feature = "kinds", x_kube(merge_strategy = ListMerge::Set))]
    pub disabled_rules: Vec<String>,
    /// Changes to groups of keywords.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kinds", schemars(length(max = 128)))]
    #[cfg_attr(feature = "kinds", x_kube(merge_strategy = ListMerge::Map(vec!["id".into()])))]
    pub keywords: Vec<KeywordSpec>,
    /// Limits at which behaviour changes.
    pub thresholds: ThresholdsSpec,
    /// Waits for the decision model.
    pub deadlines: DeadlinesSpec,
    /// Weighted failures until a task moves up; 0 = never.
    #[cfg_attr(feature = "kinds", schemars(range(max = 20)))]
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
    /// What is left of each provider's plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kinds", schemars(length(max = 64)))]
    #[cfg_attr(feature = "kinds", x_kube(merge_strategy = ListMerge::Map(vec!["provider".into()])))]
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
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileSpec {
    /// How requests name it; not the name of a built-in profile.
    #[cfg_attr(feature = "kinds", schemars(length(min = 1, max = 128), regex(pattern = KEY)))]
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
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TierSpec {
    /// The tier.
    pub name: Tier,
    /// provider/model, best first; a model stands in one tier only.
    #[cfg_attr(
        feature = "kinds",
        schemars(length(min = 1, max = 32), inner(length(min = 1)))
    )]
    pub models: Vec<ModelRef>,
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelSpec {
    /// `provider/model`.
    #[serde(rename = "ref")]
    pub model: ModelRef,
    /// Tokens it can hold; conversations that do not fit exclude it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "kinds",
        schemars(with = "u64", range(max = 9_223_372_036_854_775_807_u64))
    )]
    pub context_window: Option<u64>,
    /// Efforts it supports; all five when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "kinds",
        schemars(with = "Vec<Effort>", length(min = 1, max = 8))
    )]
    pub efforts: Option<EffortSet>,
    /// What it can do; taken to be all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "kinds",
        schemars(with = "Vec<routing::registry::Capability>", length(max = 8))
    )]
    pub capabilities: Option<Capabilities>,
    /// USD per million tokens; without them its cost stays unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "PricesSpec"))]
    pub prices: Option<PricesSpec>,
    /// Never chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
}

/// USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PricesSpec {
    /// Price of what is read.
    pub input: Decimal,
    /// Price of what is read from the prompt cache; that of input when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "Decimal"))]
    pub cached_input: Option<Decimal>,
    /// Price of what is written to the prompt cache; that of input when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "Decimal"))]
    pub cache_write: Option<Decimal>,
    /// Price of what is written, thinking included.
    pub output: Decimal,
    /// Day they were read, as 2026-11-30; after 90 days there is a warning.
    #[cfg_attr(feature = "kinds", schemars(length(min = 10, max = 10), extend("format" = "date")))]
    pub as_of: String,
    /// Where they were read.
    #[cfg_attr(feature = "kinds", schemars(length(max = 128)))]
    pub source: String,
}

/// An added rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// Decisions and metrics name it; not the id of a built-in rule.
    #[cfg_attr(feature = "kinds", schemars(length(min = 1, max = 128), regex(pattern = KEY)))]
    pub id: String,
    /// Terms, one of which fires the rule.
    #[cfg_attr(
        feature = "kinds",
        schemars(length(min = 1, max = 32), inner(length(min = 1, max = 256)))
    )]
    pub patterns: Vec<String>,
    /// Terms inside which a match does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "kinds",
        schemars(length(max = 32), inner(length(min = 1, max = 256)))
    )]
    pub unless: Vec<String>,
    /// A note for people: which languages the patterns cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "kinds",
        schemars(length(max = 32), inner(length(min = 1, max = 32)))
    )]
    pub languages: Vec<String>,
    /// What it demands; strong, medium, review when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "FloorSpec"))]
    pub floor: Option<FloorSpec>,
    /// A note for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "String", length(max = 1024)))]
    pub note: Option<String>,
}

/// What a rule demands at least; a part that is absent demands nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FloorSpec {
    /// Least tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "Tier"))]
    pub tier: Option<Tier>,
    /// Least effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "Effort"))]
    pub effort: Option<Effort>,
    /// Least validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "Validation"))]
    pub validation: Option<Validation>,
}

/// An edit of a keyword group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeywordSpec {
    /// The group, for example topic.payment.
    #[cfg_attr(feature = "kinds", schemars(length(min = 1, max = 128), regex(pattern = KEY)))]
    pub id: String,
    /// Terms to add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "kinds",
        schemars(length(max = 256), inner(length(min = 1, max = 256)))
    )]
    pub any: Vec<String>,
    /// Terms inside which a match does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "kinds",
        schemars(length(max = 256), inner(length(min = 1, max = 256)))
    )]
    pub unless: Vec<String>,
    /// Terms to take away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "kinds",
        schemars(length(max = 256), inner(length(min = 1, max = 256)))
    )]
    pub remove: Vec<String>,
}

/// Limits at which behaviour changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeadlinesSpec {
    /// For one request.
    #[cfg_attr(feature = "kinds", schemars(range(min = 100, max = 60_000)))]
    pub timeout_millis: u32,
    /// Until an open breaker lets one request try.
    #[cfg_attr(feature = "kinds", schemars(range(min = 1, max = 3600)))]
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
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuotaSpec {
    /// The provider.
    #[cfg_attr(feature = "kinds", schemars(length(min = 1, max = 128), regex(pattern = KEY)))]
    pub provider: String,
    /// Share that is left.
    #[serde(default = "whole")]
    pub share: Ratio,
    /// USD per UTC day; no bound when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "Decimal"))]
    pub budget_per_day: Option<Decimal>,
}

fn whole() -> Ratio {
    Ratio::constant("1")
}

/// What is kept, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PrivacySpec {
    /// How much text is kept; Full in relayd local, Hashed in relayd router when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kinds", schemars(with = "RequestTextSpec"))]
    pub request_text: Option<RequestTextSpec>,
    /// Days that records are kept.
    #[cfg_attr(feature = "kinds", schemars(range(min = 1, max = 3650)))]
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
        #[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
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
