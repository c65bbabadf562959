//! How a decision came about, for a stranger (`--explain`).

use routing::decide::Trace;

use crate::terminal::{Styles, escape};

pub(super) fn render(trace: &Trace, styles: Styles) -> String {
    let mut text = format!("\n{}\n", styles.bold("How it was decided"));
    for step in &trace.steps {
        let because = escape(&step.because);
        let because = if because.is_empty() {
            String::new()
        } else {
            format!("   {}", styles.dim(&because))
        };
        text.push_str(&format!(
            "  {:<14}{}{because}\n",
            step.name,
            escape(&step.result)
        ));
    }
    if !trace.ranking.is_empty() {
        text.push_str(&format!("\n{}\n", styles.bold("Candidates")));
        text.push_str(&ranking(trace, styles));
    }
    if !trace.not_considered.is_empty() {
        text.push_str(&format!("\n{}\n", styles.bold("Not considered")));
        for (model, why) in &trace.not_considered {
            text.push_str(&format!(
                "  {:<38}{}\n",
                escape(model.as_str()),
                why.as_str().replace('_', " ")
            ));
        }
    }
    text
}

/// Utility = quality − cost − latency − risk − leaving; one row a candidate, best first.
fn ranking(trace: &Trace, styles: Styles) -> String {
    let wide = trace
        .ranking
        .iter()
        .map(|row| row.model.as_str().chars().count())
        .max()
        .unwrap_or(0);
    let switching = trace.ranking.iter().any(|row| row.switch != 0.0);
    let leaving = if switching { "  leaving" } else { "" };
    let head = format!(
        "  {:<wide$}  {:<9} success   quality     cost  latency     risk{leaving}   utility",
        "model", "tier"
    );
    let mut text = styles.dim(&head) + "\n";
    for row in &trace.ranking {
        let leaving = if switching {
            format!("  {:>7.4}", -row.switch)
        } else {
            String::new()
        };
        text.push_str(&format!(
            "  {:<wide$}  {:<9} {:>6.2}{}   {:>7.4}  {:>7.4}  {:>7.4}  {:>7.4}{leaving}   {:>7.4}  {}\n",
            escape(row.model.as_str()),
            row.tier,
            row.success,
            if row.eligible { "*" } else { " " },
            row.quality,
            -row.cost,
            -row.latency,
            -row.risk,
            row.utility,
            row.verdict,
        ));
    }
    text.push_str(&styles.dim(
        "  * likely enough to succeed for this profile; such models go first, then utility decides",
    ));
    text.push('\n');
    text
}
