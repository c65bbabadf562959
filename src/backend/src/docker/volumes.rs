//! Volumes and networks: made on demand, known by their labels, removed only when these are ours.

use api::label;
use api::reason::Reason;
use bollard::models::{NetworkCreateRequest, NetworkInspect, Volume};
use bollard::query_parameters::{InspectNetworkOptions, RemoveVolumeOptionsBuilder};

use super::Inner;
use super::engine::{CHANGE, refused};
use super::labels;
use crate::{BackendError, Owner, Stranger, VolumeRole, VolumeSeen};

/// What has the name of a volume.
pub(super) enum Found {
    /// Ours, or one that is not ours and was asked for as such.
    Ours {
        seen: VolumeSeen,
        /// Uid of the object whose it is; empty where it is nobody's.
        of: String,
    },
    /// Somebody else's.
    Stranger(Stranger),
}

impl Inner {
    pub(super) async fn find_volume(&self, name: &str) -> Result<Option<Volume>, BackendError> {
        let what = format!("inspect volume {name}");
        let name = name.to_owned();
        self.engine
            .find(
                &what,
                |docker| async move { docker.inspect_volume(&name).await },
            )
            .await
    }

    /// What has the name that a volume of this role has; `None` where nothing has.
    pub(super) async fn volume_seen(
        &self,
        role: &VolumeRole,
    ) -> Result<Option<Found>, BackendError> {
        let instance = self.instance();
        let name = instance.volume(role);
        let Some(volume) = self.find_volume(&name).await? else {
            return Ok(None);
        };
        let foreign = matches!(role, VolumeRole::Foreign { .. });
        let ours = labels::is_ours(&volume.labels, &instance);
        let uid = match volume.labels.get(label::VOLUME_UID) {
            Some(uid) if ours => Some(uid.clone()),
            // When it was made is all there is to tell it from one of the same name made later.
            _ if foreign => Some(volume.created_at.clone().unwrap_or_default()),
            _ => None,
        };
        Ok(Some(match uid {
            Some(uid) => Found::Ours {
                seen: VolumeSeen {
                    role: role.clone(),
                    name,
                    uid,
                    bound: true,
                },
                of: volume.labels.get(label::UID).cloned().unwrap_or_default(),
            },
            None => Found::Stranger(Stranger {
                holder: format!("a volume of driver {} without our labels", volume.driver),
                name,
                reason: Reason::NameTaken,
            }),
        }))
    }

    /// A volume is there, and ours.
    pub(super) async fn ensure_volume(
        &self,
        owner: &Owner,
        role: &VolumeRole,
    ) -> Result<(), BackendError> {
        if matches!(role, VolumeRole::Foreign { .. }) {
            return self.volume_there(role).await;
        }
        if self.volume_of(owner, role).await? {
            return Ok(());
        }
        let request = self.renderer().volume(owner, role, &random_uid()?);
        let what = format!("create volume {}", self.instance().volume(role));
        self.engine
            .call(&what, CHANGE, |docker| async move {
                docker.create_volume(request).await
            })
            .await?;
        // An engine answers the same for one that was there already: whose is it?
        self.volume_of(owner, role).await.map(|_| ())
    }

    /// Whether the volume of this owner is there; one of somebody else is an error, and so is one of another object of ours.
    async fn volume_of(&self, owner: &Owner, role: &VolumeRole) -> Result<bool, BackendError> {
        let Some(of) = self.own_volume(role).await? else {
            return Ok(false);
        };
        if is_of(owner, role, &of) {
            return Ok(true);
        }
        let name = self.instance().volume(role);
        Err(taken(
            &format!("use volume {name}"),
            &name,
            &format!("another object of the same name, with uid {of}"),
        ))
    }

    /// Whose our volume is, by its uid, where it is there; one of somebody else is an error.
    async fn own_volume(&self, role: &VolumeRole) -> Result<Option<String>, BackendError> {
        match self.volume_seen(role).await? {
            None => Ok(None),
            Some(Found::Ours { of, .. }) => Ok(Some(of)),
            Some(Found::Stranger(stranger)) => Err(taken(
                &format!("use volume {}", stranger.name),
                &stranger.name,
                &stranger.holder,
            )),
        }
    }

    /// A volume is there before a container names it: an engine would make a missing one anew, empty and in silence.
    pub(super) async fn volume_there(&self, role: &VolumeRole) -> Result<(), BackendError> {
        if self.own_volume(role).await?.is_some() {
            return Ok(());
        }
        let name = self.instance().volume(role);
        Err(BackendError::Refused {
            what: format!("use volume {name}"),
            reason: Reason::VolumeLost,
            message: "there is no such volume on the engine; what lay in it is fetched again, or give its name"
                .to_owned(),
        })
    }

