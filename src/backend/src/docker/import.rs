//! A folder of this machine becomes a checkpoint of the models volume (control-plane 18): its files are streamed into a
//! volume of a helper container, which publishes them as `laya fetch --from-dir` does. It works the same for an engine on
//! another machine, and needs no right of the container's user on the folder.
//!
//! The helper holds a copy of the whole checkpoint, so it is removed in any case: an import goes on in the background when
//! whoever asked for it goes away, and what a process that was killed left is removed later.

use std::path::{Path, PathBuf};
use std::time::Duration;

use api::group::Kind;
use api::label::{self, Task};
use bollard::models::{ContainerCreateBody, ContainerSummary};
use bollard::query_parameters::UploadToContainerOptionsBuilder;
use bytes::Bytes;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::sync::{mpsc, oneshot};

use super::archive::{BadName, folder_end, folder_header, padding};
use super::names::Instance;
use super::render::STAGED;
use super::volumes::random_uid;
use super::{Docker, Inner, labels};
use crate::{
    BackendError, Network, Owner, StagedFile, TaskArguments, TaskKey, TaskSpec, VolumeRole, Writes,
    task_protocol,
};

/// For all files to reach the engine, and for the fetch after that.
const PATIENCE: Duration = Duration::from_secs(1800);
/// A helper of this age is nobody's any more, in seconds: an import has [`PATIENCE`] twice.
const LEFT_OVER_SECONDS: i64 = 3600;
/// Between two looks whether the fetch has ended.
const AGAIN: Duration = Duration::from_millis(300);
/// Bytes of a piece on the way to the engine.
const PIECE: usize = 256 << 10;
/// Pieces that may wait.
const PIECES: usize = 4;
/// Most files of a checkpoint (control-plane 2), with some for what is beside it.
const MAX_FILES: usize = 512;
/// Deepest folder.
const MAX_DEPTH: usize = 8;
/// Bytes of output that are read: a RESULT has at most 256 KiB.
const OUTPUT: usize = 512 << 10;
/// Memory of the helper: tokenizer and headers are read, weights are streamed.
const MEMORY_BYTES: u64 = 1 << 30;

impl Docker {
    /// Publishes a folder in the models volume: the RESULT of the fetch, which says `ok` or why not. It goes on when this is
    /// dropped.
    ///
    /// # Errors
    /// When the folder cannot be read, or the engine does not do its part.
    pub async fn import(
        &self,
        image: &str,
        folder: &Path,
        contract: Option<&str>,
    ) -> Result<Value, BackendError> {
        let inner = &self.inner;
        let what = format!("import {}", folder.display());
        let folder = folder.to_owned();
        let listing = {
            let folder = folder.clone();
            tokio::task::spawn_blocking(move || files_of(&folder)).await
        };
        let failed = |message: String| BackendError::Failed {
            what: what.clone(),
            message,
        };
        let files = listing
            .map_err(|error| failed(error.to_string()))?
            .map_err(failed)?;
        let nobody = nobody();
        inner.ensure_volume(&nobody, &VolumeRole::Models).await?;
        let uid = random_uid()?;
        let name = format!("{}{uid}", prefix(&inner.instance()));
        let renderer = inner.renderer();
        let mut body = renderer.task(&nobody, &spec(image, contract), image);
        // It is nobody's child: no object is to claim it, and no sweep to find it.
        body.labels = Some(labels::ours(&renderer.instance));
        let (tell, told) = oneshot::channel();
        let (inner, on_what) = (inner.clone(), what.clone());
        self.spawn(async move {
            let import = inner.import(&name, body, &on_what, &folder, files);
            let result = Box::pin(import).await;
            // Nobody may wait for it any more.
            let _ = tell.send(result);
        });
        told.await
            .map_err(|_| failed("it was given up, since the process ends".to_owned()))?
    }
}

/// What names of helpers begin with.
fn prefix(instance: &Instance) -> String {
    format!("{}import-", instance.prefix())
}

/// Whether a container of ours is a helper that nobody waits for any more.
fn is_left_over(container: &ContainerSummary, prefix: &str, now_seconds: i64) -> bool {
    let labels = container.labels.as_ref();
    // A server may have such a name; it has an owner.
    let is_nobodys = labels.is_some_and(|labels| !labels.contains_key(label::UID));
    let names = container.names.iter().flatten();
    let mut names = names.map(|name| name.trim_start_matches('/'));
    let is_old = container
        .created
        .is_some_and(|at| now_seconds.saturating_sub(at) > LEFT_OVER_SECONDS);
    is_nobodys && is_old && names.any(|name| name.starts_with(prefix))
}

