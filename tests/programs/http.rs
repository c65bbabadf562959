//! An HTTP client that tells what happened and decides nothing.

use std::time::Duration;

use serde_json::Value;
use ureq::http::{Method, Request};

/// Largest answer that is read, in bytes.
const MAX_ANSWER: u64 = 64 << 20;

/// A client; its connections are kept open.
pub(crate) struct Http {
    agent: ureq::Agent,
    key: Option<String>,
}

/// What a server answered.
#[derive(PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null where it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The JSON of an answer that must be 200.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, self.text())
    }
}

impl Http {
    /// `timeout` is for a whole exchange.
    pub(crate) fn new(timeout: Duration) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(timeout))
            .max_redirects(0)
            .proxy(None)
            .build();
        Self {
            agent: ureq::Agent::new_with_config(config),
            key: None,
        }
    }

    /// The same, with a bearer token.
    pub(crate) fn with_key(self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..self
        }
    }

    pub(crate) fn get(&self, url: &str) -> Result<Answer, String> {
        self.ask(Method::GET, url, None, None)
    }

    pub(crate) fn post(&self, url: &str, body: &Value) -> Result<Answer, String> {
        self.ask(Method::POST, url, Some(body), None)
    }

    /// The same within a time of its own.
    pub(crate) fn post_within(
        &self,
        url: &str,
        body: &Value,
        timeout: Duration,
    ) -> Result<Answer, String> {
        self.ask(Method::POST, url, Some(body), Some(timeout))
    }

    pub(crate) fn ask(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
        timeout: Option<Duration>,
    ) -> Result<Answer, String> {
        let mut request = Request::builder().method(method).uri(url);
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let sent = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                let request = request.body(serde_json::to_vec(body).unwrap()).unwrap();
                self.agent.run(self.within(request, timeout))
            }
            None => self
                .agent
                .run(self.within(request.body(()).unwrap(), timeout)),
        };
        let mut response = sent.map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MAX_ANSWER);
        let body = body.read_to_vec().map_err(|error| error.to_string())?;
        Ok(Answer { status, body })
    }

    fn within<B: ureq::AsSendBody>(
        &self,
        request: Request<B>,
        timeout: Option<Duration>,
    ) -> Request<B> {
        match timeout {
            Some(timeout) => {
                let configured = self.agent.configure_request(request);
                configured.timeout_global(Some(timeout)).build()
            }
            None => request,
        }
    }
}
