//! Random histories: people edit, servers crash, vanish and lie, the engine goes blind, the clock jumps, the controller is
//! killed between any two effects. Whatever happened, once it stops the wish is reached and stays, and nothing is written
//! any more.

use api::reason::Reason;
use backend::{BackendError, RunState};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{GateVerdict, GateView, Promotion};
use super::sim::{Behaviour, Kill, World, digest};

#[derive(Debug, Clone)]
enum Step {
    Edit(Value),
    Behave(u8, u8),
    Pass(Kill),
    Tick(u64),
    Exit(usize, i32),
    Vanish(usize),
    Tamper(usize),
    Blind,
    Sight,
    Jump(i64),
    Restart,
    Report(bool),
    Gate(u8),
    Promote(u8),
    Room(Option<u64>),
    ForgetDocument(usize),
}

fn behaviour(number: u8) -> Behaviour {
    let good = Behaviour::default();
    match number {
        0 => Behaviour {
            loads_in: 100_000,
            ..good
        },
        1 => Behaviour {
            ends: Some((1, 1)),
            ..good
        },
        2 => Behaviour {
            ends: Some((40, 137)),
            oom: true,
            ..good
        },
        3 => Behaviour {
            lies: Some((Reason::WrongAnswers, true)),
            ..good
        },
        4 => Behaviour {
            lies: Some((Reason::ProbeTimedOut, false)),
            ..good
        },
        5 => Behaviour {
            ends: Some((1, 3)),
            ..good
        },
        6 => Behaviour {
            loads_in: 60,
            ..good
        },
        _ => good,
    }
}

fn edits() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => (1_u8..6).prop_map(|model| json!({"modelRef": {"name": format!("v{model}")}})),
        2 => (0_i32..4).prop_map(|replicas| json!({"replicas": replicas})),
        1 => any::<bool>().prop_map(|suspend| json!({"suspend": suspend})),
        2 => any::<bool>().prop_map(|paused| json!({"rollout": {"paused": paused}})),
        1 => any::<bool>().prop_map(|auto| json!({"rollout": {"autoRollback": auto}})),
        1 => (0_i32..5).prop_map(|retry| json!({"rollout": {"retry": retry}})),
        1 => (0_i32..3).prop_map(|threads| json!({"serving": {"threads": threads}})),
        1 => (1_u8..6).prop_map(|model| json!({"rollout": {"approve": digest(&format!("v{model}"))}})),
        1 => Just(json!({"rollout": {"approval": "Manual"}})),
        1 => Just(json!({"rollout": {"whenNoRoom": "Wait"}})),
        3 => prop_oneof![Just("BlueGreen"), Just("Shadow"), Just("Replace")].prop_map(
            |strategy| json!({"rollout": {"strategy": strategy, "canary": null}})
        ),
        2 => Just(json!({"rollout": {"strategy": "Canary", "canary": {
            "steps": [{"weight": 10, "holdSeconds": 30}, {"weight": 50, "holdSeconds": 60}]}}})),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kill = prop_oneof![4 => Just(Kill::Never), 2 => (0_usize..4).prop_map(Kill::Before)];
    let step = prop_oneof![
        8 => edits().prop_map(Step::Edit),
        4 => (1_u8..6, 0_u8..12).prop_map(|(model, how)| Step::Behave(model, how)),
        20 => kill.prop_map(Step::Pass),
        14 => prop_oneof![Just(1_u64), Just(5), Just(15), Just(70), Just(700)].prop_map(Step::Tick),
        3 => (0_usize..8, prop_oneof![Just(0), Just(1), Just(137), Just(255)])
            .prop_map(|(at, code)| Step::Exit(at, code)),
        2 => (0_usize..8).prop_map(Step::Vanish),
        2 => (0_usize..8).prop_map(Step::Tamper),
        1 => Just(Step::Blind),
        2 => Just(Step::Sight),
        1 => prop_oneof![Just(3_600_i64), Just(-3_600), Just(0)].prop_map(Step::Jump),
        2 => Just(Step::Restart),
        2 => any::<bool>().prop_map(Step::Report),
        2 => (0_u8..6).prop_map(Step::Gate),
        1 => (1_u8..6).prop_map(Step::Promote),
        1 => prop_oneof![Just(None), Just(Some(3_u64 << 30)), Just(Some(64 << 30))].prop_map(Step::Room),
        1 => (0_usize..8).prop_map(Step::ForgetDocument),
    ];
    proptest::collection::vec(step, 1..70)
}