impl Inner {
    async fn import(
        &self,
        name: &str,
        body: ContainerCreateBody,
        what: &str,
        folder: &Path,
        files: Vec<Entry>,
    ) -> Result<Value, BackendError> {
        let result = match self.create(name, body).await {
            Ok(()) => self.publish(name, what, folder, files).await,
            // One may be there all the same, where the answer alone was lost.
            Err(error) => Err(error),
        };
        // Also where it failed: it is of no use to anybody. What was published stays published.
        if let Err(error) = self.remove(name).await {
            tracing::warn!(%error, container = name, "the helper of an import was not removed; it is tried again later");
        }
        result
    }

    /// Removes helpers of imports that a process left behind which was killed.
    pub(super) async fn remove_left_over_imports(&self) {
        let instance = self.instance();
        let ours = format!("{}={}", label::INSTANCE, instance.as_str());
        let listed = match self.list("label", vec![ours]).await {
            Ok(listed) => listed,
            Err(error) => {
                return tracing::debug!(%error, "helpers of imports cannot be looked for");
            }
        };
        let (prefix, now) = (prefix(&instance), Timestamp::now().as_second());
        let old: Vec<String> = listed
            .into_iter()
            .filter(|container| is_left_over(container, &prefix, now))
            .filter_map(|container| container.id)
            .collect();
        for id in old {
            match self.remove(&id).await {
                Ok(()) => tracing::info!(container = id, "the helper of an old import was removed"),
                Err(error) => {
                    tracing::warn!(%error, "the helper of an old import was not removed");
                }
            }
        }
    }

    async fn publish(
        &self,
        name: &str,
        what: &str,
        folder: &Path,
        files: Vec<Entry>,
    ) -> Result<Value, BackendError> {
        let (pieces, mut stream) = mpsc::channel::<std::io::Result<Bytes>>(PIECES);
        let sending = tokio::spawn(send(folder.to_owned(), files, pieces));
        let body = futures_util::stream::poll_fn(move |context| stream.poll_recv(context));
        let options = UploadToContainerOptionsBuilder::default()
            .path(STAGED)
            .build();
        let uploaded = self
            .engine
            .call(what, PATIENCE, |docker| async move {
                let body = bollard::body_try_stream(body.boxed());
                docker.upload_to_container(name, Some(options), body).await
            })
            .await;
        sending.abort();
        uploaded?;
        self.start(name).await?;
        let ended = tokio::time::timeout(PATIENCE, self.until_ended(name)).await;
        let code = ended.map_err(|_| BackendError::TimedOut {
            what: what.to_owned(),
            after: PATIENCE,
        })??;
        let output = self.output(name, OUTPUT).await?;
        let said = task_protocol::read(&output);
        said.result.ok_or_else(|| BackendError::Failed {
            what: what.to_owned(),
            message: format!(
                "the fetch ended with code {code} and no result: {}",
                said.tail
            ),
        })
    }

