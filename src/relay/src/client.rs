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
    /// It will not: that is obeyed.
    Refused(Box<Problem>),
    /// Nobody decided.
    Undecided(Undecided),
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Undecided {
    /// Nothing answers, or not in time; says what went wrong.
    Absent(String),
    /// Something else than a router answers; says how it is known.
    Stranger(String),
    /// A router that cannot decide now; in its own words.
    Busy(String),
}

impl Undecided {
    /// In a sentence.
    pub(crate) fn describe(&self, address: &str) -> String {
        match self {
            Self::Absent(why) | Self::Stranger(why) => format!("no router at {address} ({why})"),
            Self::Busy(why) => format!("the router at {address} cannot decide now ({why})"),
        }
    }

    /// What would help.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Absent(_) => "start one with `relayd router`",
            Self::Stranger(_) => {
                "name a router in LAYA_BASE_URL or `laya.baseUrl` of settings.json"
            }
            Self::Busy(_) => "ask again in a moment",
        }
    }
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

    /// Whom it asks.
    pub(crate) fn router(&self) -> &Router {
        &self.router
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
            Err(error) => return Ok(Undecided::Absent(error.to_string()).into()),
        };
        let status = response.status().as_u16();
        let bytes = match response
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER)
            .read_to_vec()
        {
            Ok(bytes) => bytes,
            Err(error) => {
                return Ok(Undecided::Absent(format!("its answer broke off: {error}")).into());
            }
        };
        if status == 200 {
            return Ok(match serde_json::from_slice(&bytes) {
                Ok(answer) => Asked::Decided(Box::new(answer)),
                Err(error) => {
                    Undecided::Stranger(format!("its answer is no decision: {error}")).into()
                }
            });
        }
        Ok(match serde_json::from_slice::<Problem>(&bytes) {
            // One that cannot is as good as absent.
            Ok(problem) if problem.status >= 500 || problem.status == 429 => {
                Undecided::Busy(format!("{}: {}", problem.title, problem.detail)).into()
            }
            Ok(problem) => Asked::Refused(Box::new(problem)),
            Err(_) => Undecided::Stranger(format!(
                "what listens there answers {status} and is no router"
            ))
            .into(),
        })
    }
}

impl From<Undecided> for Asked {
    fn from(undecided: Undecided) -> Self {
        Self::Undecided(undecided)
    }
}
