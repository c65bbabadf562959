//! Every reason that a condition of a server can have is produced by a row here.

use std::collections::BTreeSet;

use api::condition::ConditionType;
use api::group::Kind;
use api::reason::Reason;
use backend::{BackendError, ImageState, RunState, Stranger, Waiting};
use serde_json::json;

use super::super::{GateVerdict, GateView};
use super::sim::{Behaviour, Kill, MIB, World, digest};

type Row = (&'static str, fn() -> World);

fn rolling(state: &str) -> World {
    let mut world = World::serving(
        &json!({"rollout": {"strategy": "Canary", "shadow": {"minComparisons": 1_000_000},
        "canary": {"steps": [{"weight": 10, "holdSeconds": 30}]}}}),
    );
    if matches!(state, "Shifting" | "Baking" | "Gating" | "AwaitingApproval") {
        world.edit(&json!({"rollout": {"shadow": null}}));
    }
    if state == "Gating" {
        world.gate = GateView::NotJudged {
            name: "quality".to_owned(),
        };
    }
    if state == "AwaitingApproval" {
        world.edit(&json!({"rollout": {"approval": "Manual"}}));
    }
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state(state);
    world.pass(Kill::Never);
    world
}

fn first(image: ImageState) -> World {
    let mut world = World::new(&json!({}));
    world.images.insert("laya:1".to_owned(), image);
    world.settle(20);
    world
}

fn failed(reason: Reason) -> ImageState {
    ImageState::Failed {
        reason,
        message: "the registry says no".to_owned(),
        at: "2027-11-30T10:00:00Z".parse().unwrap(),
    }
}

fn waiting(reason: Reason) -> World {
    let mut world = World::serving(&json!({}));
    world.capabilities.pods = true;
    world.settle(60);
    for server in world.of("v1") {
        server.state = RunState::Created;
        server.waiting = Some(Waiting {
            reason,
            message: "the engine says why".to_owned(),
        });
    }
    world.settle(20);
    world
}

fn rolling_waiting(reason: Reason) -> World {
    let mut world = World::serving(&json!({}));
    world.capabilities.pods = true;
    world.settle(60);
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until("started", |world| world.up("v2") > 0);
    for server in world.of("v2") {
        server.state = RunState::Created;
        server.waiting = Some(Waiting {
            reason,
            message: "the engine says why".to_owned(),
        });
    }
    world.settle(20);
    world
}

fn behaving(behaviour: Behaviour, extra: &serde_json::Value) -> World {
    let mut world = World::new(extra);
    world.behave("v1", behaviour);
    for _ in 0..200 {
        if !world.pass(Kill::Never) {
            world.tick(1);
        }
    }
    world
}

fn lying(reason: Reason) -> World {
    let mut world = World::serving(&json!({}));
    world.behave(
        "v1",
        Behaviour {
            lies: Some((reason, true)),
            ..Behaviour::default()
        },
    );
    world.tick(60);
    world.settle(20);
    world
}

fn blind(error: BackendError) -> World {
    let mut world = World::serving(&json!({}));
    world.engine = Err(error);
    world.settle(20);
    world
}

fn stranger(reason: Reason) -> World {
    let mut world = World::new(&json!({}));
    world.strangers.push(Stranger {
        name: "relay-abc-main".to_owned(),
        reason,
        holder: "container of somebody".to_owned(),
    });
    world.settle(20);
    world
}

const GONE: &str = "gone";

fn rows() -> Vec<Row> {
    vec![
        ("serving", || World::serving(&json!({}))),
        ("suspended", || {
            let mut world = World::serving(&json!({}));
            world.edit(&json!({"suspend": true}));
            world.settle(20);
            world
        }),
        ("deleting", || {
            let mut world = World::serving(&json!({}));
            let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now().wall);
            world.object.metadata.deletion_timestamp = Some(at);
            world.pass(Kill::Never);
            world
        }),
        ("a model that is not there", || {
            let mut world = World::new(&json!({"modelRef": {"name": "nothing"}}));
            world.settle(20);
            world
        }),
        ("a model that is not ready", || {
            let mut world = World::new(&json!({}));
            world.models.get_mut("v1").unwrap().ready = false;
            world.settle(20);
            world
        }),
        ("a damaged model", || {
            let mut world = World::new(&json!({}));
            let model = world.models.get_mut("v1").unwrap();
            model.ready = false;
            model.reason = "ModelDamaged".to_owned();
            world.settle(20);
            world
        }),
        ("scaling", || {
            let mut world = World::serving(&json!({}));
            world.edit(&json!({"replicas": 2}));
            world.pass(Kill::Never);
            world
        }),
        ("fields ignored", || {
            let mut world = World::new(&json!({"pod": {"priorityClassName": "high"}}));
            world.settle(20);
            world
        }),
        ("no engine", || {
            blind(BackendError::Unavailable {
                what: "list".to_owned(),
                address: "socket".to_owned(),
                message: GONE.to_owned(),
            })
        }),
        ("an engine that hangs", || {
            blind(BackendError::TimedOut {
                what: "list".to_owned(),
                after: std::time::Duration::from_secs(5),
            })
        }),
        ("an engine that refuses", || {
            blind(BackendError::Forbidden {
                what: "list".to_owned(),
                message: GONE.to_owned(),
            })
        }),
        ("starting again", || {
            let mut world = World::serving(&json!({}));
            for server in world.of("v1") {
                server.state = RunState::Exited;
                server.exit_code = Some(0);
            }
            world.pass(Kill::Never);
            world
        }),
        ("a crash loop", || {
            let mut world = World::serving(&json!({}));
            world.behave(
                "v1",
                Behaviour {
                    ends: Some((1, 1)),
                    ..Behaviour::default()
                },
            );
            world.until("loop", |world| world.says("Available=False/CrashLoop"));
            world
        }),
        ("out of memory", || {
            let mut world = World::serving(&json!({}));
            world.behave(
                "v1",
                Behaviour {
                    ends: Some((1, 137)),
                    oom: true,
                    ..Behaviour::default()
                },
            );
            world.until("oom", |world| world.says("Available=False/OutOfMemory"));
            world
        }),
        ("a gap", || {
            let mut world = World::serving(&json!({"rollout": {"strategy": "Replace"}}));
            world.edit(&json!({"modelRef": {"name": "v2"}}));
            world.until("gap", |world| world.says("Available=False/Gap"));
            world
        }),
        ("image, unauthorized", || {
            first(failed(Reason::ImagePullUnauthorized))
        }),
        ("image, not found", || first(failed(Reason::ImageNotFound))),
        ("image, busy", || first(failed(Reason::ImagePullBusy))),
        ("image, interrupted", || {
            first(failed(Reason::ImagePullInterrupted))
        }),
        ("image, no space", || first(failed(Reason::NoSpace))),
        ("image, platform", || waiting(Reason::ImagePlatformMismatch)),
        ("memory", || waiting(Reason::InsufficientMemory)),
        ("gpu", || waiting(Reason::InsufficientGpu)),
        ("gpu driver", || waiting(Reason::GpuUnavailable)),
        ("gpu gone", || waiting(Reason::GpuLost)),
        ("secret", || waiting(Reason::SecretMissing)),
        ("candidate, memory", || {
            rolling_waiting(Reason::InsufficientMemory)
        }),
        ("candidate, gpu", || {
            rolling_waiting(Reason::InsufficientGpu)
        }),
        ("candidate, secret", || {
            rolling_waiting(Reason::SecretMissing)
        }),
        ("candidate, platform", || {
            rolling_waiting(Reason::ImagePlatformMismatch)
        }),
        ("a name that is taken", || stranger(Reason::NameTaken)),
        ("a port that is taken", || stranger(Reason::PortInUse)),
        ("contract", || lying(Reason::ContractMismatch)),
        ("questions", || lying(Reason::QuestionsUnknown)),
        ("late", || lying(Reason::ProbeTimedOut)),
        ("wrong", || lying(Reason::WrongAnswers)),
        ("dead", || lying(Reason::DeadHead)),
        ("malformed", || lying(Reason::MalformedAnswers)),
        ("contract named", || {
            let mut world = World::new(&json!({}));
            world.behave(
                "v1",
                Behaviour {
                    contract: Some("sha256:aa"),
                    ..Behaviour::default()
                },
            );
            world.settle(20);
            world
        }),
        ("on a gpu", || {
            behaving(
                Behaviour {
                    claims: "cuda",
                    ..Behaviour::default()
                },
                &json!({}),
            )
        }),
        ("another device", || {
            behaving(
                Behaviour::default(),
                &json!({"device": "Cuda", "devicePolicy": "Prefer"}),
            )
        }),
        ("fell back", || {
            let behaviour = Behaviour {
                claims: "cuda",
                fallbacks: 1,
                ..Behaviour::default()
            };
            behaving(
                behaviour,
                &json!({"device": "Cuda", "devicePolicy": "Prefer"}),
            )
        }),
        ("slow for a gpu", || {
            let behaviour = Behaviour {
                claims: "cuda",
                p50: 500,
                ..Behaviour::default()
            };
            behaving(
                behaviour,
                &json!({"device": "Cuda", "devicePolicy": "Prefer"}),
            )
        }),
        ("no device named", || {
            behaving(
                Behaviour {
                    claims: "",
                    ..Behaviour::default()
                },
                &json!({}),
            )
        }),
        ("no gpu granted", || {
            let mut world = behaving(
                Behaviour {
                    claims: "",
                    ..Behaviour::default()
                },
                &json!({"device": "Cuda", "devicePolicy": "Prefer"}),
            );
            world.capabilities.pods = true;
            for server in world.of("v1") {
                server.state = RunState::Created;
                server.waiting = Some(Waiting {
                    reason: Reason::GpuUnavailable,
                    message: "could not select device driver".to_owned(),
                });
            }
            world.settle(20);
            world
        }),
        ("a gpu that was lost", || {
            let mut world = behaving(
                Behaviour {
                    claims: "cuda",
                    ..Behaviour::default()
                },
                &json!({"device": "Cuda"}),
            );
            world.behave("v1", Behaviour::default());
            world.pass(Kill::Never);
            world
        }),
        ("Preparing", || rolling("Preparing")),
        ("Starting", || {
            let mut world = World::serving(&json!({}));
            world.edit(&json!({"modelRef": {"name": "v2"}}));
            world.until_state("Starting");
            world
        }),
        ("Loading", || rolling("Loading")),
        ("Probing", || {
            let mut world = World::serving(&json!({}));
            world.edit(&json!({"modelRef": {"name": "v2"}}));
            world.until_state("Probing");
            world
        }),
        ("Shadowing", || rolling("Shadowing")),
        ("Gating", || rolling("Gating")),
        ("AwaitingApproval", || rolling("AwaitingApproval")),
        ("Shifting", || rolling("Shifting")),
        ("Baking", || rolling("Baking")),
        ("Paused", || {
            let mut world = rolling("Shifting");
            world.edit(&json!({"rollout": {"paused": true}}));
            world.pass(Kill::Never);
            world
        }),
        ("RollingBack", || {
            let mut world = rolling("Shifting");
            for server in world.of("v2") {
                server.state = RunState::Exited;
                server.exit_code = Some(1);
            }
            world.until_state("RollingBack");
            world
        }),
        ("Superseded", || {
            let mut world = rolling("Loading");
            world.edit(&json!({"modelRef": {"name": "v3"}}));
            world.pass(Kill::Never);
            world
        }),
        ("Withdrawn", || {
            let mut world = rolling("Loading");
            world.edit(&json!({"modelRef": {"name": "v1"}}));
            world.pass(Kill::Never);
            world
        }),
        ("NoRoomForTwo", || {
            let mut world = World::serving(&json!({"rollout": {"whenNoRoom": "Wait"}}));
            world.engine_bytes = Some(1500 * MIB);
            world.edit(&json!({"modelRef": {"name": "v2"}}));
            world.until_state("Preparing");
            world.tick(1_000);
            world.settle(20);
            world
        }),
        ("Rejected", || {
            let mut world = World::serving(&json!({}));
            world.gate = GateView::Judged {
                name: "quality".to_owned(),
                digest: digest("v2"),
                evaluation: "e".to_owned(),
                verdict: GateVerdict::Failed,
                message: "it is worse".to_owned(),
            };
            world.edit(&json!({"modelRef": {"name": "v2"}}));
            world.settle(60);
            world
        }),
        ("RollbackFailed", || {
            let mut world = World::serving(&json!({}));
            world.edit(&json!({"modelRef": {"name": "v2"}}));
            world.until_state("Baking");
            for model in ["v1", "v2"] {
                world.behave(
                    model,
                    Behaviour {
                        ends: Some((1, 1)),
                        ..Behaviour::default()
                    },
                );
            }
            world.until("failed", |world| world.says("Stalled=True/RollbackFailed"));
            world
        }),
        ("no image to go back to", || {
            let mut world = World::serving(&json!({"image": "laya:old"}));
            world.edit(&json!({"image": "laya:new", "rollout": {"rollbackWindowSeconds": 0}}));
            world.settle(60);
            world.images.retain(|name, _| !name.contains("old"));
            world
                .images
                .insert("laya:old".to_owned(), ImageState::Absent);
            world.settle(20);
            world
        }),
        ("no weights to go back to", || {
            let mut world = World::serving(&json!({}));
            world.edit(
                &json!({"modelRef": {"name": "v2"}, "rollout": {"rollbackWindowSeconds": 0}}),
            );
            world.settle(60);
            world.models.remove("v1");
            world.settle(20);
            world
        }),
        ("external", || {
            let mut world = World::new(&json!({"external": {"url": "http://127.0.0.1:8737"}}));
            world.settle(20);
            world
        }),
    ]
}

