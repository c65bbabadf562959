//! `relayctl policy test`: requests with expected tiers, decided by rules under a policy and under the one in force. Says
//! which decisions change and which expectations fail. Neither a model nor learned tasks are asked, so the answer depends
//! on the files alone.

use std::path::{Path, PathBuf};

use api::RouteRequest;
use clap::Args;
use decision::vocabulary::Tier;
use jiff::Timestamp;
use routing::decide::{Client, Explain, Judgement, Moment, NothingKnown, decide, prepare};
use routing::policy::Policy;
use serde::{Deserialize, Serialize};

use super::source::{self, Named};
use crate::call::{Call, block_on};
use crate::error::CliError;
use crate::input::{self, Text};
use crate::kinds;
use crate::output::{self, CLI_VERSION};
use crate::refusal::one_line;
use crate::terminal::{self, Styles};
use api::exit::Exit;

/// Most lines of a file.
const MAX_LINES: usize = 10_000;
/// What is shown of a request, in characters.
const MAX_SHOWN: usize = 60;

/// Arguments of `relayctl policy test`.
#[derive(Debug, Args)]
#[command(after_help = "\
One JSON object a line: `request`, and what is expected of it: `tier`, `model`, or both. Also `name`, `profile`,
`providers`. For example
  {\"request\": \"fix the typo in the footer\", \"tier\": \"fast\"}

Examples:
  relayctl policy test requests.jsonl
  relayctl policy test requests.jsonl --policy policy.yaml

Exit code 15 when an expectation fails. A decision that only changes is shown, and is no failure.")]
pub(super) struct TestArguments {
    /// File of JSON Lines, or `-`
    file: PathBuf,
    /// The policy that is tried: a file, or the name of a RoutingPolicy [default: the one in force]
    #[arg(long, value_name = "FILE|NAME")]
    policy: Option<String>,
    /// The RoutingPolicy whose decisions are compared with
    #[arg(long, value_name = "NAME", default_value = "default")]
    against: String,
}

/// One line of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    request: String,
    #[serde(default)]
    tier: Option<Tier>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    profile: Option<String>,
    #[serde(default)]
    providers: Option<Vec<String>>,
}

/// What a policy chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Chosen {
    tier: Tier,
    model: String,
}

/// One request and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    line: usize,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_tier: Option<Tier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Chosen>,
    after: Chosen,
    changed: bool,
    failed: bool,
}

/// All of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    api_version: &'static str,
    kind: &'static str,
    policy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<String>,
    requests: usize,
    changed: usize,
    failed: usize,
    cases: Vec<Case>,
}

/// Tests a policy.
pub(super) fn run(call: &Call, arguments: &TestArguments) -> Result<Exit, CliError> {
    let text = if arguments.file.as_os_str() == "-" {
        input::standard_input()?
    } else {
        input::read_file(&arguments.file)?
    };
    let lines = read(&text)?;
    let tried = match &arguments.policy {
        Some(policy) if is_file(policy) => Some(source::of_file(Path::new(policy))?),
        _ => None,
    };
    let (policy, against) = block_on(Box::pin(policies(call, arguments, tried)))?;
    let outcome = test(&text.name, &lines, &policy, against.as_ref())?;
    if call.format().is_table() {
        terminal::print(&outcome.render(call.styles()))?;
    } else {
        let document = serde_json::to_value(&outcome).map_err(|error| {
            CliError::new(Exit::Failed, format!("cannot write the answer: {error}"))
        })?;
        output::tree(&document, &call.format())?;
    }
    Ok(if outcome.failed == 0 {
        Exit::Done
    } else {
        Exit::Differences
    })
}

/// A name has neither a slash nor an ending.
fn is_file(policy: &str) -> bool {
    policy == "-" || policy.contains(['/', '.']) || Path::new(policy).is_file()
}

