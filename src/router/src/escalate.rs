//! `POST /v1/escalate`: failures or a provider error inside a task (routing.md 12). The same failures of the same decision
//! get the same answer, from every replica and after a restart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::Decision;
use api::exchange::{EscalateAction, EscalateRequest, EscalateResponse};
use api::problem::Slug;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use routing::bounded::Score;
use routing::decide::{
    During, EscalateError, Explain, FailureReport, Knobs, Moment, ProviderErrorReport, RunningTask,
    escalate, provider_failed,
};
use routing::escalation::{Tally, tally};
use routing::follow_up::{CORRECTION_FAILURES, FollowUp};
use routing::outcome::ProviderErrorFacts;
use routing::provider_error::{ErrorClass, respond};
use routing::request::RouteRequest;
use service::http::{JsonBody, Tenant, json_bytes, json_response};
use service::problem::Failure;
use store::{Escalation, ProviderFaultReport, StoreError};

use crate::decide::{Decider, random, store_unavailable};
use crate::knowledge::AtMoment;
use crate::recent::Aside;

/// A decision younger than this may be on its way into a store that others write to, in seconds; a clock may be as far off.
const YOUNG_SECONDS: i128 = 60;

/// A decision whose task goes on.
struct Running {
    decision: Arc<Decision>,
    /// Score at which it was made, if failures made it.
    born_score: f64,
    /// The client's side of the request that was decided.
    client: RouteRequest,
    /// Whether what comes of it may be recorded.
    records: bool,
}

pub(crate) async fn route(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    JsonBody(request): JsonBody<EscalateRequest>,
) -> Result<Response, Failure> {
    let arrived = Instant::now();
    request.check().map_err(Failure::invalid)?;
    let mut running = decider.running(&tenant, request.decision_id).await?;
    if let Some(providers) = request.providers {
        running.client.providers = Some(providers);
    }
    match (request.failures, request.provider_error) {
        (Some(failures), None) => {
            decider
                .failures(&tenant, &running, &failures, arrived)
                .await
        }
        (None, Some(error)) => {
            decider
                .provider_error(&tenant, &running, &error, arrived)
                .await
        }
        // Refused by the check.
        _ => Err(Failure::new(
            Slug::InvalidRequest,
            "expected `failures` or `provider_error`",
        )),
    }
}

impl Decider {
    async fn running(&self, tenant: &Tenant, id: uuid::Uuid) -> Result<Running, Failure> {
        match self.stored(tenant, id).await {
            Ok(Some(stored)) => Ok(Running {
                decision: Arc::new(stored.decision),
                born_score: stored.born_score,
                client: client_side(stored.client.as_deref()),
                records: stored.records,
            }),
            other => match (self.recent.named(tenant, id), other) {
                (Some((decision, aside)), _) => Ok(Running {
                    decision,
                    born_score: aside.born_score,
                    client: client_side(aside.client.as_deref()),
                    records: aside.records,
                }),
                (None, Ok(_)) => Err(self.not_found(id)),
                (None, Err(error)) => Err(away(&error)),
            },
        }
    }

    async fn failures(
        &self,
        tenant: &Tenant,
        running: &Running,
        failures: &[routing::escalation::Failure],
        arrived: Instant,
    ) -> Result<Response, Failure> {
        let threshold = self.threshold(&running.client);
        let corrected = running.decision.follow_up == FollowUp::Correction;
        let report = FailureReport {
            failures,
            carried: if corrected {
                CORRECTION_FAILURES
            } else {
                Score::LEAST
            },
            at_last_escalation: Score::clamped(running.born_score).unwrap_or(Score::LEAST),
        };
        let (carried, last) = (report.carried, report.at_last_escalation);
        let tally = tally(failures, carried, last, threshold);
        let key = format!("failures:{:.2}", tally.score.get());
        // What was answered once stands, whatever quota and history say by now.
        if tally.escalate.is_some()
            && let Ok(Some(stands)) = self
                .store
                .escalation(&tenant.0, running.decision.id, &key)
                .await
        {
            return Ok(json_bytes(stands.into_bytes()));
        }
        let (tally, during) =
            self.with_state(tenant, running, arrived, |task, state, moment| {
                escalate(task, report, state, moment)
            })?;
        let answer = |action, decision, exhausted| EscalateResponse {
            action,
            decision,
            failure_score: tally.score.get(),
            threshold,
            exhausted,
            retry_after_ms: None,
        };
        match during {
            During::Move(decision) => {
                let response = answer(EscalateAction::Move, Some(decision), false);
                let client = running.client.clone();
                self.moved(tenant, running, (key, client), tally, response)
                    .await
            }
            During::Stay { exhausted: None } => {
                Ok(json_response(&answer(EscalateAction::Stay, None, false)))
            }
            During::Stay {
                exhausted: Some(decision),
            } => Ok(json_response(&answer(
                EscalateAction::Stay,
                Some(decision),
                true,
            ))),
            During::Wait { retry_after } => Ok(json_response(&EscalateResponse {
                retry_after_ms: Some(millis(retry_after)),
                ..answer(EscalateAction::Wait, None, false)
            })),
            During::Compact => Ok(json_response(&answer(EscalateAction::Compact, None, false))),
        }
    }

