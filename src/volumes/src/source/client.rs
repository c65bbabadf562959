//! The HTTP client of sources: redirects by our own rules, and a connection that looks at the clock of the task while it
//! waits, so that a silent source, a deadline and a signal end it within a second.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use ureq::http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, LOCATION, RANGE, RETRY_AFTER,
};
use ureq::http::{Request, Response, StatusCode, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, NextTimeout, RustlsConnector,
    TcpConnector, Transport,
};
use ureq::{Agent, Body};

use super::url;
use crate::TaskError;
use crate::error::SourceFault;
use crate::part::PIECE;
use crate::watch::Watch;

/// Most redirects of one request.
const MAX_REDIRECTS: usize = 5;
/// For a name to be found and a connection to be made.
const CONNECT: Duration = Duration::from_secs(20);
/// How long the connection waits before it looks at the clock of the task again.
const LOOK: Duration = Duration::from_millis(200);
/// Most bytes of an answer that is read whole and is an error.
const MAX_ERROR_BYTES: u64 = 4 << 10;

/// A client for the files of one task.
pub(super) struct Client {
    agent: Agent,
    watch: Arc<Watch>,
}

/// A request.
pub(super) struct Get<'a> {
    /// Where to.
    pub(super) uri: &'a Uri,
    /// What it is about, for messages.
    pub(super) what: &'a str,
    /// Value of `authorization`; dropped at the first redirect to another server.
    pub(super) authorization: Option<&'a str>,
    /// Value of `accept`.
    pub(super) accept: Option<&'a str>,
    /// First byte that is asked for; 0: no range.
    pub(super) from: u64,
}

impl Client {
    pub(super) fn new(watch: &Arc<Watch>) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .input_buffer_size(PIECE)
            .user_agent(concat!("relay-laya/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots()).build())
            .build();
        let connector =
            ().chain(ConnectProxyConnector::default())
                .chain(TcpConnector::default())
                .chain(Attentive(Arc::clone(watch)))
                .chain(RustlsConnector::default());
        Self {
            agent: Agent::with_parts(config, connector, DefaultResolver::default()),
            watch: Arc::clone(watch),
        }
    }

    /// Asks, follows redirects, and gives whatever the last server answers.
    pub(super) fn get(&self, get: &Get<'_>) -> Result<Response<Body>, TaskError> {
        let mut uri = get.uri.clone();
        let mut authorization = get.authorization;
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.ask(get, &uri, authorization)?;
            let Some(location) = redirect(&answer) else {
                return Ok(answer);
            };
            let refused = |why: String| {
                TaskError::source(
                    SourceFault::NotFound,
                    get.what,
                    format!("{}: {why}", url::shown(&uri)),
                )
            };
            let to = url::redirected(&uri, &location)
                .map_err(|why| refused(format!("redirects to nowhere: {why}")))?;
            if uri.scheme_str() == Some("https") && to.scheme_str() == Some("http") {
                return Err(refused(format!(
                    "redirects to {}, from https to http, which is refused",
                    url::shown(&to)
                )));
            }
            if !url::same_server(&uri, &to) {
                authorization = None;
            }
            uri = to;
        }
        Err(TaskError::source(
            SourceFault::NotFound,
            get.what,
            format!(
                "{} redirects more than {MAX_REDIRECTS} times",
                url::shown(get.uri)
            ),
        ))
    }

    fn ask(
        &self,
        get: &Get<'_>,
        uri: &Uri,
        authorization: Option<&str>,
    ) -> Result<Response<Body>, TaskError> {
        // Bytes as they are: a digest is of the file, not of its compression.
        let mut request = Request::get(uri).header(ACCEPT_ENCODING, "identity");
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(value) = get.accept {
            request = request.header(ACCEPT, value);
        }
        if get.from > 0 {
            request = request.header(RANGE, format!("bytes={}-", get.from));
        }
        let request = request.body(()).map_err(|error| TaskError::Usage {
            why: format!("cannot ask {} for {}: {error}", url::shown(uri), get.what),
        })?;
        self.watch.check()?;
        self.watch.listen(get.what);
        self.agent.run(request).map_err(|error| {
            // Why the connection was given up, where it was our own clock.
            if let Err(own) = self.watch.check() {
                return own;
            }
            self.watch.hang_up();
            TaskError::source(
                SourceFault::Interrupted,
                get.what,
                format!("{}: {error}; it is tried again", url::shown(uri)),
            )
        })
    }

