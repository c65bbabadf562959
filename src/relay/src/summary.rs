//! A decision in five lines (routing.md 21).

use api::Decision;
use decision::vocabulary::{Effort, Tier};
use routing::assessment::Source;
use routing::follow_up::FollowUp;
use routing::hidden_message::percent;

use crate::terminal::{Styles, escape};

pub(crate) fn render(decision: &Decision, styles: Styles) -> String {
    let selected = &decision.selected;
    let confidence = decision.assessment.confidence;
    let model = escape(selected.model.as_str()).into_owned();
    let origin = match (decision.assessment.source, &decision.provenance.memory) {
        (Source::Memory, None) => "labels",
        (source, _) => source.as_str(),
    };
    let mut lines = vec![format!(
        "{}  {}  {}   {}",
        styles.bold(selected.tier.as_str()),
        styles.bold(&model),
        selected.thinking_level,
        styles.dim(&format!("({origin}, confidence {confidence:.2})")),
    )];
    let task = &decision.assessment.task;
    lines.push(line(
        "task",
        &format!(
            "{}, {}, complexity {}, risk {}",
            task.task_type.as_str().replace('_', " "),
            task.scope.as_str().replace('_', " "),
            percent(task.complexity),
            percent(task.risk),
        ),
        styles,
    ));
    let role = format!("{}  {}", styles.dim("role"), decision.agent);
    lines.push(line(
        "why",
        &format!("{}       {role}", escape(&why(decision))),
        styles,
    ));
    if !decision.alternatives.is_empty() {
        let next: Vec<_> = decision
            .alternatives
            .iter()
            .map(|other| escape(other.model.as_str()))
            .collect();
        lines.push(line("next", &next.join(", "), styles));
    }
    for warning in &decision.warnings {
        lines.push(line(
            "warning",
            &format!("{}: {}", warning.code, escape(&warning.message)),
            styles,
        ));
    }
    lines.push(line("id", &decision.id.to_string(), styles));
    lines.join("\n") + "\n"
}

fn line(name: &str, text: &str, styles: Styles) -> String {
    format!("{}{text}", styles.dim(&format!("{name:<12}")))
}

/// In one sentence: the rules and reasons that lifted the task, else what was recommended; and where the profile goes
/// above that.
fn why(decision: &Decision) -> String {
    let policy = &decision.policy;
    let level = policy.validation.level;
    let raised: Vec<_> = policy.notes.iter().map(|note| note.as_str()).collect();
    let mut why = if !policy.rules.is_empty() {
        // What a sensitive task asks for at least, whatever effort the user chose.
        let sensitive = policy.min_tier >= Tier::Strong;
        let effort = if sensitive {
            policy.effort.max(Effort::Medium)
        } else {
            policy.effort
        };
        format!(
            "{}: at least {}, {effort}, {level}",
            policy.rules.join(", "),
            policy.min_tier
        )
    } else if raised.is_empty() {
        format!("needs {}, {}, {level}", policy.required_tier, policy.effort)
    } else {
        let (to, from) = (policy.required_tier, policy.recommended_tier);
        format!("{}: {to} instead of {from}, {level}", raised.join(", "))
    };
    let selected = &decision.selected;
    if selected.tier > policy.required_tier
        && !selected.explicit
        && decision.follow_up == FollowUp::New
    {
        why.push_str(&format!("; {} goes higher", decision.profile));
    }
    why
}
