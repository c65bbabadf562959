//! Keyword matches → an assessment (routing.md 4.4). Pure and total: every text has one. Each step notes what decided
//! it, so that `--explain` can say why.

use decision::vocabulary::{Agent, Effort, Scope, TaskType, Tier, Validation};

use crate::assessment::{Assessment, Recommendation, Source, Task, ToolNeeds};
use crate::keywords::scan::MatchedTerm;
use crate::keywords::{Group, Scan};
use crate::rules;

/// Confidence of a request in which something was recognised.
pub const KNOWN: f64 = 0.5;
/// Confidence of a request that no list understands, for example in another language.
pub const UNKNOWN: f64 = 0.3;
/// Content words below which a request says too little.
const FEW_WORDS: usize = 3;
/// Words beyond which a request is no small thing, whatever word is in it. Ours: what lowers a level (a trivial mark, a
/// spelling mark, `run`, `explain`) counts in short requests only, because long ones mention labels, versions and
/// commands on the way.
const SHORT: usize = 30;
/// Terms shown per group in an explanation.
const SHOWN_TERMS: usize = 3;

/// What an assessment by keywords is, and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// The typed facts, with source `rules`.
    pub assessment: Assessment,
    /// The whole text is a greeting or thanks.
    pub chat: bool,
    /// Nothing is to be changed.
    pub read_only: bool,
    /// Only an explanation is wanted: no rule fires.
    pub explanatory: bool,
    /// Complexity, 0..=4.
    pub complexity: u8,
    /// Risk, 0..=3.
    pub risk: u8,
    /// Ambiguity, 0..=2.
    pub ambiguity: u8,
    causes: Vec<(Field, &'static str, Cause)>,
}

/// A fact of an assessment that is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Type of the task.
    Type,
    /// Scope.
    Scope,
    /// Complexity level.
    Complexity,
    /// Security flag.
    Security,
    /// Risk level.
    Risk,
    /// Ambiguity level.
    Ambiguity,
    /// Role.
    Agent,
    /// Confidence.
    Confidence,
}

impl Field {
    /// The word for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Scope => "scope",
            Self::Complexity => "complexity",
            Self::Security => "security",
            Self::Risk => "risk",
            Self::Ambiguity => "ambiguity",
            Self::Agent => "agent",
            Self::Confidence => "confidence",
        }
    }
}

/// What a step rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// A match in this group.
    Group(Group),
    /// Something other than a list.
    Form,
}

/// One step of the derivation, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Which fact.
    pub field: Field,
    /// What was concluded, for example `bug_fix` or `raised to 3`.
    pub conclusion: String,
    /// The group that decided, if one did.
    pub group: Option<Group>,
    /// Terms of that group and the words they matched, at most three.
    pub terms: Vec<MatchedTerm>,
}

impl Derived {
    /// The steps in the order they were taken, with the words that decided them.
    #[must_use]
    pub fn reasons(&self, scan: &Scan<'_>) -> Vec<Reason> {
        let reason = |(field, conclusion, cause): &(Field, &'static str, Cause)| {
            let group = match cause {
                Cause::Group(group) => Some(*group),
                Cause::Form => None,
            };
            let terms = group
                .map(|group| scan.matched_terms(group, SHOWN_TERMS))
                .unwrap_or_default();
            Reason {
                field: *field,
                conclusion: (*conclusion).to_owned(),
                group,
                terms,
            }
        };
        self.causes.iter().map(reason).collect()
    }
}

/// The order in which types are looked for, strongest claim first.
const TYPES: &[(Group, TaskType)] = &[
    (Group::TypeSecurity, TaskType::Security),
    (Group::TypeArchitecture, TaskType::Architecture),
    (Group::TypeDebugging, TaskType::Debugging),
    (Group::TypeTest, TaskType::Test),
    (Group::TypeBugFix, TaskType::BugFix),
    (Group::TypeRefactor, TaskType::Refactor),
    (Group::TypeDocumentation, TaskType::Documentation),
    (Group::TypeResearch, TaskType::Research),
    (Group::TypeFeature, TaskType::Feature),
    (Group::TypeCodeEdit, TaskType::CodeEdit),
];

const SCOPES: &[(Group, Scope)] = &[
    (Group::ScopeSingleLine, Scope::SingleLine),
    (Group::ScopeMultiRepository, Scope::MultiRepository),
    (Group::ScopeRepository, Scope::Repository),
    (Group::ScopeMultiModule, Scope::MultiModule),
];

