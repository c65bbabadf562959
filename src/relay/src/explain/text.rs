//! A stored decision for people: the five lines of `relay route`, then what they rest on, block by block.

use api::Decision;
use api::exchange::{DecisionWithOutcomes, RecordedOutcome};
use routing::assessment::Source;
use routing::follow_up::FollowUp;
use routing::outcome::{AttemptResult, Usage};
use routing::reason::Fallback;
use routing::record::{DecisionKind, Selected};
use routing::tool_routing::ToolClass;

use crate::output::{count, counted, dollars, one_line, time};
use crate::summary;
use crate::terminal::{Styles, escape};

/// Longest text of a request that is shown, in characters; `-o json` has the whole.
const MAX_REQUEST: usize = 200;
/// Width of the names in the blocks.
const NAME: usize = 14;

pub(super) fn render(known: &DecisionWithOutcomes, styles: Styles) -> String {
    let decision = &known.decision;
    let mut text = summary::render(decision, styles);
    text.push_str(&block("Request", &request(decision), styles));
    text.push_str(&block("How it was decided", &grounds(decision), styles));
    text.push_str(&heading("Candidates", styles));
    text.push_str(&candidates(decision, styles));
    if !decision.excluded.is_empty() {
        text.push_str(&heading("Not considered", styles));
        for excluded in &decision.excluded {
            let why = excluded.reason.as_str().replace('_', " ");
            text.push_str(&format!("  {:<38}{why}\n", escape(excluded.model.as_str())));
        }
    }
    text.push_str(&block("Cost", &cost(decision), styles));
    text.push_str(&heading("What came of it", styles));
    text.push_str(&outcomes(&known.outcomes, styles));
    text.push_str(&block("On what grounds", &provenance(decision), styles));
    text
}

/// A name and its text; an empty text is left out.
type Line = (&'static str, String);

fn heading(name: &str, styles: Styles) -> String {
    format!("\n{}\n", styles.bold(name))
}

fn block(name: &str, lines: &[Line], styles: Styles) -> String {
    let mut text = heading(name, styles);
    for (name, line) in lines.iter().filter(|(_, line)| !line.is_empty()) {
        text.push_str(&format!(
            "  {}{line}\n",
            styles.dim(&format!("{name:<NAME$}"))
        ));
    }
    text
}

fn request(decision: &Decision) -> Vec<Line> {
    let units = count(decision.request_chars as u64);
    let said = match &decision.request {
        Some(request) => format!("\"{}\"", one_line(request, MAX_REQUEST)),
        None => format!(
            "not stored; {units} characters, SHA-256 {}",
            one_line(&decision.request_digest, 64)
        ),
    };
    let kind = match (decision.kind, decision.follow_up) {
        (DecisionKind::Escalation, _) => "a move within a task, after failures".to_owned(),
        (DecisionKind::Provider, _) => {
            "a move within a task, after an error of the provider".to_owned()
        }
        (DecisionKind::Direct, _) => "a side request".to_owned(),
        (DecisionKind::User, FollowUp::New) => String::new(),
        (DecisionKind::User, follow_up) => format!("{} of what came before", follow_up.as_str()),
    };
    let conversation = decision.conversation_id.as_deref().unwrap_or_default();
    vec![
        ("text", said),
        (
            "decided",
            format!(
                "{}, profile {}",
                time(decision.created),
                escape(&decision.profile)
            ),
        ),
        ("kind", kind),
        ("task", decision.task_id.to_string()),
        (
            "follows",
            decision
                .parent_id
                .map(|id| id.to_string())
                .unwrap_or_default(),
        ),
        ("conversation", one_line(conversation, 128)),
    ]
}

fn grounds(decision: &Decision) -> Vec<Line> {
    let (assessment, policy) = (&decision.assessment, &decision.policy);
    let recommended = &assessment.recommendation;
    let doubtful = assessment
        .confidences
        .iter()
        .min_by(|a, b| a.1.total_cmp(b.1))
        .filter(|(_, least)| **least < assessment.confidence)
        .map(|(question, least)| format!("; least sure of {question}: {least:.2}"))
        .unwrap_or_default();
    let validation = policy.validation.level.to_string().replace('_', " ");
    let validation = if policy.validation.required {
        format!("{validation}, required")
    } else {
        validation
    };
    let raises: Vec<_> = decision
        .escalations
        .iter()
        .map(|raise| {
            let reason = raise.reason.as_str().replace('_', " ");
            if raise.from == raise.to {
                format!("stays {} ({reason})", raise.to)
            } else {
                format!("{} to {} ({reason})", raise.from, raise.to)
            }
        })
        .collect();
    let notes: Vec<_> = policy
        .notes
        .iter()
        .map(|note| note.as_str().replace('_', " "))
        .collect();
    let classes = |classes: &[ToolClass]| {
        let names: Vec<_> = classes.iter().map(|class| tool(*class)).collect();
        names.join(", ")
    };
    let names = |names: &[String]| one_line(&names.join(", "), MAX_REQUEST);
    vec![
        ("judged by", source(decision)),
        ("memory", memory(decision)),
        (
            "confidence",
            format!("{:.2}{doubtful}", assessment.confidence),
        ),
        (
            "recommended",
            format!("{}, {}", recommended.tier, recommended.effort),
        ),
        (
            "needed",
            format!(
                "{}, {}; floor {}",
                policy.required_tier, policy.effort, policy.min_tier
            ),
        ),
        ("rules", names(&policy.rules)),
        ("notes", notes.join(", ")),
        ("raises", raises.join(", ")),
        ("validation", validation),
        ("tools", classes(&decision.tools.needed)),
        ("not expected", classes(&decision.tools.unneeded)),
        ("switched off", names(&decision.tools.deactivate)),
        ("skills", names(&decision.skills)),
        ("switch", switch(decision)),
        (
            "lessons",
            if decision.lessons.is_some() {
                "given to the agent".to_owned()
            } else {
                String::new()
            },
        ),
    ]
}

fn tool(class: ToolClass) -> &'static str {
    match class {
        ToolClass::Write => "file edits",
        ToolClass::Shell => "shell",
        ToolClass::Tests => "tests",
        ToolClass::Web => "web",
        ToolClass::Browser => "browser",
        ToolClass::Database => "database",
        ToolClass::Git => "git",
    }
}

