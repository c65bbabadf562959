//! Files below an address (`source.http`).

use std::sync::Arc;

use ureq::Body;
use ureq::http::Response;
use ureq::http::StatusCode;
use ureq::http::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap};

use super::client::{Client, Get};
use super::{Opened, Origin, url};
use crate::TaskError;
use crate::error::SourceFault;
use crate::request::{Credential, SourceFile};
use crate::watch::Watch;

pub(super) struct HttpOrigin {
    base_url: String,
    files: Vec<SourceFile>,
    authorization: Option<String>,
    client: Option<Client>,
}

impl HttpOrigin {
    pub(super) fn new(
        base_url: &str,
        files: &[SourceFile],
        credential: Option<&Credential>,
    ) -> Result<Self, TaskError> {
        url::absolute(base_url).map_err(|why| TaskError::Usage { why })?;
        Ok(Self {
            base_url: base_url.to_owned(),
            files: files.to_vec(),
            authorization: credential.map(authorization),
            client: None,
        })
    }
}

/// Value of `authorization`.
pub(super) fn authorization(credential: &Credential) -> String {
    use base64::Engine as _;
    match credential {
        Credential::Token(token) => format!("Bearer {token}"),
        Credential::Basic { user, password } => {
            let engine = base64::engine::general_purpose::STANDARD;
            format!("Basic {}", engine.encode(format!("{user}:{password}")))
        }
    }
}

impl Origin for HttpOrigin {
    fn list(&mut self, _: &Arc<Watch>) -> Result<Vec<SourceFile>, TaskError> {
        Ok(self.files.clone())
    }

    fn open(
        &mut self,
        file: &SourceFile,
        from: u64,
        watch: &Arc<Watch>,
    ) -> Result<Opened<'_>, TaskError> {
        let client = self.client.get_or_insert_with(|| Client::new(watch));
        let name = file.asset.as_deref().unwrap_or(&file.path);
        let uri = url::below(&self.base_url, name).map_err(|why| TaskError::Usage { why })?;
        let get = Get {
            uri: &uri,
            what: &file.path,
            authorization: self.authorization.as_deref(),
            accept: None,
            from,
        };
        let answer = client.get(&get)?;
        opened(client, &get, file, answer)
    }
}

/// Reads the head of an answer with a file's bytes: 206 goes on, 200 starts over, 416 says the size.
pub(super) fn opened(
    client: &Client,
    get: &Get<'_>,
    file: &SourceFile,
    answer: Response<Body>,
) -> Result<Opened<'static>, TaskError> {
    let headers = answer.headers();
    let wrong_size = |got| TaskError::SizeMismatch {
        what: file.path.clone(),
        expected: file.size,
        got,
    };
    let at = match answer.status() {
        StatusCode::OK => {
            // Said before a byte is read, so that none is.
            if let Some(length) = number(headers, CONTENT_LENGTH.as_str())
                && length != file.size
            {
                return Err(wrong_size(length));
            }
            0
        }
        StatusCode::PARTIAL_CONTENT => {
            let (at, size) = content_range(headers).ok_or_else(|| {
                TaskError::source(
                    SourceFault::Interrupted,
                    get.what,
                    "206 without a content-range that can be read",
                )
            })?;
            if let Some(got) = size.filter(|size| *size != file.size) {
                return Err(wrong_size(got));
            }
            if at != get.from {
                return Err(TaskError::source(
                    SourceFault::Interrupted,
                    get.what,
                    format!("bytes from {at} instead of {}", get.from),
                ));
            }
            at
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            return Ok(Opened::Beyond {
                size: content_range_size(headers),
            });
        }
        _ => return Err(client.refusal(get, answer)),
    };
    Ok(Opened::Body {
        at,
        reader: Box::new(answer.into_body().into_reader()),
    })
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// `bytes 5-9/10` or `bytes 5-9/*`: first byte, and the size where it is said.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, size) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.trim().parse().ok()?, size.trim().parse().ok()))
}

/// `bytes */10`.
fn content_range_size(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    text.rsplit_once('/')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, text.parse().unwrap());
            (content_range(&headers), content_range_size(&headers))
        };
        assert_eq!(read("bytes 5-9/10"), (Some((5, Some(10))), Some(10)));
        assert_eq!(read("bytes 5-9/*"), (Some((5, None)), None));
        assert_eq!(read("bytes */10"), (None, Some(10)));
        assert_eq!(read("lines 5-9/10").0, None);
        assert_eq!(read("bytes x-9/10").0, None);
    }

    #[test]
    fn credentials_are_written_as_headers_want_them() {
        let basic = Credential::Basic {
            user: "who".to_owned(),
            password: "what".to_owned(),
        };
        assert_eq!(authorization(&basic), "Basic d2hvOndoYXQ=");
        assert_eq!(
            authorization(&Credential::Token("t".to_owned())),
            "Bearer t"
        );
    }
}
