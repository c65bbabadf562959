//! `relayctl logs`: what an object's processes write. Here the daemon gives it, in a cluster the pods' logs do. Following asks
//! again and shows what is new, so that both ways are alike.

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::time::Instant;

use crate::call::{Call, block_on};
use crate::daemon::calls::{self, MAX_LOG};
use crate::error::CliError;
use crate::facts::name;
use crate::kinds::{self, Kind};
use crate::output;
use crate::server::{Form, Server, encode};
use crate::terminal::{self, Reader};
use api::exit::Exit;
use api::kept_log::{self, KeptLog};
use api::label;

/// Kinds that something runs for.
const WITH_LOGS: [&str; 3] = ["LayaServer", "TrainingRun", "LayaModel"];
/// Between two looks.
const AGAIN: Duration = Duration::from_secs(1);
/// Lines of a pod that are asked for at once.
const POD_LINES: usize = 2000;

/// Arguments of `relayctl logs`.
#[derive(Debug, Args)]
#[command(after_help = "\
LayaServers, TrainingRuns and LayaModels (their fetch) have logs, as soon as something runs for them. At most the last 64 KiB
are shown. Of a revision that was taken back, the last 4 KiB are kept as long as `relayctl rollout history` names it. That of `relayd local` is <RELAY_HOME>/daemon/log.

Examples:
  relayctl logs main
  relayctl logs main --revision 0123456789 --tail 50
  relayctl logs trun/local-3 -f")]
pub(crate) struct LogsArguments {
    /// A LayaServer or TrainingRun, or KIND/NAME
    #[arg(value_name = "NAME")]
    object: String,
    /// Only of this revision of a LayaServer
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// Go on and show what comes
    #[arg(short, long)]
    follow: bool,
    /// At most so many lines at the beginning
    #[arg(long, value_name = "LINES")]
    tail: Option<usize>,
}

/// Shows logs.
pub(crate) fn run(call: &Call, arguments: &LogsArguments) -> Result<Exit, CliError> {
    let LogsArguments {
        object,
        revision,
        follow,
        tail,
    } = arguments;
    if let Some(revision) = revision {
        check_revision(revision)?;
    }
    let named = wanted(call, object)?;
    block_on(Box::pin(async {
        let server = call.connect().await?;
        let (kind, object) = found(call, &server, &named).await?;
        let name = name(&object).to_owned();
        if revision.is_some() && kind != kinds::laya_server() {
            return Err(CliError::usage(format!(
                "only a LayaServer has revisions, {} has none",
                kind.brief(&name)
            )));
        }
        let mut logs = Logs {
            call,
            server: &server,
            kind,
            name,
            uid: object["metadata"]["uid"].as_str().map(str::to_owned),
            revision: revision.as_deref(),
            seen: Vec::new(),
        };
        logs.begin(*tail).await?;
        if *follow {
            logs.go_on().await?;
        }
        Ok(Exit::Done)
    }))
}

/// A revision becomes part of a query and of a label selector.
fn check_revision(revision: &str) -> Result<(), CliError> {
    let good = !revision.is_empty()
        && revision.len() <= 64
        && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if good {
        return Ok(());
    }
    let shown: String = revision.chars().take(80).collect();
    Err(
        CliError::usage(format!("`--revision {shown}` is no revision"))
            .hint("`relayctl get ls -o wide` shows them"),
    )
}

/// Which objects a word may mean, the likeliest first.
fn wanted(call: &Call, word: &str) -> Result<Vec<(&'static Kind, String)>, CliError> {
    if !word.contains('/') {
        kinds::check_name(word)?;
        let kinds = [
            kinds::laya_server(),
            kinds::training_run(),
            kinds::laya_model(),
        ];
        return Ok(kinds.map(|kind| (kind, word.to_owned())).to_vec());
    }
    let (kind, name) = kinds::object(word)?;
    if WITH_LOGS.contains(&kind.kind) {
        return Ok(vec![(kind, name)]);
    }
    let line = format!(
        "a {} runs nothing and has no logs; {} have",
        kind.kind,
        WITH_LOGS.join(", ")
    );
    Err(CliError::usage(line).hint(daemon_log(call)?))
}

fn daemon_log(call: &Call) -> Result<String, CliError> {
    let log = call.places()?.daemon().join("log");
    Ok(format!("that of `relayd local` is {}", log.display()))
}