    /// The volume of this owner is gone. One that is not ours stays, and so does that of an object of the same name that
    /// was made since: with it this owner's own is gone already.
    pub(super) async fn delete_volume(
        &self,
        owner: &Owner,
        role: &VolumeRole,
    ) -> Result<(), BackendError> {
        let name = self.instance().volume(role);
        let what = format!("remove volume {name}");
        if matches!(role, VolumeRole::Foreign { .. }) {
            return Err(taken(&what, &name, "somebody else, who named it in a spec"));
        }
        let of = self.own_volume(role).await?;
        if !of.is_some_and(|of| is_of(owner, role, &of)) {
            return Ok(());
        }
        let options = RemoveVolumeOptionsBuilder::default().build();
        let removed = self
            .engine
            .ask(&what, CHANGE, |docker| async move {
                docker.remove_volume(&name, Some(options)).await
            })
            .await?;
        match removed {
            Ok(()) | Err((404, _)) => Ok(()),
            Err((status, message)) => Err(refused(&what, status, message)),
        }
    }

    /// The network of servers, or of fetch tasks, is there, and ours.
    pub(super) async fn ensure_network(
        &self,
        request: NetworkCreateRequest,
    ) -> Result<(), BackendError> {
        let _one = self.networks.lock().await;
        let name = request.name.clone();
        if self.own_network(&name).await? {
            return Ok(());
        }
        let what = format!("create network {name}");
        let created = self
            .engine
            .ask(&what, CHANGE, |docker| async move {
                docker.create_network(request).await
            })
            .await?;
        match created {
            Ok(_) => Ok(()),
            Err((status, message)) => {
                if self.own_network(&name).await? {
                    return Ok(());
                }
                Err(refused(&what, status, message))
            }
        }
    }

    async fn own_network(&self, name: &str) -> Result<bool, BackendError> {
        let what = format!("inspect network {name}");
        let asked = name.to_owned();
        let found: Option<NetworkInspect> = self
            .engine
            .find(&what, |docker| async move {
                docker
                    .inspect_network(&asked, None::<InspectNetworkOptions>)
                    .await
            })
            .await?;
        let Some(network) = found else {
            return Ok(false);
        };
        let labels = network.labels.unwrap_or_default();
        if labels::is_ours(&labels, &self.instance()) {
            return Ok(true);
        }
        Err(taken(
            &format!("use network {name}"),
            name,
            "a network without our labels",
        ))
    }
}

/// Whether a volume of ours that is labelled with this uid is this owner's. What all use has no owner.
fn is_of(owner: &Owner, role: &VolumeRole, uid: &str) -> bool {
    match role {
        VolumeRole::Work { .. } | VolumeRole::Gate { .. } => uid == owner.uid,
        VolumeRole::Models | VolumeRole::Foreign { .. } => true,
    }
}

/// A name that we need is somebody else's.
pub(super) fn taken(what: &str, name: &str, holder: &str) -> BackendError {
    BackendError::Refused {
        what: what.to_owned(),
        reason: Reason::NameTaken,
        message: format!("the name {name} belongs to {holder}; remove or rename that one"),
    }
}

/// 16 hex digits.
pub(super) fn random_uid() -> Result<String, BackendError> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| BackendError::Failed {
        what: "make the uid of a volume".to_owned(),
        message: error.to_string(),
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use api::group::Kind;

    use super::*;

    #[test]
    fn work_is_of_one_life_of_an_object_and_models_are_of_all() {
        let owner = Owner {
            kind: Kind::TrainingRun,
            namespace: "default".to_owned(),
            name: "nightly".to_owned(),
            uid: "new".to_owned(),
        };
        let work = VolumeRole::Work {
            run: "nightly".to_owned(),
        };
        let gate = VolumeRole::Gate {
            gate: "nightly".to_owned(),
        };
        let foreign = VolumeRole::Foreign {
            name: "x".to_owned(),
        };
        let cases = [
            (&work, "new", true),
            (&work, "old", false),
            (&work, "", false),
            (&gate, "new", true),
            (&gate, "old", false),
            (&VolumeRole::Models, "", true),
            (&foreign, "", true),
        ];
        for (role, uid, expected) in cases {
            assert_eq!(is_of(&owner, role, uid), expected, "{role:?} {uid:?}");
        }
    }
}