/// Who judged the request, and why not somebody before it.
fn source(decision: &Decision) -> String {
    let provenance = &decision.provenance;
    match (decision.assessment.source, &provenance.memory) {
        (Source::Memory, Some(_)) => "a learned task".to_owned(),
        (Source::Memory, None) => "labels that came with the request".to_owned(),
        (Source::Model, _) => match &provenance.model {
            Some(model) => format!("decision model {}", one_line(&model.version, 64)),
            None => "decision model".to_owned(),
        },
        (Source::Rules, _) => match provenance.fallback {
            Some(fallback) => format!("rules, because {}", because(fallback)),
            None => "rules".to_owned(),
        },
    }
}

/// The learned task that answered, or did not because a guard spoke against it.
fn memory(decision: &Decision) -> String {
    let Some(memory) = &decision.provenance.memory else {
        return String::new();
    };
    let guards = if memory.guards.is_empty() {
        String::new()
    } else {
        format!(
            "; guards: {}",
            one_line(&memory.guards.join(", "), MAX_REQUEST)
        )
    };
    format!(
        "task {}, {:.2} similar{guards}",
        one_line(&memory.task, 64),
        memory.similarity
    )
}

fn because(fallback: Fallback) -> &'static str {
    match fallback {
        Fallback::Timeout => "the decision model did not answer in time",
        Fallback::BreakerOpen => "the decision model failed shortly before and was left alone",
        Fallback::InvalidAnswers => "the decision model answered nonsense",
        Fallback::Unreachable => "the decision model could not be reached",
        Fallback::NoModel => "no decision model is serving",
        Fallback::Busy => "the decision model had too much to do",
        Fallback::RouterUnreachable => "no router answered",
    }
}

fn switch(decision: &Decision) -> String {
    let Some(switch) = &decision.switch else {
        return String::new();
    };
    format!(
        "leaving {} costs {:.2} ({} tokens in its cache)",
        escape(switch.from.as_str()),
        switch.price,
        count(switch.cached_tokens)
    )
}

