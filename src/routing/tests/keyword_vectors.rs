//! Keywords, derivation and rules against the tables of routing.md: 23.1 up to the column `conf.` and the rules, the
//! must and must-not columns of sections 4.2 and 5, and the phrases below 23.1.

use routing::derive::derive;
use routing::keywords::{Group, Keywords};
use routing::rules::{self, RuleId};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    row: u32,
    request: String,
    assessment: Expected,
    policy: Policy,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Expected {
    r#type: String,
    complexity: u8,
    risk: u8,
    ambiguity: u8,
    scope: String,
    tier: String,
    effort: String,
    agent: String,
    validation: String,
    tools: Vec<String>,
    security_sensitive: bool,
    confidence: f64,
}

#[derive(Deserialize)]
struct Policy {
    rules: Vec<String>,
}

const NONE: [&str; 0] = [];

fn fired(text: &str) -> Vec<String> {
    let scan = Keywords::builtin().scan(text);
    rules::fired(&scan, &NONE, &NONE)
        .iter()
        .map(|rule| rule.as_str().to_owned())
        .collect()
}

fn assess(text: &str) -> Expected {
    let scan = Keywords::builtin().scan(text);
    let derived = derive(&scan);
    let assessment = derived.assessment;
    let tools = serde_json::to_value(assessment.tools).expect("tools are plain JSON");
    let needed = |name: &&str| tools[*name] == serde_json::Value::Bool(true);
    let names = [
        "requires_write",
        "requires_shell",
        "requires_tests",
        "requires_web",
        "requires_browser",
        "requires_database",
        "requires_git",
    ];
    Expected {
        r#type: assessment.task.task_type.to_string(),
        complexity: derived.complexity,
        risk: derived.risk,
        ambiguity: derived.ambiguity,
        scope: assessment.task.scope.to_string(),
        tier: assessment.recommendation.tier.to_string(),
        effort: assessment.recommendation.effort.to_string(),
        agent: assessment.agent.to_string(),
        validation: assessment.validation.to_string(),
        tools: names
            .iter()
            .filter(|name| needed(name))
            .map(|name| (*name).to_owned())
            .collect(),
        security_sensitive: assessment.security_sensitive,
        confidence: assessment.confidence,
    }
}