async fn policies(
    call: &Call,
    arguments: &TestArguments,
    tried: Option<Named>,
) -> Result<(Named, Option<Named>), CliError> {
    let (_, against) = kinds::object(&format!("rp/{}", arguments.against))?;
    let server = call.connect().await?;
    match (tried, &arguments.policy) {
        (Some(tried), _) => match source::in_force(&server, &against).await {
            Ok((live, _)) => Ok((tried, Some(live))),
            // A file can be tried without any server; what it changes cannot be told then.
            Err(error) if matches!(error.exit, Exit::Unreachable | Exit::NotFound) => {
                call.tell(&format!(
                    "note: what changes is not shown: {}",
                    error.line()
                ));
                Ok((tried, None))
            }
            Err(error) => Err(error),
        },
        (None, Some(name)) => {
            let (_, name) = kinds::object(&format!("rp/{name}"))?;
            let (tried, _) = source::in_force(&server, &name).await?;
            let (live, _) = source::in_force(&server, &against).await?;
            Ok((tried, Some(live)))
        }
        (None, None) => {
            let (live, _) = source::in_force(&server, &against).await?;
            Ok((live, None))
        }
    }
}

/// Every line, with its number.
fn read(text: &Text) -> Result<Vec<(usize, Line)>, CliError> {
    let mut lines = Vec::new();
    for (at, line) in text.text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let number = at + 1;
        let wrong = |why: String| CliError::refused(format!("{}:{number}: {why}", text.name));
        let tree = api::document::read_json(line).map_err(|error| wrong(error.to_string()))?;
        let line: Line = api::document::typed(tree).map_err(|error| wrong(error.to_string()))?;
        lines.push((number, line));
        if lines.len() > MAX_LINES {
            return Err(wrong(format!("more than {MAX_LINES} requests")));
        }
    }
    if lines.is_empty() {
        return Err(CliError::refused(format!(
            "{}: holds no request",
            text.name
        )));
    }
    Ok(lines)
}

fn test(
    file: &str,
    lines: &[(usize, Line)],
    policy: &Named,
    against: Option<&Named>,
) -> Result<Outcome, CliError> {
    let after_policy = policy.decider()?;
    let before_policy = against.map(Named::decider).transpose()?;
    let mut cases = Vec::new();
    for (number, line) in lines {
        let wrong = |why: String| CliError::refused(format!("{file}:{number}: {why}"));
        let after = choose(&after_policy, line).map_err(wrong)?;
        let before = before_policy
            .as_ref()
            .map(|policy| choose(policy, line))
            .transpose()
            .map_err(wrong)?;
        cases.push(Case {
            line: *number,
            name: line
                .name
                .clone()
                .unwrap_or_else(|| line.request.chars().take(MAX_SHOWN).collect()),
            expected_tier: line.tier,
            expected_model: line.model.clone(),
            changed: before.as_ref().is_some_and(|before| *before != after),
            failed: line.tier.is_some_and(|tier| tier != after.tier)
                || line
                    .model
                    .as_ref()
                    .is_some_and(|model| *model != after.model),
            before,
            after,
        });
    }
    Ok(Outcome {
        api_version: CLI_VERSION,
        kind: "PolicyTest",
        policy: policy.title.clone(),
        against: against.map(|against| against.title.clone()),
        requests: cases.len(),
        changed: cases.iter().filter(|case| case.changed).count(),
        failed: cases.iter().filter(|case| case.failed).count(),
        cases,
    })
}

fn choose(policy: &Policy, line: &Line) -> Result<Chosen, String> {
    let request = RouteRequest {
        profile: line.profile.clone(),
        providers: line.providers.clone(),
        ..RouteRequest::new(line.request.clone())
    };
    let now = Timestamp::UNIX_EPOCH;
    let prepared = prepare(&request, policy, Client::Own, None, now).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        errors.join("; ")
    })?;
    let no_time = || 0.0;
    let moment = Moment::new(now, [0; 28], &no_time, Explain::No);
    let judgement = Judgement::Rules { fallback: None };
    let decided =
        decide(&prepared, judgement, &NothingKnown, moment).map_err(|none| none.to_string())?;
    Ok(Chosen {
        tier: decided.decision.selected.tier,
        model: decided.decision.selected.model.to_string(),
    })
}

