//! Output of containers. Both streams arrive in pieces; lines are put together for each of them, so that a line of one is
//! never torn by the other.

use bollard::container::LogOutput;
use bollard::query_parameters::LogsOptionsBuilder;
use futures_util::StreamExt;

use super::Inner;
use super::engine::LOOK;
use super::labels::Identity;
use crate::{BackendError, Child, Owner};

/// Most entries of the log that are asked for; one has 16 KiB at most.
const MAX_ENTRIES: usize = 20_000;
/// Bytes of an entry that are reckoned with.
const ENTRY_BYTES: usize = 32;

/// Puts lines together and keeps the last bytes.
#[derive(Debug)]
struct Lines {
    limit: usize,
    whole: Vec<u8>,
    open: [Vec<u8>; 2],
}

impl Lines {
    const fn new(limit: usize) -> Self {
        Self {
            limit,
            whole: Vec::new(),
            open: [Vec::new(), Vec::new()],
        }
    }

    fn push(&mut self, piece: &LogOutput) {
        let (stream, bytes) = match piece {
            LogOutput::StdErr { message } => (1, message),
            LogOutput::StdOut { message }
            | LogOutput::StdIn { message }
            | LogOutput::Console { message } => (0, message),
        };
        let open = &mut self.open[stream];
        open.extend_from_slice(bytes);
        if let Some(end) = open.iter().rposition(|byte| *byte == b'\n') {
            self.whole.extend(open.drain(..=end));
        }
        // A line without an end is cut at its beginning like all the rest.
        let surplus = open.len().saturating_sub(self.limit);
        open.drain(..surplus);
        if self.whole.len() > 2 * self.limit {
            self.forget();
        }
    }

    fn forget(&mut self) {
        let surplus = self.whole.len().saturating_sub(self.limit);
        self.whole.drain(..surplus);
    }

    fn finish(mut self) -> Vec<u8> {
        for open in std::mem::take(&mut self.open) {
            if !open.is_empty() {
                self.whole.extend(open);
                self.whole.push(b'\n');
            }
        }
        self.forget();
        self.whole
    }
}

impl Inner {
    /// The last `limit` bytes a container wrote.
    pub(super) async fn output(&self, name: &str, limit: usize) -> Result<Vec<u8>, BackendError> {
        let entries = (limit / ENTRY_BYTES).clamp(100, MAX_ENTRIES);
        let options = LogsOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .tail(&entries.to_string())
            .build();
        let name = name.to_owned();
        let what = format!("read the log of container {name}");
        self.engine
            .call(&what, LOOK, move |docker| async move {
                let mut stream = std::pin::pin!(docker.logs(&name, Some(options)));
                let mut lines = Lines::new(limit);
                while let Some(piece) = stream.next().await {
                    lines.push(&piece?);
                }
                Ok(lines.finish())
            })
            .await
    }

    /// The log of a child.
    pub(super) async fn logs_of(
        &self,
        owner: &Owner,
        child: &Child,
        limit: usize,
    ) -> Result<String, BackendError> {
        let wanted = match child {
            Child::Server { revision, ordinal } => Identity::Server {
                revision: revision.clone(),
                ordinal: *ordinal,
            },
            Child::Task(key) => Identity::Task(key.clone()),
        };
        let children = self.children(Some(owner)).await?;
        let found = children
            .into_iter()
            .find(|listed| listed.identity.as_ref() == Some(&wanted));
        let Some(found) = found else {
            return Err(BackendError::Failed {
                what: format!("read the log of {child:?} of {}", owner.name),
                message: "there is no such container; `relayctl status` lists those there are"
                    .to_owned(),
            });
        };
        let output = self.output(&found.id, limit).await?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    /// The end of what a server that does not run said, escaped.
    pub(super) fn shown(output: &[u8], limit: usize) -> String {
        crate::task_protocol::tail(&String::from_utf8_lossy(output), limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(text: &'static str) -> LogOutput {
        LogOutput::StdOut {
            message: text.into(),
        }
    }

    fn err(text: &'static str) -> LogOutput {
        LogOutput::StdErr {
            message: text.into(),
        }
    }

    #[test]
    fn a_line_of_one_stream_is_not_torn_by_the_other() {
        let mut lines = Lines::new(1000);
        for piece in [
            out("RESULT {\"ok\""),
            err("warning\nmore"),
            out(":true}\n"),
            err(" of it\nopen"),
        ] {
            lines.push(&piece);
        }
        let text = String::from_utf8(lines.finish()).unwrap();
        assert_eq!(text, "warning\nRESULT {\"ok\":true}\nmore of it\nopen\n");
    }

    #[test]
    fn only_the_end_is_kept() {
        let mut lines = Lines::new(10);
        for _ in 0..100 {
            lines.push(&out("abcdefgh"));
            lines.push(&err("12345\n"));
        }
        assert!(lines.whole.len() <= 20 && lines.open[0].len() <= 10);
        assert_eq!(lines.finish().len(), 10);
    }
}