    async fn provider_error(
        &self,
        tenant: &Tenant,
        running: &Running,
        error: &ProviderErrorFacts,
        arrived: Instant,
    ) -> Result<Response, Failure> {
        let class = error.class();
        let retry_after = error.retry_after_ms.map(Duration::from_millis);
        let in_a_row = self.fault(tenant, running, error).await;
        let report = ProviderErrorReport {
            class,
            in_a_row,
            retry_after,
        };
        let during = self.with_state(tenant, running, arrived, |task, state, moment| {
            provider_failed(task, report, state, moment)
        })?;
        let answer = |action, decision, retry_after: Option<Duration>| EscalateResponse {
            action,
            decision,
            failure_score: 0.0,
            threshold: self.threshold(&running.client),
            exhausted: false,
            retry_after_ms: retry_after.map(millis),
        };
        match during {
            During::Move(decision) => {
                let word = serde_json::to_string(&class).unwrap_or_default();
                let key = format!("provider:{word}:{in_a_row}");
                let mut client = running.client.clone();
                if class == ErrorClass::Auth {
                    // Left out until its credentials change, which the client says by naming it again.
                    client.providers = Some(self.providers_but(running));
                }
                let tally = Tally {
                    score: Score::clamped(running.born_score).unwrap_or(Score::LEAST),
                    escalate: None,
                };
                let response = answer(EscalateAction::Move, Some(decision), None);
                self.moved(tenant, running, (key, client), tally, response)
                    .await
            }
            During::Wait { retry_after } => Ok(json_response(&answer(
                EscalateAction::Wait,
                None,
                Some(retry_after),
            ))),
            During::Compact => Ok(json_response(&answer(EscalateAction::Compact, None, None))),
            During::Stay { .. } => Ok(json_response(&answer(EscalateAction::Stay, None, None))),
        }
    }

    /// Puts a provider's fault into the quota; says how many of its kind came in a row. Where the store does not answer,
    /// the fault is known here at least.
    async fn fault(&self, tenant: &Tenant, running: &Running, error: &ProviderErrorFacts) -> u32 {
        let now = Timestamp::now();
        let class = error.class();
        let provider = running.decision.selected.provider.clone();
        let retry_after = error
            .retry_after_ms
            .and_then(|millis| i64::try_from(millis).ok())
            .map(SignedDuration::from_millis);
        let fault = respond(class, 1).fault;
        let report = ProviderFaultReport {
            decision: running.decision.id,
            provider: provider.clone(),
            class,
            fault,
            retry_after,
        };
        let known = self.knowledge.of(&tenant.0);
        match self.store.provider_fault(&tenant.0, report, now).await {
            Ok((_, in_a_row)) => {
                // By the feed and not from here, or an older state could take the place of a newer one.
                let _ = self.knowledge.catch_up().await;
                in_a_row
            }
            Err(error) => {
                tracing::debug!(%error, "a provider's fault is only known here");
                if let Some(fault) = fault {
                    known.change(|history| {
                        let state = history.quota(&provider);
                        let state = state.after_fault(fault, retry_after, now);
                        history.set_quota(provider, state);
                    });
                }
                self.recent.fault(running.decision.id, class)
            }
        }
    }

