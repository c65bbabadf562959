//! Goldens of what is rendered, and what of a live container counts as tampered.

use api::group::Kind;
use api::kinds::laya_server::Serving;
use api::kinds::shared::{DevicePolicy, Quantity, ResourceAmounts, Resources, SecretRef};
use api::label::Task;
use bollard::models::{
    ContainerConfig, ContainerInspectResponse, EndpointSettings, MountPoint, NetworkSettings,
};
use serde::Serialize;

use super::super::compare::{Depth, tampered};
use super::super::{gpu, map};
use super::*;
use crate::{RENDER_VERSION, RevisionInputs, StagedFile, TaskArguments, TaskKey};

fn renderer() -> Renderer {
    Renderer {
        instance: Instance::parse("0123456789ab").unwrap(),
        gpu: GpuRequests::Capability,
        proxies: Proxies {
            http: Some("http://proxy.example:3128".to_owned()),
            https: None,
            no: Some("localhost".to_owned()),
        },
        task_memory_bytes: 512 << 20,
    }
}

fn owner(kind: Kind, name: &str) -> Owner {
    Owner {
        kind,
        namespace: "laptop".to_owned(),
        name: name.to_owned(),
        uid: "5f0c5c2e-0000-4000-8000-000000000001".to_owned(),
    }
}

fn server() -> ServerSpec {
    let inputs = RevisionInputs {
        owner_uid: "5f0c5c2e-0000-4000-8000-000000000001".to_owned(),
        digest: format!("sha256:{}", "ab".repeat(32)),
        contract: None,
        image: "registry.example/laya:1".to_owned(),
        server_api: ServerApi::Relay,
        device: Device::Auto,
        device_policy: DevicePolicy::Require,
        gpu: None,
        resources: Some(Resources {
            requests: None,
            limits: Some(ResourceAmounts {
                cpu: Some(Quantity("1500m".to_owned())),
                memory: Some(Quantity("256Mi".to_owned())),
            }),
        }),
        serving: Serving {
            threads: 2,
            ..Serving::default()
        },
        pod: None,
        render_version: RENDER_VERSION,
    };
    ServerSpec {
        revision: inputs.revision(),
        inputs,
        model: "english".to_owned(),
        volume: VolumeRole::Models,
        path: format!("sha256-{}", "ab".repeat(32)),
        checkpoint_bytes: 640 << 20,
        image_id: Some(format!("sha256:{}", "cd".repeat(32))),
        drain_seconds: 30,
        wants_gpu: false,
    }
}

/// Compares with the file, or writes it where `RELAY_GOLDEN=write` is set.
fn golden(name: &str, rendered: &impl Serialize) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(format!("{name}.json"));
    let tree: serde_json::Value = serde_json::to_value(rendered).unwrap();
    if std::env::var("RELAY_GOLDEN").as_deref() == Ok("write") {
        let text = serde_json::to_string_pretty(&tree).unwrap();
        std::fs::write(&file, text + "\n").unwrap();
        return;
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let known: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        serde_json::to_string_pretty(&tree).unwrap(),
        serde_json::to_string_pretty(&known).unwrap(),
        "{name}: when the change is meant, raise RENDER_VERSION and run with RELAY_GOLDEN=write"
    );
}

#[test]
fn servers() {
    let main = owner(Kind::LayaServer, "main");
    golden("server", &renderer().server(&main, &server(), 0));
    let mut gpu = server();
    gpu.inputs.device = Device::Cuda;
    gpu.inputs.gpu = Some(Gpu {
        count: 2,
        ..Gpu::default()
    });
    gpu.inputs.resources = None;
    gpu.wants_gpu = true;
    golden("server-gpu", &renderer().server(&main, &gpu, 1));
    let podman = Renderer {
        gpu: GpuRequests::Cdi,
        ..renderer()
    };
    golden("server-gpu-podman", &podman.server(&main, &gpu, 1));
    let mut laya = server();
    laya.inputs.server_api = ServerApi::Laya;
    laya.volume = VolumeRole::Foreign {
        name: "relay-laya-models".to_owned(),
    };
    laya.path = "local-3".to_owned();
    laya.image_id = None;
    golden("server-laya", &renderer().server(&main, &laya, 0));
}

