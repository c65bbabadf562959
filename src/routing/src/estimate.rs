//! What a task will cost on a model, what it would have cost on the baseline, and the difference (routing.md 8). For
//! display and comparison: an unknown price makes an unknown cost, never a zero.

use decision::vocabulary::Tier;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::bounded::Usd;
use crate::history::{self, HistoryKey};
use crate::reason::{Warning, WarningCode};
use crate::registry::{Candidate, ModelRef, Prices};

/// Tokens of a task, each in exactly one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Input that no cache held.
    pub input: u64,
    /// Input read from the cache.
    pub cached_input: u64,
    /// Input written to the cache.
    pub cache_write: u64,
    /// Output.
    pub output: u64,
}

/// Input and output in thousands by complexity level (routing.md 8).
const BY_LEVEL: [(u64, u64); 5] = [(20, 1), (60, 3), (200, 10), (600, 30), (1500, 80)];
/// Four of five input tokens come from the cache.
const CACHED_OF_FIVE: u64 = 4;

impl Tokens {
    /// What a class of task takes when nothing is known of it.
    #[must_use]
    pub fn typical(class: HistoryKey) -> Self {
        let (input, output) = BY_LEVEL[usize::from(class.level()).min(BY_LEVEL.len() - 1)];
        let fifth = input * 1000 / 5;
        Self {
            input: fifth * (5 - CACHED_OF_FIVE),
            cached_input: fifth * CACHED_OF_FIVE,
            cache_write: 0,
            output: output * 1000,
        }
    }

    /// The mean of earlier tasks of a class, decayed like the rest of its history; nothing without any.
    #[must_use]
    pub fn mean<'a>(used: impl IntoIterator<Item = &'a Used>, now: Timestamp) -> Option<Self> {
        let (mut weights, mut sums) = (0.0, [0.0; 4]);
        for used in used {
            let weight = history::decay(used.at, now);
            weights += weight;
            for (sum, tokens) in sums.iter_mut().zip(used.tokens.classes()) {
                *sum += weight * tokens as f64;
            }
        }
        // A float beyond u64 becomes the largest u64.
        let [input, cached_input, cache_write, output] =
            sums.map(|sum| (sum / weights).round() as u64);
        (weights > 0.0).then_some(Self {
            input,
            cached_input,
            cache_write,
            output,
        })
    }

    const fn classes(self) -> [u64; 4] {
        [self.input, self.cached_input, self.cache_write, self.output]
    }
}

/// What an earlier task of a class used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// When it ended.
    #[serde(with = "crate::timestamp")]
    pub at: Timestamp,
    /// Over all its attempts.
    pub tokens: Tokens,
}

/// An estimated cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// USD; unknown without prices.
    pub cost_usd: Option<Usd>,
    /// It is at most this: the cached price is unknown, and the full one was taken.
    pub upper_bound: bool,
}

/// Σ tokens × price / 10⁶. An unknown price of cached input is taken to be that of input, and so is that of cache writes,
/// which providers without one bill as input.
#[must_use]
pub fn estimate(tokens: Tokens, prices: Option<&Prices>) -> Estimate {
    let Some(prices) = prices else {
        return Estimate::default();
    };
    let price_of = [
        prices.input,
        prices.cached_input.unwrap_or(prices.input),
        prices.cache_write.unwrap_or(prices.input),
        prices.output,
    ];
    let parts = tokens.classes().into_iter().zip(price_of);
    let sum: f64 = parts
        .map(|(tokens, price)| tokens as f64 * price.get() / 1e6)
        .sum();
    Estimate {
        cost_usd: Usd::clamped(sum).ok(),
        upper_bound: prices.cached_input.is_none() && tokens.cached_input > 0,
    }
}

/// The model a decision is compared with: the policy's, else the first strong candidate.
#[must_use]
pub fn baseline<'a>(
    policy: Option<&'a ModelRef>,
    candidates: &'a [Candidate],
) -> Option<&'a ModelRef> {
    let strong = candidates
        .iter()
        .filter(|candidate| candidate.tier == Tier::Strong);
    policy.or_else(|| {
        strong
            .min_by_key(|candidate| candidate.order)
            .map(|candidate| &candidate.model)
    })
}

/// What the baseline would have cost, and what the decision saves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Counterfactual {
    /// The baseline.
    pub baseline: ModelRef,
    /// Its cost in USD.
    pub cost_usd: Option<Usd>,
    /// Its cost less that of the chosen model, in USD; negative when the choice costs more; unknown if one is.
    pub savings_usd: Option<f64>,
}

/// Compares a choice with the baseline on the same tokens.
#[must_use]
pub fn counterfactual(baseline: &ModelRef, cost: Estimate, chosen: Estimate) -> Counterfactual {
    let savings = cost
        .cost_usd
        .zip(chosen.cost_usd)
        .map(|(cost, chosen)| cost.get() - chosen.get());
    Counterfactual {
        baseline: baseline.clone(),
        cost_usd: cost.cost_usd,
        savings_usd: savings,
    }
}

/// The warning for prices that are older than 90 days.
#[must_use]
pub fn price_stale(model: &ModelRef, prices: Option<&Prices>, today: Date) -> Option<Warning> {
    let prices = prices.filter(|prices| prices.stale(today))?;
    let message = format!(
        "prices of {model} are of {}; update `prices` of the model",
        prices.as_of
    );
    Some(Warning {
        code: WarningCode::PriceStale,
        message,
    })
}

