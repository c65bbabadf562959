//! The learned tasks of one dataset revision, ready to be asked: built once, then each question costs the postings of
//! its own words. Nothing here changes after it was built.

use std::collections::HashMap;

use super::route::{RouteMatch, Skipped, choose, newness};
use super::vector::Weights;
use super::words::{folded_words, is_negated, negates};
use super::{Guard, LearnedTask, Standing};
use crate::assessment::TOLERANCE;
use crate::stop_words::is_stop;

/// Most lessons shown for one request.
const MOST_LESSONS: usize = 3;

/// How close a task must be (policy `thresholds`), 0..=1. A task without a common word never matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// To answer for the request: `memory_similarity`, default 0.60.
    pub route: f64,
    /// To show its lesson: `memory_lesson`, default 0.45.
    pub lesson: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            route: 0.60,
            lesson: 0.45,
        }
    }
}

/// A learned task and how close it is to what was asked.
#[derive(Debug)]
pub struct Match<'a, L> {
    /// The task.
    pub task: &'a LearnedTask<L>,
    /// 0..=1.
    pub similarity: f64,
}

/// What memory knows about one request.
#[derive(Debug)]
pub struct Recall<'a, L> {
    /// The task whose labels answer, if any passed the route test.
    pub route: Option<RouteMatch<'a, L>>,
    /// At most three tasks with a lesson, closest first.
    pub lessons: Vec<Match<'a, L>>,
    /// Tasks close enough to route that a guard kept out, closest first.
    pub skipped: Vec<Skipped>,
}

/// One word in one learned task.
#[derive(Debug)]
struct Posting {
    task: usize,
    weight: f64,
}

/// The learned tasks of one tenant and one dataset revision.
#[derive(Debug)]
pub struct MemoryIndex<L> {
    weights: Weights,
    tasks: Vec<LearnedTask<L>>,
    negated: Vec<bool>,
    postings: HashMap<String, Vec<Posting>>,
}

impl<L> MemoryIndex<L> {
    /// Builds the index. `requests` are those of *all* rows of the dataset, the learned ones among them: they give
    /// words their weight. `tasks` are the rows with `source = "session"`.
    pub fn build<'a>(
        requests: impl IntoIterator<Item = &'a str>,
        tasks: Vec<LearnedTask<L>>,
    ) -> Self {
        let weights = Weights::of_requests(requests);
        let mut postings: HashMap<String, Vec<Posting>> = HashMap::new();
        for (at, task) in tasks.iter().enumerate() {
            for (word, weight) in weights.vector(&task.request).terms() {
                postings
                    .entry(word.to_owned())
                    .or_default()
                    .push(Posting { task: at, weight });
            }
        }
        let negated = tasks.iter().map(|task| is_negated(&task.request)).collect();
        Self {
            weights,
            tasks,
            negated,
            postings,
        }
    }

    /// The word weights, for comparisons with texts that are not learned.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Every learned task, stale ones too, in the order they were given.
    #[must_use]
    pub fn tasks(&self) -> &[LearnedTask<L>] {
        &self.tasks
    }

    /// Runs the route test and the lesson test of a request (routing.md 14).
    #[must_use]
    pub fn recall(&self, request: &str, thresholds: Thresholds) -> Recall<'_, L> {
        let folded = folded_words(request);
        let negated = negates(&folded);
        let scores = self.scores(folded);
        let (route, skipped) = self.route(&scores, negated, thresholds.route);
        let teaching = scores
            .iter()
            .filter(|(_, similarity)| *similarity >= thresholds.lesson - TOLERANCE);
        let teaching = teaching.map(|(at, similarity)| (&self.tasks[*at], *similarity));
        let lessons = closest(
            teaching.filter(|(task, _)| task.usable_lesson().is_some()),
            MOST_LESSONS,
        );
        Recall {
            route,
            lessons,
            skipped,
        }
    }

    /// The `limit` tasks closest to a text, stale ones too, closest first; those without a common word are left out.
    #[must_use]
    pub fn search(&self, text: &str, limit: usize) -> Vec<Match<'_, L>> {
        let scores = self.scores(folded_words(text));
        closest(
            scores
                .iter()
                .map(|(at, similarity)| (&self.tasks[*at], *similarity)),
            limit,
        )
    }

    /// Similarity to each task that shares a word with the text. The sums run in the order of the words, as those of
    /// [`super::similarity`] do, so both give the same number.
    fn scores(&self, mut folded: Vec<String>) -> Vec<(usize, f64)> {
        folded.retain(|word| word.chars().nth(1).is_some() && !is_stop(word));
        let vector = self.weights.vector_of_words(folded);
        let mut sums = vec![0.0; self.tasks.len()];
        let mut touched = Vec::new();
        for (word, weight) in vector.terms() {
            for posting in self.postings.get(word).map_or(&[][..], Vec::as_slice) {
                let sum = &mut sums[posting.task];
                if *sum == 0.0 {
                    touched.push(posting.task);
                }
                *sum += weight * posting.weight;
            }
        }
        touched
            .into_iter()
            .map(|at| (at, f64::min(sums[at], 1.0)))
            .collect()
    }

    fn route(
        &self,
        scores: &[(usize, f64)],
        negated: bool,
        threshold: f64,
    ) -> (Option<RouteMatch<'_, L>>, Vec<Skipped>) {
        let mut matches = Vec::new();
        let mut skipped = Vec::new();
        for &(at, similarity) in scores {
            if similarity < threshold - TOLERANCE {
                continue;
            }
            let task = &self.tasks[at];
            let mut skip = |guard| {
                skipped.push(Skipped {
                    task: task.id.clone(),
                    similarity,
                    guard,
                })
            };
            match &task.standing {
                Standing::Stale => skip(Guard::Stale),
                Standing::InForce { .. } if self.negated[at] != negated => skip(Guard::Negation),
                Standing::InForce {
                    tier,
                    effort,
                    labels,
                } => {
                    matches.push(RouteMatch {
                        task,
                        similarity,
                        tier: *tier,
                        effort: *effort,
                        labels,
                    });
                }
            }
        }
        skipped.sort_by(|one, other| {
            other
                .similarity
                .total_cmp(&one.similarity)
                .then_with(|| one.task.cmp(&other.task))
        });
        (choose(matches), skipped)
    }
}

