//! Which of the user's tools a request needs, and what becomes of the others (routing.md 16). Tools are known by name
//! alone; a tool we do not know stays.

use serde::{Deserialize, Serialize};

use crate::assessment::ToolNeeds;

/// What is done about tools that a request does not need (`laya.toolRouting`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolRouting {
    /// The plan says so.
    #[default]
    Advise,
    /// They are also switched off for this request.
    Enforce,
}

/// A kind of tool, as the questions `requires_*` have them, in contract order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolClass {
    /// Creates or changes files.
    Write,
    /// Runs commands.
    Shell,
    /// Runs checks.
    Tests,
    /// Reads what is outside.
    Web,
    /// Sees and clicks.
    Browser,
    /// Queries or changes a database.
    Database,
    /// Commits, branches, history.
    Git,
}

impl ToolClass {
    /// Every class, in contract order.
    pub const ALL: &'static [Self] = &[
        Self::Write,
        Self::Shell,
        Self::Tests,
        Self::Web,
        Self::Browser,
        Self::Database,
        Self::Git,
    ];

    /// Whether a request with these needs needs tools of this class.
    #[must_use]
    pub const fn is_needed(self, needs: &ToolNeeds) -> bool {
        match self {
            Self::Write => needs.requires_write,
            Self::Shell => needs.requires_shell,
            Self::Tests => needs.requires_tests,
            Self::Web => needs.requires_web,
            Self::Browser => needs.requires_browser,
            Self::Database => needs.requires_database,
            Self::Git => needs.requires_git,
        }
    }
}

/// The classes of a tool, by its name; empty for a tool we do not know.
#[must_use]
pub fn classes_of(tool: &str) -> Vec<ToolClass> {
    let name = tool.to_lowercase();
    let contains = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    let mut classes = Vec::new();
    if matches!(
        tool,
        "edit" | "write" | "multiedit" | "multi_edit" | "apply_patch"
    ) {
        classes.push(ToolClass::Write);
    }
    if tool == "bash" {
        classes.extend([ToolClass::Shell, ToolClass::Tests, ToolClass::Git]);
    }
    if contains(&["web", "fetch", "search_web", "http"]) {
        classes.push(ToolClass::Web);
    }
    if contains(&["browser", "playwright", "puppeteer"]) {
        classes.push(ToolClass::Browser);
    }
    if contains(&["sql", "database", "postgres", "mysql"]) || has_word(tool, "db") {
        classes.push(ToolClass::Database);
    }
    classes
}

/// Whether `word` is one of the words of `name`, which end at anything that is no letter or digit and at lower→Upper.
fn has_word(name: &str, word: &str) -> bool {
    let mut opened = String::with_capacity(name.len() + 4);
    let mut after_lower = false;
    for c in name.chars() {
        if after_lower && c.is_uppercase() {
            opened.push(' ');
        }
        after_lower = c.is_lowercase();
        opened.push(c);
    }
    opened
        .split(|c: char| !c.is_alphanumeric())
        .any(|part| part.eq_ignore_ascii_case(word))
}

/// Which tools a request needs (`tools` of the decision record).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolPlan {
    /// Classes it needs.
    pub needed: Vec<ToolClass>,
    /// Classes it does not.
    pub unneeded: Vec<ToolClass>,
    /// Active tools to switch off; empty unless enforced.
    pub deactivate: Vec<String>,
}

/// What to do with the active tools of a request.
#[must_use]
pub fn plan_tools(routing: ToolRouting, needs: &ToolNeeds, active: &[String]) -> ToolPlan {
    let (needed, unneeded) = ToolClass::ALL
        .iter()
        .partition(|class| class.is_needed(needs));
    let deactivate = match routing {
        ToolRouting::Advise => Vec::new(),
        ToolRouting::Enforce => active
            .iter()
            .filter(|tool| is_removable(tool, needs))
            .cloned()
            .collect(),
    };
    ToolPlan {
        needed,
        unneeded,
        deactivate,
    }
}

/// A tool goes only if we know what it is for and the request needs none of that.
fn is_removable(tool: &str, needs: &ToolNeeds) -> bool {
    let classes = classes_of(tool);
    !classes.is_empty() && !classes.iter().any(|class| class.is_needed(needs))
}

/// The set of active tools as the user made it, across the requests for which it was reduced. Keep one per
/// conversation; [`restore`](Self::restore) it before the next plan, when enforcement ends and when another model is
/// selected.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UserTools {
    /// The active set is the user's.
    #[default]
    Untouched,
    /// We switched tools off.
    Reduced {
        /// The set before.
        users: Vec<String>,
        /// The set we left active.
        left: Vec<String>,
    },
}

