//! One recorded exchange: its file, its request, and what is compared of the reply.

use std::path::PathBuf;

use serde_json::Value;

use super::compare::same_body;
use super::support::{Reply, Server};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Depends on what the server was asked before.
    Health,
    /// Needs another connection that holds the only slot.
    Busy,
    /// Is that other connection.
    Stalled,
    /// Everything else.
    Plain,
}

pub(crate) struct Exchange {
    pub(crate) name: String,
    pub(crate) profile: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) kind: Kind,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    status: u16,
    expected_headers: Vec<(String, String)>,
    expected_body: String,
}

/// All of them, by name.
pub(crate) fn all() -> Vec<Exchange> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/http");
    let folder = std::env::var_os("LAYA_EXCHANGES").map_or(own, PathBuf::from);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let read = |path: &PathBuf| {
        let bytes = std::fs::read(path).expect("a file");
        Exchange::new(&serde_json::from_slice(&bytes).expect("JSON"))
    };
    files
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(read)
        .collect()
}

impl Exchange {
    fn new(file: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pairs = |value: &Value| -> Vec<(String, String)> {
            value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect()
        };
        let (request, response) = (&file["request"], &file["response"]);
        let name = text(&file["name"]);
        let described = request["body"]["description"].as_str();
        Self {
            profile: text(&file["profile"]),
            environment: pairs(&file["env"]),
            kind: if request["path"] == "/health" {
                Kind::Health
            } else if described.is_some_and(|words| words.contains("then silence")) {
                Kind::Stalled
            } else if file["profile"] == "limits" {
                Kind::Busy
            } else {
                Kind::Plain
            },
            method: text(&request["method"]),
            path: text(&request["path"]),
            headers: pairs(&request["headers"]),
            body: match (&request["body"]["utf8"], &request["body"]["base64"]) {
                (Value::String(text), _) => text.clone().into_bytes(),
                (_, Value::String(text)) => from_base64(text),
                _ if name == "deep_nesting_400" => deep(),
                _ => Vec::new(),
            },
            status: response["status"]
                .as_u64()
                .and_then(|status| u16::try_from(status).ok())
                .expect("a status"),
            expected_headers: pairs(&response["headers"]),
            expected_body: text(&response["body"]["utf8"]),
            name,
        }
    }

    /// Replays it, and says what differs.
    pub(crate) fn replay(&self, server: &Server) -> Result<(), String> {
        let reply = match self.kind {
            Kind::Stalled => stall(server).reply("POST"),
            Kind::Busy => {
                let _holder = hold(server);
                self.send(server)
            }
            Kind::Health | Kind::Plain => self.send(server),
        };
        self.compare(&reply, server)
    }

    fn send(&self, server: &Server) -> Reply {
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        server.send(&self.method, &self.path, &headers, &self.body)
    }

    fn compare(&self, reply: &Reply, server: &Server) -> Result<(), String> {
        let body = String::from_utf8(reply.body.clone()).map_err(|_| "the body is no UTF-8")?;
        if reply.status != self.status {
            return Err(format!(
                "status {}, expected {}: {body}",
                reply.status, self.status
            ));
        }
        same_body(&body, &self.expected_body)?;
        for (name, expected) in &self.expected_headers {
            let got = reply.header(name);
            let same = match name.as_str() {
                "date" | "server" => true,
                "content-length" if self.method == "HEAD" => got == Some(expected),
                "content-length" => got == Some(&reply.body.len().to_string()),
                "server-timing" => {
                    got.is_some_and(|got| is_millis(got.strip_prefix("inference;dur=")))
                }
                "x-inference-time-ms" => is_millis(got),
                "location" => {
                    let expected = expected.replace("127.0.0.1:8377", &server.address.to_string());
                    got == Some(&expected)
                }
                _ => got == Some(expected),
            };
            if !same {
                return Err(format!("header {name} is {got:?}, expected {expected:?}"));
            }
        }
        let absent = [
            "content-type",
            "allow",
            "retry-after",
            "www-authenticate",
            "server-timing",
            "x-inference-time-ms",
        ];
        for name in absent {
            if self.expected_headers.iter().all(|(known, _)| known != name)
                && reply.header(name).is_some()
            {
                return Err(format!("header {name} does not belong"));
            }
        }
        Ok(())
    }
}

/// Two decimals.
fn is_millis(text: Option<&str>) -> bool {
    let parts = text.and_then(|text| text.split_once('.'));
    parts.is_some_and(|(whole, decimals)| {
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits(whole) && digits(decimals) && decimals.len() == 2
    })
}

/// A connection whose upload stalls.
fn stall(server: &Server) -> super::support::Client {
    let mut client = server.client();
    client.write(b"POST /v1/systemone HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{\"st");
    client
}

/// The same, once it holds the only slot.
fn hold(server: &Server) -> super::support::Client {
    let client = stall(server);
    server.until("the slot is taken", || {
        server.metric("laya_in_flight") >= 1.0
    });
    client
}

fn deep() -> Vec<u8> {
    format!(
        "{{\"state\":{}{},\"questions\":{{}}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    )
    .into_bytes()
}

fn from_base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes() {
        let Some(value) = LETTERS.iter().position(|known| *known == letter) else {
            continue;
        };
        bits = (bits << 6) | u32::try_from(value).expect("below 64");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xFF).expect("masked"));
        }
    }
    bytes
}
