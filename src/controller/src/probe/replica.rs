//! What is known of one replica and what it is to be asked next. Pure: the time is passed in, asking is done elsewhere.
//!
//! There are two lanes, so that a slow answer to a question does not hide whether the server is there: looks (`/ready`,
//! `/health`) and questions. Each lane has at most one call under way.

use std::time::Duration;

use api::kinds::laya_server::{ProbeLevel, ServerApi};
use api::reason::Reason;
use jiff::Timestamp;

use super::call::{CallError, Said};
use super::health::{HealthSaid, ReadySaid, read_health, read_ready};
use super::judge::{Judged, Labels, dead, is_dead, judge};
use super::questions::BUILT_IN;
use super::seen::{DeviceSaid, Questions, QuestionsFailed, Readiness, ReplicaProbe};
use super::watched::{Pace, Replica};
use crate::clock::{Now, whole_seconds};

/// Between two looks while there is hurry, or something is not known or wrong.
const SOON: Duration = Duration::from_secs(1);
/// Between two looks at `/ready` of a server that serves.
const READY_EVERY: Duration = Duration::from_secs(5);
/// Between two looks at `/health` of a server that serves.
const HEALTH_EVERY: Duration = Duration::from_secs(15);
/// From a wrong answer to the same question again; failures that are closer count as one.
const APART: Duration = Duration::from_secs(10);
/// How long a server may turn questions away before that counts as one that was not answered.
const BUSY_FOR: Duration = Duration::from_secs(30);
/// From a question that was turned away to the same again.
const AFTER_BUSY: Duration = Duration::from_secs(2);
/// Looks without an answer, in a row, until a server that was there counts as gone. A refused connection is one at once.
const MISSES: u32 = 2;
/// Failures in a row until a server without `/ready` is not ready.
const FAILURES: u32 = 3;
/// Calls that a latency is the median of, after one that warms up.
const CALLS: usize = 5;
/// Probe questions between two measurements of a server that claims a GPU.
const MEASURE_EVERY: u32 = 10;

/// What a replica is to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// `/ready`.
    Ready,
    /// `/health`.
    Health,
    /// All questions about this state.
    Question(usize),
    /// The short request; 0 warms up.
    Latency(usize),
}

impl Ask {
    /// Which lane it runs in.
    pub(super) const fn lane(self) -> Lane {
        match self {
            Self::Ready | Self::Health => Lane::Looks,
            Self::Question(_) | Self::Latency(_) => Lane::Questions,
        }
    }
}

/// What may be under way at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Cheap.
    Looks,
    /// The model works for them.
    Questions,
}

/// Readiness as it is kept: the age of an unbroken row is computed when it is read.
#[derive(Debug, Clone, PartialEq)]
enum Standing {
    Unknown,
    Ready {
        since: Timestamp,
        boot: Duration,
    },
    NotReady {
        reason: String,
        message: String,
        verdict: Option<Reason>,
    },
    Unreachable {
        message: String,
    },
}

/// How far asking questions has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// All states once, from this one on.
    First(usize),
    /// The first round was right; a measurement is missing.
    Measuring(usize),
    /// One in turn; the number counts them.
    Turn(u32),
}

/// What is known of one replica.
#[derive(Debug)]
pub(super) struct ReplicaState {
    pub(super) replica: Replica,
    /// It has no `/ready`, whatever its image is said to speak.
    plain: bool,
    standing: Standing,
    misses: u32,
    health: HealthSaid,
    health_known: bool,
    /// Whether it answered, or failed to, since it is watched.
    health_asked: bool,
    fallbacks_grew: bool,
    /// Whether a pass has read that since.
    growth_told: bool,
    round: Round,
    /// Place among the replicas of its revision, and how many there are: they are asked in turn.
    turn: (u32, u32),
    /// Last labels by state, for the head that does not look.
    labels: Vec<Labels>,
    samples: Vec<Duration>,
    /// Where the turn goes on after a measurement.
    measured: u32,
    p50: Option<Duration>,
    last_latency: Option<Duration>,
    questions: Questions,
    failed_at: Option<Duration>,
    busy_since: Option<Duration>,
    ready_at: Duration,
    health_at: Duration,
    question_at: Duration,
    looking: bool,
    asking: bool,
}

impl ReplicaState {
    /// Whether `/health` names a contract.
    pub(super) const fn names_contract(&self) -> bool {
        self.health.contract.is_some()
    }

