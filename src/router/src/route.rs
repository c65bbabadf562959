//! `POST /v1/route`.

use std::sync::Arc;
use std::time::Instant;

use api::{FieldError, RouteRequest};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use routing::decide::Explain;
use service::http::{JsonBody, Tenant, json_bytes};
use service::problem::Failure;

use crate::decide::{Arrival, Decider};

pub(crate) async fn route(
    State(decider): State<Arc<Decider>>,
    Extension(tenant): Extension<Tenant>,
    RawQuery(query): RawQuery,
    JsonBody(request): JsonBody<RouteRequest>,
) -> Result<Response, Failure> {
    let arrived = Instant::now();
    let explain = explain(query.as_deref().unwrap_or_default())?;
    let body = decider
        .decide(Arrival {
            request,
            tenant,
            explain,
            arrived,
        })
        .await?;
    Ok(json_bytes(body))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_one_parameter() {
        for (query, expected) in [
            ("", Some(Explain::No)),
            ("explain=true", Some(Explain::Yes)),
            ("explain=false", Some(Explain::No)),
            ("explain", None),
            ("explain=1", None),
            ("explain=true&x=1", None),
        ] {
            assert_eq!(explain(query).ok(), expected, "{query}");
        }
    }
}
