//! From a body to a reply (wire.md 4.4 step 5 on): read, route, load, check, encode, run, decode, judge, write. It knows
//! nothing of HTTP; work for the processor goes to threads of its own, passes to the batcher of each checkpoint.

mod call;
mod cpu;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use decision::json::Object;
use decision::wire::{
    Controls, OptionLimit, Payload, Refusal, RequestRules, Surface, read_batch_request,
    read_request, write_batch, write_reply,
};
use laya::tournament;

pub use call::Answered;
use call::{Call, Calls};
use cpu::{Cpu, Work};

use crate::host::Host;
use crate::metrics::Metrics;
use crate::settings::Serving;

/// Which of the two routes is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One state.
    Single,
    /// Several states.
    Batch,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request is refused.
    #[error("{}", .0.detail)]
    Refused(Refusal),
    /// The checkpoint that would answer has another contract.
    #[error("contract mismatch: asked for {asked}, serving {serving}")]
    Contract {
        /// Digest asked for.
        asked: String,
        /// Its digest, or `none`.
        serving: String,
    },
    /// The deadline passed.
    #[error("deadline exceeded")]
    Deadline,
    /// Anything unexpected; the text is for the log.
    #[error("{0}")]
    Internal(String),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The route.
    pub form: Form,
    /// The body.
    pub body: Bytes,
    /// `x-laya-contract`
    pub contract: Option<String>,
    /// Until when rows may begin.
    pub deadline: Instant,
}

/// A reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Compact JSON.
    pub body: String,
    /// From leaving the queue to decoded answers.
    pub inference: Duration,
    /// Checkpoints that answered, in order of first use: digest and contract.
    pub checkpoints: Vec<(String, Option<String>)>,
    /// Pairs of state and question that lost tokens of the state.
    pub truncated: usize,
}

/// Answers requests.
#[derive(Debug)]
pub struct Decider {
    serving: Serving,
    calls: Calls,
    cpu: Cpu,
}

/// A request that was read: one or more states.
struct Read {
    states: Arc<[decision::json::Value]>,
    questions: Object,
    controls: Arc<Controls>,
}

impl Decider {
    /// Answers with the checkpoints of a host.
    #[must_use]
    pub fn new(serving: Serving, host: Arc<Host>, metrics: Metrics) -> Self {
        let cpu = Cpu::new(host.engine().threads());
        let calls = Calls::new(&serving, host, metrics, cpu.clone());
        Self {
            serving,
            calls,
            cpu,
        }
    }

    /// Answers one request. Cancel safe: rows that have not begun are dropped with the future.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn decide(&self, asked: Asked) -> Result<Reply, Failure> {
        let read = self.read(asked.form, asked.body.clone()).await?;
        let began = Instant::now();
        let mut answered = match self.tournament(&read)? {
            Some(plan) => self.narrowed(&read, plan, &asked).await?,
            None => {
                self.calls
                    .ask(self.call(&read, read.states.clone(), read.questions.clone(), &asked))
                    .await?
            }
        };
        let inference = began.elapsed().saturating_sub(answered.waited);
        let payloads = std::mem::take(&mut answered.payloads);
        let body = self
            .write(asked.form, Work::of_bytes(asked.body.len()), payloads)
            .await?;
        Ok(Reply {
            body,
            inference,
            checkpoints: answered.checkpoints,
            truncated: answered.truncated,
        })
    }

    /// Answers questions about states as a library does: without limits of size, without tournaments, in no hurry.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn ask(
        &self,
        states: Vec<decision::json::Value>,
        questions: Object,
        controls: Controls,
    ) -> Result<Vec<Payload>, Failure> {
        /// Nobody waits for longer than a day.
        const LONG: Duration = Duration::from_secs(86_400);
        let call = Call {
            states: states.into(),
            questions: Arc::new(questions),
            controls: Arc::new(controls),
            contract: None,
            deadline: Instant::now() + LONG,
            work: Work::Heavy,
        };
        Ok(self.calls.ask(call).await?.payloads)
    }

    async fn read(&self, form: Form, body: Bytes) -> Result<Read, Failure> {
        let option_limit = match self.serving.tournament_group {
            Some(_) => OptionLimit::Tournament,
            None => OptionLimit::OnePass,
        };
        let budget = self.serving.max_token_budget;
        let host = Arc::clone(self.calls.host());
        self.cpu
            .run(Work::of_bytes(body.len()), move || {
                let rules = RequestRules {
                    max_token_budget: budget,
                    option_limit,
                    models: host.loading().registry.names(),
                };
                let (states, questions, controls) = match form {
                    Form::Single => {
                        let request = read_request(&body, &rules)?;
                        (vec![request.state], request.questions, request.controls)
                    }
                    Form::Batch => {
                        // How rows are grouped is ours; `batch_size` and `sort_by_length` change no answer.
                        let request = read_batch_request(&body, &rules)?;
                        (request.states, request.questions, request.controls)
                    }
                };
                Ok(Read {
                    states: states.into(),
                    questions,
                    controls: Arc::new(controls),
                })
            })
            .await?
    }

    fn call(
        &self,
        read: &Read,
        states: Arc<[decision::json::Value]>,
        questions: Object,
        asked: &Asked,
    ) -> Call {
        Call {
            states,
            questions: Arc::new(questions),
            controls: Arc::clone(&read.controls),
            contract: asked.contract.clone(),
            deadline: asked.deadline,
            work: Work::of_bytes(asked.body.len()),
        }
    }

    /// The elimination of each state; none where the request is one pass.
    fn tournament(&self, read: &Read) -> Result<Option<tournament::Tournament>, Refusal> {
        match self.serving.tournament_group {
            Some(group) => tournament::plan(&read.questions, group),
            None => Ok(None),
        }
    }

    /// Narrows large choices, state by state (wire.md 15.2).
    async fn narrowed(
        &self,
        read: &Read,
        plan: tournament::Tournament,
        asked: &Asked,
    ) -> Result<Answered, Failure> {
        let mut all = Answered::default();
        for state in read.states.iter() {
            let states: Arc<[decision::json::Value]> = Arc::new([state.clone()]);
            let mut plan = plan.clone();
            let mut input_tokens = 0;
            while let Some(round) = plan.next_round() {
                let mut answered = self
                    .calls
                    .ask(self.call(read, states.clone(), round, asked))
                    .await?;
                if let Some(payload) = answered.payloads.pop() {
                    input_tokens += payload.usage.input_tokens;
                    plan.advance(&payload.answers);
                }
                all.used(&mut answered);
            }
            let mut answered = self
                .calls
                .ask(self.call(read, states, plan.last_call(), asked))
                .await?;
            if let Some(payload) = answered.payloads.last_mut() {
                payload.usage.input_tokens += input_tokens;
                plan.finish(&mut payload.answers);
            }
            all.truncated += answered.truncated;
            all.payloads.append(&mut answered.payloads);
            all.used(&mut answered);
        }
        Ok(all)
    }

    async fn write(
        &self,
        form: Form,
        work: Work,
        payloads: Vec<Payload>,
    ) -> Result<String, Failure> {
        let surface = if self.serving.strict {
            Surface::HttpStrict
        } else {
            Surface::Http
        };
        let write = move || match form {
            Form::Batch => write_batch(&payloads, surface),
            Form::Single => match payloads.first() {
                Some(payload) => write_reply(payload, surface),
                None => Ok(String::new()),
            },
        };
        Ok(self.cpu.run(work, write).await??)
    }
}
