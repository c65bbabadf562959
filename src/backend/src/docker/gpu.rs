//! Whether the engine has a GPU (control-plane 8.3): signs of one, and what the last check found. A server of device `Auto`
//! is rendered with a GPU where a check passed; on an engine without any sign of one no check is made. What is seen is
//! judged by pure functions; only [`Docker`]'s methods touch the engine.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use api::kinds::laya_server::ServerApi;
use api::kinds::shared::{Device, Gpu};
use api::label::Task;
use api::reason::Reason;
use bollard::models::SystemInfo;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::apply::Named;
use super::render::image_of;
use super::{Docker, Inner, map};
use crate::task_protocol::read;
use crate::{
    BackendError, Hint, Network, Owner, RunState, ServerSpec, TaskArguments, TaskKey, TaskSpec,
};

/// Where the driver of this machine says its version.
const DRIVER: &str = "/proc/driver/nvidia/version";
/// Who works on the check: one at a time on an engine.
const CHECK: &str = "gpu-check";
/// How long an action waits for a check before it leaves the rest to the next pass.
const WAITED_FOR: Duration = Duration::from_secs(5);
/// How long a check that started may run: it says one line.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks at a check that runs.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long an action waits that finds a check of somebody else under way.
const SECOND_WAITS: Duration = Duration::from_secs(1);
/// Bytes of output of a check.
const OUTPUT_BYTES: usize = 16 << 10;
/// The code of a task that found no device (control-plane 13).
const NO_DEVICE: i32 = 7;

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checked {
    /// No GPU can be used.
    Absent,
    /// There is one, with so much memory where the check said it.
    Present { memory_bytes: Option<u64> },
    /// The check could not be made, which says nothing; it is not made again at once.
    Untold,
}

impl Checked {
    /// As observations say it: 0 for none.
    pub(super) const fn memory_bytes(self) -> Option<u64> {
        match self {
            Self::Absent => Some(0),
            Self::Present { memory_bytes } => memory_bytes,
            Self::Untold => None,
        }
    }
}

/// Whether an engine could have a GPU: by the runtimes and devices it names, and by the driver where it runs on this
/// machine. Docker needs no runtime of that name for a device request, so the driver alone is a sign.
pub(super) fn has_signs(info: &SystemInfo, driver_here: bool) -> bool {
    let names = |text: &str| text.to_ascii_lowercase().contains("nvidia");
    let runtimes = info.runtimes.iter().flat_map(|runtimes| runtimes.keys());
    let mut runtimes = runtimes.chain(info.default_runtime.iter());
    let devices = info.discovered_devices.iter().flatten();
    let mut devices = devices.filter_map(|device| device.id.as_deref());
    driver_here || runtimes.any(|name| names(name)) || devices.any(names)
}

/// Whether this machine has the driver.
pub(super) fn driver_here() -> bool {
    Path::new(DRIVER).exists()
}

/// What a check means that was started. Its start alone proves that the engine grants a GPU: without a driver it is refused.
/// What the program says comes on top, since not every version of it knows the word.
pub(super) fn judge(exit_code: Option<i32>, result: Option<&Value>) -> Checked {
    if exit_code == Some(NO_DEVICE) || result.is_some_and(|result| result["ok"] == false) {
        return Checked::Absent;
    }
    let memory = result.and_then(|result| result["memoryBytes"].as_u64());
    Checked::Present {
        memory_bytes: memory.filter(|bytes| *bytes > 0),
    }
}

/// How a server is to be rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Render {
    /// As it was asked for.
    AsAsked,
    /// With a GPU.
    WithGpu,
    /// A check tells.
    AfterCheck,
    /// The last check told nothing.
    Untold,
}

impl Render {
    /// Whether one that takes the place of another, or is that other started again, gets a GPU beyond what was asked for.
    const fn grants(self, had_gpu: bool) -> bool {
        match self {
            Self::AsAsked => false,
            Self::WithGpu => true,
            // Nobody knows better: it keeps what it had.
            Self::AfterCheck | Self::Untold => had_gpu,
        }
    }
}

fn decide(device: Device, wants_gpu: bool, signs: bool, last: Option<Checked>) -> Render {
    if device != Device::Auto || wants_gpu {
        return Render::AsAsked;
    }
    match last {
        Some(Checked::Present { .. }) => Render::WithGpu,
        Some(Checked::Absent) => Render::AsAsked,
        Some(Checked::Untold) => Render::Untold,
        None if signs => Render::AfterCheck,
        None => Render::AsAsked,
    }
}