fn fetch() -> TaskSpec {
    TaskSpec {
        key: TaskKey {
            task: Task::Fetch,
            attempt: 2,
        },
        image: "registry.example/laya:1".to_owned(),
        arguments: TaskArguments(
            [
                "fetch",
                "--models",
                "/data/models",
                "--manifest",
                "/run/relay/manifest.json",
            ]
            .map(str::to_owned)
            .to_vec(),
        ),
        volumes: vec![(VolumeRole::Models, Writes::Yes)],
        network: Network::Egress,
        files: vec![StagedFile {
            name: "manifest.json".to_owned(),
            content: b"{}".to_vec(),
        }],
        secrets: vec![(
            SecretRef {
                name: "hub".to_owned(),
                key: "token".to_owned(),
            },
            "auth".to_owned(),
        )],
        memory_bytes: 0,
        gpu: None,
        deadline_seconds: 3600,
    }
}

#[test]
fn tasks() {
    let english = owner(Kind::LayaModel, "english");
    golden(
        "task-fetch",
        &renderer().task(&english, &fetch(), "sha256:1"),
    );
    let train = TaskSpec {
        key: TaskKey {
            task: Task::Train,
            attempt: 1,
        },
        arguments: TaskArguments(vec!["train".to_owned()]),
        volumes: vec![
            (VolumeRole::Models, Writes::No),
            (
                VolumeRole::Work {
                    run: "nightly".to_owned(),
                },
                Writes::Yes,
            ),
        ],
        network: Network::None,
        files: Vec::new(),
        secrets: Vec::new(),
        memory_bytes: 2 << 30,
        gpu: Some(Gpu::default()),
        ..fetch()
    };
    let nightly = owner(Kind::TrainingRun, "nightly");
    golden(
        "task-train",
        &renderer().task(&nightly, &train, "trainer:1"),
    );
    let main = owner(Kind::LayaServer, "main");
    let check = gpu::check(&server());
    golden(
        "task-gpu-check",
        &renderer().task(&main, &check, &check.image),
    );
}

#[test]
fn volumes_and_networks() {
    let renderer = renderer();
    let nightly = owner(Kind::TrainingRun, "nightly");
    let work = VolumeRole::Work {
        run: "nightly".to_owned(),
    };
    let all = serde_json::json!({
        "models": renderer.volume(&nightly, &VolumeRole::Models, "00112233445566ff"),
        "work": renderer.volume(&nightly, &work, "00112233445566ff"),
        "serve": renderer.serve_network(),
        "egress": renderer.egress_network(),
    });
    golden("volumes-networks", &all);
}

#[test]
fn a_hash_is_of_all_but_itself() {
    let main = owner(Kind::LayaServer, "main");
    let hash_of = |spec: &ServerSpec, ordinal| {
        let body = renderer().server(&main, spec, ordinal);
        body.labels.unwrap()[label::SPEC_HASH].clone()
    };
    let hash = hash_of(&server(), 0);
    assert_eq!(hash.len(), 16);
    assert_eq!(hash, hash_of(&server(), 0));
    assert_ne!(hash, hash_of(&server(), 1));
    let more = ServerSpec {
        drain_seconds: 31,
        ..server()
    };
    assert_ne!(hash, hash_of(&more, 0));
}

#[test]
fn inputs_too_long_for_a_label_are_left_out() {
    let mut long = server();
    long.model = "m".repeat(8 << 10);
    let main = owner(Kind::LayaServer, "main");
    let labels = renderer().server(&main, &long, 0).labels.unwrap();
    assert!(!labels.contains_key(label::INPUTS));
    assert!(labels.contains_key(label::SPEC_HASH));
}

/// What an engine says of a container that is as it was rendered.
fn live(body: &ContainerCreateBody) -> ContainerInspectResponse {
    let mounts = body.host_config.as_ref().unwrap().mounts.clone().unwrap();
    let network = body.host_config.as_ref().unwrap().network_mode.clone();
    ContainerInspectResponse {
        id: Some("0123".to_owned()),
        name: Some("/relay-012345-main-x-0".to_owned()),
        image: body.image.clone(),
        host_config: body.host_config.clone(),
        config: Some(ContainerConfig {
            user: body.user.clone(),
            cmd: body.cmd.clone(),
            labels: body.labels.clone(),
            ..ContainerConfig::default()
        }),
        mounts: Some(
            mounts
                .into_iter()
                .map(|mount| MountPoint {
                    typ: Some("volume".to_owned()),
                    name: mount.source,
                    destination: mount.target,
                    rw: mount.read_only.map(|read_only| !read_only),
                    ..MountPoint::default()
                })
                .collect(),
        ),
        network_settings: Some(NetworkSettings {
            networks: Some([(network.unwrap(), EndpointSettings::default())].into()),
            ..NetworkSettings::default()
        }),
        ..ContainerInspectResponse::default()
    }
}

