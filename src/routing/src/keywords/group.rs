//! The closed set of keyword groups (routing.md 4.2): what a group may be called, and what kind of group it is.

use std::fmt;
use std::str::FromStr;

macro_rules! groups {
    ($($(#[$doc:meta])* $variant:ident = $id:literal),+ $(,)?) => {
        /// A list of terms with a meaning that the derivation knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Group {
            $($(#[$doc])* $variant,)+
        }

        impl Group {
            /// Every group; the position of a group here is its index.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The id used in keyword files.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $id),+ }
            }
        }

        impl FromStr for Group {
            type Err = UnknownGroup;

            fn from_str(id: &str) -> Result<Self, UnknownGroup> {
                match id {
                    $($id => Ok(Self::$variant),)+
                    _ => Err(UnknownGroup { got: id.to_owned() }),
                }
            }
        }
    };
}

/// An id that is no group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown group `{got}`: expected one of {}", Group::ALL.iter().map(|group| group.as_str()).collect::<Vec<_>>().join(", "))]
pub struct UnknownGroup {
    /// The id that was given.
    pub got: String,
}

groups! {
    /// Vulnerabilities, hardening, who may see what.
    TypeSecurity = "type.security",
    /// Structure across modules.
    TypeArchitecture = "type.architecture",
    /// The cause has to be found.
    TypeDebugging = "type.debugging",
    /// Tests are the product.
    TypeTest = "type.test",
    /// Wrong behaviour to be repaired.
    TypeBugFix = "type.bug_fix",
    /// Same behaviour, other structure.
    TypeRefactor = "type.refactor",
    /// Prose is the product.
    TypeDocumentation = "type.documentation",
    /// Understanding is the product.
    TypeResearch = "type.research",
    /// Something new.
    TypeFeature = "type.feature",
    /// A dictated change, or a small operation.
    TypeCodeEdit = "type.code_edit",
    /// Greetings and thanks; counts only when it is the whole text.
    MarkChat = "mark.chat",
    /// Spelling mistakes in texts.
    MarkSpelling = "mark.spelling",
    /// Visible text, labels, names, versions.
    MarkTrivial = "mark.trivial",
    /// Work most engineers need a day for (level 3).
    MarkHard = "mark.hard",
    /// Work most engineers get wrong at first (level 4).
    MarkExpert = "mark.expert",
    /// Hanging, leaking, racing, now and then: debugging without a recipe.
    MarkStuck = "mark.stuck",
    /// Something fails.
    MarkFail = "mark.fail",
    /// The goal is left open.
    MarkOpen = "mark.open",
    /// How identity is proven.
    TopicAuth = "topic.auth",
    /// Vulnerability classes and ids.
    TopicVulnerability = "topic.vulnerability",
    /// Secrets, credentials, permissions.
    TopicSecret = "topic.secret",
    /// Money that moves.
    TopicPayment = "topic.payment",
    /// What real users run on.
    TopicProduction = "topic.production",
    /// A migration of data or schema, as a noun.
    TopicMigration = "topic.migration",
    /// To migrate, as a verb.
    TopicMigrationVerb = "topic.migration_verb",
    /// Stored data.
    TopicData = "topic.data",
    /// Deleting stored data.
    TopicDestroy = "topic.destroy",
    /// One line or value.
    ScopeSingleLine = "scope.single_line",
    /// More than one repository.
    ScopeMultiRepository = "scope.multi_repository",
    /// The whole repository.
    ScopeRepository = "scope.repository",
    /// Several modules.
    ScopeMultiModule = "scope.multi_module",
    /// Phone platforms.
    AgentMobile = "agent.mobile",
    /// Containers, CI, servers, deployment.
    AgentDevops = "agent.devops",
    /// Schemas, queries, migrations.
    AgentDatabase = "agent.database",
    /// Web pages.
    AgentFrontend = "agent.frontend",
    /// APIs, services, jobs.
    AgentBackend = "agent.backend",
    /// Facts from outside.
    ToolWeb = "tool.web",
    /// It must be seen.
    ToolBrowser = "tool.browser",
    /// A database is used.
    ToolDatabase = "tool.database",
    /// Commits, branches, history.
    ToolGit = "tool.git",
    /// Go on (routing.md 13).
    FollowGoOn = "follow.go_on",
    /// That was wrong (routing.md 13).
    FollowWrong = "follow.wrong",
    /// The same, only as the first word and before a comma or the like.
    FollowNo = "follow.no",
    /// One thing more (routing.md 13).
    FollowAdd = "follow.add",
    /// What may stand before the first word that matters: greetings, please.
    FormLead = "form.lead",
    /// Interrogatives a question starts with.
    FormQuestion = "form.question",
    /// Interrogatives of languages that put them elsewhere.
    FormQuestionAnywhere = "form.question_anywhere",
    /// How an order in the form of a question starts.
    FormPolite = "form.polite",
    /// The same for languages that end with it.
    FormPoliteAnywhere = "form.polite_anywhere",
    /// Explain, describe, summarise, as the first words.
    FormExplain = "form.explain",
    /// The same for languages that end with the verb.
    FormExplainAnywhere = "form.explain_anywhere",
    /// Verbs that order something new when they come first, and describe elsewhere (`show`, `handle`).
    FormFeature = "form.feature",
    /// Verbs that order a small change when they come first (`use`, `set`, `run`).
    FormEdit = "form.edit",
    /// Run, execute, as the first words.
    FormRun = "form.run",
    /// Verbs of git, as the first words.
    FormGit = "form.git",
}

impl Group {
    /// Position in [`Group::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether a match means that the request is about something the lists know. Forms and follow-up words are
    /// grammar and appear in any request, and so does thanks.
    #[must_use]
    pub fn is_content(self) -> bool {
        let id = self.as_str();
        self != Self::MarkChat
            && ["type.", "mark.", "topic.", "scope.", "agent.", "tool."]
                .iter()
                .any(|prefix| id.starts_with(prefix))
    }

    /// The form whose verbs count for this type when they are the first word. Elsewhere they describe: `Use pnpm`
    /// orders a change, `where do we use pnpm` does not.
    #[must_use]
    pub const fn first_verbs(self) -> Option<Self> {
        match self {
            Self::TypeFeature => Some(Self::FormFeature),
            Self::TypeCodeEdit => Some(Self::FormEdit),
            _ => None,
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_back_and_indexes_agree() {
        for (index, group) in Group::ALL.iter().enumerate() {
            assert_eq!(group.as_str().parse(), Ok(*group));
            assert_eq!(group.index(), index);
        }
    }

    #[test]
    fn only_six_kinds_count_as_understood() {
        assert!(Group::ScopeMultiModule.is_content());
        assert!(!Group::FormQuestion.is_content());
        assert!(!Group::FollowGoOn.is_content());
    }
}
