//! Profiles: what a decision weighs how much, and the least chance of success it accepts (routing.md 7).

use serde::{Deserialize, Serialize};

use crate::bounded::Ratio;

/// Weights of the utility and the minimum success, under a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name; those of the built-in four are taken.
    pub name: String,
    /// Weight of success, q.
    pub quality: Ratio,
    /// Weight of cost, c.
    pub cost: Ratio,
    /// Weight of latency, l.
    pub latency: Ratio,
    /// Weight of failure times task risk, r.
    pub risk: Ratio,
    /// Least posterior success a model must promise.
    pub min_success: Ratio,
}

/// Name of the profile that holds when nothing names one.
pub const DEFAULT: &str = "balanced";

/// Names of the built-in profiles, cheapest first.
pub const BUILT_IN_NAMES: [&str; 4] = ["economy", "balanced", "quality", "critical"];

/// Name, q, c, l, r, minimum success (routing.md 7).
const BUILT_IN: [(&str, [Ratio; 5]); 4] = [
    ("economy", ratios([0.30, 0.50, 0.20, 0.0, 0.75])),
    ("balanced", ratios([0.45, 0.30, 0.15, 0.10, 0.85])),
    ("quality", ratios([0.70, 0.10, 0.0, 0.20, 0.90])),
    ("critical", ratios([0.70, 0.0, 0.0, 0.30, 0.95])),
];

const fn ratios(values: [f64; 5]) -> [Ratio; 5] {
    let [q, c, l, r, m] = values;
    [
        Ratio::constant(q),
        Ratio::constant(c),
        Ratio::constant(l),
        Ratio::constant(r),
        Ratio::constant(m),
    ]
}

impl Profile {
    /// The built-in profile of a name, if there is one.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        BUILT_IN
            .iter()
            .find(|(known, _)| *known == name)
            .map(Self::from_row)
    }

    /// The four built-in profiles: economy, balanced, quality, critical.
    #[must_use]
    pub fn all_built_in() -> [Self; 4] {
        BUILT_IN.each_ref().map(Self::from_row)
    }

    fn from_row((name, [quality, cost, latency, risk, min_success]): &(&str, [Ratio; 5])) -> Self {
        Self {
            name: (*name).to_owned(),
            quality: *quality,
            cost: *cost,
            latency: *latency,
            risk: *risk,
            min_success: *min_success,
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::from_row(&BUILT_IN[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_four_of_the_page_with_balanced_as_default() {
        let names = Profile::all_built_in().map(|profile| profile.name);
        assert_eq!(names, ["economy", "balanced", "quality", "critical"]);
        assert_eq!(Profile::default().name, DEFAULT);
        assert_eq!(Profile::built_in("frugal"), None);
        for profile in Profile::all_built_in() {
            let weights = profile.quality.get()
                + profile.cost.get()
                + profile.latency.get()
                + profile.risk.get();
            assert!(
                (weights - 1.0).abs() < 1e-12,
                "weights of {} add up to 1",
                profile.name
            );
        }
    }

    #[test]
    fn refuses_weights_that_are_no_ratios() {
        let text =
            r#"{"name":"own","quality":1.5,"cost":0,"latency":0,"risk":0,"min_success":0.9}"#;
        assert!(serde_json::from_str::<Profile>(text).is_err());
    }
}
