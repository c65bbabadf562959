//! What an inspected container means, in words of [`crate::observed`]. Pure.

use api::label;
use api::reason::Reason;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerState,
    ContainerStateStatusEnum as Status,
};
use jiff::Timestamp;

use super::compare::{Depth, tampered};
use super::error::{advised, start_reason};
use super::labels::{self, Identity, Inputs, Labels};
use super::render::{PORT, Renderer};
use crate::task_protocol::escape;
use crate::{Owner, RENDER_VERSION, RunState, ServerSeen, ServerSpec, TaskKey, TaskSeen, Waiting};

/// Longest message of an engine that is handed on, in characters.
const MAX_MESSAGE: usize = 700;

/// A child, told by its labels.
pub(super) struct Seen {
    pub identity: Identity,
    pub owner: Owner,
    pub labels: Labels,
    pub inspected: ContainerInspectResponse,
}

impl Seen {
    /// `None` where the labels are not those of a child.
    pub(super) fn read(inspected: ContainerInspectResponse) -> Option<Self> {
        let labels = inspected.config.as_ref()?.labels.clone()?;
        Some(Self {
            identity: labels::identity(&labels)?,
            owner: labels::owner(&labels)?,
            labels,
            inspected,
        })
    }

    pub(super) fn id(&self) -> &str {
        self.inspected.id.as_deref().unwrap_or_default()
    }

    /// Without the slash.
    pub(super) fn name(&self) -> &str {
        let name = self.inspected.name.as_deref().unwrap_or_default();
        name.trim_start_matches('/')
    }

    pub(super) fn state(&self) -> RunState {
        run_state(self.inspected.state.as_ref())
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let host = self.inspected.host_config.as_ref();
        let memory = host.and_then(|host| host.memory).unwrap_or_default();
        u64::try_from(memory).unwrap_or_default()
    }

    /// Changes whenever it ends again.
    pub(super) fn ended_key(&self) -> String {
        let finished = self
            .inspected
            .state
            .as_ref()
            .and_then(|state| state.finished_at.as_deref());
        format!("{}@{}", self.id(), finished.unwrap_or_default())
    }

    /// What it was made from, as its labels say.
    pub(super) fn made_from(&self) -> Option<ServerSpec> {
        let Identity::Server { revision, .. } = &self.identity else {
            return None;
        };
        Inputs::read(&self.labels).map(|inputs| inputs.server(revision))
    }
}

/// How a replica compares with what is rendered from its own labels.
pub(super) struct Compared {
    pub hash_matches: Option<bool>,
    pub tampered: Vec<String>,
}

impl Compared {
    /// Whether it is to be made anew.
    pub(super) fn differs(&self) -> bool {
        self.hash_matches == Some(false) || !self.tampered.is_empty()
    }
}

/// Compares a live replica with the rendering of what it was made from; with labels that say nothing, with that of
/// `wanted` by the fields of safety alone.
pub(super) fn compare(renderer: &Renderer, seen: &Seen, wanted: Option<&ServerSpec>) -> Compared {
    let Identity::Server {
        revision: _,
        ordinal,
    } = seen.identity
    else {
        return Compared {
            hash_matches: None,
            tampered: Vec::new(),
        };
    };
    let made_from = seen.made_from();
    let known = made_from.is_some();
    let Some(spec) = made_from.as_ref().or(wanted) else {
        return Compared {
            hash_matches: None,
            tampered: Vec::new(),
        };
    };
    let current = known && spec.inputs.render_version == RENDER_VERSION;
    let rendered = renderer.server(&seen.owner, spec, ordinal);
    let hash =
        |labels: Option<&Labels>| labels.and_then(|labels| labels.get(label::SPEC_HASH).cloned());
    let depth = if current { Depth::Whole } else { Depth::Safety };
    Compared {
        hash_matches: current.then(|| hash(rendered.labels.as_ref()) == hash(Some(&seen.labels))),
        tampered: tampered(&rendered, &seen.inspected, depth),
    }
}

/// Whether a replica was made by this version of the program from something else than what is rendered now: a grace, an
/// image's id, a GPU, none of which makes a revision.
pub(super) fn outdated(seen: &Seen, wanted: &ContainerCreateBody) -> bool {
    let current = seen
        .made_from()
        .is_some_and(|spec| spec.inputs.render_version == RENDER_VERSION);
    let hash = wanted
        .labels
        .as_ref()
        .and_then(|labels| labels.get(label::SPEC_HASH));
    current && hash != seen.labels.get(label::SPEC_HASH)
}