#[test]
fn rows_of_23_1() {
    let vectors: Vectors = serde_json::from_str(include_str!("vectors/rules_and_policy.json"))
        .expect("the vectors are valid");
    assert_eq!(vectors.rows.len(), 39);
    let mut wrong = Vec::new();
    for Row {
        row,
        request,
        assessment: mut expected,
        policy,
    } in vectors.rows
    {
        let mut got = assess(&request);
        expected.tools.sort();
        got.tools.sort();
        let rules = fired(&request);
        if got != expected || rules != policy.rules {
            let scan = Keywords::builtin().scan(&request);
            let why = derive(&scan).reasons(&scan);
            wrong.push(format!("row {row}: {request}\n  got  {got:?} {rules:?}\n  want {expected:?} {:?}\n  {why:?}", policy.rules));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} rows differ\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn phrases_that_fire() {
    let rows: &[(&str, &[&str])] = &[
        (
            "Backfill the new column in production",
            &["production-database-migration"],
        ),
        (
            "Write a backfill.\n\nIt runs\nin production.",
            &["production-database-migration"],
        ),
        (
            "Production is next.\nThe migration\nfollows tonight",
            &["production-database-migration"],
        ),
        (
            "Migrate the customer table in production",
            &["production-database-migration"],
        ),
        (
            "Rode a migração em produção",
            &["production-database-migration"],
        ),
        ("fix the login", &["authentication"]),
        ("Add OAuth to the app", &["authentication"]),
        ("call resetPassword after the check", &["authentication"]),
        ("corrija o token de acesso", &["authentication"]),
        ("a senha não está sendo validada", &["authentication"]),
        (
            "Fix the SQL injection in search",
            &["security-vulnerability"],
        ),
        ("Patch CVE-2026-1", &["security-vulnerability"]),
        (
            "there is a path traversal in the download route",
            &["security-vulnerability"],
        ),
        ("Restyle the checkout page", &["payment-processing"]),
        ("Corrija o cálculo da fatura", &["payment-processing"]),
        ("Add a refund button", &["payment-processing"]),
    ];
    for (text, expected) in rows {
        assert_eq!(fired(text), *expected, "{text}");
    }
}

#[test]
fn phrases_that_fire_nothing() {
    for text in [
        "Migrate the product page to Vue",
        "Migrate the production build to Vite",
        "Migrate production logging to OpenTelemetry",
        "Rename the author field",
        "Update the tokenizer config",
        "How does login work?",
        "Switch the parser to dependency injection",
        "git checkout the main branch",
        "checkout the release branch",
        "author bio",
        "latest release notes",
        "contest page",
        "GitHub stars badge",
        "product catalogue",
        "Node.js upgrade",
        "injeção de dependência",
        "Add a design token for spacing",
        "Show the token count below the editor",
        "Use the checkout action v4 in CI",
        "Exploit data locality in the matrix loop",
    ] {
        assert_eq!(fired(text), NONE, "{text}");
    }
}

#[test]
fn groups_are_not_fooled() {
    let rows: &[(Group, &str)] = &[
        (Group::TypeSecurity, "use dependency injection here"),
        (Group::TypeSecurity, "exploit parallelism in the loop"),
        (Group::TypeSecurity, "exploit locality"),
        (Group::TypeArchitecture, "update the architecture doc"),
        (Group::TypeArchitecture, "the architecture page is empty"),
        (Group::TypeArchitecture, "draw the architecture diagram"),
        (Group::TypeArchitecture, "design a logo"),
        (Group::TypeTest, "implement the export with tests"),
        (Group::TypeTest, "implement the export and tests"),
        (Group::TypeTest, "fix the test page"),
        (Group::TypeTest, "show the latest contest"),
        (Group::TypeBugFix, "add error handling"),
        (Group::TypeBugFix, "translate the error message"),
        (Group::TypeBugFix, "style the error page"),
        (Group::TypeBugFix, "add an error type"),
        (Group::TypeBugFix, "add a prefix"),
        (Group::TypeDocumentation, "add a comment form"),
        (Group::TypeDocumentation, "style the comment box"),
        (Group::TypeDocumentation, "as the official docs say"),
        (Group::MarkTrivial, "add full-text search"),
        (Group::MarkTrivial, "build a text editor"),
        (Group::MarkTrivial, "tune the text classification"),
        (Group::MarkTrivial, "support rich text"),
        (Group::MarkTrivial, "use the latest version of axum"),
        (Group::MarkExpert, "distribute the buttons"),
        (Group::TopicAuth, "author, authors, authored"),
        (Group::TopicAuth, "tokenizer"),
        (Group::TopicAuth, "design token"),
        (Group::TopicAuth, "token count"),
        (Group::TopicVulnerability, "dependency injection"),
        (Group::TopicPayment, "git checkout"),
        (Group::TopicPayment, "checkout of a branch"),
        (Group::TopicPayment, "checkout that commit"),
        (Group::TopicPayment, "checkout the v2 tag"),
        (Group::TopicPayment, "the checkout action"),
        (Group::TopicProduction, "production build"),
        (Group::TopicProduction, "production bundle"),
        (Group::TopicProduction, "production mode"),
        (Group::TopicProduction, "production-ready"),
        (Group::TopicProduction, "product"),
        (Group::TopicData, "data parallelism"),
        (Group::TopicData, "data structure"),
        (Group::TopicData, "data type"),
        (Group::TopicData, "data class"),
        (Group::TopicDestroy, "delete an import"),
        (Group::TopicDestroy, "delete the file"),
        (Group::TopicDestroy, "delete a line"),
        (Group::MarkFail, "error handling"),
        (Group::MarkFail, "error message"),
        (Group::AgentDatabase, "index page"),
        (Group::AgentDatabase, "index.ts"),
        (Group::AgentDatabase, "query string"),
        (Group::ToolGit, "GitHub"),
        (Group::ToolGit, "push notification"),
    ];
    for (group, text) in rows {
        let scan = Keywords::builtin().scan(text);
        assert!(
            !scan.matches(*group),
            "{group} in {text:?}: {:?}",
            scan.matched_terms(*group, 5)
        );
    }
}

#[test]
fn interrogatives_are_whole_words() {
    let builtin = Keywords::builtin();
    assert!(builtin.scan("Qual é o formato?").question_form());
    assert!(!builtin.scan("Qualidade do código?").question_form());
    assert!(!builtin.scan("Whatever you do?").question_form());
}

#[test]
fn a_policy_disables_and_adds_rules() {
    let added = [routing::keywords::AddedRule {
        id: "ledger".into(),
        patterns: vec!["ledger".into(), "general ... journal".into()],
        unless: vec!["ledger font".into()],
    }];
    let keywords = Keywords::builtin().with_rules(&added).expect("good rules");
    let fired =
        |text: &str, disabled: &[&str]| rules::fired(&keywords.scan(text), &["ledger"], disabled);
    assert_eq!(
        fired("Fix the login of the ledger", &NONE),
        [RuleId::AUTHENTICATION, RuleId::added("ledger")]
    );
    assert_eq!(
        fired("Fix the login of the ledger", &["authentication"]),
        [RuleId::added("ledger")]
    );
    assert_eq!(
        fired("Fix the general old journal", &NONE),
        [RuleId::added("ledger")]
    );
    assert_eq!(fired("Change the ledger font", &NONE), []);
    assert_eq!(
        fired("What is a ledger?", &NONE),
        [],
        "explanatory requests fire none"
    );
}

/// A bare no after a task says that it was wrong; in Polish `no` is a yes, and elsewhere it is not.
#[test]
fn a_bare_no_corrects_in_every_language() {
    for text in [
        "no",
        "No.",
        "no, use the other file",
        "nope",
        "não",
        "nein",
        "non",
        "nie",
        "нет",
        "stop",
        "Stop!",
        "wait",
        "Wait, not that file",
        "don't do that",
    ] {
        let scan = Keywords::builtin().scan(text);
        assert!(scan.corrects(), "{text}");
        assert!(!scan.whole_text_is(Group::FollowGoOn, true), "{text}");
    }
    for text in [
        "yes",
        "ok",
        "tak",
        "stop the server",
        "wait for the socket before the test",
        "no comments in the code",
    ] {
        assert!(!Keywords::builtin().scan(text).corrects(), "{text}");
    }
}
