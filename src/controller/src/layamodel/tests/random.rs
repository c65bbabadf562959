//! Random histories: people edit, the source fails and works again, tasks end in every way, the engine goes and comes back,
//! the controller is killed between two effects. Whatever happened, once the source is good and the engine answers, the
//! model ends published, what a server has is never removed, and a second pass changes nothing.

use api::label;
use proptest::prelude::*;
use testkit::backend::{Outage, Script, refused};

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Pass(Kill),
    Tick(i64),
    /// How tasks end from now on.
    Source(u8),
    EndTask(i32),
    Outage(u8),
    Damage,
    Nonce(u8),
    Suspend(bool),
    MaxAttempts(i32),
    LoseVolumes,
    Use(bool),
    /// A task is removed by hand.
    RemoveTask,
}

fn kill() -> impl Strategy<Value = Kill> {
    prop_oneof![3 => Just(Kill::Never), 2 => (0_usize..3).prop_map(Kill::Before)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => kill().prop_map(Step::Pass),
        3 => (0_i64..4_000).prop_map(Step::Tick),
        3 => (0_u8..10).prop_map(Step::Source),
        2 => prop_oneof![Just(0), Just(1), Just(3), Just(5), Just(6), Just(137), Just(255)].prop_map(Step::EndTask),
        1 => (0_u8..4).prop_map(Step::Outage),
        1 => Just(Step::Damage),
        1 => (0_u8..3).prop_map(Step::Nonce),
        1 => any::<bool>().prop_map(Step::Suspend),
        1 => (1_i32..4).prop_map(Step::MaxAttempts),
        1 => Just(Step::LoseVolumes),
        1 => any::<bool>().prop_map(Step::Use),
        1 => Just(Step::RemoveTask),
    ]
}

fn script(number: u8) -> Script {
    match number {
        0 => refused("SourceBusy", "503", 6),
        1 => refused("SourceUnauthorized", "401", 6),
        2 => refused("SourceNotFound", "404", 6),
        3 => refused("DigestMismatch", "bytes", 3),
        4 => refused("NoSpace", "full", 5),
        5 => refused("BadCheckpoint", "config", 3),
        6 => Script::Runs,
        7 => Script::Stays,
        8 => Script::Ends {
            code: 137,
            result: None,
        },
        _ => Script::Obeys,
    }
}

fn happen(life: &mut Life, step: &Step) {
    match step {
        Step::Pass(kill) => {
            life.pass(*kill);
        }
        Step::Tick(seconds) => life.tick(*seconds),
        Step::Source(number) => {
            let script = script(*number);
            life.engine.script(move |_, _| script.clone());
        }
        Step::EndTask(code) => {
            let (_, tasks) = life.engine.children("uid-1");
            let running = tasks.iter().find(|task| task.state == RunState::Running);
            if let Some(task) = running {
                life.engine.end_task("uid-1", &task.key, *code, None);
            }
        }
        Step::Outage(number) => life.engine.outage(match number {
            0 => Some(Outage::Unavailable),
            1 => Some(Outage::Hangs),
            2 => Some(Outage::Incomplete),
            _ => None,
        }),
        Step::Damage => life.damaged_at = Some(life.now),
        Step::Nonce(number) => life.annotate(label::VERIFY, &format!("n{number}")),
        Step::Suspend(suspend) => life.edit(|spec| spec.suspend = *suspend),
        Step::MaxAttempts(most) => life.edit(|spec| spec.fetch.max_attempts = *most),
        Step::LoseVolumes => life.engine.lose_volumes(),
        Step::Use(used) => life.used_by(used.then_some("main")),
        Step::RemoveTask => {
            let (_, tasks) = life.engine.children("uid-1");
            if let Some(task) = tasks.first() {
                let delete = EngineAction::DeleteTask {
                    task: task.key.clone(),
                };
                let _ = life
                    .engine
                    .apply(&owner(&life.model), &delete)
                    .now_or_never();
            }
        }
    }
}

/// Everything is well from now on.
fn heal(life: &mut Life) {
    life.engine.outage(None);
    life.engine.script(|_, _| Script::Obeys);
    for task in life.engine.children("uid-1").1 {
        if task.state != RunState::Exited {
            life.engine.end_task("uid-1", &task.key, 143, None);
        }
    }
    life.edit(|spec| {
        spec.suspend = false;
        spec.fetch.max_attempts = 20;
    });
    life.annotate(label::VERIFY, "healed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_good_source_ends_published_whatever_happened(steps in proptest::collection::vec(step(), 0..40)) {
        let mut life = Life::new(&http());
        for step in &steps {
            happen(&mut life, step);
        }
        heal(&mut life);
        for _ in 0..12 {
            life.go_on();
        }
        prop_assert!(life.is_published(), "{:#?}", life.model.status);
        prop_assert_eq!(life.status().verify_nonce.as_deref(), Some("healed"));
        prop_assert!(life.engine.children("uid-1").1.is_empty());
        let rests = life.pass(Kill::Never);
        prop_assert_eq!(rests, (false, Requeue::Steady));
    }

    #[test]
    fn a_deletion_ends_and_never_takes_what_is_in_use(steps in proptest::collection::vec(step(), 0..30), after in proptest::collection::vec(step(), 0..20)) {
        let mut life = Life::new(&http());
        for step in &steps {
            happen(&mut life, step);
        }
        life.delete();
        for step in &after {
            happen(&mut life, step);
        }
        life.engine.outage(None);
        life.engine.script(|_, _| Script::Obeys);
        life.used_by(None);
        for _ in 0..60 {
            life.go_on();
        }
        prop_assert!(life.gone, "{:#?}", life.model.status);
    }
}
