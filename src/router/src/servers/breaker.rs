//! Whether a server may be asked now (routing.md 3): closed, open after failures in a row, one try after a while, and
//! held open while it is the wrong server. A pure state machine: the clock is passed in, and whoever was let in tells
//! how it ended with the ticket it got.

use std::time::{Duration, Instant};

/// When a breaker opens and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerRule {
    /// Failures in a row that open it, at least 1: one for a router of one user, five for a shared one.
    pub failures: u32,
    /// How long it stays open until one request may try.
    pub open_for: Duration,
}

impl BreakerRule {
    /// Of a router that one user has for himself.
    pub const OWN_FAILURES: u32 = 1;
    /// Of a router that others share: one slow answer must not push all of them to rules.
    pub const SHARED_FAILURES: u32 = 5;
}

/// How much a failure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// It did not answer, or answered nonsense.
    Whole,
    /// It said that it has too much to do.
    Half,
}

impl Weight {
    /// Of an answer with a status that is none for the question asked; `later` where it wants to be asked later.
    pub(super) const fn of(status: u16, later: bool) -> Self {
        match (status, later) {
            (429, _) | (503, true) => Self::Half,
            _ => Self::Whole,
        }
    }

    const fn halves(self) -> u32 {
        match self {
            Self::Whole => 2,
            Self::Half => 1,
        }
    }
}

/// Given to each call that was let in. Outcomes of calls from before the last change of state say nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Lets everybody in; failures in a row are counted in halves.
    Closed { halves: u32 },
    /// Lets nobody in until then.
    Open { until: Instant },
    /// One call tries; nobody else is let in.
    Trying,
    /// The wrong server: nobody is let in until it is another one.
    Held,
}

/// The breaker of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Breaker {
    rule: BreakerRule,
    state: State,
    epoch: u64,
}

impl Breaker {
    pub(super) const fn new(rule: BreakerRule) -> Self {
        Self {
            rule,
            state: State::Closed { halves: 0 },
            epoch: 0,
        }
    }

    /// The same state under another rule. A failure count that is beyond the new limit opens it at the next failure.
    pub(super) const fn set_rule(&mut self, rule: BreakerRule) {
        self.rule = rule;
    }

    /// Whether a call would be let in.
    pub(super) fn would_admit(&self, now: Instant) -> bool {
        match self.state {
            State::Closed { .. } => true,
            State::Open { until } => now >= until,
            State::Trying | State::Held => false,
        }
    }

    /// Lets a call in, or not.
    pub(super) fn admit(&mut self, now: Instant) -> Option<Ticket> {
        if !self.would_admit(now) {
            return None;
        }
        if matches!(self.state, State::Open { .. }) {
            self.enter(State::Trying);
        }
        Some(Ticket { epoch: self.epoch })
    }

    /// The call was answered as it should be.
    pub(super) fn succeeded(&mut self, ticket: Ticket) {
        if ticket.epoch != self.epoch {
            return;
        }
        match self.state {
            State::Closed { .. } => self.state = State::Closed { halves: 0 },
            State::Trying => self.enter(State::Closed { halves: 0 }),
            State::Open { .. } | State::Held => {}
        }
    }

    /// The call failed.
    pub(super) fn failed(&mut self, ticket: Ticket, weight: Weight, now: Instant) {
        if ticket.epoch != self.epoch {
            return;
        }
        let until = now + self.rule.open_for;
        match self.state {
            State::Closed { halves } => {
                let halves = halves.saturating_add(weight.halves());
                if halves >= self.rule.failures.max(1).saturating_mul(2) {
                    self.enter(State::Open { until });
                } else {
                    self.state = State::Closed { halves };
                }
            }
            State::Trying => self.enter(State::Open { until }),
            State::Open { .. } | State::Held => {}
        }
    }

    /// The call ended without saying anything about the server: its caller went away. If it was the one that tried, the
    /// next one may.
    pub(super) fn abandoned(&mut self, ticket: Ticket, now: Instant) {
        if ticket.epoch == self.epoch && self.state == State::Trying {
            self.enter(State::Open { until: now });
        }
    }

    /// It is the wrong server.
    pub(super) fn hold(&mut self) {
        if self.state != State::Held {
            self.enter(State::Held);
        }
    }