/// The first of them that is there.
async fn found(
    call: &Call,
    server: &Server,
    named: &[(&'static Kind, String)],
) -> Result<(&'static Kind, Value), CliError> {
    for (kind, name) in named {
        let found = server.find(kind, &server.namespace, name).await;
        if let Some(object) = found.map_err(|error| server.failed(error))? {
            return Ok((kind, object));
        }
    }
    let all: Vec<_> = named.iter().map(|(kind, name)| kind.brief(name)).collect();
    let line = format!(
        "there is no {} in namespace {}",
        all.join(" or "),
        server.namespace
    );
    Err(CliError::new(Exit::NotFound, line).hint(daemon_log(call)?))
}

/// Logs of one object, as far as they were shown.
struct Logs<'a> {
    call: &'a Call,
    server: &'a Server,
    kind: &'static Kind,
    name: String,
    uid: Option<String>,
    revision: Option<&'a str>,
    /// What each source said last, by its name.
    seen: Vec<(String, String)>,
}

impl Logs<'_> {
    /// What there is.
    async fn begin(&mut self, tail: Option<usize>) -> Result<(), CliError> {
        let sources = self.read().await?;
        let titled = sources.len() > 1;
        for (source, text) in &sources {
            let title = if titled {
                format!("==> {source} <==\n")
            } else {
                String::new()
            };
            let shown = tail.map_or(text.as_str(), |lines| last_lines(text, lines));
            print(&title, shown)?;
        }
        self.seen = sources;
        Ok(())
    }

    /// What comes, until the time is over or nobody reads.
    async fn go_on(&mut self) -> Result<(), CliError> {
        let ends = self
            .call
            .global
            .timeout
            .map(|timeout| Instant::now() + timeout);
        while ends.is_none_or(|ends| Instant::now() < ends) {
            let pause = ends.map_or(AGAIN, |ends| {
                ends.saturating_duration_since(Instant::now()).min(AGAIN)
            });
            tokio::time::sleep(pause).await;
            let sources = match self.read().await {
                Ok(sources) => sources,
                // Its process is being replaced: there is none for a moment.
                Err(error) if error.exit == Exit::NotFound && self.is_there().await? => continue,
                Err(error) => return Err(error),
            };
            let titled = sources.len() > 1;
            for (source, text) in &sources {
                let before = self.seen.iter().find(|(name, _)| name == source);
                let before = before.map_or("", |(_, text)| text.as_str());
                let news = news(before, text);
                if news.is_empty() {
                    continue;
                }
                let title = if titled {
                    format!("==> {source} <==\n")
                } else {
                    String::new()
                };
                if print(&title, news)? == Reader::Left {
                    return Ok(());
                }
            }
            self.seen = sources;
        }
        Ok(())
    }

    /// Whether there is an object that something could run for.
    async fn is_there(&self) -> Result<bool, CliError> {
        let found = self
            .server
            .find(self.kind, &self.server.namespace, &self.name)
            .await;
        found
            .map(|found| found.is_some())
            .map_err(|error| self.server.failed(error))
    }

    /// Every source and the end of its log.
    async fn read(&self) -> Result<Vec<(String, String)>, CliError> {
        if self.server.context.is_local() {
            let text = calls::logs(self.server, self.kind, &self.name, self.revision).await;
            return match text {
                Ok(text) => Ok(vec![(self.kind.brief(&self.name), text)]),
                Err(error) if error.exit == Exit::NotFound => Err(self.nothing()?),
                Err(error) => Err(error),
            };
        }
        let pods = self.pods().await?;
        let mut sources = Vec::new();
        for pod in &pods {
            let path = format!(
                "/api/v1/namespaces/{}/pods/{}/log?tailLines={POD_LINES}&limitBytes={MAX_LOG}",
                encode(&self.server.namespace),
                encode(name(pod))
            );
            let text = self.server.text(&path).await.map_err(|error| {
                self.server
                    .failed(error)
                    .attempting(format!("cannot read the log of pod {}", name(pod)))
            })?;
            sources.push((name(pod).to_owned(), text));
        }
        if sources.is_empty() {
            sources.extend(self.kept().await?);
        }
        if sources.is_empty() {
            Err(self.nothing()?)
        } else {
            Ok(sources)
        }
    }

    /// What is kept of a revision that was taken back, whose pods are gone. The daemon of this machine gives it by itself.
    async fn kept(&self) -> Result<Option<(String, String)>, CliError> {
        let Some(revision) = self.revision else {
            return Ok(None);
        };
        let document = kept_log::document_name(&self.name, revision);
        let kind = kinds::controller_revision();
        let found = self
            .server
            .find(kind, &self.server.namespace, &document)
            .await
            .map_err(|error| self.server.failed(error));
        let found = match found {
            Ok(found) => found,
            // Who may read pods need not be allowed to read these, and is told what the pods tell.
            Err(error) if error.exit == Exit::Forbidden => return Ok(None),
            Err(error) => {
                return Err(error.attempting(format!("cannot read {}", kind.brief(&document))));
            }
        };
        let log = found.and_then(|found| its_log(self.uid.as_deref(), &found));
        Ok(log.map(|log| (document, log)))
    }

    /// Pods of the object in a cluster.
    async fn pods(&self) -> Result<Vec<Value>, CliError> {
        let kind = kinds::pod();
        let revision = self.revision.map_or(String::new(), |revision| {
            format!(",{}={revision}", label::REVISION)
        });
        let selection = crate::server::Selection {
            labels: Some(format!(
                "{}={},{}={}{revision}",
                label::KIND,
                self.kind.kind,
                label::NAME,
                self.name
            )),
            ..crate::server::Selection::within(&self.server.namespace)
        };
        let list = self.server.list(kind, &selection, Form::Objects).await;
        let mut list =
            list.map_err(|error| self.server.failed(error).attempting("cannot list its pods"))?;
        Ok(match list["items"].take() {
            Value::Array(pods) => pods,
            _ => Vec::new(),
        })
    }

    fn nothing(&self) -> Result<CliError, CliError> {
        let of = self
            .revision
            .map_or(String::new(), |revision| format!(" at revision {revision}"));
        let line = format!(
            "nothing runs for {}{of}, so it has no logs",
            self.kind.brief(&self.name)
        );
        Ok(CliError::new(Exit::NotFound, line).hint(daemon_log(self.call)?))
    }
}

