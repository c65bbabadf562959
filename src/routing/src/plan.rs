//! The plan message: what routing believes about the task, as advice to the model that works on it (routing.md 15).
//! It only words what was decided elsewhere.

use decision::vocabulary::{Agent, Validation};

use crate::assessment::{Assessment, TOLERANCE};
use crate::hidden_message::{is_harness_message, one_line, percent};

/// How the hidden message begins.
pub const PLAN_MARKER: &str = "[laya:plan] ";

const HEADER: &str = "How this request was read before you got it. Guidance, not a constraint: what the user says and \
                      what you find out come first.";

/// From here on a request counts as unclear.
const UNCLEAR_FROM: f64 = 0.75;

/// Whether routing has anything stronger left to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Progress {
    /// It has, or nothing failed.
    #[default]
    Open,
    /// Failures went on at the strongest tier and effort (`exhausted`).
    Exhausted,
}

/// Whether the validation must be done or is advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// The task may not be called done without it.
    Required,
    /// A suggestion.
    Advised,
}

/// What a plan is made of.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// What the request is believed to need.
    pub assessment: &'a Assessment,
    /// Names of the best skills.
    pub skills: &'a [String],
    /// Tools that `enforce` removed for this request.
    pub deactivated: &'a [String],
    /// Validation after the floors of the policy.
    pub validation: Validation,
    /// Whether it must be done.
    pub demand: Demand,
    /// Ids of the rules that fired.
    pub rules: &'a [String],
    /// Whether a person should be asked.
    pub progress: Progress,
    /// Text of [`crate::lessons::lessons_message`].
    pub lessons: Option<&'a str>,
}

/// The plan text, or `None` when `request` is a message of the harness.
#[must_use]
pub fn plan_message(request: &str, plan: &Plan<'_>) -> Option<String> {
    if is_harness_message(request) {
        return None;
    }
    let lines = [
        Some(task_line(plan.assessment)),
        Some(format!("- Role: {}: {}", plan.assessment.agent, covers(plan.assessment.agent))),
        list(plan.skills).map(|skills| format!("- Skills: {skills}; load one only when it is needed")),
        Some(tools_line(plan.assessment)),
        list(plan.deactivated).map(|tools| format!("- Deactivated: {tools}")),
        validation_line(plan.validation, plan.demand),
        list(plan.rules).map(|rules| format!("- Sensitive: {rules}; prefer the safest correct change")),
        (plan.assessment.task.ambiguity >= UNCLEAR_FROM - TOLERANCE)
            .then(|| "- Unclear: the goal can be read in several ways; confirm it before you change anything".to_owned()),
        (plan.progress == Progress::Exhausted).then(|| {
            "- Stuck: attempts kept failing on the strongest model; ask the user what to change before trying again"
                .to_owned()
        }),
    ];
    let mut text = format!("{PLAN_MARKER}{HEADER}");
    for line in lines.into_iter().flatten() {
        text.push('\n');
        text.push_str(&line);
    }
    if let Some(lessons) = plan.lessons {
        text.push_str("\n\n");
        text.push_str(lessons);
    }
    Some(text)
}

fn task_line(assessment: &Assessment) -> String {
    let task = &assessment.task;
    format!(
        "- Task: {}, {}, complexity {}, risk {}",
        task.task_type.as_str().replace('_', " "),
        task.scope.as_str().replace('_', " "),
        percent(task.complexity),
        percent(task.risk),
    )
}

fn tools_line(assessment: &Assessment) -> String {
    let nouns = |wanted: bool| {
        let named = assessment.tools.named();
        let chosen: Vec<&str> = named
            .iter()
            .filter(|(_, needed)| *needed == wanted)
            .map(|(noun, _)| *noun)
            .collect();
        chosen.join(", ")
    };
    let (needed, unneeded) = (nouns(true), nouns(false));
    let needed = if needed.is_empty() {
        "read-only".to_owned()
    } else {
        format!("needs {needed}")
    };
    if unneeded.is_empty() {
        format!("- Tools: {needed}")
    } else {
        format!("- Tools: {needed}; not expected: {unneeded}")
    }
}

fn validation_line(level: Validation, demand: Demand) -> Option<String> {
    let hint = match level {
        Validation::None => return None,
        Validation::Syntax => "make sure that what you changed still parses and reads well",
        Validation::Compile => "build or type-check what you changed",
        Validation::UnitTest => {
            "run the tests of the part you changed, and add one for what is new"
        }
        Validation::IntegrationTest => {
            "run the parts together, across the boundary that this change touches"
        }
        Validation::Review => {
            "run the tests, then go through the whole diff as a reviewer would and report what is left open"
        }
    };
    let label = match demand {
        Demand::Required => "Validation (required)",
        Demand::Advised => "Validation",
    };
    Some(format!("- {label}: {hint}"))
}