fn gate(number: u8) -> GateView {
    let verdict = match number {
        0 => GateVerdict::Failed,
        1 => GateVerdict::Inconclusive,
        2 => GateVerdict::Error,
        3 => GateVerdict::Passed,
        4 => {
            return GateView::NotJudged {
                name: "quality".to_owned(),
            };
        }
        _ => return GateView::None,
    };
    GateView::Judged {
        name: "quality".to_owned(),
        digest: digest("v2"),
        evaluation: "e1".to_owned(),
        verdict,
        message: "it says so".to_owned(),
    }
}

fn take(world: &mut World, step: &Step) {
    let nth = |world: &World, at: usize| {
        let count = world.servers.len().max(1);
        world.servers.keys().nth(at % count).cloned()
    };
    match step {
        Step::Edit(patch) => world.edit(patch),
        Step::Behave(model, how) => world.behave(&format!("v{model}"), behaviour(*how)),
        Step::Pass(kill) => {
            world.pass(*kill);
        }
        Step::Tick(seconds) => world.tick(*seconds),
        Step::Exit(at, code) => {
            if let Some(key) = nth(world, *at) {
                let server = world.servers.get_mut(&key).unwrap();
                server.state = RunState::Exited;
                server.exit_code = Some(*code);
                server.leaves = None;
            }
        }
        Step::Vanish(at) => {
            if let Some(key) = nth(world, *at) {
                world.servers.remove(&key);
            }
        }
        Step::Tamper(at) => {
            if let Some(key) = nth(world, *at) {
                world.servers.get_mut(&key).unwrap().tampered = vec!["memory".to_owned()];
            }
        }
        Step::Blind => {
            world.engine = Err(BackendError::Unavailable {
                what: "list".to_owned(),
                address: "socket".to_owned(),
                message: "refused".to_owned(),
            });
        }
        Step::Sight => world.engine = Ok(()),
        Step::Jump(seconds) => world.jump = *seconds,
        Step::Restart => world.restart_process(),
        Step::Report(there) => {
            world.report = if *there {
                Ok(())
            } else {
                Err("no router".to_owned())
            };
        }
        Step::Gate(number) => world.gate = gate(*number),
        Step::Promote(model) => {
            let due_at = world.now().wall;
            world.promotions.push(Promotion {
                run: "run".to_owned(),
                model: format!("v{model}"),
                due_at,
            });
            world.promotions.sort_by_key(|it| it.due_at);
        }
        Step::Room(bytes) => world.engine_bytes = *bytes,
        Step::ForgetDocument(at) => {
            let key = world.documents.keys().nth(*at).cloned();
            // What still runs has it on its labels.
            let runs = |key: &String| world.servers.keys().any(|(of, _)| of == key);
            if let Some(key) = key.filter(runs) {
                world.documents.remove(&key);
            }
        }
    }
}

/// Nobody does anything any more, and what is wished is good.
fn calm(world: &mut World, replicas: i32) {
    world.engine = Ok(());
    world.behaviours.clear();
    world.report = Ok(());
    world.gate = GateView::None;
    world.promotions.clear();
    world.engine_bytes = None;
    let retry = world.object.spec.rollout.retry + 1;
    world.edit(&json!({
        "modelRef": {"name": "v4"}, "suspend": false, "replicas": replicas,
        "rollout": {"paused": false, "autoRollback": true, "approval": "Automatic", "retry": retry, "abort": null},
    }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_wish_is_reached_when_everything_stops(steps in steps(), replicas in 1_i32..4) {
        let mut world = World::new(&json!({}));
        for step in &steps {
            take(&mut world, step);
        }
        calm(&mut world, replicas);
        // Longer than every deadline and every jump of the clock.
        for _ in 0..3 {
            world.settle(300);
            world.tick(4_000);
        }
        world.settle(300);
        prop_assert_eq!(world.champion(), "v4", "{:#?}", world.status());
        prop_assert_eq!(world.traffic(), "v4:100");
        prop_assert_eq!(world.up("v4"), usize::try_from(replicas).unwrap());
        prop_assert!(world.says("Ready=True/Reconciled") && world.says("RolledOut=True/Observed"), "{:?}", world.told());
        let running = world.servers.values().filter(|it| it.state == RunState::Running).count();
        prop_assert_eq!(running, usize::try_from(replicas).unwrap(), "only the champion runs");
        let writes = world.writes;
        for _ in 0..50 {
            world.tick(120);
            prop_assert!(!world.pass(Kill::Never));
        }
        prop_assert_eq!(world.writes, writes);
    }
}
