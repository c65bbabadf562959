//! A folder of this machine becomes a checkpoint of the models volume (control-plane 18): its files are streamed into a
//! volume of a helper container, which publishes them as `laya fetch --from-dir` does. It works the same for an engine on
//! another machine, and needs no right of the container's user on the folder.

use std::path::{Path, PathBuf};

use api::label::Task;
use bollard::query_parameters::UploadToContainerOptionsBuilder;
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;

use super::archive::{BadName, folder_end, folder_header, padding};
use super::helper::{Errand, PATIENCE, nobody};
use super::render::STAGED;
use super::{Docker, Inner};
use crate::{
    BackendError, Network, StagedFile, TaskArguments, TaskKey, TaskSpec, VolumeRole, Writes,
};

/// Bytes of a piece on the way to the engine.
const PIECE: usize = 256 << 10;
/// Pieces that may wait.
const PIECES: usize = 4;
/// Most files of a checkpoint (control-plane 2), with some for what is beside it.
const MAX_FILES: usize = 512;
/// Deepest folder.
const MAX_DEPTH: usize = 8;
/// Memory of the helper: tokenizer and headers are read, weights are streamed.
const MEMORY_BYTES: u64 = 1 << 30;

/// What a folder must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected<'a> {
    /// The checkpoint digest that its files must have.
    pub digest: Option<&'a str>,
    /// The contract digest that it must have, if it names one.
    pub contract: Option<&'a str>,
}

impl Docker {
    /// Publishes a folder in the models volume, and mends with it what is published and damaged: the RESULT of the fetch,
    /// which says `ok` or why not. It goes on when this is dropped.
    ///
    /// # Errors
    /// When the folder cannot be read, or the engine does not do its part.
    pub async fn import(
        &self,
        image: &str,
        folder: &Path,
        expected: Expected<'_>,
    ) -> Result<Value, BackendError> {
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
        let models = VolumeRole::Models;
        self.inner.ensure_volume(&nobody(), &models).await?;
        let spec = spec(image, expected);
        let helper = self.helper(Errand::Import, what.clone(), &spec)?;
        let inner = self.inner.clone();
        let work = async move {
            let (name, what) = (helper.name.clone(), helper.what.clone());
            let fill = Box::pin(inner.upload_folder(&name, &what, &folder, files));
            Box::pin(inner.run_helper(helper, fill)).await
        };
        self.in_background(what, work).await
    }
}

impl Inner {
    /// Streams files into the volume of a helper that was made and not started.
    async fn upload_folder(
        &self,
        name: &str,
        what: &str,
        folder: &Path,
        files: Vec<Entry>,
    ) -> Result<(), BackendError> {
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
        uploaded
    }
}

fn spec(image: &str, expected: Expected<'_>) -> TaskSpec {
    let words = ["fetch", "--models", "/data/models", "--from-dir", STAGED];
    // Somebody brings good files: that sizes are right is not enough for what lies there.
    let words = words.into_iter().chain(["--repair"]);
    let digest = expected.digest.map(|digest| ["--digest", digest]);
    let contract = expected.contract.map(|digest| ["--contract", digest]);
    let words = words.chain(digest.into_iter().flatten());
    let words = words.chain(contract.into_iter().flatten());
    TaskSpec {
        key: TaskKey {
            task: Task::Fetch,
            attempt: 1,
        },
        image: image.to_owned(),
        arguments: TaskArguments(words.map(str::to_owned).collect()),
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
    fn what_is_expected_is_asked_for() {
        let words = |expected| spec("laya", expected).arguments.0.join(" ");
        let plain = format!("fetch --models /data/models --from-dir {STAGED} --repair");
        assert_eq!(words(Expected::default()), plain);
        let both = Expected {
            digest: Some("sha256:1"),
            contract: Some("sha256:2"),
        };
        assert_eq!(
            words(both),
            format!("{plain} --digest sha256:1 --contract sha256:2")
        );
    }

    #[test]
    fn links_are_refused() {
        let home = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", home.path().join("link")).unwrap();
        let refused = files_of(home.path()).unwrap_err();
        assert!(refused.contains("no plain file"), "{refused}");
    }
}