/// What a role covers, in a few words.
const fn covers(agent: Agent) -> &'static str {
    match agent {
        Agent::SoftwareEngineer => "general code, scripts, tools and whatever no other role owns",
        Agent::BackendEngineer => "APIs, services, workers and jobs",
        Agent::FrontendEngineer => "web pages, components and styles in the browser",
        Agent::MobileEngineer => "apps on phones and tablets",
        Agent::DevopsEngineer => "containers, CI, servers, deployment and package management",
        Agent::DatabaseEngineer => "schemas, migrations, queries and indexes",
        Agent::SecurityEngineer => "identity, permissions, secrets and vulnerabilities",
        Agent::SoftwareArchitect => "boundaries, contracts and technology across modules",
        Agent::QaEngineer => "tests, fixtures and coverage",
        Agent::Researcher => "reading, comparing and explaining without changing anything",
    }
}

/// Names joined by commas, each on one line; `None` when there are none.
fn list(names: &[String]) -> Option<String> {
    let names: Vec<String> = names
        .iter()
        .map(|name| one_line(name))
        .filter(|name| !name.is_empty())
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use decision::vocabulary::{Effort, Scope, TaskType, Tier};

    use super::*;
    use crate::assessment::{Recommendation, Source, Task, ToolNeeds};

    /// "Fix the login token expiry", row 3 of routing.md 23.1.
    fn login_token_expiry() -> Assessment {
        Assessment {
            source: Source::Rules,
            task: Task {
                task_type: TaskType::BugFix,
                scope: Scope::Module,
                complexity: 0.5,
                risk: 1.0,
                ambiguity: 0.0,
                reasoning: 0.5,
            },
            recommendation: Recommendation {
                tier: Tier::Strong,
                effort: Effort::Medium,
            },
            agent: Agent::SecurityEngineer,
            validation: Validation::Review,
            tools: ToolNeeds {
                requires_write: true,
                requires_tests: true,
                ..ToolNeeds::default()
            },
            security_sensitive: true,
            confidence: 0.5,
            confidences: Assessment::uniform_confidences(0.5),
        }
    }

    fn plan(assessment: &Assessment) -> Plan<'_> {
        Plan {
            assessment,
            skills: &[],
            deactivated: &[],
            validation: Validation::None,
            demand: Demand::Advised,
            rules: &[],
            progress: Progress::Open,
            lessons: None,
        }
    }

    #[test]
    fn writes_every_line_in_order() {
        let mut assessment = login_token_expiry();
        assessment.task.ambiguity = 0.75;
        let (skills, deactivated, rules) = (
            ["auth-review".to_owned(), "two\nlines".to_owned()],
            ["web_fetch".to_owned()],
            ["authentication".to_owned()],
        );
        let text = plan_message(
            "Fix the login token expiry",
            &Plan {
                assessment: &assessment,
                skills: &skills,
                deactivated: &deactivated,
                validation: Validation::Review,
                demand: Demand::Required,
                rules: &rules,
                progress: Progress::Exhausted,
                lessons: Some("[laya:lessons] notes"),
            },
        )
        .unwrap();
        let mut lines = text.lines();
        assert!(lines.next().unwrap().starts_with("[laya:plan] "));
        let expected = [
            "- Task: bug fix, module, complexity 50%, risk 100%",
            "- Role: security-engineer: identity, permissions, secrets and vulnerabilities",
            "- Skills: auth-review, two lines; load one only when it is needed",
            "- Tools: needs file edits, tests; not expected: shell, web, browser, database, git",
            "- Deactivated: web_fetch",
            "- Validation (required): run the tests, then go through the whole diff as a reviewer would and report \
             what is left open",
            "- Sensitive: authentication; prefer the safest correct change",
            "- Unclear: the goal can be read in several ways; confirm it before you change anything",
            "- Stuck: attempts kept failing on the strongest model; ask the user what to change before trying again",
            "",
            "[laya:lessons] notes",
        ];
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn leaves_out_what_does_not_apply() {
        let mut assessment = login_token_expiry();
        assessment.tools = ToolNeeds::default();
        assessment.task.ambiguity = 0.5;
        let text = plan_message("What is this?", &plan(&assessment)).unwrap();
        let labels: Vec<_> = text
            .lines()
            .skip(1)
            .map(|line| line.split_once(':').unwrap().0)
            .collect();
        assert_eq!(labels, ["- Task", "- Role", "- Tools"]);
        assert!(text.ends_with("- Tools: read-only; not expected: file edits, shell, tests, web, browser, database, git"));
        assessment.tools = ToolNeeds {
            requires_write: true,
            requires_shell: true,
            requires_tests: true,
            requires_web: true,
            requires_browser: true,
            requires_database: true,
            requires_git: true,
        };
        let text = plan_message("Do it all", &plan(&assessment)).unwrap();
        assert!(
            text.ends_with("- Tools: needs file edits, shell, tests, web, browser, database, git")
        );
    }

    #[test]
    fn has_one_hint_per_validation_level() {
        let lines: Vec<_> = Validation::ALL
            .iter()
            .map(|level| validation_line(*level, Demand::Advised))
            .collect();
        assert_eq!(lines[0], None);
        for (at, line) in lines.iter().enumerate().skip(1) {
            assert!(line.as_ref().unwrap().starts_with("- Validation: "));
            assert!(!lines[..at].contains(line), "each level has its own");
        }
    }

    #[test]
    fn says_nothing_to_the_harness() {
        assert_eq!(
            plan_message(
                "[harness:evidence] run the tests",
                &plan(&login_token_expiry())
            ),
            None
        );
    }
}
