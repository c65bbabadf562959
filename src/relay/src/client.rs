//! Asks a router. Whether one answers is a question of what is there, not an error: the caller decides what then.

use std::time::Duration;

use api::problem::Problem;
use api::{Decision, RouteRequest};
use routing::decide::Trace;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ureq::http::{Method, Request, Response};

use crate::error::{CliError, Exit};
use crate::home::{Router, is_loopback};

/// What may help where a whole route is not found.
pub(crate) const OLDER: &str = "a router older than this `relay` may not have it yet";

/// A router on this machine accepts at once or is not there.
const CONNECT: Duration = Duration::from_millis(1000);
/// Largest answer that is read, in bytes: room for ten thousand learned tasks.
const MAX_ANSWER: u64 = 64 << 20;

/// A router that is asked.
pub(crate) struct Client {
    agent: ureq::Agent,
    router: Router,
}

/// What became of a question.
#[derive(Debug)]
pub(crate) enum Asked<T> {
    /// It has an answer.
    Answered(T),
    /// It is refused: that is obeyed.
    Refused(Box<Problem>),
    /// Nobody answered.
    Unanswered(Unanswered),
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// Nothing answers, or not in time; says what went wrong.
    Absent(String),
    /// Something else than a router answers; says how it is known.
    Stranger(String),
    /// A router that cannot answer now; in its own words.
    Busy(String),
}

impl Unanswered {
    /// In a sentence.
    pub(crate) fn describe(&self, address: &str) -> String {
        match self {
            Self::Absent(why) | Self::Stranger(why) => format!("no router at {address} ({why})"),
            Self::Busy(why) => format!("the router at {address} cannot answer now ({why})"),
        }
    }

    /// What would help.
    pub(crate) fn hint(&self, address: &str) -> &'static str {
        match self {
            Self::Absent(_) if is_loopback(address) => "start one with `relayd router`",
            Self::Absent(_) => {
                "`relay laya connect` tells which router is in force, `relay laya connect <url>` changes it"
            }
            Self::Stranger(_) => {
                "name a router in LAYA_BASE_URL or `laya.baseUrl` of settings.json"
            }
            Self::Busy(_) => "ask again in a moment",
        }
    }

    /// As the error of a command that needs a router.
    pub(crate) fn into_error(self, address: &str) -> CliError {
        CliError::new(Exit::Unreachable, self.describe(address)).hint(self.hint(address))
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

/// One question.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    method: Method,
    /// Path and query, percent-encoded.
    path: &'a str,
    body: Option<Vec<u8>>,
    /// Instead of that of the client.
    timeout: Option<Duration>,
}

impl<'a> Question<'a> {
    pub(crate) fn new(method: Method, path: &'a str) -> Self {
        Self {
            method,
            path,
            body: None,
            timeout: None,
        }
    }

    pub(crate) fn get(path: &'a str) -> Self {
        Self::new(Method::GET, path)
    }

    /// With a body of JSON.
    pub(crate) fn json(self, body: &impl Serialize) -> Result<Self, CliError> {
        let body = serde_json::to_vec(body).map_err(|error| {
            CliError::new(
                Exit::Failed,
                format!("cannot write the request as JSON: {error}"),
            )
        })?;
        Ok(self.bytes(body))
    }

