//! Asks a router. Whether one answers is a question of what is there, not an error: the caller decides what then.

use std::time::Duration;

use api::problem::Problem;
use api::{Decision, RouteRequest};
use routing::decide::Trace;
use serde::Deserialize;

use crate::error::{CliError, Exit};
use crate::home::Router;

/// A router on this machine accepts at once or is not there.
const CONNECT: Duration = Duration::from_millis(1000);
/// Largest answer that is read, in bytes.
const MAX_ANSWER: u64 = 4 << 20;

/// A router that is asked.
pub(crate) struct Client {
    agent: ureq::Agent,
    router: Router,
}

/// What became of a question.
#[derive(Debug)]
pub(crate) enum Asked {
    /// It decided.
    Decided(Box<Answer>),
    /// No router is there, or it cannot decide now; says why.
    Unreachable(String),
}

/// A decision, with the trace if it was asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    #[serde(flatten)]
    pub(crate) decision: Decision,
    #[serde(default)]
    pub(crate) trace: Option<Trace>,
}

impl Client {
    pub(crate) fn new(router: Router, timeout: Duration) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT.min(timeout)))
            .timeout_global(Some(timeout))
            .max_redirects(0)
            // A proxy would be asked for addresses of this machine too.
            .proxy(None)
            .user_agent(concat!("relay/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            agent: ureq::Agent::new_with_config(config),
            router,
        }
    }

    /// Where it asks.
    pub(crate) fn address(&self) -> &str {
        &self.router.origin
    }

    /// Asks for one decision.
    pub(crate) fn route(&self, request: &RouteRequest, explain: bool) -> Result<Asked, CliError> {
        let query = if explain { "?explain=true" } else { "" };
        let url = format!("{}/v1/route{query}", self.router.origin);
        let body = serde_json::to_vec(request).map_err(|error| {
            CliError::new(
                Exit::Failed,
                format!("cannot write the request as JSON: {error}"),
            )
        })?;
        let sent = self
            .agent
            .post(&url)
            .header("authorization", format!("Bearer {}", self.router.key))
            .header("content-type", "application/json")
            .send(&body[..]);
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => return Ok(Asked::Unreachable(error.to_string())),
        };
        let status = response.status().as_u16();
        let bytes = match response
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER)
            .read_to_vec()
        {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Asked::Unreachable(format!("its answer broke off: {error}"))),
        };
        if status == 200 {
            return Ok(match serde_json::from_slice(&bytes) {
                Ok(answer) => Asked::Decided(Box::new(answer)),
                Err(error) => Asked::Unreachable(format!("its answer is no decision: {error}")),
            });
        }
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => refused(&problem),
            Err(_) => Ok(Asked::Unreachable(format!(
                "what listens there answers {status} and is no router"
            ))),
        }
    }
}

/// A router that refuses is obeyed; one that cannot is as good as absent.
fn refused(problem: &Problem) -> Result<Asked, CliError> {
    let exit = match problem.slug() {
        "no-candidate" => Exit::NoCandidate,
        "invalid-request" | "malformed-json" | "too-large" => Exit::Usage,
        _ if problem.status >= 500 || problem.status == 429 => {
            return Ok(Asked::Unreachable(format!(
                "{}: {}",
                problem.title, problem.detail
            )));
        }
        _ => Exit::Failed,
    };
    let error = CliError::new(exit, format!("the router refused: {}", problem.detail));
    Err(match &problem.hint {
        Some(hint) => error.hint(hint.clone()),
        None => error,
    })
}
