//! One client: conversations with follow-ups, outcomes, escalations and questions to the model, each tried once more on
//! another router when the first has no 200. It notes what came of everything and judges nothing but whether an answer is
//! one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::learned::Texts;
use crate::programs::{Answer, Http};

/// Within this a client that retries once must have its answer (control-plane.md 19).
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(5);
/// What a conversation goes on with.
const FOLLOW_UPS: [&str; 3] = ["continue", "still fails on Safari", "continue"];
/// Requests of a conversation, follow-ups included.
const TURNS: usize = 4;
/// Of so many conversations one begins with a task that nobody was taught: a model is asked. One such question costs a
/// tiny model of a debug build as much as a hundred other decisions.
const UNTAUGHT: usize = 30;

/// A decision that a client was given.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub(crate) id: String,
    pub(crate) router: usize,
    pub(crate) asked: Instant,
    pub(crate) answered: Instant,
    /// It says that it was made without the store.
    pub(crate) without_store: bool,
    pub(crate) source: String,
    pub(crate) follow_up: String,
    pub(crate) retried: bool,
}

/// What happened, for the end.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) decided: Vec<Decided>,
    /// Requests for a decision that have none.
    pub(crate) lost: Vec<String>,
    /// Questions to the model that have no answer.
    pub(crate) unasked: Vec<String>,
    /// Answers that nobody expects.
    pub(crate) odd: Vec<String>,
    /// Reports of outcomes that were acknowledged.
    pub(crate) acknowledged: Vec<Value>,
    /// Reports that were answered 503, by how often that was.
    pub(crate) refused: usize,
    /// Reports of a decision that was not known yet where they arrived.
    pub(crate) unknown: usize,
    pub(crate) sent_again: usize,
    pub(crate) escalated: usize,
    pub(crate) asked_model: usize,
}

/// One client.
pub(crate) struct Worker {
    number: usize,
    urls: Vec<String>,
    http: Http,
    texts: Arc<Texts>,
    turn: usize,
    previous: Option<String>,
    /// Outcomes to report.
    outcomes: VecDeque<Value>,
    /// Outcomes that must be sent again.
    pub(crate) waiting: Vec<Value>,
    pub(crate) notes: Notes,
}

/// What came of one request with its second try.
struct Exchange {
    answer: Option<Answer>,
    router: usize,
    asked: Instant,
    tries: Vec<String>,
}

impl Worker {
    pub(crate) fn new(number: usize, urls: &[String], texts: Arc<Texts>) -> Self {
        Self {
            number,
            urls: urls.to_vec(),
            http: Http::new(LOST_AFTER),
            texts,
            turn: 0,
            previous: None,
            outcomes: VecDeque::new(),
            waiting: Vec::new(),
            notes: Notes::default(),
        }
    }

    /// What a ticket stands for: of 50 requests 1 question to the model, 2 escalations, 13 outcomes (3 of them such that
    /// wait), while there are any, and decisions.
    pub(crate) fn serve(&mut self, ticket: usize) {
        match ticket % 50 {
            49 => self.ask_model(ticket),
            15 | 37 => self.escalate(ticket),
            place if place.is_multiple_of(4) => {
                let waiting = if place.is_multiple_of(16) {
                    self.waiting.pop()
                } else {
                    None
                };
                match waiting.or_else(|| self.outcomes.pop_front()) {
                    Some(report) => self.report(ticket, report),
                    None => self.route(ticket),
                }
            }
            _ => self.route(ticket),
        }
    }

    /// A task that begins.
    fn fresh(&self) -> &str {
        let Texts { taught, untaught } = &*self.texts;
        let conversation = self.turn / TURNS + self.number;
        let texts = match conversation % UNTAUGHT {
            0 => untaught,
            _ => taught,
        };
        &texts[(conversation * 7 + self.number * 31) % texts.len()]
    }

    fn route(&mut self, ticket: usize) {
        let conversation = format!("client-{}-{}", self.number, self.turn / TURNS);
        let text = match self.turn % TURNS {
            0 => self.fresh(),
            follow_up => FOLLOW_UPS[follow_up - 1],
        };
        let mut body = json!({"request": text, "conversation_id": conversation});
        if !self.turn.is_multiple_of(TURNS)
            && self.number.is_multiple_of(2)
            && let Some(previous) = &self.previous
        {
            body["previous_decision_id"] = previous.as_str().into();
        }
        let at = self.turn / TURNS + self.number;
        self.turn += 1;
        // A conversation stays with its router while that answers: a client is faster here than a person, and what one
        // router decided is written for the others with the next group.
        let exchange = self.exchange(at, "/v1/route", &body);
        let answered = Instant::now();
        let Some(answer) = exchange.answer.filter(|answer| answer.status == 200) else {
            self.notes
                .lost
                .push(format!("{body}: {:?}", exchange.tries));
            return;
        };
        let decision = answer.json();
        let text = |pointer: &str| {
            let value = decision.pointer(pointer).and_then(Value::as_str);
            value.map(str::to_owned)
        };
        let (Some(id), Some(_), Some(source), Some(follow_up)) = (
            text("/id"),
            text("/selected/model"),
            text("/assessment/source"),
            text("/follow_up"),
        ) else {
            self.notes.odd.push(format!("no decision: {answer:?}"));
            return;
        };
        let warnings = decision["warnings"].as_array().cloned().unwrap_or_default();
        self.outcomes.extend(reports(ticket, &id));
        self.previous = Some(id.clone());
        self.notes.decided.push(Decided {
            id,
            router: exchange.router,
            asked: exchange.asked,
            answered,
            without_store: warnings
                .iter()
                .any(|warning| warning["code"] == "store_unavailable"),
            source,
            follow_up,
            retried: !exchange.tries.is_empty(),
        });
    }