/// Words that a server cannot come to say by its plan, each with the reason.
fn elsewhere(kind: ConditionType, reason: Reason) -> bool {
    match (kind, reason) {
        // Said by the driver before `plan` is asked, or when an action fails (`failed.rs`).
        (_, Reason::InvalidSpec | Reason::Forbidden | Reason::SchemaMismatch) => true,
        (_, Reason::ApiUnavailable) => true,
        // Words of other kinds under conditions that all kinds have.
        (
            ConditionType::Stalled,
            Reason::SourceUnauthorized
            | Reason::SourceNotFound
            | Reason::DigestMismatch
            | Reason::ContractMismatch
            | Reason::UnsafePath
            | Reason::BadCheckpoint
            | Reason::StillInUse
            | Reason::TrainingUnsupported,
        ) => true,
        (ConditionType::Ready, Reason::VolumePending | Reason::ReferenceNotFound) => {
            reason == Reason::VolumePending
        }
        // As Stalled; Ready has the word of the condition that is false.
        (ConditionType::Ready, Reason::NameTaken) => true,
        // A replica that is down is told by the reason that its start had.
        (ConditionType::Available, Reason::NoSpace) => false,
        _ => false,
    }
}

#[test]
fn every_reason_of_a_condition_is_produced_by_a_row() {
    let mut produced = BTreeSet::new();
    for (name, row) in rows() {
        let world = row();
        let told = world.told();
        assert!(!told.is_empty(), "{name}");
        produced.extend(told.into_iter().map(|it| {
            let (kind, rest) = it.split_once('=').unwrap();
            let (_, reason) = rest.split_once('/').unwrap();
            format!("{kind}/{reason}")
        }));
    }
    let mut missing = Vec::new();
    for kind in ConditionType::of(Kind::LayaServer) {
        for reason in Reason::ALL {
            let word = format!("{}/{}", kind.as_str(), reason.as_str());
            if reason.conditions().contains(&kind)
                && !elsewhere(kind, *reason)
                && !produced.contains(&word)
            {
                missing.push(word);
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn no_condition_is_told_with_a_word_of_another() {
    for (name, row) in rows() {
        for told in row().told() {
            let (kind, rest) = told.split_once('=').unwrap();
            let (status, reason) = rest.split_once('/').unwrap();
            let kind = ConditionType::by_word(kind).unwrap();
            let reason = *Reason::ALL.iter().find(|it| it.as_str() == reason).unwrap();
            // Ready has the word of the condition that is false; what is not known has the word for why; what nobody runs
            // is not available.
            let borrowed = kind == ConditionType::Ready
                || status == "Unknown"
                || reason == Reason::Suspended
                || (kind == ConditionType::Adopted && status == "False")
                || (kind == ConditionType::Available && reason == Reason::GpuUnavailable);
            assert!(
                borrowed || reason.conditions().contains(&kind),
                "{name}: {told}"
            );
        }
    }
}
