//! Properties of history and quota (routing.md 10, 11).

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use routing::bounded::Ratio;
use routing::history::{Counts, Evidence, Ledger, Observation, standing};
use routing::quota::{ProviderFault, ProviderQuota, QuotaState};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn observation() -> impl Strategy<Value = Observation> {
    let hours = prop_oneof![5 => -48..2400i64, 1 => Just(24 * 90), 1 => Just(24 * 90 + 1), 1 => 0..500_000i64];
    let counts = prop::sample::select(vec![Counts::Success, Counts::Failure]);
    (hours, counts, prop::sample::select(vec![0.5, 1.0])).prop_map(|(hours, counts, weight)| {
        Observation {
            at: NOW - SignedDuration::from_hours(hours),
            counts,
            weight: Ratio::new(weight).unwrap(),
        }
    })
}

fn ratio() -> impl Strategy<Value = Ratio> {
    (0.0..=1.0).prop_map(|value| Ratio::new(value).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_ledger_is_a_faster_sum(
        observations in prop::collection::vec(observation(), 0..60),
        started_hours_ago in 0..5000i64,
        asked_in_hours in 0..3000i64,
    ) {
        let mut ledger = Ledger::new(Vec::new(), NOW - SignedDuration::from_hours(started_hours_ago));
        for seen in &observations {
            ledger.record(*seen, NOW);
        }
        let then = NOW + SignedDuration::from_hours(asked_in_hours);
        for now in [NOW, then] {
            let (got, wanted) = (ledger.evidence(now), Evidence::of(&observations, now));
            prop_assert!((got.successes.get() - wanted.successes.get()).abs() < 1e-9);
            prop_assert!((got.failures.get() - wanted.failures.get()).abs() < 1e-9);
        }
    }

    #[test]
    fn one_failure_excludes_nobody_for_ever(
        observations in prop::collection::vec(observation(), 0..60),
        p0 in ratio(),
        minimum in ratio(),
    ) {
        let later = NOW + SignedDuration::from_hours(24 * 90 + 49);
        let after = standing(p0, minimum, Evidence::of(&observations, later));
        prop_assert!(!after.excluded, "without new evidence nobody stays excluded");
    }

    #[test]
    fn availability_is_a_ratio_and_comes_back(
        share in ratio(),
        faults in prop::collection::vec((0..2000i64, any::<bool>(), prop::option::of(0..10_000i64)), 0..20),
        asked in 0..20_000i64,
    ) {
        let mut at = NOW;
        let mut state = QuotaState::default();
        for (seconds, exhausted, retry_after) in faults {
            at += SignedDuration::from_secs(seconds);
            let fault = if exhausted { ProviderFault::Exhausted } else { ProviderFault::Unavailable };
            state = state.after_fault(fault, retry_after.map(SignedDuration::from_secs), at);
        }
        let quota = ProviderQuota { share, state, ..ProviderQuota::default() };
        let during = quota.availability(at + SignedDuration::from_secs(asked));
        prop_assert!(during <= share);
        prop_assert_eq!(quota.availability(at + SignedDuration::from_hours(1)), share, "an hour heals everything");
    }
}
