//! Vector 23.5, and what it does not reach.

use super::*;

const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn after(seconds: i64) -> Timestamp {
    START + SignedDuration::from_secs(seconds)
}

fn with(state: QuotaState) -> ProviderQuota {
    ProviderQuota {
        state,
        ..ProviderQuota::default()
    }
}

fn ratio(value: f64) -> Ratio {
    Ratio::new(value).unwrap()
}

#[derive(Deserialize)]
struct Vectors {
    penalties: Vec<PenaltyRow>,
    configured: Vec<ConfiguredRow>,
}

#[derive(Deserialize)]
struct PenaltyRow {
    name: String,
    events: Vec<(i64, String)>,
    penalty: Vec<(i64, f64)>,
}

#[derive(Deserialize)]
struct ConfiguredRow {
    given: f64,
    availability: f64,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../../tests/vectors/quota.json")).unwrap()
}

#[test]
fn vectors_23_5_penalties() {
    for row in vectors().penalties {
        let fault = |word: &str| match word {
            "exhausted" => ProviderFault::Exhausted,
            "unavailable" => ProviderFault::Unavailable,
            other => panic!("{other} is no fault"),
        };
        let state = row
            .events
            .iter()
            .fold(QuotaState::default(), |state, (at, word)| {
                state.after_fault(fault(word), None, after(*at))
            });
        for (at, wanted) in row.penalty {
            let got = 1.0 - with(state).availability(after(at)).get();
            assert!(
                (got - wanted).abs() < 1e-9,
                "{}: {got} at {at} s, wanted {wanted}",
                row.name
            );
        }
    }
}

#[test]
fn vectors_23_5_configured() {
    for row in vectors().configured {
        let share = Ratio::clamped(row.given).unwrap();
        let quota = ProviderQuota {
            share,
            ..ProviderQuota::default()
        };
        assert_eq!(
            quota.availability(START),
            ratio(row.availability),
            "configured {}",
            row.given
        );
    }
}

#[test]
fn retry_after_closes_the_provider() {
    for (name, asked, closed_at, open_at) in [
        ("30 s", 30, 29, 30),
        ("at most an hour", 86_400, 3_599, 3_600),
        ("none", 0, -1, 0),
    ] {
        let wait = Some(SignedDuration::from_secs(asked));
        let quota = with(QuotaState::default().after_fault(ProviderFault::Exhausted, wait, START));
        if closed_at >= 0 {
            assert_eq!(
                quota.availability(after(closed_at)),
                Ratio::ZERO,
                "{name}: closed"
            );
        }
        assert!(
            quota.availability(after(open_at)) > Ratio::ZERO,
            "{name}: open"
        );
    }
    let long = Some(SignedDuration::from_secs(60));
    let state = QuotaState::default().after_fault(ProviderFault::Exhausted, long, START);
    let state = state.after_fault(ProviderFault::Unavailable, None, after(1));
    assert_eq!(
        with(state).availability(after(59)),
        Ratio::ZERO,
        "a later error without the header opens nothing"
    );
}

#[test]
fn a_measured_remainder_holds_until_its_reset() {
    let quota = ProviderQuota {
        share: ratio(0.5),
        ..with(QuotaState::default().after_measure(ratio(0.2), after(100)))
    };
    assert_eq!(
        quota.availability(after(99)),
        ratio(0.2),
        "the smaller of the two"
    );
    assert_eq!(
        quota.availability(after(100)),
        ratio(0.5),
        "after the reset"
    );
}

#[test]
fn a_spent_budget_closes_the_provider_for_the_rest_of_the_utc_day() {
    let day: Timestamp = "2026-11-30T23:59:00Z".parse().unwrap();
    let usd = |value: f64| Usd::new(value).unwrap();
    let state = QuotaState::default()
        .after_cost(usd(6.0), day)
        .after_cost(usd(4.0), day);
    let quota = |budget: Option<f64>| ProviderQuota {
        budget_per_day: budget.map(usd),
        ..with(state)
    };
    let tomorrow = day + SignedDuration::from_mins(1);
    for (name, budget, now, open) in [
        ("no budget", None, day, true),
        ("not reached", Some(10.01), day, true),
        ("reached", Some(10.0), day, false),
        ("the next day", Some(10.0), tomorrow, true),
        ("no budget at all", Some(0.0), tomorrow, false),
    ] {
        assert_eq!(
            quota(budget).availability(now) == Ratio::ONE,
            open,
            "{name}"
        );
    }
}

#[test]
fn a_cost_never_forgets_what_was_spent_today() {
    let noon: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
    let usd = |value: f64| Usd::new(value).unwrap();
    for (name, hours_later, day, sum) in [
        ("at once", 0, "2026-11-30", 3.0),
        ("the same day", 11, "2026-11-30", 3.0),
        ("the next day", 12, "2026-12-01", 1.0),
        ("much later", 240, "2026-12-10", 1.0),
        ("a clock behind, the same day", -12, "2026-11-30", 3.0),
        ("a clock behind, the day before", -13, "2026-11-30", 3.0),
        ("at most a day behind", -36, "2026-11-30", 3.0),
        ("the sum is of a wrong clock", -37, "2026-11-28", 1.0),
    ] {
        let later = noon + SignedDuration::from_hours(hours_later);
        let state = QuotaState::default()
            .after_cost(usd(2.0), noon)
            .after_cost(usd(1.0), later);
        let wanted = Spent {
            day: day.parse().unwrap(),
            usd: usd(sum),
        };
        assert_eq!(state.spent, Some(wanted), "{name}");
    }
}

#[test]
fn a_clock_that_went_back_is_no_reward() {
    let state = QuotaState::default().after_fault(ProviderFault::Exhausted, None, START);
    assert_eq!(with(state).availability(after(-1000)), ratio(0.5));
}

#[test]
fn the_state_survives_a_restart() {
    let wait = Some(SignedDuration::from_secs(30));
    let state = QuotaState::default()
        .after_fault(ProviderFault::Exhausted, wait, START)
        .after_measure(ratio(0.3), after(60))
        .after_cost(Usd::new(1.5).unwrap(), START);
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(
        serde_json::from_str::<QuotaState>(&text).unwrap(),
        state,
        "{text}"
    );
    assert_eq!(
        serde_json::from_str::<QuotaState>("{}").unwrap(),
        QuotaState::default()
    );
}
