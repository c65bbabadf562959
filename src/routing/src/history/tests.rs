//! Vector 23.6, and what it does not reach.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::*;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn ago(days: f64) -> Timestamp {
    NOW - SignedDuration::from_secs_f64(days * 86_400.0)
}

fn ratio(value: f64) -> Ratio {
    Ratio::new(value).unwrap()
}

fn observation(counts: Counts, weight: f64, days: f64) -> Observation {
    Observation {
        at: ago(days),
        counts,
        weight: ratio(weight),
    }
}

#[derive(Deserialize)]
struct Vectors {
    posteriors: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    p0: Ratio,
    #[serde(default)]
    successes: usize,
    #[serde(default)]
    failures: usize,
    #[serde(default)]
    days: f64,
    mean: Option<f64>,
    upper: Option<f64>,
    states: BTreeMap<String, String>,
}

#[test]
fn vectors_23_6_history() {
    let file = include_str!("../../tests/vectors/history.json");
    let vectors: Vectors = serde_json::from_str(file).unwrap();
    assert_eq!(vectors.posteriors.len(), 19);
    for row in vectors.posteriors {
        let of = |counts, count| std::iter::repeat_n(observation(counts, 1.0, row.days), count);
        let all: Vec<_> = of(Counts::Success, row.successes)
            .chain(of(Counts::Failure, row.failures))
            .collect();
        let evidence = Evidence::of(&all, NOW);
        let got = posterior(row.p0, evidence);
        let close = |got: f64, wanted: Option<f64>| {
            wanted.is_none_or(|wanted| (got - wanted).abs() <= 5e-5)
        };
        assert!(close(got.mean, row.mean), "{}: mean {}", row.name, got.mean);
        assert!(
            close(got.upper, row.upper),
            "{}: upper {}",
            row.name,
            got.upper
        );
        for (minimum, state) in &row.states {
            let standing = standing(row.p0, ratio(minimum.parse().unwrap()), evidence);
            let got = match (standing.eligible, standing.excluded) {
                (Eligible::ByTier, false) => "by_tier",
                (Eligible::Earned, false) => "earned",
                (Eligible::No, true) => "excluded",
                (Eligible::No, false) => "no",
                (_, true) => "excluded and eligible",
            };
            assert_eq!(got, state, "{}: minimum {minimum}", row.name);
        }
    }
}

#[test]
fn keys_round_halves_up() {
    for (complexity, text) in [
        (0.0, "bug_fix:0"),
        (0.124, "bug_fix:0"),
        (0.125, "bug_fix:1"),
        (0.25, "bug_fix:1"),
        (0.375, "bug_fix:2"),
        (0.5, "bug_fix:2"),
        (0.625, "bug_fix:3"),
        (0.875, "bug_fix:4"),
        (1.0, "bug_fix:4"),
    ] {
        let key = key(TaskType::BugFix, ratio(complexity));
        assert_eq!(key.to_string(), text, "complexity {complexity}");
        assert_eq!(text.parse(), Ok(key));
    }
    for bad in [
        "bug_fix",
        "bug_fix:5",
        "bug_fix:01",
        "bug:1",
        ":1",
        "bug_fix:",
    ] {
        assert!(bad.parse::<HistoryKey>().is_err(), "{bad}");
    }
}

#[test]
fn weighs_attempts_by_how_they_ended() {
    use AttemptEnd::{
        Aborted, AgentError, Corrected, EscalatedAway, Finished, PermissionDenied, ProviderError,
        Superseded,
    };
    let success = |weight| Some((Counts::Success, ratio(weight)));
    let failure = |weight| Some((Counts::Failure, ratio(weight)));
    for (end, wanted) in [
        (Finished(Checks::Passed), success(1.0)),
        (Finished(Checks::NothingToCheck), success(1.0)),
        (Finished(Checks::NotRun), success(0.5)),
        (Finished(Checks::Failed), failure(1.0)),
        (Corrected(Checks::Passed), failure(0.5)),
        (Corrected(Checks::NotRun), failure(0.5)),
        (Corrected(Checks::Failed), failure(1.0)),
        (AgentError, failure(1.0)),
        (EscalatedAway, failure(1.0)),
        (ProviderError, None),
        (Aborted, None),
        (Superseded, None),
        (PermissionDenied, None),
    ] {
        assert_eq!(weigh(end), wanted, "{end:?}");
    }
}