const AGENTS: &[(Group, Agent)] = &[
    (Group::AgentMobile, Agent::MobileEngineer),
    (Group::AgentDevops, Agent::DevopsEngineer),
    (Group::AgentDatabase, Agent::DatabaseEngineer),
    (Group::TopicDestroy, Agent::DatabaseEngineer),
    (Group::AgentFrontend, Agent::FrontendEngineer),
    (Group::AgentBackend, Agent::BackendEngineer),
];

const SENSITIVE_TOPICS: &[Group] = &[
    Group::TopicAuth,
    Group::TopicVulnerability,
    Group::TopicSecret,
    Group::TopicPayment,
];

/// Assesses a text that was read.
#[must_use]
pub fn derive(scan: &Scan<'_>) -> Derived {
    Derivation::new(scan).run()
}

/// The forms of a text, asked once, and the notes on the way.
struct Derivation<'s, 'a> {
    scan: &'s Scan<'a>,
    /// Question form that is not an order.
    question: bool,
    explanatory: bool,
    explains_first: bool,
    short: bool,
    chat: bool,
    causes: Vec<(Field, &'static str, Cause)>,
}

impl<'s, 'a> Derivation<'s, 'a> {
    fn new(scan: &'s Scan<'a>) -> Self {
        Self {
            scan,
            question: scan.question_form() && !scan.polite(),
            explanatory: scan.explanatory(),
            explains_first: scan.starts_with(Group::FormExplain)
                || scan.matches(Group::FormExplainAnywhere),
            short: scan.words().reading_length() <= SHORT,
            chat: scan.whole_text_is(Group::MarkChat, false),
            causes: Vec::with_capacity(12),
        }
    }

    fn run(mut self) -> Derived {
        let task_type = self.task_type();
        let read_only = matches!(
            task_type,
            TaskType::Question | TaskType::Research | TaskType::Architecture
        ) || (task_type == TaskType::Debugging && self.question);
        let scope = self.scope();
        let complexity = self.complexity(task_type, scope);
        let flag = self.security_flag(task_type);
        let risk = self.risk(complexity, flag);
        let ambiguity = self.ambiguity(task_type);
        let agent = self.agent(task_type, complexity);
        let validation = validation(task_type, read_only, complexity, flag);
        let confidence = self.confidence(task_type);
        let tier =
            (usize::from(complexity).saturating_sub(1)).max(if risk >= 2 || flag { 2 } else { 0 });
        Derived {
            assessment: Assessment {
                source: Source::Rules,
                task: Task {
                    task_type,
                    scope,
                    complexity: f64::from(complexity) / 4.0,
                    risk: f64::from(risk) / 3.0,
                    ambiguity: f64::from(ambiguity) / 2.0,
                    reasoning: f64::from(complexity) / 4.0,
                },
                recommendation: Recommendation {
                    tier: Tier::from_index(tier).unwrap_or(Tier::Frontier),
                    effort: Effort::from_index(complexity.into()).unwrap_or(Effort::ExtraHigh),
                },
                agent,
                validation,
                tools: self.tools(task_type, read_only, agent, validation),
                security_sensitive: flag,
                confidence,
                confidences: Assessment::uniform_confidences(confidence),
            },
            chat: self.chat,
            read_only,
            explanatory: self.explanatory,
            complexity,
            risk,
            ambiguity,
            causes: self.causes,
        }
    }

    fn note(&mut self, field: Field, conclusion: &'static str, cause: Cause) {
        self.causes.push((field, conclusion, cause));
    }

    /// The first pair whose group matches.
    fn first<T: Copy>(&self, pairs: &[(Group, T)]) -> Option<(Group, T)> {
        pairs
            .iter()
            .copied()
            .find(|(group, _)| self.scan.matches(*group))
    }