#[cfg(test)]
mod tests {
    use decision::vocabulary::TaskType;
    use jiff::SignedDuration;

    use super::*;
    use crate::bounded::Ratio;

    fn prices(text: &str) -> Prices {
        serde_json::from_str(&format!(
            r#"{{{text},"as_of":"2026-01-01","source":"list"}}"#
        ))
        .unwrap()
    }

    fn model(text: &str) -> ModelRef {
        ModelRef::parse(text).unwrap()
    }

    #[test]
    fn typical_tokens_follow_the_level() {
        let class = |level: f64| history::key(TaskType::BugFix, Ratio::new(level / 4.0).unwrap());
        let lines = [
            (0.0, 4, 16, 1),
            (1.0, 12, 48, 3),
            (2.0, 40, 160, 10),
            (3.0, 120, 480, 30),
            (4.0, 300, 1200, 80),
        ];
        for (level, input, cached, output) in lines {
            let wanted = Tokens {
                input: input * 1000,
                cached_input: cached * 1000,
                cache_write: 0,
                output: output * 1000,
            };
            assert_eq!(Tokens::typical(class(level)), wanted, "level {level}");
        }
    }

    #[test]
    fn costs_are_sums_over_classes_of_tokens() {
        let tokens = Tokens {
            input: 40_000,
            cached_input: 160_000,
            cache_write: 10_000,
            output: 10_000,
        };
        for (name, given, cost, upper_bound) in [
            (
                "all known",
                r#""input":3,"cached_input":0.3,"cache_write":4,"output":15"#,
                0.358,
                false,
            ),
            (
                "cached unknown",
                r#""input":3,"cache_write":4,"output":15"#,
                0.79,
                true,
            ),
            (
                "write unknown",
                r#""input":3,"cached_input":0.3,"output":15"#,
                0.348,
                false,
            ),
            (
                "free",
                r#""input":0,"cached_input":0,"output":0"#,
                0.0,
                false,
            ),
        ] {
            let got = estimate(tokens, Some(&prices(given)));
            assert!(
                (got.cost_usd.unwrap().get() - cost).abs() < 1e-12,
                "{name}: {got:?}"
            );
            assert_eq!(got.upper_bound, upper_bound, "{name}");
        }
        assert_eq!(
            estimate(tokens, None),
            Estimate {
                cost_usd: None,
                upper_bound: false
            },
            "unknown, not zero"
        );
        let all = Tokens {
            input: u64::MAX,
            cached_input: u64::MAX,
            cache_write: u64::MAX,
            output: u64::MAX,
        };
        let most = estimate(all, Some(&prices(r#""input":1000000,"output":1000000"#)));
        assert_eq!(most.cost_usd, Some(Usd::MOST));
    }

    #[test]
    fn means_decay_like_history() {
        let now = Timestamp::constant(1_800_000_000, 0);
        let used = |days: i64, input: u64| Used {
            at: now - SignedDuration::from_hours(24 * days),
            tokens: Tokens {
                input,
                ..Tokens::default()
            },
        };
        let input = |list: &[Used]| Tokens::mean(list, now).map(|tokens| tokens.input);
        assert_eq!(
            input(&[used(0, 100), used(14, 400)]),
            Some(200),
            "(100 + 400/2) / 1.5"
        );
        assert_eq!(input(&[used(91, 400)]), None, "forgotten");
        assert_eq!(input(&[]), None);
    }

    #[test]
    fn savings_need_both_costs() {
        let usd = |value: f64| Estimate {
            cost_usd: Usd::new(value).ok(),
            upper_bound: false,
        };
        let savings = |cost, chosen| counterfactual(&model("a/b"), cost, chosen).savings_usd;
        assert_eq!(savings(usd(3.0), usd(1.0)), Some(2.0));
        assert_eq!(savings(usd(1.0), usd(3.0)), Some(-2.0));
        assert_eq!(savings(Estimate::default(), usd(1.0)), None);
        assert_eq!(savings(usd(1.0), Estimate::default()), None);
    }

    #[test]
    fn the_baseline_is_the_policys_or_the_first_strong_candidate() {
        let registry = crate::registry::Registry::built_in();
        let providers = ["google".to_owned(), "openai-codex".to_owned()];
        let query = crate::registry::CandidateQuery {
            providers: &providers,
            ..Default::default()
        };
        let (candidates, _) = registry.candidates(&query);
        assert_eq!(
            baseline(None, &candidates),
            Some(&model("openai-codex/gpt-6-sol"))
        );
        assert_eq!(
            baseline(Some(&model("a/b")), &candidates),
            Some(&model("a/b"))
        );
        assert_eq!(baseline(None, &candidates[..2]), None);
    }

    #[test]
    fn old_prices_are_said() {
        let old = prices(r#""input":3,"output":15"#);
        let day = |month, day| jiff::civil::date(2026, month, day);
        assert_eq!(price_stale(&model("a/b"), Some(&old), day(4, 1)), None);
        assert_eq!(price_stale(&model("a/b"), None, day(4, 2)), None);
        let warning = price_stale(&model("a/b"), Some(&old), day(4, 2)).unwrap();
        assert_eq!(
            warning.message,
            "prices of a/b are of 2026-01-01; update `prices` of the model"
        );
    }
}