    /// It is a new or repaired server.
    pub(super) fn close(&mut self) {
        if self.state != (State::Closed { halves: 0 }) {
            self.enter(State::Closed { halves: 0 });
        }
    }

    /// Whether not everybody is let in.
    pub(super) const fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed { .. })
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.epoch += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens, in order; `+` and `-` are a call that succeeds or fails whole, `h` one that is told to come again
    /// later, `x` one whose caller goes away, digits are seconds that pass.
    fn play(failures: u32, events: &str) -> (bool, bool) {
        let rule = BreakerRule {
            failures,
            open_for: Duration::from_secs(60),
        };
        let mut breaker = Breaker::new(rule);
        let mut now = Instant::now();
        for event in events.split(' ').filter(|event| !event.is_empty()) {
            if let Ok(seconds) = event.parse() {
                now += Duration::from_secs(seconds);
                continue;
            }
            match event {
                "hold" => breaker.hold(),
                "close" => breaker.close(),
                _ => {
                    let Some(ticket) = breaker.admit(now) else {
                        continue;
                    };
                    match event {
                        "+" => breaker.succeeded(ticket),
                        "-" => breaker.failed(ticket, Weight::Whole, now),
                        "h" => breaker.failed(ticket, Weight::Half, now),
                        "x" => breaker.abandoned(ticket, now),
                        "?" => {}
                        other => panic!("{other}"),
                    }
                }
            }
        }
        (breaker.is_open(), breaker.would_admit(now))
    }

    #[test]
    fn opens_tries_and_closes_as_written() {
        const CLOSED: (bool, bool) = (false, true);
        const OPEN: (bool, bool) = (true, false);
        const MAY_TRY: (bool, bool) = (true, true);
        for (name, failures, events, expected) in [
            ("new", 1, "", CLOSED),
            ("own, one failure", 1, "-", OPEN),
            ("own, half a failure", 1, "h", CLOSED),
            ("own, two halves", 1, "h h", OPEN),
            ("shared, four failures", 5, "- - - -", CLOSED),
            ("shared, five failures", 5, "- - - - -", OPEN),
            ("not in a row", 5, "- - - - + - - - -", CLOSED),
            ("four and a half", 5, "- - - - h", CLOSED),
            ("four and two halves", 5, "- - - - h h", OPEN),
            ("just before the minute is over", 1, "- 59", OPEN),
            ("after a minute", 1, "- 60", MAY_TRY),
            ("exactly one tries", 1, "- 60 ?", OPEN),
            ("it succeeds", 1, "- 60 +", CLOSED),
            ("it fails", 1, "- 60 -", OPEN),
            ("it fails, and a minute later", 1, "- 60 - 60", MAY_TRY),
            ("it is busy still", 5, "- - - - - 60 h", OPEN),
            ("its caller goes away", 1, "- 60 x", MAY_TRY),
            ("a caller goes away", 1, "x x x", CLOSED),
            (
                "closed again, it counts anew",
                5,
                "- - - - - 60 + - - - -",
                CLOSED,
            ),
            ("the wrong server", 5, "hold", OPEN),
            ("the wrong server, a day later", 5, "hold 86400", OPEN),
            ("the wrong server, then another", 5, "hold close", CLOSED),
            ("open, then repaired", 1, "- close", CLOSED),
            (
                "repaired, failures are forgotten",
                5,
                "- - - - close -",
                CLOSED,
            ),
        ] {
            assert_eq!(play(failures, events), expected, "{name}");
        }
    }

    #[test]
    fn late_outcomes_say_nothing() {
        let rule = BreakerRule {
            failures: 1,
            open_for: Duration::from_secs(60),
        };
        let now = Instant::now();
        let mut breaker = Breaker::new(rule);
        let (late, last) = (breaker.admit(now).unwrap(), breaker.admit(now).unwrap());
        breaker.failed(last, Weight::Whole, now);
        breaker.succeeded(late);
        assert!(breaker.is_open(), "a success from before it opened");
        let later = now + Duration::from_secs(60);
        let trial = breaker.admit(later).unwrap();
        breaker.failed(late, Weight::Whole, later);
        breaker.abandoned(late, later);
        breaker.succeeded(trial);
        assert!(!breaker.is_open(), "the trial decides, not an old call");
        breaker.failed(trial, Weight::Whole, later);
        assert!(
            !breaker.is_open(),
            "a ticket is good for one outcome of its time"
        );
    }
}