impl UserTools {
    /// The set the user wants, given what is active now: the one from before, unless the user changed the active set
    /// meanwhile, whose choice then stands.
    #[must_use]
    pub fn restore(self, active: Vec<String>) -> Vec<String> {
        match self {
            Self::Reduced { users, left } if same_set(&active, &left) => users,
            _ => active,
        }
    }

    /// Switches tools off: what to remember, and the set to make active. `users` is a restored set.
    #[must_use]
    pub fn reduce(users: Vec<String>, deactivate: &[String]) -> (Self, Vec<String>) {
        let left: Vec<String> = users
            .iter()
            .filter(|tool| !deactivate.contains(tool))
            .cloned()
            .collect();
        if left.len() == users.len() {
            return (Self::Untouched, left);
        }
        (
            Self::Reduced {
                users,
                left: left.clone(),
            },
            left,
        )
    }
}

fn same_set(one: &[String], other: &[String]) -> bool {
    one.iter().all(|tool| other.contains(tool)) && other.iter().all(|tool| one.contains(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn knows_tools_by_name() {
        use ToolClass::{Browser, Database, Git, Shell, Tests, Web, Write};
        let rows: &[(&str, &[ToolClass])] = &[
            ("edit", &[Write]),
            ("write", &[Write]),
            ("multiedit", &[Write]),
            ("multi_edit", &[Write]),
            ("apply_patch", &[Write]),
            ("bash", &[Shell, Tests, Git]),
            ("read", &[]),
            ("rewrite", &[]),
            ("bash_output", &[]),
            ("edit_note", &[]),
            ("webSearch", &[Web]),
            ("mcp__Fetch__get", &[Web]),
            ("http_request", &[Web]),
            ("playwright_click", &[Browser]),
            ("web_browser", &[Web, Browser]),
            ("run_sql", &[Database]),
            ("postgres_query", &[Database]),
            ("query-db", &[Database]),
            ("openDb", &[Database]),
            ("feedback", &[]),
            ("dbt", &[]),
        ];
        for (name, expected) in rows {
            assert_eq!(classes_of(name), *expected, "{name}");
        }
    }

    #[test]
    fn removes_only_known_tools_that_serve_no_need() {
        let active = names(&[
            "read",
            "edit",
            "bash",
            "web_browser",
            "query_db",
            "laya_learn",
        ]);
        let rows: &[(&str, ToolNeeds, &[&str])] = &[
            (
                "nothing needed",
                ToolNeeds::default(),
                &["edit", "bash", "web_browser", "query_db"],
            ),
            (
                "one class of several is enough",
                ToolNeeds {
                    requires_git: true,
                    requires_web: true,
                    ..ToolNeeds::default()
                },
                &["edit", "query_db"],
            ),
            (
                "write",
                ToolNeeds {
                    requires_write: true,
                    requires_tests: true,
                    ..ToolNeeds::default()
                },
                &["web_browser", "query_db"],
            ),
        ];
        for (name, needs, expected) in rows {
            let plan = plan_tools(ToolRouting::Enforce, needs, &active);
            assert_eq!(plan.deactivate, names(expected), "{name}");
            let advice = plan_tools(ToolRouting::Advise, needs, &active);
            assert_eq!(
                advice,
                ToolPlan {
                    deactivate: Vec::new(),
                    ..plan
                },
                "{name}: advice removes nothing"
            );
        }
    }

    #[test]
    fn gives_the_users_set_back() {
        let users = names(&["read", "edit", "bash"]);
        let (remembered, left) =
            UserTools::reduce(users.clone(), &names(&["edit", "bash", "gone"]));
        assert_eq!(left, names(&["read"]));
        assert_eq!(
            remembered.clone().restore(left),
            users,
            "unchanged meanwhile"
        );
        assert_eq!(
            remembered.restore(names(&["read", "web_fetch"])),
            names(&["read", "web_fetch"]),
            "the user changed it: the user's set wins"
        );
        let (untouched, left) = UserTools::reduce(users.clone(), &[]);
        assert_eq!((untouched.clone(), &left), (UserTools::Untouched, &users));
        assert_eq!(untouched.restore(names(&["read"])), names(&["read"]));
    }

    #[test]
    fn order_is_no_change() {
        let (remembered, _) = UserTools::reduce(names(&["a", "edit", "b"]), &names(&["edit"]));
        assert_eq!(
            remembered.restore(names(&["b", "a"])),
            names(&["a", "edit", "b"])
        );
    }
}