/// The `limit` closest of `found`: by similarity, then newest.
fn closest<'a, L>(
    found: impl Iterator<Item = (&'a LearnedTask<L>, f64)>,
    limit: usize,
) -> Vec<Match<'a, L>> {
    let mut matches: Vec<_> = found
        .map(|(task, similarity)| Match { task, similarity })
        .collect();
    matches.sort_by(|one, other| {
        other
            .similarity
            .total_cmp(&one.similarity)
            .then_with(|| newness(other.task, one.task))
    });
    matches.truncate(limit);
    matches
}

#[cfg(test)]
mod tests {
    use decision::vocabulary::{Effort, Tier};
    use jiff::Timestamp;

    use super::*;

    fn task(id: &str, request: &str, lesson: &str) -> LearnedTask<&'static str> {
        LearnedTask {
            id: id.to_owned(),
            request: request.to_owned(),
            lesson: Some(lesson.to_owned()),
            created: Timestamp::UNIX_EPOCH,
            standing: Standing::InForce {
                tier: Tier::Fast,
                effort: Effort::Low,
                labels: "attached",
            },
        }
    }

    fn stale(id: &str, request: &str) -> LearnedTask<&'static str> {
        LearnedTask {
            standing: Standing::Stale,
            ..task(id, request, "old advice")
        }
    }

    fn index(tasks: Vec<LearnedTask<&'static str>>) -> MemoryIndex<&'static str> {
        let requests: Vec<String> = tasks.iter().map(|task| task.request.clone()).collect();
        MemoryIndex::build(requests.iter().map(String::as_str), tasks)
    }

    #[test]
    fn a_stale_task_neither_routes_nor_teaches_and_is_named() {
        let index = index(vec![
            stale("s00001", "Fix the date parser"),
            task("s00002", "Write release notes", ""),
        ]);
        let recall = index.recall("Fix the date parser", Thresholds::default());
        assert!(recall.route.is_none());
        assert!(recall.lessons.is_empty());
        assert_eq!(
            recall.skipped,
            [Skipped {
                task: "s00001".into(),
                similarity: 1.0,
                guard: Guard::Stale
            }]
        );
        assert_eq!(
            index.search("date", 5).len(),
            1,
            "but it is found by a search"
        );
    }

    #[test]
    fn a_negation_on_one_side_only_blocks_the_route() {
        let index = index(vec![
            task("s00001", "Do not log the token", ""),
            task("s00002", "Add a form", ""),
        ]);
        let guards = |text| {
            let recall = index.recall(text, Thresholds::default());
            (
                recall.route.map(|found| found.task.id.as_str()),
                recall.skipped.first().map(|skipped| skipped.guard),
            )
        };
        assert_eq!(guards("Log the token"), (None, Some(Guard::Negation)));
        assert_eq!(
            guards("Never log the token"),
            (Some("s00001"), None),
            "both are negated"
        );
        assert_eq!(guards("Without a form, add"), (None, Some(Guard::Negation)));
    }

    #[test]
    fn shows_the_three_closest_lessons_newest_first_among_equals() {
        let mut tasks: Vec<_> = ["s1", "s2", "s3", "s4"]
            .map(|id| task(id, "Fix the date parser", "Run it twice."))
            .into();
        for (second, task) in tasks.iter_mut().enumerate() {
            task.created = Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
        }
        tasks.push(task("s5", "Fix the date parser", " \n"));
        tasks.push(task("s6", "Fix the date format", "Formats are in a table."));
        let index = index(tasks);
        let recall = index.recall(
            "Fix the date parser",
            Thresholds {
                route: 0.6,
                lesson: 0.1,
            },
        );
        let ids: Vec<_> = recall
            .lessons
            .iter()
            .map(|found| found.task.id.as_str())
            .collect();
        assert_eq!(ids, ["s4", "s3", "s2"]);
    }

    #[test]
    fn nothing_matches_without_a_common_word_even_at_threshold_zero() {
        let index = index(vec![task("s00001", "Fix the date parser", "x")]);
        let recall = index.recall(
            "Corrija o rodapé",
            Thresholds {
                route: 0.0,
                lesson: 0.0,
            },
        );
        assert!(recall.route.is_none() && recall.lessons.is_empty() && recall.skipped.is_empty());
    }
}
