//! One decision: what came before, what memory knows, whom to ask, select, count, keep. Short requests are decided where
//! they arrive; long ones on threads of their own, so that a pasted log cannot hold up the health check.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::problem::Slug;
use api::{Decision, RouteRequest};
use decision::Labels;
use jiff::Timestamp;
use routing::decide::{
    Client, Decided, Explain, Judgement, Moment, Prepared, Trace, decide, prepare,
};
use routing::lessons::{LESSONS_MARKER, Lesson};
use routing::memory::Recall;
use routing::reason::{Warning, WarningCode};
use routing::record::MemoryProvenance;
use routing::request::RequestKind;
use serde::Serialize;
use service::http::Tenant;
use service::problem::Failure;
use store::{Kept, Store, StoreError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::RouterParts;
use crate::beside::beside;
use crate::knowledge::{AtMoment, Knowledge, Memory};
use crate::metrics::RouterMetrics;
use crate::policy::{ActivePolicy, PolicyInForce};
use crate::recent::{Aside, Recent};
use crate::servers::{Answered, Deadline, Servers};

/// Bytes of text from which a decision takes longer than a millisecond or so.
const LONG_TEXT_BYTES: usize = 8 * 1024;

/// How long a decision waits for the one before it; a store that hangs must not make requests hang.
const READ_WAIT: Duration = Duration::from_millis(500);

/// Everything a decision needs.
#[derive(Debug)]
pub(crate) struct Decider {
    pub(crate) policy: PolicyInForce,
    pub(crate) client: Client,
    pub(crate) metrics: RouterMetrics,
    pub(crate) store: Store,
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) servers: Servers,
    /// Whether other replicas write to the same store.
    pub(crate) shared_store: bool,
    /// Learned tasks changed here.
    pub(crate) changed: Notify,
    pub(crate) recent: Recent,
    /// One per core for long texts.
    long: Arc<Semaphore>,
}

/// What came before a request.
#[derive(Debug, Default)]
struct Before {
    decision: Option<Arc<Decision>>,
    /// Whether the store could not be asked for it.
    unread: bool,
}

/// How a model is asked.
struct Asking {
    arrived: Instant,
    /// What the policy gives a model, from the arrival of the request on.
    timeout: Duration,
    task: Uuid,
}

/// One request on its way.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) request: RouteRequest,
    pub(crate) tenant: Tenant,
    pub(crate) explain: Explain,
    pub(crate) arrived: Instant,
}