    /// The whole of a small answer; `None` where it is longer than `limit`.
    pub(super) fn whole(
        &self,
        what: &str,
        answer: Response<Body>,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, TaskError> {
        let mut bytes = Vec::new();
        let reader = answer.into_body().into_reader();
        let read = reader.take(limit + 1).read_to_end(&mut bytes);
        if let Err(error) = read {
            self.watch.check()?;
            return Err(TaskError::source(
                SourceFault::Interrupted,
                what,
                format!("{error}; it is tried again"),
            ));
        }
        self.watch.hang_up();
        Ok((bytes.len() as u64 <= limit).then_some(bytes))
    }

    /// What an answer that is no success means.
    pub(super) fn refusal(&self, get: &Get<'_>, answer: Response<Body>) -> TaskError {
        let status = answer.status();
        let retry_after = retry_after(answer.headers());
        // So that the connection can be used again; what it says is not ours to show.
        let _ = self.whole(get.what, answer, MAX_ERROR_BYTES);
        self.watch.hang_up();
        let (fault, advice) = meaning(status);
        TaskError::Source {
            fault,
            what: get.what.to_owned(),
            why: format!(
                "{} answers {}; {advice}",
                url::shown(get.uri),
                status.as_u16()
            ),
            retry_after,
        }
    }
}

fn redirect(answer: &Response<Body>) -> Option<String> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = answer.headers().get(LOCATION)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// What a status means, and what to do.
fn meaning(status: StatusCode) -> (SourceFault, &'static str) {
    match status.as_u16() {
        401 | 403 => (
            SourceFault::Unauthorized,
            "correct the credentials for this source",
        ),
        408 | 425 | 429 | 500..=599 => (SourceFault::Busy, "it is tried again"),
        _ => (
            SourceFault::NotFound,
            "correct the address or the name of the file",
        ),
    }
}

/// When a source wants to be asked again: seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let left = at
        .as_second()
        .saturating_sub(jiff::Timestamp::now().as_second());
    u64::try_from(left).ok().map(Duration::from_secs)
}

/// The machine's certificates, a company's own among them; ours where it has none, as in an image from scratch.
fn roots() -> RootCerts {
    let own: Vec<_> = rustls_native_certs::load_native_certs()
        .certs
        .iter()
        .map(|certificate| Certificate::from_der(certificate.as_ref()).to_owned())
        .collect();
    if own.is_empty() {
        RootCerts::WebPki
    } else {
        RootCerts::Specific(Arc::new(own))
    }
}

/// Puts [`Watched`] between the socket and what reads from it.
struct Attentive(Arc<Watch>);

impl std::fmt::Debug for Attentive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Attentive")
    }
}

impl<In: Transport> Connector<In> for Attentive {
    type Out = Watched<In>;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        Ok(chained.map(|inner| Watched {
            inner,
            watch: Arc::clone(&self.0),
        }))
    }
}

/// A connection that never waits long without looking at the clock of the task.
struct Watched<T> {
    inner: T,
    watch: Arc<Watch>,
}

impl<T: Transport> std::fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: Transport> Transport for Watched<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let mut left = timeout;
        loop {
            if self.watch.check().is_err() {
                // The caller asks the watch why.
                return Err(std::io::Error::other("given up").into());
            }
            let mut short = left;
            short.after = left.after.min(LOOK.into());
            match self.inner.await_input(short) {
                Err(ureq::Error::Timeout(_)) if left.after > LOOK.into() => {
                    left.after = later(left.after);
                }
                answer => return answer,
            }
        }
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}

/// What is left of a time-out after one look.
fn later(
    after: ureq::unversioned::transport::time::Duration,
) -> ureq::unversioned::transport::time::Duration {
    use ureq::unversioned::transport::time::Duration as Left;
    match after {
        Left::Exact(left) => Left::Exact(left.saturating_sub(LOOK)),
        Left::NotHappening => Left::NotHappening,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_word() {
        use SourceFault::{Busy, NotFound, Unauthorized};
        for (status, fault) in [
            (401, Unauthorized),
            (403, Unauthorized),
            (404, NotFound),
            (410, NotFound),
            (400, NotFound),
            (304, NotFound),
            (408, Busy),
            (429, Busy),
            (500, Busy),
            (503, Busy),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(meaning(status).0, fault, "{status}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let said = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(said("7"), Some(Duration::from_secs(7)));
        assert_eq!(said("Sun, 06 Nov 1994 08:49:37 GMT"), None, "long past");
        let future = said("Sat, 06 Nov 2094 08:49:37 GMT").unwrap();
        assert!(future > Duration::from_secs(365 * 86_400));
        assert_eq!(said("soon"), None);
        assert_eq!(said("-1"), None);
    }
}