/// A replica. `last_exit` is how it ended before the engine started it again, where that was seen; `log_tail` is asked for
/// only where it does not run.
pub(super) fn server(
    renderer: &Renderer,
    seen: &Seen,
    state: RunState,
    last_exit: Option<i32>,
    log_tail: String,
) -> Option<ServerSeen> {
    let Identity::Server { revision, ordinal } = &seen.identity else {
        return None;
    };
    let compared = compare(renderer, seen, None);
    let live = seen.inspected.state.as_ref();
    let inputs = Inputs::read(&seen.labels);
    let restarts = seen.inspected.restart_count.unwrap_or_default();
    Some(ServerSeen {
        revision: revision.clone(),
        ordinal: *ordinal,
        state,
        started_at: live.and_then(|state| time(state.started_at.as_deref())),
        restarts: u32::try_from(restarts).unwrap_or_default(),
        exit_code: match seen.state() {
            RunState::Created => None,
            RunState::Running => last_exit.filter(|_| restarts > 0),
            RunState::Restarting | RunState::Exited | RunState::Stopping => exit_code(live),
        },
        oom_killed: live.and_then(|state| state.oom_killed).unwrap_or_default(),
        image_id: seen.inspected.image.clone(),
        url: (seen.state() == RunState::Running)
            .then(|| url(&seen.inspected))
            .flatten(),
        spec_hash: seen.labels.get(label::SPEC_HASH).cloned(),
        hash_matches: compared.hash_matches,
        tampered: compared.tampered,
        waiting: waiting(live),
        memory_bytes: seen.memory_bytes(),
        model: inputs.as_ref().map(|inputs| inputs.model.clone()),
        checkpoint: inputs.as_ref().map(Inputs::checkpoint),
        inputs: inputs.map(|inputs| inputs.inputs),
        log_tail,
    })
}

/// A task. What it said is added by whoever read it.
pub(super) fn task(seen: &Seen, state: RunState) -> Option<TaskSeen> {
    let Identity::Task(key) = &seen.identity else {
        return None;
    };
    let live = seen.inspected.state.as_ref();
    let ended = matches!(seen.state(), RunState::Exited);
    Some(TaskSeen {
        key: TaskKey::clone(key),
        state,
        started_at: live.and_then(|state| time(state.started_at.as_deref())),
        finished_at: live
            .filter(|_| ended)
            .and_then(|state| time(state.finished_at.as_deref())),
        exit_code: ended.then(|| exit_code(live)).flatten(),
        oom_killed: live.and_then(|state| state.oom_killed).unwrap_or_default(),
        progress: None,
        result: None,
        log_tail: String::new(),
        waiting: waiting(live),
    })
}

/// What the engine says of a container, in our words.
pub(super) fn run_state(state: Option<&ContainerState>) -> RunState {
    match state.and_then(|state| state.status) {
        Some(Status::CREATED | Status::EMPTY) | None => RunState::Created,
        // One that is paused by hand holds its port and answers nothing: probes tell.
        Some(Status::RUNNING | Status::PAUSED) => RunState::Running,
        Some(Status::RESTARTING) => RunState::Restarting,
        Some(Status::REMOVING | Status::STOPPING) => RunState::Stopping,
        // A removal of it failed half-way; it is removed again.
        Some(Status::EXITED | Status::DEAD) => RunState::Exited,
    }
}

/// How a container ended.
pub(super) fn exit_code(state: Option<&ContainerState>) -> Option<i32> {
    i32::try_from(state?.exit_code?).ok()
}

/// Of one that could not be started: the engine keeps why.
fn waiting(state: Option<&ContainerState>) -> Option<Waiting> {
    let state = state?;
    if run_state(Some(state)) == RunState::Running {
        return None;
    }
    let error = state.error.as_deref().filter(|error| !error.is_empty())?;
    let reason = start_reason(error).unwrap_or(Reason::Starting);
    Some(Waiting {
        reason,
        message: advised(reason, message(error)),
    })
}

/// A text of the engine, bounded and escaped.
pub(super) fn message(text: &str) -> String {
    let short: String = text.trim().chars().take(MAX_MESSAGE).collect();
    escape(&short)
}

fn url(inspected: &ContainerInspectResponse) -> Option<String> {
    let ports = inspected.network_settings.as_ref()?.ports.as_ref()?;
    let binding = ports.get(PORT)?.as_ref()?.first()?;
    let port: u16 = binding.host_port.as_ref()?.parse().ok()?;
    Some(format!("http://127.0.0.1:{port}"))
}

/// The engine writes the year 1 for never.
pub(super) fn time(text: Option<&str>) -> Option<Timestamp> {
    let at: Timestamp = text?.parse().ok()?;
    (at > Timestamp::UNIX_EPOCH).then_some(at)
}
