//! One node of a compiled schema.

use std::collections::BTreeMap;

use serde_json::Value;

use super::format::Format;
use super::pattern::Pattern;
use super::rules::Rule;

/// The JSON type a node asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
    /// No type: unknown fields are kept below it, or it is a branch of a junctor.
    #[default]
    Any,
}

impl Kind {
    /// The types as the API server lists them; empty where any will do.
    pub(super) const fn names(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntOrString => "integer,string",
            Self::Any => "",
        }
    }

    /// Whether the JSON type of that name is among them.
    pub(super) fn takes(self, name: &str) -> bool {
        self.names().split(',').any(|taken| taken == name)
    }
}

/// Whether a bound includes its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Inclusive,
    Exclusive,
}

/// A limit of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) limit: f64,
    pub(super) reach: Reach,
}

/// How a list merges, and what makes its items the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum List {
    #[default]
    Atomic,
    Set,
    /// Keyed by these fields.
    Map(Vec<String>),
}

/// What may stand under keys that `properties` does not name.
#[derive(Debug, Default)]
pub(super) enum Additional {
    /// Nothing: such keys are unknown.
    #[default]
    Unknown,
    /// Any scalar or list of scalars: the API server prunes objects there (`additionalProperties: true`).
    Any,
    Schema(Box<Node>),
}

impl Additional {
    pub(super) fn schema(&self) -> Option<&Node> {
        match self {
            Self::Schema(node) => Some(node),
            Self::Unknown | Self::Any => None,
        }
    }
}

/// A schema node, with everything that costs (expressions, rules) made beforehand.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    pub(super) default: Option<Value>,
    pub(super) format: Option<Format>,
    pub(super) allowed: Vec<Value>,
    pub(super) minimum: Option<Bound>,
    pub(super) maximum: Option<Bound>,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) required: Vec<String>,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) additional: Additional,
    pub(super) items: Option<Box<Node>>,
    pub(super) list: List,
    pub(super) preserves_unknown: bool,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Box<Node>>,
    pub(super) rules: Vec<Rule>,
    /// There are rules here or below.
    pub(super) has_rules: bool,
    /// There is a list keyed by fields, or a set, here or below: order does not count in a comparison.
    pub(super) has_unordered: bool,
}

impl Node {
    /// The node for a field or key of an object.
    pub(super) fn child(&self, key: &str) -> Option<&Self> {
        self.properties.get(key).or_else(|| self.additional.schema())
    }

    /// Nodes that stand for parts of the value (not junctors, which stand for the value itself).
    pub(super) fn children(&self) -> impl Iterator<Item = &Self> {
        self.properties.values().chain(self.additional.schema()).chain(self.items.as_deref())
    }
}