fn candidates(decision: &Decision, styles: Styles) -> String {
    let all = || std::iter::once(&decision.selected).chain(&decision.alternatives);
    let name = |model: &Selected| escape(model.model.as_str()).into_owned();
    let wide = all()
        .map(|model| name(model).chars().count())
        .max()
        .unwrap_or(0);
    let head = format!(
        "  {:<wide$}  {:<9} {:<8} success  utility  estimate",
        "model", "tier", "level"
    );
    let mut text = styles.dim(&head) + "\n";
    for (at, model) in all().enumerate() {
        let mut remarks = Vec::new();
        if at == 0 {
            remarks.push("chosen");
        }
        if model.explicit {
            remarks.push("by the user");
        }
        if model.explored {
            remarks.push("to learn about it");
        }
        if model.effort_clamped {
            remarks.push("does not have the wanted level");
        }
        let line = format!(
            "  {:<wide$}  {:<9} {:<8} {:>6.2}{} {:>8.4}  {:<9} {}",
            name(model),
            model.tier,
            escape(&model.thinking_level),
            model.success,
            if model.eligible { "*" } else { " " },
            model.utility,
            estimate(model),
            remarks.join(", "),
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&styles.dim("  * likely enough to succeed for this profile"));
    text.push('\n');
    text
}

fn estimate(model: &Selected) -> String {
    match model.estimate.cost_usd {
        Some(cost) if model.estimate.upper_bound => format!("<{}", dollars(cost.get())),
        Some(cost) => dollars(cost.get()),
        None => "unknown".to_owned(),
    }
}

fn cost(decision: &Decision) -> Vec<Line> {
    let chosen = match decision.selected.estimate.cost_usd {
        Some(cost) if decision.selected.estimate.upper_bound => {
            format!(
                "at most {} (the price of cached input is unknown)",
                dollars(cost.get())
            )
        }
        Some(cost) => dollars(cost.get()),
        None => "unknown, as the model has no prices".to_owned(),
    };
    let Some(baseline) = &decision.counterfactual else {
        return vec![("estimated", chosen)];
    };
    let on = baseline
        .cost_usd
        .map_or_else(|| "unknown".to_owned(), |cost| dollars(cost.get()));
    let savings = match baseline.savings_usd {
        Some(savings) if savings < 0.0 => format!("none; {} more", dollars(-savings)),
        Some(savings) => dollars(savings),
        None => "unknown".to_owned(),
    };
    vec![
        ("estimated", chosen),
        (
            "baseline",
            format!("{on} on {}", escape(baseline.baseline.as_str())),
        ),
        ("savings", savings),
    ]
}

fn outcomes(outcomes: &[RecordedOutcome], styles: Styles) -> String {
    if outcomes.is_empty() {
        return format!("  {}\n", styles.dim("nothing was reported yet"));
    }
    outcomes.iter().map(outcome).collect()
}

fn outcome(outcome: &RecordedOutcome) -> String {
    let report = &outcome.report;
    let mut parts = vec![match report.result {
        AttemptResult::Success => "went well".to_owned(),
        AttemptResult::Failure => "failed".to_owned(),
        AttemptResult::ProviderError => "the provider failed".to_owned(),
        AttemptResult::Aborted => "stopped by the user".to_owned(),
        AttemptResult::Superseded => "replaced by other words of the user".to_owned(),
    }];
    if report.corrected == Some(true) {
        parts.push("corrected by the next message".to_owned());
    }
    match report.tests_passed {
        Some(true) => parts.push("checks passed".to_owned()),
        Some(false) => parts.push("checks failed".to_owned()),
        None => parts.push("no check ran".to_owned()),
    }
    if report.tool_failures > 0 {
        parts.push(counted(
            u64::from(report.tool_failures),
            "failed tool call",
            "failed tool calls",
        ));
    }
    if let Some(error) = &report.provider_error {
        let status = error.status.map(|status| format!("status {status}"));
        let message = error.message.as_deref().map(|text| one_line(text, 80));
        let told: Vec<_> = status.into_iter().chain(message).collect();
        parts.push(told.join(" "));
    }
    if let Some(usage) = &report.usage {
        parts.extend(used(usage));
    }
    if !report.is_final {
        parts.push("another attempt followed".to_owned());
    }
    parts.retain(|part| !part.is_empty());
    format!(
        "  {:<NAME$}{}   {}\n",
        format!("attempt {}", report.attempt),
        time(outcome.recorded_at),
        parts.join(", ")
    )
}

fn used(usage: &Usage) -> Vec<String> {
    let mut parts = vec![format!(
        "{} tokens in ({} cached), {} out",
        count(usage.input_tokens),
        count(usage.cached_input_tokens),
        count(usage.output_tokens)
    )];
    if let Some(cost) = usage.cost_usd {
        parts.push(dollars(cost));
    }
    parts.push(format!("{:.1} s", usage.duration_ms as f64 / 1e3));
    parts
}

fn provenance(decision: &Decision) -> Vec<Line> {
    let provenance = &decision.provenance;
    let policy = &provenance.policy;
    let model = provenance.model.as_ref().map(|model| {
        format!(
            "{}, checkpoint {}, on {}",
            one_line(&model.version, 64),
            short(&model.checkpoint),
            one_line(&model.server, 64)
        )
    });
    let cut = &provenance.truncated;
    let mut truncated = Vec::new();
    if cut.request {
        truncated.push("the text was cut before the model saw it".to_owned());
    }
    if cut.state_tokens_dropped > 0 {
        truncated.push(format!(
            "the model dropped {} tokens",
            count(cut.state_tokens_dropped)
        ));
    }
    if !cut.questions.is_empty() {
        let questions = one_line(&cut.questions.join(", "), MAX_REQUEST);
        truncated.push(format!("for the questions {questions}"));
    }
    vec![
        (
            "program",
            format!("relay {}", one_line(&provenance.relay_version, 64)),
        ),
        (
            "policy",
            format!(
                "{}, revision {}",
                escape(&policy.name),
                escape(&policy.revision)
            ),
        ),
        (
            "own rules",
            one_line(&policy.added_rules.join(", "), MAX_REQUEST),
        ),
        (
            "rules off",
            one_line(&policy.disabled_rules.join(", "), MAX_REQUEST),
        ),
        (
            "questions",
            format!(
                "contract {}, shape {}",
                short(&provenance.contract),
                short(&provenance.shape)
            ),
        ),
        ("keywords", short(&provenance.keywords_digest)),
        (
            "models",
            format!("registry {}", short(&provenance.registry_digest)),
        ),
        ("model", model.unwrap_or_default()),
        ("not seen", truncated.join(", ")),
        (
            "time",
            format!(
                "{:.1} ms to judge, {:.1} ms to decide",
                provenance.timings_ms.assess, provenance.timings_ms.decide
            ),
        ),
    ]
}

/// The first 12 hexadecimal digits of a digest, for people.
fn short(digest: &str) -> String {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    escape(&hex.chars().take(12).collect::<String>()).into_owned()
}
