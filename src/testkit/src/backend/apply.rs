//! What actions do to an engine in memory.

use ::backend::{
    Action, BackendError, ImageState, Ordinals, Owner, RunState, ServerSeen, ServerSpec, VolumeSeen,
};

use super::{Children, FakeBackend, State};

impl FakeBackend {
    pub(super) fn apply_now(&self, owner: &Owner, action: &Action) -> Result<(), BackendError> {
        let mut state = self.state();
        if let Some(failures) = state.failures.get_mut(action.name())
            && !failures.is_empty()
        {
            return Err(failures.remove(0));
        }
        state.applied.push((owner.clone(), action.clone()));
        match action {
            Action::EnsureVolume { role, .. } => {
                let key = State::volume_key(&self.capabilities, owner, role);
                if !state.volumes.contains_key(&key) {
                    let uid = state.next_uid("volume");
                    let seen = VolumeSeen {
                        role: role.clone(),
                        name: "relay-models".to_owned(),
                        uid,
                        bound: true,
                    };
                    state.volumes.insert(key, seen);
                }
            }
            Action::DeleteVolume { role } => {
                let key = State::volume_key(&self.capabilities, owner, role);
                if let Some(volume) = state.volumes.remove(&key) {
                    state.published.remove(&volume.uid);
                }
            }
            Action::EnsureImage { image, .. } => {
                let id = format!("sha256:{image}");
                state
                    .images
                    .insert(image.clone(), ImageState::Present { id });
            }
            Action::EnsureServer { server, ordinals } => {
                for ordinal in ordinals {
                    state.start(owner, server, *ordinal, false);
                }
            }
            Action::RecreateServer { server, ordinal } => {
                state.start(owner, server, *ordinal, true)
            }
            Action::PointService { .. } | Action::Drain { .. } => {}
            Action::StopServer {
                revision, ordinals, ..
            } => {
                for server in state.servers(owner, revision, ordinals) {
                    server.state = RunState::Exited;
                    server.url = None;
                    server.exit_code = Some(0);
                }
            }
            Action::DeleteServer {
                revision, ordinals, ..
            } => {
                let children = state.of(owner);
                children.servers.retain(|server| {
                    !(server.revision == *revision && includes(ordinals, server.ordinal))
                });
            }
            Action::RunTask(spec) => self.run_task(&mut state, owner, spec),
            Action::StopTask { task, .. } => {
                let now = (state.time)();
                for (_, seen) in &mut state.of(owner).tasks {
                    if seen.key == *task && seen.state != RunState::Exited {
                        seen.state = RunState::Exited;
                        seen.exit_code = Some(143);
                        seen.finished_at = Some(now);
                    }
                }
            }
            Action::DeleteTask { task } => {
                state.of(owner).tasks.retain(|(_, seen)| seen.key != *task)
            }
        }
        Ok(())
    }
}

fn includes(ordinals: &Ordinals, ordinal: u32) -> bool {
    match ordinals {
        Ordinals::All => true,
        Ordinals::Only(only) => only.contains(&ordinal),
    }
}

impl State {
    pub(super) fn of(&mut self, owner: &Owner) -> &mut Children {
        let children = self.children.entry(owner.uid.clone());
        children.or_insert_with(|| Children {
            owner: owner.clone(),
            servers: Vec::new(),
            tasks: Vec::new(),
        })
    }

    fn servers<'a>(
        &'a mut self,
        owner: &Owner,
        revision: &'a str,
        ordinals: &'a Ordinals,
    ) -> impl Iterator<Item = &'a mut ServerSeen> {
        let servers = self.of(owner).servers.iter_mut();
        servers
            .filter(move |server| server.revision == revision && includes(ordinals, server.ordinal))
    }

    /// Makes a replica, or starts it where it stands; `anew` removes it before.
    fn start(&mut self, owner: &Owner, spec: &ServerSpec, ordinal: u32, anew: bool) {
        let started_at = Some((self.time)());
        let url = (self.address.clone())(owner, spec, ordinal);
        let servers = &mut self.of(owner).servers;
        let is_it =
            |server: &ServerSeen| server.revision == spec.revision && server.ordinal == ordinal;
        if anew {
            servers.retain(|server| !is_it(server));
        }
        if let Some(server) = servers.iter_mut().find(|server| is_it(server)) {
            if server.state != RunState::Running {
                server.state = RunState::Running;
                server.started_at = started_at;
                server.url = url;
                server.restarts = 0;
            }
            return;
        }
        servers.push(ServerSeen {
            revision: spec.revision.clone(),
            ordinal,
            state: RunState::Running,
            started_at,
            restarts: 0,
            exit_code: None,
            oom_killed: false,
            image_id: spec
                .image_id
                .clone()
                .or_else(|| Some(format!("sha256:{}", spec.inputs.image))),
            url,
            spec_hash: Some(spec.revision.clone()),
            hash_matches: Some(true),
            tampered: Vec::new(),
            waiting: None,
            memory_bytes: spec.memory_bytes(),
            model: Some(spec.model.clone()),
            inputs: Some(spec.inputs.clone()),
            checkpoint: Some(spec.checkpoint()),
            log_tail: String::new(),
        });
    }
}
