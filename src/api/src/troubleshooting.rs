//! `docs/troubleshooting.md`, written from the closed list of reasons, so that it can neither miss one nor say something
//! else. `cargo xtask docs` writes it.

use std::fmt::Write;

use crate::condition::ConditionType;
use crate::group::Kind;
use crate::reason::{Elsewhere, Reason};

const HEAD: &str = "\
# Troubleshooting, by reason

Whatever Relay does not do, it says why in one word: the *reason* of a condition (`relayctl get`, `describe`), of a problem
(`relayctl status`) or of a rejection (`relayctl rollout history`). Look it up here. `relayctl explain KIND/NAME` follows the
chain from an object to the cause by itself and ends with what to do; `relayctl doctor` looks at the machine or the cluster.

The table has every word there is and is written from the program by `cargo xtask docs`; a word that is not in it is of
another release. *Where* names the conditions that have the word as their own; `Ready` repeats the reason of whichever
condition is false. `RolledOut` and `Stalled` on a LayaServer tell how a new version fares, the others how the serving one does.

";

/// The page, as Markdown.
#[must_use]
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("| reason | means | what to do | where | of |\n|---|---|---|---|---|\n");
    let mut reasons = Reason::ALL.to_vec();
    reasons.sort_by_key(|reason| reason.as_str());
    for reason in reasons {
        let _ = writeln!(
            out,
            "| `{reason}` | {} | {} | {} | {} |",
            cell(reason.meaning()),
            cell(reason.remedy()),
            places(reason).join(", "),
            kinds(reason).join(", ")
        );
    }
    out.push_str("\n## Conditions\n\n| condition | true means | of |\n|---|---|---|\n");
    for condition in ConditionType::ALL {
        let kinds: Vec<_> = condition.kinds().iter().map(|kind| kind.as_str()).collect();
        let of = match kinds.len() == Kind::ALL.len() {
            true => "every kind".to_owned(),
            false => kinds.join(", "),
        };
        let _ = writeln!(
            out,
            "| `{condition}` | {} | {of} |",
            cell(condition.meaning())
        );
    }
    out
}

/// Where a word stands.
fn places(reason: Reason) -> Vec<String> {
    let conditions = reason
        .conditions()
        .iter()
        .map(|condition| format!("`{condition}`"));
    let elsewhere = reason.elsewhere().iter().map(|place| {
        match place {
            Elsewhere::Rejection => "a rejection",
            Elsewhere::Traffic => "the traffic",
            Elsewhere::Inconclusive => "a check without an answer",
            Elsewhere::EvaluationError => "the error of an evaluation",
            Elsewhere::PolicyProblem => "a problem of a policy",
        }
        .to_owned()
    });
    conditions.chain(elsewhere).collect()
}

/// Kinds that may have a word.
fn kinds(reason: Reason) -> Vec<&'static str> {
    let mut kinds: Vec<_> = Kind::ALL
        .into_iter()
        .filter(|kind| reason.fits(*kind))
        .collect();
    for place in reason.elsewhere() {
        kinds.push(match place {
            Elsewhere::Rejection | Elsewhere::Traffic => Kind::LayaServer,
            Elsewhere::Inconclusive | Elsewhere::EvaluationError => Kind::EvaluationGate,
            Elsewhere::PolicyProblem => Kind::RoutingPolicy,
        });
    }
    let found = Kind::ALL.into_iter().filter(|kind| kinds.contains(kind));
    let found: Vec<_> = found.map(Kind::as_str).collect();
    match found.len() == Kind::ALL.len() {
        true => vec!["every kind"],
        false => found,
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_one_row_with_all_its_cells() {
        let page = page();
        let (reasons, conditions) = page.split_once("\n## Conditions\n").unwrap();
        for reason in Reason::ALL {
            let start = format!("| `{reason}` | ");
            let rows: Vec<_> = reasons
                .lines()
                .filter(|line| line.starts_with(&start))
                .collect();
            let [row] = rows[..] else {
                panic!("{reason}: {rows:?}")
            };
            let cells: Vec<_> = row
                .split(" | ")
                .map(|cell| cell.trim_matches(['|', ' ']))
                .collect();
            assert_eq!(cells.len(), 5, "{row}");
            assert!(cells.iter().all(|cell| !cell.is_empty()), "{row}");
        }
        for condition in ConditionType::ALL {
            assert!(
                conditions.contains(&format!("\n| `{condition}` | ")),
                "{condition}"
            );
        }
    }
}