    /// Nothing is known of it yet.
    pub(super) fn new(replica: Replica, now: Duration) -> Self {
        let plain = replica.server_api == ServerApi::Laya;
        let mut state = Self {
            replica,
            plain,
            standing: Standing::Unknown,
            misses: 0,
            health: HealthSaid::default(),
            health_known: false,
            health_asked: false,
            fallbacks_grew: false,
            growth_told: false,
            round: Round::First(0),
            turn: (0, 1),
            labels: Vec::new(),
            samples: Vec::new(),
            measured: 0,
            p50: None,
            last_latency: None,
            questions: Questions::default(),
            failed_at: None,
            busy_since: None,
            ready_at: now,
            health_at: now,
            question_at: now,
            looking: false,
            asking: false,
        };
        state.note_wording();
        state
    }

    /// The same replica with other wishes.
    pub(super) fn rewatch(&mut self, replica: Replica, now: Duration) {
        let other_questions = !self.replica.asks_the_same(&replica);
        let hurry = replica.pace == Pace::Rollout && self.replica.pace == Pace::Steady;
        self.replica = replica;
        if other_questions {
            self.restart_questions(now);
        }
        if hurry {
            self.ready_at = self.ready_at.min(now + SOON);
            self.health_at = self.health_at.min(now + SOON);
        }
    }

    /// It is the replica at this place (from 0) of so many of its revision.
    pub(super) const fn take_turn(&mut self, place: u32, of: u32) {
        self.turn = (place, if of == 0 { 1 } else { of });
    }

