use decision::vocabulary::Tier;
use jiff::Timestamp;

use super::*;
use crate::bounded::Ratio;
use crate::profile::Profile;
use crate::quota::{ProviderQuota, QuotaState};
use crate::registry::Candidate;
use crate::selection::{CostBasis, Evidence, OnFloorUnmet, SelectionInput, select};
use crate::thinking::EffortSet;

#[test]
fn classifies_by_status_and_body() {
    use ErrorClass::{Auth, ContextOverflow, Other, RateLimited, Unavailable};
    for (name, status, message, class) in [
        ("429", Some(429), "", RateLimited),
        ("529", Some(529), "", RateLimited),
        (
            "code",
            Some(400),
            r#"{"error":{"code":"rate_limit_exceeded"}}"#,
            RateLimited,
        ),
        (
            "camel case",
            Some(403),
            r#"{"reason":"rateLimitExceeded"}"#,
            RateLimited,
        ),
        (
            "quota with 403",
            Some(403),
            "Quota exceeded for metric",
            RateLimited,
        ),
        ("plural", None, "You have hit your rate limits", RateLimited),
        (
            "overload as 503",
            Some(503),
            r#"{"type":"overloaded_error"}"#,
            RateLimited,
        ),
        (
            "usage limit",
            None,
            "You've reached your usage limit",
            RateLimited,
        ),
        ("capacity", Some(500), "We are at capacity.", RateLimited),
        ("too many requests", None, "Too Many Requests", RateLimited),
        (
            "another word",
            Some(400),
            "no quotation marks allowed",
            Other,
        ),
        (
            "429 that names the window",
            Some(429),
            "context window tokens per minute",
            RateLimited,
        ),
        ("500", Some(500), "internal error", Unavailable),
        ("502", Some(502), "", Unavailable),
        ("504", Some(504), "", Unavailable),
        ("408", Some(408), "", Unavailable),
        ("reset", None, "read ECONNRESET", Unavailable),
        ("time-out", None, "request timed out", Unavailable),
        ("network", None, "Network error", Unavailable),
        ("401", Some(401), "invalid x-api-key", Auth),
        ("403", Some(403), "forbidden", Auth),
        ("413", Some(413), "", ContextOverflow),
        ("400 without a body", Some(400), " ", ContextOverflow),
        (
            "first family",
            Some(400),
            "prompt is too long: 210000 tokens > 200000 maximum",
            ContextOverflow,
        ),
        (
            "second family",
            Some(400),
            r#"{"code":"context_length_exceeded"}"#,
            ContextOverflow,
        ),
        (
            "third family",
            Some(400),
            "The input token count (1100000) exceeds the maximum number of tokens allowed",
            ContextOverflow,
        ),
        (
            "stream error",
            None,
            "Your input exceeds the context window of this model.",
            ContextOverflow,
        ),
        (
            "overflow that names capacity",
            Some(400),
            "exceeds the context length capacity",
            ContextOverflow,
        ),
        ("bad request", Some(400), "unknown field", Other),
        ("404", Some(404), "model not found", Other),
        ("nothing known", None, "", Other),
        ("agent prose", None, "I could not find the file", Other),
    ] {
        assert_eq!(classify(status, message), class, "{name}");
    }
}

#[test]
fn answers_each_class() {
    use ErrorClass::{Auth, ContextOverflow, Other, RateLimited, Unavailable};
    let exhausted = Some(ProviderFault::Exhausted);
    let unavailable = Some(ProviderFault::Unavailable);
    for (class, in_a_row, fault, action) in [
        (RateLimited, 1, exhausted, Action::Reselect),
        (Unavailable, 1, unavailable, Action::Again),
        (Unavailable, 2, unavailable, Action::Reselect),
        (Auth, 1, None, Action::LeaveOut),
        (ContextOverflow, 1, None, Action::Widen),
        (Other, 5, None, Action::Again),
    ] {
        assert_eq!(
            respond(class, in_a_row),
            Response { fault, action },
            "{class:?}, {in_a_row} in a row"
        );
    }
}

#[test]
fn settles_by_what_was_chosen() {
    let model = |text: &str| ModelRef::parse(text).unwrap();
    let (here, there) = (model("north/oak"), model("south/fern"));
    let (minute, day) = (Duration::from_secs(60), Duration::from_secs(86_400));
    let wait = |retry_after| Settled::Wait { retry_after };
    for (name, action, chosen, retry_after, settled) in [
        (
            "another model",
            Action::Reselect,
            Some(&there),
            None,
            Settled::Move,
        ),
        (
            "the same",
            Action::Reselect,
            Some(&here),
            None,
            wait(DEFAULT_WAIT),
        ),
        (
            "the same, told when",
            Action::Reselect,
            Some(&here),
            Some(minute),
            wait(minute),
        ),
        (
            "the same, told too late",
            Action::Reselect,
            Some(&here),
            Some(day),
            wait(LONGEST_WAIT),
        ),
        ("nobody", Action::Reselect, None, None, wait(DEFAULT_WAIT)),
        (
            "a wider window",
            Action::Widen,
            Some(&there),
            None,
            Settled::Move,
        ),
        (
            "no wider window",
            Action::Widen,
            None,
            None,
            Settled::Compact,
        ),
        ("at once", Action::Again, None, None, wait(Duration::ZERO)),
    ] {
        assert_eq!(
            settle(action, &here, chosen, retry_after),
            settled,
            "{name}"
        );
    }
}

/// 23.8: a 429 moves to the other provider of the tier, and waits where there is none.
#[test]
fn a_rate_limit_moves_to_another_provider_of_the_tier_or_waits() {
    let candidate = |text: &str, tier, order| Candidate {
        model: ModelRef::parse(text).unwrap(),
        tier,
        order,
        efforts: EffortSet::ALL,
        context_window: None,
        capabilities: None,
        prices: None,
    };
    let all = [
        candidate("A/sonnet", Tier::Balanced, 0),
        candidate("A/opus", Tier::Strong, 1),
        candidate("O/terra", Tier::Balanced, 2),
    ];
    let now = Timestamp::constant(1_800_000_000, 0);
    let response = respond(classify(Some(429), ""), 1);
    let state = QuotaState::default().after_fault(response.fault.unwrap(), None, now);
    let quota = ProviderQuota {
        state,
        ..ProviderQuota::default()
    };
    let profile = Profile::default();
    let again = |candidates: &[Candidate]| {
        let selection = select(&SelectionInput {
            candidates,
            required_tier: Tier::Balanced,
            min_tier: Tier::Balanced,
            task_risk: Ratio::ZERO,
            profile: &profile,
            availability: &|provider| {
                if provider == "A" {
                    quota.availability(now)
                } else {
                    Ratio::ONE
                }
            },
            evidence: &|_| Evidence::NONE,
            switch: None,
            context_tokens: 0,
            cost_basis: CostBasis::Tiers,
            estimate: None,
            on_floor_unmet: OnFloorUnmet::Strongest,
        })
        .unwrap();
        let chosen = &selection.winner().unwrap().candidate;
        (
            settle(response.action, &all[0].model, Some(&chosen.model), None),
            chosen.tier,
        )
    };
    assert_eq!(again(&all), (Settled::Move, Tier::Balanced));
    assert_eq!(
        again(&all[..2]),
        (
            Settled::Wait {
                retry_after: DEFAULT_WAIT
            },
            Tier::Balanced
        )
    );
}
