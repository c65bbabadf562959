//! Copies of requests for servers that want to serve (control-plane 10): sent after the champion's answer went out, from
//! a bounded queue that drops when it is full, by few at once, and compared label by label. Whatever happens to a copy,
//! no answer waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use decision::{Answer, Answers};
use routing::text::cut;
use service::runtime::Shutdown;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;

use super::ask::{MAX_UNITS, once};
use super::metrics::ServerMetrics;
use super::table::{Entry, Table};

/// Copies that wait.
pub const COPIES_QUEUED: usize = 64;

/// Copies that are asked at once.
const AT_ONCE: usize = 4;

/// How long the answer to a copy may take. Nobody waits for it, but a server that hangs must not hold copies for ever.
const WAIT: Duration = Duration::from_secs(10);

/// What became of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copied {
    /// Every label is the same.
    Agrees,
    /// A label is another one.
    Differs,
    /// There was no answer.
    Failed,
    /// There was no room in the queue.
    Dropped,
}

impl Copied {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Agrees, Self::Differs, Self::Failed, Self::Dropped];

    /// The word at a metric's label.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

/// A request that was answered, and who may be asked the same.
#[derive(Debug)]
pub(super) struct Copy {
    text: String,
    answers: Answers,
    shadows: Vec<Entry>,
}

/// Where copies are put.
#[derive(Debug, Clone)]
pub(super) struct Copies {
    queue: Sender<Copy>,
    metrics: ServerMetrics,
}

impl Copies {
    /// The queue and its end.
    pub(super) fn new(metrics: ServerMetrics) -> (Self, Receiver<Copy>) {
        let (queue, waiting) = mpsc::channel(COPIES_QUEUED);
        (Self { queue, metrics }, waiting)
    }

    /// Copies a request that the champion answered, where its table has shadows and its task is among those copied.
    /// Never waits.
    pub(super) fn offer(&self, table: &Table, text: &str, task: &str, answers: Answers) {
        let shadows: Vec<_> = table.shadows(task).into_iter().cloned().collect();
        if shadows.is_empty() {
            return;
        }
        let copy = Copy {
            text: cut(text, MAX_UNITS),
            answers,
            shadows,
        };
        if self.queue.try_send(copy).is_err() {
            self.metrics.copied(Copied::Dropped);
        }
    }
}

/// Asks shadows until the process drains.
pub(super) async fn work(
    waiting: &mut Receiver<Copy>,
    metrics: &ServerMetrics,
    shutdown: &Shutdown,
) {
    let mut asked = JoinSet::new();
    loop {
        tokio::select! {
            () = shutdown.draining() => return,
            Some(ended) = asked.join_next() => match ended {
                Ok(copied) => metrics.copied(copied),
                Err(error) => tracing::error!(%error, "a copy of a request ended early"),
            },
            copy = waiting.recv(), if asked.len() < AT_ONCE => match copy {
                None => return,
                Some(copy) => {
                    asked.spawn(copy.ask());
                }
            },
        }
    }
}

impl Copy {
    /// Asks the first shadow that lets it in.
    async fn ask(self) -> Copied {
        let now = Instant::now();
        let admitted = self.shadows.iter().find_map(|entry| {
            let serves = entry.server.serves()?;
            Some((entry.admit_copy(now).ok()?, serves, &entry.server))
        });
        let Some((admitted, serves, server)) = admitted else {
            return Copied::Failed;
        };
        let counted = server.counted().cloned();
        let Ok(answered) = once(admitted, &serves, &self.text, now + WAIT).await else {
            return Copied::Failed;
        };
        let agrees = same_labels(&self.answers, &answered.answers);
        if let Some(counted) = counted {
            counted.compared(agrees);
        }
        if agrees {
            Copied::Agrees
        } else {
            Copied::Differs
        }
    }
}

/// Whether two sets of answers mean the same, question by question: the chosen option, the nearest level, yes or no.
fn same_labels(one: &Answers, other: &Answers) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .all(|(id, answer)| other.get(id).is_some_and(|same| same_label(answer, same)))
}

fn same_label(one: &Answer, other: &Answer) -> bool {
    match (one, other) {
        (Answer::Choice { choice, .. }, Answer::Choice { choice: other, .. }) => choice == other,
        (
            Answer::Score { score, levels, .. },
            Answer::Score {
                score: other,
                levels: theirs,
                ..
            },
        ) => levels == theirs && level(*score, *levels) == level(*other, *theirs),
        (Answer::Noul { .. }, Answer::Noul { .. }) => one.holds() == other.holds(),
        _ => false,
    }
}

/// The level nearest to a score, on the scale.
fn level(score: f64, levels: usize) -> u64 {
    let highest = levels.saturating_sub(1) as f64;
    // Finite and within the scale, so nothing is lost.
    score.round().clamp(0.0, highest) as u64
}

/// The end of the queue, for the one who works on it.
pub(super) type Waiting = Arc<tokio::sync::Mutex<Receiver<Copy>>>;

#[cfg(test)]
mod tests {
    use super::*;
    use decision::relay_contract;

    /// Answers to our questions: the first option, level and yes-or-no as given.
    fn answers(choice: usize, score: f64, noul: f64) -> Answers {
        let ours = relay_contract();
        let object: serde_json::Map<String, serde_json::Value> = ours
            .questions()
            .iter()
            .map(|question| {
                let value = match &question.criteria {
                    decision::contract::Criteria::Choice(options) => {
                        serde_json::json!({"type": "choice", "choice": options[choice].id})
                    }
                    decision::contract::Criteria::Score(_) => {
                        serde_json::json!({"type": "score", "score": score})
                    }
                    decision::contract::Criteria::Noul(_) => {
                        serde_json::json!({"type": "noul", "noul": noul})
                    }
                };
                (question.id.clone(), value)
            })
            .collect();
        let body = serde_json::json!({"answers": object}).to_string();
        decision::Reply::read(ours.questions(), body.as_bytes())
            .unwrap()
            .answers
    }

    #[test]
    fn answers_are_the_same_when_every_label_is() {
        let one = answers(0, 1.2, 0.9);
        for (name, other, same) in [
            ("itself", answers(0, 1.2, 0.9), true),
            ("less sure", answers(0, 0.6, 0.5), true),
            ("another option", answers(1, 1.2, 0.9), false),
            ("another level", answers(0, 1.6, 0.9), false),
            ("no instead of yes", answers(0, 1.2, 0.4), false),
        ] {
            assert_eq!(same_labels(&one, &other), same, "{name}");
        }
        assert_eq!((level(-3.0, 5), level(9.0, 5), level(2.5, 5)), (0, 4, 3));
    }
}