    fn task_type(&mut self) -> TaskType {
        if self.chat {
            self.note(
                Field::Type,
                "question: only a greeting or thanks",
                Cause::Group(Group::MarkChat),
            );
            return TaskType::Question;
        }
        let Some((group, found)) = self.first(TYPES) else {
            let asks = self.scan.ends_with_question_mark() || self.scan.starts_with_interrogative();
            let (task_type, why) = if asks {
                (
                    TaskType::Question,
                    "question: no word of a type, and it asks",
                )
            } else {
                (TaskType::CodeEdit, "code_edit: no word of a type")
            };
            self.note(Field::Type, why, Cause::Form);
            return task_type;
        };
        if found == TaskType::Feature && self.short && self.only_runs() {
            self.note(
                Field::Type,
                "code_edit: something is run",
                Cause::Group(Group::FormRun),
            );
            return TaskType::CodeEdit;
        }
        self.note(Field::Type, found.as_str(), Cause::Group(group));
        if self.question && found != TaskType::Debugging {
            self.note(
                Field::Type,
                "question: it asks and orders nothing",
                Cause::Form,
            );
            return TaskType::Question;
        }
        found
    }

    /// Starts with a verb of running or of git.
    fn only_runs(&self) -> bool {
        self.scan.starts_with(Group::FormRun) || self.scan.starts_with(Group::FormGit)
    }

    fn scope(&mut self) -> Scope {
        if let Some((group, scope)) = self.first(SCOPES) {
            self.note(Field::Scope, scope.as_str(), Cause::Group(group));
            scope
        } else if self.scan.file_reference() {
            self.note(Field::Scope, "single_file: a file is named", Cause::Form);
            Scope::SingleFile
        } else {
            Scope::Module
        }
    }

    fn complexity(&mut self, task_type: TaskType, scope: Scope) -> u8 {
        if self.chat {
            return 0;
        }
        let mut level = self.base_level(task_type, scope);
        let text_work = matches!(
            task_type,
            TaskType::CodeEdit | TaskType::BugFix | TaskType::Documentation
        );
        if self.short
            && (text_work || task_type == TaskType::Refactor)
            && self.scan.matches(Group::MarkTrivial)
        {
            level = u8::from(scope >= Scope::MultiModule);
            self.note(
                Field::Complexity,
                "lowered: small visible change",
                Cause::Group(Group::MarkTrivial),
            );
        }
        let (cap, capped) = match task_type {
            TaskType::Question | TaskType::Documentation => (2, "2: hard subject, only told about"),
            TaskType::Research => (3, "3: hard subject, only read about"),
            _ => (4, ""),
        };
        for (group, hard, raised) in [
            (Group::MarkExpert, 4, "raised to 4"),
            (Group::MarkHard, 3, "raised to 3"),
        ] {
            if self.scan.matches(group) {
                if hard.min(cap) > level {
                    level = hard.min(cap);
                    let conclusion = if hard > cap { capped } else { raised };
                    self.note(Field::Complexity, conclusion, Cause::Group(group));
                }
                break;
            }
        }
        if self.short && text_work && self.scan.matches(Group::MarkSpelling) {
            level = 0;
            self.note(
                Field::Complexity,
                "0: spelling",
                Cause::Group(Group::MarkSpelling),
            );
        }
        level
    }

    /// The level that goes with a type before anything else is known. Ours: to explain a whole repository is research
    /// like any other, as it has to be read.
    fn base_level(&mut self, task_type: TaskType, scope: Scope) -> u8 {
        let (level, cause) = match task_type {
            TaskType::Question | TaskType::CodeEdit | TaskType::Documentation => (1, None),
            TaskType::BugFix | TaskType::Refactor | TaskType::Feature => (2, None),
            TaskType::Architecture | TaskType::Security => (3, None),
            TaskType::Test if self.short && self.scan.starts_with(Group::FormRun) => {
                (1, Some((Group::FormRun, "1: only run")))
            }
            TaskType::Research
                if self.short && self.explains_first && scope < Scope::MultiModule =>
            {
                (1, Some((Group::FormExplain, "1: only explain")))
            }
            TaskType::Debugging if !self.question && self.scan.matches(Group::MarkStuck) => {
                (3, Some((Group::MarkStuck, "3: no recipe for finding it")))
            }
            TaskType::Test | TaskType::Research | TaskType::Debugging => (2, None),
        };
        if let Some((group, conclusion)) = cause {
            self.note(Field::Complexity, conclusion, Cause::Group(group));
        }
        level
    }