/// What a document keeps, where it is of this object and not of an earlier one of its name.
fn its_log(uid: Option<&str>, document: &Value) -> Option<String> {
    let owner = document["metadata"]["labels"][label::UID].as_str()?;
    let kept = KeptLog::read(&document["data"])?;
    (uid == Some(owner)).then_some(kept.log)
}

fn print(title: &str, text: &str) -> Result<Reader, CliError> {
    if text.is_empty() {
        return Ok(Reader::Reads);
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    terminal::print(&format!("{title}{}{end}", output::visible(text)))
}

/// The last so many lines of a text.
fn last_lines(text: &str, count: usize) -> &str {
    if count == 0 {
        return "";
    }
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = body
        .rmatch_indices('\n')
        .nth(count - 1)
        .map_or(0, |(at, _)| at + 1);
    &text[start..]
}

/// What a text says beyond an earlier one, whose beginning it may have lost: what follows the longest end of the earlier one
/// that it begins with. In time linear in both, by the failure function of Knuth, Morris and Pratt.
fn news<'a>(before: &str, text: &'a str) -> &'a str {
    let (before, bytes) = (before.as_bytes(), text.as_bytes());
    let mut fallback = vec![0; bytes.len()];
    let mut matched = 0;
    for at in 1..bytes.len() {
        while matched > 0 && bytes[at] != bytes[matched] {
            matched = fallback[matched - 1];
        }
        if bytes[at] == bytes[matched] {
            matched += 1;
        }
        fallback[at] = matched;
    }
    let mut matched = 0;
    for byte in before {
        while matched > 0 && (matched == bytes.len() || *byte != bytes[matched]) {
            matched = fallback[matched - 1];
        }
        if bytes.get(matched) == Some(byte) {
            matched += 1;
        }
    }
    // Both are whole characters, so their overlap is.
    text.get(matched..).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_kept_of_this_object_is_shown() {
        let document =
            |labels: Value| json!({"metadata": {"labels": labels}, "data": {"log": "the end"}});
        let of_it = document(json!({label::UID: "u1"}));
        assert_eq!(its_log(Some("u1"), &of_it).as_deref(), Some("the end"));
        assert_eq!(its_log(Some("u2"), &of_it), None);
        assert_eq!(its_log(None, &of_it), None);
        assert_eq!(its_log(Some("u1"), &document(json!({}))), None);
        let other = json!({"metadata": {"labels": {label::UID: "u1"}}, "data": {"other": 1}});
        assert_eq!(its_log(Some("u1"), &other), None);
    }

    #[test]
    fn only_what_is_new_is_shown() {
        for (before, text, expected) in [
            ("", "a\n", "a\n"),
            ("a\n", "a\n", ""),
            ("a\n", "a\nb\n", "b\n"),
            ("a\nb\nc\n", "b\nc\nd\n", "d\n"),
            ("a\na\n", "a\na\na\n", "a\n"),
            ("x\ny\n", "z\n", "z\n"),
            ("é\n", "é\nü\n", "ü\n"),
            ("aab", "abx", "x"),
            ("a\n", "", ""),
        ] {
            assert_eq!(news(before, text), expected, "{before:?} {text:?}");
        }
        let long = "line\n".repeat(20_000);
        assert_eq!(news(&long, &format!("{}new\n", &long[5..])), "new\n");
    }

    #[test]
    fn a_tail_is_whole_lines() {
        for (count, expected) in [(0, ""), (1, "c\n"), (2, "b\nc\n"), (9, "a\nb\nc\n")] {
            assert_eq!(last_lines("a\nb\nc\n", count), expected, "{count}");
        }
        assert_eq!(last_lines("a\nb", 1), "b");
    }

    #[test]
    fn revisions_cannot_select_something_else() {
        for (revision, good) in [
            ("0123456789", true),
            ("a,b", false),
            ("", false),
            ("a=b", false),
            ("\u{1b}", false),
        ] {
            assert_eq!(check_revision(revision).is_ok(), good, "{revision}");
        }
    }
}
