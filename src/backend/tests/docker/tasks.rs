//! Tasks: what they are given, what they say, how they end.

use api::group::Kind;
use api::label::Task;
use api::reason::Reason;
use backend::{Action, Network, RunState, StagedFile, TaskKey, VolumeRole, Writes};
use serde_json::json;
use std::sync::Arc;

use api::kinds::shared::SecretRef;

use crate::harness::{Run, host, owner, task};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn a_task_finds_its_files_and_secrets_and_its_result_is_read() {
    let run = Run::at(&host(), |options| backend::docker::Options {
        secrets: Arc::new(|namespace, reference| match reference.key.as_str() {
            "token" => Ok(format!("{namespace}/{}", reference.name).into_bytes()),
            _ => Err("no such file".to_owned()),
        }),
        ..options
    })
    .await;
    let english = owner(Kind::LayaModel, "english");
    let secret = |key: &str| SecretRef {
        name: "hub".to_owned(),
        key: key.to_owned(),
    };
    let arguments = [
        "--line",
        r#"PROGRESS {"phase":"fetch","done":0.5,"bytes":5,"total":10}"#,
        "--show",
        "/run/relay/manifest.json",
        "--show",
        "/run/secrets/relay/auth",
        "--error",
        "a warning\u{1b}[31m",
        "--line",
        r#"RESULT {"ok":true,"digest":"x"}"#,
    ];
    let mut spec = task(1, &arguments);
    spec.files = vec![StagedFile {
        name: "manifest.json".to_owned(),
        content: b"{\"files\":[]}".to_vec(),
    }];
    spec.secrets = vec![(secret("token"), "auth".to_owned())];
    run.done(&english, Action::RunTask(Box::new(spec.clone())))
        .await;
    let seen = run
        .task(&english, &spec.key, |task| task.state == RunState::Exited)
        .await;
    assert_eq!(seen.exit_code, Some(0), "{}", seen.log_tail);
    assert_eq!(seen.result, Some(json!({"ok": true, "digest": "x"})));
    assert_eq!(seen.progress.unwrap().bytes, Some(5));
    for text in ["{\"files\":[]}", "laptop/hub", "a warning\\x1b[31m"] {
        assert!(
            seen.log_tail.contains(text),
            "{text} is not in {}",
            seen.log_tail
        );
    }
    assert!(seen.started_at.is_some() && seen.finished_at.is_some());
    // It ran; the same attempt does not run again.
    run.done(&english, Action::RunTask(Box::new(spec.clone())))
        .await;
    assert_eq!(run.observe(&english).await.tasks.len(), 1);

    let mut missing = spec.clone();
    missing.key.attempt = 2;
    missing.secrets = vec![(secret("absent"), "auth".to_owned())];
    let refused = run
        .act(&english, Action::RunTask(Box::new(missing)))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::SecretMissing), "{refused}");
    assert_eq!(
        run.observe(&english).await.tasks.len(),
        1,
        "no container of it"
    );

    let delete = Action::DeleteTask { task: spec.key };
    run.done(&english, delete.clone()).await;
    run.done(&english, delete).await;
    run.assert_nothing_runs();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn exit_codes_and_progress_are_seen() {
    let run = Run::new().await;
    let english = owner(Kind::LayaModel, "english");
    let codes = [0, 1, 3, 5, 6, 7, 75];
    for (attempt, code) in (1..).zip(codes) {
        let spec = task(attempt, &["--exit", &code.to_string()]);
        run.done(&english, Action::RunTask(Box::new(spec))).await;
    }
    for (attempt, code) in (1..).zip(codes) {
        let key = TaskKey {
            task: Task::Verify,
            attempt,
        };
        let seen = run
            .task(&english, &key, |task| task.state == RunState::Exited)
            .await;
        assert_eq!((seen.exit_code, seen.oom_killed), (Some(code), false));
    }
    let long = task(
        20,
        &[
            "--line",
            r#"PROGRESS {"phase":"train","done":0.25}"#,
            "--sleep",
            "60000",
        ],
    );
    run.done(&english, Action::RunTask(Box::new(long.clone())))
        .await;
    let seen = run
        .task(&english, &long.key, |task| task.progress.is_some())
        .await;
    assert_eq!(seen.state, RunState::Running);
    let stop = Action::StopTask {
        task: long.key.clone(),
        grace_seconds: 0,
    };
    run.done(&english, stop).await;
    let seen = run
        .task(&english, &long.key, |task| task.state == RunState::Exited)
        .await;
    assert_eq!(
        (seen.exit_code, seen.oom_killed),
        (Some(137), false),
        "killed"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_18_a_result_is_read_from_its_file_where_the_log_has_none() {
    let run = Run::new().await;
    let nightly = owner(Kind::TrainingRun, "nightly");
    let role = VolumeRole::Work {
        run: "nightly".to_owned(),
    };
    let ensure = Action::EnsureVolume {
        role: role.clone(),
        size_bytes: 0,
    };
    run.done(&nightly, ensure).await;
    // The image has no `/work`: a new volume there is root's, so it is given to the task's user as an image of ours does.
    let volume = run.instance.volume(&role);
    let mountpoint = run.told(&["volume", "inspect", "--format", "{{.Mountpoint}}", &volume]);
    std::os::unix::fs::chown(mountpoint, Some(10001), Some(10001)).unwrap();
    let mut spec = task(
        1,
        &[
            "--write",
            "/work/result.json",
            r#"{"ok":false,"reason":"BadData"}"#,
            "--line",
            "no result",
            "--exit",
            "3",
        ],
    );
    spec.volumes = vec![(role.clone(), Writes::Yes)];
    run.done(&nightly, Action::RunTask(Box::new(spec.clone())))
        .await;
    let seen = run
        .task(&nightly, &spec.key, |task| task.state == RunState::Exited)
        .await;
    assert_eq!(
        seen.result,
        Some(json!({"ok": false, "reason": "BadData"})),
        "{}",
        seen.log_tail
    );
    run.done(&nightly, Action::DeleteTask { task: spec.key })
        .await;
    run.done(&nightly, Action::DeleteVolume { role: role.clone() })
        .await;
    run.done(&nightly, Action::DeleteVolume { role }).await;
    run.assert_nothing_runs();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn fault_13_a_task_of_the_object_before_makes_room_for_that_of_the_same_name() {
    let run = Run::new().await;
    let before = owner(Kind::LayaModel, "english");
    let spec = task(1, &["--line", "before"]);
    run.done(&before, Action::RunTask(Box::new(spec.clone())))
        .await;
    run.task(&before, &spec.key, |task| task.state == RunState::Exited)
        .await;
    let mut after = before.clone();
    after.uid = "another".to_owned();
    let spec = task(1, &["--line", "after"]);
    run.done(&after, Action::RunTask(Box::new(spec.clone())))
        .await;
    let seen = run
        .task(&after, &spec.key, |task| task.state == RunState::Exited)
        .await;
    assert_eq!(seen.log_tail, "after");
    assert!(run.observe(&before).await.tasks.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
async fn only_fetch_tasks_have_a_network_and_the_proxies() {
    let run = Run::at(&host(), |mut options| {
        options.proxies.https = Some("http://127.0.0.1:9".to_owned());
        options
    })
    .await;
    let english = owner(Kind::LayaModel, "english");
    let inspect = |spec: &backend::TaskSpec| {
        let name = run.instance.task(&english, &spec.key);
        // The engine adds a PATH of its own.
        let format = "{{.HostConfig.NetworkMode}}{{range .Config.Env}} {{.}}{{end}}";
        let told = run.told(&["inspect", "--format", format, &name]);
        told.split(" PATH=").next().unwrap().to_owned()
    };
    let quiet = task(1, &[]);
    run.done(&english, Action::RunTask(Box::new(quiet.clone())))
        .await;
    assert_eq!(inspect(&quiet), "none");
    let mut fetch = task(2, &[]);
    fetch.network = Network::Egress;
    run.done(&english, Action::RunTask(Box::new(fetch.clone())))
        .await;
    let expected = format!(
        "{}egress HTTPS_PROXY=http://127.0.0.1:9",
        run.instance.prefix()
    );
    assert_eq!(inspect(&fetch), expected);
}