    /// When there is something to ask next; `None` while all that is due is under way.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let looks = (!self.looking).then(|| {
            if self.plain {
                self.health_at
            } else {
                self.ready_at.min(self.health_at)
            }
        });
        let questions = self.may_ask().then_some(self.question_at);
        [looks, questions].into_iter().flatten().min()
    }

    /// What to ask now in a lane; it is under way then.
    pub(super) fn take(&mut self, lane: Lane, now: Duration) -> Option<Ask> {
        match lane {
            Lane::Looks if self.looking => None,
            Lane::Looks => {
                // What it is comes before whether it is ready: a pass that knows only the second would take it for a server
                // that says nothing of itself.
                let ask = if !self.health_asked && self.health_at <= now {
                    Ask::Health
                } else if !self.plain && self.ready_at <= now {
                    Ask::Ready
                } else if self.health_at <= now {
                    Ask::Health
                } else {
                    return None;
                };
                self.looking = true;
                Some(ask)
            }
            Lane::Questions if self.may_ask() && self.question_at <= now => {
                self.asking = true;
                Some(match self.round {
                    Round::First(at) => Ask::Question(at),
                    Round::Measuring(at) => Ask::Latency(at),
                    Round::Turn(number) => Ask::Question(number as usize % self.states()),
                })
            }
            Lane::Questions => None,
        }
    }

    /// Takes the answer to what was under way.
    pub(super) fn answered(
        &mut self,
        ask: Ask,
        came: &Result<Said, CallError>,
        took: Duration,
        now: &Now,
    ) {
        match ask.lane() {
            Lane::Looks => self.looking = false,
            Lane::Questions => self.asking = false,
        }
        match ask {
            Ask::Ready => self.ready_answered(came, now),
            Ask::Health => self.health_answered(came, now),
            Ask::Question(at) => self.question_answered(at, came, took, now),
            Ask::Latency(at) => self.latency_answered(at, came, took, now),
        }
    }

    /// What was under way was asked for a replica that is asked other questions by now: its answer says nothing, and judged
    /// by the new ones it would be wrong.
    pub(super) const fn outdated(&mut self) {
        self.asking = false;
    }

    /// What is known, as a pass reads it. What it is told now need not be kept for it.
    pub(super) fn told(&mut self, now: Duration) -> ReplicaProbe {
        self.growth_told = true;
        self.shown(now)
    }

    /// What is known.
    pub(super) fn shown(&self, now: Duration) -> ReplicaProbe {
        let readiness = match &self.standing {
            Standing::Unknown => Readiness::Unknown,
            Standing::Ready { since, boot } => Readiness::Ready {
                since: *since,
                for_seconds: now.saturating_sub(*boot).as_secs(),
            },
            Standing::NotReady {
                reason,
                message,
                verdict,
            } => Readiness::NotReady {
                reason: reason.clone(),
                message: message.clone(),
                verdict: *verdict,
            },
            Standing::Unreachable { message } => Readiness::Unreachable {
                message: message.clone(),
            },
        };
        ReplicaProbe {
            revision: self.replica.revision.clone(),
            ordinal: self.replica.ordinal,
            url: self.replica.url.clone(),
            readiness,
            plain: self.plain,
            digest: self.health.digest.clone(),
            contract: self.health.contract.clone(),
            device: DeviceSaid {
                claimed: self.health.claimed.clone(),
                fallbacks: self.health.fallbacks,
                fallbacks_grew: self.fallbacks_grew,
                last_reason: self.health.last_reason.clone(),
                p50_millis: self.p50.map(millis),
            },
            questions: self.questions.clone(),
        }
    }

    /// Time of the last question that was answered right.
    pub(super) const fn last_latency(&self) -> Option<Duration> {
        self.last_latency
    }

    fn may_ask(&self) -> bool {
        let there = match self.standing {
            Standing::Ready { .. } => true,
            // Answering a question is what makes it ready.
            _ => self.plain && self.health_known && self.misses == 0,
        };
        there && !self.asking && self.replica.questions.is_some()
    }

    fn states(&self) -> usize {
        match self.replica.recorded.len() {
            0 => BUILT_IN.len(),
            recorded => recorded,
        }
    }

    fn pause(&self, steady: Duration) -> Duration {
        let ready = matches!(self.standing, Standing::Ready { .. });
        match self.replica.pace {
            Pace::Steady if ready && self.misses == 0 => steady,
            _ => SOON,
        }
    }

    fn ready_answered(&mut self, came: &Result<Said, CallError>, now: &Now) {
        match came {
            Err(error) => {
                self.missed(error);
                self.fell_silent(&error.to_string(), now);
            }
            Ok(said) => match read_ready(said.status, &said.body) {
                ReadySaid::Yes => {
                    self.misses = 0;
                    self.is_ready(now);
                }
                ReadySaid::No {
                    reason,
                    message,
                    verdict,
                } => {
                    self.misses = 0;
                    // One that was told to drain does as it was told, and an end is counted by whoever sees processes.
                    let excused = matches!(reason.as_str(), "Draining" | "Starting");
                    let told = format!("{reason}: {message}");
                    self.standing = Standing::NotReady {
                        reason,
                        message,
                        verdict,
                    };
                    if !excused {
                        self.fell_silent(&told, now);
                    }
                }
                ReadySaid::NoSuchPath => {
                    self.plain = true;
                    self.misses = 0;
                    // What is plain is ready once it has answered a question.
                    self.standing = Standing::Unknown;
                    self.health_at = now.boot;
                }
            },
        }
        self.ready_at = now.boot + self.pause(READY_EVERY);
    }

    fn is_ready(&mut self, now: &Now) {
        if matches!(self.standing, Standing::Ready { .. }) {
            return;
        }
        let was_gone = matches!(self.standing, Standing::Unreachable { .. });
        self.standing = Standing::Ready {
            since: whole_seconds(now.wall),
            boot: now.boot,
        };
        // What it says of itself may be another thing now.
        self.health_at = now.boot;
        // At an address that is not ours to give, it may even be another server.
        if was_gone && self.replica.revision.is_empty() {
            self.restart_questions(now.boot);
        }
    }

    fn missed(&mut self, error: &CallError) {
        self.misses = self.misses.saturating_add(1);
        let refused = matches!(error, CallError::Unreachable { refused: true, .. });
        let was_ready = matches!(self.standing, Standing::Ready { .. });
        if refused || !was_ready || self.misses >= MISSES {
            self.standing = Standing::Unreachable {
                message: error.to_string(),
            };
        }
    }

    /// A server that answered all questions once and does not serve now is not asked any: that counts as one that was not
    /// answered, or nobody would ever take it back.
    fn fell_silent(&mut self, message: &str, now: &Now) {
        let ready = matches!(self.standing, Standing::Ready { .. });
        if ready || !self.questions.passed_all {
            return;
        }
        let known = self.questions.failed.clone();
        let failed = known
            .filter(|failed| failed.conclusive)
            .unwrap_or_else(|| QuestionsFailed {
                reason: Reason::ProbeTimedOut,
                message: format!("it takes no requests any more: {message}"),
                conclusive: false,
            });
        self.wrong(failed, now);
    }

    fn health_answered(&mut self, came: &Result<Said, CallError>, now: &Now) {
        self.health_asked = true;
        // Where nobody says which one should serve, the one that answered is meant.
        let answered = self.health.digest.as_deref();
        let wanted = self.replica.digest.as_deref().or(answered);
        let read = match came {
            Err(error) => Err(Some(error)),
            Ok(said) => read_health(said.status, &said.body, wanted).map_err(|_| None),
        };
        match read {
            Ok(said) => {
                if self.plain {
                    self.misses = 0;
                    if matches!(self.standing, Standing::Unreachable { .. }) {
                        self.standing = Standing::Unknown;
                        self.restart_questions(now.boot);
                    }
                }
                self.take_health(said, now);
            }
            // `/ready` decides where there is one.
            Err(_) if !self.plain => {}
            Err(Some(error)) => {
                self.missed(error);
                self.fell_silent(&error.to_string(), now);
            }
            Err(None) => {
                let message = "/health is not that of a Laya server";
                self.missed(&CallError::Unreachable {
                    refused: false,
                    message: message.to_owned(),
                });
                self.fell_silent(message, now);
            }
        }
        let steady = if self.plain {
            READY_EVERY
        } else {
            HEALTH_EVERY
        };
        let steady = if self.health_known { steady } else { SOON };
        self.health_at = now.boot + self.pause(steady);
    }

    fn take_health(&mut self, said: HealthSaid, now: &Now) {
        let before = std::mem::replace(&mut self.health, said);
        if self.health.digest.is_none() {
            // A server whose checkpoint names no contract says nothing of it; its answers did.
            self.health.digest.clone_from(&before.digest);
        }
        if self.health_known {
            let grew = self.health.fallbacks > before.fallbacks;
            // A pass that failed has not seen the growth; the next one must.
            self.fallbacks_grew = grew || (self.fallbacks_grew && !self.growth_told);
            self.growth_told &= !grew;
            let identity = |said: &HealthSaid| (said.digest.clone(), said.contract.clone());
            if identity(&before) != identity(&self.health) {
                self.restart_questions(now.boot);
            }
        }
        self.health_known = true;
    }

    /// What was learned by questions is forgotten; they are asked from the first on.
    fn restart_questions(&mut self, now: Duration) {
        self.round = Round::First(0);
        self.labels.clear();
        self.samples.clear();
        self.measured = 0;
        self.p50 = None;
        self.questions = Questions::default();
        self.failed_at = None;
        self.busy_since = None;
        self.question_at = now;
        self.note_wording();
    }

    /// Says so where there is nothing to ask, since nobody gave us the wording.
    fn note_wording(&mut self) {
        if self.replica.questions.is_some() {
            return;
        }
        let contract = self.replica.contract.as_deref().unwrap_or("of the server");
        self.questions.failed = Some(QuestionsFailed {
            reason: Reason::QuestionsUnknown,
            message: format!(
                "the wording of contract {contract} is not stored here, so its questions cannot be asked"
            ),
            conclusive: false,
        });
    }

    fn question_answered(
        &mut self,
        at: usize,
        came: &Result<Said, CallError>,
        took: Duration,
        now: &Now,
    ) {
        let Some(set) = self.replica.questions.clone() else {
            return;
        };
        let recorded = self.replica.recorded.get(at);
        self.questions.level = Some(match recorded {
            Some(_) => ProbeLevel::Expected,
            None => ProbeLevel::Shape,
        });
        let judged = judge(&set, came, recorded);
        if self.plain {
            self.plain_answered(&judged, now);
        }
        match judged {
            Judged::Right(labels) => {
                self.busy_since = None;
                self.last_latency = Some(took);
                self.note_checkpoint(came, now);
                self.right(at, labels, now);
            }
            Judged::Wrong(failed) => {
                self.busy_since = None;
                self.wrong(failed, now);
            }
            Judged::Busy => self.busy(now),
        }
    }

    /// A server without `/ready` is ready once it answers a question, and not while it answers none.
    fn plain_answered(&mut self, judged: &Judged, now: &Now) {
        match judged {
            Judged::Right(_) => self.is_ready(now),
            Judged::Busy => {}
            Judged::Wrong(failed) => {
                let ready = matches!(self.standing, Standing::Ready { .. });
                if !ready || self.questions.failures + 1 >= FAILURES {
                    self.standing = Standing::NotReady {
                        reason: failed.reason.as_str().to_owned(),
                        message: failed.message.clone(),
                        // It may answer the next question right.
                        verdict: None,
                    };
                }
            }
        }
    }

    /// The answer names the checkpoint it came from: as good as `/health`.
    fn note_checkpoint(&mut self, came: &Result<Said, CallError>, now: &Now) {
        let Ok(Said {
            checkpoint: Some(checkpoint),
            ..
        }) = came
        else {
            return;
        };
        if self.health.digest.as_ref() != Some(checkpoint) {
            self.health.digest = Some(checkpoint.clone());
            self.health_at = now.boot;
        }
    }

    fn right(&mut self, at: usize, labels: Labels, now: &Now) {
        if self.replica.recorded.is_empty() {
            if self.labels.len() == at {
                self.labels.push(labels);
            } else if let Some(known) = self.labels.get_mut(at) {
                *known = labels;
            }
            if self.labels.len() == BUILT_IN.len() && is_dead(&self.labels) {
                return self.wrong(dead(BUILT_IN.len()), now);
            }
        }
        // A first round that went wrong is forgotten once a whole one is right, not while another begins well.
        let of_round = |failed: &QuestionsFailed| failed.conclusive && !self.questions.passed_all;
        if !self.questions.failed.as_ref().is_some_and(of_round) {
            self.recovered();
        }
        self.question_at = now.boot;
        self.round = match self.round {
            Round::First(at) if at + 1 < self.states() => Round::First(at + 1),
            Round::First(_) | Round::Measuring(_) => {
                self.samples.clear();
                Round::Measuring(0)
            }
            Round::Turn(number) => {
                self.questions.passed_at = Some(whole_seconds(now.wall));
                self.question_at = now.boot + self.replica.interval * self.turn.1;
                let number = number.wrapping_add(1);
                let gpu = self.health.claimed.as_deref() == Some("cuda");
                if gpu && number % MEASURE_EVERY == 0 {
                    self.samples.clear();
                    self.measured = number;
                    self.question_at = now.boot;
                    Round::Measuring(0)
                } else {
                    Round::Turn(number)
                }
            }
        };
    }

    /// The row of failures, if there was one, is over.
    fn recovered(&mut self) {
        self.questions.failures = 0;
        self.questions.failed = None;
        self.failed_at = None;
    }

    fn wrong(&mut self, failed: QuestionsFailed, now: &Now) {
        let apart = self
            .failed_at
            .is_none_or(|before| now.boot.saturating_sub(before) >= APART);
        if apart {
            self.failed_at = Some(now.boot);
            self.questions.failures = self.questions.failures.saturating_add(1);
        }
        self.question_at = now.boot + APART;
        // In the first round nothing that came before a wrong answer counts. One that is merely late is asked again, soon
        // while somebody waits for it.
        if let Round::First(_) | Round::Measuring(_) = self.round
            && !self.questions.passed_all
        {
            if failed.conclusive {
                self.labels.clear();
                self.round = Round::First(0);
            } else {
                self.question_at = now.boot + self.pause(APART);
            }
        }
        self.questions.failed = Some(failed);
    }

    fn busy(&mut self, now: &Now) {
        let since = *self.busy_since.get_or_insert(now.boot);
        if now.boot.saturating_sub(since) >= BUSY_FOR {
            self.busy_since = None;
            let seconds = BUSY_FOR.as_secs();
            return self.wrong(
                QuestionsFailed {
                    reason: Reason::ProbeTimedOut,
                    message: format!("it turned probe questions away for {seconds} s: it is busy"),
                    conclusive: false,
                },
                now,
            );
        }
        self.question_at = now.boot + AFTER_BUSY;
    }

    fn latency_answered(
        &mut self,
        at: usize,
        came: &Result<Said, CallError>,
        took: Duration,
        now: &Now,
    ) {
        match came {
            Ok(Said { status: 200, .. }) => {}
            Ok(Said {
                status: 429 | 503, ..
            }) => return self.busy(now),
            // What a short request is answered with is judged as any other question is.
            came => {
                let Some(set) = self.replica.questions.clone() else {
                    return;
                };
                let failed = match judge(&set, came, None) {
                    Judged::Wrong(failed) => failed,
                    Judged::Right(_) | Judged::Busy => return,
                };
                return self.wrong(failed, now);
            }
        }
        self.busy_since = None;
        if at > 0 {
            self.samples.push(took);
        }
        self.question_at = now.boot;
        if at < CALLS {
            self.round = Round::Measuring(at + 1);
            return;
        }
        self.samples.sort_unstable();
        self.p50 = self.samples.get(self.samples.len() / 2).copied();
        let first_time = !std::mem::replace(&mut self.questions.passed_all, true);
        self.recovered();
        self.questions.passed_at = Some(whole_seconds(now.wall));
        let Self {
            turn: (place, of),
            measured,
            ..
        } = *self;
        self.round = Round::Turn(measured);
        let turns = if first_time { place + 1 } else { of };
        self.question_at = now.boot + self.replica.interval * turns;
    }
}

/// In whole milliseconds, at least one: zero would look like something that was not measured.
fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests;
