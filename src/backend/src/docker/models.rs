//! The volume of models, as people ask for it: what lies in it, and freeing space by hand. An engine's volumes are folders
//! of its own, so they are read from here only where this process may; else what a task saw last is told, with when, and a
//! helper looks where somebody waits for it.

use std::path::PathBuf;
use std::time::Duration;

use api::label::Task;
use api::reason::Reason;
use jiff::Timestamp;
use serde_json::Value;

use super::helper::Errand;
use super::{Docker, Inner, labels};
use crate::{
    BackendError, ModelsRoom, ModelsView, Network, TaskArguments, TaskKey, TaskSpec, VolumeRole,
    Writes,
};

/// For the system to tell the room of a folder.
const ROOM_PATIENCE: Duration = Duration::from_secs(2);
/// Memory of a helper that lists and deletes files.
const MEMORY_BYTES: u64 = 256 << 20;
/// Exit code of arguments that are not understood (control-plane 13).
const NOT_UNDERSTOOD: u64 = 2;

/// What is known of the volume of models without a task being started for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models {
    /// Name of the volume.
    pub volume: String,
    /// What is known.
    pub place: Place,
}

/// What is known of what lies in the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// There is no such volume yet.
    Absent,
    /// As it is now.
    Now(ModelsView),
    /// As a task saw it then.
    Then(Timestamp, ModelsView),
    /// Nothing, and why.
    NotKnown(String),
}

impl Docker {
    /// What is known of the volume of models without a task being started for it.
    ///
    /// # Errors
    /// When the engine does not answer, or the volume is somebody else's.
    pub async fn models(&self) -> Result<Models, BackendError> {
        let inner = &self.inner;
        let volume = inner.instance().volume(&VolumeRole::Models);
        let place = match inner.mountpoint().await? {
            Mountpoint::None => Place::Absent,
            Mountpoint::Here(folder) => match read(folder).await {
                Ok(view) => Place::Now(view),
                Err(why) => inner.remembered(why),
            },
            Mountpoint::Elsewhere => {
                inner.remembered("the engine runs on another machine".to_owned())
            }
        };
        Ok(Models { volume, place })
    }

    /// What lies in the volume of models now; `None` where there is no such volume. Where this process may not read it, a
    /// helper looks.
    ///
    /// # Errors
    /// When the engine does not do its part, or the image knows no such task.
    pub async fn look_at_models(&self, image: &str) -> Result<Option<ModelsView>, BackendError> {
        match self.models().await?.place {
            Place::Absent => Ok(None),
            Place::Now(view) => Ok(Some(view)),
            Place::Then(..) | Place::NotKnown(_) => {
                let what = "look into the models volume".to_owned();
                let spec = spec(image, &["--list".to_owned()], Writes::No);
                let result = self.run_task_of_nobody(Errand::Look, &what, &spec).await?;
                let view = serde_json::from_value::<ModelsView>(result.clone());
                view.map(Some).map_err(|_| not_a_view(what, image, &result))
            }
        }
    }

    /// Deletes checkpoints from the volume of models: the RESULT of `laya prune`, which says `ok` or why not. Another
    /// writer is not waited for: the list would be one of then. It goes on when this is dropped.
    ///
    /// # Errors
    /// When the engine does not do its part.
    pub async fn prune_models(
        &self,
        image: &str,
        delete: &[String],
    ) -> Result<Value, BackendError> {
        let words = delete
            .iter()
            .flat_map(|digest| ["--delete".to_owned(), digest.clone()]);
        let words: Vec<String> = words.chain(["--no-wait".to_owned()]).collect();
        let spec = spec(image, &words, Writes::Yes);
        self.run_task_of_nobody(Errand::Prune, "prune the models volume", &spec)
            .await
    }

    async fn run_task_of_nobody(
        &self,
        errand: Errand,
        what: &str,
        spec: &TaskSpec,
    ) -> Result<Value, BackendError> {
        // An engine would make a missing volume anew.
        self.inner.volume_there(&VolumeRole::Models).await?;
        let helper = self.helper(errand, what.to_owned(), spec)?;
        let inner = self.inner.clone();
        let work = async move {
            let nothing = std::future::ready(Ok(()));
            let result = Box::pin(inner.run_helper(helper, nothing)).await?;
            if let Ok(view) = serde_json::from_value::<ModelsView>(result.clone()) {
                inner.memory.remember_models(view);
            }
            Ok(result)
        };
        self.in_background(what.to_owned(), work).await
    }
}

/// Where the files of the volume are.
enum Mountpoint {
    /// There is no volume.
    None,
    /// In a folder of this machine, which this process may read or not.
    Here(PathBuf),
    /// On another machine.
    Elsewhere,
}