    fn security_flag(&mut self, task_type: TaskType) -> bool {
        if task_type == TaskType::Security {
            self.note(
                Field::Security,
                "sensitive: security is the goal",
                Cause::Group(Group::TypeSecurity),
            );
            return true;
        }
        if self.explanatory {
            return false;
        }
        let topic = SENSITIVE_TOPICS
            .iter()
            .find(|group| self.scan.matches(**group));
        if let Some(group) = topic {
            self.note(Field::Security, "sensitive", Cause::Group(*group));
        } else if rules::production_migration(self.scan) {
            self.note(
                Field::Security,
                "sensitive: data migration in production",
                Cause::Group(Group::TopicProduction),
            );
        } else {
            return false;
        }
        true
    }

    fn risk(&mut self, complexity: u8, flag: bool) -> u8 {
        let level = if complexity >= 3 {
            2
        } else {
            u8::from(complexity == 2)
        };
        if self.explanatory {
            return level.min(1);
        }
        let topic = [Group::TopicProduction, Group::TopicDestroy]
            .into_iter()
            .find(|group| self.scan.matches(*group));
        match topic {
            _ if flag => 3,
            Some(group) => {
                self.note(Field::Risk, "3: live or lost data", Cause::Group(group));
                3
            }
            None => level,
        }
    }

    fn ambiguity(&mut self, task_type: TaskType) -> u8 {
        let few = self.scan.content_words() < FEW_WORDS && !self.scan.file_reference();
        if few && task_type != TaskType::Question {
            self.note(
                Field::Ambiguity,
                "2: hardly a word with meaning",
                Cause::Form,
            );
            2
        } else if self.scan.matches(Group::MarkOpen) {
            self.note(
                Field::Ambiguity,
                "1: the goal is open",
                Cause::Group(Group::MarkOpen),
            );
            1
        } else {
            0
        }
    }

    fn agent(&mut self, task_type: TaskType, complexity: u8) -> Agent {
        match task_type {
            TaskType::Security => return Agent::SecurityEngineer,
            TaskType::Architecture => return Agent::SoftwareArchitect,
            _ if complexity == 4 => return Agent::SoftwareArchitect,
            TaskType::Test => return Agent::QaEngineer,
            TaskType::Question | TaskType::Research => return Agent::Researcher,
            _ => {}
        }
        let guards = [Group::TopicAuth, Group::TopicVulnerability]
            .into_iter()
            .find(|group| self.scan.matches(*group));
        let (group, agent) = match guards {
            Some(group) if task_type != TaskType::Documentation && !self.explanatory => {
                (group, Agent::SecurityEngineer)
            }
            _ => match self.first(AGENTS) {
                Some(found) => found,
                None => return Agent::SoftwareEngineer,
            },
        };
        self.note(Field::Agent, agent.as_str(), Cause::Group(group));
        agent
    }

    fn tools(
        &self,
        task_type: TaskType,
        read_only: bool,
        agent: Agent,
        validation: Validation,
    ) -> ToolNeeds {
        let scan = self.scan;
        let write = !read_only && !self.chat && !self.only_runs();
        ToolNeeds {
            requires_write: write,
            requires_shell: agent == Agent::DevopsEngineer || task_type == TaskType::Debugging,
            requires_tests: (write && validation >= Validation::Compile)
                || task_type == TaskType::Test,
            requires_web: scan.matches(Group::ToolWeb),
            requires_browser: agent == Agent::FrontendEngineer && scan.matches(Group::ToolBrowser),
            requires_database: agent == Agent::DatabaseEngineer
                || scan.matches(Group::ToolDatabase),
            requires_git: scan.matches(Group::ToolGit),
        }
    }

    fn confidence(&mut self, task_type: TaskType) -> f64 {
        let known = task_type == TaskType::Question
            || self.question
            || Group::ALL
                .iter()
                .any(|group| group.is_content() && self.scan.matches(*group));
        if known {
            KNOWN
        } else {
            self.note(
                Field::Confidence,
                "unknown: no list understands a word of it",
                Cause::Form,
            );
            UNKNOWN
        }
    }
}

/// The weakest check that would do; the first line that applies.
fn validation(task_type: TaskType, read_only: bool, complexity: u8, flag: bool) -> Validation {
    match task_type {
        TaskType::Architecture => Validation::Review,
        _ if read_only => Validation::None,
        TaskType::Documentation => Validation::Syntax,
        TaskType::CodeEdit => Validation::Compile,
        _ if flag => Validation::Review,
        _ if complexity >= 3 => Validation::IntegrationTest,
        _ => Validation::UnitTest,
    }
}