    async fn until_ended(&self, name: &str) -> Result<i64, BackendError> {
        loop {
            let inspected = self.inspect(name).await?;
            let Some(state) = inspected.and_then(|inspected| inspected.state) else {
                return Err(BackendError::Failed {
                    what: format!("wait for container {name}"),
                    message: "somebody removed it".to_owned(),
                });
            };
            let ended = state
                .finished_at
                .as_deref()
                .is_some_and(|at| !at.starts_with("0001-"));
            if state.running == Some(false) && ended {
                return Ok(state.exit_code.unwrap_or(-1));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// Owner of what has none.
fn nobody() -> Owner {
    Owner {
        kind: Kind::LayaModel,
        namespace: "default".to_owned(),
        name: "import".to_owned(),
        uid: String::new(),
    }
}

fn spec(image: &str, contract: Option<&str>) -> TaskSpec {
    let mut words = ["fetch", "--models", "/data/models", "--from-dir", STAGED]
        .map(str::to_owned)
        .to_vec();
    if let Some(contract) = contract {
        words.extend(["--contract".to_owned(), contract.to_owned()]);
    }
    TaskSpec {
        key: TaskKey {
            task: Task::Fetch,
            attempt: 1,
        },
        image: image.to_owned(),
        arguments: TaskArguments(words),
        volumes: vec![(VolumeRole::Models, Writes::Yes)],
        network: Network::None,
        // So that it gets the volume that the files are put into; they come as a stream.
        files: vec![StagedFile {
            name: "import".to_owned(),
            content: Vec::new(),
        }],
        secrets: Vec::new(),
        memory_bytes: MEMORY_BYTES,
        gpu: None,
        deadline_seconds: 0,
    }
}

/// A file below the folder.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    /// With `/` between its parts.
    path: String,
    size: u64,
}

/// Plain files of a folder, by path. What is a link or a device is none: a checkpoint has neither.
fn files_of(folder: &Path) -> Result<Vec<Entry>, String> {
    let mut found = Vec::new();
    let mut open = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((path, prefix, depth)) = open.pop() {
        let told = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
        for entry in std::fs::read_dir(&path).map_err(told)? {
            let entry = entry.map_err(told)?;
            let name = entry.file_name();
            let name = name
                .to_str()
                .ok_or_else(|| format!("a name in {} is no UTF-8", path.display()))?;
            let inner = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(told)?;
            if kind.is_dir() {
                if depth == MAX_DEPTH {
                    return Err(format!(
                        "{} is deeper than {MAX_DEPTH} folders",
                        path.display()
                    ));
                }
                open.push((entry.path(), format!("{inner}/"), depth + 1));
            } else if kind.is_file() {
                let size = entry.metadata().map_err(told)?.len();
                found.push(Entry { path: inner, size });
            } else {
                return Err(format!("{} is no plain file", entry.path().display()));
            }
            if found.len() > MAX_FILES {
                return Err(format!(
                    "{} has more than {MAX_FILES} files",
                    folder.display()
                ));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Sends the files as a tar stream; ends when nobody reads any more.
async fn send(folder: PathBuf, files: Vec<Entry>, pieces: mpsc::Sender<std::io::Result<Bytes>>) {
    for entry in files {
        if let Err(error) = send_one(&folder, &entry, &pieces).await {
            // The upload ends with it, or has ended.
            let _ = pieces.send(Err(error)).await;
            return;
        }
    }
    let _ = pieces.send(Ok(folder_end().into())).await;
}

async fn send_one(
    folder: &Path,
    entry: &Entry,
    pieces: &mpsc::Sender<std::io::Result<Bytes>>,
) -> std::io::Result<()> {
    let gone = || std::io::Error::other("the engine takes no more");
    let header = folder_header(&entry.path, entry.size)
        .map_err(|BadName(name)| std::io::Error::other(format!("`{name}` is too long a path")))?;
    pieces
        .send(Ok(Bytes::copy_from_slice(&header)))
        .await
        .map_err(|_| gone())?;
    let mut file = tokio::fs::File::open(folder.join(&entry.path)).await?;
    let mut left = entry.size;
    while left > 0 {
        let want = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        let mut piece = vec![0; want];
        // One that became shorter meanwhile is no checkpoint.
        file.read_exact(&mut piece).await?;
        left -= want as u64;
        pieces.send(Ok(piece.into())).await.map_err(|_| gone())?;
    }
    let rest = padding(entry.size);
    if !rest.is_empty() {
        pieces.send(Ok(rest.into())).await.map_err(|_| gone())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_is_streamed_as_tar_unpacks_it() {
        let home = tempfile::tempdir().unwrap();
        let from = home.path().join("from");
        std::fs::create_dir_all(from.join("tokenizer")).unwrap();
        std::fs::write(from.join("tokenizer/tokenizer.json"), vec![7; PIECE + 3]).unwrap();
        std::fs::write(from.join("config.json"), b"{}").unwrap();
        std::fs::write(from.join("empty"), b"").unwrap();
        let files = files_of(&from).unwrap();
        assert_eq!(files.len(), 3, "{files:?}");
        let (pieces, mut stream) = mpsc::channel(PIECES);
        let sending = tokio::spawn(send(from.clone(), files, pieces));
        let mut packed = Vec::new();
        while let Some(piece) = stream.recv().await {
            packed.extend_from_slice(&piece.unwrap());
        }
        sending.await.unwrap();
        let archive = home.path().join("archive.tar");
        std::fs::write(&archive, packed).unwrap();
        let to = home.path().join("to");
        std::fs::create_dir(&to).unwrap();
        let tar = std::process::Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .arg("--no-same-owner")
            .arg("-C")
            .arg(&to)
            .status()
            .unwrap();
        assert!(tar.success());
        for name in ["tokenizer/tokenizer.json", "config.json", "empty"] {
            let read = |root: &Path| std::fs::read(root.join(name)).unwrap();
            assert_eq!(read(&to), read(&from), "{name}");
        }
    }

    #[test]
    fn old_helpers_of_nobody_are_left_over() {
        let cases = [
            ("/relay-012345-import-aabb", None, 0, true),
            ("/relay-012345-import-aabb", None, 6000, false),
            (
                "/relay-012345-import-aabbccddee-0",
                Some("a server's"),
                0,
                false,
            ),
            ("/relay-012345-fetch-lm-import-1", None, 0, false),
            ("/relay-999999-import-aabb", None, 0, false),
        ];
        for (name, uid, created, expected) in cases {
            let labels = uid.map(|uid| (label::UID.to_owned(), uid.to_owned()));
            let container = ContainerSummary {
                names: Some(vec![name.to_owned()]),
                labels: Some(labels.into_iter().collect()),
                created: Some(created),
                ..ContainerSummary::default()
            };
            let instance = Instance::parse("0123456789ab").unwrap();
            let found = is_left_over(&container, &prefix(&instance), 7200);
            assert_eq!(found, expected, "{name} {uid:?} {created}");
        }
    }

    #[test]
    fn links_are_refused() {
        let home = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", home.path().join("link")).unwrap();
        let refused = files_of(home.path()).unwrap_err();
        assert!(refused.contains("no plain file"), "{refused}");
    }
}
