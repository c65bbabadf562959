//! The first part of vector 23.8.

use super::*;

#[derive(Deserialize)]
struct Vectors {
    tallies: Vec<TallyRow>,
    moves: Vec<MoveRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TallyRow {
    name: String,
    failures: Vec<(FailureKind, Option<String>)>,
    #[serde(default)]
    carried: Score,
    #[serde(default)]
    at_last: Score,
    threshold: Option<u32>,
    score: Score,
    escalate: Option<Reason>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveRow {
    name: String,
    tier: Tier,
    effort: Effort,
    strongest: Option<Tier>,
    highest_effort: Option<Effort>,
    #[serde(default)]
    escalations: u32,
    r#move: Vec<String>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../../tests/vectors/escalation.json")).unwrap()
}

#[test]
fn vectors_23_8_tallies() {
    for row in vectors().tallies {
        let failure = |(kind, signature)| Failure {
            kind,
            tool: Some("bash".to_owned()),
            signature,
        };
        let failures: Vec<_> = row.failures.into_iter().map(failure).collect();
        let got = tally(
            &failures,
            row.carried,
            row.at_last,
            row.threshold.unwrap_or(3),
        );
        assert_eq!(
            got,
            Tally {
                score: row.score,
                escalate: row.escalate
            },
            "{}",
            row.name
        );
    }
}

#[test]
fn vectors_23_8_moves() {
    for row in vectors().moves {
        let standing = Standing {
            tier: row.tier,
            effort: row.effort,
            highest_effort: row.highest_effort.unwrap_or(Effort::ExtraHigh),
            strongest: row.strongest.unwrap_or(Tier::Frontier),
            escalations: row.escalations,
        };
        let got = match next(&standing) {
            Move::Up { tier, effort } => format!("up {tier} {effort}"),
            Move::ThinkMore { effort } => format!("think_more {} {effort}", row.tier),
            Move::Exhausted => "exhausted".to_owned(),
        };
        assert_eq!(got, row.r#move.join(" "), "{}", row.name);
    }
}

#[test]
fn a_repetition_is_of_the_same_tool_too() {
    let failure = |tool: &str| Failure {
        kind: FailureKind::CheckFailed,
        tool: Some(tool.to_owned()),
        signature: Some("exit 1".to_owned()),
    };
    let score = |first, second| {
        tally(
            &[failure(first), failure(second)],
            Score::LEAST,
            Score::LEAST,
            3,
        )
        .score
        .get()
    };
    assert_eq!((score("bash", "bash"), score("bash", "edit")), (2.5, 2.0));
}

#[test]
fn every_kind_has_the_weight_of_the_table() {
    let sums = [(1.0, 3), (0.5, 3), (0.25, 1), (0.0, 4)];
    for (weight, count) in sums {
        let of_weight = FailureKind::ALL
            .iter()
            .filter(|kind| kind.weight() == weight)
            .count();
        assert_eq!(of_weight, count, "kinds of weight {weight}");
    }
}
