//! The log of what was taken back (control-plane 10, Reject): a document, then an event, then the deletion; and the document
//! goes with the rejection.

use std::collections::BTreeSet;

use api::event::MAX_NOTE_BYTES;
use api::reason::Reason;
use backend::RunState;
use serde_json::json;

use super::sim::{Behaviour, Kill, World};

fn lying() -> Behaviour {
    Behaviour {
        lies: Some((Reason::WrongAnswers, true)),
        ..Behaviour::default()
    }
}

/// The candidate ends by itself, and stays so.
fn crash(world: &mut World) {
    world.until_state("Loading");
    for replica in world.of("v2") {
        replica.state = RunState::Exited;
        replica.exit_code = Some(1);
    }
}

/// It was rejected, and removed. Its revision.
fn taken_back(world: &mut World) -> String {
    world.until("rejected", |world| world.says("Stalled=True/Rejected"));
    world.settle(120);
    assert_eq!(world.up("v2"), 0);
    world.status().rejected[0].revision.clone().unwrap()
}

/// A champion, and a candidate that ended and was taken back; and the revision of that.
fn crashed() -> (World, String) {
    let mut world = World::serving(&json!({}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    crash(&mut world);
    let revision = taken_back(&mut world);
    (world, revision)
}

/// The same, of one that runs and answers wrongly.
fn wrong() -> (World, String) {
    let mut world = World::serving(&json!({}));
    world.behave("v2", lying());
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    let revision = taken_back(&mut world);
    (world, revision)
}

fn first(world: &World, action: &str) -> Option<usize> {
    world.done.iter().position(|it| it.starts_with(action))
}

#[test]
fn control_plane_10_reject_keeps_the_log_before_it_deletes_and_says_where_it_is() {
    for ((world, revision), ended) in [(crashed(), true), (wrong(), false)] {
        assert_eq!(world.logs, BTreeSet::from([revision.clone()]));
        let (stored, deleted) = (first(&world, "StoreLog"), first(&world, "DeleteServer"));
        assert!(stored.is_some() && stored < deleted, "{:?}", world.done);
        let (_, note) = world
            .events
            .iter()
            .find(|(name, _)| name == "Rejected")
            .unwrap();
        let command = format!("relayctl logs main -n space --revision {revision}");
        assert!(note.contains(&command), "{note}");
        assert_eq!(note.ends_with("ends:\nthe end of its log"), ended, "{note}");
        assert!(note.len() <= MAX_NOTE_BYTES);
    }
}

#[test]
fn a_log_goes_with_its_rejection() {
    // The wish is the champion again, and the rejection is forgotten.
    let (mut world, _) = crashed();
    world.edit(&json!({"modelRef": {"name": "v1"}}));
    world.settle(120);
    assert_eq!(world.logs.len(), 1, "it is still taken back");
    world.edit(&json!({"rollout": {"retry": 1}}));
    world.settle(120);
    assert_eq!(world.logs, BTreeSet::new());
}

#[test]
fn a_new_try_has_a_log_of_its_own() {
    let (mut world, revision) = crashed();
    world.done.clear();
    world.edit(&json!({"rollout": {"retry": 1}}));
    world.until("again", |world| world.candidate().is_some());
    assert_eq!(world.logs, BTreeSet::new(), "that of the first try is gone");
    crash(&mut world);
    assert_eq!(taken_back(&mut world), revision);
    assert_eq!(world.logs, BTreeSet::from([revision]));
    assert!(first(&world, "DeleteRevision") < first(&world, "StoreLog"));
}

#[test]
fn what_had_traffic_loses_that_first_and_its_log_is_kept_too() {
    let mut world = World::serving(&json!({"rollout": {"rollbackWindowSeconds": 600}}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Baking");
    world.behave("v2", lying());
    world.until("back", |world| world.champion() == "v1");
    world.settle(120);
    assert_eq!((world.logs.len(), world.up("v2")), (1, 0));
}

#[test]
fn a_log_that_cannot_be_kept_holds_up_neither_the_rejection_nor_the_way_back() {
    for baking in [false, true] {
        let mut world = World::serving(&json!({"rollout": {"rollbackWindowSeconds": 600}}));
        world.keeps_no_log = true;
        world.edit(&json!({"modelRef": {"name": "v2"}}));
        if baking {
            world.until_state("Baking");
        }
        world.behave("v2", lying());
        world.until("back", |world| !world.status().rejected.is_empty());
        world.settle(120);
        assert_eq!(world.champion(), "v1");
        assert!(world.of("v2").is_empty(), "{:?}", world.done);
        let (stored, deleted) = (first(&world, "StoreLog"), first(&world, "DeleteServer"));
        assert!(stored.is_some() && stored < deleted, "{:?}", world.done);
    }
}

#[test]
fn what_is_dropped_for_a_newer_wish_leaves_no_log() {
    let mut world = World::serving(&json!({}));
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    world.until_state("Loading");
    world.edit(&json!({"modelRef": {"name": "v3"}}));
    world.until("promoted", |world| world.champion() == "v3");
    assert_eq!(world.logs, BTreeSet::new());
}

#[test]
fn fault_09_killed_after_the_log_was_stored_it_is_not_stored_again() {
    let mut world = World::serving(&json!({}));
    world.behave("v2", lying());
    world.edit(&json!({"modelRef": {"name": "v2"}}));
    // The document is stored, and the process dies before the status is written.
    for _ in 0..4_000 {
        let stores = world.plan().actions.len() == 1 && world.status().rejected.is_empty();
        let kill = if stores { Kill::Before(1) } else { Kill::Never };
        if !world.pass(kill) {
            world.tick(1);
        }
        if !world.logs.is_empty() {
            break;
        }
    }
    assert_eq!(world.logs.len(), 1);
    assert!(world.status().rejected.is_empty());
    taken_back(&mut world);
    assert_eq!(world.logs.len(), 1);
}
