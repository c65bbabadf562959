//! “Did you mean …?” for a word that is not in a closed list.

/// The candidate with the fewest edits from `word`, if it is close enough: one edit for each three characters, at least
/// two. Ties go to the first.
#[must_use]
pub fn suggest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|candidate| (edits(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment).
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &from) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &to) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(from != to))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && from == b[j - 1] && a[i - 1] == to {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("listen", "listen", 0),
            ("lsiten", "listen", 1),
            ("listn", "listen", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edits(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn suggests_what_is_close_and_nothing_else() {
        let keys = ["listen", "admin_listen", "policy", "token_file"];
        for (word, expected) in [
            ("lisen", Some("listen")),
            ("admin-listen", Some("admin_listen")),
            ("tokens_file", Some("token_file")),
            ("polcy", Some("policy")),
            ("database_url", None),
            ("x", None),
        ] {
            assert_eq!(suggest(word, keys), expected, "{word}");
        }
    }
}