impl Decider {
    pub(crate) fn new(parts: &RouterParts) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            policy: parts.policy.clone(),
            client: parts.client,
            metrics: parts.metrics.clone(),
            store: parts.store.clone(),
            knowledge: Arc::new(Knowledge::new(parts.store.clone())),
            servers: parts.servers.clone(),
            shared_store: parts.shared_store,
            changed: Notify::new(),
            recent: Recent::default(),
            long: Arc::new(Semaphore::new(cores)),
        }
    }

    /// Decides, and gives the answer's body. A dropped call may still finish a long text; nothing comes of it but its
    /// count and the memory of it.
    pub(crate) async fn decide(self: Arc<Self>, arrival: Arrival) -> Result<Vec<u8>, Failure> {
        let policy = self.policy.current();
        let previous = self.previous(&arrival).await;
        if arrival.request.request.len() < LONG_TEXT_BYTES {
            return self.decide_after(&arrival, &policy, &previous, None).await;
        }
        // Held while the text is read and not while a model is asked. Never closed, so there is one.
        let permit = self.long.clone().acquire_owned().await.ok();
        let runtime = tokio::runtime::Handle::current();
        beside(service::telemetry::trace::carry_blocking(move || {
            runtime.block_on(self.decide_after(&arrival, &policy, &previous, permit))
        }))
        .await?
    }

    /// The decision that a request follows. Another replica may have made the last one, so a shared store is asked even
    /// where one is remembered here; what is not yet written there is only remembered here.
    async fn previous(&self, arrival: &Arrival) -> Before {
        let Arrival {
            request, tenant, ..
        } = arrival;
        if request.kind == RequestKind::Direct {
            return Before::default();
        }
        let remembered = self.recent.previous(tenant, request);
        let reading = self.stored_previous(tenant, request, remembered.as_deref());
        let stored = match tokio::time::timeout(READ_WAIT, reading).await {
            Ok(stored) => stored.map_err(|error| error.to_string()),
            Err(_) => Err("the store does not answer in time".to_owned()),
        };
        match stored {
            Ok(stored) => Before {
                decision: match (remembered, stored) {
                    (Some(here), Some(there)) if there.created > here.created => Some(there),
                    (Some(here), _) => Some(here),
                    (None, there) => there,
                },
                unread: false,
            },
            Err(error) => {
                tracing::debug!(error, "the decision before cannot be read");
                Before {
                    decision: remembered,
                    unread: true,
                }
            }
        }
    }

    /// What the store has, where what is remembered here is not enough.
    async fn stored_previous(
        &self,
        tenant: &Tenant,
        request: &RouteRequest,
        remembered: Option<&Decision>,
    ) -> Result<Option<Arc<Decision>>, StoreError> {
        // One that is known to be away is not waited for; the decision says so anyway.
        if !self.store.is_up() {
            return Ok(None);
        }
        if let Some(id) = request.previous_decision_id {
            if remembered.is_some_and(|known| known.id == id) {
                return Ok(None);
            }
            if let Some(stored) = self.store.decision(&tenant.0, id).await? {
                return Ok(Some(Arc::new(stored.decision)));
            }
        }
        let Some(conversation) = request.conversation_id.as_deref() else {
            return Ok(None);
        };
        if remembered.is_some() && !self.shared_store {
            return Ok(None);
        }
        let stored = self.store.last_of_conversation(&tenant.0, conversation);
        Ok(stored.await?.map(Arc::new))
    }

    async fn decide_after(
        &self,
        arrival: &Arrival,
        active: &ActivePolicy,
        previous: &Before,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Vec<u8>, Failure> {
        let Arrival {
            request,
            tenant,
            explain,
            arrived,
        } = arrival;
        let policy = &active.policy;
        let now = Timestamp::now();
        let known = self.knowledge.of(&tenant.0);
        let mut prepared = {
            let previous = previous.decision.as_deref();
            prepare(request, policy, self.client, previous, now)
        }
        .map_err(Failure::invalid)?;
        let memory = known.memory();
        let recall = recall(memory.as_deref(), &prepared);
        if let Some(recall) = &recall {
            let lessons = lessons(recall);
            self.metrics.lessons(lessons.len());
            prepared.teach(&lessons);
        }
        drop(permit);
        let random = random()?;
        let task = Moment::new(now, random, &|| 0.0, *explain).task_id;
        let asking = Asking {
            arrived: *arrived,
            timeout: Duration::from_millis(policy.source.deadlines.timeout_millis.into()),
            task,
        };
        let judgement = self.judge(asking, &prepared, recall.as_ref()).await;
        let elapsed_millis = || arrived.elapsed().as_secs_f64() * 1e3;
        let moment = Moment::new(now, random, &elapsed_millis, *explain);
        let is_up = self.store.is_up() && !previous.unread;
        let decided = {
            let history = known.history();
            let state = AtMoment {
                history: &history,
                policy,
                now,
                stores: is_up,
            };
            decide(&prepared, judgement, &state, moment)
        };
        let decided = decided.map_err(|none| {
            Failure::new(Slug::NoCandidate, none.to_string()).hint(
                "name providers with credentials in `providers`, or models of a tier in the policy",
            )
        })?;
        self.finish(arrival, decided, is_up)
    }

    /// Memory first, then the model, then the rules (routing.md 3).
    async fn judge<'a>(
        &self,
        asking: Asking,
        prepared: &Prepared<'_>,
        recall: Option<&Recall<'a, Labels>>,
    ) -> Judgement<'a> {
        let Some(text) = prepared.question() else {
            return Judgement::Rules { fallback: None };
        };
        if let Some(recall) = recall
            && let Some(found) = &recall.route
        {
            self.metrics.routed_by_memory();
            let guards = recall.skipped.iter();
            let mut guards: Vec<_> = guards.map(|skipped| skipped.guard).collect();
            guards.sort_unstable();
            guards.dedup();
            return Judgement::Memory {
                labels: found.labels,
                provenance: MemoryProvenance {
                    task: found.task.id.clone(),
                    similarity: found.similarity,
                    guards: guards
                        .iter()
                        .map(|guard| guard.as_str().to_owned())
                        .collect(),
                },
            };
        }
        let Asking {
            arrived,
            timeout,
            task,
        } = asking;
        let deadline = Deadline::of_request(arrived, timeout);
        match self.servers.ask(text, &task.to_string(), deadline).await {
            Ok(Answered {
                assessment,
                provenance,
                truncated,
            }) => Judgement::Model {
                assessment,
                provenance,
                truncated,
            },
            Err(fallback) => Judgement::Rules {
                fallback: Some(fallback),
            },
        }
    }

    fn finish(&self, arrival: &Arrival, decided: Decided, is_up: bool) -> Result<Vec<u8>, Failure> {
        let tenant = &arrival.tenant;
        let Decided {
            mut decision,
            store,
            records,
            trace,
            corrects,
        } = decided;
        if !is_up {
            decision.warnings.push(store_unavailable());
        }
        if store && let Some(corrected) = corrects {
            let kept = self.store.correct(&tenant.0, corrected, decision.created);
            self.count(kept);
        }
        let decision = Arc::new(decision);
        if store {
            self.keep(tenant, &decision, client_side(&arrival.request), records);
        }
        self.metrics.decided(&decision);
        service::telemetry::trace::decision(decision.id);
        tracing::debug!(
            decision = %decision.id,
            tier = decision.selected.tier.as_str(),
            model = decision.selected.model.as_str(),
            source = decision.assessment.source.as_str(),
            "decided"
        );
        write(&decision, trace.as_ref())
    }

    /// Remembers a decision here, and writes it with the next group.
    fn keep(
        &self,
        tenant: &Tenant,
        decision: &Arc<Decision>,
        client: Option<String>,
        records: bool,
    ) {
        if decision.selected.explored {
            let class = routing::outcome::class_of(decision);
            self.knowledge
                .of(&tenant.0)
                .change(|history| history.explored(class, decision.created));
        }
        let kept = without_lessons(decision);
        self.count(
            self.store
                .keep_decision_for(&tenant.0, kept.clone(), client.clone(), records),
        );
        let aside = Aside {
            client,
            records,
            ..Aside::default()
        };
        self.recent.remember(tenant, kept, aside);
    }

    fn count(&self, kept: Kept) {
        if kept == Kept::Full {
            self.metrics.not_stored();
        }
    }
}