    /// With a body that is JSON already.
    pub(crate) fn bytes(self, body: Vec<u8>) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    pub(crate) fn within(self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self
        }
    }
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
    pub(crate) fn route(
        &self,
        request: &RouteRequest,
        explain: bool,
    ) -> Result<Asked<Answer>, CliError> {
        let path = if explain {
            "/v1/route?explain=true"
        } else {
            "/v1/route"
        };
        let question = Question::new(Method::POST, path).json(request)?;
        Ok(self.ask(question, "decision"))
    }

    /// Asks a question whose answer is JSON; `what` names it where the answer is something else.
    pub(crate) fn ask<T: DeserializeOwned>(&self, question: Question<'_>, what: &str) -> Asked<T> {
        let (status, bytes) = match self.send(question) {
            Ok(answer) => answer,
            Err(why) => return Asked::Unanswered(Unanswered::Absent(why)),
        };
        if status == 200 {
            return match serde_json::from_slice(&bytes) {
                Ok(answer) => Asked::Answered(answer),
                Err(error) => Asked::Unanswered(Unanswered::Stranger(format!(
                    "its answer is no {what}: {error}"
                ))),
            };
        }
        match serde_json::from_slice::<Problem>(&bytes) {
            // One that cannot is as good as absent.
            Ok(problem) if problem.status >= 500 || problem.status == 429 => Asked::Unanswered(
                Unanswered::Busy(format!("{}: {}", problem.title, problem.detail)),
            ),
            Ok(problem) => Asked::Refused(Box::new(problem)),
            Err(_) => Asked::Unanswered(Unanswered::Stranger(format!(
                "what listens there answers {status} and is no router"
            ))),
        }
    }

    /// The same, where there is nothing to do without an answer.
    pub(crate) fn need<T: DeserializeOwned>(
        &self,
        question: Question<'_>,
        what: &str,
    ) -> Result<T, CliError> {
        self.settled(self.ask(question, what))
    }

    fn settled<T>(&self, asked: Asked<T>) -> Result<T, CliError> {
        match asked {
            Asked::Answered(answer) => Ok(answer),
            Asked::Refused(problem) => Err(self.refusal(&problem)),
            Asked::Unanswered(why) => Err(why.into_error(&self.router.origin)),
        }
    }

    /// The same, with what helps where the router does not have what is asked for.
    pub(crate) fn find<T: DeserializeOwned>(
        &self,
        question: Question<'_>,
        what: &str,
        if_not_found: &str,
    ) -> Result<T, CliError> {
        match self.ask(question, what) {
            Asked::Refused(problem) if problem.slug() == "not-found" => {
                Err(self.refusal(&problem).or_hint(|| if_not_found.to_owned()))
            }
            asked => self.settled(asked),
        }
    }

    /// A refusal as an error, in the router's words.
    pub(crate) fn refusal(&self, problem: &Problem) -> CliError {
        let line = format!("the router refused: {}", problem.detail);
        let error = match problem.slug() {
            "no-candidate" => return CliError::no_candidate(line),
            "not-found" => CliError::new(Exit::Failed, problem.detail.clone()),
            "invalid-request" | "malformed-json" | "too-large" => CliError::usage(line),
            "unauthorized" => CliError::new(Exit::Failed, line).hint(format!(
                "its key goes into LAYA_API_KEY, or as `laya` into {}",
                self.router.keys.file.display()
            )),
            _ => CliError::new(Exit::Failed, line),
        };
        match &problem.hint {
            Some(hint) => error.or_hint(|| hint.clone()),
            None => error,
        }
    }

    /// Status and body, or what went wrong on the way.
    fn send(&self, question: Question<'_>) -> Result<(u16, Vec<u8>), String> {
        let Question {
            method,
            path,
            body,
            timeout,
        } = question;
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.router.origin))
            .header("authorization", format!("Bearer {}", self.router.key));
        let sent = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.run(request.body(body), timeout)
            }
            None => self.run(request.body(()), timeout),
        };
        let mut response = sent?;
        let status = response.status().as_u16();
        let read = response
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER)
            .read_to_vec();
        match read {
            Ok(bytes) => Ok((status, bytes)),
            Err(error) => Err(format!("its answer broke off: {error}")),
        }
    }

    fn run<B: ureq::AsSendBody>(
        &self,
        request: Result<Request<B>, ureq::http::Error>,
        timeout: Option<Duration>,
    ) -> Result<Response<ureq::Body>, String> {
        let request = request.map_err(|error| error.to_string())?;
        let request = match timeout {
            Some(timeout) => self
                .agent
                .configure_request(request)
                .timeout_global(Some(timeout))
                .build(),
            None => request,
        };
        self.agent.run(request).map_err(|error| error.to_string())
    }
}

/// A text as a part of a path or a query: everything but letters, digits and `-._~` percent-encoded.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_part_of_a_path_cannot_lead_elsewhere() {
        for (text, expected) in [
            ("s00012", "s00012"),
            ("../policy?x=1#y", "..%2Fpolicy%3Fx%3D1%23y"),
            ("é a+b%", "%C3%A9%20a%2Bb%25"),
        ] {
            assert_eq!(encode(text), expected, "{text}");
        }
    }
}
