//! Which versions stay (training 9, control-plane 11). Pure.

use std::collections::BTreeSet;

/// A trained version: a LayaModel with label `relay.dev/run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trained {
    /// Name of the object.
    pub name: String,
    /// Its place in the order of training; a larger one is newer.
    pub made: i64,
}

/// Trained versions that are to be deleted, oldest first. `champions` are what serves and `pinned` is everything else
/// that an object names, `previous` and candidates too: neither ever goes. Of the others the newest stay, so many that they are `keep` with
/// one champion counted, whether that is a trained one or not.
#[must_use]
pub fn surplus(
    trained: &[Trained],
    champions: &BTreeSet<String>,
    pinned: &BTreeSet<String>,
    keep: usize,
) -> Vec<String> {
    let mut others: Vec<_> = trained
        .iter()
        .filter(|version| !champions.contains(&version.name))
        .collect();
    others.sort_by(|a, b| (b.made, &b.name).cmp(&(a.made, &a.name)));
    let mut gone: Vec<String> = others
        .into_iter()
        .skip(keep.saturating_sub(1))
        .filter(|version| !pinned.contains(&version.name))
        .map(|version| version.name.clone())
        .collect();
    gone.reverse();
    gone
}

/// Digests that may be removed from the volume of all models: of versions that are being deleted, less those of versions
/// that are not, less those that a server has.
#[must_use]
pub fn prunable(
    leaving: &BTreeSet<String>,
    staying: &BTreeSet<String>,
    serving: &BTreeSet<String>,
) -> Vec<String> {
    leaving
        .iter()
        .filter(|digest| !staying.contains(*digest) && !serving.contains(*digest))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn trained(numbers: std::ops::RangeInclusive<i64>) -> Vec<Trained> {
        let version = |made: i64| Trained {
            name: made.to_string(),
            made,
        };
        numbers.map(version).collect()
    }

    /// Training 15.5.
    #[test]
    fn the_vectors_of_the_page() {
        for (case, count, champion, pinned, expected) in [
            (
                "champion 5, previous 4",
                5,
                "5",
                set(&["4"]),
                vec!["1", "2"],
            ),
            ("champion 2, previous 1", 5, "2", set(&["1"]), vec!["3"]),
            (
                "champion shipped",
                5,
                "shipped",
                set(&["3"]),
                vec!["1", "2"],
            ),
            ("an object names 1", 5, "5", set(&["4", "1"]), vec!["2"]),
            ("four good trainings", 4, "4", set(&["3"]), vec!["1"]),
        ] {
            let gone = surplus(&trained(1..=count), &set(&[champion]), &pinned, 3);
            assert_eq!(gone, expected, "{case}");
        }
    }

    #[test]
    fn what_serves_or_is_named_never_goes_however_few_are_kept() {
        let all = trained(1..=6);
        let gone = surplus(&all, &set(&["1", "2"]), &set(&["3"]), 1);
        assert_eq!(gone, ["4", "5", "6"]);
        assert!(surplus(&all, &set(&[]), &set(&[]), 100).is_empty());
        assert_eq!(surplus(&all, &set(&[]), &set(&[]), 0).len(), 6);
    }

    #[test]
    fn only_what_nobody_has_is_prunable() {
        let found = prunable(&set(&["a", "b", "c"]), &set(&["b", "x"]), &set(&["c"]));
        assert_eq!(found, ["a"]);
    }
}
