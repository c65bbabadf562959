//! The closed word lists behind Relay's own 18 questions: task types, scopes, tiers, efforts, agents, validation
//! levels and question ids, each in contract order (routing.md 1.1). It knows words and their order, nothing else.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A word that is not in the closed list it was looked up in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{got}`: expected one of {expected}")]
pub struct UnknownWord {
    /// The list that was asked, for example `tier`.
    pub what: &'static str,
    /// The word that was given.
    pub got: String,
    /// The words of the list in order, joined by `, `.
    pub expected: String,
}

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in contract order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word used in JSON, files and on the command line.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Position in contract order, from 0.
            #[must_use]
            pub const fn index(self) -> usize {
                self as usize
            }

            /// The value at a position in contract order, if there is one.
            #[must_use]
            pub fn from_index(index: usize) -> Option<Self> {
                Self::ALL.get(index).copied()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord {
                        what: $what,
                        got: word.to_owned(),
                        expected: [$($word),+].join(", "),
                    }),
                }
            }
        }
    };
}

vocabulary!(
    /// What a request wants now (`task_type`).
    TaskType, "task type", {
    /// One reply settles it.
    Question = "question",
    /// A change dictated so exactly that no design is left.
    CodeEdit = "code_edit",
    /// Wrong behaviour whose cause is visible.
    BugFix = "bug_fix",
    /// Same behaviour, other structure.
    Refactor = "refactor",
    /// Something new can be done or seen.
    Feature = "feature",
    /// Tests are the product.
    Test = "test",
    /// Boundaries, schemas or technology across modules.
    Architecture = "architecture",
    /// The cause is unknown.
    Debugging = "debugging",
    /// Who may do what, secrets, holes.
    Security = "security",
    /// The product is understanding.
    Research = "research",
    /// Prose is the product.
    Documentation = "documentation",
});

vocabulary!(
    /// The least of the codebase that must change or be read (`scope`).
    Scope, "scope", {
    /// One value or line.
    SingleLine = "single_line",
    /// One file, or none.
    SingleFile = "single_file",
    /// A few files that belong together.
    Module = "module",
    /// Several packages.
    MultiModule = "multi_module",
    /// Everywhere in one repository.
    Repository = "repository",
    /// Two or more repositories.
    MultiRepository = "multi_repository",
});

vocabulary!(
    /// How capable a model must be (`capability_tier`), weakest first.
    Tier, "tier", {
    /// Cheapest and quickest.
    Fast = "fast",
    /// Ordinary work.
    Balanced = "balanced",
    /// Hard or delicate work.
    Strong = "strong",
    /// The strongest there is.
    Frontier = "frontier",
});

vocabulary!(
    /// How much a model should think (`reasoning_effort`), least first.
    Effort, "effort", {
    /// As little as possible.
    Minimal = "minimal",
    /// A little.
    Low = "low",
    /// Ordinary.
    Medium = "medium",
    /// Long.
    High = "high",
    /// As long as the model supports short of `max`.
    ExtraHigh = "extra_high",
});

vocabulary!(
    /// The role where the decisive knowledge lies (`agent`).
    Agent, "agent", {
    /// Everything no other role owns.
    SoftwareEngineer = "software-engineer",
    /// APIs, services, jobs.
    BackendEngineer = "backend-engineer",
    /// Web pages in the browser.
    FrontendEngineer = "frontend-engineer",
    /// Phone platforms.
    MobileEngineer = "mobile-engineer",
    /// Containers, CI, servers, deployment.
    DevopsEngineer = "devops-engineer",
    /// Schemas, migrations, queries.
    DatabaseEngineer = "database-engineer",
    /// Security boundaries.
    SecurityEngineer = "security-engineer",
    /// Structure across modules.
    SoftwareArchitect = "software-architect",
    /// Tests.
    QaEngineer = "qa-engineer",
    /// Reading and explaining.
    Researcher = "researcher",
});

vocabulary!(
    /// The weakest check after which a result may be trusted (`validation_level`), weakest first.
    Validation, "validation level", {
    /// Nothing to check.
    None = "none",
    /// It parses.
    Syntax = "syntax",
    /// It compiles.
    Compile = "compile",
    /// Unit tests.
    UnitTest = "unit_test",
    /// Integration tests.
    IntegrationTest = "integration_test",
    /// A person or a second model reads it.
    Review = "review",
});

vocabulary!(
    /// Ids of Relay's own 18 questions, in contract order.
    QuestionId, "question id", {
    /// `task_type`
    TaskType = "task_type",
    /// `complexity`
    Complexity = "complexity",
    /// `scope`
    Scope = "scope",
    /// `risk`
    Risk = "risk",
    /// `ambiguity`
    Ambiguity = "ambiguity",
    /// `reasoning_requirement`
    ReasoningRequirement = "reasoning_requirement",
    /// `capability_tier`
    CapabilityTier = "capability_tier",
    /// `reasoning_effort`
    ReasoningEffort = "reasoning_effort",
    /// `agent`
    Agent = "agent",
    /// `validation_level`
    ValidationLevel = "validation_level",
    /// `requires_write`
    RequiresWrite = "requires_write",
    /// `requires_shell`
    RequiresShell = "requires_shell",
    /// `requires_tests`
    RequiresTests = "requires_tests",
    /// `requires_web`
    RequiresWeb = "requires_web",
    /// `requires_browser`
    RequiresBrowser = "requires_browser",
    /// `requires_database`
    RequiresDatabase = "requires_database",
    /// `requires_git`
    RequiresGit = "requires_git",
    /// `security_sensitive`
    SecuritySensitive = "security_sensitive",
});

impl Tier {
    /// The next stronger tier, or itself at the top.
    #[must_use]
    pub fn up(self) -> Self {
        Self::from_index(self.index() + 1).unwrap_or(self)
    }
}

impl Effort {
    /// The next higher effort, or itself at the top.
    #[must_use]
    pub fn up(self) -> Self {
        Self::from_index(self.index() + 1).unwrap_or(self)
    }

    /// The thinking level that clients of a model are given: `extra_high` is `xhigh`, the others keep their word.
    #[must_use]
    pub const fn thinking_level(self) -> &'static str {
        match self {
            Self::ExtraHigh => "xhigh",
            other => other.as_str(),
        }
    }
}