    /// Reports an outcome; keeps it for later where the router cannot take it now.
    pub(crate) fn report(&mut self, ticket: usize, report: Value) {
        let exchange = self.exchange(ticket, "/v1/outcomes", &report);
        match exchange.answer {
            Some(answer) if answer.status == 200 => {
                self.notes.acknowledged.push(report.clone());
                if ticket.is_multiple_of(16) {
                    self.again(ticket, &report);
                }
            }
            Some(answer) if answer.status == 503 => {
                self.notes.refused += 1;
                self.waiting.push(report);
            }
            // Made by another router that has not written it yet.
            Some(answer) if answer.status == 404 => {
                self.notes.unknown += 1;
                self.waiting.push(report);
            }
            Some(answer) => self.notes.odd.push(format!("{report}: {answer:?}")),
            None => self.waiting.push(report),
        }
    }

    /// A client that did not hear the answer sends the same once more; anything but 200 or "not now" is wrong.
    fn again(&mut self, ticket: usize, report: &Value) {
        self.notes.sent_again += 1;
        let exchange = self.exchange(ticket + 1, "/v1/outcomes", report);
        if let Some(answer) = exchange.answer
            && !matches!(answer.status, 200 | 503)
        {
            self.notes.odd.push(format!("again {report}: {answer:?}"));
        }
    }

    fn escalate(&mut self, ticket: usize) {
        let Some(id) = &self.previous else { return };
        let failure = json!({"kind": "command_failed", "tool": "shell"});
        let failures = vec![failure; 1 + ticket / 20 % 4];
        let body = json!({"decision_id": id, "failures": failures});
        let exchange = self.exchange(ticket, "/v1/escalate", &body);
        match exchange.answer {
            Some(answer) if answer.status == 200 => {
                let known = ["move", "stay", "wait", "compact"];
                let action = answer.json()["action"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                if known.contains(&action.as_str()) {
                    self.notes.escalated += 1;
                } else {
                    self.notes.odd.push(format!("{body}: {answer:?}"));
                }
            }
            // A router that did not make the decision cannot find it while there is no store.
            Some(answer) if matches!(answer.status, 404 | 503) => {}
            None => {}
            Some(answer) => self.notes.odd.push(format!("{body}: {answer:?}")),
        }
    }

    fn ask_model(&mut self, ticket: usize) {
        let text = &self.texts.taught[ticket % self.texts.taught.len()];
        let questions = json!({"urgent": {"type": "noul", "instructions": "Is it urgent?"}});
        let body = json!({"state": {"request": text}, "questions": questions});
        let exchange = self.exchange(ticket, "/v1/systemone", &body);
        match exchange.answer {
            Some(answer) if answer.status == 200 => self.notes.asked_model += 1,
            other => {
                let said = format!("{other:?} after {:?}", exchange.tries);
                self.notes.unasked.push(said);
            }
        }
    }

    /// Asks one router, and once the next where the first has no answer or cannot give one now.
    fn exchange(&self, at: usize, path: &str, body: &Value) -> Exchange {
        let asked = Instant::now();
        let mut exchange = Exchange {
            answer: None,
            router: 0,
            asked,
            tries: Vec::new(),
        };
        for (at, share) in [(at, 0.5), (at + 1, 1.0)] {
            let router = at % self.urls.len();
            let within = LOST_AFTER.saturating_sub(asked.elapsed()).mul_f64(share);
            let url = format!("{}{path}", self.urls[router]);
            exchange.router = router;
            match self.http.post_within(&url, body, within) {
                Ok(answer) if answer.status < 500 => {
                    exchange.answer = Some(answer);
                    return exchange;
                }
                Ok(answer) => {
                    exchange.tries.push(format!("router {router}: {answer:?}"));
                    exchange.answer = Some(answer);
                }
                Err(error) => {
                    exchange.tries.push(format!("router {router}: {error}"));
                    exchange.answer = None;
                }
            }
        }
        exchange
    }
}

/// What becomes of a decision: of two nothing is heard, of the third an outcome, of some a failed attempt before.
fn reports(ticket: usize, id: &str) -> Vec<Value> {
    let report = |attempt: u32, result: &str, last: bool| {
        json!({
            "decision_id": id, "attempt": attempt, "result": result, "tests_passed": last,
            "tool_failures": attempt, "final": last,
            "usage": {
                "input_tokens": 1000, "cached_input_tokens": 10, "cache_write_tokens": 0, "output_tokens": 200,
                "cost_usd": 0.01, "duration_ms": 1500,
            },
        })
    };
    match ticket % 9 {
        0 | 3 => vec![report(1, "success", true)],
        6 => vec![report(1, "failure", false), report(2, "success", true)],
        _ => Vec::new(),
    }
}