impl Inner {
    async fn mountpoint(&self) -> Result<Mountpoint, BackendError> {
        let instance = self.instance();
        let name = instance.volume(&VolumeRole::Models);
        let Some(volume) = self.find_volume(&name).await? else {
            return Ok(Mountpoint::None);
        };
        if !labels::is_ours(&volume.labels, &instance) {
            let holder = format!("a volume of driver {} without our labels", volume.driver);
            return Err(super::volumes::taken(
                &format!("look into volume {name}"),
                &name,
                &holder,
            ));
        }
        let is_local = self.engine.facts().is_some_and(|facts| facts.local);
        Ok(match is_local && !volume.mountpoint.is_empty() {
            true => Mountpoint::Here(volume.mountpoint.into()),
            false => Mountpoint::Elsewhere,
        })
    }

    fn remembered(&self, why: String) -> Place {
        match self.memory.models() {
            Some((at, view)) => Place::Then(at, view),
            None => Place::NotKnown(why),
        }
    }

    /// Room in the volume of models, where its folder can be asked from here. What a task saw once is no measurement.
    pub(super) async fn models_room(&self) -> Option<ModelsRoom> {
        let Ok(Mountpoint::Here(folder)) = self.mountpoint().await else {
            return None;
        };
        // The folder itself, and not what it would lie in: another process may see other folders here.
        let look = move || {
            folder
                .is_dir()
                .then(|| volumes::room(&folder).ok())
                .flatten()
        };
        let looked = tokio::task::spawn_blocking(look);
        let looked = tokio::time::timeout(ROOM_PATIENCE, looked).await;
        let (free_bytes, total_bytes) = looked.ok()?.ok()??;
        Some(ModelsRoom {
            volume: self.instance().volume(&VolumeRole::Models),
            free_bytes,
            total_bytes,
        })
    }
}

/// What lies in a folder, or why this process cannot tell.
async fn read(folder: PathBuf) -> Result<ModelsView, String> {
    let look = move || match std::fs::read_dir(&folder) {
        // One that is not there would be an empty volume to a plain look.
        Ok(_) => volumes::view(&folder).map_err(|error| said(&folder, &error)),
        Err(error) => Err(said(&folder, &error)),
    };
    match tokio::task::spawn_blocking(look).await {
        Ok(read) => read.map(ModelsView::from),
        Err(error) => Err(error.to_string()),
    }
}

fn said(folder: &std::path::Path, error: &std::io::Error) -> String {
    format!("cannot read {}: {error}", folder.display())
}

fn spec(image: &str, more: &[String], writes: Writes) -> TaskSpec {
    let words = ["prune", "--models", "/data/models"].map(str::to_owned);
    TaskSpec {
        key: TaskKey {
            task: Task::Prune,
            attempt: 1,
        },
        image: image.to_owned(),
        arguments: TaskArguments(words.into_iter().chain(more.iter().cloned()).collect()),
        volumes: vec![(VolumeRole::Models, writes)],
        network: Network::None,
        files: Vec::new(),
        secrets: Vec::new(),
        memory_bytes: MEMORY_BYTES,
        gpu: None,
        deadline_seconds: 0,
    }
}

/// Why a RESULT tells nothing of the volume: an image of an older release knows no such task.
fn not_a_view(what: String, image: &str, result: &Value) -> BackendError {
    let message = result["message"].as_str().unwrap_or("its result lacks it");
    if result["code"].as_u64() == Some(NOT_UNDERSTOOD) {
        return BackendError::Refused {
            what,
            reason: Reason::InvalidSpec,
            message: format!(
                "image {image} is of another release and does not know `laya prune --list` ({message}); start relayd with the \
                 --laya-image of its own release"
            ),
        };
    }
    BackendError::Failed {
        what,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_look_writes_nothing_and_a_prune_names_what_goes() {
        let look = spec("laya", &["--list".to_owned()], Writes::No);
        assert_eq!(
            look.arguments.0.join(" "),
            "prune --models /data/models --list"
        );
        assert_eq!(look.volumes, [(VolumeRole::Models, Writes::No)]);
        assert_eq!(look.network, Network::None);
    }

    #[test]
    fn an_older_image_is_named() {
        let what = || "look".to_owned();
        let result = json!({"ok": false, "code": 2, "message": "unexpected argument '--list'"});
        let error = not_a_view(what(), "laya:1", &result);
        assert_eq!(error.reason(), Some(Reason::InvalidSpec));
        assert!(error.to_string().contains("laya:1"), "{error}");
        let error = not_a_view(
            what(),
            "laya:1",
            &json!({"ok": false, "code": 5, "message": "x"}),
        );
        assert!(matches!(error, BackendError::Failed { .. }), "{error}");
    }

    #[tokio::test]
    async fn a_folder_that_is_not_there_is_not_an_empty_volume() {
        let home = tempfile::tempdir().unwrap();
        let missing = home.path().join("_data");
        let why = read(missing).await.unwrap_err();
        assert!(why.contains("_data"), "{why}");
        let view = read(home.path().to_owned()).await.unwrap();
        assert!(view.published.is_empty() && view.total_bytes > 0);
    }
}