/// The check: the server's own image, one GPU, no volume and no network.
pub(super) fn check(server: &ServerSpec) -> TaskSpec {
    let arguments: &[&str] = match server.server_api() {
        // A program that does not know the word refuses it and ends, which is as good: it was started.
        ServerApi::Relay => &["gpu-check"],
        // Not ours: anything that ends by itself.
        ServerApi::Laya => &["python", "-c", "pass"],
    };
    TaskSpec {
        key: TaskKey {
            task: Task::GpuCheck,
            attempt: 1,
        },
        image: image_of(server),
        arguments: TaskArguments(arguments.iter().map(|word| (*word).to_owned()).collect()),
        volumes: Vec::new(),
        network: Network::None,
        files: Vec::new(),
        secrets: Vec::new(),
        memory_bytes: 0,
        gpu: Some(Gpu {
            count: 1,
            ..server.gpu()
        }),
        deadline_seconds: 10,
    }
}

fn with_gpu(server: &ServerSpec) -> ServerSpec {
    ServerSpec {
        wants_gpu: true,
        ..server.clone()
    }
}

impl Docker {
    /// A server as it is to be rendered now. `None` while a check that tells is under way; its end is a hint.
    pub(super) async fn on_device<'a>(
        &self,
        owner: &Owner,
        server: &'a ServerSpec,
    ) -> Result<Option<Cow<'a, ServerSpec>>, BackendError> {
        let mut render = self.render_of(server).await?;
        if render == Render::AfterCheck {
            self.check_gpu(owner, server).await;
            render = self.render_of(server).await?;
        }
        Ok(match render {
            Render::AsAsked | Render::Untold => Some(Cow::Borrowed(server)),
            Render::WithGpu => Some(Cow::Owned(with_gpu(server))),
            Render::AfterCheck => None,
        })
    }

    /// A server that takes the place of one that had a GPU, or had none, or is that one started again: nothing waits for a
    /// check, and what the last one does not tell stays as it was.
    pub(super) async fn on_device_as_before<'a>(
        &self,
        server: &'a ServerSpec,
        had_gpu: bool,
    ) -> Result<Cow<'a, ServerSpec>, BackendError> {
        Ok(if self.render_of(server).await?.grants(had_gpu) {
            Cow::Owned(with_gpu(server))
        } else {
            Cow::Borrowed(server)
        })
    }

    async fn render_of(&self, server: &ServerSpec) -> Result<Render, BackendError> {
        let live = self.inner.engine.live().await?;
        let last = self.inner.memory.gpu(live.since);
        let signs = live.facts.gpu_signs;
        Ok(decide(server.device(), server.wants_gpu, signs, last))
    }

    /// Makes a check in the background, unless one is under way, and waits a little for its end.
    async fn check_gpu(&self, owner: &Owner, server: &ServerSpec) {
        let Some(mine) = self.inner.memory.take(CHECK) else {
            // The pass of whoever comes second ends with something done, so the next one follows at once.
            sleep(SECOND_WAITS).await;
            return;
        };
        let inner = self.inner.clone();
        let owner = owner.clone();
        let task = check(server);
        let (done, ended) = tokio::sync::oneshot::channel();
        self.spawn(async move {
            inner.check(&owner, &task).await;
            drop(mine);
            // Whoever waits has it at once; others that need it too are told.
            let _ = done.send(());
            inner.hint(Hint::Everything);
        });
        let _ = timeout(WAITED_FOR, ended).await;
    }
}