impl Outcome {
    fn render(&self, styles: Styles) -> String {
        let mut out = String::new();
        for case in self.cases.iter().filter(|case| case.failed || case.changed) {
            let what = if case.failed {
                styles.red("failed")
            } else {
                styles.yellow("changed")
            };
            out.push_str(&format!(
                "{what} line {}: {}\n",
                case.line,
                one_line(&case.name)
            ));
            let after = format!("{} {}", case.after.tier, case.after.model);
            if let Some(before) = case.before.as_ref().filter(|_| case.changed) {
                out.push_str(&format!(
                    "  {} {} -> {}\n",
                    before.tier,
                    one_line(&before.model),
                    one_line(&after)
                ));
            } else {
                out.push_str(&format!("  decided {}\n", one_line(&after)));
            }
            if case.failed {
                let tier = case.expected_tier.map(|tier| tier.to_string());
                let expected: Vec<_> = tier
                    .into_iter()
                    .chain(case.expected_model.clone())
                    .collect();
                out.push_str(&format!("  expected {}\n", one_line(&expected.join(" "))));
            }
        }
        let changed = match &self.against {
            Some(against) => format!(", {} changed against {}", self.changed, one_line(against)),
            None => String::new(),
        };
        out.push_str(&format!(
            "{}: {} requests by rules alone, {} failed{changed}\n",
            one_line(&self.policy),
            self.requests,
            self.failed
        ));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(title: &str, spec: serde_json::Value) -> Named {
        Named {
            title: title.to_owned(),
            name: "default".to_owned(),
            spec: api::document::typed(spec).unwrap(),
        }
    }

    fn lines(text: &str) -> Result<Vec<(usize, Line)>, CliError> {
        read(&Text {
            name: "r.jsonl".into(),
            text: text.into(),
        })
    }

    #[test]
    fn a_rule_changes_decisions_and_meets_expectations() {
        let requests = "{\"request\": \"rename the button\", \"tier\": \"fast\", \"name\": \"small\"}\n\n{\"request\": \"rename the flux capacitor\", \"tier\": \"strong\"}\n";
        let requests = lines(requests).unwrap();
        let plain = policy("default@1", serde_json::json!({}));
        let strict = policy(
            "new.yaml",
            serde_json::json!({"rules": [{"id": "flux", "patterns": ["flux capacitor"], "floor": {"tier": "strong"}}]}),
        );
        let before = test("r.jsonl", &requests, &plain, None).unwrap();
        assert_eq!((before.failed, before.changed), (1, 0));
        let after = test("r.jsonl", &requests, &strict, Some(&plain)).unwrap();
        assert_eq!((after.failed, after.changed), (0, 1));
        let text = after.render(Styles::PLAIN);
        assert!(
            text.starts_with("changed line 3: rename the flux capacitor\n  fast "),
            "{text}"
        );
        assert!(text.contains(" -> strong "), "{text}");
        assert!(
            text.ends_with(
                "new.yaml: 2 requests by rules alone, 0 failed, 1 changed against default@1\n"
            ),
            "{text}"
        );
        let text = before.render(Styles::PLAIN);
        assert!(
            text.contains("failed line 3") && text.contains("expected strong"),
            "{text}"
        );
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, expected) in [
            ("{\"request\": \"x\"}\n{\n", "r.jsonl:2: "),
            (
                "{\"request\": \"x\", \"teir\": \"fast\"}",
                "r.jsonl:1: teir: unknown field",
            ),
            (
                "{\"request\": \"x\", \"tier\": \"huge\"}",
                "r.jsonl:1: tier: ",
            ),
            (
                "{\"request\": \"x\", \"request\": \"y\"}",
                "r.jsonl:1: request: duplicate field",
            ),
            ("[\"x\"]", "r.jsonl:1: "),
            ("\n", "r.jsonl: holds no request"),
        ] {
            let error = lines(text).unwrap_err();
            assert_eq!(error.exit, Exit::Refused);
            assert!(error.line().starts_with(expected), "{text}: {error}");
        }
        let blank = lines("{\"request\": \" \"}").unwrap();
        let plain = policy("p", serde_json::json!({}));
        let error = test("r.jsonl", &blank, &plain, None).unwrap_err();
        assert!(error.line().starts_with("r.jsonl:1: request"), "{error}");
    }
}
