//! Which rows make the next pass. Pure.

use std::collections::VecDeque;

/// Something with rows that wait.
pub(super) trait Waiting {
    /// Tokens of each row that waits, at least one.
    fn lengths(&self) -> impl Iterator<Item = usize>;
}

/// Takes jobs from the front until the pass is full, each with how many of its rows belong to it: at most `limit` tokens,
/// but at least one row.
pub(super) fn next_pass<J: Waiting>(jobs: &mut VecDeque<J>, limit: usize) -> Vec<(J, usize)> {
    let mut pass = Vec::new();
    let mut tokens = 0_usize;
    while let Some(job) = jobs.pop_front() {
        let mut taken = 0;
        let mut all = true;
        for length in job.lengths() {
            let first = pass.is_empty() && taken == 0;
            if !first && tokens.saturating_add(length) > limit {
                all = false;
                break;
            }
            tokens = tokens.saturating_add(length);
            taken += 1;
        }
        if taken == 0 {
            jobs.push_front(job);
            break;
        }
        pass.push((job, taken));
        if !all {
            break;
        }
    }
    pass
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Waiting for Vec<usize> {
        fn lengths(&self) -> impl Iterator<Item = usize> {
            self.iter().copied()
        }
    }

    #[test]
    fn fills_a_pass_from_the_front() {
        type Row = (&'static str, Vec<Vec<usize>>, Vec<usize>, usize);
        let rows: [Row; 7] = [
            ("nothing waits", vec![], vec![], 0),
            ("all fit", vec![vec![3, 3], vec![4]], vec![2, 1], 0),
            ("the second waits", vec![vec![6], vec![5]], vec![1], 1),
            (
                "the second in part",
                vec![vec![6], vec![4, 4], vec![1]],
                vec![1, 1],
                1,
            ),
            (
                "one row beyond the limit",
                vec![vec![40], vec![1]],
                vec![1],
                1,
            ),
            (
                "a long row is not joined",
                vec![vec![1], vec![40]],
                vec![1],
                1,
            ),
            ("many rows in part", vec![vec![4, 4, 4, 4]], vec![2], 0),
        ];
        for (name, jobs, taken, left) in rows {
            let mut jobs: VecDeque<_> = jobs.into();
            let pass = next_pass(&mut jobs, 10);
            let counts: Vec<usize> = pass.iter().map(|(_, count)| *count).collect();
            assert_eq!((counts, jobs.len()), (taken, left), "{name}");
        }
    }
}
