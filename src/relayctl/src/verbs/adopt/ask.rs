//! Questions to a server that is not ours: bounded in time and size, and nothing it answers is trusted.

use std::time::Duration;

use bytes::Bytes;
use decision::Reply;
use decision::json::{Object, Value as Json, write};
use decision::relay_contract;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::judge::{Verdict, judge};

/// For `/health` (training 11).
const HEALTH_PATIENCE: Duration = Duration::from_millis(1500);
/// For all questions once, on a slow CPU that loads its model first.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
const MAX_ANSWER: usize = 1 << 20;
/// Key of a server that demands one (routing 20).
const KEY: &str = "LAYA_API_KEY";
/// What its questions are asked about.
const REQUEST: &str = "Rename the button on the settings page.";

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silence {
    /// Nothing listens.
    Nobody,
    /// Something does, and this went wrong.
    Trouble(String),
}

/// Looks at the server, and asks it where it does not say what it answers.
pub(super) async fn look(authority: &str) -> Result<Verdict, Silence> {
    let answer = exchange(
        authority,
        Method::GET,
        "/health",
        Bytes::new(),
        HEALTH_PATIENCE,
    )
    .await?;
    let health: Option<Value> = serde_json::from_slice(&answer.1).ok();
    match judge(answer.0, health.as_ref()) {
        Verdict::Ask => Ok(asked(authority).await),
        verdict => Ok(verdict),
    }
}

/// Asks all questions once. Valid answers are as good as a contract.
async fn asked(authority: &str) -> Verdict {
    let contract = relay_contract();
    let mut state = Object::new();
    state.push("request", REQUEST);
    let mut body = Object::new();
    body.push("state", Json::Object(state));
    body.push("questions", Json::Object(contract.request_questions()));
    let body = Bytes::from(write(&Json::Object(body)));
    let answer = exchange(
        authority,
        Method::POST,
        "/v1/systemone",
        body,
        ANSWER_PATIENCE,
    )
    .await;
    match answer {
        Ok((200, bytes)) => match Reply::read(contract.questions(), &bytes) {
            Ok(_) => Verdict::Ask,
            Err(error) => Verdict::Other(match error.question_id() {
                Some(id) => format!("it does not answer `{id}`: {error}"),
                None => format!("its answers cannot be used: {error}"),
            }),
        },
        Ok((401 | 403, _)) => Verdict::Other(format!("it demands a key; set {KEY} to it")),
        Ok((status, _)) => Verdict::Other(format!("it answers our questions with {status}")),
        Err(Silence::Trouble(why)) => {
            Verdict::Other(format!("it does not answer our questions: {why}"))
        }
        Err(Silence::Nobody) => Verdict::NoLaya("it went away".to_owned()),
    }
}

async fn exchange(
    authority: &str,
    method: Method,
    path: &str,
    body: Bytes,
    patience: Duration,
) -> Result<(u16, Bytes), Silence> {
    let exchanged = tokio::time::timeout(patience, whole(authority, method, path, body)).await;
    exchanged.unwrap_or_else(|_| Err(Silence::Trouble(format!("no answer within {patience:?}"))))
}

async fn whole(
    authority: &str,
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<(u16, Bytes), Silence> {
    let trouble = |error: &dyn std::fmt::Display| Silence::Trouble(error.to_string());
    let stream = TcpStream::connect(authority)
        .await
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::ConnectionRefused => Silence::Nobody,
            _ => trouble(&error),
        })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| trouble(&error))?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, authority)
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(key) = std::env::var(KEY).ok().filter(|key| !key.trim().is_empty()) {
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", key.trim()));
    }
    let request = request
        .body(Full::new(body))
        .map_err(|error| trouble(&error))?;
    let response = sender
        .send_request(request)
        .await
        .map_err(|error| trouble(&error))?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), MAX_ANSWER);
    let bytes = body
        .collect()
        .await
        .map_err(|error| trouble(&error))?
        .to_bytes();
    Ok((status, bytes))
}