/// The last paragraph of 23.6.
#[test]
fn a_task_credits_each_of_its_attempts() {
    let of = |end| weigh(end).map(|(counts, weight)| observation(counts, weight.get(), 0.0));
    let haiku = Ledger::new(of(AttemptEnd::EscalatedAway).into_iter().collect(), NOW);
    let finished = of(AttemptEnd::Finished(Checks::Passed)).unwrap();
    let mut sonnet = Ledger::new(vec![finished], NOW);
    assert_eq!(haiku.evidence(NOW), Evidence::new(0.0, 1.0).unwrap());
    assert_eq!(sonnet.evidence(NOW), Evidence::new(1.0, 0.0).unwrap());
    sonnet.replace(
        &finished,
        of(AttemptEnd::Corrected(Checks::Passed)).unwrap(),
        NOW,
    );
    assert_eq!(sonnet.evidence(NOW), Evidence::new(0.0, 0.5).unwrap());
    assert_eq!(of(AttemptEnd::ProviderError), None);
}

#[test]
fn decays_by_half_in_14_days_and_forgets_after_90() {
    for (name, days, wanted) in [
        ("now", 0.0, 1.0),
        ("14 days", 14.0, 0.5),
        ("28 days", 28.0, 0.25),
        ("90 days", 90.0, (-90.0 / 14.0_f64).exp2()),
        ("more than 90 days", 90.001, 0.0),
        ("the future", -3.0, 1.0),
    ] {
        assert!((decay(ago(days), NOW) - wanted).abs() < 1e-12, "{name}");
    }
}

#[test]
fn a_ledger_says_what_its_observations_say() {
    use Counts::{Failure, Success};
    let lists = [
        ("none", vec![]),
        ("one", vec![observation(Success, 1.0, 2.0)]),
        (
            "out of order",
            vec![
                observation(Failure, 0.5, 1.0),
                observation(Success, 1.0, 30.0),
            ],
        ),
        (
            "expired",
            vec![
                observation(Success, 1.0, 91.0),
                observation(Failure, 1.0, 400.0),
            ],
        ),
        (
            "expired and not",
            vec![
                observation(Success, 1.0, 91.0),
                observation(Failure, 1.0, 89.0),
            ],
        ),
        (
            "future",
            vec![
                observation(Success, 1.0, -5.0),
                observation(Failure, 1.0, 3.0),
            ],
        ),
        (
            "far future",
            vec![
                observation(Success, 1.0, -90_000.0),
                observation(Failure, 1.0, 3.0),
            ],
        ),
    ];
    for (name, list) in lists {
        let mut grown = Ledger::new(Vec::new(), ago(200.0));
        list.iter().for_each(|seen| grown.record(*seen, NOW));
        let wanted = Evidence::of(&list, NOW);
        for (how, got) in [
            ("grown", grown.evidence(NOW)),
            ("made", Ledger::new(list, NOW).evidence(NOW)),
        ] {
            let same = |a: Runs, b: Runs| (a.get() - b.get()).abs() < 1e-9;
            assert!(
                same(got.successes, wanted.successes),
                "{name}, {how}: {got:?}, wanted {wanted:?}"
            );
            assert!(
                same(got.failures, wanted.failures),
                "{name}, {how}: {got:?}, wanted {wanted:?}"
            );
        }
    }
}

#[test]
fn a_ledger_keeps_the_newest_of_too_many() {
    let mut ledger = Ledger::new(Vec::new(), NOW);
    for step in 0..2 * MOST_OBSERVATIONS {
        let at = NOW + SignedDuration::from_secs(i64::try_from(step).unwrap());
        ledger.record(
            Observation {
                at,
                counts: Counts::Success,
                weight: Ratio::ONE,
            },
            at,
        );
    }
    assert!(ledger.observations().len() <= MOST_OBSERVATIONS);
    assert!(ledger.observations().len() >= MOST_OBSERVATIONS / 2);
    let newest = ledger.observations().last().unwrap().at;
    assert_eq!(
        newest,
        NOW + SignedDuration::from_secs(2 * MOST_OBSERVATIONS as i64 - 1)
    );
}

#[test]
fn evidence_is_finite_and_not_negative() {
    assert!(Evidence::new(f64::NAN, 0.0).is_err());
    assert!(Evidence::new(0.0, f64::INFINITY).is_err());
    assert!(Evidence::new(-0.1, 0.0).is_err());
}
