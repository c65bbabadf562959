//! What changes: a list, then every event after it, until the deadline. A watch that ends is taken up where it was, and
//! one whose place is no longer known begins with a new list.

use std::time::Duration;

use http::{Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;
use tokio::time::Instant;

use crate::kinds::Kind;
use crate::refusal::ServerError;
use crate::server::{Form, Selection, Server};

/// Longest line of a watch, in bytes: more than the largest object with room for its table.
const MAX_LINE: usize = 8 << 20;
/// Between two attempts to take a watch up again.
const PAUSE: Duration = Duration::from_millis(500);
/// Seconds after which a server ends a watch, so that a dead connection is noticed.
const SERVER_TIMEOUT: u64 = 300;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// New.
    Added,
    /// Another state.
    Modified,
    /// Gone.
    Deleted,
}

/// Something a watch saw.
#[derive(Debug)]
pub(crate) enum Seen {
    /// Everything there is, at the beginning and after a gap.
    All(Value),
    /// One change: an object, or a table with its row.
    One(Change, Value),
}

/// A list that goes on.
pub(crate) struct Watch<'a> {
    server: &'a Server,
    kind: &'a Kind,
    selection: Selection,
    form: Form,
    place: Option<String>,
    stream: Option<Stream>,
    ends: Option<Instant>,
}

struct Stream {
    body: Body,
    buffer: Vec<u8>,
}

impl<'a> Watch<'a> {
    /// Of what is selected; `None` = without end.
    pub(crate) fn new(
        server: &'a Server,
        kind: &'a Kind,
        selection: Selection,
        form: Form,
        patience: Option<Duration>,
    ) -> Self {
        Self {
            server,
            kind,
            selection,
            form,
            place: None,
            stream: None,
            ends: patience.map(|patience| Instant::now() + patience),
        }
    }

    /// The next thing that is seen; nothing when the time is over.
    pub(crate) async fn next(&mut self) -> Result<Option<Seen>, ServerError> {
        match self.ends {
            None => self.step().await.map(Some),
            Some(ends) => match tokio::time::timeout_at(ends, self.step()).await {
                Ok(seen) => seen.map(Some),
                Err(_) => Ok(None),
            },
        }
    }

    async fn step(&mut self) -> Result<Seen, ServerError> {
        loop {
            let Some(place) = &self.place else {
                let all = self
                    .server
                    .list(self.kind, &self.selection, self.form)
                    .await?;
                self.place = place_of(&all);
                return Ok(Seen::All(all));
            };
            let stream = match self.stream.take() {
                Some(stream) => stream,
                None => match self.open(place).await {
                    Ok(stream) => stream,
                    Err(error) if error.is_expired() => {
                        self.place = None;
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            match self.read(stream).await {
                Ok(Some(seen)) => return Ok(seen),
                Ok(None) => tokio::time::sleep(PAUSE).await,
                Err(error) if error.is_expired() => {
                    self.place = None;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn open(&self, place: &str) -> Result<Stream, ServerError> {
        let mut query = self.selection.query();
        query.append_pair("watch", "true");
        query.append_pair("resourceVersion", place);
        query.append_pair("allowWatchBookmarks", "true");
        query.append_pair("timeoutSeconds", &SERVER_TIMEOUT.to_string());
        let path = Server::collection(self.kind, self.selection.namespace.as_deref());
        let request = Request::get(format!("{path}?{}", query.finish()))
            .header(header::ACCEPT, self.form.accept())
            .body(Body::empty())
            .map_err(|error| ServerError::Strange(error.to_string()))?;
        let sent = self.server.client.send(request);
        let response = tokio::time::timeout(self.server.timeout, sent)
            .await
            .map_err(|_| ServerError::TimedOut(self.server.timeout))?
            .map_err(ServerError::unsent)?;
        let status = response.status();
        if status.is_success() {
            return Ok(Stream {
                body: response.into_body(),
                buffer: Vec::new(),
            });
        }
        let body = http_body_util::Limited::new(response.into_body(), MAX_LINE);
        let bytes = body
            .collect()
            .await
            .map_err(ServerError::broken)?
            .to_bytes();
        Err(ServerError::refused(status, &bytes))
    }

    /// The next event of a stream, or nothing when it ended.
    async fn read(&mut self, mut stream: Stream) -> Result<Option<Seen>, ServerError> {
        loop {
            let Some(line) = stream.line().await? else {
                return Ok(None);
            };
            let event: Value = serde_json::from_slice(&line).map_err(|error| {
                ServerError::Strange(format!("an event of its watch is no JSON: {error}"))
            })?;
            let change = match event["type"].as_str() {
                Some("ADDED") => Change::Added,
                Some("MODIFIED") => Change::Modified,
                Some("DELETED") => Change::Deleted,
                Some("BOOKMARK") => {
                    self.place = place_of(&event["object"]).or(self.place.take());
                    continue;
                }
                _ => return Err(ServerError::Refused(Box::new(event["object"].clone()))),
            };
            let object = event["object"].clone();
            self.place = place_of(&object).or(self.place.take());
            self.stream = Some(stream);
            return Ok(Some(Seen::One(change, object)));
        }
    }
}

/// From where a watch goes on. A table of a watch may say it only in the object of its row.
fn place_of(object: &Value) -> Option<String> {
    let version = |metadata: &Value| {
        let version = metadata["resourceVersion"].as_str();
        version
            .filter(|version| !version.is_empty())
            .map(str::to_owned)
    };
    version(&object["metadata"]).or_else(|| version(&object["rows"][0]["object"]["metadata"]))
}

impl Stream {
    /// The next line; nothing at the end, also when the end came in the middle of one.
    async fn line(&mut self) -> Result<Option<Vec<u8>>, ServerError> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.buffer[searched..]
                .iter()
                .position(|byte| *byte == b'\n')
            {
                let rest = self.buffer.split_off(searched + at + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                if line.iter().all(u8::is_ascii_whitespace) {
                    searched = 0;
                    continue;
                }
                return Ok(Some(line));
            }
            searched = self.buffer.len();
            if searched > MAX_LINE {
                return Err(ServerError::Strange(format!(
                    "an event of its watch has more than {MAX_LINE} bytes"
                )));
            }
            match self.body.frame().await {
                None | Some(Err(_)) => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
