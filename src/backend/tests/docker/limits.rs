//! Out of memory, crash loops, a GPU that is not there, a full disk.

use std::process::Command;
use std::time::Duration;

use api::group::Kind;
use api::label::Task;
use api::reason::Reason;
use backend::{Action, RunState, VolumeRole, Writes};

use crate::engine::Engine;
use crate::harness::{Run, ensure, fault_image, owner, server, task};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_23_a_server_that_needs_more_than_its_limit_is_seen_killed_for_it() {
    let mut run = Run::new().await;
    let image = run.faulty("eat-memory");
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&image, "32Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    let seen = run
        .server(&main, 0, |server| server.oom_killed && server.restarts > 0)
        .await;
    assert_eq!(seen.memory_bytes, 32 << 20);
    let ended = run
        .server(&main, 0, |server| server.state == RunState::Restarting)
        .await;
    assert_eq!(ended.exit_code, Some(137));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_24_a_crash_loop_shows_restarts_exit_code_and_the_end_of_the_log() {
    let mut run = Run::new().await;
    let image = run.faulty("crash-at-start=3");
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&image, "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    let seen = run
        .server(&main, 0, |server| {
            server.restarts >= 3 && server.state == RunState::Restarting
        })
        .await;
    assert_eq!(seen.exit_code, Some(3));
    assert!(!seen.oom_killed);
    assert!(
        seen.log_tail.contains("told to end with 3"),
        "{}",
        seen.log_tail
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_24_the_exit_code_of_one_that_runs_again_is_remembered() {
    let mut run = Run::new().await;
    // Long enough that it is seen running.
    let image = run.faulty("crash-in=1500,crash-code=9");
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    run.done(&main, ensure(&server(&image, "64Mi"), &[0])).await;
    let seen = run
        .server(&main, 0, |server| {
            server.state == RunState::Running && server.restarts > 0
        })
        .await;
    assert_eq!(seen.exit_code, Some(9), "inspection says 0");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_25_without_a_gpu_the_start_fails_with_its_reason() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let mut spec = server(&fault_image(), "64Mi");
    spec.wants_gpu = true;
    let refused = run.act(&main, ensure(&spec, &[0])).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::GpuUnavailable), "{refused}");
    assert!(refused.retryable());
    let seen = run.observe(&main).await;
    let waiting = seen.servers[0].waiting.as_ref().unwrap();
    assert_eq!(
        (seen.servers[0].state, waiting.reason),
        (RunState::Created, Reason::GpuUnavailable)
    );
    assert!(
        waiting.message.contains("could not select device driver"),
        "{}",
        waiting.message
    );
    assert_eq!(seen.gpu_memory_bytes, Some(0), "there is none");
    // Without the wish it starts, under the same name.
    spec.wants_gpu = false;
    run.done(&main, ensure(&spec, &[0])).await;
    run.server(&main, 0, |server| server.state == RunState::Running)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn what_a_gpu_check_found_is_kept() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    let mut check = task(
        1,
        &["--line", r#"RESULT {"ok":true,"memoryBytes":8589934592}"#],
    );
    check.key.task = Task::GpuCheck;
    run.done(&main, Action::RunTask(Box::new(check.clone())))
        .await;
    run.task(&main, &check.key, |task| task.state == RunState::Exited)
        .await;
    run.done(&main, Action::DeleteTask { task: check.key })
        .await;
    assert_eq!(run.observe(&main).await.gpu_memory_bytes, Some(8 << 30));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn device_auto_is_checked_once_where_there_are_signs_of_a_gpu() {
    // A runtime of that name, and no driver behind it: the engine could have a GPU, and has none.
    let engine = Engine::start_with("--add-runtime nvidia=runc");
    let run = Run::at(&engine.host(), |options| options).await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    assert!(run.docker.facts().unwrap().gpu_signs);
    let spec = server(&fault_image(), "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    run.server(&main, 0, |server| server.state == RunState::Running)
        .await;
    let seen = run.observe(&main).await;
    assert_eq!(seen.gpu_memory_bytes, Some(0), "there is none");
    assert!(seen.tasks.is_empty(), "the check is gone: {:?}", seen.tasks);
    let made = "{{.Action}} {{.Actor.Attributes.name}}";
    // The command cuts the end to whole seconds, so one of this second would miss what was just made: it is asked up to the
    // next.
    let events = run.told(&[
        "events",
        "--since",
        "10m",
        "--until=-1s",
        "--filter",
        "event=create",
        "--format",
        made,
    ]);
    let checks = || events.lines().filter(|line| line.contains("gpu-check"));
    assert_eq!(checks().count(), 1, "{events}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn device_auto_is_not_checked_without_a_sign_of_a_gpu() {
    let run = Run::new().await;
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    if run.docker.facts().unwrap().gpu_signs {
        eprintln!("skipped: this machine has the driver of a GPU");
        return;
    }
    let spec = server(&fault_image(), "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    run.server(&main, 0, |server| server.state == RunState::Running)
        .await;
    assert_eq!(run.observe(&main).await.gpu_memory_bytes, None);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn a_server_that_ignores_the_signal_is_killed_after_its_grace() {
    let mut run = Run::new().await;
    let image = run.faulty("ignore-sigterm");
    let main = owner(Kind::LayaServer, "main");
    run.with_models(&main).await;
    let spec = server(&image, "64Mi");
    run.done(&main, ensure(&spec, &[0])).await;
    run.server(&main, 0, |server| server.url.is_some()).await;
    let stop = Action::StopServer {
        revision: spec.revision.clone(),
        ordinals: backend::Ordinals::All,
        grace_seconds: 2,
    };
    run.done(&main, stop).await;
    let stopping = run.observe(&main).await;
    assert_eq!(stopping.servers[0].state, RunState::Stopping);
    let seen = run
        .server(&main, 0, |server| server.state == RunState::Exited)
        .await;
    assert_eq!((seen.exit_code, seen.oom_killed), (Some(137), false));
}

/// A small file system on a loop device, unmounted with the test.
struct Small {
    folder: tempfile::TempDir,
}

impl Small {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let small = Self { folder };
        let (image, mount) = (small.path("image"), small.path("mount"));
        std::fs::create_dir(&mount).unwrap();
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(8 << 20).unwrap();
        run("mkfs.ext4", &["-q", "-F", &image]);
        run("mount", &["-o", "loop", &image, &mount]);
        run("chown", &["10001:10001", &mount]);
        small
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path("mount")).status();
    }
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {err}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_22_a_full_volume_ends_the_task_and_is_seen_as_it_is() {
    let small = Small::new();
    std::fs::write(
        format!("{}/ballast", small.path("mount")),
        vec![0; 16 << 20],
    )
    .unwrap_err();
    let run = Run::new().await;
    let english = owner(Kind::LayaModel, "english");
    let name = format!("{}small", run.instance.prefix());
    let device = format!("device={}", small.path("mount"));
    run.told(&[
        "volume",
        "create",
        "--driver",
        "local",
        "--opt",
        "type=none",
        "--opt",
        "o=bind",
        "--opt",
        &device,
        &name,
    ]);
    let mut spec = task(
        1,
        &[
            "--write",
            "/data/models/part",
            &"x".repeat(8192),
            "--exit",
            "0",
        ],
    );
    spec.volumes = vec![(VolumeRole::Foreign { name }, Writes::Yes)];
    run.done(&english, Action::RunTask(Box::new(spec.clone())))
        .await;
    let seen = run
        .task(&english, &spec.key, |task| task.state == RunState::Exited)
        .await;
    assert_eq!(seen.exit_code, Some(2));
    assert!(
        seen.log_tail.contains("No space left on device"),
        "{}",
        seen.log_tail
    );
    run.done(&english, Action::DeleteTask { task: spec.key })
        .await;
    drop(run);
    tokio::time::sleep(Duration::ZERO).await;
}
