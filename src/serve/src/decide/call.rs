//! One call: the same questions about one or more states (wire.md 4.4 step 20, 4.5). States are routed first, grouped by
//! checkpoint in order of first appearance, and answered in the order they came.

use std::sync::Arc;
use std::time::{Duration, Instant};

use decision::json::{Object, Value};
use decision::wire::{Answer, Controls, GateState, Payload, Question, Usage, check_questions};
use laya::route::{Route, RouteRules, route};
use laya::{Encoded, Lengths, PredictError, RowOutput, decode, encode};

use super::Failure;
use super::cpu::{Cpu, Work};
use crate::batch::BatchError;
use crate::host::{Host, Loaded};
use crate::metrics::Metrics;
use crate::registry::{ONLY, Registry};
use crate::settings::Serving;

/// What is asked.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) states: Arc<[Value]>,
    pub(super) questions: Arc<Object>,
    pub(super) controls: Arc<Controls>,
    pub(super) contract: Option<String>,
    pub(super) deadline: Instant,
    pub(super) work: Work,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Answered {
    /// One per state, in order.
    pub payloads: Vec<Payload>,
    /// Checkpoints in order of first use: digest and contract.
    pub checkpoints: Vec<(String, Option<String>)>,
    /// Pairs of state and question that lost tokens of the state.
    pub truncated: usize,
    /// Time that rows waited for their first pass.
    pub waited: Duration,
}

impl Answered {
    /// Adds checkpoints and waiting of another call.
    pub(super) fn used(&mut self, other: &mut Self) {
        for checkpoint in other.checkpoints.drain(..) {
            self.use_checkpoint(checkpoint);
        }
        self.waited += other.waited;
    }

    fn use_checkpoint(&mut self, checkpoint: (String, Option<String>)) {
        if !self.checkpoints.contains(&checkpoint) {
            self.checkpoints.push(checkpoint);
        }
    }
}

/// Answers calls.
#[derive(Debug)]
pub(super) struct Calls {
    host: Arc<Host>,
    metrics: Metrics,
    cpu: Cpu,
    auto_task: bool,
    default_model: String,
}

/// States that one checkpoint answers.
struct Group {
    name: String,
    loaded: Arc<Loaded>,
    /// Positions of the states.
    states: Vec<usize>,
}

/// A group with its rows.
struct Rows {
    group: Group,
    encoded: Vec<Encoded>,
}

impl Calls {
    pub(super) fn new(serving: &Serving, host: Arc<Host>, metrics: Metrics, cpu: Cpu) -> Self {
        Self {
            host,
            metrics,
            cpu,
            auto_task: serving.auto_task,
            default_model: serving.default_model.clone(),
        }
    }

    pub(super) const fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Answers a call. Cancel safe: rows that have not begun are dropped with the future.
    ///
    /// # Errors
    /// [`Failure`].
    pub(super) async fn ask(&self, call: Call) -> Result<Answered, Failure> {
        let routes = self.routes(&call).await?;
        let groups = self.groups(&call, &routes).await?;
        let mut answered = Answered::default();
        for group in &groups {
            let info = group.loaded.checkpoint().info();
            answered.use_checkpoint((
                info.digest.clone(),
                group.loaded.contract().map(str::to_owned),
            ));
        }
        if call.questions.is_empty() {
            let payload = |route: &Route| Payload {
                answers: Vec::new(),
                usage: Usage::default(),
                routing: self.routing(route),
            };
            answered.payloads = routes.iter().map(payload).collect();
            return Ok(answered);
        }
        let questions = Arc::new(check_questions(&call.questions)?);
        let rows = self.encode(&call, Arc::clone(&questions), groups).await?;
        let mut payloads: Vec<Option<Payload>> = routes.iter().map(|_| None).collect();
        let passes = rows.iter().map(|rows| self.pass(rows, call.deadline));
        let ran = futures_util::future::try_join_all(passes).await?;
        for (rows, (outputs, waited)) in rows.into_iter().zip(ran) {
            answered.waited = answered.waited.max(waited);
            let group_answers = self.decode(&call, &questions, &rows, &outputs)?;
            for ((state, encoded), answers) in rows
                .group
                .states
                .iter()
                .zip(rows.encoded)
                .zip(group_answers)
            {
                answered.truncated += encoded.truncated;
                payloads[*state] = Some(Payload {
                    answers,
                    usage: encoded.usage,
                    routing: self.routing(&routes[*state]),
                });
            }
        }
        answered.payloads = payloads.into_iter().flatten().collect();
        Ok(answered)
    }

    /// Where every state goes, before anything is loaded.
    async fn routes(&self, call: &Call) -> Result<Vec<Route>, Failure> {
        let (host, call) = (Arc::clone(&self.host), call.clone());
        let (auto_task, default_model) = (self.auto_task, self.default_model.clone());
        let routes = self
            .cpu
            .run(call.work, move || {
                let registry = &host.loading().registry;
                let one = |state| route_state(registry, &default_model, auto_task, &call, state);
                call.states.iter().map(one).collect::<Result<Vec<_>, _>>()
            })
            .await??;
        for route in &routes {
            let labels = [route.model.as_str(), route.branch.as_str()];
            self.metrics.routed.with_label_values(&labels).inc();
        }
        Ok(routes)
    }

    fn routing(&self, route: &Route) -> Value {
        let source = self.host.loading().registry.source(&route.model);
        Value::Object(route.to_object(&source.map(|source| source.label()).unwrap_or_default()))
    }