impl Inner {
    /// Makes a check and remembers what it found.
    async fn check(&self, owner: &Owner, task: &TaskSpec) {
        let checked = match self.made_and_removed(owner, task).await {
            Ok(checked) => checked,
            Err(error) if error.reason() == Some(Reason::GpuUnavailable) => Checked::Absent,
            // It is asked again once the engine is back.
            Err(error @ BackendError::Unavailable { .. }) => {
                tracing::warn!(%error, "the engine went away while its GPU was checked");
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "whether the engine has a GPU could not be checked; `device: Auto` has none for now");
                // A time-out ended the connection, and what is known before the next one would not count.
                let _ = self.engine.live().await;
                Checked::Untold
            }
        };
        tracing::info!(?checked, "the engine's GPU was checked");
        self.memory.remember_gpu(checked, Duration::ZERO);
    }

    async fn made_and_removed(
        &self,
        owner: &Owner,
        task: &TaskSpec,
    ) -> Result<Checked, BackendError> {
        let renderer = self.renderer();
        let name = renderer.instance.task(owner, &task.key);
        if let Named::Ours(_) = self.named(&name, owner).await? {
            // Left by an earlier life of this process.
            self.remove(&name).await?;
        }
        self.create(&name, renderer.task(owner, task, &task.image))
            .await?;
        let checked = self.started(&name).await;
        if let Err(error) = self.remove(&name).await {
            // What it found holds all the same; the next check removes it.
            tracing::warn!(%error, container = %name, "a GPU check was not removed");
        }
        checked
    }

    async fn started(&self, name: &str) -> Result<Checked, BackendError> {
        self.start(name).await?;
        let until = Instant::now() + ENDS_WITHIN;
        while Instant::now() < until {
            let Some(inspected) = self.inspect(name).await? else {
                break;
            };
            let state = inspected.state.as_ref();
            if map::run_state(state) == RunState::Exited {
                let said = self.output(name, OUTPUT_BYTES).await;
                let said = said.map(|output| read(&output)).unwrap_or_default();
                return Ok(judge(map::exit_code(state), said.result.as_ref()));
            }
            sleep(LOOK_EVERY).await;
        }
        // It did not end, and it was started.
        Ok(judge(None, None))
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::{DeviceInfo, Runtime};
    use serde_json::json;

    use super::*;

    const PRESENT: Checked = Checked::Present { memory_bytes: None };

    #[test]
    fn signs_of_a_gpu() {
        let runtimes = |names: &[&str]| SystemInfo {
            runtimes: Some(
                names
                    .iter()
                    .map(|name| ((*name).to_owned(), Runtime::default()))
                    .collect(),
            ),
            ..SystemInfo::default()
        };
        let default = SystemInfo {
            default_runtime: Some("nvidia-container-runtime".to_owned()),
            ..SystemInfo::default()
        };
        let device = |id: &str| SystemInfo {
            discovered_devices: Some(vec![DeviceInfo {
                source: Some("cdi".to_owned()),
                id: Some(id.to_owned()),
            }]),
            ..SystemInfo::default()
        };
        let cases = [
            ("nothing", SystemInfo::default(), false, false),
            (
                "plain runtimes",
                runtimes(&["io.containerd.runc.v2", "runc"]),
                false,
                false,
            ),
            ("a runtime", runtimes(&["runc", "nvidia"]), false, true),
            ("the default runtime", default, false, true),
            ("a device", device("nvidia.com/gpu=0"), false, true),
            ("another device", device("vendor.com/net=0"), false, false),
            ("the driver here", SystemInfo::default(), true, true),
        ];
        for (name, info, driver, expected) in cases {
            assert_eq!(has_signs(&info, driver), expected, "{name}");
        }
    }

    #[test]
    fn what_a_check_means() {
        let said = |bytes: u64| json!({"ok": true, "memoryBytes": bytes});
        let cases = [
            (
                "memory",
                Some(0),
                Some(said(8 << 30)),
                Checked::Present {
                    memory_bytes: Some(8 << 30),
                },
            ),
            ("no memory told", Some(0), Some(said(0)), PRESENT),
            ("a program without the word", Some(2), None, PRESENT),
            ("it did not end", None, None, PRESENT),
            ("no device inside", Some(7), None, Checked::Absent),
            (
                "the program says no",
                Some(1),
                Some(json!({"ok": false})),
                Checked::Absent,
            ),
        ];
        for (name, code, result, expected) in cases {
            assert_eq!(judge(code, result.as_ref()), expected, "{name}");
        }
    }

    #[test]
    fn observations_say_memory_or_none() {
        let found = Checked::Present {
            memory_bytes: Some(1),
        };
        for (checked, bytes) in [
            (Checked::Absent, Some(0)),
            (found, Some(1)),
            (PRESENT, None),
            (Checked::Untold, None),
        ] {
            assert_eq!(checked.memory_bytes(), bytes, "{checked:?}");
        }
    }

    #[test]
    fn who_gets_a_gpu() {
        use Render::{AfterCheck, AsAsked, Untold, WithGpu};
        let (absent, present, untold) =
            (Some(Checked::Absent), Some(PRESENT), Some(Checked::Untold));
        let cases = [
            (
                "auto, signs, not checked",
                Device::Auto,
                false,
                true,
                None,
                AfterCheck,
            ),
            ("auto, no sign", Device::Auto, false, false, None, AsAsked),
            ("auto, passed", Device::Auto, false, true, present, WithGpu),
            ("auto, failed", Device::Auto, false, true, absent, AsAsked),
            ("auto, not told", Device::Auto, false, true, untold, Untold),
            (
                "auto, asked with one",
                Device::Auto,
                true,
                true,
                None,
                AsAsked,
            ),
            ("cpu", Device::Cpu, false, true, present, AsAsked),
            ("cuda", Device::Cuda, true, true, absent, AsAsked),
        ];
        for (name, device, wants, signs, last, expected) in cases {
            assert_eq!(decide(device, wants, signs, last), expected, "{name}");
        }
    }

    #[test]
    fn what_takes_the_place_of_another_keeps_what_no_check_tells() {
        use Render::{AfterCheck, AsAsked, Untold, WithGpu};
        for (render, had_gpu, expected) in [
            (AsAsked, true, false),
            (AsAsked, false, false),
            (WithGpu, true, true),
            (WithGpu, false, true),
            (AfterCheck, true, true),
            (AfterCheck, false, false),
            (Untold, true, true),
            (Untold, false, false),
        ] {
            assert_eq!(render.grants(had_gpu), expected, "{render:?} {had_gpu}");
        }
    }
}