/// The decision as it is kept: lessons quote requests, so where no text is kept they go out to the client only.
fn without_lessons(decision: &Arc<Decision>) -> Arc<Decision> {
    let quotes = |plan: &String| plan.contains(LESSONS_MARKER);
    let has_lessons = decision.lessons.is_some() || decision.plan.as_ref().is_some_and(quotes);
    if decision.request.is_some() || !has_lessons {
        return decision.clone();
    }
    let mut kept = (**decision).clone();
    kept.lessons = None;
    if let Some(plan) = &mut kept.plan
        && let Some(at) = plan.find(LESSONS_MARKER)
    {
        plan.truncate(plan[..at].trim_end().len());
    }
    Arc::new(kept)
}

/// What a client said of itself, for the time in which its task goes on: models, settings, limits; no text of its request.
/// Nothing where it said nothing.
fn client_side(request: &RouteRequest) -> Option<String> {
    let RouteRequest {
        profile,
        providers,
        models,
        quota,
        settings,
        constraints,
        context,
        ..
    } = request;
    let client = RouteRequest {
        profile: profile.clone(),
        providers: providers.clone(),
        models: models.clone(),
        quota: quota.clone(),
        settings: settings.clone(),
        constraints: constraints.clone(),
        context: context.clone(),
        ..RouteRequest::default()
    };
    if client == RouteRequest::default() {
        return None;
    }
    serde_json::to_string(&client).ok()
}

/// 28 random bytes for ids and a draw.
pub(crate) fn random() -> Result<[u8; 28], Failure> {
    let mut random = [0; 28];
    getrandom::fill(&mut random).map_err(|error| {
        Failure::new(
            Slug::Unavailable,
            format!("cannot get random numbers: {error}"),
        )
    })?;
    Ok(random)
}

fn recall<'m>(memory: Option<&'m Memory>, prepared: &Prepared<'_>) -> Option<Recall<'m, Labels>> {
    let text = prepared.memory_question()?;
    Some(memory?.recall(text, prepared.memory_thresholds()))
}

fn lessons<'m>(recall: &Recall<'m, Labels>) -> Vec<Lesson<'m>> {
    let close = recall.lessons.iter();
    close
        .filter_map(|found| {
            Some(Lesson {
                request: &found.task.request,
                similarity: found.similarity,
                lesson: found.task.usable_lesson()?,
            })
        })
        .collect()
}

/// Said of every decision that is made while the store does not answer.
pub(crate) fn store_unavailable() -> Warning {
    Warning {
        code: WarningCode::StoreUnavailable,
        message: "the store does not answer; this decision may not be readable later".to_owned(),
    }
}

/// The decision, with its trace when somebody asked for it.
#[derive(Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    decision: &'a Decision,
    trace: &'a Trace,
}

fn write(decision: &Decision, trace: Option<&Trace>) -> Result<Vec<u8>, Failure> {
    let written = match trace {
        None => serde_json::to_vec(decision),
        Some(trace) => serde_json::to_vec(&Explained { decision, trace }),
    };
    written.map_err(|error| {
        tracing::error!(%error, decision = %decision.id, "a decision cannot be written as JSON");
        Failure::new(Slug::Internal, "the decision cannot be written as JSON")
    })
}
