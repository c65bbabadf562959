//! What a router measured of each revision, for rollouts (control-plane 10): asked of a router over HTTP, or read in the
//! process that has both.

use std::path::PathBuf;
use std::time::Duration;

use api::revisions::RevisionReports;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderValue, header};

use crate::probe::{Call, ask};

/// For one report.
const WITHIN: Duration = Duration::from_millis(1_500);
/// Longest report that is read, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Largest token file, in bytes.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;
/// Where a router reports.
const PATH: &str = "/v1/internal/revisions";

/// Where reports of revisions come from.
pub trait RevisionReader: std::fmt::Debug + Send + Sync {
    /// What was measured so far.
    ///
    /// # Errors
    /// Why that is not known now, for people. Nothing may be concluded then.
    fn read(&self) -> BoxFuture<'_, Result<RevisionReports, String>>;
}

/// No router is there to report.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoReports;

impl RevisionReader for NoReports {
    fn read(&self) -> BoxFuture<'_, Result<RevisionReports, String>> {
        let error = "no router was named that reports what it measures";
        std::future::ready(Err(error.to_owned())).boxed()
    }
}

/// A router in this process.
pub struct InProcessReports<F>(pub F);

impl<F> std::fmt::Debug for InProcessReports<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcessReports").finish_non_exhaustive()
    }
}

impl<F: Fn() -> RevisionReports + Send + Sync> RevisionReader for InProcessReports<F> {
    fn read(&self) -> BoxFuture<'_, Result<RevisionReports, String>> {
        std::future::ready(Ok((self.0)())).boxed()
    }
}

/// A router over HTTP.
#[derive(Debug, Clone)]
pub struct HttpReports {
    url: String,
    token_file: Option<PathBuf>,
}

impl HttpReports {
    /// The router at `url`, a plain HTTP address; the file has the bearer token it demands and is read again each time, so
    /// that a new token counts at once.
    #[must_use]
    pub fn new(url: impl Into<String>, token_file: Option<PathBuf>) -> Self {
        Self {
            url: url.into(),
            token_file,
        }
    }

    async fn report(&self) -> Result<RevisionReports, String> {
        let mut call = Call::get(PATH);
        if let Some(path) = &self.token_file {
            let bearer = bearer(path).map_err(|problem| {
                format!("cannot read token file {}: {problem}", path.display())
            })?;
            call.headers.push((header::AUTHORIZATION, bearer));
        }
        let said = ask(&self.url, &call, WITHIN, MAX_BYTES)
            .await
            .map_err(|error| format!("the router at {} does not report: {error}", self.url))?;
        match said.status {
            200 => serde_json::from_slice(&said.body).map_err(|error| {
                format!(
                    "the report of the router at {} is not understood: {error}",
                    self.url
                )
            }),
            status @ (401 | 403) => Err(format!(
                "the router at {} refuses its report with {status}: give the controller its token",
                self.url
            )),
            status => Err(format!(
                "the router at {} answers {status} instead of its report",
                self.url
            )),
        }
    }
}

impl RevisionReader for HttpReports {
    fn read(&self) -> BoxFuture<'_, Result<RevisionReports, String>> {
        self.report().boxed()
    }
}

/// The first token of the file: the last word of its first line, since a token file of a router has lines
/// `<tenant> <token>`.
fn bearer(path: &std::path::Path) -> Result<HeaderValue, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !size.is_file() || size.len() > MAX_TOKEN_BYTES {
        return Err("it is no file of that kind".to_owned());
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let lines = text.lines().map(str::trim);
    let line = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .find_map(|line| line.split_whitespace().last());
    let token = line.ok_or("it has no token")?;
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| "its token has characters that no header can have")?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use testkit::{FakeLaya, Says};

    use super::*;

    #[tokio::test]
    async fn fault_30_a_report_that_is_not_there_says_why() {
        let fake = FakeLaya::start(Says::relay()).await;
        let other = HttpReports::new(fake.url(), None).read().await;
        assert!(
            other
                .unwrap_err()
                .ends_with("answers 404 instead of its report")
        );
        let folder = tempfile::tempdir().unwrap();
        let missing = HttpReports::new(fake.url(), Some(folder.path().join("none")));
        assert!(missing.read().await.unwrap_err().contains("token file"));
        let address = fake.url();
        fake.stop().await;
        let gone = HttpReports::new(address, None).read().await;
        assert!(gone.unwrap_err().contains("does not report"));
        assert!(NoReports.read().await.is_err());
        let here = InProcessReports(RevisionReports::default);
        assert_eq!(here.read().await, Ok(RevisionReports::default()));
    }

    #[test]
    fn a_token_is_the_last_word_of_the_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        for (text, token) in [
            ("secret\n", Some("Bearer secret")),
            (
                "# who\n\ncontroller secret\nother x\n",
                Some("Bearer secret"),
            ),
            ("\n", None),
        ] {
            std::fs::write(&path, text).unwrap();
            let read = bearer(&path).ok();
            assert_eq!(
                read.as_ref().map(|value| value.to_str().unwrap()),
                token,
                "{text:?}"
            );
        }
    }
}
