//! `POST /v1/route`.

use std::sync::Arc;
use std::time::Instant;

use api::{Decision, FieldError, RouteRequest};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use routing::decide::{Explain, Trace};
use serde::Serialize;
use service::http::{JsonBody, Tenant, json_response};
use service::problem::Failure;

use crate::decide::{Arrival, Decider};

/// The decision, with its trace when `?explain=true` asked for it.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    decision: &'a Decision,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a Trace>,
}

pub(crate) async fn route(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    RawQuery(query): RawQuery,
    JsonBody(request): JsonBody<RouteRequest>,
) -> Result<Response, Failure> {
    let arrived = Instant::now();
    let explain = explain(query.as_deref().unwrap_or_default())?;
    let decided = decider
        .decide(Arrival {
            request,
            tenant,
            explain,
            arrived,
        })
        .await?;
    let response = match &decided.trace {
        None => json_response(&decided.decision),
        trace => json_response(&Answer {
            decision: &decided.decision,
            trace: trace.as_ref(),
        }),
    };
    Ok(response.into_response())
}

/// The only parameter there is; anything else is refused like an unknown field.
fn explain(query: &str) -> Result<Explain, Failure> {
    let mut explain = Explain::No;
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        explain = match parameter {
            "explain=true" => Explain::Yes,
            "explain=false" => Explain::No,
            _ => {
                let name = parameter.split('=').next().unwrap_or_default();
                let message = "expected no query, `explain=true` or `explain=false`";
                return Err(Failure::invalid(vec![FieldError::new(
                    format!("?{name}"),
                    message,
                )]));
            }
        };
    }
    Ok(explain)
}