    fn with_state<T>(
        &self,
        tenant: &Tenant,
        running: &Running,
        arrived: Instant,
        decide: impl FnOnce(RunningTask<'_>, &AtMoment<'_>, Moment<'_>) -> Result<T, EscalateError>,
    ) -> Result<T, Failure> {
        let now = Timestamp::now();
        let active = self.policy.current();
        let policy = &active.policy;
        let random = random()?;
        let elapsed_millis = || arrived.elapsed().as_secs_f64() * 1e3;
        let known = self.knowledge.of(&tenant.0);
        let history = known.history();
        let state = AtMoment {
            history: &history,
            policy,
            now,
            stores: self.store.is_up(),
        };
        let task = RunningTask {
            decision: &running.decision,
            policy,
            client: self.client,
            request: &running.client,
        };
        let moment = Moment::new(now, random, &elapsed_millis, Explain::No);
        decide(task, &state, moment).map_err(refused)
    }

    /// Writes a move; what stands in the store already is the answer instead.
    async fn moved(
        &self,
        tenant: &Tenant,
        running: &Running,
        (key, client): (String, RouteRequest),
        tally: Tally,
        mut response: EscalateResponse,
    ) -> Result<Response, Failure> {
        let away = !self.store.is_up();
        if let Some(decision) = &mut response.decision
            && away
        {
            decision.warnings.push(store_unavailable());
        }
        let text = serde_json::to_string(&response).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written as JSON");
            Failure::new(Slug::Internal, "the answer cannot be written as JSON")
        })?;
        let Some(decision) = response.decision.map(|decision| Arc::new(*decision)) else {
            return Ok(json_bytes(text.into_bytes()));
        };
        let client = serde_json::to_string(&client).ok();
        let kept = Escalation {
            decision: running.decision.id,
            key,
            score: tally.score.get(),
            answer: text.clone(),
            new_decision: Some(decision.clone()),
            client: client.clone(),
            records: running.records,
        };
        let stands = self
            .store
            .keep_escalation(&tenant.0, kept, decision.created)
            .await;
        let answer = match stands {
            Ok(stands) => stands,
            Err(error) => {
                tracing::debug!(%error, "a move is only known here");
                text.clone()
            }
        };
        if answer == text {
            self.metrics.moved(&decision);
            let aside = Aside {
                client,
                born_score: tally.score.get(),
                faults: None,
                records: running.records,
            };
            self.recent.remember(tenant, decision, aside);
        }
        Ok(json_bytes(answer.into_bytes()))
    }

    /// A decision that is not there. Where others write to the same store a young one may still come: whoever made it
    /// holds it until the store takes it, and what belongs to it is better sent again than dropped.
    pub(crate) fn not_found(&self, id: uuid::Uuid) -> Failure {
        if self.shared_store && is_young(id, Timestamp::now()) {
            return Failure::new(
                Slug::Unavailable,
                format!("decision {id} is not in the store yet"),
            )
            .hint("send the request again in a moment")
            .retry_after(2);
        }
        unknown_decision(id)
    }

    /// The providers of the client without the one that refused its credentials.
    fn providers_but(&self, running: &Running) -> Vec<String> {
        let refused = &running.decision.selected.provider;
        let knobs = Knobs::of(&running.client, &self.policy.current().policy, self.client);
        let providers = knobs.map(|knobs| knobs.providers).unwrap_or_default();
        let left = providers.into_iter().filter(|name| name != refused);
        left.collect()
    }

    fn threshold(&self, client: &RouteRequest) -> u32 {
        let active = self.policy.current();
        Knobs::of(client, &active.policy, self.client)
            .map_or(active.policy.source.escalate_after_failures, |knobs| {
                knobs.escalate_after_failures
            })
    }
}

/// The client's side of a stored request; what cannot be read is left to the policy.
fn client_side(stored: Option<&str>) -> RouteRequest {
    stored
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

fn refused(error: EscalateError) -> Failure {
    match error {
        EscalateError::Invalid(errors) => Failure::invalid(errors),
        EscalateError::NoCandidate(none) => Failure::new(Slug::NoCandidate, none.to_string())
            .hint("name providers with credentials in `providers`"),
    }
}

/// Whether an id of ours was made a moment ago: UUIDv7 says when.
fn is_young(id: uuid::Uuid, now: Timestamp) -> bool {
    let Some(made) = id.get_timestamp() else {
        return false;
    };
    let (seconds, _) = made.to_unix();
    let age = i128::from(now.as_second()) - i128::from(seconds);
    (-YOUNG_SECONDS..YOUNG_SECONDS).contains(&age)
}

/// 404 with what may be the reason.
pub(crate) fn unknown_decision(id: uuid::Uuid) -> Failure {
    Failure::new(Slug::NotFound, format!("there is no decision {id}"))
        .hint("it was made by a dry run, for another tenant, without the store, or is older than the retention")
}

/// 503: nothing is lost, the client sends again. What sending again does not help is a defect of ours.
pub(crate) fn away(error: &StoreError) -> Failure {
    if !error.retryable() {
        tracing::error!(%error, "the store failed a request");
        return Failure::new(Slug::Internal, "the store cannot do this; its log says why");
    }
    tracing::debug!(%error, "the store did not answer a request");
    let detail = match error {
        StoreError::Full { .. } => "too many writes wait for the store",
        _ => "the store does not answer",
    };
    Failure::new(Slug::Unavailable, detail)
        .hint("send the request again in a moment")
        .retry_after(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_an_id_is_in_it() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let made = |seconds: i64| {
            let millis = u64::try_from((now.as_second() - seconds) * 1000).unwrap();
            uuid::Builder::from_unix_timestamp_millis(millis, &[7; 10]).into_uuid()
        };
        for (name, id, young) in [
            ("now", made(0), true),
            ("a little ago", made(59), true),
            ("a clock behind", made(-30), true),
            ("old", made(61), false),
            ("far in the future", made(-3600), false),
            ("no time in it", uuid::Uuid::nil(), false),
        ] {
            assert_eq!(is_young(id, now), young, "{name}");
        }
    }
}