    /// The checkpoints of the routes, loaded, in order of first appearance.
    async fn groups(&self, call: &Call, routes: &[Route]) -> Result<Vec<Group>, Failure> {
        let mut groups: Vec<Group> = Vec::new();
        for (state, route) in routes.iter().enumerate() {
            if let Some(group) = groups.iter_mut().find(|group| group.name == route.model) {
                group.states.push(state);
                continue;
            }
            let loaded = self.host.get(&route.model).await;
            let loaded = loaded.map_err(|problem| {
                Failure::Internal(format!(
                    "checkpoint '{}' is not loaded: {problem}",
                    route.model
                ))
            })?;
            groups.push(Group {
                name: route.model.clone(),
                loaded,
                states: vec![state],
            });
        }
        if let Some(asked) = &call.contract {
            let other = groups
                .iter()
                .map(|group| group.loaded.contract())
                .find(|own| *own != Some(asked));
            if let Some(serving) = other {
                return Err(Failure::Contract {
                    asked: asked.clone(),
                    serving: serving.unwrap_or("none").to_owned(),
                });
            }
        }
        Ok(groups)
    }

    async fn encode(
        &self,
        call: &Call,
        questions: Arc<Vec<Question>>,
        groups: Vec<Group>,
    ) -> Result<Vec<Rows>, Failure> {
        let (call, work) = (call.clone(), call.work);
        let lengths = Lengths {
            max_len: call.controls.max_len,
            head_max_len: call.controls.head_max_len,
        };
        let encode = move || {
            let group = |group: Group| {
                let state = |at: &usize| {
                    encode(
                        group.loaded.checkpoint(),
                        &call.states[*at],
                        &questions,
                        lengths,
                    )
                    .map_err(failure)
                };
                let encoded = group.states.iter().map(state).collect::<Result<_, _>>()?;
                Ok(Rows { group, encoded })
            };
            groups.into_iter().map(group).collect()
        };
        self.cpu.run(work, encode).await?
    }

    async fn pass(
        &self,
        rows: &Rows,
        deadline: Instant,
    ) -> Result<(Vec<RowOutput>, Duration), Failure> {
        let all = rows
            .encoded
            .iter()
            .flat_map(|encoded| encoded.rows.iter().cloned())
            .collect();
        let began = Instant::now();
        let ran = rows
            .group
            .loaded
            .run(all, deadline)
            .await
            .map_err(|error| match error {
                BatchError::Expired => Failure::Deadline,
                other => Failure::Internal(other.to_string()),
            })?;
        let took = began.elapsed().saturating_sub(ran.waited);
        self.metrics.queue_seconds.observe(ran.waited.as_secs_f64());
        let inference = self
            .metrics
            .inference_seconds
            .with_label_values(&[rows.group.name.as_str()]);
        inference.observe(took.as_secs_f64());
        Ok((ran.outputs, ran.waited))
    }

    /// The answers of each state of a group, judged by the gate.
    fn decode(
        &self,
        call: &Call,
        questions: &[Question],
        rows: &Rows,
        outputs: &[RowOutput],
    ) -> Result<Vec<Vec<(String, Answer)>>, Failure> {
        let checkpoint = rows.group.loaded.checkpoint();
        let mut all = Vec::with_capacity(rows.encoded.len());
        for (encoded, outputs) in rows.encoded.iter().zip(outputs.chunks(questions.len())) {
            let mut answers = decode(checkpoint, questions, outputs).map_err(failure)?;
            if let Some(gate) = &call.controls.gate {
                for (_, answer) in &mut answers {
                    answer.apply_gate(gate);
                }
            }
            self.count(&rows.group.name, encoded, &answers);
            all.push(answers);
        }
        Ok(all)
    }

    fn count(&self, checkpoint: &str, encoded: &Encoded, answers: &[(String, Answer)]) {
        let add = |counter: &prometheus::IntCounterVec, count: usize| {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            counter.with_label_values(&[checkpoint]).inc_by(count);
        };
        let dropped = encoded
            .usage
            .state
            .as_ref()
            .map_or(0, |state| state.state_tokens_dropped);
        add(&self.metrics.tokens, encoded.usage.input_tokens);
        add(&self.metrics.truncated, encoded.truncated);
        add(&self.metrics.truncated_tokens, dropped);
        let special = u64::try_from(encoded.special_texts).unwrap_or(u64::MAX);
        self.metrics.special_text.inc_by(special);
        for (_, answer) in answers {
            let labels = [checkpoint, answer.outcome.kind().as_str()];
            self.metrics.answers.with_label_values(&labels).inc();
            if answer
                .gate
                .is_some_and(|verdict| verdict.state == GateState::Abstained)
            {
                add(&self.metrics.low_confidence, 1);
            }
        }
    }
}

fn route_state(
    registry: &Registry,
    default_model: &str,
    auto_task: bool,
    call: &Call,
    state: &Value,
) -> Result<Route, Failure> {
    match registry.names() {
        None => Ok(Route::only(ONLY)),
        Some(names) => {
            let rules = RouteRules {
                names,
                default_model,
                auto_task,
            };
            Ok(route(rules, &call.controls, state, &call.questions)?)
        }
    }
}

fn failure(error: PredictError) -> Failure {
    match error {
        PredictError::Refused(refusal) => Failure::Refused(refusal),
        other => Failure::Internal(other.to_string()),
    }
}