type Change = fn(&mut ContainerInspectResponse);

#[test]
fn each_tampered_field_is_named() {
    let main = owner(Kind::LayaServer, "main");
    let body = renderer().server(&main, &server(), 0);
    let cases: [(&str, Change); 15] = [
        ("", |_| {}),
        ("memory", |live| {
            live.host_config.as_mut().unwrap().memory = Some(1 << 30);
        }),
        ("memory", |live| {
            live.host_config.as_mut().unwrap().memory_swap = Some(2 << 30);
        }),
        ("", |live| {
            live.host_config.as_mut().unwrap().memory_swap = Some(-1);
        }),
        ("user", |live| {
            live.config.as_mut().unwrap().user = Some(String::new());
        }),
        ("mounts", |live| {
            live.mounts.as_mut().unwrap()[0].rw = Some(true);
        }),
        ("mounts", |live| {
            live.mounts.as_mut().unwrap().push(MountPoint {
                typ: Some("bind".to_owned()),
                source: Some("/".to_owned()),
                destination: Some("/host".to_owned()),
                ..MountPoint::default()
            });
        }),
        ("network", |live| {
            let networks = live.network_settings.as_mut().unwrap();
            networks
                .networks
                .as_mut()
                .unwrap()
                .insert("bridge".to_owned(), EndpointSettings::default());
        }),
        ("capabilities", |live| {
            live.host_config.as_mut().unwrap().cap_add = Some(vec!["NET_ADMIN".to_owned()]);
        }),
        ("readOnlyRoot", |live| {
            live.host_config.as_mut().unwrap().readonly_rootfs = Some(false);
        }),
        ("privileges", |live| {
            live.host_config.as_mut().unwrap().privileged = Some(true);
        }),
        ("pidsLimit", |live| {
            live.host_config.as_mut().unwrap().pids_limit = Some(0);
        }),
        ("restartPolicy", |live| {
            live.host_config.as_mut().unwrap().restart_policy =
                restart(RestartPolicyNameEnum::ALWAYS);
        }),
        ("command", |live| {
            live.config.as_mut().unwrap().cmd = Some(vec!["serve".to_owned()]);
        }),
        ("image", |live| live.image = Some("sha256:other".to_owned())),
    ];
    for (at, (field, change)) in cases.into_iter().enumerate() {
        let mut seen = live(&body);
        change(&mut seen);
        let found = tampered(&body, &seen, Depth::Whole);
        let expected: Vec<&str> = Some(field).into_iter().filter(|f| !f.is_empty()).collect();
        assert_eq!(found, expected, "case {at}");
        let safety = tampered(&body, &seen, Depth::Safety);
        let old = ["memory", "user", "mounts", "network"];
        assert_eq!(!safety.is_empty(), old.contains(&field), "case {at}");
    }
}

#[test]
fn a_replica_is_compared_with_what_its_own_labels_say() {
    let main = owner(Kind::LayaServer, "main");
    let body = renderer().server(&main, &server(), 0);
    let seen = map::Seen::read(live(&body)).unwrap();
    assert_eq!(seen.made_from(), Some(server()));
    let compared = map::compare(&renderer(), &seen, None);
    assert_eq!(
        (compared.hash_matches, compared.tampered.len()),
        (Some(true), 0)
    );

    // Labels of this one on another container.
    let mut copied = live(&body);
    copied
        .config
        .as_mut()
        .unwrap()
        .labels
        .as_mut()
        .unwrap()
        .insert(label::SPEC_HASH.to_owned(), "0000000000000000".to_owned());
    let copied = map::Seen::read(copied).unwrap();
    assert!(map::compare(&renderer(), &copied, None).differs());

    // One that another version of the program made is judged by what both render alike.
    let mut older = server();
    older.inputs.render_version = RENDER_VERSION + 1;
    let body = renderer().server(&main, &older, 0);
    let mut seen = live(&body);
    seen.config.as_mut().unwrap().cmd = Some(vec!["serve-differently".to_owned()]);
    let seen = map::Seen::read(seen).unwrap();
    let compared = map::compare(&renderer(), &seen, None);
    assert_eq!((compared.hash_matches, compared.differs()), (None, false));
}
